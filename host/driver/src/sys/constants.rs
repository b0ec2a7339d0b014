//! Values of the driver API's enumerations and flags that we name.
//!
//! Source: `cuda.h` of CUDA 13. Attribute ids keep their C names without the common prefix.

use super::{CUarray_format, CUdevice_attribute, CUfunction_attribute, CUstream};

/// The largest `cudaVersion` a `cuGetProcAddress` of this table answers, and what the simulated
/// driver calls itself: CUDA 13.0.
pub const CUDA_VERSION: i32 = 13000;

/// The symbol that only our own libraries named `libcuda.so.1` export.
///
/// The loader for a real driver refuses a library that has it: inside a checked program the plain
/// name leads back to ourselves.
pub const MARKER: &str = "cudarun_check_marker";

/// The symbol that only the interposer exports, besides [`MARKER`].
pub const INTERPOSER_MARKER: &str = "cudarun_check_interposer";

/// The legacy default stream by name.
pub const STREAM_LEGACY: CUstream = std::ptr::without_provenance_mut(1);
/// The per-thread default stream.
pub const STREAM_PER_THREAD: CUstream = std::ptr::without_provenance_mut(2);

macro_rules! values {
    ($($(#[$doc:meta])* mod $module:ident: $ty:ty { $($name:ident = $value:expr,)* })*) => { $(
        $(#[$doc])*
        #[allow(missing_docs, unused_imports, reason = "the names are those of cuda.h")]
        pub mod $module {
            use super::*;
            $(pub const $name: $ty = $value;)*
            /// All of them with their names.
            pub const ALL: &[(&str, $ty)] = &[$((stringify!($name), $name),)*];
        }
    )* };
}

values! {
    /// `CU_DEVICE_ATTRIBUTE_…`
    mod device_attribute: CUdevice_attribute {
        MAX_THREADS_PER_BLOCK = 1,
        MAX_BLOCK_DIM_X = 2,
        MAX_BLOCK_DIM_Y = 3,
        MAX_BLOCK_DIM_Z = 4,
        MAX_GRID_DIM_X = 5,
        MAX_GRID_DIM_Y = 6,
        MAX_GRID_DIM_Z = 7,
        MAX_SHARED_MEMORY_PER_BLOCK = 8,
        TOTAL_CONSTANT_MEMORY = 9,
        WARP_SIZE = 10,
        MAX_PITCH = 11,
        MAX_REGISTERS_PER_BLOCK = 12,
        CLOCK_RATE = 13,
        TEXTURE_ALIGNMENT = 14,
        GPU_OVERLAP = 15,
        MULTIPROCESSOR_COUNT = 16,
        KERNEL_EXEC_TIMEOUT = 17,
        INTEGRATED = 18,
        CAN_MAP_HOST_MEMORY = 19,
        COMPUTE_MODE = 20,
        MAXIMUM_TEXTURE1D_WIDTH = 21,
        MAXIMUM_TEXTURE2D_WIDTH = 22,
        MAXIMUM_TEXTURE2D_HEIGHT = 23,
        MAXIMUM_TEXTURE3D_WIDTH = 24,
        MAXIMUM_TEXTURE3D_HEIGHT = 25,
        MAXIMUM_TEXTURE3D_DEPTH = 26,
        MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27,
        MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28,
        MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29,
        SURFACE_ALIGNMENT = 30,
        CONCURRENT_KERNELS = 31,
        ECC_ENABLED = 32,
        PCI_BUS_ID = 33,
        PCI_DEVICE_ID = 34,
        TCC_DRIVER = 35,
        MEMORY_CLOCK_RATE = 36,
        GLOBAL_MEMORY_BUS_WIDTH = 37,
        L2_CACHE_SIZE = 38,
        MAX_THREADS_PER_MULTIPROCESSOR = 39,
        ASYNC_ENGINE_COUNT = 40,
        UNIFIED_ADDRESSING = 41,
        MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42,
        MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43,
        CAN_TEX2D_GATHER = 44,
        MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45,
        MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46,
        MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47,
        MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48,
        MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49,
        PCI_DOMAIN_ID = 50,
        TEXTURE_PITCH_ALIGNMENT = 51,
        MAXIMUM_TEXTURECUBEMAP_WIDTH = 52,
        MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53,
        MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54,
        MAXIMUM_SURFACE1D_WIDTH = 55,
        MAXIMUM_SURFACE2D_WIDTH = 56,
        MAXIMUM_SURFACE2D_HEIGHT = 57,
        MAXIMUM_SURFACE3D_WIDTH = 58,
        MAXIMUM_SURFACE3D_HEIGHT = 59,
        MAXIMUM_SURFACE3D_DEPTH = 60,
        MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61,
        MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62,
        MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63,
        MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64,
        MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65,
        MAXIMUM_SURFACECUBEMAP_WIDTH = 66,
        MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67,
        MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68,
        MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69,
        MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70,
        MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71,
        MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72,
        MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73,
        MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74,
        COMPUTE_CAPABILITY_MAJOR = 75,
        COMPUTE_CAPABILITY_MINOR = 76,
        MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77,
        STREAM_PRIORITIES_SUPPORTED = 78,
        GLOBAL_L1_CACHE_SUPPORTED = 79,
        LOCAL_L1_CACHE_SUPPORTED = 80,
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
        MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
        MANAGED_MEMORY = 83,
        MULTI_GPU_BOARD = 84,
        MULTI_GPU_BOARD_GROUP_ID = 85,
        HOST_NATIVE_ATOMIC_SUPPORTED = 86,
        SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
        PAGEABLE_MEMORY_ACCESS = 88,
        CONCURRENT_MANAGED_ACCESS = 89,
        COMPUTE_PREEMPTION_SUPPORTED = 90,
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
        CAN_USE_STREAM_MEM_OPS_V1 = 92,
        CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93,
        CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94,
        COOPERATIVE_LAUNCH = 95,
        COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
        CAN_FLUSH_REMOTE_WRITES = 98,
        HOST_REGISTER_SUPPORTED = 99,
        PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
        DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101,
        VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
        HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
        HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104,
        HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105,
        MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
        GENERIC_COMPRESSION_SUPPORTED = 107,
        MAX_PERSISTING_L2_CACHE_SIZE = 108,
        MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
        GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
        RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
        SPARSE_CUDA_ARRAY_SUPPORTED = 112,
        READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
        TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114,
        MEMORY_POOLS_SUPPORTED = 115,
        GPU_DIRECT_RDMA_SUPPORTED = 116,
        GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
        GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
        MEMPOOL_SUPPORTED_HANDLE_TYPES = 119,
        CLUSTER_LAUNCH = 120,
        DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121,
        CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
        CAN_USE_STREAM_WAIT_VALUE_NOR = 123,
        DMA_BUF_SUPPORTED = 124,
        IPC_EVENT_SUPPORTED = 125,
        MEM_SYNC_DOMAIN_COUNT = 126,
        TENSOR_MAP_ACCESS_SUPPORTED = 127,
        HANDLE_TYPE_FABRIC_SUPPORTED = 128,
        UNIFIED_FUNCTION_POINTERS = 129,
        NUMA_CONFIG = 130,
        NUMA_ID = 131,
        MULTICAST_SUPPORTED = 132,
        MPS_ENABLED = 133,
        HOST_NUMA_ID = 134,
        D3D12_CIG_SUPPORTED = 135,
        MEM_DECOMPRESS_ALGORITHM_MASK = 136,
        MEM_DECOMPRESS_MAXIMUM_LENGTH = 137,
        VULKAN_CIG_SUPPORTED = 138,
        GPU_PCI_DEVICE_ID = 139,
        GPU_PCI_SUBSYSTEM_ID = 140,
        HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141,
        HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142,
        HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143,
        HOST_MEMORY_POOLS_SUPPORTED = 144,
        HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145,
        HOST_ALLOC_DMA_BUF_SUPPORTED = 146,
        ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = 147,
    }
    /// `CU_FUNC_ATTRIBUTE_…`
    mod function_attribute: CUfunction_attribute {
        MAX_THREADS_PER_BLOCK = 0,
        SHARED_SIZE_BYTES = 1,
        CONST_SIZE_BYTES = 2,
        LOCAL_SIZE_BYTES = 3,
        NUM_REGS = 4,
        PTX_VERSION = 5,
        BINARY_VERSION = 6,
        CACHE_MODE_CA = 7,
        MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
        CLUSTER_SIZE_MUST_BE_SET = 10,
        REQUIRED_CLUSTER_WIDTH = 11,
        REQUIRED_CLUSTER_HEIGHT = 12,
        REQUIRED_CLUSTER_DEPTH = 13,
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
    }
    /// `CU_POINTER_ATTRIBUTE_…`
    mod pointer_attribute: i32 {
        CONTEXT = 1,
        MEMORY_TYPE = 2,
        DEVICE_POINTER = 3,
        HOST_POINTER = 4,
        P2P_TOKENS = 5,
        SYNC_MEMOPS = 6,
        BUFFER_ID = 7,
        IS_MANAGED = 8,
        DEVICE_ORDINAL = 9,
        IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        RANGE_START_ADDR = 11,
        RANGE_SIZE = 12,
        MAPPED = 13,
        ALLOWED_HANDLE_TYPES = 14,
        IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        ACCESS_FLAGS = 16,
        MEMPOOL_HANDLE = 17,
        MAPPING_SIZE = 18,
        MAPPING_BASE_ADDR = 19,
        MEMORY_BLOCK_ID = 20,
        IS_HW_DECOMPRESS_CAPABLE = 21,
    }
    /// `CU_MEMORYTYPE_…`
    mod memory_type: i32 {
        HOST = 1,
        DEVICE = 2,
        ARRAY = 3,
        UNIFIED = 4,
    }
    /// `CU_AD_FORMAT_…`: the formats of a single channel.
    mod array_format: CUarray_format {
        UNSIGNED_INT8 = 0x01,
        UNSIGNED_INT16 = 0x02,
        UNSIGNED_INT32 = 0x03,
        SIGNED_INT8 = 0x08,
        SIGNED_INT16 = 0x09,
        SIGNED_INT32 = 0x0a,
        HALF = 0x10,
        FLOAT = 0x20,
    }
    /// `CUDA_ARRAY3D_…`
    mod array_flag: u32 {
        LAYERED = 0x01,
        SURFACE_LDST = 0x02,
        CUBEMAP = 0x04,
        TEXTURE_GATHER = 0x08,
    }
    /// `CU_RESOURCE_TYPE_…`
    mod resource_type: i32 {
        ARRAY = 0,
        MIPMAPPED_ARRAY = 1,
        LINEAR = 2,
        PITCH2D = 3,
    }
    /// `CU_TR_ADDRESS_MODE_…`
    mod address_mode: i32 {
        WRAP = 0,
        CLAMP = 1,
        MIRROR = 2,
        BORDER = 3,
    }
    /// `CU_TR_FILTER_MODE_…`
    mod filter_mode: i32 {
        POINT = 0,
        LINEAR = 1,
    }
    /// `CU_TRSF_…`
    mod texture_flag: u32 {
        READ_AS_INTEGER = 0x01,
        NORMALIZED_COORDINATES = 0x02,
        SRGB = 0x10,
        DISABLE_TRILINEAR_OPTIMIZATION = 0x20,
        SEAMLESS_CUBEMAP = 0x40,
    }
    /// `CU_LIMIT_…`
    mod limit: i32 {
        STACK_SIZE = 0,
        PRINTF_FIFO_SIZE = 1,
        MALLOC_HEAP_SIZE = 2,
        DEV_RUNTIME_SYNC_DEPTH = 3,
        DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
        MAX_L2_FETCH_GRANULARITY = 5,
        PERSISTING_L2_CACHE_SIZE = 6,
    }
    /// `CU_MEMPOOL_ATTR_…`
    mod mem_pool_attribute: i32 {
        REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        REUSE_ALLOW_OPPORTUNISTIC = 2,
        REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        RELEASE_THRESHOLD = 4,
        RESERVED_MEM_CURRENT = 5,
        RESERVED_MEM_HIGH = 6,
        USED_MEM_CURRENT = 7,
        USED_MEM_HIGH = 8,
    }
    /// `CU_LAUNCH_ATTRIBUTE_…`
    mod launch_attribute: i32 {
        IGNORE = 0,
        ACCESS_POLICY_WINDOW = 1,
        COOPERATIVE = 2,
        SYNCHRONIZATION_POLICY = 3,
        CLUSTER_DIMENSION = 4,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
        PROGRAMMATIC_STREAM_SERIALIZATION = 6,
        PROGRAMMATIC_EVENT = 7,
        PRIORITY = 8,
        MEM_SYNC_DOMAIN_MAP = 9,
        MEM_SYNC_DOMAIN = 10,
        PREFERRED_CLUSTER_DIMENSION = 11,
        LAUNCH_COMPLETION_EVENT = 12,
        DEVICE_UPDATABLE_KERNEL_NODE = 13,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
    }
    /// `CU_STREAM_…` and `CU_EVENT_…` flags of creation.
    mod creation_flag: u32 {
        STREAM_DEFAULT = 0,
        STREAM_NON_BLOCKING = 1,
        EVENT_DEFAULT = 0,
        EVENT_BLOCKING_SYNC = 1,
        EVENT_DISABLE_TIMING = 2,
        EVENT_INTERPROCESS = 4,
    }
    /// `CU_MEMHOSTALLOC_…`, `CU_MEMHOSTREGISTER_…` and `CU_MEM_ATTACH_…` flags.
    mod memory_flag: u32 {
        HOST_PORTABLE = 1,
        HOST_DEVICEMAP = 2,
        HOST_WRITECOMBINED = 4,
        REGISTER_IOMEMORY = 4,
        REGISTER_READ_ONLY = 8,
        ATTACH_GLOBAL = 1,
        ATTACH_HOST = 2,
        ATTACH_SINGLE = 4,
    }
    /// `CU_GET_PROC_ADDRESS_…` results.
    mod proc_address: i32 {
        SUCCESS = 0,
        SYMBOL_NOT_FOUND = 1,
        VERSION_NOT_SUFFICIENT = 2,
    }
    /// Tags of the `extra` array of a launch: `CU_LAUNCH_PARAM_…`.
    mod launch_param: usize {
        END = 0,
        BUFFER_POINTER = 1,
        BUFFER_SIZE = 2,
    }
    /// `CU_JIT_…` options that we read.
    mod jit_option: i32 {
        MAX_REGISTERS = 0,
        THREADS_PER_BLOCK = 1,
        WALL_TIME = 2,
        INFO_LOG_BUFFER = 3,
        INFO_LOG_BUFFER_SIZE_BYTES = 4,
        ERROR_LOG_BUFFER = 5,
        ERROR_LOG_BUFFER_SIZE_BYTES = 6,
        OPTIMIZATION_LEVEL = 7,
    }
}
