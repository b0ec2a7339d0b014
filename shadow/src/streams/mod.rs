//! Work of different streams: what orders it, and what memory two pieces of it share.
//!
//! A piece of work is a launch, a copy or a fill. Pieces of one stream run one after the other; those
//! of different streams may run at the same time unless an event, the host or the edge of a graph
//! orders them (CUDA C++ Programming Guide, "Asynchronous Concurrent Execution"). [`StreamOrder`] says
//! which pieces are ordered. [`Footprint`] is the memory that a piece has touched; two pieces that
//! nothing orders race where their footprints meet.

mod footprint;
mod order;

pub use footprint::{Footprint, Meeting, Touch};
pub use order::{Fork, Stream, StreamKind, StreamOrder, Turn};
