//! Random problems, small enough to enumerate.

use prove::interval::Interval;
use prove::problem::{
    Access, Alternative, Axis, Distance, Effect, Linear, LoopId, Meeting, Problem, Space, Symbol,
    SymbolId, SymbolKind, Term,
};
use random::Random;

/// A quotient and a remainder by definition.
pub(crate) struct Division {
    pub(crate) dividend: Linear,
    pub(crate) divisor: i64,
    pub(crate) quotient: SymbolId,
    pub(crate) remainder: SymbolId,
}

/// A problem and how its equations came to be.
pub(crate) struct Case {
    pub(crate) problem: Problem,
    pub(crate) divisions: Vec<Division>,
}

struct Maker<'r> {
    random: &'r mut Random,
    case: Case,
    /// By symbol: the loops that must be around an access to use it.
    homes: Vec<Vec<LoopId>>,
}

/// A random problem.
pub(crate) fn case(random: &mut Random) -> Case {
    let mut maker = Maker {
        random,
        case: Case {
            problem: Problem::default(),
            divisions: Vec::new(),
        },
        homes: Vec::new(),
    };
    maker.symbols();
    for _ in 0..maker.random.between(1, 4) {
        let access = maker.access();
        maker.case.problem.accesses.push(access);
    }
    maker.meetings();
    maker.case
}

impl Maker<'_> {
    fn symbol(&mut self, kind: SymbolKind, low: i64, high: i64, home: Vec<LoopId>) -> SymbolId {
        self.case.problem.symbols.push(Symbol {
            kind,
            range: Interval::new(low, high),
        });
        self.homes.push(home);
        SymbolId::try_from(self.homes.len() - 1).unwrap()
    }

    fn symbols(&mut self) {
        let axes = [Axis::X, Axis::Y, Axis::Z];
        let mut left = 24;
        for axis in axes {
            let most = [8, 4, 2][axis as usize];
            let threads = self.random.between(1, most.min(left));
            left /= threads;
            self.symbol(SymbolKind::Thread(axis), 0, threads - 1, Vec::new());
        }
        let mut left = left.min(6);
        for axis in axes {
            let blocks = self.random.between(1, [4, 2, 2][axis as usize].min(left));
            left /= blocks;
            // An axis without a symbol is rare.
            if blocks > 1 || !self.random.percent(1) {
                self.symbol(SymbolKind::Block(axis), 0, blocks - 1, Vec::new());
            }
        }
        for around in 0..LoopId::try_from(self.random.between(0, 2)).unwrap() {
            let high = if self.random.percent(4) {
                -1
            } else {
                self.random.between(0, 3)
            };
            self.symbol(SymbolKind::Counter(around), 0, high, vec![around]);
        }
        for _ in 0..self.random.between(-1, 2) {
            let kind = self.random.pick(&[
                SymbolKind::Unknown,
                SymbolKind::BlockUniform,
                SymbolKind::GridUniform,
            ]);
            let low = self.random.between(-2, 2);
            let high = low + self.random.between(0, 3);
            self.symbol(kind, low, high, Vec::new());
        }
        for _ in 0..self.random.between(-1, 2) {
            self.division();
        }
    }

    /// Defines a quotient and a remainder.
    fn division(&mut self) {
        let terms = self.some_terms(2, &[1, 1, 1, 2, 3, 8, -1]);
        let dividend = Linear {
            terms,
            constant: self.random.between(-2, 2).into(),
        };
        let divisor = self.random.pick(&[2, 2, 3, 4, 8]);
        let (mut low, mut high) = (dividend.constant, dividend.constant);
        let mut home = Vec::new();
        for term in &dividend.terms {
            let range = self.case.problem.symbols[term.variable as usize].range;
            let values = [range.low, range.high.max(range.low)]
                .map(|value| i128::from(value) * i128::from(term.coefficient));
            low += values[0].min(values[1]);
            high += values[0].max(values[1]);
            home.extend(&self.homes[term.variable as usize]);
        }
        let floor = |value: i128| i64::try_from(value.div_euclid(divisor.into())).unwrap();
        let quotient = self.symbol(SymbolKind::Unknown, floor(low), floor(high), home.clone());
        let remainder = self.symbol(SymbolKind::Unknown, 0, divisor - 1, home);
        let mut equation = dividend.clone();
        equation.terms.push(Term::new(quotient, -divisor));
        equation.terms.push(Term::new(remainder, -1));
        self.case.problem.equations.push(equation);
        self.case.divisions.push(Division {
            dividend,
            divisor,
            quotient,
            remainder,
        });
    }

    /// Some symbols with random coefficients.
    fn some_terms(&mut self, most: i64, coefficients: &[i64]) -> Vec<Term> {
        let mut terms = Vec::new();
        for _ in 0..self.random.between(1, most) {
            let symbol = self.random.between(0, self.homes.len() as i64 - 1);
            terms.push(Term::new(
                SymbolId::try_from(symbol).unwrap(),
                self.random.pick(coefficients),
            ));
        }
        terms.sort_unstable();
        terms.dedup_by_key(|term| term.variable);
        terms
    }

    /// The symbols that an access inside loops may use.
    fn allowed(&self, loops: &[LoopId], terms: &mut Vec<Term>) {
        terms.retain(|term| {
            self.homes[term.variable as usize]
                .iter()
                .all(|around| loops.contains(around))
        });
    }

    fn access(&mut self) -> Access {
        if let Some(before) = self.case.problem.accesses.last()
            && self.random.percent(45)
        {
            let mut access = before.clone();
            access.effect = self.effect();
            if self.random.percent(30) {
                access.bytes = self.random.pick(&[1, 2, 4, 8]);
            }
            for alternative in &mut access.alternatives {
                if self.random.percent(60) {
                    alternative.address.constant +=
                        i128::from(self.random.pick(&[1, 4, -4, 8, 64, 300]));
                }
            }
            if self.random.percent(25) {
                let row = self.row(&access.loops.clone());
                access.path.extend(row);
            }
            return access;
        }
        let loops: &[&[LoopId]] = &[&[], &[0], &[0, 1], &[1]];
        let mut loops = self.random.pick(loops).to_vec();
        let exists = |around: &LoopId| {
            let counter = |symbol: &Symbol| symbol.kind == SymbolKind::Counter(*around);
            self.case.problem.symbols.iter().any(counter)
        };
        loops.retain(exists);
        let bytes = self.random.pick(&[1, 2, 4, 4, 4, 8, 16]);
        let mut path = Vec::new();
        for _ in 0..self.random.between(-1, 2) {
            path.extend(self.row(&loops));
        }
        let ways = if self.random.percent(80) {
            1
        } else {
            self.random.between(2, 3)
        };
        let alternatives = (0..ways)
            .map(|_| self.alternative(&loops, bytes, &mut path))
            .collect();
        Access {
            space: if self.random.percent(75) {
                Space::Global
            } else {
                Space::Shared
            },
            effect: self.effect(),
            bytes,
            alternatives,
            path,
            loops,
        }
    }

    fn effect(&mut self) -> Effect {
        match self.random.between(0, 9) {
            0..4 => Effect::Load,
            4..8 => Effect::Store,
            _ => Effect::Atomic {
                class: u32::try_from(self.random.between(0, 1)).unwrap(),
            },
        }
    }

    fn alternative(&mut self, loops: &[LoopId], bytes: u32, path: &mut Vec<Linear>) -> Alternative {
        let mut when = Vec::new();
        let mut terms = match self.random.between(0, 9) {
            0..5 => self.radix(bytes),
            5..7 => self.matrix(bytes, path),
            _ => self.some_terms(4, &[1, -1, 2, 4, -4, 8, 12, 16, 20, 32]),
        };
        if self.random.percent(15) {
            when.extend(self.row(loops));
        }
        self.allowed(loops, &mut terms);
        let constant = self.random.pick(&[0, 0, 0, 4, -8, 256, 1000]);
        Alternative {
            address: Linear { terms, constant },
            when,
        }
    }

    /// Steps that exceed all smaller ones together, or nearly.
    fn radix(&mut self, bytes: u32) -> Vec<Term> {
        let mut symbols: Vec<SymbolId> =
            (0..SymbolId::try_from(self.homes.len()).unwrap()).collect();
        for at in (1..symbols.len()).rev() {
            let other = usize::try_from(self.random.between(0, at as i64)).unwrap();
            symbols.swap(at, other);
        }
        let mut step = i64::from(bytes);
        let mut terms = Vec::new();
        for symbol in symbols {
            if self.random.percent(15) {
                continue;
            }
            let Interval { low, high } = self.case.problem.symbols[symbol as usize].range;
            if high > low {
                let signed = if self.random.percent(15) { -step } else { step };
                terms.push(Term::new(symbol, signed));
                step *= high - low + self.random.pick(&[1, 1, 1, 1, 2, 0, 3]);
                step = step.max(1);
            }
            if self.random.percent(10) {
                break;
            }
        }
        terms.sort_unstable();
        terms
    }

    /// A row and a column, both made of a block's and a thread's index, with a condition on the column.
    fn matrix(&mut self, bytes: u32, path: &mut Vec<Linear>) -> Vec<Term> {
        let of = |maker: &Self, kind| {
            let position = maker
                .case
                .problem
                .symbols
                .iter()
                .position(|symbol| symbol.kind == kind);
            position.map(|position| SymbolId::try_from(position).unwrap())
        };
        let (x, y) = if self.random.percent(80) {
            (Axis::X, Axis::Y)
        } else {
            (Axis::Y, Axis::X)
        };
        let mut column = Vec::new();
        let mut row = Vec::new();
        let width = self.random.between(2, 6);
        let overlap = self.random.pick(&[0, 0, 0, 1, 2]);
        for (terms, axis) in [(&mut column, x), (&mut row, y)] {
            let Some(thread) = of(self, SymbolKind::Thread(axis)) else {
                continue;
            };
            terms.push(Term::new(thread, 1));
            if let Some(block) = of(self, SymbolKind::Block(axis)) {
                let threads = self.case.problem.symbols[thread as usize].range.high + 1;
                let step: i64 = threads - overlap;
                if step > 0 {
                    terms.push(Term::new(block, step));
                }
            }
        }
        column.sort_unstable();
        row.sort_unstable();
        let below = column
            .iter()
            .map(|term: &Term| Term::new(term.variable, -term.coefficient))
            .collect();
        path.push(Linear {
            terms: below,
            constant: (width - 1 + self.random.pick(&[0, 0, 0, 1, -1])).into(),
        });
        if overlap > 0 {
            // Only the inner threads of a block.
            let thread = column[0].variable;
            let threads = self.case.problem.symbols[thread as usize].range.high + 1;
            path.push(Linear {
                terms: vec![Term::new(thread, -1)],
                constant: (threads - 1 - overlap).into(),
            });
        }
        let mut terms: Vec<Term> = Vec::new();
        for of in column {
            terms.push(Term::new(of.variable, of.coefficient * i64::from(bytes)));
        }
        for of in row {
            let coefficient = of.coefficient * width * i64::from(bytes);
            match terms.iter_mut().find(|term| term.variable == of.variable) {
                Some(term) => term.coefficient += coefficient,
                None => terms.push(Term::new(of.variable, coefficient)),
            }
        }
        terms.retain(|term| term.coefficient != 0);
        terms.sort_unstable();
        terms
    }

    /// A condition, or two that make an equation.
    fn row(&mut self, loops: &[LoopId]) -> Vec<Linear> {
        let mut terms = self.some_terms(3, &[1, 1, -1, -1, 2, -4, 8]);
        self.allowed(loops, &mut terms);
        let constant = self.random.between(-3, 8).into();
        let row = Linear { terms, constant };
        if !self.random.percent(20) {
            return vec![row];
        }
        let mut opposite = row.clone();
        opposite
            .terms
            .iter_mut()
            .for_each(|term| term.coefficient = -term.coefficient);
        opposite.constant = -opposite.constant;
        vec![row, opposite]
    }

    fn meetings(&mut self) {
        let accesses = self.case.problem.accesses.len();
        for i in 0..accesses {
            for j in i..accesses {
                if self.random.percent(50) {
                    continue;
                }
                let mut meetings: Vec<Meeting> = Vec::new();
                let most = self.random.pick(&[0, 1, 1, 2]);
                for _ in 0..most {
                    let [a, b] = [i, j].map(|index| &self.case.problem.accesses[index].loops);
                    let common: Vec<LoopId> = a
                        .iter()
                        .filter(|around| b.contains(around))
                        .copied()
                        .collect();
                    let mut meeting = Meeting::new();
                    for around in common {
                        if self.random.percent(80) {
                            let iterations = self.random.pick(&[0, 0, 0, 1, -1]);
                            meeting.push(Distance { around, iterations });
                        }
                    }
                    meetings.push(meeting);
                }
                self.case.problem.meetings.insert((i, j), meetings);
            }
        }
    }
}
