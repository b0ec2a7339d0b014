//! What claims an expired cell, inlined behind the fast path.
//!
//! The rule's answer for such a cell (`rule::has_expired`) is the thread alone, and nothing to report.
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
//! A weak store whose races with writes are all known is done if it meets a store of another CTA: the rule leaves
//! such a cell as it is, and there is nothing new to report. It keeps its check, as loads may race with it.
//! This code waits for nobody: where anything else is the case, the called check is left to decide.
//! In shared memory that includes a busy cell, of whatever barrier epoch it is.

use std::mem::offset_of;

use shadow::layout::{
    BUSY, GENERATION_MASK, GRID_CLASS_MASK, LaunchBlock, WITNESS_CELL_FACTOR, WITNESS_SITE_SHIFT,
    sole_witness_of_any,
};
use shadow::rule;

use crate::inline::literal;

/// One claim. The fast path of the same access ([`Fast`](crate::Fast), [`FastShared`](crate::FastShared)) has two parts:
/// [`Claim::early`] is inlined between them, [`Claim::late`] behind both, for cells that must change, and [`Claim::swap`]
/// last. It overwrites `scratch` and `predicate`.
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
    /// For weak stores to global memory whose races with writes a launch may know.
    pub known: Option<Known<'a>>,
    /// Register or literal: the [`witness`] of the access.
    pub witness: &'a str,
    /// The label in front of [`Claim::swap`].
    pub swaps: &'a str,
    /// Where to go on when the cell is not to be claimed.
    pub not: &'a str,
}

/// Where a launch says that all races of a weak store with writes are known. If the store meets another one, nothing is
/// left to do.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The access's bit in [`LaunchBlock::known`].
    pub bit: u64,
    /// Register: [`LaunchBlock::compared`].
    pub compared: &'a str,
    /// Where to go on then.
    pub done: &'a str,
}

/// The literal of the witness that an access of `kind` leaves in a cell that it claims, without the bits that identify the
/// cell.
pub fn witness(site: u32, kind: u32) -> String {
    literal(sole_witness_of_any(site, kind > rule::STRONG_LOAD_CTA))
}

/// Puts the [`witness`] of an access of `kind` into the 64-bit register `to`, where the 32-bit register `site` has its
/// site.
pub fn witness_of(site: &str, kind: u32, to: &str) -> String {
    let other = witness(0, kind);
    format!(
        "cvt.u64.u32 {to}, {site};\nshl.b64 {to}, {to}, {WITNESS_SITE_SHIFT};\nor.b64 {to}, {to}, {other};\n"
    )
}

impl Claim<'_> {
    /// Bytes from the first launch block, that of global memory, to the one of this memory.
    fn block(&self) -> usize {
        match self.bytes {
            Some(_) => 0,
            None => size_of::<LaunchBlock>(),
        }
    }

    /// Branches to the swap if the cell is of an older launch, as most cells are that a launch accesses for the first
    /// time; or of an older barrier epoch, if no other CTA uses the cell.
    pub fn early(&self) -> String {
        let (a, p, swaps) = (self.scratch[0], self.predicate, self.swaps);
        match self.bytes {
            Some(bytes) => format!(
                "and.b64 {a}, %crc_differs, {generation};\nsetp.ne.u64 {p}, {a}, 0;\n\
                 setp.lt.and.u64 {p}, %crc_offset, {bytes}, {p};\n@{p} bra {swaps};\n",
                generation = literal(GENERATION_MASK),
            ),
            None => format!(
                "ld.global.u64 {a}, [{launch}+{over}];\nand.b64 {a}, %crc_differs, {a};\n\
                 setp.ne.u64 {p}, {a}, 0;\n@{p} bra {swaps};\n",
                launch = self.launch,
                over = self.block() + offset_of!(LaunchBlock, over_bits),
            ),
        }
    }

    /// For other cells that the fast path does not leave as they are: branches to `not` unless this access may claim
    /// the cell.
    pub fn late(&self) -> String {
        let [a, b] = self.scratch;
        let (p, not) = (self.predicate, self.not);
        let mut text = String::new();
        let before_barrier = format!(
            "ld.global.v2.u64 {{{a}, {b}}}, [{launch}+{over}];\nsub.s64 {a}, %crc_differs, {a};\n",
            launch = self.launch,
            over = self.block() + offset_of!(LaunchBlock, over_from),
        );
        match self.bytes {
            Some(_) if matches!(self.kind, rule::WEAK_LOAD | rule::WEAK_STORE) => {
                text.push_str(&format!(
                    "and.b64 {a}, %crc_differs, {compared};\nsetp.eq.u64 {p}, {a}, {claimed};\n\
                     {before_barrier}setp.lt.and.u64 {p}, {a}, {b}, {p};\n",
                    compared = literal(rule::compared_before_barrier(self.kind)),
                    claimed = literal(rule::claimed_before_barrier(self.kind)),
                ));
            }
            Some(_) => return format!("bra {not};\n"),
            None => text.push_str(&format!("{before_barrier}setp.lt.u64 {p}, {a}, {b};\n")),
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
        match self.known.zip(self.bytes) {
            Some((known, bytes)) => {
                text.push_str(&format!("@{p} bra {swaps};\n", swaps = self.swaps));
                text.push_str(&self.meets_store(bytes, known));
                text.push_str(&format!("bra {not};\n"));
            }
            None => text.push_str(&format!("@!{p} bra {not};\n")),
        }
        text
    }

    /// Goes on behind the check where a store that is known to race meets another one (`rule::meets_store`).
    fn meets_store(&self, bytes: &str, known: Known<'_>) -> String {
        let ([a, b], p) = (self.scratch, self.predicate);
        format!(
            "ld.global.v2.u64 {{{a}, {b}}}, [{launch}+{known_at}];\nand.b64 {a}, {a}, {bit};\nsetp.ne.u64 {p}, {a}, 0;\n\
             setp.ge.and.u64 {p}, %crc_differs, {b}, {p};\nand.b64 {a}, %crc_differs, {compared};\n\
             setp.eq.and.u64 {p}, {a}, {store}, {p};\nsetp.lt.and.u64 {p}, %crc_offset, {bytes}, {p};\n@{p} bra {done};\n",
            launch = self.launch,
            known_at = offset_of!(LaunchBlock, known),
            bit = literal(known.bit),
            compared = known.compared,
            store = literal(rule::classes(rule::WEAK_STORE) & GRID_CLASS_MASK),
            done = known.done,
        )
    }

    /// Changes the cell by a compare-and-swap, and writes its witness. Afterwards `predicate` is true if the cell was
    /// claimed. If it was not, the called check decides; this code does not try again.
    pub fn swap(&self) -> String {
        let [a, b] = self.scratch;
        let (p, launch) = (self.predicate, self.launch);
        let mut text = format!("{}:\n", self.swaps);
        let who = match self.bytes {
            Some(_) => "%crc_who",
            None => {
                let free = literal(!BUSY);
                text.push_str(&format!("and.b64 %crc_cell, %crc_cell, {free};\n"));
                self.me
            }
        };
        text.push_str(&format!(
            "or.b64 {a}, {who}, {fresh};\n\
             atom.relaxed.gpu.global.cas.b64 {b}, [%crc_at], %crc_cell, {a};\n\
             setp.eq.u64 {p}, {b}, %crc_cell;\n\
             ld.global.u64 {b}, [{launch}+{to_witness}];\n\
             add.s64 {b}, {b}, %crc_at;\n\
             mul.lo.u64 {a}, {a}, {factor};\n\
             shr.u64 {a}, {a}, 32;\n\
             or.b64 {a}, {a}, {witness};\n\
             @{p} st.relaxed.gpu.global.u64 [{b}], {a};\n",
            fresh = literal(rule::classes(self.kind)),
            to_witness = self.block() + offset_of!(LaunchBlock, to_witness),
            factor = literal(WITNESS_CELL_FACTOR),
            witness = self.witness,
        ));
        text
    }
}
