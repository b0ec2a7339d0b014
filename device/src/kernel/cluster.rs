//! The shared memory of all CTAs as one range of addresses, for kernels that reach that of other CTAs
//! of their cluster. The rule then judges it as it judges global memory.
//!
//! Only modules for sm_90 and later contain this.

use crate::layout::*;

/// Where a byte of shared memory is: its offset in its CTA's window, behind a window for each CTA with a
/// smaller id. `rank` is that of the CTA in the cluster.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_cluster_place(
    launch: *const LaunchBlock,
    address: u64,
    rank: u32,
) -> u64 {
    // SAFETY: a field of the *block*.
    unsafe { cta_of_rank(rank) << (*launch).owner_shift as u32 | offset(address as u32) as u64 }
}

/// The offset of an address in the window that it belongs to.
///
/// How an address tells whose it is, is not documented; so it is mapped to this CTA's own window.
fn offset(address: u32) -> u32 {
    let rank = special!("cluster_ctarank");
    map(address, rank) - map(0, rank)
}

/// The address in shared memory of the CTA with that rank that corresponds to `address`.
fn map(address: u32, rank: u32) -> u32 {
    let there: u32;
    instructions!("mapa.shared::cluster.u32 {0}, {1}, {2};",
        out(reg32) there, in(reg32) address, in(reg32) rank);
    there
}

/// The linear index in the grid of a CTA of this cluster; ranks count x fastest, as indices do.
fn cta_of_rank(rank: u32) -> u64 {
    let (nx, ny) = (special!("cluster_nctaid.x"), special!("cluster_nctaid.y"));
    let row = divide(rank, nx);
    let layer = divide(row, ny);
    let x = special!("ctaid.x") - special!("cluster_ctaid.x") + (rank - row * nx);
    let y = special!("ctaid.y") - special!("cluster_ctaid.y") + (row - layer * ny);
    let z = special!("ctaid.z") - special!("cluster_ctaid.z") + layer;
    let row = y as u64 + special!("nctaid.y") as u64 * z as u64;
    x as u64 + special!("nctaid.x") as u64 * row
}

fn divide(a: u32, by: u32) -> u32 {
    let quotient: u32;
    instructions!("div.u32 {0}, {1}, {2};", out(reg32) quotient, in(reg32) a, in(reg32) by);
    quotient
}
