//! Calls on the host that touch memory, as sites of a log.

use super::{Op, Site};

/// What a call on the host does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It copies from there.
    CopyFrom,
    /// It copies to there.
    CopyTo,
    /// It fills it.
    Fill,
    /// It allocates it in the order of a stream.
    Alloc,
    /// It frees it in the order of a stream.
    Free,
    /// It frees it at once, and waits for nothing.
    FreeOnHost,
}

impl Call {
    /// Number of its site in a footprint.
    pub const ALL: [Call; 6] = [
        Call::CopyFrom,
        Call::CopyTo,
        Call::Fill,
        Call::Alloc,
        Call::Free,
        Call::FreeOnHost,
    ];

    /// What of the runtime API does it.
    pub fn text(self) -> &'static str {
        match self {
            Call::CopyFrom | Call::CopyTo => "cudaMemcpy or its like",
            Call::Fill => "cudaMemset or its like",
            Call::Alloc => "cudaMallocAsync or its like",
            Call::Free => "cudaFreeAsync or its like",
            Call::FreeOnHost => "cudaFree of memory from a pool",
        }
    }

    /// As the log knows it; `id` is the number of the site there.
    pub fn site(self, id: u32) -> Site {
        let (function, op) = match self {
            Call::CopyFrom => ("a memory copy", Op::Load),
            Call::CopyTo => ("a memory copy", Op::Store),
            Call::Fill => ("a memory fill", Op::Store),
            Call::Alloc => ("an allocation", Op::Store),
            Call::Free | Call::FreeOnHost => ("a free", Op::Store),
        };
        Site {
            id,
            function: function.to_owned(),
            text: self.text().to_owned(),
            op,
            ..Site::default()
        }
    }
}
