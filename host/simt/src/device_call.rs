//! The functions of the device runtime that the device has.
//!
//! Source: `cuda_device_runtime_api.h` of CUDA 13.0, whose functions have the prefix `__cudaCDP2` in PTX,
//! or are called as they are (`CUDA_FORCE_CDP1_IF_SUPPORTED`).

/// A function of the device runtime, by which kernels launch kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceCall {
    /// With an alignment and a size.
    Buffer,
    /// With the kernel and the shape of the launch.
    BufferV2,
    /// With the kernel, the buffer and the shape of the launch.
    Launch,
    /// Of a buffer that knows the kernel and the shape.
    LaunchV2,
    Copy,
    Fill,
    StreamCreate,
    StreamDestroy,
    StreamWait,
    EventCreate,
    EventRecord,
    EventDestroy,
    LastError,
    PeekError,
    Device,
    DeviceCount,
    Attribute,
    Malloc,
    Free,
    /// Of the value that a node of a graph goes by.
    SetConditional,
}

impl DeviceCall {
    /// The function of a name, and whether stream 0 is the thread's own to it.
    pub(crate) fn named(name: &str) -> Option<(Self, bool)> {
        let newer = name.strip_prefix("__cudaCDP2");
        let name = newer.or_else(|| name.strip_prefix("cuda"))?;
        let (name, own) = match name.strip_suffix("_ptsz") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let call = match name {
            "GetParameterBuffer" => Self::Buffer,
            "GetParameterBufferV2" => Self::BufferV2,
            "LaunchDevice" => Self::Launch,
            "LaunchDeviceV2" => Self::LaunchV2,
            "MemcpyAsync" => Self::Copy,
            "MemsetAsync" => Self::Fill,
            "StreamCreateWithFlags" => Self::StreamCreate,
            "StreamDestroy" => Self::StreamDestroy,
            "StreamWaitEvent" => Self::StreamWait,
            "EventCreateWithFlags" => Self::EventCreate,
            "EventRecord" | "EventRecordWithFlags" => Self::EventRecord,
            "EventDestroy" => Self::EventDestroy,
            "GetLastError" => Self::LastError,
            "PeekAtLastError" => Self::PeekError,
            "GetDevice" => Self::Device,
            "GetDeviceCount" => Self::DeviceCount,
            "DeviceGetAttribute" => Self::Attribute,
            "Malloc" => Self::Malloc,
            "Free" => Self::Free,
            "GraphSetConditional" => Self::SetConditional,
            _ => return None,
        };
        Some((call, own))
    }
}
