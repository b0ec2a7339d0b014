//! Shared memory in kernels that reach that of other CTAs: whose it is.
//!
//! There an address in shared memory becomes one in the range of addresses that the shared memory of all CTAs
//! has together, by CTA id; and the rule judges it as it judges global memory.

use shadow::layout::LaunchBlock;

use crate::access::AddressSpace;
use crate::call::{Value, call};

/// The registers that [`place`] uses besides those of all checks.
pub(crate) const DECLARATIONS: &str =
    "\n.reg .pred %crc_near;\n.reg .b32 %crc_rank;\n.reg .b64 %crc_cluster;\n";

/// Turns `%crc_address`, an address in shared memory or a generic one, into one in the range of all
/// CTAs; goes to `skip` where it is in no shared memory.
pub(crate) fn place(address_space: AddressSpace, skip: &str) -> String {
    let mut text = String::new();
    if address_space == AddressSpace::Generic {
        text.push_str(&format!(
            "isspacep.shared::cluster %crc_near, %crc_address;\n@!%crc_near bra {skip};\n\
             cvta.to.shared::cluster.u64 %crc_address, %crc_address;\n"
        ));
    }
    text.push_str(match address_space {
        AddressSpace::Shared => "mov.u32 %crc_rank, %cluster_ctarank;\n",
        _ => "getctarank.shared::cluster.u64 %crc_rank, %crc_address;\n",
    });
    let block = size_of::<LaunchBlock>();
    text.push_str(&format!("add.s64 %crc_cluster, %crc_launch, {block};\n"));
    let arguments = [
        Value::new("b64", "%crc_cluster"),
        Value::new("b64", "%crc_address"),
        Value::new("b32", "%crc_rank"),
    ];
    text + &call(
        "cluster_place",
        Some(Value::new("b64", "%crc_address")),
        &arguments,
    )
}
