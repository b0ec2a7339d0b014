//! Which accesses race, and which are strong and in no order.

use std::collections::{BTreeMap, HashMap};

use shadow::hb::{Access, Kind, Order, Place};

use super::order::Run;
use super::{Launch, Verdict, What, atomic, byte, writes};

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
    let mut verdict = Verdict::default();
    for (&at, accesses) in &by_byte {
        let communicates = accesses
            .iter()
            .any(|&node| is_synchronisation(launch, run, node));
        for (number, &b) in accesses.iter().enumerate() {
            for &a in &accesses[..number] {
                pair(
                    launch,
                    run,
                    (a, b),
                    &mut verdict,
                    (at, communicates),
                    &observers,
                );
            }
        }
    }
    verdict
}

/// Whether an access shows that its location is one that threads communicate through.
fn is_synchronisation(launch: &Launch<'_>, run: &Run, node: usize) -> bool {
    let node = &run.nodes[node];
    let What::Access(access, _) = node.what else {
        return false;
    };
    let ordered = matches!(
        access.order,
        Order::Acquire(_) | Order::Release(_) | Order::AcqRel(_)
    );
    ordered || access.kind == Kind::Load && launch.waits.contains(&node.line)
}

fn pair(
    launch: &Launch<'_>,
    run: &Run,
    (a, b): (usize, usize),
    verdict: &mut Verdict,
    (at, communicates): (Place, bool),
    observers: &HashMap<usize, Vec<usize>>,
) {
    let (first, second) = (&run.nodes[a], &run.nodes[b]);
    let (What::Access(one, from), What::Access(other, to)) = (first.what, second.what) else {
        return;
    };
    if first.thread == second.thread || !(writes(one.kind) || writes(other.kind)) {
        return;
    }
    let moral = match (one.order.scope(), other.order.scope()) {
        (Some(mine), Some(theirs)) => {
            let same = (from, one.bytes) == (to, other.bytes);
            same && launch.mutual((first.thread, mine), (second.thread, theirs))
        }
        _ => false,
    };
    // Observation comes first, then base causality.
    let mut through = observers.get(&a).into_iter().flatten();
    if !moral {
        let observed = through.any(|&reader| reader != b && run.before(b).has(reader));
        if !run.before(b).has(a) && !observed {
            verdict.races.insert(at);
        }
        return;
    }
    // A side that is neither an atomic nor a signal.
    let plain = |access: &Access| !atomic(access.kind);
    if (plain(&one) || plain(&other)) && !communicates && !run.before_lenient(b).has(a) {
        verdict.strong.insert(at);
        let lines = (first.line.min(second.line), first.line.max(second.line));
        verdict.strong_lines.insert(lines);
    }
}
