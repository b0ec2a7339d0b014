//! The order of streams against reachability in a graph of all that was asked for, and footprints
//! against a list of bytes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use shadow::streams::{Footprint, Stream, StreamKind, StreamOrder, Touch, Turn};

const EVENTS: u64 = 2;
const STREAMS: [Stream; 4] = [
    stream(0, StreamKind::Legacy),
    stream(1, StreamKind::Blocking),
    stream(2, StreamKind::Blocking),
    stream(3, StreamKind::NonBlocking),
];

const fn stream(id: u64, kind: StreamKind) -> Stream {
    Stream {
        id,
        context: 0,
        kind,
    }
}

/// What a program asks for; streams and events by number.
#[derive(Clone, Copy, Debug)]
enum Call {
    Work(usize),
    /// A launch; it may begin before the one directly ahead of it has ended.
    /// Into a stream; whether it may begin early, and lets the one behind it begin before it waits.
    Launch(usize, bool, bool),
    Record(u64, usize),
    Wait(usize, u64),
    HostStream(usize),
    HostEvent(u64),
    /// The host asks once whether a stream has done its work.
    AskStream(usize),
    /// It asks until an event has been reached.
    AskEvent(u64),
    HostAll,
    /// A graph of four nodes: one, two that wait for it, and one that waits for the first of these.
    Graph(usize),
}

fn call() -> impl Strategy<Value = Call> {
    let (of, event) = (0..STREAMS.len(), 0..EVENTS);
    prop_oneof![
        4 => of.clone().prop_map(Call::Work),
        4 => (of.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(of, early, passes_on)| Call::Launch(of, early, passes_on)),
        2 => (event.clone(), of.clone()).prop_map(|(event, of)| Call::Record(event, of)),
        2 => (of.clone(), event.clone()).prop_map(|(of, event)| Call::Wait(of, event)),
        1 => of.clone().prop_map(Call::HostStream),
        1 => event.clone().prop_map(Call::HostEvent),
        3 => of.clone().prop_map(Call::AskStream),
        1 => event.prop_map(Call::AskEvent),
        1 => Just(Call::HostAll),
        1 => of.prop_map(Call::Graph),
    ]
}

/// All that was asked for, each with what it comes directly after.
#[derive(Default)]
struct Asked {
    /// The stream of each, or none for the host.
    streams: Vec<Option<usize>>,
    after: Vec<BTreeSet<usize>>,
    recorded: [Option<usize>; EVENTS as usize],
    /// The last thing that each stream was given, if that is a launch.
    launched: [Option<usize>; STREAMS.len()],
    /// What comes before a launch that the given one lets begin, apart from the work of other streams.
    ahead: BTreeMap<usize, BTreeSet<usize>>,
    /// What each stream was busy with when it was last asked.
    busy: [BTreeSet<usize>; STREAMS.len()],
    /// Of the host's calls, those that each of its threads knows of; without any, all know of all.
    seen: BTreeMap<u64, BTreeSet<usize>>,
    thread: u64,
}

impl Asked {
    fn add(&mut self, stream: Option<usize>, after: BTreeSet<usize>) -> usize {
        if let Some(launched) = stream.and_then(|stream| self.launched.get_mut(stream)) {
            *launched = None;
        }
        self.streams.push(stream);
        self.after.push(after);
        let node = self.streams.len() - 1;
        if let (None, Some(seen)) = (stream, self.seen.get_mut(&self.thread)) {
            seen.insert(node);
        }
        node
    }

    /// A thread calls. Whoever has made it knew of all that had been done.
    fn by(&mut self, thread: u64) {
        let host = self.streams.iter().enumerate();
        let host = host.filter(|(_, stream)| stream.is_none()).map(|(n, _)| n);
        self.seen.entry(thread).or_insert_with(|| host.collect());
        self.thread = thread;
    }

    /// A thread has ended, and the oldest one knows what it knew.
    fn ended(&mut self, thread: u64) {
        let gone = self.seen.remove(&thread).unwrap_or_default();
        if let Some((_, oldest)) = self.seen.range_mut(..thread).next() {
            oldest.extend(&gone);
        }
    }

    fn of(&self, wanted: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let all = self.streams.iter().enumerate();
        all.filter(|(_, stream)| stream.is_some_and(&wanted))
            .map(|(n, _)| n)
            .collect()
    }

    /// What comes directly before anything that a stream is given now: what it was given, what the
    /// host waited for, and the legacy stream's work, or for that one the blocking streams'.
    fn before(&self, of: usize) -> BTreeSet<usize> {
        let host = self.streams.iter().enumerate();
        let host = host.filter(|(_, stream)| stream.is_none()).map(|(n, _)| n);
        let seen = self.seen.get(&self.thread);
        let host = host.filter(|n| seen.is_none_or(|seen| seen.contains(n)));
        let kind = STREAMS[of].kind;
        let goes = |other: usize| match (kind, STREAMS[other].kind) {
            (StreamKind::Legacy, StreamKind::Blocking)
            | (StreamKind::Blocking, StreamKind::Legacy) => true,
            _ => other == of,
        };
        self.of(goes).into_iter().chain(host).collect()
    }

    /// What a stream has been given.
    fn given(&self, of: usize) -> BTreeSet<usize> {
        match STREAMS[of].kind {
            StreamKind::Legacy => self.before(of),
            _ => self.of(|other| other == of),
        }
    }

    /// Whether the host has waited for something.
    fn is_known(&self, node: usize) -> bool {
        let mut host = (0..self.streams.len()).filter(|&n| self.streams[n].is_none());
        host.any(|n| self.comes_after(n, node))
    }

    fn comes_after(&self, later: usize, earlier: usize) -> bool {
        self.is_behind(&self.after[later], earlier)
    }

    /// Whether what comes directly after `after` comes after `earlier`.
    fn is_behind(&self, after: &BTreeSet<usize>, earlier: usize) -> bool {
        let mut next: Vec<usize> = after.iter().copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(one) = next.pop() {
            if one == earlier {
                return true;
            }
            if seen.insert(one) {
                next.extend(&self.after[one]);
            }
        }
        false
    }
}

/// How one piece of work follows another one.
type Follows = fn(&Turn, &Turn) -> bool;

fn ask(
    order: &mut StreamOrder,
    asked: &mut Asked,
    work: &mut Vec<(usize, Turn)>,
    call: Call,
    follows: Follows,
) {
    match call {
        Call::Work(of) => {
            let node = asked.add(Some(of), asked.before(of));
            work.push((node, order.enter(&STREAMS[of])));
        }
        Call::Launch(of, early, passes_on) => {
            let ahead = asked.launched[of].filter(|_| early);
            let before = asked.before(of);
            let (turn, before_waiting) = order.launch(&STREAMS[of], early);
            assert_eq!(before_waiting.is_some(), ahead.is_some());
            let mut ahead_of_next = before.clone();
            if let (Some(ahead), Some(early)) = (ahead, before_waiting) {
                let others = before.iter().filter(|&&n| asked.streams[n] != Some(of));
                let after: BTreeSet<usize> = others.chain(&asked.ahead[&ahead]).copied().collect();
                for (node, other) in work.iter() {
                    assert_eq!(follows(&early, other), asked.is_behind(&after, *node));
                }
                if passes_on {
                    order.passes_on(&early);
                    ahead_of_next = after;
                }
            }
            let node = asked.add(Some(of), before);
            asked.ahead.insert(node, ahead_of_next);
            asked.launched[of] = Some(node);
            work.push((node, turn));
        }
        Call::Record(event, of) => {
            let node = asked.add(Some(of), asked.before(of));
            asked.recorded[event as usize] = Some(node);
            order.mark(event, &STREAMS[of]);
        }
        Call::Wait(of, event) => {
            let recorded = asked.recorded[event as usize];
            let here = asked.before(of);
            let is_past = recorded.is_some_and(|recorded| {
                let ahead = [recorded].into();
                let mut work = work
                    .iter()
                    .filter(|(node, _)| asked.is_behind(&ahead, *node));
                work.all(|(node, _)| asked.is_known(*node) || asked.is_behind(&here, *node))
            });
            assert_eq!(order.is_past(&STREAMS[of], event), is_past);
            if let Some(recorded) = recorded {
                let mut after = asked.before(of);
                after.insert(recorded);
                asked.add(Some(of), after);
            }
            order.wait(&STREAMS[of], event);
        }
        Call::HostStream(of) => {
            let given = asked.given(of);
            asked.add(None, given);
            order.host_waits(&STREAMS[of]);
        }
        Call::HostEvent(event) => {
            asked.add(None, asked.recorded[event as usize].into_iter().collect());
            order.host_waits_for(event);
        }
        Call::AskStream(of) => {
            let given = asked.given(of);
            let mut left = work
                .iter()
                .filter(|(node, _)| asked.is_behind(&given, *node));
            let is_done = left
                .all(|(node, _)| asked.is_known(*node) || asked.is_behind(&asked.busy[of], *node));
            assert_eq!(order.is_done(&STREAMS[of]), is_done);
            match is_done {
                true => drop(asked.add(None, given)),
                false => asked.busy[of] = given,
            }
        }
        Call::AskEvent(event) => {
            asked.add(None, asked.recorded[event as usize].into_iter().collect());
            assert!(order.is_reached(event) || order.is_reached(event));
        }
        Call::HostAll => {
            asked.add(None, asked.of(|_| true));
            order.host_waits_for_all();
        }
        Call::Graph(of) => {
            let start = asked.before(of);
            let mut fork = order.fork(&STREAMS[of]);
            let mut nodes: Vec<usize> = Vec::new();
            for dependencies in [&[][..], &[0], &[0], &[1]] {
                let mut after = start.clone();
                after.extend(dependencies.iter().map(|&of: &usize| nodes[of]));
                // Not the stream's until the graph has ended.
                let node = asked.add(Some(usize::MAX), after);
                work.push((node, order.node(&mut fork, dependencies)));
                nodes.push(node);
            }
            for &node in &nodes {
                asked.streams[node] = Some(of);
            }
            asked.launched[of] = None;
            order.join(fork);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn work_is_ordered_as_the_calls_say(calls in prop::collection::vec(call(), 1..24)) {
        let (mut order, mut asked, mut work) = (StreamOrder::default(), Asked::default(), Vec::new());
        STREAMS.into_iter().for_each(|stream| order.created(stream));
        for &call in &calls {
            ask(&mut order, &mut asked, &mut work, call, Turn::follows);
            // What the host knows need not be kept.
            let known = |turn: &Turn| order.host_knows(turn);
            let lanes = work.iter().filter(|(_, turn)| !known(turn)).map(|(_, turn)| turn.lane());
            let lanes: BTreeSet<u64> = lanes.collect();
            let over: Vec<bool> = work.iter().map(|(_, turn)| known(turn)).collect();
            for ((node, _), over) in work.iter().zip(over) {
                prop_assert_eq!(over, asked.is_known(*node), "{:?}", calls);
            }
            let over = work.iter().filter(|(_, turn)| !known(turn)).cloned().collect();
            work = over;
            order.keep(&lanes);
            for (n, (later, turn)) in work.iter().enumerate() {
                for (earlier, other) in &work[..n] {
                    prop_assert_eq!(turn.follows(other), asked.comes_after(*later, *earlier), "{:?}", calls);
                    prop_assert!(!other.follows(turn));
                }
            }
        }
    }

    /// The threads of the host know what they have waited for themselves, and the oldest one what others that have ended knew.
    #[test]
    fn what_threads_of_the_host_have_to_tell_each_other_is_known(
        calls in prop::collection::vec((0u64..3, prop::option::weighted(0.9, call())), 1..24),
    ) {
        let (mut order, mut asked, mut work) = (StreamOrder::default(), Asked::default(), Vec::new());
        for thread in 0..3 {
            order.by(thread);
            asked.by(thread);
        }
        STREAMS.into_iter().for_each(|stream| order.created(stream));
        for &(thread, call) in &calls {
            let Some(call) = call else {
                order.ended(thread);
                asked.ended(thread);
                continue;
            };
            order.by(thread);
            asked.by(thread);
            ask(&mut order, &mut asked, &mut work, call, Turn::surely_follows);
            for (n, (later, turn)) in work.iter().enumerate() {
                for (earlier, other) in &work[..n] {
                    let after = asked.comes_after(*later, *earlier);
                    prop_assert_eq!(turn.surely_follows(other), after, "{:?}", calls);
                    prop_assert!(turn.follows(other) || !after);
                }
            }
            for (node, turn) in work.iter().filter(|_| !asked.seen.is_empty()) {
                let behind = |seen: &BTreeSet<usize>| asked.is_behind(seen, *node);
                let all = asked.seen.values().all(behind);
                prop_assert_eq!(order.threads_know(turn), all, "{:?}", calls);
            }
        }
    }

    /// Also if the other stream is made when the work has been given already.
    #[test]
    fn work_that_runs_beside_other_was_expected_to(of in prop::collection::vec(0..STREAMS.len(), 1..12)) {
        let (mut order, mut work) = (StreamOrder::default(), Vec::<(usize, bool, Turn)>::new());
        for stream in of {
            let expected = order.may_overlap(&STREAMS[stream]);
            let turn = order.enter(&STREAMS[stream]);
            for (earlier, before, other) in work.iter().filter(|(_, _, other)| !turn.follows(other)) {
                prop_assert!(expected, "{stream} beside {earlier}: {other:?}");
                let legacy = STREAMS[*earlier].kind == StreamKind::Legacy;
                prop_assert!(*before || legacy, "{earlier} beside {stream}: {turn:?}");
            }
            work.push((stream, expected, turn));
        }
    }

    #[test]
    fn footprints_meet_where_bytes_do(
        all in prop::collection::vec((any::<bool>(), touch(), 0u64..96, 1u64..40, 0u64..50), 0..40),
        gone in (0u64..96, 0u64..40),
        got in (0u64..96, 0u64..40),
    ) {
        let mut prints = [Footprint::default(), Footprint::default()];
        let mut lists: [Vec<(Touch, u64, u64)>; 2] = Default::default();
        let add = |to: usize, prints: &mut [Footprint; 2], lists: &mut [Vec<(Touch, u64, u64)>; 2], of: &(bool, Touch, u64, u64, u64)| {
            let (_, touch, start, bytes, thread) = *of;
            prints[to].touch(touch, thread, start, bytes);
            for at in start..start + bytes {
                lists[to].push((touch, at, thread + (at - start) / u64::from(touch.bytes)));
            }
        };
        for of in all.iter().filter(|of| of.0) {
            add(0, &mut prints, &mut lists, of);
        }
        prints[0].forget(gone.0, gone.1);
        lists[0].retain(|&(_, at, _)| !(gone.0..gone.0 + gone.1).contains(&at));
        for of in all.iter().filter(|of| !of.0) {
            add(1, &mut prints, &mut lists, of);
        }
        prints[1].got(got.0, got.1);
        prints.iter_mut().for_each(Footprint::settle);
        let mut met = Vec::new();
        prints[0].meet(&prints[1], |meeting| met.push(meeting));
        let touches = |of: usize| lists[of].iter().map(|entry| entry.0).collect::<BTreeSet<Touch>>();
        let mut expected = 0;
        for one in touches(0) {
            for other in touches(1).into_iter().filter(|other| one.conflicts(other)) {
                let bytes = |of: usize, touch| lists[of].iter().filter(move |entry| entry.0 == touch).map(|entry| entry.1).collect::<BTreeSet<u64>>();
                let (mine, theirs) = (bytes(0, one), bytes(1, other));
                let both = mine.intersection(&theirs).copied();
                let fresh = |at: u64| (got.0..got.0 + got.1).contains(&at);
                let both: Vec<u64> = both.filter(|&at| !fresh(at)).collect();
                let meeting = met.iter().find(|meeting| (meeting.one, meeting.other) == (one, other));
                prop_assert_eq!(meeting.map_or(0, |m| m.bytes), both.len() as u64);
                let Some(meeting) = meeting else { continue };
                expected += 1;
                prop_assert_eq!(Some(&meeting.address), both.first());
                let by = |of: usize, touch, thread| lists[of].contains(&(touch, meeting.address, thread));
                prop_assert!(by(0, one, meeting.by_one), "{:?}", meeting);
                prop_assert!(by(1, other, meeting.by_other), "{:?}", meeting);
            }
        }
        prop_assert_eq!(expected, met.len());
    }
}

proptest! {
    /// What an earlier piece leaves to a later one is found there, and everything else still with the earlier one.
    #[test]
    fn a_later_piece_stands_for_what_an_earlier_one_leaves_to_it(
        all in prop::collection::vec((0usize..3, touch(), 0u64..96, 1u64..24), 1..24),
    ) {
        let mut prints = [(); 3].map(|()| Footprint::default());
        let mut bytes = [(); 3].map(|()| BTreeSet::new());
        for (of, touch, start, length) in all {
            prints[of].touch(touch, 0, start, length);
            bytes[of].extend((start..start + length).map(|at| (touch, at)));
        }
        prints.iter_mut().for_each(Footprint::settle);
        let [mut earlier, later, other] = prints;
        earlier.leave_to(&later);
        let mut found = BTreeSet::new();
        let mut count = 0;
        for print in [&earlier, &later] {
            print.meet(&other, |meeting| {
                found.insert((meeting.one, meeting.other));
                count += meeting.bytes;
            });
        }
        let mut expected = BTreeSet::new();
        for &(one, at) in bytes[0].union(&bytes[1]) {
            let others = bytes[2].iter().filter(|(other, byte)| *byte == at && one.conflicts(other));
            expected.extend(others.map(|(other, _)| (one, *other, at)));
        }
        prop_assert_eq!(count, expected.len() as u64);
        let pairs: BTreeSet<(Touch, Touch)> = expected.into_iter().map(|(a, b, _)| (a, b)).collect();
        prop_assert_eq!(found, pairs);
    }
}

#[test]
fn memory_that_a_piece_has_got_is_left_to_nobody() {
    let touch = Touch {
        writes: true,
        wide: false,
        bytes: 4,
        site: 0,
    };
    let [mut earlier, mut later] = [(); 2].map(|()| {
        let mut print = Footprint::default();
        print.touch(touch, 0, 64, 64);
        print.settle();
        print
    });
    later.got(0, 8);
    earlier.leave_to(&later);
    assert!(!earlier.is_empty());
    earlier.leave_to(&earlier.clone());
    assert!(earlier.is_empty());
}

fn touch() -> impl Strategy<Value = Touch> {
    let bytes = prop_oneof![Just(1u32), Just(4), Just(8)];
    (any::<bool>(), any::<bool>(), bytes, 0u32..3).prop_map(|(writes, wide, bytes, site)| Touch {
        writes,
        wide,
        bytes,
        site,
    })
}

#[test]
fn lanes_in_a_row_are_one_run() {
    let touch = Touch {
        writes: true,
        wide: false,
        bytes: 4,
        site: 1,
    };
    let count = |lanes, address: fn(u32) -> u64| {
        let mut print = Footprint::default();
        print.touch_lanes(touch, 0, lanes, address);
        print.settle();
        // Every lane's own bytes are there, with its number.
        for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
            let mut read = Footprint::default();
            read.touch(Touch { site: 2, ..touch }, 77, address(lane), 4);
            let mut found = Vec::new();
            print.meet(&read, |meeting| found.push(meeting));
            let [meeting] = found[..] else {
                panic!("lane {lane}: {found:?}");
            };
            let first =
                (0..32).find(|&other| lanes >> other & 1 == 1 && address(other) == address(lane));
            assert_eq!((meeting.bytes, Some(meeting.by_one as u32)), (4, first));
        }
        print.len()
    };
    assert_eq!(count(u32::MAX, |lane| 4096 + 4 * u64::from(lane)), 1);
    assert_eq!(count(u32::MAX, |_| 4096), 1);
    assert_eq!(count(u32::MAX, |lane| 4096 + 8 * u64::from(lane)), 32);
    assert_eq!(count(u32::MAX, |lane| 4096 - 4 * u64::from(lane)), 32);
    assert_eq!(count(0x0000_ff0f, |lane| 4096 + 4 * u64::from(lane)), 2);
}

#[test]
fn a_loop_that_gives_work_until_the_stream_has_none_ends() {
    let mut order = StreamOrder::default();
    let mut give = || {
        let turn = order.enter(&STREAMS[1]);
        (order.is_done(&STREAMS[1]), order.host_knows(&turn))
    };
    for _ in 0..16 {
        assert_eq!(give(), (false, false));
    }
    assert_eq!(give(), (true, true));
    assert_eq!(give(), (false, false));
}
