//! PTX text to and from a lossless tree, and what the tree means.
//!
//! [`parse`] reads any text into an [`ast::Module`] and a list of [`ast::Diagnostic`]s. It never
//! fails: what it does not understand stays in the tree as an `Unknown` node, and the text itself
//! is kept whole in [`ast::Module::text`]. Every node knows its byte range, so a rewriter inserts
//! its own text between bytes of the original and leaves every other byte alone, and a report can
//! point at what it is about.
//!
//! ```
//! let text = ".func f () { .reg .b64 %rd<2>; st.global.v2.f32 [%rd1+8], {1.0, 2.0}; ret; }";
//! let (module, diagnostics) = ptx::parse(text);
//! assert!(diagnostics.is_empty());
//! assert_eq!(ptx::print::module(&module), text);
//!
//! let body = module.function("f").unwrap().body.as_ref().unwrap();
//! let (_, store) = body.instructions().next().unwrap();
//! let access = ptx::isa::memory(store).unwrap();
//! assert_eq!(access.kind, ptx::isa::MemoryKind::Store);
//! assert_eq!((access.space, access.bytes()), (ptx::ast::Space::Global, 8));
//! assert_eq!(module.line_column(store.span.start), (1, 32));
//! ```
//!
//! # From text to tree
//! [`lexer`] makes tokens that, put together, are the text. The parser is recursive descent over
//! them, in one pass and in linear time. Invariants, each held by a test:
//! - `print::module(&parse(text).0) == text` for every text, where printing goes through the nodes.
//! - Spans of items, and of the statements of a body, are in order and do not overlap.
//! - An opcode without a row in [`isa::OPCODES`] parses as an [`ast::Instruction`] and is an
//!   `unknown` diagnostic; a statement that is none is [`ast::Statement::Unknown`] and one too.
//! - Nested blocks are flattened. [`scope`] knows which declaration a name means.
//!
//! # What the tree means
//! - [`isa`]: the instruction table. What an opcode writes, where control goes; [`isa::memory()`]
//!   and [`isa::sync()`] say what it does to memory and what it orders.
//! - [`mod@cfg`]: basic blocks, edges, dominators and post-dominators.
//! - [`dataflow`]: writes and reads of registers, and which write reaches which read.
//! - [`waits()`]: strong loads that a loop waits for, [`polls()`], those of one address, and [`spins()`], weak ones.
//! - [`takes()`]: swaps that a loop repeats, as taking a lock does.
//! - [`counts()`]: atomics that count threads so that the last one can be recognised.
//! - [`versions()`]: looks at a version before and after what it guards.
//! - [`narrow()`]: accesses to a word that stand for accesses to 8 or 16 bits of it.
//! - [`callgraph`]: who calls whom, whose address is taken, what an entry can reach.
//! - [`mod@link`]: several translation units as one module.
//! - Source positions: [`ast::Module::inline_frames`] gives the chain of inlined calls of a
//!   `.loc`, innermost first, with mangled function names from `.debug_str`.
//!
//! # Departures from the manual
//! PTX ISA 9.0 is the source throughout.
//! 1. Constant expressions are folded in 65 bits rather than in 64 with a type ([`parse`]).
//! 2. A declaration is visible in its whole block, not only after it ([`scope`]).
//! 3. Types and operand counts are not checked. That is `ptxas`'s work, and the text it gets is
//!    the program's own.
//! 4. `#` lines are skipped like comments; `.loc` and `.file` of PTX 1.x debugging (`@@DWARF`) too.

pub mod ast;
pub mod callgraph;
pub mod cfg;
mod counts;
pub mod dataflow;
pub mod isa;
pub mod lexer;
pub mod link;
mod module;
mod narrow;
mod parse;
mod parsed;
pub mod print;
pub mod scope;
mod signals;
mod types;
pub mod values;
mod versions;
mod waits;

pub use counts::{Counts, counts};
pub use module::{Frame, ParamLayout, architecture, param_layout};
pub use narrow::{Narrow, narrow};
pub use parse::parse;
pub use parsed::Parsed;
pub use signals::{Signals, signals};
pub use types::Class;
pub use versions::{Versions, versions};
pub use waits::{polls, spins, takes, waits};
