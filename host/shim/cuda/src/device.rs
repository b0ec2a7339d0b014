//! The devices: what they are and what they can do. They differ in number only, and in memory.
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

/// Identifies the first simulated device, the same in every process; the last byte counts.
const UUID: [u8; 16] = *b"cudarun-check\0\x09\0";
/// The PCI bus of the first device; each has its own.
const PCI_BUS: c_int = 1;
/// The architecture of all devices, whatever they say.
pub(crate) const ARCHITECTURE: u64 = 90;
/// Devices that can be asked for.
const MOST: u8 = 8;

/// A device that the program sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    /// Its number among all devices.
    number: u8,
    /// Bytes of memory that it says it has, where that is less than there is.
    pub(crate) memory: Option<u64>,
    /// Its architecture as it says, such as 90.
    architecture: u64,
}

impl Visible {
    fn uuid(self) -> [u8; 16] {
        let mut uuid = UUID;
        uuid[15] = self.number;
        uuid
    }

    /// The UUID as `nvidia-smi` writes it, in lower case.
    fn uuid_text(self) -> String {
        let mut text = "gpu-".to_owned();
        for (index, byte) in self.uuid().iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }

    /// Major and minor.
    fn capability(self) -> [c_int; 2] {
        [self.architecture / 10, self.architecture % 10].map(|digits| digits as c_int)
    }

    fn bus(self) -> c_int {
        PCI_BUS + c_int::from(self.number)
    }
}

/// All devices: as many as `CUDARUN_SIM_DEVICES` says, or one.
pub(crate) fn present() -> Result<Vec<Visible>, CUresult> {
    let count = match std::env::var("CUDARUN_SIM_DEVICES") {
        Ok(text) => text.parse().ok().filter(|count| (1..=MOST).contains(count)),
        Err(_) => Some(1),
    };
    let Some(count) = count else {
        crate::inject::say(&format!(
            "CUDARUN_SIM_DEVICES: not a number from 1 to {MOST}"
        ));
        return Err(CUresult::INVALID_VALUE);
    };
    let list = |variable: &str, of: &str| {
        let text = std::env::var(variable).unwrap_or_default();
        let numbers = text.split(',').filter(|number| !number.is_empty());
        let numbers: Result<Vec<u64>, _> = numbers.map(str::parse).collect();
        numbers.map_err(|_| {
            crate::inject::say(&format!("{variable}: not a list of {of} per device"));
            CUresult::INVALID_VALUE
        })
    };
    let sizes = list("CUDARUN_SIM_MEMORY", "MiB")?;
    let architectures = list("CUDARUN_SIM_ARCHITECTURES", "two digits")?;
    let one = |number: u8| Visible {
        number,
        memory: sizes.get(usize::from(number)).map(|mib| mib << 20),
        architecture: architectures
            .get(usize::from(number))
            .map_or(ARCHITECTURE, |&of| of),
    };
    Ok((0..count).map(one).collect())
}

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
    (a::MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768),
    (a::MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768),
    (a::MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046),
    (a::MAXIMUM_SURFACECUBEMAP_WIDTH, 32768),
    (a::MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768),
    (a::MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046),
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
    (a::MAXIMUM_SURFACE1D_WIDTH, 32_768),
    (a::MAXIMUM_SURFACE2D_WIDTH, 131_072),
    (a::MAXIMUM_SURFACE2D_HEIGHT, 65_536),
    (a::MAXIMUM_SURFACE3D_WIDTH, 16_384),
    (a::MAXIMUM_SURFACE3D_HEIGHT, 16_384),
    (a::MAXIMUM_SURFACE3D_DEPTH, 16_384),
    (a::MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32_768),
    (a::MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048),
    (a::MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32_768),
    (a::MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32_768),
    (a::MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048),
    (a::CONCURRENT_KERNELS, 1),
    (a::MEMORY_CLOCK_RATE, 2_619_000),
    (a::GLOBAL_MEMORY_BUS_WIDTH, 5120),
    (a::L2_CACHE_SIZE, 52_428_800),
    (a::MAX_PERSISTING_L2_CACHE_SIZE, 32_768_000),
    (a::MAX_ACCESS_POLICY_WINDOW_SIZE, 134_213_632),
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
    (a::VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 1),
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

/// The devices that CUDA_VISIBLE_DEVICES leaves to be seen, in its order.
///
/// As the real driver reads it: a list of ordinals and UUIDs, of which the first bad one ends
/// the list, and a device named twice leaves none. The beginning of a UUID has to be one device's.
pub(crate) fn visible(list: Option<&str>, present: &[Visible]) -> Vec<Visible> {
    let Some(list) = list else {
        return present.to_vec();
    };
    let meant = |item: &str| {
        if let Ok(number) = item.parse::<usize>() {
            return present.get(number).copied();
        }
        let start = item.to_ascii_lowercase();
        let long = item.len() > 4;
        let mut found = present
            .iter()
            .filter(|device| long && device.uuid_text().starts_with(&start));
        match (found.next(), found.next()) {
            (Some(one), None) => Some(*one),
            _ => None,
        }
    };
    let named: Vec<Visible> = list.split(',').map(str::trim).map_while(meant).collect();
    let twice = |index: usize| named[..index].contains(&named[index]);
    match (0..named.len()).any(twice) {
        true => Vec::new(),
        false => named,
    }
}

/// The device with an ordinal.
fn find(dev: CUdevice) -> Result<Visible, CUresult> {
    let index = usize::try_from(dev).map_err(|_| CUresult::INVALID_DEVICE)?;
    with(|state| {
        let found = state.devices.get(index).copied();
        found.ok_or(CUresult::INVALID_DEVICE)
    })
}

/// Checks a device ordinal.
pub(crate) fn check(dev: CUdevice) -> Answer {
    find(dev).map(drop)
}

pub(crate) fn cuDeviceGet(device: Ptr<CUdevice>, ordinal: c_int) -> Answer {
    check(ordinal)?;
    device.set(ordinal)
}

pub(crate) fn cuDeviceGetCount(count: Ptr<c_int>) -> Answer {
    count.set(with(|state| Ok(state.devices.len() as c_int))?)
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
    let bytes = find(dev)?.uuid();
    uuid.set(CUuuid { bytes })
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
    bytes.set(with(|state| Ok(state.memory_of(dev).0 as usize))?)
}

pub(crate) fn cuDeviceGetAttribute(
    value: Ptr<c_int>,
    attrib: CUdevice_attribute,
    dev: CUdevice,
) -> Answer {
    let device = find(dev)?;
    match attrib > 0 {
        true if attrib == a::PCI_BUS_ID => value.set(device.bus()),
        // As where a control daemon runs.
        true if attrib == a::MPS_ENABLED => {
            let asked = std::env::var("CUDARUN_SIM_MPS").is_ok_and(|value| value == "1");
            value.set(c_int::from(asked))
        }
        true if attrib == a::COMPUTE_CAPABILITY_MAJOR => value.set(device.capability()[0]),
        true if attrib == a::COMPUTE_CAPABILITY_MINOR => value.set(device.capability()[1]),
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
    let [first, second] = find(dev)?.capability();
    major.set(first)?;
    minor.set(second)
}

pub(crate) fn cuDeviceGetByPCIBusId(dev: Ptr<CUdevice>, id: Ptr<c_char>) -> Answer {
    let id = id.text()?.to_ascii_lowercase();
    let is = |device: &Visible| {
        let bus = device.bus();
        // With and without a domain, of four digits or eight, and a function.
        let short = format!("{bus:02x}:00");
        let domains = ["", "0000:", "00000000:"];
        domains.iter().any(|domain| {
            let rest = id.strip_prefix(domain);
            rest.is_some_and(|rest| rest == short || rest == format!("{short}.0"))
        })
    };
    let found = with(|state| Ok(state.devices.iter().position(is)))?;
    dev.set(found.ok_or(CUresult::INVALID_VALUE)? as CUdevice)
}

pub(crate) fn cuDeviceGetPCIBusId(id: Ptr<c_char>, len: c_int, dev: CUdevice) -> Answer {
    let device = find(dev)?;
    id.set_text(
        &format!("0000:{:02x}:00.0", device.bus()),
        usize::try_from(len).map_err(|_| CUresult::INVALID_VALUE)?,
    )
}

pub(crate) fn cuDeviceCanAccessPeer(out: Ptr<c_int>, dev: CUdevice, peer: CUdevice) -> Answer {
    check(dev)?;
    check(peer)?;
    // A device is not its own peer.
    out.set(c_int::from(dev != peer))
}

pub(crate) fn cuDeviceGetP2PAttribute(
    value: Ptr<c_int>,
    attrib: CUdevice_P2PAttribute,
    src: CUdevice,
    dst: CUdevice,
) -> Answer {
    check(src)?;
    check(dst)?;
    match attrib {
        // A device is not its own peer.
        _ if src == dst => Err(CUresult::INVALID_DEVICE),
        // The rank of the link.
        1 => value.set(0),
        // Access, atomics, and access to arrays.
        2..=4 => value.set(1),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_read_as_the_driver_reads_them() {
        let present = [0, 1, 2].map(|number| Visible {
            number,
            memory: None,
            architecture: ARCHITECTURE,
        });
        let [first, second] = [0, 1].map(|index| present[index].uuid_text().to_uppercase());
        let part = &first[..12];
        let lists: [(Option<&str>, usize, &[u8]); 16] = [
            (None, 1, &[0]),
            (Some("0"), 1, &[0]),
            (Some(" 0 ,1"), 1, &[0]),
            (Some("1"), 1, &[]),
            (Some("1,0"), 1, &[]),
            (Some(""), 1, &[]),
            (Some("-1"), 1, &[]),
            (Some("NoDevFiles"), 1, &[]),
            (Some("0,0"), 1, &[]),
            (Some(&first), 1, &[0]),
            (Some(part), 1, &[0]),
            (Some("GPU-00000000"), 1, &[]),
            (None, 3, &[0, 1, 2]),
            (Some("2,0"), 3, &[2, 0]),
            (Some(&second), 3, &[1]),
            // It may be any of them.
            (Some(part), 3, &[]),
        ];
        for (list, count, seen) in lists {
            let found = visible(list, &present[..count]);
            let numbers: Vec<u8> = found.iter().map(|device| device.number).collect();
            assert_eq!(numbers, seen, "{list:?} of {count}");
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
