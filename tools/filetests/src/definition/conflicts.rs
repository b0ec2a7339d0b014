//! Which accesses race.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use runtime::Model;
use shadow::hb::{Location, MemoryOrder, OpKind};

use super::asynchronous::makes_copies;
use super::locks::Locks;
use super::order::{Run, Under};
use super::strong::{AccessPair, Conflicts};
use super::{Launch, Verdict, What, byte, party, writes};

/// Judges all pairs.
pub(super) fn judge(launch: &Launch<'_>, run: &Run) -> Verdict {
    let mut by_byte: BTreeMap<Location, Vec<usize>> = BTreeMap::new();
    for (number, node) in run.nodes.iter().enumerate() {
        if let What::Access(access, at) = node.what {
            for behind in 0..access.bytes {
                by_byte.entry(byte(at, behind)).or_default().push(number);
            }
        }
    }
    // Who has observed a write. A `red` hands out nothing that its thread could know of: what it has
    // read comes before those who read what it wrote, and not before its own thread goes on.
    let mut observers = Observers::new();
    let hands_out = |node: &usize| match run.nodes[*node].what {
        What::Access(access, _) => access.kind != OpKind::Reduction,
        _ => false,
    };
    let observed = run.observed.iter();
    for (&reader, written) in observed.filter(|(reader, _)| hands_out(reader)) {
        for &write in written {
            observers.entry(write).or_default().push(reader);
        }
    }
    let mut races = BTreeSet::new();
    for (&at, accesses) in &by_byte {
        for (number, &b) in accesses.iter().enumerate() {
            for &a in &accesses[..number] {
                if !races.contains(&at) && race(launch, run, a, b, &observers) {
                    races.insert(at);
                }
            }
        }
    }
    races.extend(across_proxies(run, &by_byte, &observers));
    let mut verdict = Verdict {
        races,
        ..Verdict::default()
    };
    if run.model == Model::Ptx {
        return verdict;
    }
    let locks = Locks::of(launch, run);
    verdict.doubtful = locks.doubtful;
    let Conflicts { all, open } = run.unordered(launch, &locks);
    let lines = |pair: AccessPair| {
        let (a, b) = (run.nodes[pair.earlier].line, run.nodes[pair.later].line);
        (a.min(b), a.max(b))
    };
    verdict.open_lines = open.into_iter().map(lines).collect();
    for pair in all {
        let second = &run.nodes[pair.later];
        verdict.strong_lines.insert(lines(pair));
        if let What::Access(access, at) = second.what {
            let bytes = (0..access.bytes).map(|behind| byte(at, behind));
            verdict.strong.extend(bytes);
        }
    }
    verdict
}

/// The bytes that a bulk copy reads and a thread has written before, without a fence between the proxies.
fn across_proxies(
    run: &Run,
    by_byte: &BTreeMap<Location, Vec<usize>>,
    observers: &Observers,
) -> BTreeSet<Location> {
    let comes_before = |a: usize, b: usize| comes_before(run, Under::Ptx, observers, a, b);
    let fences = &run.asynchronous.proxy_fences;
    let fenced = |write, read| {
        let mut fences = fences.iter();
        fences.any(|&fence| comes_before(write, fence) && comes_before(fence, read))
    };
    let mut found = BTreeSet::new();
    for &read in &run.asynchronous.bulk_reads {
        let What::Access(access, from) = run.nodes[read].what else {
            continue;
        };
        for at in (0..access.bytes).map(|behind| byte(from, behind)) {
            let written = |node: &usize| match run.nodes[*node].what {
                What::Access(access, _) => writes(access.kind) && comes_before(*node, read),
                _ => false,
            };
            let all: Vec<usize> = by_byte[&at].iter().copied().filter(written).collect();
            let is_last = |write: usize| {
                let mut others = all.iter().filter(|other| **other != write);
                !others.any(|&other| comes_before(write, other))
            };
            let by_thread = |write: &usize| !makes_copies(run.nodes[*write].thread);
            let mut last = all
                .iter()
                .copied()
                .filter(by_thread)
                .filter(|&write| is_last(write));
            if last.any(|write| !fenced(write, read)) {
                found.insert(at);
            }
        }
    }
    found
}

/// The nodes that have observed a write.
type Observers = HashMap<usize, Vec<usize>>;

/// Whether a node comes before another in causality order: observation comes first, then base causality.
fn comes_before(run: &Run, under: Under, observers: &Observers, a: usize, b: usize) -> bool {
    let before = run.before(under, b);
    let mut through = observers.get(&a).into_iter().flatten();
    before.has(a) || through.any(|&reader| reader != b && before.has(reader))
}

/// Whether two accesses of one byte are a data race.
fn race(launch: &Launch<'_>, run: &Run, a: usize, b: usize, observers: &Observers) -> bool {
    let (first, second) = (&run.nodes[a], &run.nodes[b]);
    let (What::Access(one, from), What::Access(other, to)) = (first.what, second.what) else {
        return false;
    };
    if !(writes(one.kind) || writes(other.kind)) {
        return false;
    }
    if [one.order, other.order].contains(&MemoryOrder::ReadOnly) {
        // Nothing may write what the launch reads so, whatever the order.
        return true;
    }
    if first.thread == second.thread {
        return false;
    }
    let moral = match (one.order.scope(), other.order.scope()) {
        (Some(mine), Some(theirs)) => {
            let same = (from, one.bytes) == (to, other.bytes);
            same && launch.mutual(party(first.thread, mine), party(second.thread, theirs))
        }
        _ => false,
    };
    if moral {
        return false;
    }
    let under = match run.model {
        Model::Ptx => Under::Ptx,
        Model::Scoped => Under::Scoped,
    };
    !comes_before(run, under, observers, a, b)
}
