//! The instruction table, and what it says about qualifiers and operands.

use ptx::ast::{Instruction, Space, Type};
use ptx::isa::{
    self, AtomicOp, BarrierKind, FenceSemantics, MbarrierOp, MemoryKind, Scope, Semantics, SyncOp,
};

fn one(text: &str) -> Instruction {
    let (module, diagnostics) = ptx::parse(&format!(".func f () {{ {text} }}"));
    assert_eq!(diagnostics, [], "{text}");
    let body = module.function("f").unwrap().body.as_ref().unwrap();
    body.instructions().next().unwrap().1.clone()
}

#[test]
fn rows_are_sorted_and_found() {
    assert!(isa::OPCODES.is_sorted_by(|left, right| left.name < right.name));
    for row in isa::OPCODES {
        assert_eq!(isa::lookup(row.name), Some(row));
    }
    assert_eq!(isa::lookup("frob"), None);
}

/// The families counted in real programs, most common first.
#[test]
fn what_real_programs_use_is_known() {
    let families = "ret ld mov st cvta add setp bra mul shl cvt and mad sub shr atom bar not or \
        selp fma div neg xor max membar call shfl abs min rem barrier rcp vote bfi fence sqrt ex2 \
        clz tex brev popc prmt trap griddepcontrol nanosleep bfind redux copysign rsqrt sin cos \
        bmsk exit cp shf wmma madc addc subc activemask match mbarrier lg2 sust mapa dp4a lop3 \
        vabsdiff4 red";
    for family in families.split_whitespace() {
        assert!(isa::lookup(family).is_some(), "{family}");
    }
}

#[test]
fn strength_and_scope_of_accesses() {
    let strength = |text: &str| {
        let op = isa::memory(&one(text)).unwrap();
        (op.kind, op.space, op.sem, op.scope)
    };
    use MemoryKind::{Load, Reduction, Rmw, Store};
    use Space::{Generic, Global, Shared};
    for (text, expected) in [
        (
            "ld.u32 %r1, [%rd1];",
            (Load, Generic, Semantics::Weak, Scope::Cta),
        ),
        (
            "ld.weak.global.u32 %r1, [%rd1];",
            (Load, Global, Semantics::Weak, Scope::Cta),
        ),
        (
            "ld.volatile.shared.u32 %r1, [%r1];",
            (Load, Shared, Semantics::Volatile, Scope::Sys),
        ),
        (
            "ld.acquire.gpu.u32 %r1, [%rd1];",
            (Load, Generic, Semantics::Acquire, Scope::Gpu),
        ),
        (
            "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];",
            (Load, Global, Semantics::Mmio, Scope::Sys),
        ),
        (
            "st.relaxed.cluster.global.u32 [%rd1], 1;",
            (Store, Global, Semantics::Relaxed, Scope::Cluster),
        ),
        (
            "st.release.sys.u32 [%rd1], 1;",
            (Store, Generic, Semantics::Release, Scope::Sys),
        ),
        (
            "atom.global.add.u32 %r1, [%rd1], 1;",
            (Rmw, Global, Semantics::Relaxed, Scope::Gpu),
        ),
        (
            "atom.cta.add.u32 %r1, [%rd1], 1;",
            (Rmw, Generic, Semantics::Relaxed, Scope::Cta),
        ),
        (
            "atom.add.acq_rel.sys.u32 %r1, [%rd1], 1;",
            (Rmw, Generic, Semantics::AcqRel, Scope::Sys),
        ),
        (
            "red.shared.add.u32 [%r1], 1;",
            (Reduction, Shared, Semantics::Relaxed, Scope::Gpu),
        ),
        (
            "red.release.gpu.global.add.u32 [%rd1], 1;",
            (Reduction, Global, Semantics::Release, Scope::Gpu),
        ),
    ] {
        assert_eq!(strength(text), expected, "{text}");
    }
}

#[test]
fn width_address_and_operation() {
    let op = isa::memory(&one("ld.global.nc.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];")).unwrap();
    assert_eq!(
        (op.ty, op.vector, op.bytes_per_element, op.bytes()),
        (Type::F32, 4, 4, 16)
    );
    assert_eq!(
        (op.address, op.nc, op.is_write(), op.is_plain()),
        (1, true, false, true)
    );
    let op = isa::memory(&one("st.v2.u16 [%rd1], {%h1, %h2};")).unwrap();
    assert_eq!(
        (op.bytes(), op.address, op.nc, op.is_write()),
        (4, 0, false, true)
    );
    let op = isa::memory(&one("atom.global.cas.b64 %rd1, [%rd2], %rd3, %rd4;")).unwrap();
    assert_eq!((op.op, op.bytes(), op.address), (Some(AtomicOp::Cas), 8, 1));
    let op = isa::memory(&one(
        "atom.global.v4.f32.add {%f1,%f2,%f3,%f4}, [%rd2], {%f1,%f2,%f3,%f4};",
    ));
    assert_eq!(
        op.map(|op| (op.op, op.bytes())),
        Some((Some(AtomicOp::Add), 16))
    );
    let op = isa::memory(&one("cp.async.cg.shared.global [%r1], [%rd1], 16;")).unwrap();
    assert_eq!(
        (op.kind, op.space, op.address),
        (MemoryKind::AsyncCopy, Space::Shared, 0)
    );
    assert_eq!((op.source, op.bytes()), (Some((1, Space::Global)), 16));
    let op = isa::memory(&one(
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;",
    ));
    let op = op.unwrap();
    assert_eq!(
        (op.kind, op.space, op.bytes()),
        (MemoryKind::BulkCopy, Space::Global, 0)
    );
    assert_eq!(op.source, Some((1, Space::Shared)));
    for (text, kind) in [
        (
            "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}];",
            MemoryKind::Texture,
        ),
        (
            "suld.b.2d.b32.trap {%r1}, [%rd1, {%r1, %r2}];",
            MemoryKind::SurfaceLoad,
        ),
        (
            "sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r1};",
            MemoryKind::SurfaceStore,
        ),
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1], 16;",
            MemoryKind::MatrixLoad,
        ),
        (
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
            MemoryKind::MatrixStore,
        ),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], 1, [%r2];",
            MemoryKind::AsyncStore,
        ),
        (
            "multimem.red.relaxed.gpu.global.add.u32 [%rd1], 1;",
            MemoryKind::Opaque,
        ),
    ] {
        let op = isa::memory(&one(text)).unwrap();
        assert_eq!((op.kind, op.is_plain()), (kind, false), "{text}");
    }
    for text in [
        "cp.async.commit_group;",
        "cp.async.wait_group 0;",
        "prefetch.global.L2 [%rd1];",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1}, {%r1}, {%r2}, {%f1};",
        "mbarrier.init.shared.b64 [%r1], 1;",
        "add.u32 %r1, %r2, %r3;",
        "bar.sync 0;",
    ] {
        assert_eq!(isa::memory(&one(text)), None, "{text}");
    }
}

#[test]
fn fences_and_barriers() {
    let fence = |sem, scope| SyncOp::Fence {
        sem,
        scope,
        proxy: false,
    };
    let barrier = |kind, id, count, aligned| SyncOp::CtaBarrier {
        kind,
        id,
        count,
        aligned,
    };
    let mbarrier = |op, address| SyncOp::Mbarrier {
        op,
        address,
        relaxed: false,
        scope: Scope::Cta,
    };
    for (text, expected) in [
        ("membar.cta;", fence(FenceSemantics::Sc, Scope::Cta)),
        ("membar.gl;", fence(FenceSemantics::Sc, Scope::Gpu)),
        ("membar.sys;", fence(FenceSemantics::Sc, Scope::Sys)),
        (
            "fence.acq_rel.gpu;",
            fence(FenceSemantics::AcqRel, Scope::Gpu),
        ),
        (
            "fence.sc.cluster;",
            fence(FenceSemantics::Sc, Scope::Cluster),
        ),
        (
            "fence.acquire.cta;",
            fence(FenceSemantics::Acquire, Scope::Cta),
        ),
        ("bar.sync 0;", barrier(BarrierKind::Sync, 0, None, true)),
        ("bar.cta.sync 0;", barrier(BarrierKind::Sync, 0, None, true)),
        (
            "bar.sync %r1, %r2;",
            barrier(BarrierKind::Sync, 0, Some(1), true),
        ),
        (
            "bar.arrive 1, 64;",
            barrier(BarrierKind::Arrive, 0, Some(1), true),
        ),
        (
            "barrier.sync 0;",
            barrier(BarrierKind::Sync, 0, None, false),
        ),
        (
            "barrier.sync.aligned 0, 32;",
            barrier(BarrierKind::Sync, 0, Some(1), true),
        ),
        (
            "bar.red.popc.u32 %r1, 0, %p1;",
            barrier(BarrierKind::Red, 1, None, true),
        ),
        (
            "bar.red.or.pred %p1, 0, 64, !%p2;",
            barrier(BarrierKind::Red, 1, Some(2), true),
        ),
        ("bar.warp.sync -1;", SyncOp::WarpBarrier { mask: 0 }),
        (
            "barrier.cluster.arrive;",
            SyncOp::ClusterBarrier {
                arrive: true,
                relaxed: false,
            },
        ),
        (
            "barrier.cluster.wait.aligned;",
            SyncOp::ClusterBarrier {
                arrive: false,
                relaxed: false,
            },
        ),
        (
            "mbarrier.arrive.shared.b64 %rd1, [%r1];",
            mbarrier(MbarrierOp::Arrive, 1),
        ),
        (
            "mbarrier.init.shared.b64 [%r1], 1;",
            mbarrier(MbarrierOp::Init, 0),
        ),
        (
            "cp.async.mbarrier.arrive.shared.b64 [%r1];",
            mbarrier(MbarrierOp::CopyArrive, 0),
        ),
        ("cp.async.commit_group;", SyncOp::CommitGroup),
        ("cp.async.wait_all;", SyncOp::WaitGroup),
        (
            "griddepcontrol.wait;",
            SyncOp::GridDependency { wait: true },
        ),
    ] {
        assert_eq!(isa::sync(&one(text)), Some(expected), "{text}");
    }
    for text in [
        "ld.acquire.gpu.u32 %r1, [%rd1];",
        "vote.sync.any.pred %p1, %p2, -1;",
    ] {
        assert_eq!(isa::sync(&one(text)), None, "{text}");
    }
}

/// (text, publishes, learns): beyond full CTA and full warp barriers.
#[test]
fn who_can_order_threads() {
    for (text, release, acquire) in [
        ("bar.sync 0;", false, false),
        ("bar.sync 3;", false, false),
        ("bar.sync 1, 64;", true, true),
        ("bar.arrive 1, 64;", true, false),
        ("bar.red.or.pred %p1, 0, %p2;", false, false),
        ("bar.warp.sync 0xffffffff;", false, false),
        ("bar.warp.sync 0xff;", true, true),
        ("bar.warp.sync %r1;", true, true),
        ("membar.cta;", true, true),
        ("fence.acquire.gpu;", false, true),
        ("fence.release.gpu;", true, false),
        ("fence.proxy.async;", false, false),
        ("st.release.gpu.u32 [%rd1], 1;", true, false),
        ("ld.acquire.gpu.u32 %r1, [%rd1];", false, true),
        ("atom.acq_rel.gpu.add.u32 %r1, [%rd1], 1;", true, true),
        ("atom.add.u32 %r1, [%rd1], 1;", false, false),
        ("ld.volatile.u32 %r1, [%rd1];", false, false),
        ("barrier.cluster.arrive;", true, false),
        ("barrier.cluster.arrive.relaxed;", false, false),
        ("barrier.cluster.wait;", false, true),
        ("mbarrier.arrive.shared.b64 _, [%r1];", true, false),
        (
            "mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;",
            false,
            true,
        ),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", false, false),
    ] {
        let instruction = one(text);
        assert_eq!(isa::sync::release_capable(&instruction), release, "{text}");
        assert_eq!(isa::sync::acquire_capable(&instruction), acquire, "{text}");
    }
}

#[test]
fn registers_written_and_read() {
    for (text, written, read) in [
        ("add.u32 %r1, %r2, %r3;", "%r1", "%r2 %r3"),
        (
            "@%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+4];",
            "%r1 %r2",
            "%p1 %rd1",
        ),
        ("st.global.v2.u32 [%rd1], {%r1, %r2};", "", "%rd1 %r1 %r2"),
        ("atom.global.add.u32 _, [%rd1], %r1;", "", "%rd1 %r1"),
        ("red.global.add.u32 [%rd1], %r1;", "", "%rd1 %r1"),
        (
            "shfl.sync.up.b32 %r1|%p1, %r2, %r3, 0, -1;",
            "%r1 %p1",
            "%r2 %r3",
        ),
        (
            "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;",
            "%p1 %p2",
            "%r1 %r2 %p3",
        ),
        ("mov.b64 {%r1, %r2}, %rd1;", "%r1 %r2", "%rd1"),
        ("call (r), %rd1, (a, b), proto;", "r", "%rd1 a b proto"),
        ("call f, (a);", "", "f a"),
        ("bar.sync %r1, %r2;", "", "%r1 %r2"),
        ("bar.red.popc.u32 %r1, %r2, %p1;", "%r1", "%r2 %p1"),
        ("mbarrier.arrive.shared.b64 %rd1, [%r1];", "%rd1", "%r1"),
        ("mbarrier.init.shared.b64 [%r1], %r2;", "", "%r1 %r2"),
        (
            "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd1], {%f1}, %r1;",
            "",
            "%rd1 %f1 %r1",
        ),
        (
            "sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};",
            "",
            "%rd1 %r1 %r2",
        ),
        (
            "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}];",
            "%f1 %f2 %f3 %f4",
            "%rd1 %r1",
        ),
        ("bra target;", "", "target"),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;",
            "%f1",
            "%f1 %rd1 %rd2",
        ),
    ] {
        let instruction = one(text);
        let mut names = Vec::new();
        isa::register_writes(&instruction, |name| names.push(name));
        assert_eq!(names.join(" "), written, "written by {text}");
        names.clear();
        isa::register_reads(&instruction, |name| names.push(name));
        assert_eq!(names.join(" "), read, "read by {text}");
    }
}
