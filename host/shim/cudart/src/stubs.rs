//! Functions that the real library has and this one has not: each returns "not supported" and says
//! so once, on standard error and in the report: the run is incomplete.

use std::ffi::c_int;

use os::{run, terminal};

use crate::error::{Error, remember};

/// The answer to a call that needs what we have not got.
pub(crate) fn missing(name: &str) -> Error {
    let text = format!("{name} is not available on the simulated device");
    terminal::say_once(&text);
    run::missed(&text);
    Error::NOT_SUPPORTED
}

macro_rules! stubs {
    ($($name:ident)*) => { $(
        /// Not supported.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            remember(missing(stringify!($name))).0
        }
    )* };
}

#[rustfmt::skip]
stubs! {
    __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterUnifiedTable
    cudaArrayGetMemoryRequirements cudaArrayGetPlane cudaArrayGetSparseProperties
    cudaDestroyExternalMemory cudaDestroyExternalSemaphore cudaDeviceFlushGPUDirectRDMAWrites
    cudaDeviceGetHostAtomicCapabilities cudaDeviceGetNvSciSyncAttributes
    cudaDeviceGetP2PAtomicCapabilities cudaDeviceRegisterAsyncNotification
    cudaDeviceUnregisterAsyncNotification cudaEGLStreamConsumerAcquireFrame
    cudaEGLStreamConsumerConnect cudaEGLStreamConsumerConnectWithFlags
    cudaEGLStreamConsumerDisconnect cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect
    cudaEGLStreamProducerDisconnect cudaEGLStreamProducerPresentFrame
    cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync cudaExternalMemoryGetMappedBuffer
    cudaExternalMemoryGetMappedMipmappedArray cudaFreeMipmappedArray cudaGLGetDevices
    cudaGLMapBufferObject cudaGLMapBufferObjectAsync cudaGLRegisterBufferObject
    cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice cudaGLUnmapBufferObject
    cudaGLUnmapBufferObjectAsync cudaGLUnregisterBufferObject cudaGetExportTable
    cudaGetMipmappedArrayLevel cudaGetTextureObjectResourceViewDesc
    cudaGraphAddExternalSemaphoresSignalNode cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams
    cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer
    cudaGraphicsGLRegisterImage cudaGraphicsMapResources cudaGraphicsResourceGetMappedEglFrame
    cudaGraphicsResourceGetMappedMipmappedArray cudaGraphicsResourceGetMappedPointer
    cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray cudaGraphicsUnmapResources
    cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaImportExternalMemory cudaImportExternalSemaphore
    cudaIpcCloseMemHandle cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle
    cudaIpcOpenMemHandle cudaLaunchCooperativeKernelMultiDevice cudaLogsCurrent cudaLogsDumpToFile
    cudaLogsDumpToMemory cudaLogsRegisterCallback cudaLogsUnregisterCallback
    cudaMallocMipmappedArray cudaMemDiscardAndPrefetchBatchAsync
    cudaMemDiscardAndPrefetchBatchAsync_ptsz cudaMemDiscardBatchAsync cudaMemDiscardBatchAsync_ptsz
    cudaMemPoolExportPointer cudaMemPoolExportToShareableHandle cudaMemPoolImportFromShareableHandle
    cudaMemPoolImportPointer cudaMemPrefetchBatchAsync cudaMemPrefetchBatchAsync_ptsz
    cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_ptsz cudaMemcpyBatchAsync
    cudaMemcpyBatchAsync_ptsz cudaMipmappedArrayGetMemoryRequirements
    cudaMipmappedArrayGetSparseProperties cudaSignalExternalSemaphoresAsync
    cudaSignalExternalSemaphoresAsync_ptsz cudaSignalExternalSemaphoresAsync_v2
    cudaSignalExternalSemaphoresAsync_v2_ptsz
    cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice cudaWaitExternalSemaphoresAsync
    cudaWaitExternalSemaphoresAsync_ptsz cudaWaitExternalSemaphoresAsync_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz
}
