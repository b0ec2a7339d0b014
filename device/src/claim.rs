//! What claims a cell that is over, pasted behind the fast path.
//!
//! The rule's answer for such a cell (`rule::is_over`) is the thread alone, and nothing to report.
//! A weak store by a cell's only owner, in the same epochs, is answered alike: it conflicts with all
//! that others may do, so nothing else needs to be remembered.
//! So is a weak store to what the CTA alone has touched, before its last barrier, and a weak load of
//! what it has only loaded there (`rule::claimed_before_barrier`).
//! So the cell is changed by one compare-and-swap, and gets its one witness behind that.
//! No fence stands between the two: on a GPU an acquire of gpu scope empties the multiprocessor's first
//! cache, and a release waits for all stores before it.
//! Instead the witness tells which cell it belongs to (`layout::sole_witness`), and the called check,
//! which alone reads witnesses, waits until it is there.
//! No witness that was entered for an earlier cell comes late: whoever claims comes after the end of a launch, a
//! barrier or an own access, and so behind it; docs/cell.md names the exceptions.
//! Lanes that came too late part from those that claim only then, so that they need not wait for them.
//! This code waits for nobody: where anything else is the case, the called check is left to decide.
//! In shared memory that includes a busy cell, of whatever barrier epoch it is.

use std::mem::offset_of;

use shadow::layout::{
    BUSY, GENERATION_MASK, LaunchBlock, WITNESS_CELL_FACTOR, sole_witness_of_any,
};
use shadow::rule;

use crate::paste::literal;

/// One claim, behind [`Fast`](crate::Fast) or [`FastShared`](crate::FastShared) of the same access.
/// It overwrites `scratch` and `predicate`.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Register: the address of the first launch block.
    pub launch: &'a str,
    /// The register that holds [`LaunchBlock::window_bytes`]; none for shared memory.
    pub bytes: Option<&'a str>,
    /// Register: the thread's identity, for shared memory.
    pub me: &'a str,
    /// Two 64-bit registers.
    pub scratch: [&'a str; 2],
    /// A predicate.
    pub predicate: &'a str,
    /// Kind of the access, one that `rule::claims`.
    pub kind: u32,
    /// The access's site.
    pub site: u32,
    /// Where to go on when the cell was not claimed; behind the code, it was.
    pub not: &'a str,
}

impl Claim<'_> {
    /// The code.
    pub fn paste(&self) -> String {
        let [a, b] = self.scratch;
        let (p, not) = (self.predicate, self.not);
        let (who, block) = match self.bytes {
            Some(_) => ("%crc_who", 0),
            None => (self.me, size_of::<LaunchBlock>()),
        };
        let before_barrier = |also: &str| {
            let over = block + offset_of!(LaunchBlock, over_from);
            format!(
                "ld.global.v2.u64 {{{a}, {b}}}, [{launch}+{over}];\n\
                 sub.s64 {a}, %crc_differs, {a};\nsetp.lt.{also}.u64 {p}, {a}, {b}, {p};\n",
                launch = self.launch,
            )
        };
        let generation = literal(GENERATION_MASK);
        let older = format!("and.b64 {a}, %crc_differs, {generation};\n");
        let mut text = String::new();
        match self.bytes {
            Some(_) if matches!(self.kind, rule::WEAK_LOAD | rule::WEAK_STORE) => {
                text.push_str(&format!(
                    "and.b64 {a}, %crc_differs, {compared};\nsetp.eq.u64 {p}, {a}, {claimed};\n\
                     {}{older}setp.ne.or.u64 {p}, {a}, 0, {p};\n",
                    before_barrier("and"),
                    compared = literal(rule::compared_before_barrier(self.kind)),
                    claimed = literal(rule::claimed_before_barrier(self.kind)),
                ));
            }
            Some(_) => text.push_str(&format!("{older}setp.ne.u64 {p}, {a}, 0;\n")),
            None => text.push_str(&format!(
                "{older}setp.ne.u64 {p}, {a}, 0;\n{}and.b64 %crc_cell, %crc_cell, {free};\n",
                before_barrier("or"),
                free = literal(!BUSY),
            )),
        }
        // What a weak store by the owner itself adds to is no more than the store.
        if self.kind == rule::WEAK_STORE {
            text.push_str(&format!(
                "and.b64 {a}, %crc_differs, {besides};\nsetp.eq.or.u64 {p}, {a}, 0, {p};\n",
                besides = literal(!rule::classes(self.kind)),
            ));
        }
        if let Some(bytes) = self.bytes {
            text.push_str(&format!(
                "setp.lt.and.u64 {p}, %crc_offset, {bytes}, {p};\n"
            ));
        }
        let write = self.kind > rule::STRONG_LOAD_CTA;
        text.push_str(&format!(
            "@!{p} bra {not};\n\
             or.b64 {a}, {who}, {fresh};\n\
             atom.relaxed.gpu.global.cas.b64 {b}, [%crc_at], %crc_cell, {a};\n\
             setp.eq.u64 {p}, {b}, %crc_cell;\n\
             ld.global.u64 {b}, [{launch}+{to_witness}];\n\
             add.s64 {b}, {b}, %crc_at;\n\
             mul.lo.u64 {a}, {a}, {factor};\n\
             shr.u64 {a}, {a}, 32;\n\
             or.b64 {a}, {a}, {witness};\n\
             @{p} st.relaxed.gpu.global.u64 [{b}], {a};\n\
             @!{p} bra {not};\n",
            fresh = literal(rule::classes(self.kind)),
            launch = self.launch,
            to_witness = block + offset_of!(LaunchBlock, to_witness),
            factor = literal(WITNESS_CELL_FACTOR),
            witness = literal(sole_witness_of_any(self.site, write)),
        ));
        text
    }
}
