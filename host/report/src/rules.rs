//! What can be wrong, rule by rule: the table behind `cudarun-check explain` and docs/rules.md.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a report can say.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Which.
    pub id: RuleId,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it means, one sentence per line.
    pub means: &'static str,
    /// Where CUDA's documents say so.
    pub source: &'static str,
    /// A program with the fault where `RACY` is defined.
    program: &'static str,
}

/// What stands above the part of a program that is shown.
const EXAMPLE: &str = "// The example:\n";

macro_rules! rules {
    ($($(#[$default:meta])? $name:ident = $id:literal, $file:literal, $title:literal, $means:literal, $source:literal;)*) => {
        /// Which rule; outside of the program it is its id, such as `CR003`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum RuleId {
            $(#[doc = concat!($id, ": ", $title)] #[serde(rename = $id)] $(#[$default])? $name),*
        }

        impl RuleId {
            /// Such as `CR003`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $id),*
                }
            }
        }

        /// All rules, by their ids.
        pub const RULES: &[Rule] = &[$(Rule {
            id: RuleId::$name,
            title: $title,
            means: $means,
            source: $source,
            program: include_str!(concat!("../../../tests/apps/rules/", $file)),
        }),*];
    };
}

rules! {
    #[default]
    IntraWarp = "CR001", "cr001.cu", "intra-warp race",
    "Two lanes of a warp access the same bytes, at least one writes, and nothing orders them.\nLanes do not run in step: `__syncwarp()` orders them.",
    "PTX ISA, \"Conflict and Data-races\"";
    IntraBlock = "CR002", "cr002.cu", "intra-block race",
    "Two warps of a block access the same bytes, at least one writes, and nothing orders them.\n`__syncthreads()` orders the threads of a block.",
    "PTX ISA, \"Conflict and Data-races\"";
    InterBlock = "CR003", "cr003.cu", "inter-block race",
    "Two blocks access the same bytes, at least one writes, and nothing orders them.\nNo barrier of a block helps: use an atomic, a barrier of the grid, or another launch.",
    "PTX ISA, \"Conflict and Data-races\"";
    NarrowScope = "CR005", "cr005.cu", "scope too narrow",
    "A fence, an atomic or a release orders threads of a smaller scope than the two accesses have.\nUse a scope that includes both threads.",
    "PTX ISA, \"Scope\" and \"Morally strong operations\"";
    ReleaseAcquire = "CR006", "cr006.cu", "missing release or acquire",
    "A flag or a lock hands data from one thread to another, but one side lacks its fence.\nThe writer needs a fence before it writes the flag, the reader one after it has read it.",
    "PTX ISA, \"Release and Acquire Patterns\"";
    Synchronisation = "CR007", "cr007.cu", "misuse of a barrier, or a deadlock",
    "A barrier or a `.sync` operation of a warp is used in a way that PTX leaves undefined, or threads wait for what cannot happen.\nThe report says which threads came where.",
    "PTX ISA, `barrier`, `bar.warp.sync`, `mbarrier`; CUDA C++ Programming Guide, \"Synchronization Functions\"";
    MixedSize = "CR008", "cr008.cu", "strong accesses that overlap in part",
    "Volatile, relaxed or atomic accesses of different size or address share bytes.\nPTX promises nothing about them: they race whatever their scopes.",
    "PTX ISA, \"Overlap\" and \"Limitations on Mixed-size Data-races\"";
    ReadOnly = "CR009", "cr009.cu", "write to read-only data",
    "A kernel writes what it also reads through the read-only path (`__ldg`, `const __restrict__`, textures).\nThe data must not change during the launch; no barrier repairs it.",
    "PTX ISA, `ld.global.nc`; CUDA C++ Programming Guide, \"Read-Only Data Cache Load Function\"";
    Asynchronous = "CR010", "cr010.cu", "asynchronous copy not waited for",
    "An asynchronous copy may still run when its source is written or its target is accessed.\nThe thread that issued it has to wait for it, and the others for that thread.",
    "PTX ISA, `cp.async`, `cp.async.bulk`, \"Asynchronous operations\"";
    StrongConflict = "CR011", "cr011.cu", "unordered strong conflict",
    "Volatile or relaxed accesses conflict and nothing orders them.\nPTX gives them a result, so this is no data race; it is a warning, or an error with `--model scoped`.",
    "PTX ISA, \"Conflict and Data-races\"";
    Predictive = "CR012", "cr012.cu", "order that only this run has",
    "Only an order of this run orders two accesses: that in which locks were taken, an atomic counted threads, or `fence.sc` were executed.\nIn another run it may be the other way around.\nOn the simulated device such a launch also runs under other schedules by default (`--explore`): if one of these shows the race, it is an error.",
    "PTX ISA, \"Fence-SC Order\"; Kini, Mathur, Viswanathan, PLDI 2017, for locks";
    Proxy = "CR013", "cr013.cu", "missing fence between proxies",
    "A bulk copy reads what ordinary stores have written, without `fence.proxy.async` between the two.\nBulk copies access memory through the async proxy, which barriers alone do not order.",
    "PTX ISA, \"Proxies\", `fence.proxy.async`";
    Streams = "CR014", "cr014.cu", "race between launches or copies",
    "Kernels, copies, fills, allocations or frees of different streams use the same memory, and nothing orders them.\nEvents, stream waits and waits of the host order streams.",
    "CUDA C++ Programming Guide, \"Streams\", \"Stream Ordered Memory Allocator\"";
    Host = "CR015", "cr015.cu", "race between host and device",
    "The program's own code on the host uses managed or page-locked memory while a kernel or a copy may still use it, and one of them writes.\nThe host has to wait for the work: for its stream, for an event behind it, or for the device.",
    "CUDA C++ Programming Guide, \"Asynchronous Concurrent Execution\", \"Unified Memory\"";
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Rule {
    /// The rule of an id, in capitals or not.
    pub fn find(id: &str) -> Option<&'static Rule> {
        RULES
            .iter()
            .find(|rule| rule.id.as_str().eq_ignore_ascii_case(id))
    }

    /// A kernel with the fault.
    pub fn racy(&self) -> String {
        example(self.program, true)
    }

    /// The same, repaired.
    pub fn repaired(&self) -> String {
        example(self.program, false)
    }

    /// The rule for people, as Markdown.
    pub fn explain(&self) -> String {
        let Self {
            id,
            title,
            means,
            source,
            ..
        } = self;
        let (racy, repaired) = (self.racy(), self.repaired());
        format!(
            "## {id}: {title}\n\n{means}\n\nSource: {source}.\n\nWrong:\n\n```cuda\n{racy}```\n\nRight:\n\n```cuda\n{repaired}```\n"
        )
    }
}

/// All rules as the page docs/rules.md.
pub fn page() -> String {
    let mut text = "# Rules\n\n\
        What a report can say. `cudarun-check explain CR003` prints one rule.\n\
        This page is made from the table in `host/report/src/rules.rs` by `cudarun-check explain > docs/rules.md`; a test compares the two.\n\
        There is no CR004.\n\
        The examples are tests (`tests/apps/rules`): the wrong one is reported under its rule, the right one is not reported.\n"
        .to_owned();
    for rule in RULES {
        text += "\n";
        text += &rule.explain();
    }
    text
}

/// What stands between the mark and `main`, with `RACY` defined or not.
fn example(program: &str, racy: bool) -> String {
    let shown = program.split(EXAMPLE).nth(1).unwrap_or_default();
    let shown = shown.split("\nint main").next().unwrap_or_default();
    let mut text = String::new();
    // Whether the lines belong to the variant; conditions are not nested.
    let mut wanted = true;
    for line in shown.trim_end().lines() {
        match line.trim() {
            "#ifdef RACY" => wanted = racy,
            "#ifndef RACY" => wanted = !racy,
            "#else" => wanted = !wanted,
            "#endif" => wanted = true,
            _ if wanted => {
                text += line;
                text += "\n";
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_and_are_found() {
        let ids: Vec<&str> = RULES.iter().map(|rule| rule.id.as_str()).collect();
        assert!(ids.is_sorted());
        assert_eq!(
            Rule::find("cr003").map(|rule| rule.id),
            Some(RuleId::InterBlock)
        );
        assert!(Rule::find("CR004").is_none());
    }

    #[test]
    fn examples_differ_and_have_no_conditions_left() {
        for rule in RULES {
            let (racy, repaired) = (rule.racy(), rule.repaired());
            assert_ne!(racy, repaired, "{}", rule.id);
            for text in [racy, repaired] {
                assert!(text.contains("__global__"), "{}: {text}", rule.id);
                assert!(!text.contains('#') && !text.contains("main"), "{text}");
            }
        }
    }
}
