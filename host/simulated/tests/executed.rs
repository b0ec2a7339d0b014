//! Every access of a thread is counted once, by what is known of it.

use report::executed::{Executed, Tally};
use runtime::{Choice, Mode, Options, Prove, ShadowSize};

use crate::common::{launch, load};

/// Every thread loads a word of `from` that `by` says, writes its own word of `to`, every other one twice, and gets a
/// value of another thread of its block through shared memory.
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 tile[256];\n\
    .visible .entry k(.param .u64 to, .param .u64 from, .param .u64 by) {\n\
    .reg .b64 %to, %from, %by, %at, %far; .reg .b32 %t, %c, %n, %i, %v, %w, %s; .reg .pred %p;\n\
    ld.param.u64 %to, [to]; cvta.to.global.u64 %to, %to; ld.param.u64 %from, [from]; cvta.to.global.u64 %from, %from;\n\
    ld.param.u64 %by, [by]; cvta.to.global.u64 %by, %by;\n\
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.s32 %i, %c, %n, %t;\n\
    mul.wide.s32 %at, %i, 4; add.s64 %to, %to, %at; add.s64 %by, %by, %at; ld.global.s32 %far, [%by];\n\
    shl.b64 %far, %far, 2; add.s64 %from, %from, %far; ld.global.u32 %v, [%from];\n\
    shl.b32 %s, %t, 2; mov.u32 %w, tile; add.u32 %s, %s, %w; st.shared.u32 [%s], %v; bar.sync 0;\n\
    mul.lo.s32 %s, %t, -4; add.u32 %w, %w, %s; ld.shared.u32 %w, [%w+252]; st.global.u32 [%to], %w;\n\
    and.b32 %n, %t, 1; setp.ne.u32 %p, %n, 0; @%p st.global.u32 [%to], %v; ret; }";

fn counted(options: Options, alias: bool) -> Executed {
    let options = Options {
        shadow: ShadowSize::Bytes(1 << 20),
        ..options
    };
    let mut rig = load(TEXT, options);
    let from = rig.memory(&(0..128).map(|n| n % 2).collect::<Vec<u32>>());
    let by = rig.memory(&(0..128).rev().collect::<Vec<u32>>());
    let to = if alias { from } else { rig.memory(&[0; 128]) };
    rig.launch(&launch(2, 64, &[to, from, by]));
    rig.launches()[0].executed.unwrap()
}

fn modes(prove: Prove) -> [Options; 3] {
    let of = |mode, as_gpu| Options {
        mode,
        as_gpu,
        prove,
        ..Options::default()
    };
    [
        of(Mode::Precise, false),
        of(Mode::Precise, true),
        of(Mode::Fast, false),
    ]
}

#[test]
fn accesses_are_counted_by_what_proves_them() {
    for prove in [Prove::On, Prove::Audit] {
        for options in modes(prove) {
            let wanted = Executed {
                global: Tally {
                    read_only: 256,
                    private: 192,
                    ..Tally::default()
                },
                shared: Tally {
                    barriers: 256,
                    ..Tally::default()
                },
            };
            assert_eq!(counted(options.clone(), false), wanted, "{options:?}");
        }
    }
}

#[test]
fn what_a_journal_judges_is_checked() {
    // A release that nothing but a journal follows.
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n\
        .reg .b64 %p; ld.param.u64 %p, [p]; st.global.u32 [%p], 1; st.release.gpu.global.u32 [%p+4], 1; ret; }";
    let options = Options {
        as_gpu: true,
        ..Options::default()
    };
    let mut rig = load(text, options);
    let p = rig.memory(&[0; 2]);
    rig.launch(&launch(2, 1, &[p]));
    let launch = &rig.launches()[0];
    let of = launch.executed.unwrap();
    assert_eq!((of.global.checked, of.global.unchecked), (4, 0));
}

#[test]
fn what_is_not_proved_is_checked() {
    for options in modes(Prove::On) {
        let of = counted(options.clone(), true);
        // The loads of `from`, and both stores.
        assert_eq!(of.global.checked, 320, "{options:?}");
        assert_eq!(of.global.read_only, 128, "{options:?}");
        assert_eq!(of.shared.barriers, 256, "{options:?}");
    }
    for options in modes(Prove::Off) {
        for alias in [false, true] {
            let of = counted(options.clone(), alias);
            assert_eq!([of.global.checked, of.shared.checked], [448, 256]);
        }
    }
}

#[test]
fn what_is_not_checked_is_said() {
    for options in modes(Prove::On) {
        let options = Options {
            choice: Choice {
                kernels: vec!["other".parse().unwrap()],
                ..Choice::default()
            },
            ..options
        };
        let of = counted(options, false);
        assert_eq!([of.global.unchecked, of.shared.unchecked], [448, 256]);
    }
}
