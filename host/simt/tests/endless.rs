//! Launches that nobody can end fail, and say who waits for what. Those that somebody may end go on.

use crate::common::{kernel, load};
use os::mem::Mapping;
use simt::{Launch, LaunchError, Limits, On, Schedule, Threads, Waiting};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Looks for endless loops, and gives up after a while.
fn launch(grid: u32, block: u32, params: Vec<u8>) -> Launch {
    Launch {
        limits: Limits {
            endless: true,
            timeout: Some(Duration::from_secs(20)),
            ..Limits::default()
        },
        ..Launch::new([grid, 1, 1], [block, 1, 1], params)
    }
}

const SCHEDULES: [Schedule; 3] = [
    Schedule::RoundRobin,
    Schedule::Seeded(3),
    Schedule::Seeded(8),
];

/// Runs a body that is stuck under several schedules, and shows who waits.
fn stuck(grid: u32, block: u32, body: &str) -> Vec<Waiting> {
    let mut last = Vec::new();
    for schedule in SCHEDULES {
        let with = |params| Launch {
            schedule,
            ..launch(grid, block, params)
        };
        match load(&kernel(body)).run_with(64, with) {
            Err(LaunchError::Deadlock { waiting, .. }) => last = waiting,
            other => panic!("{schedule:?}: {other:?}"),
        }
    }
    last
}

/// Runs a body that ends under several schedules.
fn ends(grid: u32, block: u32, body: &str) {
    for schedule in SCHEDULES {
        let with = |params| Launch {
            schedule,
            ..launch(grid, block, params)
        };
        let ran = load(&kernel(body)).run_with(64, with);
        assert!(ran.is_ok(), "{schedule:?}: {ran:?}");
    }
}

/// Runs a body of which nothing can be proved.
fn times_out(body: &str) {
    let with = |params| Launch {
        limits: Limits {
            max_warp_instructions: Some(3_000_000),
            ..launch(1, 1, Vec::new()).limits
        },
        ..launch(2, 32, params)
    };
    let ran = load(&kernel(body)).run_with(64, with);
    assert!(matches!(ran, Err(LaunchError::Timeout { .. })), "{ran:?}");
}

const FOREVER: &str =
    "spin: ld.acquire.gpu.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin; ret;";

#[test]
fn a_flag_that_nobody_sets() {
    let waiting = stuck(3, 40, FOREVER);
    assert_eq!(waiting.len(), 6, "{waiting:?}");
    let On::Memory { bytes, value, .. } = waiting[0].on else {
        panic!("{waiting:?}");
    };
    assert_eq!((bytes, value, waiting[1].lanes), (4, 0, 0xff));
    assert_eq!(waiting[0].at.line, 11, "{waiting:?}");
}

#[test]
fn every_way_to_wait_without_an_effect() {
    for body in [
        // An atomic that adds nothing, a swap that fails, an exchange of what is there.
        "again: atom.global.add.u32 %r0, [%out], 0; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
        "again: atom.global.cas.b32 %r0, [%out], 1, 2; setp.ne.u32 %p1, %r0, 1; @%p1 bra again; ret;",
        "again: atom.global.exch.b32 %r0, [%out], 0; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
        // Stores what is there, and sleeps ever longer, up to a limit.
        "mov.u32 %r1, 8; again: st.global.u32 [%mine], 0; nanosleep.u32 %r1; shl.b32 %r1, %r1, 1; min.u32 %r1, %r1, 4096;
         ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
        // No look at memory at all, as compilers make of a flag that is not volatile.
        "again: bra again;",
        // Counts, but does nothing with the number before the loop ends.
        "mov.u64 %d0, 0; again: add.cc.u32 %r1, %r1, 1; addc.u32 %r2, %r2, 0; add.u64 %d0, %d0, 1;
         ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra again;
         st.global.u64 [%mine], %d0; ret;",
        // Sleeps by the clock.
        "mov.u64 %d0, %globaltimer; again: ld.volatile.global.u32 %r0, [%out]; setp.ne.u32 %p1, %r0, 0; @%p1 bra done;
         mov.u64 %d1, %globaltimer; sub.u64 %d1, %d1, %d0; setp.gt.u64 %p2, %d1, 1000; @%p2 bra long;
         bra again; long: nanosleep.u32 100; bra again; done: ret;",
        // Looks through a list of flags.
        "again: mov.u32 %r1, 0; next: mad.wide.u32 %d0, %r1, 4, %out; ld.volatile.global.u32 %r0, [%d0];
         setp.ne.u32 %p1, %r0, 0; @%p1 ret; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 8; @%p2 bra next; bra again;",
        // One lane looks, and tells the others.
        "again: setp.ne.u32 %p1, %t, 0; @%p1 bra join; ld.volatile.global.u32 %r0, [%out];
         join: shfl.sync.idx.b32 %r0, %r0, 0, 31, -1; setp.eq.u32 %p2, %r0, 0; @%p2 bra again; ret;",
        // Lanes go round in different loops, and others wait for them.
        "setp.lt.u32 %p0, %t, 9; @%p0 bra low; setp.lt.u32 %p0, %t, 20; @%p0 bra high; bar.warp.sync -1; ret;
         low: ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra low; ret;
         high: atom.global.or.b32 %r0, [%out], 0; xor.b32 %r1, %r1, 1; setp.eq.u32 %p1, %r0, 0; @%p1 bra high; ret;",
    ] {
        stuck(2, 32, body);
    }
}

thread_local! {
    /// How often a launch may still ask whether to go on.
    static ASKS: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn who_is_interrupted_is_not_stuck() {
    let go_on = |_| {
        ASKS.set(ASKS.get().saturating_sub(1));
        ASKS.get() > 0
    };
    let body = "again: mov.u64 %d0, %clock64; setp.ne.u64 %p0, %d0, 0; @%p0 bra again; ret;";
    // The first look for endless loops is after some 260 questions, and asks itself.
    for asks in 200..600 {
        ASKS.set(asks);
        let with = |params| Launch {
            limits: Limits {
                go_on: Some(go_on),
                ..launch(1, 1, Vec::new()).limits
            },
            ..launch(1, 1, params)
        };
        let ran = load(&kernel(body)).run_with(64, with);
        let interrupted = matches!(ran, Err(LaunchError::Interrupted { .. }));
        assert!(interrupted, "{asks}: {ran:?}");
    }
}

#[test]
fn a_barrier_of_the_grid_that_a_block_skips() {
    // Block 1 has gone; the others count to 4 and wait.
    let with = |params| launch(4, 33, params);
    let body =
        "setp.eq.u32 %p0, %b, 1; @%p0 ret; bar.sync 0; setp.ne.u32 %p0, %t, 0; @%p0 bra meet;
         atom.release.gpu.global.add.u32 %r0, [%out], 1;
         spin: ld.acquire.gpu.global.u32 %r0, [%out]; setp.lt.u32 %p1, %r0, 4; @%p1 bra spin;
         meet: bar.sync 0; ret;";
    let error = load(&kernel(body)).run_with(64, with).unwrap_err();
    let LaunchError::Deadlock {
        waiting, absent, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((absent.exited, absent.unstarted, absent.threads), (1, 0, 0));
    assert_eq!(absent.first, [[1, 0, 0]]);
    let barrier = On::Barrier {
        id: 0,
        arrived: 32,
        expected: 33,
    };
    assert_eq!(
        waiting.iter().filter(|group| group.on == barrier).count(),
        6
    );
    let spins = |group: &&Waiting| matches!(group.on, On::Memory { value: 3, .. });
    assert_eq!(waiting.iter().filter(spins).count(), 3);
}

#[test]
fn blocks_that_have_no_room() {
    // More blocks than fit, all of which count.
    let body = "atom.global.add.u32 %r0, [%out], 1;
         spin: ld.volatile.global.u32 %r0, [%out]; setp.lt.u32 %p1, %r0, 5000; @%p1 bra spin; ret;";
    let with = |params| Launch {
        dynamic_shared: 100 << 10,
        ..launch(5000, 1, params)
    };
    let error = load(&kernel(body)).run_with(64, with).unwrap_err();
    let LaunchError::Deadlock { absent, .. } = error else {
        panic!("{error}");
    };
    assert!(absent.unstarted > 4000 && absent.exited == 0, "{absent:?}");
}

#[test]
fn an_mbarrier_whose_bytes_never_come() {
    let body = ".shared .align 8 .b64 bar; setp.ne.u32 %p0, %t, 0; @%p0 bra met;
         mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 %d0, [bar], 512;
         met: bar.sync 0;
         spin: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra spin; ret;";
    let waiting = stuck(1, 64, body);
    let on = On::Mbarrier {
        address: 0,
        arrivals: 0,
        bytes: 512,
    };
    assert!(waiting.iter().all(|group| group.on == on), "{waiting:?}");
}

#[test]
fn waits_that_end() {
    for body in [
        // A lock with a long critical section.
        "again: atom.global.cas.b32 %r0, [%out], 0, 1; setp.ne.u32 %p1, %r0, 0; @%p1 bra again;
         mov.u32 %r1, 0; work: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 20000; @%p2 bra work;
         ld.volatile.global.u32 %r2, [%out+8]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%out+8], %r2;
         membar.gl; atom.global.exch.b32 %r0, [%out], 0; ret;",
        // One thread computes long before it sets the flag.
        "mov.u32 %r1, 0; setp.ne.u32 %p0, %g, 7; @%p0 bra spin;
         work: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 300000; @%p2 bra work; st.volatile.global.u32 [%out], 1; ret;
         spin: ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin; ret;",
        // A bound of rounds, and one of time.
        "mov.u32 %r1, 0; again: add.u32 %r1, %r1, 1; setp.gt.u32 %p0, %r1, 400000; @%p0 ret;
         ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
        "mov.u64 %d0, %clock64; again: mov.u64 %d1, %clock64; sub.u64 %d1, %d1, %d0; setp.gt.u64 %p0, %d1, 3000000;
         @%p0 ret; ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
        // The number that is counted chooses where to look.
        "mov.u32 %r1, 0; again: add.u32 %r1, %r1, 1; shr.u32 %r2, %r1, 15; and.b32 %r2, %r2, 7;
         setp.eq.u32 %p2, %r2, 5; @%p2 st.volatile.global.u32 [%out], 1;
         ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
        // A lane that sleeps holds what the others wait for.
        "setp.ne.u32 %p0, %t, 0; @%p0 bra spin; mov.u32 %r1, 0; nap: nanosleep.u32 1000000; add.u32 %r1, %r1, 1;
         setp.lt.u32 %p2, %r1, 300; @%p2 bra nap; st.volatile.global.u32 [%out], 1; ret;
         spin: ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin; ret;",
    ] {
        ends(2, 32, body);
    }
}

#[test]
fn memory_that_the_host_may_write() {
    let mut rig = load(&kernel(
        "ld.global.u64 %d0, [%out]; spin: ld.volatile.global.u32 %r0, [%d0]; setp.eq.u32 %p1, %r0, 0;
         @%p1 bra spin; st.global.u64 [%out], 5; ret;",
    ));
    let host = Arc::new(Mapping::zeroed(4096).unwrap());
    let address = host.address();
    let memory = rig.device.memory_mut();
    memory.attach(Arc::clone(&host), address, 4096).unwrap();
    let out = memory.alloc(8).unwrap();
    memory.write(out, &address.to_le_bytes()).unwrap();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        host.words()[0].store(1, Ordering::Release);
    });
    let launch = launch(1, 32, out.to_le_bytes().to_vec());
    let ran = rig.device.launch(rig.module, "k", &launch);
    assert!(ran.is_ok(), "{ran:?}");
    writer.join().unwrap();
}

#[test]
fn what_is_not_proved_runs_out_of_time() {
    // Asks who is together, and decides by it.
    times_out(
        "again: activemask.b32 %r1; ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra again; ret;",
    );
    // Changes memory for ever.
    times_out("again: atom.global.add.u32 %r0, [%out], 1; bra again;");
    // Without being asked, nobody looks.
    let mut asked = launch(1, 32, Vec::new());
    asked.limits.endless = false;
    asked.limits.max_warp_instructions = Some(1_000_000);
    let ran = load(&kernel(FOREVER)).run_with(64, |params| Launch { params, ..asked });
    assert!(matches!(ran, Err(LaunchError::Timeout { .. })), "{ran:?}");
}

#[test]
fn several_threads_of_the_host() {
    let with = |params| Launch {
        threads: Threads {
            most: 3,
            after: 1 << 8,
            ..Threads::default()
        },
        ..launch(90, 64, params)
    };
    for body in [
        "again: add.u32 %r0, %r0, 1; bra again;",
        "setp.ne.u32 %p0, %b, 80; @%p0 ret; again: bra again;",
    ] {
        let ran = load(&kernel(body)).run_with(64, with);
        assert!(matches!(ran, Err(LaunchError::Deadlock { .. })), "{ran:?}");
    }
    // The flag is set by another block, at the end of much work.
    let body = "setp.eq.u32 %p0, %b, 89; @%p0 bra set;
         spin: ld.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin; ret;
         set: mov.u32 %r1, 0; work: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 300000; @%p2 bra work;
         st.global.u32 [%out], 1; ret;";
    let ran = load(&kernel(body)).run_with(64, with);
    assert!(ran.is_ok(), "{ran:?}");
}

#[test]
fn inserted_code_is_passed_over() {
    // A tool counts looks in memory of its own, which has no end.
    let counts = "atom.global.add.u32 %r9, [%out+256], 1;";
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{}",
        kernel(&format!(
            "spin: {counts} ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin; ret;"
        ))
    );
    let (module, _) = ptx::parse(&text);
    let at = text.find(counts).unwrap() as u32;
    let counting = at..at + counts.len() as u32;
    for (inserted, proved) in [(Some(counting), true), (None, false)] {
        let inserted = Vec::from_iter(inserted);
        let mut device = simt::Device::new(simt::DeviceConfig::default()).unwrap();
        let image = simt::Image::new(module.clone()).with_insertions(inserted);
        let id = device.load_image(&Arc::new(image)).unwrap();
        let out = device.memory_mut().alloc(512).unwrap();
        let mut launch = launch(2, 32, out.to_le_bytes().to_vec());
        launch.limits.max_warp_instructions = Some(2_000_000);
        let ran = device.launch(id, "k", &launch);
        let stuck = matches!(ran, Err(LaunchError::Deadlock { .. }));
        assert_eq!(stuck, proved, "{ran:?}");
    }
}
