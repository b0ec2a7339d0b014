//! Functions that the real library has and this one has not: each returns "not supported" and says
//! so once, on standard error.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, remember};

/// Writes one line for the user.
pub(crate) fn say(text: &str) {
    let line = format!("cudarun-check: {text}\n");
    // SAFETY: the buffer is valid for its length. What cannot be written is not worth failing for.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// The answer to a call that needs what we have not got; `said` remembers that the user was told.
pub(crate) fn missing(name: &str, said: &AtomicBool) -> Error {
    if !said.swap(true, Ordering::Relaxed) {
        say(&format!("{name} is not available on the simulated device"));
    }
    Error::NOT_SUPPORTED
}

macro_rules! stubs {
    ($($name:ident)*) => { $(
        /// Not supported.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            static SAID: AtomicBool = AtomicBool::new(false);
            remember(missing(stringify!($name), &SAID)).0
        }
    )* };
}

#[rustfmt::skip]
stubs! {
    __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterUnifiedTable
    cudaArrayGetMemoryRequirements cudaArrayGetPlane cudaArrayGetSparseProperties
    cudaCreateSurfaceObject cudaDestroyExternalMemory cudaDestroyExternalSemaphore
    cudaDestroySurfaceObject cudaDeviceFlushGPUDirectRDMAWrites cudaDeviceGetGraphMemAttribute
    cudaDeviceGetHostAtomicCapabilities cudaDeviceGetNvSciSyncAttributes
    cudaDeviceGetP2PAtomicCapabilities cudaDeviceGraphMemTrim cudaDeviceRegisterAsyncNotification
    cudaDeviceSetGraphMemAttribute cudaDeviceUnregisterAsyncNotification
    cudaEGLStreamConsumerAcquireFrame cudaEGLStreamConsumerConnect
    cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect
    cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect
    cudaEGLStreamProducerPresentFrame cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync
    cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray
    cudaFreeMipmappedArray cudaGLGetDevices cudaGLMapBufferObject cudaGLMapBufferObjectAsync
    cudaGLRegisterBufferObject cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice
    cudaGLUnmapBufferObject cudaGLUnmapBufferObjectAsync cudaGLUnregisterBufferObject
    cudaGetExportTable cudaGetMipmappedArrayLevel cudaGetSurfaceObjectResourceDesc
    cudaGetTextureObjectResourceViewDesc cudaGraphAddChildGraphNode cudaGraphAddDependencies
    cudaGraphAddDependencies_v2 cudaGraphAddEmptyNode cudaGraphAddEventRecordNode
    cudaGraphAddEventWaitNode cudaGraphAddExternalSemaphoresSignalNode
    cudaGraphAddExternalSemaphoresWaitNode cudaGraphAddHostNode cudaGraphAddKernelNode
    cudaGraphAddMemAllocNode cudaGraphAddMemFreeNode cudaGraphAddMemcpyNode cudaGraphAddMemcpyNode1D
    cudaGraphAddMemcpyNodeFromSymbol cudaGraphAddMemcpyNodeToSymbol cudaGraphAddMemsetNode
    cudaGraphAddNode cudaGraphAddNode_v2 cudaGraphChildGraphNodeGetGraph cudaGraphClone
    cudaGraphConditionalHandleCreate cudaGraphDebugDotPrint cudaGraphDestroyNode
    cudaGraphEventRecordNodeGetEvent cudaGraphEventRecordNodeSetEvent cudaGraphEventWaitNodeGetEvent
    cudaGraphEventWaitNodeSetEvent cudaGraphExecChildGraphNodeSetParams
    cudaGraphExecEventRecordNodeSetEvent cudaGraphExecEventWaitNodeSetEvent
    cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams cudaGraphExecGetFlags
    cudaGraphExecHostNodeSetParams cudaGraphExecKernelNodeSetParams cudaGraphExecMemcpyNodeSetParams
    cudaGraphExecMemcpyNodeSetParams1D cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol cudaGraphExecMemsetNodeSetParams
    cudaGraphExecNodeSetParams cudaGraphExecUpdate cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams cudaGraphGetEdges cudaGraphGetEdges_v2
    cudaGraphGetRootNodes cudaGraphHostNodeGetParams cudaGraphHostNodeSetParams
    cudaGraphInstantiateWithParams cudaGraphInstantiateWithParams_ptsz
    cudaGraphKernelNodeCopyAttributes cudaGraphKernelNodeGetAttribute cudaGraphKernelNodeGetParams
    cudaGraphKernelNodeSetAttribute cudaGraphKernelNodeSetParams cudaGraphMemAllocNodeGetParams
    cudaGraphMemFreeNodeGetParams cudaGraphMemcpyNodeGetParams cudaGraphMemcpyNodeSetParams
    cudaGraphMemcpyNodeSetParams1D cudaGraphMemcpyNodeSetParamsFromSymbol
    cudaGraphMemcpyNodeSetParamsToSymbol cudaGraphMemsetNodeGetParams cudaGraphMemsetNodeSetParams
    cudaGraphNodeFindInClone cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
    cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2 cudaGraphNodeGetEnabled
    cudaGraphNodeGetType cudaGraphNodeSetEnabled cudaGraphNodeSetParams cudaGraphReleaseUserObject
    cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2 cudaGraphRetainUserObject
    cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer cudaGraphicsGLRegisterImage
    cudaGraphicsMapResources cudaGraphicsResourceGetMappedEglFrame
    cudaGraphicsResourceGetMappedMipmappedArray cudaGraphicsResourceGetMappedPointer
    cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray cudaGraphicsUnmapResources
    cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaImportExternalMemory cudaImportExternalSemaphore
    cudaIpcCloseMemHandle cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle
    cudaIpcOpenMemHandle cudaLaunchCooperativeKernelMultiDevice cudaLibraryEnumerateKernels
    cudaLibraryGetGlobal cudaLibraryGetKernel cudaLibraryGetKernelCount cudaLibraryGetManaged
    cudaLibraryGetUnifiedFunction cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryUnload
    cudaLogsCurrent cudaLogsDumpToFile cudaLogsDumpToMemory cudaLogsRegisterCallback
    cudaLogsUnregisterCallback cudaMallocMipmappedArray cudaMemDiscardAndPrefetchBatchAsync
    cudaMemDiscardAndPrefetchBatchAsync_ptsz cudaMemDiscardBatchAsync cudaMemDiscardBatchAsync_ptsz
    cudaMemGetDefaultMemPool cudaMemGetMemPool cudaMemPoolCreate cudaMemPoolExportPointer
    cudaMemPoolExportToShareableHandle cudaMemPoolGetAccess cudaMemPoolImportFromShareableHandle
    cudaMemPoolImportPointer cudaMemPoolSetAccess cudaMemPrefetchBatchAsync
    cudaMemPrefetchBatchAsync_ptsz cudaMemRangeGetAttribute cudaMemRangeGetAttributes
    cudaMemSetMemPool cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_ptsz cudaMemcpy3DPeer
    cudaMemcpy3DPeerAsync cudaMemcpy3DPeerAsync_ptsz cudaMemcpy3DPeer_ptds cudaMemcpyBatchAsync
    cudaMemcpyBatchAsync_ptsz cudaMipmappedArrayGetMemoryRequirements
    cudaMipmappedArrayGetSparseProperties cudaOccupancyMaxActiveClusters
    cudaOccupancyMaxPotentialClusterSize cudaSetDoubleForDevice cudaSetDoubleForHost
    cudaSignalExternalSemaphoresAsync cudaSignalExternalSemaphoresAsync_ptsz
    cudaSignalExternalSemaphoresAsync_v2 cudaSignalExternalSemaphoresAsync_v2_ptsz
    cudaStreamBeginCaptureToGraph cudaStreamBeginCaptureToGraph_ptsz cudaStreamCopyAttributes
    cudaStreamCopyAttributes_ptsz cudaStreamGetAttribute cudaStreamGetAttribute_ptsz
    cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_ptsz cudaStreamGetCaptureInfo_v2
    cudaStreamGetCaptureInfo_v2_ptsz cudaStreamGetCaptureInfo_v3 cudaStreamGetCaptureInfo_v3_ptsz
    cudaStreamSetAttribute cudaStreamSetAttribute_ptsz cudaStreamUpdateCaptureDependencies
    cudaStreamUpdateCaptureDependencies_ptsz cudaStreamUpdateCaptureDependencies_v2
    cudaStreamUpdateCaptureDependencies_v2_ptsz cudaUserObjectCreate cudaUserObjectRelease
    cudaUserObjectRetain cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice cudaWaitExternalSemaphoresAsync
    cudaWaitExternalSemaphoresAsync_ptsz cudaWaitExternalSemaphoresAsync_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz
}
