//! What claims a cell that is over, pasted behind the fast path.
//!
//! The rule's answer for such a cell (`rule::is_over`) is the thread alone, and nothing to report.
//! A weak store by a cell's only owner, in the same epochs, is answered alike: it conflicts with all
//! that others may do, so nothing else needs to be remembered.
//! So is a weak store to what the CTA alone has touched, before its last barrier, and a weak load of
//! what it has only loaded there (`rule::claimed_before_barrier`).
//! So the cell is marked busy by one compare-and-swap, gets its one witness, and is published, as
//! the called check does it; whoever comes meanwhile finds it busy, and waits in the called check.
//! This code waits for nobody: where anything else is the case, the called check is left to decide.
//! In shared memory that includes a busy cell, of whatever barrier epoch it is.

use std::mem::offset_of;

use shadow::layout::{BUSY, GENERATION_MASK, LaunchBlock, sole_witness};
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
    /// Kind of the access.
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
             or.b64 {b}, {a}, {BUSY};\n\
             atom.acquire.gpu.global.cas.b64 {b}, [%crc_at], %crc_cell, {b};\n\
             setp.ne.u64 {p}, {b}, %crc_cell;\n\
             @{p} bra {not};\n\
             ld.global.u64 {b}, [{launch}+{to_witness}];\n\
             add.s64 {b}, {b}, %crc_at;\n\
             st.relaxed.gpu.global.u64 [{b}], {witness};\n\
             st.release.gpu.global.u64 [%crc_at], {a};\n",
            fresh = literal(rule::classes(self.kind)),
            launch = self.launch,
            to_witness = block + offset_of!(LaunchBlock, to_witness),
            witness = literal(sole_witness(self.site, write)),
        ));
        text
    }
}
