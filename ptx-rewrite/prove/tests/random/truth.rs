//! What is true of a small problem, by trying all executions of all pairs of threads.

use super::make::Case;
use prove::interval::Interval;
use prove::problem::{Access, Axis, Effect, LoopId, Space, SymbolId, SymbolKind, Term};

/// One execution of an access by a thread.
struct Execution {
    access: usize,
    address: i128,
    bytes: i128,
    block: [i64; 3],
    thread: [i64; 3],
    /// Values of the counters of the loops around the access.
    counters: Vec<(LoopId, i64)>,
    /// Values of uniform symbols.
    uniform: Vec<(SymbolId, i64)>,
}

/// What is true of an access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Truth {
    /// Another thread can make a conflicting access to its bytes.
    pub(crate) conflict: bool,
    /// The same without barriers.
    pub(crate) shared: bool,
    /// Some thread can write its bytes.
    pub(crate) written: bool,
    /// First byte and the one past the last.
    pub(crate) range: Option<(i128, i128)>,
}

/// By access; `None` if there is too much to try.
pub(crate) fn truth(case: &Case) -> Option<Vec<Truth>> {
    let mut executions = Vec::new();
    for (number, access) in case.problem.accesses.iter().enumerate() {
        for alternative in 0..access.alternatives.len() {
            execute(case, number, alternative, &mut executions)?;
        }
    }
    executions.sort_by_key(|execution| execution.address);
    let mut truths = vec![Truth::default(); case.problem.accesses.len()];
    for (at, a) in executions.iter().enumerate() {
        let range = truths[a.access]
            .range
            .get_or_insert((a.address, a.address + a.bytes));
        *range = (range.0.min(a.address), range.1.max(a.address + a.bytes));
        for b in executions[at..]
            .iter()
            .filter(|b| b.address < a.address + 16)
        {
            let overlap = b.address < a.address + a.bytes && a.address < b.address + b.bytes;
            if overlap {
                compare(case, a, b, &mut truths);
            }
        }
    }
    Some(truths)
}

fn compare(case: &Case, a: &Execution, b: &Execution, truths: &mut [Truth]) {
    let [x, y] = [a, b].map(|of| &case.problem.accesses[of.access]);
    if x.space != y.space {
        return;
    }
    truths[a.access].written |= y.effect != Effect::Load;
    truths[b.access].written |= x.effect != Effect::Load;
    let unordered = match (x.effect, y.effect) {
        (Effect::Load, Effect::Load) => false,
        (Effect::Atomic { class: a }, Effect::Atomic { class: b }) => a != b || x.bytes != y.bytes,
        _ => true,
    };
    if !unordered || truths[a.access].conflict && truths[b.access].conflict {
        return;
    }
    let compatible = |kind: SymbolKind| {
        a.uniform.iter().all(|&(symbol, value)| {
            case.problem.symbols[symbol as usize].kind != kind
                || b.uniform
                    .iter()
                    .all(|other| other.0 != symbol || other.1 == value)
        })
    };
    if !compatible(SymbolKind::GridUniform) {
        return;
    }
    let (mut shared, mut conflict) = (false, false);
    if a.block != b.block || unnamed(case, SymbolKind::Block) {
        shared |= x.space == Space::Global;
        conflict |= x.space == Space::Global;
    }
    if a.block == b.block && (a.thread != b.thread || unnamed(case, SymbolKind::Thread)) {
        let iteration = x.loops == y.loops && a.counters == b.counters;
        if !iteration || compatible(SymbolKind::BlockUniform) {
            shared = true;
            conflict |= meet(case, a, b);
        }
    }
    for of in [a, b] {
        truths[of.access].shared |= shared;
        truths[of.access].conflict |= conflict;
    }
}

/// Whether an axis has no symbol.
fn unnamed(case: &Case, kind: fn(Axis) -> SymbolKind) -> bool {
    [Axis::X, Axis::Y, Axis::Z].into_iter().any(|axis| {
        case.problem
            .symbols
            .iter()
            .all(|symbol| symbol.kind != kind(axis))
    })
}

/// Whether two executions can be in one barrier interval.
fn meet(case: &Case, a: &Execution, b: &Execution) -> bool {
    let (first, second) = if a.access <= b.access { (a, b) } else { (b, a) };
    let Some(meetings) = case.problem.meetings.get(&(first.access, second.access)) else {
        return true;
    };
    let holds = |first: &Execution, second: &Execution| {
        meetings.iter().any(|meeting| {
            meeting.iter().all(|distance| {
                let of = |execution: &Execution| {
                    let counter = execution
                        .counters
                        .iter()
                        .find(|counter| counter.0 == distance.around);
                    counter.map(|counter| counter.1)
                };
                of(first)
                    .zip(of(second))
                    .is_none_or(|(first, second)| second - first == distance.iterations)
            })
        })
    };
    holds(first, second) || first.access == second.access && holds(second, first)
}

/// All executions of one way of an access.
fn execute(
    case: &Case,
    number: usize,
    alternative: usize,
    executions: &mut Vec<Execution>,
) -> Option<()> {
    let problem = &case.problem;
    let access = &problem.accesses[number];
    let way = &access.alternatives[alternative];
    let mut relevant = vec![false; problem.symbols.len()];
    for form in access.path.iter().chain(&way.when).chain([&way.address]) {
        form.terms
            .iter()
            .for_each(|term| relevant[term.variable as usize] = true);
    }
    for division in case.divisions.iter().rev() {
        if relevant[division.quotient as usize] || relevant[division.remainder as usize] {
            relevant[division.quotient as usize] = true;
            relevant[division.remainder as usize] = true;
            division
                .dividend
                .terms
                .iter()
                .for_each(|term| relevant[term.variable as usize] = true);
        }
    }
    let derived = |symbol: usize| {
        let is = |defined: SymbolId| defined as usize == symbol;
        case.divisions
            .iter()
            .any(|division| is(division.quotient) || is(division.remainder))
    };
    let mut chosen = Vec::new();
    for (symbol, of) in problem.symbols.iter().enumerate() {
        let needed = match of.kind {
            SymbolKind::Thread(_) | SymbolKind::Block(_) => true,
            SymbolKind::Counter(around) => relevant[symbol] || access.loops.contains(&around),
            _ => relevant[symbol] && !derived(symbol),
        };
        if needed {
            chosen.push(symbol);
        }
    }
    let mut values: Vec<i64> = problem
        .symbols
        .iter()
        .map(|symbol| symbol.range.low)
        .collect();
    loop {
        if chosen
            .iter()
            .any(|&symbol| problem.symbols[symbol].range.low > problem.symbols[symbol].range.high)
        {
            return Some(());
        }
        record(
            case,
            number,
            alternative,
            &relevant,
            &mut values,
            executions,
        );
        if executions.len() > 1_500 {
            return None;
        }
        let next = chosen.iter().find(|&&symbol| {
            let Interval { low, high } = problem.symbols[symbol].range;
            values[symbol] += 1;
            if values[symbol] <= high {
                return true;
            }
            values[symbol] = low;
            false
        });
        if next.is_none() {
            return Some(());
        }
    }
}

fn record(
    case: &Case,
    number: usize,
    alternative: usize,
    relevant: &[bool],
    values: &mut [i64],
    executions: &mut Vec<Execution>,
) {
    let problem = &case.problem;
    let access: &Access = &problem.accesses[number];
    let way = &access.alternatives[alternative];
    let value = |form: &prove::problem::Linear, values: &[i64]| {
        let terms = form.terms.iter();
        let product =
            |term: &Term| i128::from(values[term.variable as usize]) * i128::from(term.coefficient);
        terms.map(product).sum::<i128>() + form.constant
    };
    for division in &case.divisions {
        let dividend = value(&division.dividend, values);
        let divisor = i128::from(division.divisor);
        values[division.quotient as usize] = i64::try_from(dividend.div_euclid(divisor)).unwrap();
        values[division.remainder as usize] = i64::try_from(dividend.rem_euclid(divisor)).unwrap();
    }
    if access
        .path
        .iter()
        .chain(&way.when)
        .any(|row| value(row, values) < 0)
    {
        return;
    }
    let mut execution = Execution {
        access: number,
        address: value(&way.address, values),
        bytes: access.bytes.into(),
        block: [0; 3],
        thread: [0; 3],
        counters: Vec::new(),
        uniform: Vec::new(),
    };
    for (symbol, of) in (0..).zip(&problem.symbols) {
        let value = values[symbol as usize];
        match of.kind {
            SymbolKind::Thread(axis) => execution.thread[axis as usize] = value,
            SymbolKind::Block(axis) => execution.block[axis as usize] = value,
            SymbolKind::Counter(around) if access.loops.contains(&around) => {
                execution.counters.push((around, value))
            }
            SymbolKind::BlockUniform | SymbolKind::GridUniform if relevant[symbol as usize] => {
                execution.uniform.push((symbol, value));
            }
            _ => {}
        }
    }
    executions.push(execution);
}
