//! `cudaDeviceProp`, whose layout differs between CUDA 12 and 13.
//!
//! A program built with CUDA 12 calls `cudaGetDeviceProperties_v2`, one built with CUDA 13 plain
//! `cudaGetDeviceProperties`. Offsets and sizes are those of the two `driver_types.h`.

use std::ffi::{c_char, c_int};

use driver::sys::{Api, CUuuid};

use crate::context::driver;
use crate::entry::entry;
use crate::error::{Error, check, out};

/// Where a field lies: offset in CUDA 13 and in CUDA 12, if it is there; bytes per element; the
/// device attributes that fill its elements.
struct Field(Option<usize>, Option<usize>, usize, &'static [c_int]);

/// `sizeof(cudaDeviceProp)` in CUDA 13.
const BYTES_13: usize = 1008;
/// `sizeof(cudaDeviceProp)` in CUDA 12.
const BYTES_12: usize = 1032;
/// `totalGlobalMem` and `uuid` lie at the same place in both.
const TOTAL_MEMORY: usize = 288;
const UUID: usize = 256;
const NAME_BYTES: usize = 256;

#[rustfmt::skip]
static FIELDS: &[Field] = &[
    Field(Some(296), Some(296), 8, &[8]), // sharedMemPerBlock
    Field(Some(304), Some(304), 4, &[12]), // regsPerBlock
    Field(Some(308), Some(308), 4, &[10]), // warpSize
    Field(Some(312), Some(312), 8, &[11]), // memPitch
    Field(Some(320), Some(320), 4, &[1]), // maxThreadsPerBlock
    Field(Some(324), Some(324), 4, &[2, 3, 4]), // maxThreadsDim
    Field(Some(336), Some(336), 4, &[5, 6, 7]), // maxGridSize
    Field(None, Some(348), 4, &[13]), // clockRate
    Field(Some(352), Some(352), 8, &[9]), // totalConstMem
    Field(Some(360), Some(360), 4, &[75]), // major
    Field(Some(364), Some(364), 4, &[76]), // minor
    Field(Some(368), Some(368), 8, &[14]), // textureAlignment
    Field(Some(376), Some(376), 8, &[51]), // texturePitchAlignment
    Field(None, Some(384), 4, &[15]), // deviceOverlap
    Field(Some(384), Some(388), 4, &[16]), // multiProcessorCount
    Field(None, Some(392), 4, &[17]), // kernelExecTimeoutEnabled
    Field(Some(388), Some(396), 4, &[18]), // integrated
    Field(Some(392), Some(400), 4, &[19]), // canMapHostMemory
    Field(None, Some(404), 4, &[20]), // computeMode
    Field(Some(396), Some(408), 4, &[21]), // maxTexture1D
    Field(Some(400), Some(412), 4, &[77]), // maxTexture1DMipmap
    Field(None, Some(416), 4, &[69]), // maxTexture1DLinear
    Field(Some(404), Some(420), 4, &[22, 23]), // maxTexture2D
    Field(Some(412), Some(428), 4, &[73, 74]), // maxTexture2DMipmap
    Field(Some(420), Some(436), 4, &[70, 71, 72]), // maxTexture2DLinear
    Field(Some(432), Some(448), 4, &[45, 46]), // maxTexture2DGather
    Field(Some(440), Some(456), 4, &[24, 25, 26]), // maxTexture3D
    Field(Some(452), Some(468), 4, &[47, 48, 49]), // maxTexture3DAlt
    Field(Some(464), Some(480), 4, &[52]), // maxTextureCubemap
    Field(Some(468), Some(484), 4, &[42, 43]), // maxTexture1DLayered
    Field(Some(476), Some(492), 4, &[27, 28, 29]), // maxTexture2DLayered
    Field(Some(488), Some(504), 4, &[53, 54]), // maxTextureCubemapLayered
    Field(Some(496), Some(512), 4, &[55]), // maxSurface1D
    Field(Some(500), Some(516), 4, &[56, 57]), // maxSurface2D
    Field(Some(508), Some(524), 4, &[58, 59, 60]), // maxSurface3D
    Field(Some(520), Some(536), 4, &[61, 62]), // maxSurface1DLayered
    Field(Some(528), Some(544), 4, &[63, 64, 65]), // maxSurface2DLayered
    Field(Some(540), Some(556), 4, &[66]), // maxSurfaceCubemap
    Field(Some(544), Some(560), 4, &[67, 68]), // maxSurfaceCubemapLayered
    Field(Some(552), Some(568), 8, &[30]), // surfaceAlignment
    Field(Some(560), Some(576), 4, &[31]), // concurrentKernels
    Field(Some(564), Some(580), 4, &[32]), // ECCEnabled
    Field(Some(568), Some(584), 4, &[33]), // pciBusID
    Field(Some(572), Some(588), 4, &[34]), // pciDeviceID
    Field(Some(576), Some(592), 4, &[50]), // pciDomainID
    Field(Some(580), Some(596), 4, &[35]), // tccDriver
    Field(Some(584), Some(600), 4, &[40]), // asyncEngineCount
    Field(Some(588), Some(604), 4, &[41]), // unifiedAddressing
    Field(None, Some(608), 4, &[36]), // memoryClockRate
    Field(Some(592), Some(612), 4, &[37]), // memoryBusWidth
    Field(Some(596), Some(616), 4, &[38]), // l2CacheSize
    Field(Some(600), Some(620), 4, &[108]), // persistingL2CacheMaxSize
    Field(Some(604), Some(624), 4, &[39]), // maxThreadsPerMultiProcessor
    Field(Some(608), Some(628), 4, &[78]), // streamPrioritiesSupported
    Field(Some(612), Some(632), 4, &[79]), // globalL1CacheSupported
    Field(Some(616), Some(636), 4, &[80]), // localL1CacheSupported
    Field(Some(624), Some(640), 8, &[81]), // sharedMemPerMultiprocessor
    Field(Some(632), Some(648), 4, &[82]), // regsPerMultiprocessor
    Field(Some(636), Some(652), 4, &[83]), // managedMemory
    Field(Some(640), Some(656), 4, &[84]), // isMultiGpuBoard
    Field(Some(644), Some(660), 4, &[85]), // multiGpuBoardGroupID
    Field(Some(648), Some(664), 4, &[86]), // hostNativeAtomicSupported
    Field(None, Some(668), 4, &[87]), // singleToDoublePrecisionPerfRatio
    Field(Some(652), Some(672), 4, &[88]), // pageableMemoryAccess
    Field(Some(656), Some(676), 4, &[89]), // concurrentManagedAccess
    Field(Some(660), Some(680), 4, &[90]), // computePreemptionSupported
    Field(Some(664), Some(684), 4, &[91]), // canUseHostPointerForRegisteredMem
    Field(Some(668), Some(688), 4, &[95]), // cooperativeLaunch
    Field(None, Some(692), 4, &[96]), // cooperativeMultiDeviceLaunch
    Field(Some(672), Some(696), 8, &[97]), // sharedMemPerBlockOptin
    Field(Some(680), Some(704), 4, &[100]), // pageableMemoryAccessUsesHostPageTables
    Field(Some(684), Some(708), 4, &[101]), // directManagedMemAccessFromHost
    Field(Some(688), Some(712), 4, &[106]), // maxBlocksPerMultiProcessor
    Field(Some(692), Some(716), 4, &[109]), // accessPolicyMaxWindowSize
    Field(Some(696), Some(720), 8, &[111]), // reservedSharedMemPerBlock
    Field(Some(704), Some(728), 4, &[99]), // hostRegisterSupported
    Field(Some(708), Some(732), 4, &[112]), // sparseCudaArraySupported
    Field(Some(712), Some(736), 4, &[113]), // hostRegisterReadOnlySupported
    Field(Some(716), Some(740), 4, &[114]), // timelineSemaphoreInteropSupported
    Field(Some(720), Some(744), 4, &[115]), // memoryPoolsSupported
    Field(Some(724), Some(748), 4, &[116]), // gpuDirectRDMASupported
    Field(Some(728), Some(752), 4, &[117]), // gpuDirectRDMAFlushWritesOptions
    Field(Some(732), Some(756), 4, &[118]), // gpuDirectRDMAWritesOrdering
    Field(Some(736), Some(760), 4, &[119]), // memoryPoolSupportedHandleTypes
    Field(Some(740), Some(764), 4, &[121]), // deferredMappingCudaArraySupported
    Field(Some(744), Some(768), 4, &[125]), // ipcEventSupported
    Field(Some(748), Some(772), 4, &[120]), // clusterLaunch
    Field(Some(752), Some(776), 4, &[129]), // unifiedFunctionPointers
];

entry! {
    fn cudaGetDeviceProperties(properties: *mut u8, of: c_int) {
        let bytes = describe(of, BYTES_13, |field| field.0)?;
        // Only a test for null: the reference stands for one byte, and all of them are written.
        out(properties)?;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), properties, bytes.len());
        Ok(())
    }

    fn cudaGetDeviceProperties_v2(properties: *mut u8, of: c_int) {
        let bytes = describe(of, BYTES_12, |field| field.1)?;
        // Only a test for null: the reference stands for one byte, and all of them are written.
        out(properties)?;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), properties, bytes.len());
        Ok(())
    }

    fn cudaChooseDevice(chosen: *mut c_int, _properties: *const u8) {
        driver()?;
        *out(chosen)? = 0;
        Ok(())
    }
}

fn describe(
    of: c_int,
    bytes: usize,
    offset_of: impl Fn(&Field) -> Option<usize>,
) -> Result<Vec<u8>, Error> {
    let api = driver()?;
    let mut out = vec![0; bytes];
    let mut uuid = CUuuid::default();
    let mut memory = 0usize;
    // SAFETY: the buffers outlive the calls and have the lengths given.
    unsafe {
        check(api.cuDeviceGetName(out.as_mut_ptr().cast::<c_char>(), NAME_BYTES as c_int, of))?;
        check(api.cuDeviceGetUuid(&mut uuid, of))?;
        check(api.cuDeviceTotalMem(&mut memory, of))?;
    }
    out[UUID..UUID + 16].copy_from_slice(&uuid.bytes);
    out[TOTAL_MEMORY..TOTAL_MEMORY + 8].copy_from_slice(&memory.to_le_bytes());
    for field in FIELDS {
        let Some(start) = offset_of(field) else {
            continue;
        };
        for (index, id) in field.3.iter().enumerate() {
            let at = start + index * field.2;
            let value = i64::from(attribute(api, *id, of)?);
            out[at..at + field.2].copy_from_slice(&value.to_le_bytes()[..field.2]);
        }
    }
    Ok(out)
}

fn attribute(api: &Api, id: c_int, of: c_int) -> Result<c_int, Error> {
    let mut value = 0;
    // SAFETY: `value` outlives the call.
    check(unsafe { api.cuDeviceGetAttribute(&mut value, id, of) })?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_inside_and_do_not_overlap() {
        type OffsetOf = fn(&Field) -> Option<usize>;
        let layouts: [(OffsetOf, usize); 2] = [(|f| f.0, BYTES_13), (|f| f.1, BYTES_12)];
        for (offset_of, bytes) in layouts {
            let mut taken = vec![false; bytes];
            for field in FIELDS {
                let Some(start) = offset_of(field) else {
                    continue;
                };
                for slot in &mut taken[start..start + field.2 * field.3.len()] {
                    assert!(!std::mem::replace(slot, true), "offset {start}");
                }
            }
        }
    }
}
