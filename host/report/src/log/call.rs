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
    /// The program itself reads it or writes it, before a call.
    HostAccess,
    /// The program itself writes it, before a call.
    HostWrite,
}

impl Call {
    /// Number of its site in a footprint.
    pub const ALL: [Call; 8] = [
        Call::CopyFrom,
        Call::CopyTo,
        Call::Fill,
        Call::Alloc,
        Call::Free,
        Call::FreeOnHost,
        Call::HostAccess,
        Call::HostWrite,
    ];

    /// The call of a [text](Self::text).
    pub fn of_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.text() == text)
    }

    /// Whether it is no call, but an access of the program's own code on the host.
    pub fn is_by_host(self) -> bool {
        matches!(self, Call::HostAccess | Call::HostWrite)
    }

    /// What of the runtime API does it.
    pub fn text(self) -> &'static str {
        match self {
            Call::CopyFrom | Call::CopyTo => "cudaMemcpy or its like",
            Call::Fill => "cudaMemset or its like",
            Call::Alloc => "cudaMallocAsync or its like",
            Call::Free => "cudaFreeAsync or its like",
            Call::FreeOnHost => "cudaFree of memory from a pool",
            Call::HostAccess => "an access by the program's own code to the page of this address",
            Call::HostWrite => "a write by the program's own code",
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
            Call::HostAccess => ("an access by the host", Op::Load),
            Call::HostWrite => ("a write by the host", Op::Store),
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
