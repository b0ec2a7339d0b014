//! What reports say where an mbarrier does not order two blocks of a cluster, because somebody arrived or
//! waited in too narrow a scope.

use crate::common::{launch, load};
use report::source::Sources;
use report::text::{self, Style};
use report::{Context, Log, Report};
use runtime::Options;

/// Block 0 stores into block 1 and arrives at its mbarrier; block 1 waits for that, and loads.
fn hand_over(before: &str, arrive: &str, wait: &str, behind: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k() .reqnctapercluster 2 {{\n\
         .shared .align 8 .b8 box[16]; .reg .pred %p; .reg .b32 %c, %box, %far, %v;\n\
         mov.u32 %c, %cluster_ctarank; mov.u32 %box, box; mapa.shared::cluster.u32 %far, %box, 1;\n\
         setp.eq.u32 %p, %c, 1; @%p mbarrier.init.shared.b64 [box], 1;\n\
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n\
         @%p bra wait;\n\
         st.shared::cluster.u32 [%far+8], 1;\n\
         {before}\n\
         mbarrier.arrive.{arrive}.shared::cluster.b64 _, [%far];\n\
         bra done;\n\
         wait: mbarrier.test_wait.parity.{wait}.shared::cta.b64 %p, [box], 0; @!%p bra wait;\n\
         {behind}\n\
         ld.shared.u32 %v, [box+8];\n\
         done: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n\
         ret; }}"
    )
}

/// The report of a run of a kernel, for people.
fn report(text: &str, as_gpu: bool) -> String {
    let options = Options {
        as_gpu,
        ..Options::default()
    };
    let mut rig = load(text, options);
    rig.launch(&launch(2, 1, &[]));
    let events = rig.events().to_vec();
    let sources = Sources::new(Vec::new());
    let report = Report::build(
        &[Log {
            events,
            ..Log::default()
        }],
        &Context::default(),
        &sources,
    );
    text::render(&report, &sources, Style::default())
}

#[test]
fn a_narrow_scope_at_an_mbarrier_is_named_with_what_would_order() {
    let arrival = "the second thread has waited for an mbarrier at which block (0,0,0) arrived, but that arrival is a release of block scope";
    let wait = "the second thread has waited for an mbarrier at which block (0,0,0) arrived, but has acquired at block scope only";
    let no_acquire =
        "the second thread's block has observed a release by block (0,0,0), but has not acquired";
    let (arrive_wide, wait_wide) = (
        "widen the arrival to a scope that includes both threads: `mbarrier.arrive.release.cluster`",
        "widen the wait to a scope that includes both threads: `mbarrier.try_wait.acquire.cluster`",
    );
    let (narrow, wide) = ("fence.acq_rel.cta;", "fence.acq_rel.cluster;");
    let (release, acquire) = ("release.cluster", "acquire.cluster");
    for (kernel, words) in [
        (hand_over("", release, acquire, ""), None),
        (
            hand_over("", "release.cta", acquire, ""),
            Some([arrival, arrive_wide]),
        ),
        (
            hand_over("", release, "acquire.cta", ""),
            Some([wait, wait_wide]),
        ),
        // What comes behind an acquire of narrow scope does not make it wide.
        (
            hand_over("", release, "acquire.cta", wide),
            Some([wait, wait_wide]),
        ),
        // Relaxed ones are what the fences beside them are.
        (
            hand_over(wide, "relaxed.cluster", "relaxed.cluster", wide),
            None,
        ),
        (
            hand_over(narrow, "relaxed.cluster", acquire, ""),
            Some([arrival, arrive_wide]),
        ),
        (
            hand_over("", release, "relaxed.cluster", narrow),
            Some([wait, wait_wide]),
        ),
        (
            hand_over("", release, "relaxed.cluster", ""),
            Some([
                no_acquire,
                "acquire before the second access: put `__threadfence()` after the wait for the mbarrier",
            ]),
        ),
    ] {
        for journal in [false, true] {
            let text = report(&kernel, journal);
            let Some(words) = words else {
                assert!(text.contains("SUMMARY: cudarun-check: 0 races"), "{text}");
                continue;
            };
            for word in words
                .into_iter()
                .chain(["inter-block race on shared memory"])
            {
                assert!(text.contains(word), "{word}\nis missing in\n{text}");
            }
        }
    }
}
