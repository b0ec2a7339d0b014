//! The one table of driver entry points: name, version, exported symbols, signature.
//!
//! A row reads `rust_name: base_name since [symbol, per_thread_symbol] (arguments);`.
//! `base_name` and `since` (1000 * major + 10 * minor) are what a caller passes to
//! `cuGetProcAddress`; the symbols are what the real library exports, the second one for programs
//! built with a per-thread default stream.
//! A plain `rust_name` has the signature of CUDA 13's `cuda.h`; older signatures carry `_v1`, `_v2`.
//! Source: names, versions and signatures of the public headers `cuda.h` and `cudaTypedefs.h`.
//! Departure: the 32-bit ABI (before 3.2) and graphics interoperability are left out.

/// Calls the macro `$callback` with all rows of the table.
///
/// The struct of function pointers ([`crate::sys::Api`]), the list of names
/// ([`crate::sys::SYMBOLS`]) and the exports of the simulated driver are all made from it.
#[macro_export]
macro_rules! entry_points {
    ($callback:ident) => { $callback! {
        // ---- initialisation and errors
        cuInit: cuInit 2000 [cuInit] (flags: c_uint);
        cuDriverGetVersion: cuDriverGetVersion 2020 [cuDriverGetVersion] (driver_version: *mut c_int);
        cuGetErrorName: cuGetErrorName 6000 [cuGetErrorName] (error: CUresult, text: *mut *const c_char);
        cuGetErrorString: cuGetErrorString 6000 [cuGetErrorString] (error: CUresult, text: *mut *const c_char);
        cuGetProcAddress_v1: cuGetProcAddress 11030 [cuGetProcAddress] (
            symbol: *const c_char, pfn: *mut *mut c_void, driver_version: c_int, flags: u64);
        cuGetProcAddress: cuGetProcAddress 12000 [cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz] (
            symbol: *const c_char, pfn: *mut *mut c_void, driver_version: c_int, flags: u64,
            status_out: *mut CUdriverProcAddressQueryResult);
        cuGetExportTable: cuGetExportTable 3000 [cuGetExportTable] (table_out: *mut *const c_void, table_id: *const CUuuid);
        // ---- devices
        cuDeviceGet: cuDeviceGet 2000 [cuDeviceGet] (device: *mut CUdevice, ordinal: c_int);
        cuDeviceGetCount: cuDeviceGetCount 2000 [cuDeviceGetCount] (count: *mut c_int);
        cuDeviceGetName: cuDeviceGetName 2000 [cuDeviceGetName] (name: *mut c_char, len: c_int, dev: CUdevice);
        cuDeviceGetUuid_v1: cuDeviceGetUuid 9020 [cuDeviceGetUuid] (uuid: *mut CUuuid, dev: CUdevice);
        cuDeviceGetUuid: cuDeviceGetUuid 11040 [cuDeviceGetUuid_v2] (uuid: *mut CUuuid, dev: CUdevice);
        cuDeviceGetLuid: cuDeviceGetLuid 10000 [cuDeviceGetLuid] (luid: *mut c_char, device_node_mask: *mut c_uint, dev: CUdevice);
        cuDeviceTotalMem: cuDeviceTotalMem 3020 [cuDeviceTotalMem_v2] (bytes: *mut usize, dev: CUdevice);
        cuDeviceGetAttribute: cuDeviceGetAttribute 2000 [cuDeviceGetAttribute] (value_out: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice);
        cuDeviceGetProperties: cuDeviceGetProperties 2000 [cuDeviceGetProperties] (prop: *mut CUdevprop, dev: CUdevice);
        cuDeviceComputeCapability: cuDeviceComputeCapability 2000 [cuDeviceComputeCapability] (major: *mut c_int, minor: *mut c_int, dev: CUdevice);
        cuDeviceGetByPCIBusId: cuDeviceGetByPCIBusId 4010 [cuDeviceGetByPCIBusId] (dev: *mut CUdevice, pci_bus_id: *const c_char);
        cuDeviceGetPCIBusId: cuDeviceGetPCIBusId 4010 [cuDeviceGetPCIBusId] (pci_bus_id: *mut c_char, len: c_int, dev: CUdevice);
        cuDeviceGetDefaultMemPool: cuDeviceGetDefaultMemPool 11020 [cuDeviceGetDefaultMemPool] (pool_out: *mut CUmemoryPool, dev: CUdevice);
        cuDeviceGetMemPool: cuDeviceGetMemPool 11020 [cuDeviceGetMemPool] (pool: *mut CUmemoryPool, dev: CUdevice);
        cuDeviceSetMemPool: cuDeviceSetMemPool 11020 [cuDeviceSetMemPool] (dev: CUdevice, pool: CUmemoryPool);
        cuDeviceCanAccessPeer: cuDeviceCanAccessPeer 4000 [cuDeviceCanAccessPeer] (can_access_peer: *mut c_int, dev: CUdevice, peer_dev: CUdevice);
        cuDeviceGetP2PAttribute: cuDeviceGetP2PAttribute 8000 [cuDeviceGetP2PAttribute] (
            value: *mut c_int, attrib: CUdevice_P2PAttribute, src_device: CUdevice, dst_device: CUdevice);
        // ---- contexts
        cuDevicePrimaryCtxRetain: cuDevicePrimaryCtxRetain 7000 [cuDevicePrimaryCtxRetain] (ctx_out: *mut CUcontext, dev: CUdevice);
        cuDevicePrimaryCtxRelease: cuDevicePrimaryCtxRelease 11000 [cuDevicePrimaryCtxRelease_v2] (dev: CUdevice);
        cuDevicePrimaryCtxReset: cuDevicePrimaryCtxReset 11000 [cuDevicePrimaryCtxReset_v2] (dev: CUdevice);
        cuDevicePrimaryCtxSetFlags: cuDevicePrimaryCtxSetFlags 11000 [cuDevicePrimaryCtxSetFlags_v2] (dev: CUdevice, flags: c_uint);
        cuDevicePrimaryCtxGetState: cuDevicePrimaryCtxGetState 7000 [cuDevicePrimaryCtxGetState] (
            dev: CUdevice, flags: *mut c_uint, active: *mut c_int);
        cuCtxCreate_v2: cuCtxCreate 3020 [cuCtxCreate_v2] (ctx_out: *mut CUcontext, flags: c_uint, dev: CUdevice);
        cuCtxCreate_v3: cuCtxCreate 11040 [cuCtxCreate_v3] (
            ctx_out: *mut CUcontext, params_array: *mut CUexecAffinityParam, num_params: c_int, flags: c_uint, dev: CUdevice);
        cuCtxCreate_v4: cuCtxCreate 12050 [cuCtxCreate_v4] (
            ctx_out: *mut CUcontext, ctx_create_params: *mut CUctxCreateParams, flags: c_uint, dev: CUdevice);
        cuCtxDestroy: cuCtxDestroy 4000 [cuCtxDestroy_v2] (ctx: CUcontext);
        cuCtxAttach: cuCtxAttach 2000 [cuCtxAttach] (ctx_out: *mut CUcontext, flags: c_uint);
        cuCtxDetach: cuCtxDetach 2000 [cuCtxDetach] (ctx: CUcontext);
        cuCtxPushCurrent: cuCtxPushCurrent 4000 [cuCtxPushCurrent_v2] (ctx: CUcontext);
        cuCtxPopCurrent: cuCtxPopCurrent 4000 [cuCtxPopCurrent_v2] (ctx_out: *mut CUcontext);
        cuCtxSetCurrent: cuCtxSetCurrent 4000 [cuCtxSetCurrent] (ctx: CUcontext);
        cuCtxGetCurrent: cuCtxGetCurrent 4000 [cuCtxGetCurrent] (ctx_out: *mut CUcontext);
        cuCtxGetDevice: cuCtxGetDevice 2000 [cuCtxGetDevice] (device: *mut CUdevice);
        cuCtxGetFlags: cuCtxGetFlags 7000 [cuCtxGetFlags] (flags: *mut c_uint);
        cuCtxSetFlags: cuCtxSetFlags 12010 [cuCtxSetFlags] (flags: c_uint);
        cuCtxGetId: cuCtxGetId 12000 [cuCtxGetId] (ctx: CUcontext, ctx_id: *mut u64);
        cuCtxSynchronize: cuCtxSynchronize 2000 [cuCtxSynchronize] ();
        cuCtxSynchronize_v2: cuCtxSynchronize 13000 [cuCtxSynchronize_v2] (ctx: CUcontext);
        cuCtxSetLimit: cuCtxSetLimit 3010 [cuCtxSetLimit] (limit: CUlimit, value: usize);
        cuCtxGetLimit: cuCtxGetLimit 3010 [cuCtxGetLimit] (value_out: *mut usize, limit: CUlimit);
        cuCtxGetCacheConfig: cuCtxGetCacheConfig 3020 [cuCtxGetCacheConfig] (config_out: *mut CUfunc_cache);
        cuCtxSetCacheConfig: cuCtxSetCacheConfig 3020 [cuCtxSetCacheConfig] (config: CUfunc_cache);
        cuCtxGetSharedMemConfig: cuCtxGetSharedMemConfig 4020 [cuCtxGetSharedMemConfig] (config_out: *mut CUsharedconfig);
        cuCtxSetSharedMemConfig: cuCtxSetSharedMemConfig 4020 [cuCtxSetSharedMemConfig] (config: CUsharedconfig);
        cuCtxGetApiVersion: cuCtxGetApiVersion 3020 [cuCtxGetApiVersion] (ctx: CUcontext, version: *mut c_uint);
        cuCtxGetStreamPriorityRange: cuCtxGetStreamPriorityRange 5050 [cuCtxGetStreamPriorityRange] (
            least_priority: *mut c_int, greatest_priority: *mut c_int);
        cuCtxResetPersistingL2Cache: cuCtxResetPersistingL2Cache 11000 [cuCtxResetPersistingL2Cache] ();
        cuCtxEnablePeerAccess: cuCtxEnablePeerAccess 4000 [cuCtxEnablePeerAccess] (peer_context: CUcontext, flags: c_uint);
        cuCtxDisablePeerAccess: cuCtxDisablePeerAccess 4000 [cuCtxDisablePeerAccess] (peer_context: CUcontext);
        // ---- modules and libraries
        cuModuleLoad: cuModuleLoad 2000 [cuModuleLoad] (module: *mut CUmodule, fname: *const c_char);
        cuModuleLoadData: cuModuleLoadData 2000 [cuModuleLoadData] (module: *mut CUmodule, image: *const c_void);
        cuModuleLoadDataEx: cuModuleLoadDataEx 2010 [cuModuleLoadDataEx] (
            module: *mut CUmodule, image: *const c_void, num_options: c_uint, options: *mut CUjit_option,
            option_values: *mut *mut c_void);
        cuModuleLoadFatBinary: cuModuleLoadFatBinary 2000 [cuModuleLoadFatBinary] (module: *mut CUmodule, fat_cubin: *const c_void);
        cuModuleUnload: cuModuleUnload 2000 [cuModuleUnload] (module: CUmodule);
        cuModuleGetLoadingMode: cuModuleGetLoadingMode 11070 [cuModuleGetLoadingMode] (mode: *mut CUmoduleLoadingMode);
        cuModuleGetFunction: cuModuleGetFunction 2000 [cuModuleGetFunction] (func: *mut CUfunction, module: CUmodule, name: *const c_char);
        cuModuleGetFunctionCount: cuModuleGetFunctionCount 12040 [cuModuleGetFunctionCount] (count: *mut c_uint, module: CUmodule);
        cuModuleEnumerateFunctions: cuModuleEnumerateFunctions 12040 [cuModuleEnumerateFunctions] (
            functions: *mut CUfunction, num_functions: c_uint, module: CUmodule);
        cuModuleGetGlobal: cuModuleGetGlobal 3020 [cuModuleGetGlobal_v2] (
            dptr: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
        cuLibraryLoadData: cuLibraryLoadData 12000 [cuLibraryLoadData] (
            library: *mut CUlibrary, code: *const c_void, jit_options: *mut CUjit_option, jit_options_values: *mut *mut c_void,
            num_jit_options: c_uint, library_options: *mut CUlibraryOption, library_option_values: *mut *mut c_void,
            num_library_options: c_uint);
        cuLibraryLoadFromFile: cuLibraryLoadFromFile 12000 [cuLibraryLoadFromFile] (
            library: *mut CUlibrary, file_name: *const c_char, jit_options: *mut CUjit_option,
            jit_options_values: *mut *mut c_void, num_jit_options: c_uint, library_options: *mut CUlibraryOption,
            library_option_values: *mut *mut c_void, num_library_options: c_uint);
        cuLibraryUnload: cuLibraryUnload 12000 [cuLibraryUnload] (library: CUlibrary);
        cuLibraryGetKernel: cuLibraryGetKernel 12000 [cuLibraryGetKernel] (kernel_out: *mut CUkernel, library: CUlibrary, name: *const c_char);
        cuLibraryGetKernelCount: cuLibraryGetKernelCount 12040 [cuLibraryGetKernelCount] (count: *mut c_uint, library: CUlibrary);
        cuLibraryEnumerateKernels: cuLibraryEnumerateKernels 12040 [cuLibraryEnumerateKernels] (
            kernels: *mut CUkernel, num_kernels: c_uint, library: CUlibrary);
        cuLibraryGetModule: cuLibraryGetModule 12000 [cuLibraryGetModule] (module_out: *mut CUmodule, library: CUlibrary);
        cuLibraryGetGlobal: cuLibraryGetGlobal 12000 [cuLibraryGetGlobal] (
            dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
        cuLibraryGetManaged: cuLibraryGetManaged 12000 [cuLibraryGetManaged] (
            dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
        cuLibraryGetUnifiedFunction: cuLibraryGetUnifiedFunction 12000 [cuLibraryGetUnifiedFunction] (
            fptr: *mut *mut c_void, library: CUlibrary, symbol: *const c_char);
        cuLinkCreate: cuLinkCreate 6050 [cuLinkCreate_v2] (
            num_options: c_uint, options: *mut CUjit_option, option_values: *mut *mut c_void, state_out: *mut CUlinkState);
        cuLinkAddData: cuLinkAddData 6050 [cuLinkAddData_v2] (
            state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char, num_options: c_uint,
            options: *mut CUjit_option, option_values: *mut *mut c_void);
        cuLinkAddFile: cuLinkAddFile 6050 [cuLinkAddFile_v2] (
            state: CUlinkState, kind: CUjitInputType, path: *const c_char, num_options: c_uint, options: *mut CUjit_option,
            option_values: *mut *mut c_void);
        cuLinkComplete: cuLinkComplete 5050 [cuLinkComplete] (state: CUlinkState, cubin_out: *mut *mut c_void, size_out: *mut usize);
        cuLinkDestroy: cuLinkDestroy 5050 [cuLinkDestroy] (state: CUlinkState);
        cuKernelGetFunction: cuKernelGetFunction 12000 [cuKernelGetFunction] (func_out: *mut CUfunction, kernel: CUkernel);
        cuKernelGetLibrary: cuKernelGetLibrary 12050 [cuKernelGetLibrary] (library_out: *mut CUlibrary, kernel: CUkernel);
        cuKernelGetAttribute: cuKernelGetAttribute 12000 [cuKernelGetAttribute] (
            value_out: *mut c_int, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice);
        cuKernelSetAttribute: cuKernelSetAttribute 12000 [cuKernelSetAttribute] (
            attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice);
        cuKernelSetCacheConfig: cuKernelSetCacheConfig 12000 [cuKernelSetCacheConfig] (
            kernel: CUkernel, config: CUfunc_cache, dev: CUdevice);
        cuKernelGetName: cuKernelGetName 12030 [cuKernelGetName] (name: *mut *const c_char, func: CUkernel);
        cuKernelGetParamInfo: cuKernelGetParamInfo 12040 [cuKernelGetParamInfo] (
            kernel: CUkernel, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
        cuFuncGetAttribute: cuFuncGetAttribute 2020 [cuFuncGetAttribute] (
            value_out: *mut c_int, attrib: CUfunction_attribute, func: CUfunction);
        cuFuncSetAttribute: cuFuncSetAttribute 9000 [cuFuncSetAttribute] (
            func: CUfunction, attrib: CUfunction_attribute, value: c_int);
        cuFuncSetCacheConfig: cuFuncSetCacheConfig 3000 [cuFuncSetCacheConfig] (func: CUfunction, config: CUfunc_cache);
        cuFuncSetSharedMemConfig: cuFuncSetSharedMemConfig 4020 [cuFuncSetSharedMemConfig] (
            func: CUfunction, config: CUsharedconfig);
        cuFuncGetModule: cuFuncGetModule 11000 [cuFuncGetModule] (module: *mut CUmodule, func: CUfunction);
        cuFuncGetName: cuFuncGetName 12030 [cuFuncGetName] (name: *mut *const c_char, func: CUfunction);
        cuFuncGetParamInfo: cuFuncGetParamInfo 12040 [cuFuncGetParamInfo] (
            func: CUfunction, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
        cuFuncIsLoaded: cuFuncIsLoaded 12040 [cuFuncIsLoaded] (state: *mut CUfunctionLoadingState, func: CUfunction);
        cuFuncLoad: cuFuncLoad 12040 [cuFuncLoad] (func: CUfunction);
        // ---- memory
        cuMemGetInfo: cuMemGetInfo 3020 [cuMemGetInfo_v2] (free: *mut usize, total: *mut usize);
        cuMemAlloc: cuMemAlloc 3020 [cuMemAlloc_v2] (dptr: *mut CUdeviceptr, bytes: usize);
        cuMemAllocPitch: cuMemAllocPitch 3020 [cuMemAllocPitch_v2] (
            dptr: *mut CUdeviceptr, pitch_out: *mut usize, width_bytes: usize, height: usize, element_size_bytes: c_uint);
        cuMemFree: cuMemFree 3020 [cuMemFree_v2] (dptr: CUdeviceptr);
        cuMemGetAddressRange: cuMemGetAddressRange 3020 [cuMemGetAddressRange_v2] (
            base_out: *mut CUdeviceptr, size_out: *mut usize, dptr: CUdeviceptr);
        cuMemAllocHost: cuMemAllocHost 3020 [cuMemAllocHost_v2] (host_out: *mut *mut c_void, bytes: usize);
        cuMemFreeHost: cuMemFreeHost 2000 [cuMemFreeHost] (host: *mut c_void);
        cuMemHostAlloc: cuMemHostAlloc 2020 [cuMemHostAlloc] (host_out: *mut *mut c_void, bytes: usize, flags: c_uint);
        cuMemHostGetDevicePointer: cuMemHostGetDevicePointer 3020 [cuMemHostGetDevicePointer_v2] (
            dptr_out: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
        cuMemHostGetFlags: cuMemHostGetFlags 2030 [cuMemHostGetFlags] (flags_out: *mut c_uint, host: *mut c_void);
        cuMemAllocManaged: cuMemAllocManaged 6000 [cuMemAllocManaged] (dptr: *mut CUdeviceptr, bytes: usize, flags: c_uint);
        cuMemHostRegister: cuMemHostRegister 6050 [cuMemHostRegister_v2] (host: *mut c_void, bytes: usize, flags: c_uint);
        cuMemHostUnregister: cuMemHostUnregister 4000 [cuMemHostUnregister] (host: *mut c_void);
        cuMemAllocAsync: cuMemAllocAsync 11020 [cuMemAllocAsync, cuMemAllocAsync_ptsz] (
            dptr: *mut CUdeviceptr, bytes: usize, stream: CUstream);
        cuMemAllocFromPoolAsync: cuMemAllocFromPoolAsync 11020 [cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz] (
            dptr: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
        cuMemFreeAsync: cuMemFreeAsync 11020 [cuMemFreeAsync, cuMemFreeAsync_ptsz] (dptr: CUdeviceptr, stream: CUstream);
        cuMemPoolCreate: cuMemPoolCreate 11020 [cuMemPoolCreate] (pool: *mut CUmemoryPool, pool_props: *const CUmemPoolProps);
        cuMemPoolDestroy: cuMemPoolDestroy 11020 [cuMemPoolDestroy] (pool: CUmemoryPool);
        cuMemPoolTrimTo: cuMemPoolTrimTo 11020 [cuMemPoolTrimTo] (pool: CUmemoryPool, min_bytes_to_keep: usize);
        cuMemPoolSetAttribute: cuMemPoolSetAttribute 11020 [cuMemPoolSetAttribute] (
            pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
        cuMemPoolGetAttribute: cuMemPoolGetAttribute 11020 [cuMemPoolGetAttribute] (
            pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
        cuMemPoolSetAccess: cuMemPoolSetAccess 11020 [cuMemPoolSetAccess] (
            pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
        cuMemPoolGetAccess: cuMemPoolGetAccess 11020 [cuMemPoolGetAccess] (
            flags: *mut CUmemAccess_flags, mem_pool: CUmemoryPool, location: *mut CUmemLocation);
        cuMemGetAllocationGranularity: cuMemGetAllocationGranularity 10020 [cuMemGetAllocationGranularity] (
            granularity: *mut usize, prop: *const CUmemAllocationProp, option: c_int);
        cuMemAddressReserve: cuMemAddressReserve 10020 [cuMemAddressReserve] (
            ptr: *mut CUdeviceptr, size: usize, alignment: usize, addr: CUdeviceptr, flags: u64);
        cuMemAddressFree: cuMemAddressFree 10020 [cuMemAddressFree] (ptr: CUdeviceptr, size: usize);
        cuMemCreate: cuMemCreate 10020 [cuMemCreate] (
            handle: *mut CUmemGenericAllocationHandle, size: usize, prop: *const CUmemAllocationProp, flags: u64);
        cuMemRelease: cuMemRelease 10020 [cuMemRelease] (handle: CUmemGenericAllocationHandle);
        cuMemRetainAllocationHandle: cuMemRetainAllocationHandle 11000 [cuMemRetainAllocationHandle] (
            handle: *mut CUmemGenericAllocationHandle, addr: *mut c_void);
        cuMemGetAllocationPropertiesFromHandle: cuMemGetAllocationPropertiesFromHandle 10020 [cuMemGetAllocationPropertiesFromHandle] (
            prop: *mut CUmemAllocationProp, handle: CUmemGenericAllocationHandle);
        cuMemMap: cuMemMap 10020 [cuMemMap] (
            ptr: CUdeviceptr, size: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64);
        cuMemUnmap: cuMemUnmap 10020 [cuMemUnmap] (ptr: CUdeviceptr, size: usize);
        cuMemSetAccess: cuMemSetAccess 10020 [cuMemSetAccess] (
            ptr: CUdeviceptr, size: usize, desc: *const CUmemAccessDesc, count: usize);
        cuMemGetAccess: cuMemGetAccess 10020 [cuMemGetAccess] (
            flags: *mut u64, location: *const CUmemLocation, ptr: CUdeviceptr);
        cuPointerGetAttribute: cuPointerGetAttribute 4000 [cuPointerGetAttribute] (
            data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr);
        cuPointerGetAttributes: cuPointerGetAttributes 7000 [cuPointerGetAttributes] (
            num_attributes: c_uint, attributes: *mut CUpointer_attribute, data: *mut *mut c_void, ptr: CUdeviceptr);
        cuPointerSetAttribute: cuPointerSetAttribute 6000 [cuPointerSetAttribute] (
            value: *const c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr);
        cuMemAdvise_v1: cuMemAdvise 8000 [cuMemAdvise] (
            dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice);
        cuMemAdvise: cuMemAdvise 12020 [cuMemAdvise_v2] (
            dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation);
        cuMemPrefetchAsync_v1: cuMemPrefetchAsync 8000 [cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz] (
            dev_ptr: CUdeviceptr, count: usize, dst_device: CUdevice, stream: CUstream);
        cuMemPrefetchAsync: cuMemPrefetchAsync 12020 [cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz] (
            dev_ptr: CUdeviceptr, count: usize, location: CUmemLocation, flags: c_uint, stream: CUstream);
        cuMemRangeGetAttribute: cuMemRangeGetAttribute 8000 [cuMemRangeGetAttribute] (
            data: *mut c_void, data_size: usize, attribute: CUmem_range_attribute, dev_ptr: CUdeviceptr, count: usize);
        cuStreamAttachMemAsync: cuStreamAttachMemAsync 6000 [cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz] (
            stream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint);
        // ---- copies and fills
        cuMemcpy: cuMemcpy 4000 [cuMemcpy, cuMemcpy_ptds] (dst: CUdeviceptr, src: CUdeviceptr, bytes: usize);
        cuMemcpyAsync: cuMemcpyAsync 4000 [cuMemcpyAsync, cuMemcpyAsync_ptsz] (
            dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, stream: CUstream);
        cuMemcpyPeer: cuMemcpyPeer 4000 [cuMemcpyPeer, cuMemcpyPeer_ptds] (
            dst_device: CUdeviceptr, dst_context: CUcontext, src_device: CUdeviceptr, src_context: CUcontext, bytes: usize);
        cuMemcpyPeerAsync: cuMemcpyPeerAsync 4000 [cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz] (
            dst_device: CUdeviceptr, dst_context: CUcontext, src_device: CUdeviceptr, src_context: CUcontext, bytes: usize,
            stream: CUstream);
        cuMemcpyHtoD: cuMemcpyHtoD 3020 [cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds] (
            dst_device: CUdeviceptr, src_host: *const c_void, bytes: usize);
        cuMemcpyDtoH: cuMemcpyDtoH 3020 [cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds] (
            dst_host: *mut c_void, src_device: CUdeviceptr, bytes: usize);
        cuMemcpyDtoD: cuMemcpyDtoD 3020 [cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds] (
            dst_device: CUdeviceptr, src_device: CUdeviceptr, bytes: usize);
        cuMemcpyHtoDAsync: cuMemcpyHtoDAsync 3020 [cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz] (
            dst_device: CUdeviceptr, src_host: *const c_void, bytes: usize, stream: CUstream);
        cuMemcpyDtoHAsync: cuMemcpyDtoHAsync 3020 [cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz] (
            dst_host: *mut c_void, src_device: CUdeviceptr, bytes: usize, stream: CUstream);
        cuMemcpyDtoDAsync: cuMemcpyDtoDAsync 3020 [cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz] (
            dst_device: CUdeviceptr, src_device: CUdeviceptr, bytes: usize, stream: CUstream);
        cuMemcpy2D: cuMemcpy2D 3020 [cuMemcpy2D_v2, cuMemcpy2D_v2_ptds] (copy: *const CUDA_MEMCPY2D);
        cuMemcpy2DUnaligned: cuMemcpy2DUnaligned 3020 [cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds] (
            copy: *const CUDA_MEMCPY2D);
        cuMemcpy2DAsync: cuMemcpy2DAsync 3020 [cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz] (
            copy: *const CUDA_MEMCPY2D, stream: CUstream);
        cuMemcpy3D: cuMemcpy3D 3020 [cuMemcpy3D_v2, cuMemcpy3D_v2_ptds] (copy: *const CUDA_MEMCPY3D);
        cuMemcpy3DAsync: cuMemcpy3DAsync 3020 [cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz] (
            copy: *const CUDA_MEMCPY3D, stream: CUstream);
        cuMemcpyHtoA: cuMemcpyHtoA 3020 [cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds] (
            dst_array: CUarray, dst_offset: usize, src_host: *const c_void, bytes: usize);
        cuMemcpyAtoH: cuMemcpyAtoH 3020 [cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds] (
            dst_host: *mut c_void, src_array: CUarray, src_offset: usize, bytes: usize);
        cuMemcpyDtoA: cuMemcpyDtoA 3020 [cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds] (
            dst_array: CUarray, dst_offset: usize, src_device: CUdeviceptr, bytes: usize);
        cuMemcpyAtoD: cuMemcpyAtoD 3020 [cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds] (
            dst_device: CUdeviceptr, src_array: CUarray, src_offset: usize, bytes: usize);
        cuMemcpyAtoA: cuMemcpyAtoA 3020 [cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds] (
            dst_array: CUarray, dst_offset: usize, src_array: CUarray, src_offset: usize, bytes: usize);
        cuMemcpyHtoAAsync: cuMemcpyHtoAAsync 3020 [cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz] (
            dst_array: CUarray, dst_offset: usize, src_host: *const c_void, bytes: usize, stream: CUstream);
        cuMemcpyAtoHAsync: cuMemcpyAtoHAsync 3020 [cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz] (
            dst_host: *mut c_void, src_array: CUarray, src_offset: usize, bytes: usize, stream: CUstream);
        cuMemsetD8: cuMemsetD8 3020 [cuMemsetD8_v2, cuMemsetD8_v2_ptds] (dst_device: CUdeviceptr, value: c_uchar, count: usize);
        cuMemsetD16: cuMemsetD16 3020 [cuMemsetD16_v2, cuMemsetD16_v2_ptds] (dst_device: CUdeviceptr, value: u16, count: usize);
        cuMemsetD32: cuMemsetD32 3020 [cuMemsetD32_v2, cuMemsetD32_v2_ptds] (
            dst_device: CUdeviceptr, value: c_uint, count: usize);
        cuMemsetD2D8: cuMemsetD2D8 3020 [cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds] (
            dst_device: CUdeviceptr, dst_pitch: usize, value: c_uchar, width: usize, height: usize);
        cuMemsetD2D16: cuMemsetD2D16 3020 [cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds] (
            dst_device: CUdeviceptr, dst_pitch: usize, value: u16, width: usize, height: usize);
        cuMemsetD2D32: cuMemsetD2D32 3020 [cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds] (
            dst_device: CUdeviceptr, dst_pitch: usize, value: c_uint, width: usize, height: usize);
        cuMemsetD8Async: cuMemsetD8Async 3020 [cuMemsetD8Async, cuMemsetD8Async_ptsz] (
            dst_device: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream);
        cuMemsetD16Async: cuMemsetD16Async 3020 [cuMemsetD16Async, cuMemsetD16Async_ptsz] (
            dst_device: CUdeviceptr, value: u16, count: usize, stream: CUstream);
        cuMemsetD32Async: cuMemsetD32Async 3020 [cuMemsetD32Async, cuMemsetD32Async_ptsz] (
            dst_device: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
        cuMemsetD2D8Async: cuMemsetD2D8Async 3020 [cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz] (
            dst_device: CUdeviceptr, dst_pitch: usize, value: c_uchar, width: usize, height: usize, stream: CUstream);
        cuMemsetD2D16Async: cuMemsetD2D16Async 3020 [cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz] (
            dst_device: CUdeviceptr, dst_pitch: usize, value: u16, width: usize, height: usize, stream: CUstream);
        cuMemsetD2D32Async: cuMemsetD2D32Async 3020 [cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz] (
            dst_device: CUdeviceptr, dst_pitch: usize, value: c_uint, width: usize, height: usize, stream: CUstream);
        // ---- arrays, textures, surfaces
        cuArrayCreate: cuArrayCreate 3020 [cuArrayCreate_v2] (
            array_out: *mut CUarray, descriptor: *const CUDA_ARRAY_DESCRIPTOR);
        cuArray3DCreate: cuArray3DCreate 3020 [cuArray3DCreate_v2] (
            array_out: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR);
        cuArrayGetDescriptor: cuArrayGetDescriptor 3020 [cuArrayGetDescriptor_v2] (
            descriptor: *mut CUDA_ARRAY_DESCRIPTOR, array: CUarray);
        cuArray3DGetDescriptor: cuArray3DGetDescriptor 3020 [cuArray3DGetDescriptor_v2] (
            descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray);
        cuArrayDestroy: cuArrayDestroy 2000 [cuArrayDestroy] (array: CUarray);
        cuMipmappedArrayCreate: cuMipmappedArrayCreate 5000 [cuMipmappedArrayCreate] (
            array_out: *mut CUmipmappedArray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR, num_mipmap_levels: c_uint);
        cuMipmappedArrayGetLevel: cuMipmappedArrayGetLevel 5000 [cuMipmappedArrayGetLevel] (
            level_out: *mut CUarray, array: CUmipmappedArray, level: c_uint);
        cuMipmappedArrayDestroy: cuMipmappedArrayDestroy 5000 [cuMipmappedArrayDestroy] (array: CUmipmappedArray);
        cuDeviceGetTexture1DLinearMaxWidth: cuDeviceGetTexture1DLinearMaxWidth 11010 [cuDeviceGetTexture1DLinearMaxWidth] (
            width_in_elements: *mut usize, format: CUarray_format, num_channels: c_uint, dev: CUdevice);
        cuTexObjectCreate: cuTexObjectCreate 5000 [cuTexObjectCreate] (
            texture_out: *mut CUtexObject, resource: *const CUDA_RESOURCE_DESC, texture: *const CUDA_TEXTURE_DESC,
            view: *const CUDA_RESOURCE_VIEW_DESC);
        cuTexObjectDestroy: cuTexObjectDestroy 5000 [cuTexObjectDestroy] (texture: CUtexObject);
        cuTexObjectGetResourceDesc: cuTexObjectGetResourceDesc 5000 [cuTexObjectGetResourceDesc] (
            resource: *mut CUDA_RESOURCE_DESC, texture: CUtexObject);
        cuTexObjectGetTextureDesc: cuTexObjectGetTextureDesc 5000 [cuTexObjectGetTextureDesc] (
            descriptor: *mut CUDA_TEXTURE_DESC, texture: CUtexObject);
        cuSurfObjectCreate: cuSurfObjectCreate 5000 [cuSurfObjectCreate] (
            surface_out: *mut CUsurfObject, resource: *const CUDA_RESOURCE_DESC);
        cuSurfObjectGetResourceDesc: cuSurfObjectGetResourceDesc 5000 [cuSurfObjectGetResourceDesc] (
            resource: *mut CUDA_RESOURCE_DESC, surface: CUsurfObject);
        cuSurfObjectDestroy: cuSurfObjectDestroy 5000 [cuSurfObjectDestroy] (surface: CUsurfObject);
        // ---- streams and events
        cuStreamCreate: cuStreamCreate 2000 [cuStreamCreate] (stream_out: *mut CUstream, flags: c_uint);
        cuStreamCreateWithPriority: cuStreamCreateWithPriority 5050 [cuStreamCreateWithPriority] (
            stream_out: *mut CUstream, flags: c_uint, priority: c_int);
        cuStreamGetPriority: cuStreamGetPriority 5050 [cuStreamGetPriority, cuStreamGetPriority_ptsz] (
            stream: CUstream, priority: *mut c_int);
        cuStreamGetFlags: cuStreamGetFlags 5050 [cuStreamGetFlags, cuStreamGetFlags_ptsz] (stream: CUstream, flags: *mut c_uint);
        cuStreamGetDevice: cuStreamGetDevice 12080 [cuStreamGetDevice, cuStreamGetDevice_ptsz] (
            stream: CUstream, device: *mut CUdevice);
        cuStreamGetId: cuStreamGetId 12000 [cuStreamGetId, cuStreamGetId_ptsz] (stream: CUstream, stream_id: *mut u64);
        cuStreamGetCtx: cuStreamGetCtx 9020 [cuStreamGetCtx, cuStreamGetCtx_ptsz] (stream: CUstream, ctx_out: *mut CUcontext);
        cuStreamWaitEvent: cuStreamWaitEvent 3020 [cuStreamWaitEvent, cuStreamWaitEvent_ptsz] (
            stream: CUstream, event: CUevent, flags: c_uint);
        cuStreamAddCallback: cuStreamAddCallback 5000 [cuStreamAddCallback, cuStreamAddCallback_ptsz] (
            stream: CUstream, callback: CUstreamCallback, user_data: *mut c_void, flags: c_uint);
        cuStreamQuery: cuStreamQuery 2000 [cuStreamQuery, cuStreamQuery_ptsz] (stream: CUstream);
        cuStreamSynchronize: cuStreamSynchronize 2000 [cuStreamSynchronize, cuStreamSynchronize_ptsz] (stream: CUstream);
        cuStreamDestroy: cuStreamDestroy 4000 [cuStreamDestroy_v2] (stream: CUstream);
        cuStreamGetAttribute: cuStreamGetAttribute 11000 [cuStreamGetAttribute, cuStreamGetAttribute_ptsz] (
            stream: CUstream, attr: CUstreamAttrID, value: *mut CUstreamAttrValue);
        cuStreamSetAttribute: cuStreamSetAttribute 11000 [cuStreamSetAttribute, cuStreamSetAttribute_ptsz] (
            stream: CUstream, attr: CUstreamAttrID, param: *const CUstreamAttrValue);
        cuStreamCopyAttributes: cuStreamCopyAttributes 11000 [cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz] (
            dst_stream: CUstream, src_stream: CUstream);
        cuLaunchHostFunc: cuLaunchHostFunc 10000 [cuLaunchHostFunc, cuLaunchHostFunc_ptsz] (
            stream: CUstream, callback: CUhostFn, user_data: *mut c_void);
        cuStreamWaitValue32: cuStreamWaitValue32 11070 [cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz] (
            stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint);
        cuStreamWaitValue64: cuStreamWaitValue64 11070 [cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz] (
            stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint);
        cuStreamWriteValue32: cuStreamWriteValue32 11070 [cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz] (
            stream: CUstream, addr: CUdeviceptr, value: u32, flags: c_uint);
        cuStreamWriteValue64: cuStreamWriteValue64 11070 [cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz] (
            stream: CUstream, addr: CUdeviceptr, value: u64, flags: c_uint);
        cuEventCreate: cuEventCreate 2000 [cuEventCreate] (event_out: *mut CUevent, flags: c_uint);
        cuEventRecord: cuEventRecord 2000 [cuEventRecord, cuEventRecord_ptsz] (event: CUevent, stream: CUstream);
        cuEventRecordWithFlags: cuEventRecordWithFlags 11010 [cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz] (
            event: CUevent, stream: CUstream, flags: c_uint);
        cuEventQuery: cuEventQuery 2000 [cuEventQuery] (event: CUevent);
        cuEventSynchronize: cuEventSynchronize 2000 [cuEventSynchronize] (event: CUevent);
        cuEventDestroy: cuEventDestroy 4000 [cuEventDestroy_v2] (event: CUevent);
        cuEventElapsedTime_v1: cuEventElapsedTime 2000 [cuEventElapsedTime] (
            milliseconds: *mut f32, h_start: CUevent, h_end: CUevent);
        cuEventElapsedTime: cuEventElapsedTime 12080 [cuEventElapsedTime_v2] (
            milliseconds: *mut f32, h_start: CUevent, h_end: CUevent);
        // ---- launches and occupancy
        cuLaunchKernel: cuLaunchKernel 4000 [cuLaunchKernel, cuLaunchKernel_ptsz] (
            func: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint,
            block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: CUstream,
            kernel_params: *mut *mut c_void, extra: *mut *mut c_void);
        cuLaunchKernelEx: cuLaunchKernelEx 11060 [cuLaunchKernelEx, cuLaunchKernelEx_ptsz] (
            config: *const CUlaunchConfig, func: CUfunction, kernel_params: *mut *mut c_void, extra: *mut *mut c_void);
        cuLaunchCooperativeKernel: cuLaunchCooperativeKernel 9000 [cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz] (
            func: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint,
            block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: CUstream,
            kernel_params: *mut *mut c_void);
        cuLaunchCooperativeKernelMultiDevice: cuLaunchCooperativeKernelMultiDevice 9000 [cuLaunchCooperativeKernelMultiDevice] (
            list: *mut CUDA_LAUNCH_PARAMS, num_devices: c_uint, flags: c_uint);
        cuFuncSetBlockShape: cuFuncSetBlockShape 2000 [cuFuncSetBlockShape] (func: CUfunction, x: c_int, y: c_int, z: c_int);
        cuFuncSetSharedSize: cuFuncSetSharedSize 2000 [cuFuncSetSharedSize] (func: CUfunction, bytes: c_uint);
        cuParamSetSize: cuParamSetSize 2000 [cuParamSetSize] (func: CUfunction, num_bytes: c_uint);
        cuParamSeti: cuParamSeti 2000 [cuParamSeti] (func: CUfunction, offset: c_int, value: c_uint);
        cuParamSetf: cuParamSetf 2000 [cuParamSetf] (func: CUfunction, offset: c_int, value: f32);
        cuParamSetv: cuParamSetv 2000 [cuParamSetv] (func: CUfunction, offset: c_int, ptr: *mut c_void, num_bytes: c_uint);
        cuLaunch: cuLaunch 2000 [cuLaunch] (func: CUfunction);
        cuLaunchGrid: cuLaunchGrid 2000 [cuLaunchGrid] (func: CUfunction, grid_width: c_int, grid_height: c_int);
        cuLaunchGridAsync: cuLaunchGridAsync 2000 [cuLaunchGridAsync] (
            func: CUfunction, grid_width: c_int, grid_height: c_int, stream: CUstream);
        cuOccupancyMaxActiveBlocksPerMultiprocessor: cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 [cuOccupancyMaxActiveBlocksPerMultiprocessor] (
            num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_smem_size: usize);
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 [cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags] (
            num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_smem_size: usize, flags: c_uint);
        cuOccupancyMaxPotentialBlockSize: cuOccupancyMaxPotentialBlockSize 6050 [cuOccupancyMaxPotentialBlockSize] (
            min_grid_size: *mut c_int, block_size: *mut c_int, func: CUfunction,
            block_size_to_dynamic_smem_size: CUoccupancyB2DSize, dynamic_smem_size: usize, block_size_limit: c_int);
        cuOccupancyMaxPotentialBlockSizeWithFlags: cuOccupancyMaxPotentialBlockSizeWithFlags 7000 [cuOccupancyMaxPotentialBlockSizeWithFlags] (
            min_grid_size: *mut c_int, block_size: *mut c_int, func: CUfunction,
            block_size_to_dynamic_smem_size: CUoccupancyB2DSize, dynamic_smem_size: usize, block_size_limit: c_int,
            flags: c_uint);
        cuOccupancyAvailableDynamicSMemPerBlock: cuOccupancyAvailableDynamicSMemPerBlock 10020 [cuOccupancyAvailableDynamicSMemPerBlock] (
            dynamic_smem_size: *mut usize, func: CUfunction, num_blocks: c_int, block_size: c_int);
        cuOccupancyMaxPotentialClusterSize: cuOccupancyMaxPotentialClusterSize 11070 [cuOccupancyMaxPotentialClusterSize] (
            cluster_size: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);
        cuOccupancyMaxActiveClusters: cuOccupancyMaxActiveClusters 11070 [cuOccupancyMaxActiveClusters] (
            num_clusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);
        // ---- graphs
        cuStreamBeginCapture_v1: cuStreamBeginCapture 10000 [cuStreamBeginCapture, cuStreamBeginCapture_ptsz] (stream: CUstream);
        cuStreamBeginCapture: cuStreamBeginCapture 10010 [cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz] (
            stream: CUstream, mode: CUstreamCaptureMode);
        cuStreamEndCapture: cuStreamEndCapture 10000 [cuStreamEndCapture, cuStreamEndCapture_ptsz] (
            stream: CUstream, graph_out: *mut CUgraph);
        cuStreamIsCapturing: cuStreamIsCapturing 10000 [cuStreamIsCapturing, cuStreamIsCapturing_ptsz] (
            stream: CUstream, capture_status: *mut CUstreamCaptureStatus);
        cuStreamGetCaptureInfo_v2: cuStreamGetCaptureInfo 11030 [cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz] (
            stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut u64, graph_out: *mut CUgraph,
            dependencies_out: *mut *const CUgraphNode, num_dependencies_out: *mut usize);
        cuStreamGetCaptureInfo_v3: cuStreamGetCaptureInfo 12030 [cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz] (
            stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut u64, graph_out: *mut CUgraph,
            dependencies_out: *mut *const CUgraphNode, edge_data_out: *mut *const CUgraphEdgeData,
            num_dependencies_out: *mut usize);
        cuThreadExchangeStreamCaptureMode: cuThreadExchangeStreamCaptureMode 10010 [cuThreadExchangeStreamCaptureMode] (
            mode: *mut CUstreamCaptureMode);
        cuGraphCreate: cuGraphCreate 10000 [cuGraphCreate] (graph_out: *mut CUgraph, flags: c_uint);
        cuGraphDestroy: cuGraphDestroy 10000 [cuGraphDestroy] (graph: CUgraph);
        cuGraphAddKernelNode_v1: cuGraphAddKernelNode 10000 [cuGraphAddKernelNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            node_params: *const CUDA_KERNEL_NODE_PARAMS_v1);
        cuGraphAddKernelNode: cuGraphAddKernelNode 12000 [cuGraphAddKernelNode_v2] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            node_params: *const CUDA_KERNEL_NODE_PARAMS);
        cuGraphAddMemcpyNode: cuGraphAddMemcpyNode 10000 [cuGraphAddMemcpyNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            copy_params: *const CUDA_MEMCPY3D, ctx: CUcontext);
        cuGraphAddMemsetNode: cuGraphAddMemsetNode 10000 [cuGraphAddMemsetNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            memset_params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext);
        cuGraphAddHostNode: cuGraphAddHostNode 10000 [cuGraphAddHostNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            node_params: *const CUDA_HOST_NODE_PARAMS);
        cuGraphAddEmptyNode: cuGraphAddEmptyNode 10000 [cuGraphAddEmptyNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize);
        cuGraphGetNodes: cuGraphGetNodes 10000 [cuGraphGetNodes] (graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize);
        cuGraphNodeGetType: cuGraphNodeGetType 10000 [cuGraphNodeGetType] (node: CUgraphNode, kind: *mut CUgraphNodeType);
        cuGraphInstantiate_v2: cuGraphInstantiate 11000 [cuGraphInstantiate_v2] (
            exec_out: *mut CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, log_buffer: *mut c_char,
            buffer_size: usize);
        cuGraphInstantiateWithFlags: cuGraphInstantiateWithFlags 11040 [cuGraphInstantiateWithFlags] (
            exec_out: *mut CUgraphExec, graph: CUgraph, flags: u64);
        cuGraphLaunch: cuGraphLaunch 10000 [cuGraphLaunch, cuGraphLaunch_ptsz] (exec: CUgraphExec, stream: CUstream);
        cuGraphUpload: cuGraphUpload 11010 [cuGraphUpload, cuGraphUpload_ptsz] (exec: CUgraphExec, stream: CUstream);
        cuGraphExecDestroy: cuGraphExecDestroy 10000 [cuGraphExecDestroy] (exec: CUgraphExec);
        cuStreamBeginCaptureToGraph: cuStreamBeginCaptureToGraph 12030 [cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz] (
            stream: CUstream, graph: CUgraph, dependencies: *const CUgraphNode, dependency_data: *const CUgraphEdgeData,
            num_dependencies: usize, mode: CUstreamCaptureMode);
        cuGraphAddNode_v1: cuGraphAddNode 12020 [cuGraphAddNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            node_params: *mut CUgraphNodeParams);
        cuGraphAddNode: cuGraphAddNode 12030 [cuGraphAddNode_v2] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, dependency_data: *const CUgraphEdgeData,
            num_dependencies: usize, node_params: *mut CUgraphNodeParams);
        cuGraphConditionalHandleCreate: cuGraphConditionalHandleCreate 12030 [cuGraphConditionalHandleCreate] (
            handle_out: *mut u64, graph: CUgraph, ctx: CUcontext, default_launch_value: c_uint, flags: c_uint);
        cuGraphAddChildGraphNode: cuGraphAddChildGraphNode 10000 [cuGraphAddChildGraphNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            child: CUgraph);
        cuGraphChildGraphNodeGetGraph: cuGraphChildGraphNodeGetGraph 10000 [cuGraphChildGraphNodeGetGraph] (
            node: CUgraphNode, graph_out: *mut CUgraph);
        cuGraphClone: cuGraphClone 10000 [cuGraphClone] (clone_out: *mut CUgraph, original: CUgraph);
        cuGraphNodeFindInClone: cuGraphNodeFindInClone 10000 [cuGraphNodeFindInClone] (
            node_out: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph);
        cuGraphDestroyNode: cuGraphDestroyNode 10000 [cuGraphDestroyNode] (node: CUgraphNode);
        cuGraphNodeSetParams: cuGraphNodeSetParams 12020 [cuGraphNodeSetParams] (
            node: CUgraphNode, node_params: *mut CUgraphNodeParams);
        cuGraphKernelNodeGetParams_v1: cuGraphKernelNodeGetParams 10000 [cuGraphKernelNodeGetParams] (
            node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS_v1);
        cuGraphKernelNodeGetParams: cuGraphKernelNodeGetParams 12000 [cuGraphKernelNodeGetParams_v2] (
            node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS);
        cuGraphKernelNodeSetParams_v1: cuGraphKernelNodeSetParams 10000 [cuGraphKernelNodeSetParams] (
            node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v1);
        cuGraphKernelNodeSetParams: cuGraphKernelNodeSetParams 12000 [cuGraphKernelNodeSetParams_v2] (
            node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS);
        cuGraphKernelNodeGetAttribute: cuGraphKernelNodeGetAttribute 11000 [cuGraphKernelNodeGetAttribute] (
            node: CUgraphNode, attribute: CUlaunchAttributeID, value_out: *mut CUstreamAttrValue);
        cuGraphKernelNodeSetAttribute: cuGraphKernelNodeSetAttribute 11000 [cuGraphKernelNodeSetAttribute] (
            node: CUgraphNode, attribute: CUlaunchAttributeID, value: *const CUstreamAttrValue);
        cuGraphInstantiate_v1: cuGraphInstantiate 10000 [cuGraphInstantiate] (
            exec_out: *mut CUgraphExec, graph: CUgraph, error_node: *mut CUgraphNode, log_buffer: *mut c_char,
            buffer_size: usize);
        cuGraphInstantiateWithParams: cuGraphInstantiateWithParams 12000 [cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz] (
            exec_out: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS);
        cuGraphExecGetFlags: cuGraphExecGetFlags 12000 [cuGraphExecGetFlags] (exec: CUgraphExec, flags: *mut u64);
        cuGraphExecUpdate_v1: cuGraphExecUpdate 10020 [cuGraphExecUpdate] (
            exec: CUgraphExec, graph: CUgraph, error_node_out: *mut CUgraphNode, result_out: *mut c_int);
        cuGraphExecUpdate: cuGraphExecUpdate 12000 [cuGraphExecUpdate_v2] (
            exec: CUgraphExec, graph: CUgraph, info: *mut CUgraphExecUpdateResultInfo);
        cuGraphExecNodeSetParams: cuGraphExecNodeSetParams 12020 [cuGraphExecNodeSetParams] (
            exec: CUgraphExec, node: CUgraphNode, node_params: *mut CUgraphNodeParams);
        cuGraphExecKernelNodeSetParams_v1: cuGraphExecKernelNodeSetParams 10010 [cuGraphExecKernelNodeSetParams] (
            exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v1);
        cuGraphExecKernelNodeSetParams: cuGraphExecKernelNodeSetParams 12000 [cuGraphExecKernelNodeSetParams_v2] (
            exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS);
        cuGraphExecChildGraphNodeSetParams: cuGraphExecChildGraphNodeSetParams 11010 [cuGraphExecChildGraphNodeSetParams] (
            exec: CUgraphExec, node: CUgraphNode, child: CUgraph);
        cuGraphNodeSetEnabled: cuGraphNodeSetEnabled 11060 [cuGraphNodeSetEnabled] (
            exec: CUgraphExec, node: CUgraphNode, enabled: c_uint);
        cuGraphNodeGetEnabled: cuGraphNodeGetEnabled 11060 [cuGraphNodeGetEnabled] (
            exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint);
        cuGraphAddEventRecordNode: cuGraphAddEventRecordNode 11010 [cuGraphAddEventRecordNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize, event: CUevent);
        cuGraphAddEventWaitNode: cuGraphAddEventWaitNode 11010 [cuGraphAddEventWaitNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize, event: CUevent);
        cuGraphAddMemAllocNode: cuGraphAddMemAllocNode 11040 [cuGraphAddMemAllocNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            node_params: *mut CUDA_MEM_ALLOC_NODE_PARAMS);
        cuGraphAddMemFreeNode: cuGraphAddMemFreeNode 11040 [cuGraphAddMemFreeNode] (
            node_out: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
            dptr: CUdeviceptr);
        cuGraphMemcpyNodeGetParams: cuGraphMemcpyNodeGetParams 10000 [cuGraphMemcpyNodeGetParams] (
            node: CUgraphNode, node_params: *mut CUDA_MEMCPY3D);
        cuGraphMemcpyNodeSetParams: cuGraphMemcpyNodeSetParams 10000 [cuGraphMemcpyNodeSetParams] (
            node: CUgraphNode, node_params: *const CUDA_MEMCPY3D);
        cuGraphMemsetNodeGetParams: cuGraphMemsetNodeGetParams 10000 [cuGraphMemsetNodeGetParams] (
            node: CUgraphNode, node_params: *mut CUDA_MEMSET_NODE_PARAMS);
        cuGraphMemsetNodeSetParams: cuGraphMemsetNodeSetParams 10000 [cuGraphMemsetNodeSetParams] (
            node: CUgraphNode, node_params: *const CUDA_MEMSET_NODE_PARAMS);
        cuGraphHostNodeGetParams: cuGraphHostNodeGetParams 10000 [cuGraphHostNodeGetParams] (
            node: CUgraphNode, node_params: *mut CUDA_HOST_NODE_PARAMS);
        cuGraphHostNodeSetParams: cuGraphHostNodeSetParams 10000 [cuGraphHostNodeSetParams] (
            node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS);
        cuGraphEventRecordNodeGetEvent: cuGraphEventRecordNodeGetEvent 11010 [cuGraphEventRecordNodeGetEvent] (
            node: CUgraphNode, event_out: *mut CUevent);
        cuGraphEventRecordNodeSetEvent: cuGraphEventRecordNodeSetEvent 11010 [cuGraphEventRecordNodeSetEvent] (
            node: CUgraphNode, event: CUevent);
        cuGraphEventWaitNodeGetEvent: cuGraphEventWaitNodeGetEvent 11010 [cuGraphEventWaitNodeGetEvent] (
            node: CUgraphNode, event_out: *mut CUevent);
        cuGraphEventWaitNodeSetEvent: cuGraphEventWaitNodeSetEvent 11010 [cuGraphEventWaitNodeSetEvent] (
            node: CUgraphNode, event: CUevent);
        cuGraphMemAllocNodeGetParams: cuGraphMemAllocNodeGetParams 11040 [cuGraphMemAllocNodeGetParams] (
            node: CUgraphNode, params_out: *mut CUDA_MEM_ALLOC_NODE_PARAMS);
        cuGraphMemFreeNodeGetParams: cuGraphMemFreeNodeGetParams 11040 [cuGraphMemFreeNodeGetParams] (
            node: CUgraphNode, dptr_out: *mut CUdeviceptr);
        cuGraphExecMemcpyNodeSetParams: cuGraphExecMemcpyNodeSetParams 10020 [cuGraphExecMemcpyNodeSetParams] (
            exec: CUgraphExec, node: CUgraphNode, copy_params: *const CUDA_MEMCPY3D, ctx: CUcontext);
        cuGraphExecMemsetNodeSetParams: cuGraphExecMemsetNodeSetParams 10020 [cuGraphExecMemsetNodeSetParams] (
            exec: CUgraphExec, node: CUgraphNode, memset_params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext);
        cuGraphExecHostNodeSetParams: cuGraphExecHostNodeSetParams 10020 [cuGraphExecHostNodeSetParams] (
            exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS);
        cuGraphExecEventRecordNodeSetEvent: cuGraphExecEventRecordNodeSetEvent 11010 [cuGraphExecEventRecordNodeSetEvent] (
            exec: CUgraphExec, node: CUgraphNode, event: CUevent);
        cuGraphExecEventWaitNodeSetEvent: cuGraphExecEventWaitNodeSetEvent 11010 [cuGraphExecEventWaitNodeSetEvent] (
            exec: CUgraphExec, node: CUgraphNode, event: CUevent);
        cuGraphKernelNodeCopyAttributes: cuGraphKernelNodeCopyAttributes 11000 [cuGraphKernelNodeCopyAttributes] (
            dst: CUgraphNode, src: CUgraphNode);
        cuGraphDebugDotPrint: cuGraphDebugDotPrint 11030 [cuGraphDebugDotPrint] (
            graph: CUgraph, path: *const c_char, flags: c_uint);
        cuGraphGetRootNodes: cuGraphGetRootNodes 10000 [cuGraphGetRootNodes] (
            graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize);
        cuGraphGetEdges_v1: cuGraphGetEdges 10000 [cuGraphGetEdges] (
            graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, num_edges: *mut usize);
        cuGraphGetEdges: cuGraphGetEdges 12030 [cuGraphGetEdges_v2] (
            graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, edge_data: *mut CUgraphEdgeData, num_edges: *mut usize);
        cuGraphNodeGetDependencies_v1: cuGraphNodeGetDependencies 10000 [cuGraphNodeGetDependencies] (
            node: CUgraphNode, dependencies: *mut CUgraphNode, num_dependencies: *mut usize);
        cuGraphNodeGetDependencies: cuGraphNodeGetDependencies 12030 [cuGraphNodeGetDependencies_v2] (
            node: CUgraphNode, dependencies: *mut CUgraphNode, edge_data: *mut CUgraphEdgeData, num_dependencies: *mut usize);
        cuGraphNodeGetDependentNodes_v1: cuGraphNodeGetDependentNodes 10000 [cuGraphNodeGetDependentNodes] (
            node: CUgraphNode, dependents: *mut CUgraphNode, num_dependents: *mut usize);
        cuGraphNodeGetDependentNodes: cuGraphNodeGetDependentNodes 12030 [cuGraphNodeGetDependentNodes_v2] (
            node: CUgraphNode, dependents: *mut CUgraphNode, edge_data: *mut CUgraphEdgeData, num_dependents: *mut usize);
        cuGraphAddDependencies_v1: cuGraphAddDependencies 10000 [cuGraphAddDependencies] (
            graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies: usize);
        cuGraphAddDependencies: cuGraphAddDependencies 12030 [cuGraphAddDependencies_v2] (
            graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data: *const CUgraphEdgeData,
            num_dependencies: usize);
        cuGraphRemoveDependencies_v1: cuGraphRemoveDependencies 10000 [cuGraphRemoveDependencies] (
            graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies: usize);
        cuGraphRemoveDependencies: cuGraphRemoveDependencies 12030 [cuGraphRemoveDependencies_v2] (
            graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data: *const CUgraphEdgeData,
            num_dependencies: usize);
        cuStreamUpdateCaptureDependencies_v1: cuStreamUpdateCaptureDependencies 11030 [cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz] (
            stream: CUstream, dependencies: *mut CUgraphNode, num_dependencies: usize, flags: c_uint);
        cuStreamUpdateCaptureDependencies: cuStreamUpdateCaptureDependencies 12030 [cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz] (
            stream: CUstream, dependencies: *mut CUgraphNode, dependency_data: *const CUgraphEdgeData, num_dependencies: usize,
            flags: c_uint);
        cuDeviceGraphMemTrim: cuDeviceGraphMemTrim 11040 [cuDeviceGraphMemTrim] (device: CUdevice);
        cuDeviceGetGraphMemAttribute: cuDeviceGetGraphMemAttribute 11040 [cuDeviceGetGraphMemAttribute] (
            device: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void);
        cuDeviceSetGraphMemAttribute: cuDeviceSetGraphMemAttribute 11040 [cuDeviceSetGraphMemAttribute] (
            device: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void);
        cuUserObjectCreate: cuUserObjectCreate 11030 [cuUserObjectCreate] (
            object_out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, references: c_uint, flags: c_uint);
        cuUserObjectRetain: cuUserObjectRetain 11030 [cuUserObjectRetain] (object: CUuserObject, count: c_uint);
        cuUserObjectRelease: cuUserObjectRelease 11030 [cuUserObjectRelease] (object: CUuserObject, count: c_uint);
        cuGraphRetainUserObject: cuGraphRetainUserObject 11030 [cuGraphRetainUserObject] (
            graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint);
        cuGraphReleaseUserObject: cuGraphReleaseUserObject 11030 [cuGraphReleaseUserObject] (
            graph: CUgraph, object: CUuserObject, count: c_uint);
        // ---- profiling
        cuProfilerStart: cuProfilerStart 4000 [cuProfilerStart] ();
        cuProfilerStop: cuProfilerStop 4000 [cuProfilerStop] ();
    } };
}
