//! What is said of kernels: what is checked, what may order threads, what is not understood.

mod called;
mod made;
mod pointers;

use made::{HEADER, rewritten, rewritten_with};
use rewrite::{Config, KernelInfo, rewrite};

fn kernel(body: &str) -> KernelInfo {
    with(body, &Config::default())
}

fn with(body: &str, config: &Config) -> KernelInfo {
    let registers = ".reg .u64 %a; .reg .u32 %v, %w; .reg .pred %p;";
    let text = format!(".entry k(.param .u64 a) {{ {registers} {body} ret; }}");
    let mut all = rewritten_with(&text, config);
    assert_eq!(all.kernels.len(), 1);
    all.kernels.remove(0)
}

#[test]
fn barriers_of_all_threads_release_nothing_unseen() {
    let info = kernel("bar.sync 0; barrier.sync 3; bar.warp.sync -1; st.global.u32 [%a], %v;");
    assert!(
        info.barriers && info.warp_barriers && !info.release_capable,
        "{info:?}"
    );
    let info = kernel("atom.global.add.u32 %v, [%a], 1; st.volatile.global.u32 [%a], %v;");
    assert!(
        !info.barriers && !info.warp_barriers && !info.release_capable,
        "{info:?}"
    );
}

#[test]
fn whatever_may_order_threads_makes_candidates() {
    for instruction in [
        "membar.gl;",
        "membar.cta;",
        "fence.acq_rel.gpu;",
        "st.release.gpu.global.u32 [%a], %v;",
        "atom.acq_rel.gpu.global.add.u32 %v, [%a], 1;",
        "red.release.gpu.global.add.u32 [%a], 1;",
        "bar.sync 1, 64;",
        "bar.sync %v, %w;",
        "bar.arrive 1, 64;",
        "bar.warp.sync 255;",
        "bar.warp.sync %v;",
        "barrier.cluster.arrive;",
        "mbarrier.arrive.shared.b64 _, [%a];",
        "invented.instruction %v;",
    ] {
        let info = kernel(instruction);
        assert!(
            info.release_capable && !info.release_sites.is_empty(),
            "{instruction}"
        );
    }
}

#[test]
fn the_order_of_ctas_may_mean_nothing() {
    for (free, body) in [
        (
            true,
            "ld.global.u32 %v, [%a]; st.global.u32 [%a], %v; bar.sync 0; membar.gl;",
        ),
        (
            true,
            "red.global.add.u32 [%a], 1; red.global.add.u32 [%a], %v;",
        ),
        (
            true,
            "atom.shared.add.u32 %v, [%a], 1; st.volatile.shared.u32 [%a], %v;",
        ),
        (
            false,
            "red.global.add.u32 [%a], 1; red.global.max.u32 [%a], %v;",
        ),
        (
            false,
            "red.global.max.s32 [%a], 1; red.global.max.u32 [%a], %v;",
        ),
        (false, "red.global.add.f32 [%a], %v;"),
        (false, "red.global.inc.u32 [%a], %v;"),
        (false, "atom.global.add.u32 %v, [%a], 1;"),
        (false, "ld.relaxed.gpu.global.u32 %v, [%a];"),
        (false, "st.volatile.u32 [%a], %v;"),
        (false, "invented.instruction %v;"),
    ] {
        assert_eq!(kernel(body).order_free, free, "{body}");
    }
}

#[test]
fn accesses_are_counted_by_what_becomes_of_them() {
    let info = kernel(
        ".shared .u32 s; .local .u32 l; ld.param.u64 %a, [a]; ld.u32 %v, [%a]; ld.shared.u32 %v, [s]; ld.u32 %v, [s]; st.local.u32 [l], %v; red.global.add.u32 [%a], 1;",
    );
    assert_eq!((info.accesses, info.checked), (2, 2));
    assert_eq!((info.shared_accesses, info.skipped.shared), (2, 0));
    assert_eq!(info.skipped.private, 2);
    assert_eq!(info.shared_granule_log2, Some(2));
    assert!(info.not_understood.is_empty(), "{:?}", info.not_understood);
}

#[test]
fn what_is_not_modelled_is_reported_by_opcode() {
    let info = kernel(
        "cp.async.ca.shared.global [%v], [%a], 16; cp.async.ca.shared.global [%v], [%a+16], 16; tex.2d.v4.f32.f32 {%v, %v, %v, %v}, [%a, {%v, %v}]; invented %v;",
    );
    assert_eq!(
        info.not_understood,
        [
            "cp.async.ca.shared.global, 2 times, first at PTX line 4",
            "invented at PTX line 4",
            "tex.2d.v4.f32.f32 at PTX line 4"
        ]
    );
}

#[test]
fn matrices_are_accesses_of_their_lines() {
    let info = kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [%w];");
    assert_eq!((info.skipped.shared, info.shared_accesses), (0, 1));
    assert!(info.not_understood.is_empty());
    let info = kernel("wmma.load.c.sync.aligned.row.m16n16k16.global.f16 {%v, %v, %v, %v}, [%a];");
    assert_eq!((info.accesses, info.checked), (1, 1));
    assert!(info.not_understood.is_empty());
    // Rows of another length are not followed.
    let info = kernel("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%w], {%v};");
    assert_eq!((info.skipped.shared, info.shared_accesses), (1, 1));
}

#[test]
fn copies_are_checked_in_fast_mode() {
    let config = Config {
        count_orders: true,
        ..Config::default()
    };
    let text = "cp.async.ca.shared.global [%w], [%a], 16;";
    let info = with(text, &config);
    assert_eq!((info.accesses, info.shared_accesses), (1, 1));
    assert!(info.not_understood.is_empty() && info.beyond_cells);
    assert_eq!(with(text, &Config::default()).not_understood.len(), 1);
}

#[test]
fn the_smallest_element_of_all_kernels_that_share_a_function_is_the_granule() {
    let all = rewritten(
        ".global .u32 g;\n\
         .func f { .reg .u32 %v; ld.global.u32 %v, [g]; ret; }\n\
         .func h { .reg .u32 %v; ld.global.u16 %v, [g]; ret; }\n\
         .entry a { call f; ret; }\n\
         .entry b { .reg .u32 %v; call f; ld.global.u8 %v, [g]; ret; }\n\
         .entry c { call h; ret; }\n\
         .entry d { .reg .u64 %v; ld.global.u64 %v, [g]; ret; }",
    );
    let granules: Vec<u32> = all
        .kernels
        .iter()
        .map(|kernel| kernel.granule_log2)
        .collect();
    assert_eq!(granules, [0, 0, 1, 2]);
}

#[test]
fn the_granule_of_shared_memory_is_chosen_like_that_of_global_memory() {
    let all = rewritten(
        ".extern .shared .b8 buffer[];\n\
         .func f { .reg .u64 %a; .reg .u16 %v; ld.u16 %v, [%a]; ret; }\n\
         .entry a { .reg .u32 %v; ld.shared.u8 %v, [buffer]; st.global.u32 [8], %v; ret; }\n\
         .entry b { .reg .u64 %a; mov.u64 %a, buffer; call f; ret; }\n\
         .entry c { .reg .u64 %a; .reg .u32 %v; ld.u32 %v, [%a]; ret; }",
    );
    let granules: Vec<_> = all
        .kernels
        .iter()
        .map(|kernel| (kernel.granule_log2, kernel.shared_granule_log2))
        .collect();
    // Without shared memory a generic address is none.
    assert_eq!(granules, [(2, Some(0)), (1, Some(1)), (2, None)]);
}

#[test]
fn shared_memory_of_other_ctas_is_checked() {
    let info = kernel(
        "mapa.shared::cluster.u32 %w, %v, 1; ld.shared::cluster.u32 %v, [%w]; st.shared.u32 [%v], %w;",
    );
    assert_eq!((info.shared_accesses, info.skipped.shared), (2, 0));
    assert!(info.clusters && info.not_understood.is_empty());
    let info = kernel("ld.shared.u32 %v, [%w];");
    assert!(!info.clusters);
}

#[test]
fn calls_that_cannot_be_followed_are_reported() {
    let all = rewritten(
        ".func leaf { bar.sync 0; ret; }\n\
         .func taken { .reg .u64 %a; st.global.u32 [%a], 1; call leaf; ret; }\n\
         .global .u64 table[1] = {taken};\n\
         .extern .func somewhere;\n\
         .entry direct { call taken; ret; }\n\
         .func through { .reg .u64 %f; p: .callprototype _; call %f, p; ret; }\n\
         .entry pointer { call through; ret; }\n\
         .entry outside { call somewhere; ret; }\n\
         .entry plain { call leaf; ret; }",
    );
    assert_eq!(
        all.unchecked_functions,
        [("taken".into(), "its address is taken".into())]
    );
    let releases: Vec<&[String]> = all
        .kernels
        .iter()
        .map(|k| k.release_sites.as_slice())
        .collect();
    assert_eq!(
        releases[0],
        ["a barrier below taken, which is left unchecked"]
    );
    assert_eq!(releases[1], ["a call through a pointer in through"]);
    assert_eq!(
        releases[2],
        ["a call of somewhere, which is defined elsewhere"]
    );
    assert!(releases[3].is_empty());
    let unsupported = &all.kernels[1].not_understood;
    assert_eq!(
        unsupported,
        &["the accesses of taken are not checked: its address is taken"]
    );
    assert_eq!((all.kernels[0].accesses, all.kernels[0].checked), (1, 0));
}

#[test]
fn the_programs_own_code_stands_beside_the_checks() {
    let (a, b) = (
        ".visible .entry a(.param .u64 p)\n.maxntid 64\n{ .reg .b64 %p; ld.param.u64 %p, [p]; ld.global.u32 %p, [%p]; ret; }",
        ".entry b { ret; }",
    );
    let text = format!("{}{a}\n{b}\n.entry c {{ ret; }}\n", made::HEADER);
    let (module, _) = ptx::parse(&text);
    let provable = |name: &str| (name != "c").then(|| vec![2]);
    let all = rewrite::rewrite_provable(&module, &Config::default(), &provable);
    assert_eq!(rewrite::erase(&all.text), text);
    assert_eq!([0, 1, 2].map(|n| all.kernels[n].own), [true, true, false]);
    assert_eq!(all.kernels[0].groups.len(), 1);
    // Bounds of its own stay as they are, and without any, no limit of a whole module counts.
    assert!(
        all.text
            .contains(&a.replace("entry a", "entry __cudarun_own_a"))
    );
    assert!(
        all.text
            .contains(".entry __cudarun_own_b .maxnreg 255 { ret; }")
    );
    assert!(!all.text.contains("__cudarun_own_c"));
}

#[test]
fn accesses_share_bits_where_there_are_more_of_them() {
    let load = |n: usize| format!("st.global.u32 [%p+{}], %v;\n", 4 * n);
    let loads: String = (0..130).map(load).collect();
    let text = format!(
        "{}.entry k(.param .u64 a) {{ .reg .b64 %p; .reg .b32 %v; ld.param.u64 %p, [a];\n{loads}ret; }}",
        made::HEADER
    );
    let (module, _) = ptx::parse(&text);
    let provable = |_: &str| Some((0..200).collect());
    let all = rewrite::rewrite_provable(&module, &Config::default(), &provable);
    let groups = &all.kernels[0].groups;
    assert!(groups.len() <= 64, "{}", groups.len());
    assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), 130);
}

#[test]
fn the_hidden_parameter_lies_behind_the_others() {
    let all = rewritten(
        ".entry a { ret; }\n.entry b(.param .u8 x) { ret; }\n.entry c(.param .u64 x, .param .b8 y[9]) { ret; }\n\
         .entry d(.param .b8 x[4092]) { ret; }",
    );
    let offsets: Vec<u32> = all
        .kernels
        .iter()
        .map(|kernel| kernel.param_bytes)
        .collect();
    assert_eq!(offsets, [0, 8, 24, 4096]);
    // Before PTX 8.1 there are 4096 bytes.
    let instrumented: Vec<bool> = all
        .kernels
        .iter()
        .map(|kernel| kernel.instrumented)
        .collect();
    assert_eq!(instrumented, [true, true, true, false]);
    assert!(all.kernels[3].why_not.is_some());
}

#[test]
fn modules_are_left_alone_with_the_reason() {
    let kernel = ".entry k { .reg .u32 %v; st.global.u32 [8], %v; ret; }";
    let header = |version, target, size| {
        format!(".version {version}\n.target {target}\n.address_size {size}\n{kernel}")
    };
    let once = rewrite(
        &ptx::parse(&header("7.0", "sm_70", 64)).0,
        &Config::default(),
    );
    assert!(once.kernels[0].instrumented && once.diagnostics.is_empty());
    for (text, reason) in [
        (header("5.0", "sm_60", 64), "below"),
        (header("7.0", "sm_61\n, debug", 64), "sm_70"),
        (
            header("7.0", "sm_61", 64).replace("ret;", "vote.all.pred %p, %p; ret;"),
            "vote without .sync",
        ),
        (header("7.0", "sm_70", 32), "32-bit"),
        (once.text.clone(), "already"),
        (kernel.replace("%v", "%crc_v"), "already"),
    ] {
        let again = rewrite(&ptx::parse(&text).0, &Config::default());
        assert_eq!(again.text, text);
        assert!(again.sites.is_empty());
        assert!(!again.kernels[0].instrumented);
        let why = again.kernels[0].why_not.clone().unwrap_or_default();
        assert!(why.contains(reason), "{why}");
        assert_eq!(again.diagnostics[0].message, why);
    }
}

#[test]
fn older_targets_are_raised() {
    for target in ["sm_52", "sm_61, debug"] {
        let text = format!(
            "// .target sm_10\n.version 8.0\n.target {target} // as nvcc has it\n.address_size 64\n
             .entry k {{ .reg .u32 %v; shfl.sync.bfly.b32 %v, %v, 1, 31, -1; st.global.u32 [8], %v; ret; }}"
        );
        let raised = rewrite(&ptx::parse(&text).0, &Config::default());
        assert!(raised.kernels[0].instrumented);
        assert_eq!(raised.raised.as_deref(), target.split(',').next());
        assert_eq!(rewrite::erase(&raised.text), text);
        let (again, diagnostics) = ptx::parse(&raised.text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(
            again.target.join(", "),
            target.replace(&target[..5], "sm_70")
        );
    }
}

#[test]
fn sites_have_their_lines_and_inlined_frames() {
    let all = rewritten(
        ".file 1 \"a.cu\"\n.entry k(.param .u64 p) {\n.reg .u64 %a;\n.reg .u32 %v;\n.loc 1 10 3\nld.global.u32 %v,\n  [%a+4];\n.loc 1 20 5, function_name $name, inlined_at 1 10 3\nst.global.v2.u32 [%a], {%v, %v};\nret;\n}\n.section .debug_str {\n$name:\n.b8 102\n.b8 0\n}",
    );
    let [load, store] = all.sites.as_slice() else {
        panic!("{:?}", all.sites)
    };
    assert_eq!((load.id, load.ptx_line, load.bytes), (0, 9, 4));
    assert_eq!(load.text, "ld.global.u32 %v, [%a+4];");
    assert_eq!((load.frames[0].line, load.frames.len()), (10, 1));
    assert_eq!(
        (store.id, store.kind, store.bytes),
        (1, shadow::rule::WEAK_STORE, 8)
    );
    let frames: Vec<_> = store
        .frames
        .iter()
        .map(|f| (f.line, f.function.as_deref()))
        .collect();
    assert_eq!(frames, [(20, Some("f")), (10, None)]);
}

/// `grid.sync()` is known by its shape; whatever differs from it is not taken for one.
#[test]
fn barriers_of_the_grid_are_recognised_with_certainty_or_not_at_all() {
    let text = include_str!("../golden/epoch/grid.ptx");
    let kernel = |text: &str| {
        let (module, diagnostics) = ptx::parse(text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
        rewrite(&module, &Config::default()).kernels.remove(0)
    };
    let known = kernel(text);
    assert!(known.grid_barriers && known.barriers && !known.release_capable);
    assert!(!known.beyond_cells && known.release_sites.is_empty());
    assert_eq!((known.accesses, known.checked), (2, 2));
    for (part, other) in [
        ("atom.add.release", "atom.add.acq_rel"),
        ("atom.add.release", "atom.or.release"),
        ("release.gpu", "release.cta"),
        ("ld.acquire.gpu", "ld.relaxed.gpu"),
        (
            "ld.acquire.gpu.u32 %now, [%ws+4]",
            "ld.acquire.gpu.u32 %now, [%ws+8]",
        ),
        ("%envreg1", "%envreg3"),
        ("mov.u32 %lo, %envreg1", "ld.global.u32 %lo, [%data]"),
        ("-2147483647", "-2147483646"),
        ("%nctaid.z", "%nctaid.y"),
        ("%tid.z", "%tid.y"),
        ("setp.ne.s32 %others", "setp.eq.s32 %others"),
        ("setp.gt.s32 %same", "setp.lt.s32 %same"),
        ("xor.b32 %diff, %now, %old", "xor.b32 %diff, %now, %adds"),
        ("@%same bra spin", "@!%same bra spin"),
        ("@%same bra spin", "@%same bra joined"),
        ("spin:", "spin: st.global.u32 [%data], 3;"),
        ("joined:", "membar.gl; joined:"),
        ("joined:", "joined: st.global.u32 [%data], 3;"),
        (
            "joined:\n    barrier.sync 0;",
            "joined:\n    barrier.sync 0, 64;",
        ),
        ("    st.global.u32 [%data], 1;", "    @%others bra joined;"),
        (
            "    st.global.u32 [%data], 1;",
            "    @%others add.u64 %ws, %ws, 4;",
        ),
    ] {
        assert!(text.contains(part), "{part}");
        let almost = kernel(&text.replace(part, other));
        assert!(!almost.grid_barriers, "{other} for {part}");
        assert!(
            almost.release_capable || almost.beyond_cells,
            "{other} for {part}"
        );
    }
}

#[test]
fn a_module_that_launches_kernels_from_the_device_stays_as_it_is() {
    let declared = |name: &str| {
        format!(
            ".extern .func (.param .b32 r) {name}(.param .b64 a, .param .b64 b);
            .entry k(.param .u64 a) {{ .reg .u64 %a; .reg .u32 %v;
                ld.param.u64 %a, [a]; st.global.u32 [%a], %v; ret; }}"
        )
    };
    for name in [
        "cudaLaunchDevice",
        "cudaLaunchDeviceV2",
        "cudaGetParameterBuffer",
        "cudaGetParameterBufferV2",
    ] {
        let text = declared(name);
        let rewritten = rewritten(&text);
        assert_eq!(rewritten.text, format!("{HEADER}{text}"));
        let kernel = &rewritten.kernels[0];
        let why = kernel.why_not.clone().unwrap_or_default();
        assert!(!kernel.instrumented && why.contains(name), "{why}");
    }
    // The device runtime is more than launches.
    assert!(rewritten(&declared("cudaDeviceGetAttribute")).kernels[0].instrumented);
}

#[test]
fn what_orders_is_counted_with_copies_unless_they_are_not_followed() {
    let copy = "cp.async.bulk.shared::cluster.global";
    let ends = "mbarrier::complete_tx::bytes";
    let waits = "mbarrier.try_wait.shared.b64 %p, [%v], %a;";
    let info = kernel(&format!("{copy}.{ends} [%w], [%a], 64, [%v]; {waits}"));
    assert!(info.release_capable && info.orders_counted, "{info:?}");
    let many = format!("{copy}.{ends}.multicast::cluster [%w], [%a], 64, [%v], 3; {waits}");
    let info = kernel(&many);
    assert!(info.release_capable && !info.orders_counted, "{info:?}");
}

/// The kernels of a module that keep a journal, by name.
fn journaled(body: &str) -> Vec<String> {
    let config = Config {
        journal: true,
        ..Config::default()
    };
    let all = rewritten_with(body, &config).kernels;
    for kernel in all.iter().filter(|kernel| kernel.instrumented) {
        // One that has none says so.
        let said = kernel.not_understood.iter();
        let said = said
            .filter(|line| line.contains("keeps no journal"))
            .count();
        assert_eq!(said, usize::from(!kernel.journaled), "{kernel:?}");
    }
    let those = all.into_iter().filter(|kernel| kernel.journaled);
    those.map(|kernel| kernel.name).collect()
}

#[test]
fn a_journal_is_lost_by_those_alone_who_reach_what_keeps_none() {
    let fence = "fence.acq_rel.gpu; st.global.u32 [%a], %v;";
    let registers = ".reg .u64 %a, %f; .reg .u32 %v;";
    let entry = |name: &str, body: &str| {
        format!(".entry {name}(.param .u64 a) {{ {registers} {fence} {body} ret; }}\n")
    };
    let function = |name: &str, body: &str| format!(".func {name} {{ {registers} {body} ret; }}\n");
    let pointer = "mov.u64 %f, taken; proto: .callprototype _ (); call %f, (), proto;";
    let plain = entry("plain", "");
    assert_eq!(journaled(&plain), ["plain"]);
    // A kernel that calls through a pointer, and the function that it may call.
    let taken = function("taken", "st.global.u32 [%a], %v;");
    let beside = format!("{taken}{plain}{}", entry("calls", pointer));
    assert_eq!(journaled(&beside), ["plain", "calls"]);
    // A pointer may come from there, or go there.
    let elsewhere = ".extern .func elsewhere ();\n";
    assert_eq!(journaled(&format!("{elsewhere}{beside}")), ["plain"]);
    // Something else than a call is done with the address of a kernel, which is checked all the same.
    let kernel = ".global .u64 place[1] = {plain};\n";
    assert_eq!(journaled(&format!("{beside}{kernel}")), ["plain"]);
    // Nobody passes state below a kernel without room for the hidden parameter.
    let without_room =
        format!(".entry large(.param .align 8 .b8 a[4096]) {{ {registers} {pointer} ret; }}\n");
    assert_eq!(journaled(&format!("{beside}{without_room}")), ["plain"]);
    // A function that both the pointer's target and another kernel call.
    let shared = function("shared", "st.global.u32 [%a], %v;");
    let calls_shared = function("taken", "call shared;");
    let both = format!(
        "{shared}{calls_shared}{plain}{}{}",
        entry("calls", pointer),
        entry("shares", "call shared;")
    );
    assert_eq!(journaled(&both), ["plain", "calls", "shares"]);
    assert_eq!(journaled(&format!("{elsewhere}{both}")), ["plain"]);
    // A kernel that has no room for the hidden parameter, and one that calls the same function.
    let full = format!(
        "{shared}{plain}.entry full(.param .align 8 .b8 a[4096]) {{ {registers} {fence} call shared; ret; }}\n{}",
        entry("shares", "call shared;")
    );
    assert_eq!(journaled(&full), ["plain"]);
}
