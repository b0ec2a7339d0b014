//! Arithmetic of machine words as clauses, for [`batsat`].
//!
//! A word is a list of literals, least significant first. Gates are Tseitin's; a gate with a constant input is none,
//! and equal gates are one.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Instant;

use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, lbool};

use crate::graph::{Comparison, Op};

/// Bits of a number, least significant first.
pub(super) type Word = Vec<Lit>;

/// How much work an answer may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Decisions and conflicts of the solver, together.
    pub(super) steps: u64,
    /// When to give up, whatever the work was.
    pub(super) until: Instant,
}

/// Stops the solver at its limit.
struct Counter {
    limit: Limit,
    steps: Cell<u64>,
}

impl Callbacks for Counter {
    fn stop(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        steps > self.limit.steps || (steps.is_multiple_of(256) && Instant::now() > self.limit.until)
    }
}

/// Whether clauses can hold all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// They can.
    Possible,
    /// They cannot.
    Impossible,
    /// The limit was reached.
    Stopped,
}

/// Clauses, and the gates that they are.
pub(super) struct Circuit {
    solver: Solver<Counter>,
    yes: Lit,
    ands: HashMap<(Lit, Lit), Lit>,
    xors: HashMap<(Lit, Lit), Lit>,
}

impl Circuit {
    pub(super) fn new(limit: Limit) -> Self {
        let counter = Counter {
            limit,
            steps: Cell::new(0),
        };
        let mut solver = Solver::new(SolverOpts::default(), counter);
        let yes = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![yes]);
        Self {
            solver,
            yes,
            ands: HashMap::new(),
            xors: HashMap::new(),
        }
    }

    /// Whether all that is required can hold.
    pub(super) fn solve(&mut self) -> Answer {
        match self.solver.solve_limited(&[]) {
            answer if answer == lbool::TRUE => Answer::Possible,
            answer if answer == lbool::FALSE => Answer::Impossible,
            _ => Answer::Stopped,
        }
    }

    /// Steps that the solver has taken.
    pub(super) fn steps(&self) -> u64 {
        self.solver.cb().steps.get()
    }

    /// Gates so far.
    pub(super) fn gates(&self) -> usize {
        self.ands.len() + self.xors.len()
    }

    /// The value of a word in the solution that was found last.
    #[cfg(test)]
    pub(super) fn value(&self, word: &[Lit]) -> u64 {
        let bits = word.iter().enumerate();
        bits.map(|(at, &bit)| u64::from(self.solver.value_lit(bit) == lbool::TRUE) << at)
            .sum()
    }

    pub(super) fn yes(&self) -> Lit {
        self.yes
    }

    pub(super) fn no(&self) -> Lit {
        !self.yes
    }

    pub(super) fn constant(&self, value: u64, bits: u32) -> Word {
        let bit = |at: u32| at < 64 && value >> at & 1 == 1;
        (0..bits)
            .map(|at| if bit(at) { self.yes } else { !self.yes })
            .collect()
    }

    /// The number that a word is, if it is one.
    fn number(&self, word: &[Lit]) -> Option<u64> {
        let mut value = 0;
        for (at, &bit) in word.iter().enumerate() {
            match bit {
                bit if bit == self.yes && at < 64 => value |= 1 << at,
                bit if bit == !self.yes => {}
                _ => return None,
            }
        }
        Some(value)
    }

    pub(super) fn bit(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    pub(super) fn word(&mut self, bits: u32) -> Word {
        (0..bits).map(|_| self.bit()).collect()
    }

    /// Requires that one of some literals holds.
    pub(super) fn require_any(&mut self, all: &[Lit]) {
        self.solver.add_clause_reuse(&mut all.to_vec());
    }

    pub(super) fn require(&mut self, of: Lit) {
        self.require_any(&[of]);
    }

    pub(super) fn and(&mut self, a: Lit, b: Lit) -> Lit {
        let (a, b) = (a.min(b), a.max(b));
        match () {
            () if a == self.no() || b == self.no() || a == !b => self.no(),
            () if a == self.yes || a == b => b,
            () if b == self.yes => a,
            () => {
                if let Some(&known) = self.ands.get(&(a, b)) {
                    return known;
                }
                let gate = self.bit();
                self.require_any(&[!gate, a]);
                self.require_any(&[!gate, b]);
                self.require_any(&[gate, !a, !b]);
                self.ands.insert((a, b), gate);
                gate
            }
        }
    }

    pub(super) fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    pub(super) fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        let (a, b) = (a.min(b), a.max(b));
        match () {
            () if a == self.no() => b,
            () if b == self.no() => a,
            () if a == self.yes => !b,
            () if b == self.yes => !a,
            () if a == b => self.no(),
            () if a == !b => self.yes,
            () => {
                if let Some(&known) = self.xors.get(&(a, b)) {
                    return known;
                }
                let gate = self.bit();
                self.require_any(&[!gate, a, b]);
                self.require_any(&[!gate, !a, !b]);
                self.require_any(&[gate, !a, b]);
                self.require_any(&[gate, a, !b]);
                self.xors.insert((a, b), gate);
                gate
            }
        }
    }

    pub(super) fn all(&mut self, of: &[Lit]) -> Lit {
        of.iter().fold(self.yes, |all, &one| self.and(all, one))
    }

    fn choose(&mut self, on: Lit, yes: Lit, no: Lit) -> Lit {
        let (a, b) = (self.and(on, yes), self.and(!on, no));
        self.or(a, b)
    }

    /// One word where a literal holds, else another.
    pub(super) fn select(&mut self, on: Lit, yes: &[Lit], no: &[Lit]) -> Word {
        let pairs = yes.iter().zip(no);
        pairs.map(|(&a, &b)| self.choose(on, a, b)).collect()
    }

    /// A sum with a carry into it, in as many bits as the first.
    fn sum(&mut self, a: &[Lit], b: &[Lit], mut carry: Lit) -> Word {
        let mut sum = Word::with_capacity(a.len());
        for (at, &x) in a.iter().enumerate() {
            let y = b.get(at).copied().unwrap_or(self.no());
            let half = self.xor(x, y);
            sum.push(self.xor(half, carry));
            let (both, passed) = (self.and(x, y), self.and(half, carry));
            carry = self.or(both, passed);
        }
        sum
    }

    pub(super) fn add(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        let no = self.no();
        self.sum(a, b, no)
    }

    pub(super) fn sub(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        let inverse: Word = b.iter().map(|&bit| !bit).collect();
        let yes = self.yes;
        self.sum(a, &inverse, yes)
    }

    fn negated(&mut self, of: &[Lit]) -> Word {
        let zero = self.constant(0, of.len() as u32);
        self.sub(&zero, of)
    }

    /// The low bits of a product.
    pub(super) fn mul(&mut self, a: &[Lit], b: &[Lit]) -> Word {
        let (a, b) = match self.number(a) {
            Some(_) => (b, a),
            None => (a, b),
        };
        let mut sum = self.constant(0, a.len() as u32);
        for (at, &bit) in b.iter().enumerate().take(a.len()) {
            if bit == self.no() {
                continue;
            }
            let mut row = self.constant(0, at as u32);
            for &x in &a[..a.len() - at] {
                row.push(self.and(x, bit));
            }
            sum = self.add(&sum, &row);
        }
        sum
    }

    /// A word in so many bits.
    pub(super) fn extended(&self, of: &[Lit], bits: u32, signed: bool) -> Word {
        let top = match (signed, of.last()) {
            (true, Some(&top)) => top,
            _ => self.no(),
        };
        let mut word = of.to_vec();
        word.resize(bits as usize, top);
        word
    }

    pub(super) fn equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut same = self.yes;
        for (&x, &y) in a.iter().zip(b) {
            let differ = self.xor(x, y);
            same = self.and(same, !differ);
        }
        same
    }

    /// Whether a word is less than another, as unsigned numbers.
    pub(super) fn below(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut below = self.no();
        for (&x, &y) in a.iter().zip(b) {
            let differ = self.xor(x, y);
            below = self.choose(differ, y, below);
        }
        below
    }

    fn less(&mut self, a: &[Lit], b: &[Lit], signed: bool) -> Lit {
        let mut turned = [a.to_vec(), b.to_vec()];
        if signed {
            for word in &mut turned {
                if let Some(top) = word.last_mut() {
                    *top = !*top;
                }
            }
        }
        self.below(&turned[0], &turned[1])
    }

    pub(super) fn compare(
        &mut self,
        comparison: Comparison,
        signed: bool,
        a: &[Lit],
        b: &[Lit],
    ) -> Lit {
        match comparison {
            Comparison::Equal => self.equal(a, b),
            Comparison::NotEqual => !self.equal(a, b),
            Comparison::Less => self.less(a, b, signed),
            Comparison::GreaterEqual => !self.less(a, b, signed),
            Comparison::Greater => self.less(b, a, signed),
            Comparison::LessEqual => !self.less(b, a, signed),
        }
    }

    /// A word shifted by the 32 low bits of another. Bits that come in are `fill`.
    fn shifted(&mut self, of: &[Lit], by: &[Lit], left: bool, fill: Lit) -> Word {
        let bits = of.len();
        let mut word = of.to_vec();
        let mut beyond = self.no();
        for (stage, &bit) in by.iter().enumerate().take(32) {
            if 1_u64 << stage >= bits as u64 {
                beyond = self.or(beyond, bit);
                continue;
            }
            let distance = 1 << stage;
            let moved: Word = (0..bits)
                .map(|at| match left {
                    true => at.checked_sub(distance).map_or(fill, |from| word[from]),
                    false => word.get(at + distance).copied().unwrap_or(fill),
                })
                .collect();
            word = self.select(bit, &moved, &word);
        }
        let filled = vec![fill; bits];
        self.select(beyond, &filled, &word)
    }

    /// The absolute value, and whether the number is negative.
    fn magnitude(&mut self, of: &[Lit], signed: bool) -> (Word, Lit) {
        match of.last() {
            Some(&top) if signed => {
                let negated = self.negated(of);
                (self.select(top, &negated, of), top)
            }
            _ => (of.to_vec(), self.no()),
        }
    }

    /// Quotient and remainder. Anything where the divisor is 0.
    fn divided(&mut self, a: &[Lit], b: &[Lit], signed: bool) -> [Word; 2] {
        let bits = a.len() as u32;
        let ((x, a_negative), (y, b_negative)) =
            (self.magnitude(a, signed), self.magnitude(b, signed));
        let (quotient, remainder) = (self.word(bits), self.word(bits));
        // Twice as many bits, so that nothing wraps around.
        let wide = |of: &[Lit]| self.extended(of, 2 * bits, false);
        let [wide_x, wide_y, q, r] = [wide(&x), wide(&y), wide(&quotient), wide(&remainder)];
        let product = self.mul(&q, &wide_y);
        let sum = self.add(&product, &r);
        let (exact, small) = (self.equal(&sum, &wide_x), self.below(&remainder, &y));
        let zero = self.constant(0, bits);
        let by_zero = self.equal(&y, &zero);
        self.require_any(&[by_zero, exact]);
        self.require_any(&[by_zero, small]);
        let differ = self.xor(a_negative, b_negative);
        let (minus_q, minus_r) = (self.negated(&quotient), self.negated(&remainder));
        [
            self.select(differ, &minus_q, &quotient),
            self.select(a_negative, &minus_r, &remainder),
        ]
    }

    /// An operation on words, as [`compute`](crate::machine::compute) does it. None if that is not followed.
    pub(super) fn operation(
        &mut self,
        op: Op,
        signed: bool,
        bits: u32,
        inputs: &[Word],
    ) -> Option<Word> {
        let a = inputs.first()?;
        let b = inputs.get(1).unwrap_or(a);
        let narrow = |word: &Word| word.len() == bits as usize;
        let shift = matches!(op, Op::Shl | Op::Shr | Op::Field);
        if !matches!(op, Op::MulWide | Op::Convert { .. }) && !(narrow(a) && (shift || narrow(b))) {
            return None;
        }
        // A product of two unknown words of 64 bits, or the like, is too large.
        let known = self.number(a).is_some() || self.number(b).is_some();
        Some(match op {
            Op::Add => self.add(a, b),
            Op::Sub => self.sub(a, b),
            Op::Mul => self.mul(a, b),
            Op::MulHigh if known || bits <= 32 => {
                let [x, y] = [a, b].map(|of| self.extended(of, 2 * bits, signed));
                self.mul(&x, &y)[bits as usize..].to_vec()
            }
            Op::MulWide => {
                let half = (bits / 2) as usize;
                let [x, y] = [a, b].map(|of| of.get(..half).map(<[Lit]>::to_vec));
                let [x, y] = [x?, y?].map(|of| self.extended(&of, bits, signed));
                self.mul(&x, &y)
            }
            Op::Div | Op::Rem if self.number(b).is_some() || bits <= 32 => {
                let [quotient, remainder] = self.divided(a, b, signed);
                if op == Op::Div { quotient } else { remainder }
            }
            Op::Shl => {
                let no = self.no();
                self.shifted(a, b, true, no)
            }
            Op::Shr => {
                let fill = match (signed, a.last()) {
                    (true, Some(&top)) => top,
                    _ => self.no(),
                };
                self.shifted(a, b, false, fill)
            }
            Op::And => a.iter().zip(b).map(|(&x, &y)| self.and(x, y)).collect(),
            Op::Or => a.iter().zip(b).map(|(&x, &y)| self.or(x, y)).collect(),
            Op::Xor => a.iter().zip(b).map(|(&x, &y)| self.xor(x, y)).collect(),
            Op::Not => a.iter().map(|&x| !x).collect(),
            Op::Neg => self.negated(a),
            Op::Abs => self.magnitude(a, true).0,
            Op::Min => {
                let less = self.less(a, b, signed);
                self.select(less, a, b)
            }
            Op::Max => {
                let less = self.less(a, b, signed);
                self.select(less, b, a)
            }
            Op::Convert {
                from,
                to,
                to_signed,
            } => {
                let from = a.get(..from as usize)?;
                let value = self.extended(from, 64, signed);
                let value = self.extended(&value[..(to as usize).min(64)], 64, to_signed);
                value.get(..bits as usize)?.to_vec()
            }
            Op::Field if !signed => {
                let (from, count) = (self.number(b)?, self.number(inputs.get(2)?)?);
                let (from, count) = ((from & 0xff) as usize, (count & 0xff) as usize);
                let field = a.iter().skip(from).take(count).copied().collect::<Word>();
                self.extended(&field, bits, false)
            }
            _ => return None,
        })
    }
}
