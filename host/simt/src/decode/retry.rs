//! Loops that test an mbarrier until its phase is over.
//!
//! How often such a test fails depends on the order in which threads run. That matters to nothing else if a failed test
//! leads only to the next one, and nothing is done on the way that others may see. Then the registers that are written
//! on the way are all that depends on it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{CARRY, SINK, SINK_PRED, TRUE};
use crate::code::{AddressSpace, Kind, Map, MbarrierKind, Op, Rank};
use crate::lanes::{Args, CONSTANT, Lanes, Rows, Shape, WARP};

/// What is written between a failed test and the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) rows: BTreeSet<u32>,
    pub(crate) preds: BTreeSet<u32>,
}

/// The registers whose values are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    rows: BTreeMap<u32, u64>,
    preds: BTreeMap<u32, bool>,
}

impl Known {
    fn row(&self, row: u32, consts: &[Lanes]) -> Option<u64> {
        match row & CONSTANT {
            0 if row == SINK => Some(0),
            0 => self.rows.get(&row).copied(),
            _ => consts.get((row & !CONSTANT) as usize).map(|row| row[0]),
        }
    }

    /// A source predicate.
    fn pred(&self, source: u32) -> Option<bool> {
        let value = match source >> 1 {
            TRUE => Some(true),
            number => self.preds.get(&number).copied(),
        };
        value.map(|value| value != (source & 1 == 1))
    }

    /// What both know.
    fn meet(&self, other: &Self) -> Self {
        let rows = self
            .rows
            .iter()
            .filter(|(row, value)| other.rows.get(row) == Some(value));
        let preds = self
            .preds
            .iter()
            .filter(|(pred, value)| other.preds.get(pred) == Some(value));
        Self {
            rows: rows.map(|(&row, &value)| (row, value)).collect(),
            preds: preds.map(|(&pred, &value)| (pred, value)).collect(),
        }
    }
}

/// The tests in `ops` whose failure leads only to themselves, by their place.
pub(super) fn of(ops: &[Op], consts: &[Lanes]) -> HashMap<u32, Retry> {
    let tests = ops.iter().zip(0..).filter_map(|(op, pc)| {
        let Kind::Mbarrier(mbarrier) = &op.kind else {
            return None;
        };
        let tests = matches!(mbarrier.kind, MbarrierKind::TestWait { .. });
        let used = [mbarrier.address.base, mbarrier.a];
        let d = mbarrier.d.filter(|_| tests && op.guard == 0)?;
        let retry = behind(ops, consts, pc, d)?;
        let settled = used.iter().all(|row| !retry.rows.contains(row));
        settled.then_some((pc, retry))
    });
    tests.collect()
}

/// What is written behind the failed test at `test`, whose result is the predicate `d`, up to that test.
fn behind(ops: &[Op], consts: &[Lanes], test: u32, d: u32) -> Option<Retry> {
    let mut retry = Retry::default();
    let mut seen: HashMap<u32, Known> = HashMap::new();
    let failed = Known {
        preds: BTreeMap::from([(d, false)]),
        ..Known::default()
    };
    let mut left = vec![(test + 1, failed)];
    while let Some((pc, known)) = left.pop() {
        if pc == test {
            continue;
        }
        let known = match seen.get(&pc) {
            None => known,
            Some(before) => {
                let both = before.meet(&known);
                if both == *before {
                    continue;
                }
                both
            }
        };
        seen.insert(pc, known.clone());
        let op = ops.get(pc as usize)?;
        let holds = match op.guard {
            0 => Some(true),
            guard => known.pred(guard),
        };
        if holds == Some(false) {
            left.push((pc + 1, known));
            continue;
        }
        match &op.kind {
            Kind::Branch(target) => {
                left.push((*target, known.clone()));
                if holds.is_none() {
                    left.push((pc + 1, known));
                }
            }
            Kind::Trap => {
                if holds.is_none() {
                    left.push((pc + 1, known));
                }
            }
            kind => {
                let after = executed(kind, known, holds == Some(true), consts, &mut retry)?;
                left.push((pc + 1, after));
            }
        }
    }
    Some(retry)
}

/// What is known behind an op; none if it may do more than to write registers.
fn executed(
    kind: &Kind,
    mut known: Known,
    surely: bool,
    consts: &[Lanes],
    retry: &mut Retry,
) -> Option<Known> {
    let (rows, preds) = written(kind)?;
    let results = match kind {
        Kind::Alu(_, args) if surely => computed(kind, args, &known, consts),
        _ => None,
    };
    for row in rows.into_iter().filter(|&row| row != SINK) {
        retry.rows.insert(row);
        known.rows.remove(&row);
    }
    for pred in preds.into_iter().filter(|&pred| pred != SINK_PRED) {
        retry.preds.insert(pred);
        known.preds.remove(&pred);
    }
    if let Some((rows, preds)) = results {
        known.rows.extend(rows);
        known.preds.extend(preds);
    }
    Some(known)
}

/// The rows and the predicates that an op writes, if it does no more than that.
fn written(kind: &Kind) -> Option<(Vec<u32>, Vec<u32>)> {
    let row = |row: u32| Some((vec![row], Vec::new()));
    match kind {
        Kind::Alu(_, args) => Some(match args.shape {
            Shape::Rows | Shape::Choose => (vec![args.d], Vec::new()),
            Shape::Carry => (vec![args.d], vec![CARRY]),
            Shape::Preds => (Vec::new(), vec![args.d]),
            Shape::Test => (Vec::new(), vec![args.d, args.e]),
        }),
        Kind::Special(d, _)
        | Kind::FrameAddress { d, .. }
        | Kind::Param { d, .. }
        | Kind::Map(Map { d, .. })
        | Kind::Rank(Rank { d, .. }) => row(*d),
        Kind::IsSpace { d, .. } => Some((Vec::new(), vec![*d])),
        Kind::Load(access)
            if matches!(
                access.address.address_space,
                AddressSpace::Param | AddressSpace::Frame
            ) =>
        {
            Some((access.rows.clone(), Vec::new()))
        }
        Kind::Sleep(_) | Kind::Nop => Some((Vec::new(), Vec::new())),
        _ => None,
    }
}

type Values<T> = Vec<(u32, T)>;

/// The results of an operation whose sources are known.
fn computed(
    kind: &Kind,
    args: &Args,
    known: &Known,
    consts: &[Lanes],
) -> Option<(Values<u64>, Values<bool>)> {
    let Kind::Alu(compute, _) = kind else {
        return None;
    };
    let (sources, pred_sources) = match args.shape {
        Shape::Rows => (vec![args.a, args.b, args.c], Vec::new()),
        Shape::Test | Shape::Choose => (vec![args.a, args.b], vec![args.c]),
        Shape::Preds => (Vec::new(), vec![args.a, args.b]),
        Shape::Carry => return None,
    };
    let given: Vec<(u32, u64)> = sources
        .iter()
        .filter(|&row| row & CONSTANT == 0)
        .map(|&row| Some((row, known.row(row, consts)?)))
        .collect::<Option<_>>()?;
    let given_preds: Vec<(u32, bool)> = pred_sources
        .iter()
        .map(|&source| Some((source >> 1, known.pred(source & !1)?)))
        .collect::<Option<_>>()?;
    let (rows, preds) = written(kind)?;
    let most = |numbers: &mut dyn Iterator<Item = u32>| numbers.max().unwrap_or(0) as usize + 1;
    let mut regs =
        vec![[0; WARP]; most(&mut given.iter().map(|of| of.0).chain(rows.iter().copied()))];
    let all = given_preds
        .iter()
        .map(|of| of.0)
        .chain(preds.iter().copied());
    let mut bits = vec![0; most(&mut all.chain([TRUE, SINK_PRED]))];
    bits[TRUE as usize] = u32::MAX;
    for (row, value) in given {
        regs[row as usize] = [value; WARP];
    }
    for (pred, value) in given_preds {
        bits[pred as usize] = if value { u32::MAX } else { 0 };
    }
    let mut state = Rows {
        regs: &mut regs,
        preds: &mut bits,
        consts,
    };
    compute(&mut state, args, 1);
    let rows = rows.into_iter().filter(|&row| row != SINK);
    let preds = preds
        .into_iter()
        .filter(|&pred| pred != SINK_PRED && pred != TRUE);
    Some((
        rows.map(|row| (row, regs[row as usize][0])).collect(),
        preds
            .map(|pred| (pred, bits[pred as usize] & 1 == 1))
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use crate::decode::program::{Symbols, program};

    /// Registers and predicates written between two tests, for each loop found.
    fn retries(body: &str) -> Vec<(usize, usize)> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .shared .align 8 .b8 m[8];\n.reg .pred %p, %q, %r;\n.reg .b32 %a, %b, %n, %k;\n.reg .b64 %d;\n\
             ld.param.u64 %d, [out];\nmov.u32 %a, m;\nmov.u32 %b, 0;\nmov.u32 %n, 0;\n{body}\n\
             st.global.u32 [%d], %n;\nret;\n}}"
        );
        let (module, problems) = ptx::parse(&text);
        assert!(problems.is_empty(), "{problems:?}");
        let program = program(&module, &Symbols::default(), "k").unwrap();
        assert_eq!(program.unsupported, None);
        let found = program.retries.values();
        found.map(|of| (of.rows.len(), of.preds.len())).collect()
    }

    #[test]
    fn loops_that_only_test() {
        let direct = "again: mbarrier.try_wait.parity.shared.b64 %p, [%a], %b;\n@!%p bra again;";
        assert_eq!(retries(direct), [(0, 0)]);
        let by_value = "again: mbarrier.try_wait.parity.shared.b64 %p, [%a], %b;\n\
            selp.u32 %k, 1, 0, %p;\nsetp.eq.u32 %q, %k, 0;\n@%q bra again;";
        assert_eq!(retries(by_value), [(1, 1)]);
        let both_ways = "again: mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@%p bra done;\n\
            nanosleep.u32 20;\nadd.u32 %n, %n, 1;\nbra again;\ndone:";
        assert_eq!(retries(both_ways), [(1, 0)]);
        let gives_up = "again: mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@%p bra done;\n\
            add.u32 %n, %n, 1;\nsetp.lt.u32 %q, %n, 1000;\n@%q bra again;\ntrap;\ndone:";
        assert_eq!(retries(gives_up), [(1, 1)]);
    }

    #[test]
    fn tests_whose_failure_leads_elsewhere() {
        let once = "mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@!%p bra done;\nmov.u32 %n, 7;\ndone:";
        let stores = "again: mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@%p bra done;\n\
            st.global.u32 [%d], %n;\nbra again;\ndone:";
        let looks = "again: mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@%p bra done;\n\
            ld.global.u32 %n, [%d];\nbra again;\ndone:";
        let gives_up = "again: mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@%p bra done;\n\
            add.u32 %n, %n, 1;\nsetp.lt.u32 %q, %n, 1000;\n@%q bra again;\ndone:";
        let other_phase = "again: mbarrier.test_wait.parity.shared.b64 %p, [%a], %b;\n@%p bra done;\n\
            xor.b32 %b, %b, 1;\nbra again;\ndone:";
        for body in [once, stores, looks, gives_up, other_phase] {
            assert_eq!(retries(body), [], "{body}");
        }
    }
}
