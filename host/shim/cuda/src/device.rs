//! The one device: what it is and what it can do.
//!
//! Source: the attributes of an sm_90 (an H200 with 16 GiB that nobody else uses).
//! Attributes we do not know read 0, because runtime libraries ask for all of them and need all
//! queries to succeed.

use std::ffi::{c_char, c_int, c_uint};

use driver::sys::device_attribute as a;
use driver::sys::{
    CUdevice, CUdevice_P2PAttribute, CUdevice_attribute, CUdevprop, CUresult, CUuuid,
};

use crate::Answer;
use crate::pointer::Ptr;
use crate::state::with;

/// Identifies the simulated device; the same in every process.
const UUID: [u8; 16] = *b"cudarun-check\0\x09\0";
const PCI_BUS: c_int = 1;
const PCI_ID: &str = "0000:01:00.0";

/// Attributes that are not 0.
const ATTRIBUTES: &[(CUdevice_attribute, c_int)] = &[
    (a::MAX_THREADS_PER_BLOCK, 1024),
    (a::MAX_BLOCK_DIM_X, 1024),
    (a::MAX_BLOCK_DIM_Y, 1024),
    (a::MAX_BLOCK_DIM_Z, 64),
    (a::MAX_GRID_DIM_X, i32::MAX),
    (a::MAX_GRID_DIM_Y, 65535),
    (a::MAX_GRID_DIM_Z, 65535),
    (a::MAX_SHARED_MEMORY_PER_BLOCK, 49152),
    (a::TOTAL_CONSTANT_MEMORY, 65536),
    (a::WARP_SIZE, 32),
    (a::MAX_PITCH, i32::MAX),
    (a::MAX_REGISTERS_PER_BLOCK, 65536),
    (a::CLOCK_RATE, 1_980_000),
    (a::TEXTURE_ALIGNMENT, 512),
    (a::MAXIMUM_TEXTURE1D_WIDTH, 131_072),
    (a::MAXIMUM_TEXTURE2D_WIDTH, 131_072),
    (a::MAXIMUM_TEXTURE2D_HEIGHT, 65536),
    (a::MAXIMUM_TEXTURE3D_WIDTH, 16384),
    (a::MAXIMUM_TEXTURE3D_HEIGHT, 16384),
    (a::MAXIMUM_TEXTURE3D_DEPTH, 16384),
    (a::MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768),
    (a::MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768),
    (a::MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048),
    (a::MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768),
    (a::MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048),
    (a::MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1 << 28),
    (a::MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131_072),
    (a::MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000),
    (a::MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2_097_120),
    (a::GPU_OVERLAP, 1),
    (a::MULTIPROCESSOR_COUNT, 132),
    (a::CAN_MAP_HOST_MEMORY, 1),
    (a::SURFACE_ALIGNMENT, 512),
    (a::CONCURRENT_KERNELS, 1),
    (a::PCI_BUS_ID, PCI_BUS),
    (a::MEMORY_CLOCK_RATE, 2_619_000),
    (a::GLOBAL_MEMORY_BUS_WIDTH, 5120),
    (a::L2_CACHE_SIZE, 52_428_800),
    (a::MAX_THREADS_PER_MULTIPROCESSOR, 2048),
    (a::ASYNC_ENGINE_COUNT, 3),
    (a::UNIFIED_ADDRESSING, 1),
    (a::TEXTURE_PITCH_ALIGNMENT, 32),
    (a::COMPUTE_CAPABILITY_MAJOR, 9),
    (a::COMPUTE_CAPABILITY_MINOR, 0),
    (a::STREAM_PRIORITIES_SUPPORTED, 1),
    (a::GLOBAL_L1_CACHE_SUPPORTED, 1),
    (a::LOCAL_L1_CACHE_SUPPORTED, 1),
    (a::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233_472),
    (a::MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
    (a::MANAGED_MEMORY, 1),
    (a::SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2),
    (a::CONCURRENT_MANAGED_ACCESS, 1),
    (a::COMPUTE_PREEMPTION_SUPPORTED, 1),
    (a::CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1),
    (a::COOPERATIVE_LAUNCH, 1),
    (a::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232_448),
    (a::HOST_REGISTER_SUPPORTED, 1),
    (a::MAX_BLOCKS_PER_MULTIPROCESSOR, 32),
    (a::RESERVED_SHARED_MEMORY_PER_BLOCK, 1024),
    (a::MEMORY_POOLS_SUPPORTED, 1),
    (a::MEMPOOL_SUPPORTED_HANDLE_TYPES, 1),
    (a::CLUSTER_LAUNCH, 1),
    (a::DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1),
    (a::MEM_SYNC_DOMAIN_COUNT, 1),
];

/// What an attribute reads.
pub(crate) fn attribute(id: CUdevice_attribute) -> c_int {
    ATTRIBUTES
        .iter()
        .find(|row| row.0 == id)
        .map_or(0, |row| row.1)
}

/// Whether CUDA_VISIBLE_DEVICES leaves the device to be seen.
///
/// As the real driver reads it: a list of ordinals and UUIDs, of which the first bad one ends
/// the list, and a device named twice leaves none.
pub(crate) fn visible(list: Option<&str>) -> bool {
    let Some(list) = list else { return true };
    let is_ours = |item: &str| {
        let hexadecimal = |text: &str| uuid_text().starts_with(&text.to_ascii_lowercase());
        item.parse() == Ok(0) || (item.len() > 4 && hexadecimal(item))
    };
    let named = list
        .split(',')
        .map(str::trim)
        .take_while(|item| is_ours(item))
        .count();
    named == 1
}

/// The UUID as `nvidia-smi` writes it, in lower case.
fn uuid_text() -> String {
    let mut text = "gpu-".to_owned();
    for (index, byte) in UUID.iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Checks a device ordinal.
pub(crate) fn check(dev: CUdevice) -> Answer {
    with(|state| match (0..state.devices).contains(&dev) {
        true => Ok(()),
        false => Err(CUresult::INVALID_DEVICE),
    })
}

pub(crate) fn cuDeviceGet(device: Ptr<CUdevice>, ordinal: c_int) -> Answer {
    check(ordinal)?;
    device.set(ordinal)
}

pub(crate) fn cuDeviceGetCount(count: Ptr<c_int>) -> Answer {
    count.set(with(|state| Ok(state.devices))?)
}

pub(crate) fn cuDeviceGetName(name: Ptr<c_char>, len: c_int, dev: CUdevice) -> Answer {
    check(dev)?;
    let text = with(|state| Ok(state.engine.name().to_owned()))?;
    name.set_text(
        &text,
        usize::try_from(len).map_err(|_| CUresult::INVALID_VALUE)?,
    )
}

pub(crate) fn cuDeviceGetUuid(uuid: Ptr<CUuuid>, dev: CUdevice) -> Answer {
    check(dev)?;
    uuid.set(CUuuid { bytes: UUID })
}

pub(crate) fn cuDeviceGetUuid_v1(uuid: Ptr<CUuuid>, dev: CUdevice) -> Answer {
    cuDeviceGetUuid(uuid, dev)
}

/// LUIDs exist on Windows only.
pub(crate) fn cuDeviceGetLuid(_luid: Ptr<c_char>, _mask: Ptr<c_uint>, dev: CUdevice) -> Answer {
    check(dev)?;
    Err(CUresult::NOT_SUPPORTED)
}

pub(crate) fn cuDeviceTotalMem(bytes: Ptr<usize>, dev: CUdevice) -> Answer {
    check(dev)?;
    bytes.set(with(|state| Ok(state.engine.memory().total() as usize))?)
}

pub(crate) fn cuDeviceGetAttribute(
    value: Ptr<c_int>,
    attrib: CUdevice_attribute,
    dev: CUdevice,
) -> Answer {
    check(dev)?;
    match attrib > 0 {
        true => value.set(attribute(attrib)),
        false => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuDeviceGetProperties(prop: Ptr<CUdevprop>, dev: CUdevice) -> Answer {
    check(dev)?;
    prop.set(CUdevprop {
        max_threads_per_block: attribute(a::MAX_THREADS_PER_BLOCK),
        max_threads_dim: [a::MAX_BLOCK_DIM_X, a::MAX_BLOCK_DIM_Y, a::MAX_BLOCK_DIM_Z]
            .map(attribute),
        max_grid_size: [a::MAX_GRID_DIM_X, a::MAX_GRID_DIM_Y, a::MAX_GRID_DIM_Z].map(attribute),
        shared_mem_per_block: attribute(a::MAX_SHARED_MEMORY_PER_BLOCK),
        total_constant_memory: attribute(a::TOTAL_CONSTANT_MEMORY),
        simd_width: attribute(a::WARP_SIZE),
        mem_pitch: attribute(a::MAX_PITCH),
        regs_per_block: attribute(a::MAX_REGISTERS_PER_BLOCK),
        clock_rate: attribute(a::CLOCK_RATE),
        texture_align: attribute(a::TEXTURE_ALIGNMENT),
    })
}

pub(crate) fn cuDeviceComputeCapability(
    major: Ptr<c_int>,
    minor: Ptr<c_int>,
    dev: CUdevice,
) -> Answer {
    check(dev)?;
    major.set(attribute(a::COMPUTE_CAPABILITY_MAJOR))?;
    minor.set(attribute(a::COMPUTE_CAPABILITY_MINOR))
}

pub(crate) fn cuDeviceGetByPCIBusId(dev: Ptr<CUdevice>, id: Ptr<c_char>) -> Answer {
    check(0)?;
    let id = id.text()?.to_ascii_lowercase();
    let known = [PCI_ID, "01:00.0", "0000:01:00", "01:00"]
        .iter()
        .any(|&known| known == id);
    match known || id == format!("0000{PCI_ID}") {
        true => dev.set(0),
        false => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuDeviceGetPCIBusId(id: Ptr<c_char>, len: c_int, dev: CUdevice) -> Answer {
    check(dev)?;
    id.set_text(
        PCI_ID,
        usize::try_from(len).map_err(|_| CUresult::INVALID_VALUE)?,
    )
}

pub(crate) fn cuDeviceCanAccessPeer(out: Ptr<c_int>, dev: CUdevice, peer: CUdevice) -> Answer {
    check(dev)?;
    check(peer)?;
    out.set(0)
}

pub(crate) fn cuDeviceGetP2PAttribute(
    _value: Ptr<c_int>,
    _attrib: CUdevice_P2PAttribute,
    src: CUdevice,
    dst: CUdevice,
) -> Answer {
    check(src)?;
    check(dst)?;
    // A device is not its own peer.
    Err(CUresult::INVALID_DEVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_read_as_the_driver_reads_them() {
        let uuid = uuid_text();
        for (list, seen) in [
            (None, true),
            (Some("0"), true),
            (Some(" 0 ,1"), true),
            (Some("1"), false),
            (Some("1,0"), false),
            (Some(""), false),
            (Some("-1"), false),
            (Some("NoDevFiles"), false),
            (Some("0,0"), false),
            (Some(uuid.to_uppercase().as_str()), true),
            (Some("GPU-00000000"), false),
        ] {
            assert_eq!(visible(list), seen, "{list:?}");
        }
    }

    #[test]
    fn attributes_are_those_of_an_sm_90() {
        for (index, row) in ATTRIBUTES.iter().enumerate() {
            assert!(
                ATTRIBUTES[..index].iter().all(|other| other.0 != row.0),
                "{row:?} twice"
            );
        }
        let read = [1, 4, 5, 6, 8, 9, 10, 12, 16, 39, 75, 81, 97, 106, 111].map(attribute);
        let expected = [
            1024, 64, 2147483647, 65535, 49152, 65536, 32, 65536, 132, 2048, 9, 233472, 232448, 32,
            1024,
        ];
        assert_eq!(read, expected);
        let textures = [21, 22, 23, 24, 28, 29, 43, 51, 69, 71].map(attribute);
        let expected = [
            131072, 131072, 65536, 16384, 32768, 2048, 2048, 32, 268435456, 65000,
        ];
        assert_eq!(textures, expected);
        assert_eq!([17, 18, 20, 88, 100, 101, 9999].map(attribute), [0; 7]);
    }
}
