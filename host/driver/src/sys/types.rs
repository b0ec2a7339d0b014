//! Handles, callbacks and struct layouts of the driver API.
//!
//! Source: `cuda.h` of CUDA 13. Enumerations are plain integers here, because a program may pass
//! any value and an out-of-range Rust enum would be undefined behaviour; their values that we
//! name stand in [`super::constants`]. Departure: unions are byte arrays of the same size.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};

use super::CUresult;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident $opaque:ident;)*) => { $(
        #[doc = concat!("What a [`", stringify!($name), "`] points to; never looked into.")]
        #[repr(C)]
        #[derive(Debug)]
        pub struct $opaque { _private: [u8; 0] }
        $(#[$doc])*
        pub type $name = *mut $opaque;
    )* };
}

handles! {
    /// A context; null is none.
    CUcontext CUctx_st;
    /// A module loaded into one context.
    CUmodule CUmod_st;
    /// A kernel in one context; launches also accept a [`CUkernel`] cast to this.
    CUfunction CUfunc_st;
    /// A library: a module that contexts load when they need it.
    CUlibrary CUlib_st;
    /// A kernel of a library.
    CUkernel CUkern_st;
    /// A stream; null is the legacy default stream, 1 the same by name, 2 the per-thread one.
    CUstream CUstream_st;
    /// An event.
    CUevent CUevent_st;
    /// An array of texels, whose place in memory is the driver's business.
    CUarray CUarray_st;
    /// An array with levels of detail.
    CUmipmappedArray CUmipmappedArray_st;
    /// A linker in progress.
    CUlinkState CUlinkState_st;
    /// A memory pool.
    CUmemoryPool CUmemPoolHandle_st;
    /// A graph under construction.
    CUgraph CUgraph_st;
    /// A node of a graph.
    CUgraphNode CUgraphNode_st;
    /// A graph made ready to launch.
    CUgraphExec CUgraphExec_st;
    /// An object of the program that graphs keep alive.
    CUuserObject CUuserObject_st;
}

macro_rules! integers {
    ($($name:ident: $ty:ty, $doc:literal;)*) => { $(#[doc = $doc] pub type $name = $ty;)* };
}

integers! {
    CUdevice: c_int, "A device ordinal.";
    CUdeviceptr: u64, "A device address.";
    CUdevice_attribute: c_int, "What `cuDeviceGetAttribute` is asked for.";
    CUdevice_P2PAttribute: c_int, "What `cuDeviceGetP2PAttribute` is asked for.";
    CUfunction_attribute: c_int, "What `cuFuncGetAttribute` is asked for.";
    CUpointer_attribute: c_int, "What `cuPointerGetAttribute` is asked for.";
    CUmem_range_attribute: c_int, "What `cuMemRangeGetAttribute` is asked for.";
    CUmemPool_attribute: c_int, "What `cuMemPoolGetAttribute` is asked for.";
    CUlimit: c_int, "What `cuCtxGetLimit` is asked for.";
    CUfunc_cache: c_int, "Preferred split of cache and shared memory.";
    CUsharedconfig: c_int, "Preferred bank size of shared memory.";
    CUmemorytype: c_int, "1 host, 2 device, 3 array, 4 unified.";
    CUarray_format: c_int, "Type of a channel of a texel.";
    CUtexObject: u64, "A texture object; 0 is none.";
    CUsurfObject: u64, "A surface object; 0 is none.";
    CUmem_advise: c_int, "Advice on managed memory.";
    CUmemAccess_flags: c_int, "0 none, 1 read, 3 read and write.";
    CUmemGenericAllocationHandle: u64, "Memory without an address.";
    CUjit_option: c_int, "An option of the PTX compiler.";
    CUjitInputType: c_int, "What is handed to the linker: 0 cubin, 1 PTX, 2 fatbin, 3 object, 4 library.";
    CUlibraryOption: c_int, "An option of `cuLibraryLoadData`.";
    CUmoduleLoadingMode: c_int, "1 eager, 2 lazy.";
    CUfunctionLoadingState: c_int, "0 unloaded, 1 loaded.";
    CUdriverProcAddressQueryResult: c_int, "0 found, 1 not found, 2 version not sufficient.";
    CUstreamAttrID: c_int, "A stream attribute, numbered as launch attributes.";
    CUstreamCaptureMode: c_int, "0 global, 1 thread local, 2 relaxed.";
    CUstreamCaptureStatus: c_int, "0 none, 1 active, 2 invalidated.";
    CUgraphMem_attribute: c_int, "What `cuDeviceGetGraphMemAttribute` is asked for.";
    CUgraphNodeType: c_int, "0 kernel, 1 memcpy, 2 memset, 3 host, 4 graph, 5 empty, ….";
    CUlaunchAttributeID: c_int, "A launch attribute.";
}

/// Called on the host when a stream reaches it.
pub type CUstreamCallback = Option<unsafe extern "C" fn(CUstream, CUresult, *mut c_void)>;
/// Called on the host when a stream reaches it.
pub type CUhostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// Dynamic shared memory that a block of so many threads needs.
pub type CUoccupancyB2DSize = Option<unsafe extern "C" fn(c_int) -> usize>;

macro_rules! layouts {
    ($($(#[$doc:meta])* $name:ident = $size:literal { $($field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "the fields are those of cuda.h")]
            pub struct $name { $(pub $field: $ty,)* }

            impl Default for $name {
                fn default() -> Self {
                    // SAFETY: all fields are integers, arrays of integers, raw pointers or
                    // optional function pointers, for which all zeroes is a value.
                    unsafe { std::mem::zeroed() }
                }
            }
        )*

        #[cfg(test)]
        const SIZES: &[(&str, usize, usize)] =
            &[$((stringify!($name), std::mem::size_of::<$name>(), $size),)*];
    };
}

layouts! {
    /// Sixteen bytes that identify a device or an internal table.
    CUuuid = 16 { bytes: [c_uchar; 16], }
    /// The properties that `cuDeviceGetProperties` has told since CUDA 2.
    CUdevprop = 56 {
        max_threads_per_block: c_int,
        max_threads_dim: [c_int; 3],
        max_grid_size: [c_int; 3],
        shared_mem_per_block: c_int,
        total_constant_memory: c_int,
        simd_width: c_int,
        mem_pitch: c_int,
        regs_per_block: c_int,
        clock_rate: c_int,
        texture_align: c_int,
    }
    /// A two-dimensional copy.
    CUDA_MEMCPY2D = 128 {
        src_x_in_bytes: usize,
        src_y: usize,
        src_memory_type: CUmemorytype,
        src_host: *const c_void,
        src_device: CUdeviceptr,
        src_array: CUarray,
        src_pitch: usize,
        dst_x_in_bytes: usize,
        dst_y: usize,
        dst_memory_type: CUmemorytype,
        dst_host: *mut c_void,
        dst_device: CUdeviceptr,
        dst_array: CUarray,
        dst_pitch: usize,
        width_in_bytes: usize,
        height: usize,
    }
    /// A three-dimensional copy.
    CUDA_MEMCPY3D = 200 {
        src_x_in_bytes: usize,
        src_y: usize,
        src_z: usize,
        src_lod: usize,
        src_memory_type: CUmemorytype,
        src_host: *const c_void,
        src_device: CUdeviceptr,
        src_array: CUarray,
        reserved0: *mut c_void,
        src_pitch: usize,
        src_height: usize,
        dst_x_in_bytes: usize,
        dst_y: usize,
        dst_z: usize,
        dst_lod: usize,
        dst_memory_type: CUmemorytype,
        dst_host: *mut c_void,
        dst_device: CUdeviceptr,
        dst_array: CUarray,
        reserved1: *mut c_void,
        dst_pitch: usize,
        dst_height: usize,
        width_in_bytes: usize,
        height: usize,
        depth: usize,
    }
    /// A one- or two-dimensional array: texels in a row, and rows, 0 without a second dimension.
    CUDA_ARRAY_DESCRIPTOR = 24 {
        width: usize,
        height: usize,
        format: CUarray_format,
        num_channels: c_uint,
    }
    /// An array of up to three dimensions, those that are not there being 0, or a layered one.
    CUDA_ARRAY3D_DESCRIPTOR = 40 {
        width: usize,
        height: usize,
        depth: usize,
        format: CUarray_format,
        num_channels: c_uint,
        flags: c_uint,
    }
    /// What a texture object reads. `res` is the union of cuda.h, which begins with an array handle
    /// or with a device address, a format with its number of channels above it, and sizes: those of
    /// linear memory in bytes, those of pitched memory as width, height (texels) and pitch (bytes).
    CUDA_RESOURCE_DESC = 144 { kind: c_int, res: [u64; 16], flags: c_uint, }
    /// How a texture object reads it.
    CUDA_TEXTURE_DESC = 104 {
        address_mode: [c_int; 3],
        filter_mode: c_int,
        flags: c_uint,
        max_anisotropy: c_uint,
        mipmap_filter_mode: c_int,
        mipmap_level_bias: f32,
        min_mipmap_level_clamp: f32,
        max_mipmap_level_clamp: f32,
        border_color: [f32; 4],
        reserved: [c_int; 12],
    }
    /// A part of a resource, or another format for it.
    CUDA_RESOURCE_VIEW_DESC = 112 {
        format: c_int,
        width: usize,
        height: usize,
        depth: usize,
        first_mipmap_level: c_uint,
        last_mipmap_level: c_uint,
        first_layer: c_uint,
        last_layer: c_uint,
        reserved: [c_uint; 16],
    }
    /// One attribute of a launch; `value` is the union of cuda.h.
    CUlaunchAttribute = 72 { id: CUlaunchAttributeID, pad: [c_char; 4], value: [u64; 8], }
    /// A launch with attributes.
    CUlaunchConfig = 56 {
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        stream: CUstream,
        attrs: *mut CUlaunchAttribute,
        num_attrs: c_uint,
    }
    /// The value of a stream attribute.
    CUstreamAttrValue = 64 { value: [u64; 8], }
    /// Where memory is or shall be: 1 device, 2 host, 3 and 4 a NUMA node.
    CUmemLocation = 8 { kind: c_int, id: c_int, }
    /// Who may access a pool.
    CUmemAccessDesc = 12 { location: CUmemLocation, flags: CUmemAccess_flags, }
    /// How to make memory without an address.
    CUmemAllocationProp = 32 {
        kind: c_int,
        handle_types: c_int,
        location: CUmemLocation,
        win32_metadata: *mut c_void,
        flags: [c_uchar; 8],
    }
    /// How to make a memory pool.
    CUmemPoolProps = 88 {
        alloc_type: c_int,
        handle_types: c_int,
        location: CUmemLocation,
        win32_security_attributes: *mut c_void,
        max_size: usize,
        usage: c_ushort,
        reserved: [c_uchar; 54],
    }
    /// Affinity of a context to a number of multiprocessors.
    CUexecAffinityParam = 8 { kind: c_int, value: c_uint, }
    /// How to make a context.
    CUctxCreateParams = 24 {
        exec_affinity_params: *mut CUexecAffinityParam,
        num_exec_affinity_params: c_int,
        cig_params: *mut c_void,
    }
    /// A kernel node, as before CUDA 12.
    CUDA_KERNEL_NODE_PARAMS_v1 = 56 {
        func: CUfunction,
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
    }
    /// A kernel node; one of `func` and `kern` is set.
    CUDA_KERNEL_NODE_PARAMS = 72 {
        func: CUfunction,
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
        kern: CUkernel,
        ctx: CUcontext,
    }
    /// One launch of several that run on devices of their own.
    CUDA_LAUNCH_PARAMS = 56 {
        function: CUfunction,
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        stream: CUstream,
        kernel_params: *mut *mut c_void,
    }
    /// A memset node.
    CUDA_MEMSET_NODE_PARAMS = 40 {
        dst: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        element_size: c_uint,
        width: usize,
        height: usize,
    }
    /// A host node.
    CUDA_HOST_NODE_PARAMS = 16 { callback: CUhostFn, user_data: *mut c_void, }
    /// A node that allocates memory; the last field is what the driver answers.
    CUDA_MEM_ALLOC_NODE_PARAMS = 120 {
        pool: CUmemPoolProps,
        access: *const CUmemAccessDesc,
        access_count: usize,
        bytes: usize,
        address: CUdeviceptr,
    }
    /// A node of any kind; `value` is the union of cuda.h, which for kernels begins with
    /// `CUDA_KERNEL_NODE_PARAMS` and for child graphs with a graph.
    CUgraphNodeParams = 256 { kind: CUgraphNodeType, reserved0: [c_int; 3], value: [u64; 29], reserved2: i64, }
    /// How to make an executable graph, and how it went.
    CUDA_GRAPH_INSTANTIATE_PARAMS = 32 {
        flags: u64,
        upload_stream: CUstream,
        error_node_out: CUgraphNode,
        result_out: c_int,
    }
    /// Why an executable graph could not be updated: 0 it was, 1 another reason, 2 its shape has
    /// changed, 3 the kind of a node has.
    CUgraphExecUpdateResultInfo = 24 {
        result: c_int,
        error_node: CUgraphNode,
        error_from_node: CUgraphNode,
    }
    /// What an edge of a graph waits for.
    CUgraphEdgeData = 8 { from_port: c_uchar, to_port: c_uchar, kind: c_uchar, reserved: [c_uchar; 5], }
}

// SAFETY: a description of a copy; whoever looks through its addresses has to say why he may.
unsafe impl Send for CUDA_MEMCPY3D {}

impl From<CUDA_KERNEL_NODE_PARAMS_v1> for CUDA_KERNEL_NODE_PARAMS {
    fn from(old: CUDA_KERNEL_NODE_PARAMS_v1) -> Self {
        Self {
            func: old.func,
            grid_dim_x: old.grid_dim_x,
            grid_dim_y: old.grid_dim_y,
            grid_dim_z: old.grid_dim_z,
            block_dim_x: old.block_dim_x,
            block_dim_y: old.block_dim_y,
            block_dim_z: old.block_dim_z,
            shared_mem_bytes: old.shared_mem_bytes,
            kernel_params: old.kernel_params,
            extra: old.extra,
            ..Self::default()
        }
    }
}

impl CUgraphNodeParams {
    /// `kind` of a kernel.
    pub const KERNEL: CUgraphNodeType = 0;
    /// `kind` of a copy.
    pub const COPY: CUgraphNodeType = 1;
    /// `kind` of a memset.
    pub const FILL: CUgraphNodeType = 2;
    /// `kind` of a call on the host.
    pub const HOST: CUgraphNodeType = 3;
    /// `kind` of a node that does nothing.
    pub const EMPTY: CUgraphNodeType = 5;
    /// `kind` of a node that waits for an event.
    pub const WAIT: CUgraphNodeType = 6;
    /// `kind` of a node that records an event.
    pub const RECORD: CUgraphNodeType = 7;
    /// `kind` of a node that signals a semaphore of another API.
    pub const SIGNAL_SEMAPHORE: CUgraphNodeType = 8;
    /// `kind` of a node that waits for a semaphore of another API.
    pub const WAIT_SEMAPHORE: CUgraphNodeType = 9;
    /// `kind` of a node that allocates memory.
    pub const ALLOC: CUgraphNodeType = 10;
    /// `kind` of a node that frees it.
    pub const FREE: CUgraphNodeType = 11;
    /// `kind` of a list of operations on words.
    pub const BATCH: CUgraphNodeType = 12;
    /// `kind` of a child graph.
    pub const GRAPH: CUgraphNodeType = 4;
    /// `kind` of a conditional node, whose graphs may run many times or not at all.
    pub const CONDITIONAL: CUgraphNodeType = 13;

    /// The parameters of a kernel, if that is what it is.
    pub fn kernel(&self) -> Option<CUDA_KERNEL_NODE_PARAMS> {
        let value = self.value.as_ptr().cast::<CUDA_KERNEL_NODE_PARAMS>();
        // SAFETY: the union is large enough and aligned, and any bytes of it are a value.
        (self.kind == Self::KERNEL).then(|| unsafe { value.read() })
    }

    /// The same for another kernel.
    pub fn with_kernel(mut self, kernel: CUDA_KERNEL_NODE_PARAMS) -> Self {
        let value = self.value.as_mut_ptr().cast::<CUDA_KERNEL_NODE_PARAMS>();
        // SAFETY: as above.
        unsafe { value.write(kernel) };
        self
    }

    /// A part of the union.
    ///
    /// # Safety
    /// Any bytes are a value of `T`, which at byte `from` ends inside the union.
    unsafe fn part<T: Copy>(&self, from: usize) -> T {
        // SAFETY: the caller's condition; the union is as aligned as its largest member.
        unsafe { self.value.as_ptr().byte_add(from).cast::<T>().read() }
    }

    /// The copy, if that is what it is.
    pub fn copy(&self) -> Option<CUDA_MEMCPY3D> {
        // SAFETY: behind flags, padding and a context, 216 of 232 bytes in all; integers and
        // raw pointers.
        (self.kind == Self::COPY).then(|| unsafe { self.part(16) })
    }

    /// The memset, if that is what it is.
    pub fn fill(&self) -> Option<CUDA_MEMSET_NODE_PARAMS> {
        // SAFETY: integers.
        (self.kind == Self::FILL).then(|| unsafe { self.part(0) })
    }

    /// The call on the host, if that is what it is.
    pub fn host(&self) -> Option<CUDA_HOST_NODE_PARAMS> {
        // SAFETY: a raw pointer and a function pointer that may be null.
        (self.kind == Self::HOST).then(|| unsafe { self.part(0) })
    }

    /// The allocation, if that is what it is.
    pub fn alloc(&self) -> Option<CUDA_MEM_ALLOC_NODE_PARAMS> {
        // SAFETY: integers and raw pointers.
        (self.kind == Self::ALLOC).then(|| unsafe { self.part(0) })
    }

    /// The same for another copy.
    pub fn with_copy(mut self, copy: CUDA_MEMCPY3D) -> Self {
        // SAFETY: as for reading.
        unsafe {
            let value = self.value.as_mut_ptr().byte_add(16);
            value.cast::<CUDA_MEMCPY3D>().write(copy);
        }
        self
    }

    /// The same for another allocation.
    pub fn with_alloc(mut self, alloc: CUDA_MEM_ALLOC_NODE_PARAMS) -> Self {
        let value = self.value.as_mut_ptr().cast::<CUDA_MEM_ALLOC_NODE_PARAMS>();
        // SAFETY: as for reading.
        unsafe { value.write(alloc) };
        self
    }

    /// The child graph's handle, if that is what it is.
    pub fn child(&self) -> Option<u64> {
        (self.kind == Self::GRAPH).then_some(self.value[0])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn layouts_have_the_sizes_a_c_compiler_gives_them() {
        for (name, ours, theirs) in super::SIZES {
            assert_eq!(ours, theirs, "{name}");
        }
    }
}
