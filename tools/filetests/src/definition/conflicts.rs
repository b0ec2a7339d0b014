//! Which accesses race.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use runtime::Model;
use shadow::hb::{Kind, Place};

use super::locks::Locks;
use super::order::{Run, Under};
use super::{Launch, Verdict, What, byte, party, writes};

/// Judges all pairs.
pub(super) fn judge(launch: &Launch<'_>, run: &Run) -> Verdict {
    let mut by_byte: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    for (number, node) in run.nodes.iter().enumerate() {
        if let What::Access(access, at) = node.what {
            for behind in 0..access.bytes {
                by_byte.entry(byte(at, behind)).or_default().push(number);
            }
        }
    }
    // Who has observed a write. A `red` hands out nothing that its thread could know of: what it has
    // read comes before those who read what it wrote, and not before its own thread goes on.
    let mut observers: HashMap<usize, Vec<usize>> = HashMap::new();
    let hands_out = |node: &usize| match run.nodes[*node].what {
        What::Access(access, _) => access.kind != Kind::Reduction,
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
    let mut verdict = Verdict {
        races,
        ..Verdict::default()
    };
    if run.model == Model::Ptx {
        return verdict;
    }
    let locks = Locks::of(launch, run);
    verdict.doubtful = locks.doubtful;
    let (all, open) = run.unordered(launch, &locks);
    let lines = |(a, b): (usize, usize)| {
        let (a, b) = (run.nodes[a].line, run.nodes[b].line);
        (a.min(b), a.max(b))
    };
    verdict.open_lines = open.into_iter().map(lines).collect();
    for (earlier, later) in all {
        let second = &run.nodes[later];
        verdict.strong_lines.insert(lines((earlier, later)));
        if let What::Access(access, at) = second.what {
            let bytes = (0..access.bytes).map(|behind| byte(at, behind));
            verdict.strong.extend(bytes);
        }
    }
    verdict
}

/// Whether two accesses of one byte are a data race.
fn race(
    launch: &Launch<'_>,
    run: &Run,
    a: usize,
    b: usize,
    observers: &HashMap<usize, Vec<usize>>,
) -> bool {
    let (first, second) = (&run.nodes[a], &run.nodes[b]);
    let (What::Access(one, from), What::Access(other, to)) = (first.what, second.what) else {
        return false;
    };
    if first.thread == second.thread || !(writes(one.kind) || writes(other.kind)) {
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
    let before = match run.model {
        Model::Ptx => run.before(Under::Ptx, b),
        Model::Scoped => run.before(Under::Scoped, b),
    };
    // Observation comes first, then base causality.
    let mut through = observers.get(&a).into_iter().flatten();
    !before.has(a) && !through.any(|&reader| reader != b && before.has(reader))
}
