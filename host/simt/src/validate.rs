//! What a device refuses before anything runs, as the real driver does.

use crate::code::Program;
use crate::config::{DeviceConfig, Launch};
use crate::error::LaunchError;

/// Largest grid in x, y and z.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
/// Largest CTA in x, y and z.
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
const MAX_CLUSTER: u64 = 16;

/// Checks a launch of a program; returns the size of its clusters.
pub(crate) fn launch(
    config: &DeviceConfig,
    program: &Program,
    launch: &Launch,
) -> Result<[u32; 3], LaunchError> {
    let invalid = |reason: String| Err(LaunchError::InvalidConfiguration(reason));
    for (what, given, most) in [
        ("grid", launch.grid, MAX_GRID),
        ("block", launch.block, MAX_BLOCK),
    ] {
        for axis in 0..3 {
            if given[axis] == 0 || given[axis] > most[axis] {
                return invalid(format!(
                    "a {what} of {given:?}, at most {most:?} is possible"
                ));
            }
        }
    }
    let threads: u64 = launch.block.iter().map(|&n| u64::from(n)).product();
    if threads > 1024 {
        return invalid(format!(
            "{threads} threads in a block, at most 1024 are possible"
        ));
    }
    if threads > u64::from(program.info.max_threads) {
        let most = program.info.max_threads;
        let reason = format!("{threads} threads in a block of a kernel compiled for {most}");
        return Err(LaunchError::OutOfResources(reason));
    }
    if let Some(required) = program.info.required_block
        && required != launch.block
    {
        return invalid(format!(
            "a block of {:?} where .reqntid is {required:?}",
            launch.block
        ));
    }
    let shared = u64::from(program.dynamic_start) + u64::from(launch.dynamic_shared);
    let shared = if launch.dynamic_shared == 0 {
        u64::from(program.static_shared)
    } else {
        shared
    };
    if shared > u64::from(config.shared_per_cta) {
        let most = config.shared_per_cta;
        return invalid(format!(
            "{shared} bytes of shared memory, at most {most} are possible"
        ));
    }
    if program.info.local_bytes > config.local_per_thread {
        let most = config.local_per_thread;
        let reason = format!(
            "{} bytes of local memory per thread, at most {most} are possible",
            program.info.local_bytes
        );
        return Err(LaunchError::OutOfResources(reason));
    }
    if launch.params.len() < program.info.param_bytes as usize {
        let (have, want) = (launch.params.len(), program.info.param_bytes);
        return invalid(format!(
            "{have} bytes of parameters for a kernel with {want}"
        ));
    }
    let mut cluster = launch.cluster;
    if let (Some(required), [1, 1, 1]) = (program.info.cluster, cluster) {
        cluster = required;
    }
    let size: u64 = cluster.iter().map(|&n| u64::from(n)).product();
    let divides =
        (0..3).all(|axis| cluster[axis] > 0 && launch.grid[axis].is_multiple_of(cluster[axis]));
    if !divides || size > MAX_CLUSTER {
        return invalid(format!(
            "clusters of {cluster:?} in a grid of {:?}",
            launch.grid
        ));
    }
    Ok(cluster)
}
