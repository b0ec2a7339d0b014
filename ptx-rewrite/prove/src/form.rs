//! Linear forms while they are computed, what is known of their symbols, and bounds.

use smallvec::SmallVec;

use crate::problem::{Kind, Linear, LoopId, Symbol, SymbolId};

/// Greatest absolute value of a coefficient.
const COEFFICIENT: i128 = 1 << 40;

/// Greatest absolute value of a constant.
const CONSTANT: i128 = 1 << 96;

/// Most terms of a form.
const TERMS: usize = 24;

/// A sum of multiples of symbols and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Symbols in ascending order, each once, with a coefficient other than 0.
    pub(crate) terms: SmallVec<[(SymbolId, i64); 4]>,
    /// The constant.
    pub(crate) constant: i128,
}

impl Form {
    pub(crate) fn constant(constant: i128) -> Self {
        Self {
            terms: SmallVec::new(),
            constant,
        }
    }

    pub(crate) fn symbol(symbol: SymbolId) -> Self {
        let mut terms = SmallVec::new();
        terms.push((symbol, 1));
        Self { terms, constant: 0 }
    }

    /// The number that it is, if it has no symbols.
    pub(crate) fn number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The sum with `factor` times another form. None if a number becomes too large.
    pub(crate) fn plus(&self, factor: i128, other: &Self) -> Option<Self> {
        if factor.abs() > COEFFICIENT {
            return (other.number()? == 0).then(|| self.clone());
        }
        let mut terms = SmallVec::new();
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (symbol, value) = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(&&(a, x)), Some(&&(b, y))) if a == b => {
                    left.next();
                    right.next();
                    (a, i128::from(x) + factor * i128::from(y))
                }
                (Some(&&(a, x)), Some(&&(b, _))) if a < b => {
                    left.next();
                    (a, i128::from(x))
                }
                (Some(&&(a, x)), None) => {
                    left.next();
                    (a, i128::from(x))
                }
                (_, Some(&&(b, y))) => {
                    right.next();
                    (b, factor * i128::from(y))
                }
            };
            if value.abs() > COEFFICIENT {
                return None;
            }
            if value != 0 {
                terms.push((symbol, i64::try_from(value).ok()?));
            }
        }
        let constant = factor.checked_mul(other.constant)?;
        let constant = self.constant.checked_add(constant)?;
        (constant.abs() <= CONSTANT && terms.len() <= TERMS).then_some(Self { terms, constant })
    }

    /// Another form less this one, less a constant: not negative where this one is less than the other by it.
    pub(crate) fn below(&self, other: &Self, by: i128) -> Option<Self> {
        other.plus(-1, self)?.shifted(-by)
    }

    /// The form plus a constant.
    pub(crate) fn shifted(&self, by: i128) -> Option<Self> {
        self.plus(1, &Self::constant(by))
    }

    /// A multiple.
    pub(crate) fn times(&self, factor: i128) -> Option<Self> {
        match self.number() {
            Some(number) => {
                let product = number.checked_mul(factor)?;
                (product.abs() <= CONSTANT).then(|| Self::constant(product))
            }
            None => Self::default().plus(factor, self),
        }
    }

    /// A `divisor`th, if that is a form.
    pub(crate) fn divided(&self, divisor: i128) -> Option<Self> {
        if divisor == 0 || self.constant % divisor != 0 {
            return None;
        }
        let mut terms = SmallVec::new();
        for &(symbol, value) in &self.terms {
            if i128::from(value) % divisor != 0 {
                return None;
            }
            terms.push((symbol, i64::try_from(i128::from(value) / divisor).ok()?));
        }
        Some(Self {
            terms,
            constant: self.constant / divisor,
        })
    }

    /// Whether all its values are multiples of a number.
    pub(crate) fn is_multiple(&self, of: i128) -> bool {
        self.divided(of).is_some()
    }

    /// The coefficient of a symbol.
    pub(crate) fn coefficient(&self, symbol: SymbolId) -> i64 {
        let found = self.terms.iter().find(|(of, _)| *of == symbol);
        found.map_or(0, |&(_, value)| value)
    }

    /// The form with a number in place of a symbol.
    pub(crate) fn at(&self, symbol: SymbolId, value: i128) -> Option<Self> {
        let coefficient = i128::from(self.coefficient(symbol));
        let mut form = self.clone();
        form.terms.retain(|(of, _)| *of != symbol);
        form.shifted(coefficient.checked_mul(value)?)
    }

    pub(crate) fn linear(&self) -> Linear {
        Linear {
            terms: self.terms.to_vec(),
            constant: self.constant,
        }
    }
}

/// Which threads have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Uniform {
    /// All of the grid, always.
    Grid,
    /// All of a block, always.
    Block,
    /// All of a block in the same iteration of the loops around.
    Iteration,
    /// Not known.
    No,
}

/// The symbols of a launch and what holds between them.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    pub(crate) symbols: Vec<Symbol>,
    /// By symbol: the loop in which it has its value, if in one.
    pub(crate) home: Vec<Option<LoopId>>,
    pub(crate) uniform: Vec<Uniform>,
    /// Each is 0, whatever the symbols' values.
    pub(crate) equations: Vec<Form>,
    quotients: Vec<(Form, i128, SymbolId)>,
}

impl Symbols {
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        range: (i64, i64),
        home: Option<LoopId>,
        uniform: Uniform,
    ) -> SymbolId {
        self.symbols.push(Symbol { kind, range });
        self.home.push(home);
        self.uniform.push(uniform);
        (self.symbols.len() - 1) as SymbolId
    }

    /// A value of which only the range is known.
    pub(crate) fn unknown(
        &mut self,
        range: (i64, i64),
        home: Option<LoopId>,
        uniform: Uniform,
    ) -> SymbolId {
        let kind = match uniform {
            Uniform::Grid => Kind::GridUniform,
            Uniform::Block | Uniform::Iteration => Kind::BlockUniform,
            Uniform::No => Kind::Unknown,
        };
        self.add(kind, range, home, uniform)
    }

    /// Which threads have the same value of a form.
    pub(crate) fn uniform(&self, form: &Form) -> Uniform {
        let terms = form.terms.iter();
        terms
            .map(|&(symbol, _)| self.uniform[symbol as usize])
            .max()
            .unwrap_or(Uniform::Grid)
    }

    /// Least and greatest value, each symbol taken alone.
    pub(crate) fn range(&self, form: &Form) -> (i128, i128) {
        let (mut low, mut high) = (form.constant, form.constant);
        for &(symbol, factor) in &form.terms {
            let (least, greatest) = self.symbols[symbol as usize].range;
            let factor = i128::from(factor);
            let (a, b) = (factor * i128::from(least), factor * i128::from(greatest));
            low += a.min(b);
            high += a.max(b);
        }
        (low, high)
    }

    /// A lower bound of a form where rows are not negative.
    pub(crate) fn low(&self, form: &Form, rows: &[Form]) -> i128 {
        let mut best = self.range(form).0;
        let mut current = form.clone();
        for _ in 0..4 {
            let mut next: Option<(i128, Form)> = None;
            for row in rows {
                for &(symbol, factor) in &current.terms {
                    let of = row.coefficient(symbol);
                    if of == 0 || factor % of != 0 || (factor < 0) != (of < 0) {
                        continue;
                    }
                    let Some(less) = current.plus(-i128::from(factor / of), row) else {
                        continue;
                    };
                    let low = self.range(&less).0;
                    if next.as_ref().is_none_or(|(known, _)| low > *known) {
                        next = Some((low, less));
                    }
                }
            }
            let Some((low, less)) = next else { break };
            if low <= best && less.terms.len() >= current.terms.len() {
                break;
            }
            best = best.max(low);
            current = less;
        }
        best
    }

    /// Bounds of a form where rows are not negative.
    pub(crate) fn bounds(&self, form: &Form, rows: &[Form]) -> (i128, i128) {
        let low = self.low(form, rows);
        let high = match form.times(-1) {
            Some(negated) => -self.low(&negated, rows),
            None => self.range(form).1,
        };
        (low, high)
    }

    /// Quotient, rounded down, and remainder by a positive number, whatever the symbols' values.
    pub(crate) fn divide(&mut self, form: &Form, divisor: i128) -> Option<(Form, Form)> {
        // What the divisor divides by itself, and the rest.
        let (mut whole, mut rest) = (Form::default(), Form::default());
        for &(symbol, value) in &form.terms {
            match i128::from(value) % divisor {
                0 => whole
                    .terms
                    .push((symbol, i64::try_from(i128::from(value) / divisor).ok()?)),
                _ => rest.terms.push((symbol, value)),
            }
        }
        whole.constant = form.constant.div_euclid(divisor);
        rest.constant = form.constant.rem_euclid(divisor);
        let (low, high) = self.range(&rest);
        let (least, greatest) = (low.div_euclid(divisor), high.div_euclid(divisor));
        if least == greatest {
            let remainder = rest.shifted(-(least * divisor))?;
            return Some((whole.shifted(least)?, remainder));
        }
        let known = self.quotients.iter();
        let found = known
            .filter(|(of, by, _)| *by == divisor && *of == rest)
            .map(|&(_, _, quotient)| quotient)
            .next();
        let quotient = match found {
            Some(quotient) => quotient,
            None => {
                if divisor > COEFFICIENT {
                    return None;
                }
                let range = (i64::try_from(least).ok()?, i64::try_from(greatest).ok()?);
                let uniform = self.uniform(&rest);
                let home = self.innermost(&rest);
                let quotient = self.unknown(range, home, uniform);
                let most = i64::try_from(divisor - 1).ok()?;
                let remainder = self.unknown((0, most), home, uniform);
                let equation = rest
                    .plus(-divisor, &Form::symbol(quotient))?
                    .plus(-1, &Form::symbol(remainder))?;
                self.equations.push(equation);
                self.quotients.push((rest.clone(), divisor, quotient));
                quotient
            }
        };
        Some((
            whole.plus(1, &Form::symbol(quotient))?,
            Form::symbol(quotient + 1),
        ))
    }

    /// The innermost loop in which a symbol of a form has its value. Loops are numbered outer ones first.
    fn innermost(&self, form: &Form) -> Option<LoopId> {
        let terms = form.terms.iter();
        terms
            .filter_map(|&(symbol, _)| self.home[symbol as usize])
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(ranges: &[(i64, i64)]) -> Symbols {
        let mut symbols = Symbols::default();
        for &range in ranges {
            symbols.unknown(range, None, Uniform::No);
        }
        symbols
    }

    fn form(terms: &[(u32, i64)], constant: i128) -> Form {
        Form {
            terms: terms.iter().copied().collect(),
            constant,
        }
    }

    #[test]
    fn sums_are_in_order_and_without_zeros() {
        let sum = form(&[(0, 1), (2, 4)], 3).plus(-2, &form(&[(1, 5), (2, 2)], 1));
        assert_eq!(sum, Some(form(&[(0, 1), (1, -10)], 1)));
    }

    #[test]
    fn a_row_bounds_a_sum_that_its_symbols_do_not() {
        // 4 * (256 * block + thread) where 256 * block + thread < 1000.
        let symbols = symbols(&[(0, 3), (0, 255)]);
        let row = form(&[(0, -256), (1, -1)], 999);
        let address = form(&[(0, 1024), (1, 4)], 64);
        assert_eq!(symbols.bounds(&address, &[]), (64, 64 + 4 * 1023));
        assert_eq!(symbols.bounds(&address, &[row]), (64, 64 + 4 * 999));
    }

    #[test]
    fn division_is_exact_for_every_value() {
        let mut symbols = symbols(&[(-7, 9), (0, 5)]);
        for divisor in 1..9 {
            let value = form(&[(0, 3), (1, 8)], -5);
            let Some((quotient, remainder)) = symbols.divide(&value, divisor) else {
                panic!("small numbers");
            };
            for x in -7..=9i128 {
                for y in 0..=5i128 {
                    let exact = 3 * x + 8 * y - 5;
                    let mut values = vec![x, y];
                    values.resize(symbols.symbols.len(), 0);
                    for equation in &symbols.equations {
                        // ... = divisor * quotient + remainder, in this order.
                        let [.., (q, d), (r, _)] = equation.terms[..] else {
                            panic!("two unknowns");
                        };
                        let mut known = equation.clone();
                        known.terms.truncate(known.terms.len() - 2);
                        let known = evaluate(&known, &values);
                        values[q as usize] = known.div_euclid(i128::from(-d));
                        values[r as usize] = known.rem_euclid(i128::from(-d));
                    }
                    assert_eq!(evaluate(&quotient, &values), exact.div_euclid(divisor));
                    assert_eq!(evaluate(&remainder, &values), exact.rem_euclid(divisor));
                    for (symbol, value) in symbols.symbols.iter().zip(&values) {
                        let (low, high) = symbol.range;
                        assert!(*value >= i128::from(low) && *value <= i128::from(high));
                    }
                }
            }
        }
    }

    fn evaluate(form: &Form, values: &[i128]) -> i128 {
        let terms = form.terms.iter();
        form.constant
            + terms
                .map(|&(symbol, factor)| i128::from(factor) * values[symbol as usize])
                .sum::<i128>()
    }
}
