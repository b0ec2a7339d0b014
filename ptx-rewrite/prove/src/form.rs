//! Linear forms while they are computed, what is known of their symbols, and bounds.

use smallvec::SmallVec;

use crate::decide::gcd;
use crate::interval::Interval;
use crate::problem::{Linear, LoopId, Symbol, SymbolId, SymbolKind, Term};

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
    pub(crate) terms: SmallVec<[Term; 4]>,
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
        terms.push(Term::new(symbol, 1));
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
                (Some(&&a), Some(&&b)) if a.variable == b.variable => {
                    left.next();
                    right.next();
                    let value = i128::from(a.coefficient) + factor * i128::from(b.coefficient);
                    (a.variable, value)
                }
                (Some(&&a), Some(&&b)) if a.variable < b.variable => {
                    left.next();
                    (a.variable, i128::from(a.coefficient))
                }
                (Some(&&a), None) => {
                    left.next();
                    (a.variable, i128::from(a.coefficient))
                }
                (_, Some(&&b)) => {
                    right.next();
                    (b.variable, factor * i128::from(b.coefficient))
                }
            };
            if value.abs() > COEFFICIENT {
                return None;
            }
            if value != 0 {
                terms.push(Term::new(symbol, i64::try_from(value).ok()?));
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
        for term in &self.terms {
            if i128::from(term.coefficient) % divisor != 0 {
                return None;
            }
            terms.push(Term::new(
                term.variable,
                i64::try_from(i128::from(term.coefficient) / divisor).ok()?,
            ));
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
        let found = self.terms.iter().find(|term| term.variable == symbol);
        found.map_or(0, |term| term.coefficient)
    }

    /// The form with a number in place of a symbol.
    pub(crate) fn at(&self, symbol: SymbolId, value: i128) -> Option<Self> {
        let coefficient = i128::from(self.coefficient(symbol));
        let mut form = self.clone();
        form.terms.retain(|term| term.variable != symbol);
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

/// Ranges of some symbols.
type Ranges = SmallVec<[(SymbolId, Interval<i64>); 12]>;

/// How often ranges are narrowed by all rows.
const NARROWINGS: usize = 4;

/// The symbols of a launch and what holds between them.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    pub(crate) symbols: Vec<Symbol>,
    /// By symbol: the loop in which it has its value, if in one.
    pub(crate) home: Vec<Option<LoopId>>,
    pub(crate) uniform: Vec<Uniform>,
    /// Each is 0, whatever the symbols' values.
    pub(crate) equations: Vec<Form>,
    divisions: Vec<Division>,
}

/// A quotient and a remainder by a positive number.
#[derive(Debug)]
struct Division {
    dividend: Form,
    divisor: i128,
    quotient: Form,
    /// The symbol that stands for this quotient. None if other divisions say what it is.
    symbol: Option<SymbolId>,
    remainder: SymbolId,
    /// The dividend less the divisor times the quotient less the remainder: 0.
    equation: Form,
}

impl Symbols {
    pub(crate) fn add(
        &mut self,
        kind: SymbolKind,
        range: Interval<i64>,
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
        range: Interval<i64>,
        home: Option<LoopId>,
        uniform: Uniform,
    ) -> SymbolId {
        let kind = match uniform {
            Uniform::Grid => SymbolKind::GridUniform,
            Uniform::Block | Uniform::Iteration => SymbolKind::BlockUniform,
            Uniform::No => SymbolKind::Unknown,
        };
        self.add(kind, range, home, uniform)
    }

    /// Which threads have the same value of a form.
    pub(crate) fn uniform(&self, form: &Form) -> Uniform {
        let terms = form.terms.iter();
        terms
            .map(|term| self.uniform[term.variable as usize])
            .max()
            .unwrap_or(Uniform::Grid)
    }

    /// Least and greatest value, each symbol taken alone.
    pub(crate) fn range(&self, form: &Form) -> Interval<i128> {
        extent(form, |symbol| self.symbols[symbol as usize].range)
    }

    /// A lower bound of a form where rows are not negative and symbols are in their ranges.
    fn low(form: &Form, rows: &[Form], range: &dyn Fn(&Form) -> Interval<i128>) -> i128 {
        let mut best = range(form).low;
        let mut current = form.clone();
        for _ in 0..4 {
            let mut next: Option<(i128, Form)> = None;
            for row in rows {
                for term in &current.terms {
                    let of = row.coefficient(term.variable);
                    if of == 0 || term.coefficient % of != 0 || (term.coefficient < 0) != (of < 0) {
                        continue;
                    }
                    let Some(less) = current.plus(-i128::from(term.coefficient / of), row) else {
                        continue;
                    };
                    let low = range(&less).low;
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

    /// Bounds of a form where rows are not negative and symbols are in their ranges.
    fn between(
        form: &Form,
        rows: &[Form],
        range: &dyn Fn(&Form) -> Interval<i128>,
    ) -> Interval<i128> {
        let low = Self::low(form, rows, range);
        let high = match form.times(-1) {
            Some(negated) => -Self::low(&negated, rows, range),
            None => range(form).high,
        };
        Interval::new(low, high)
    }

    /// Bounds of a form where rows are not negative.
    pub(crate) fn bounds(&self, form: &Form, rows: &[Form]) -> Interval<i128> {
        Self::between(form, rows, &|form| self.range(form))
    }

    /// The same, with the ranges of symbols narrowed by the rows and by what holds anyway. The least is above the
    /// greatest if the rows cannot hold.
    pub(crate) fn narrow_bounds(&self, form: &Form, rows: &[Form]) -> Interval<i128> {
        let Some(ranges) = self.narrowed(form, rows) else {
            return Interval::new(0, -1);
        };
        let of = |symbol: SymbolId| {
            let own = ranges.iter().find(|own| own.0 == symbol);
            own.map_or(self.symbols[symbol as usize].range, |own| own.1)
        };
        Self::between(form, rows, &|form| extent(form, of))
    }

    /// The ranges of the symbols of a form and of rows where the rows are not negative. None if they cannot be.
    fn narrowed(&self, form: &Form, rows: &[Form]) -> Option<Ranges> {
        let mut ranges = Ranges::new();
        let add = |ranges: &mut Ranges, form: &Form| {
            for term in &form.terms {
                if ranges.iter().all(|own| own.0 != term.variable) {
                    ranges.push((term.variable, self.symbols[term.variable as usize].range));
                }
            }
        };
        add(&mut ranges, form);
        rows.iter().for_each(|row| add(&mut ranges, row));
        let mut equations: SmallVec<[&Form; 8]> = SmallVec::new();
        // What later divisions divide, earlier ones define.
        for of in self.divisions.iter().rev() {
            let last = of
                .quotient
                .terms
                .last()
                .map_or(of.remainder, |last| last.variable);
            if ranges
                .iter()
                .any(|own| own.0 == of.remainder || own.0 == last)
            {
                add(&mut ranges, &of.equation);
                equations.push(&of.equation);
            }
        }
        for _ in 0..NARROWINGS {
            let mut changed = false;
            for row in rows {
                changed |= narrow(&mut ranges, row, 1)?;
            }
            for equation in &equations {
                changed |= narrow(&mut ranges, equation, 1)?;
                changed |= narrow(&mut ranges, equation, -1)?;
            }
            if !changed {
                break;
            }
        }
        Some(ranges)
    }

    /// Quotient, rounded down, and remainder by a positive number, whatever the symbols' values.
    pub(crate) fn divide(&mut self, form: &Form, divisor: i128) -> Option<(Form, Form)> {
        // What the divisor divides by itself, and the rest.
        let (mut whole, mut rest) = (Form::default(), Form::default());
        for term in &form.terms {
            match i128::from(term.coefficient) % divisor {
                0 => whole.terms.push(Term::new(
                    term.variable,
                    i64::try_from(i128::from(term.coefficient) / divisor).ok()?,
                )),
                _ => rest.terms.push(Term::new(term.variable, term.coefficient)),
            }
        }
        whole.constant = form.constant.div_euclid(divisor);
        rest.constant = form.constant.rem_euclid(divisor);
        let Interval { low, high } = self.range(&rest);
        let (least, greatest) = (low.div_euclid(divisor), high.div_euclid(divisor));
        if least == greatest {
            let remainder = rest.shifted(-(least * divisor))?;
            return Some((whole.shifted(least)?, remainder));
        }
        // In lowest terms, so that what is the same has the same symbols.
        let common = rest
            .terms
            .iter()
            .fold(divisor, |common, term| gcd(common, term.coefficient.into()));
        let left = rest.constant.rem_euclid(common);
        let rest = rest.shifted(-left)?.divided(common)?;
        let (quotient, remainder) =
            self.division(rest, divisor / common, Interval::new(least, greatest))?;
        let remainder = Form::symbol(remainder).times(common)?.shifted(left)?;
        Some((whole.plus(1, &quotient)?, remainder))
    }

    /// A quotient and the symbol of a remainder, with the range of the quotient.
    fn division(
        &mut self,
        dividend: Form,
        divisor: i128,
        Interval {
            low: least,
            high: greatest,
        }: Interval<i128>,
    ) -> Option<(Form, SymbolId)> {
        let mut known = self.divisions.iter();
        let same = |of: &&Division| of.divisor == divisor && of.dividend == dividend;
        if let Some(known) = known.find(same) {
            return Some((known.quotient.clone(), known.remainder));
        }
        if divisor > COEFFICIENT {
            return None;
        }
        let uniform = self.uniform(&dividend);
        let home = self.innermost(&dividend);
        let nested = self.nested(&dividend).and_then(|(inner, by)| {
            let by = by.checked_mul(divisor).filter(|by| *by <= COEFFICIENT)?;
            Some(self.divide(&inner, by)?.0)
        });
        let (quotient, symbol) = match nested {
            Some(quotient) => (quotient, None),
            None => {
                let range =
                    Interval::new(i64::try_from(least).ok()?, i64::try_from(greatest).ok()?);
                let symbol = self.unknown(range, home, uniform);
                (Form::symbol(symbol), Some(symbol))
            }
        };
        let most = i64::try_from(divisor - 1).ok()?;
        let remainder = self.unknown(Interval::new(0, most), home, uniform);
        let equation = dividend
            .plus(-divisor, &quotient)?
            .plus(-1, &Form::symbol(remainder))?;
        self.equations.push(equation.clone());
        self.divisions.push(Division {
            dividend,
            divisor,
            quotient: quotient.clone(),
            symbol,
            remainder,
            equation,
        });
        Some((quotient, remainder))
    }

    /// What is divided where a symbol is the quotient or the remainder.
    pub(crate) fn dividend(&self, symbol: SymbolId) -> Option<&Form> {
        let mut all = self.divisions.iter();
        let found = all.find(|of| of.remainder == symbol || of.symbol == Some(symbol));
        found.map(|of| &of.dividend)
    }

    /// A form with one quotient in it, as a dividend and a divisor: a quotient of a quotient is one.
    fn nested(&self, form: &Form) -> Option<(Form, i128)> {
        let mut found = None;
        for term in &form.terms {
            let mut known = self.divisions.iter();
            if let Some(of) = known.find(|of| of.symbol == Some(term.variable)) {
                if term.coefficient != 1 || found.is_some() {
                    return None;
                }
                found = Some((term.variable, of));
            }
        }
        let (symbol, of) = found?;
        let rest = form.at(symbol, 0)?.times(of.divisor)?;
        Some((rest.plus(1, &of.dividend)?, of.divisor))
    }

    /// The same value in terms of quotients and remainders where a form has parts of a division: a dividend less a
    /// multiple of its quotient is the remainder, and a dividend less the remainder a multiple of the quotient.
    pub(crate) fn folded(&self, mut form: Form) -> Form {
        for of in &self.divisions {
            let Some(&Term {
                variable: first,
                coefficient: own,
            }) = of.dividend.terms.first()
            else {
                continue;
            };
            let found = form.coefficient(first);
            // A form with all that a division divides is one of the same loops.
            let mut terms = of.dividend.terms.iter();
            if found % own != 0 || terms.any(|term| form.coefficient(term.variable) == 0) {
                continue;
            }
            if let Some(less) = form.plus(-i128::from(found / own), &of.equation)
                && less.terms.len() < form.terms.len()
            {
                form = less;
            }
        }
        form
    }

    /// A quotient, rounded down, of a multiple of a form that is not negative under some rows: compilers make a
    /// multiplication and a shift of a division by a number. None if it is not one.
    pub(crate) fn fraction(&mut self, form: &Form, divisor: i128, rows: &[Form]) -> Option<Form> {
        let (form, divisor) = match self.nested(form) {
            Some((inner, by)) => (inner, by.checked_mul(divisor)?),
            None => (form.clone(), divisor),
        };
        let factor = form.terms.iter().fold(form.constant, |common, term| {
            gcd(common, term.coefficient.into())
        });
        if factor <= 1 || factor >= divisor {
            return None;
        }
        let whole = form.divided(factor)?;
        let by = -(-divisor).div_euclid(factor);
        // factor * n / divisor is n / by and excess * n / (by * divisor) more. The latter is less than 1 / by.
        let excess = by * factor - divisor;
        let Interval { low, high } = self.bounds(&whole, rows);
        if low < 0 || high.checked_mul(excess)? >= divisor {
            return None;
        }
        Some(self.divide(&whole, by)?.0)
    }

    /// The innermost loop in which a symbol of a form has its value. Loops are numbered outer ones first.
    fn innermost(&self, form: &Form) -> Option<LoopId> {
        let terms = form.terms.iter();
        terms
            .filter_map(|term| self.home[term.variable as usize])
            .max()
    }
}

/// Least and greatest value of a form whose symbols are in ranges, each taken alone.
fn extent(form: &Form, range: impl Fn(SymbolId) -> Interval<i64>) -> Interval<i128> {
    let (mut low, mut high) = (form.constant, form.constant);
    for term in &form.terms {
        let Interval {
            low: least,
            high: greatest,
        } = range(term.variable);
        let coefficient = i128::from(term.coefficient);
        let (a, b) = (
            coefficient * i128::from(least),
            coefficient * i128::from(greatest),
        );
        low += a.min(b);
        high += a.max(b);
    }
    Interval::new(low, high)
}

/// Narrows ranges by a form that times a sign is not negative. None if it cannot be so.
fn narrow(ranges: &mut Ranges, form: &Form, sign: i128) -> Option<bool> {
    let of = |ranges: &Ranges, symbol| ranges.iter().position(|own| own.0 == symbol);
    let mut greatest = sign * form.constant;
    for term in &form.terms {
        let Interval { low, high } = ranges[of(ranges, term.variable)?].1;
        let coefficient = sign * i128::from(term.coefficient);
        greatest += (coefficient * i128::from(low)).max(coefficient * i128::from(high));
    }
    if greatest < 0 {
        return None;
    }
    let mut changed = false;
    for &Term {
        variable,
        coefficient,
    } in &form.terms
    {
        let at = of(ranges, variable)?;
        let Interval { low, high } = &mut ranges[at].1;
        // The others add up to `greatest - own` at most, so this term is at least `own - greatest`.
        let coefficient = sign * i128::from(coefficient);
        if coefficient > 0 {
            let slack = i64::try_from(greatest / coefficient).ok();
            if let Some(least) = slack.and_then(|slack| high.checked_sub(slack))
                && least > *low
            {
                *low = least;
                changed = true;
            }
        } else {
            let slack = i64::try_from(greatest / -coefficient).ok();
            if let Some(most) = slack.and_then(|slack| low.checked_add(slack))
                && most < *high
            {
                *high = most;
                changed = true;
            }
        }
        if low > high {
            return None;
        }
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(ranges: &[Interval<i64>]) -> Symbols {
        let mut symbols = Symbols::default();
        for &range in ranges {
            symbols.unknown(range, None, Uniform::No);
        }
        symbols
    }

    fn form(terms: &[(u32, i64)], constant: i128) -> Form {
        Form {
            terms: terms
                .iter()
                .map(|&(symbol, coefficient)| Term::new(symbol, coefficient))
                .collect(),
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
        let symbols = symbols(&[Interval::new(0, 3), Interval::new(0, 255)]);
        let row = form(&[(0, -256), (1, -1)], 999);
        let address = form(&[(0, 1024), (1, 4)], 64);
        assert_eq!(
            symbols.bounds(&address, &[]),
            Interval::new(64, 64 + 4 * 1023)
        );
        assert_eq!(
            symbols.bounds(&address, &[row]),
            Interval::new(64, 64 + 4 * 999)
        );
    }

    #[test]
    fn numbers_of_every_size_narrow_nothing_by_themselves() {
        let all = Interval::new(i64::MIN, i64::MAX);
        let symbols = symbols(&[all, all]);
        let row = form(&[(0, 1), (1, -1)], 0);
        for of in 0..2 {
            let value = Form::symbol(of);
            assert_eq!(
                symbols.narrow_bounds(&value, std::slice::from_ref(&row)),
                all.into()
            );
        }
    }

    #[test]
    fn rows_narrow_what_they_bound_together() {
        // 3 * a + b <= 10 and b >= a + 2, so a <= 2.
        let symbols = symbols(&[Interval::new(0, 100), Interval::new(0, 100)]);
        let rows = [form(&[(0, -3), (1, -1)], 10), form(&[(0, -1), (1, 1)], -2)];
        assert_eq!(
            symbols.narrow_bounds(&Form::symbol(0), &rows),
            Interval::new(0, 2)
        );
        let none = [rows[0].clone(), form(&[(0, 1)], -4)];
        let Interval { low, high } = symbols.narrow_bounds(&Form::symbol(1), &none);
        assert!(low > high);
    }

    #[test]
    fn a_product_by_an_inverse_is_a_quotient() {
        for divisor in 2..70i128 {
            for factor in 2..divisor {
                let mut symbols = symbols(&[Interval::new(0, 40)]);
                let product = form(&[(0, 1)], 3).times(factor);
                let product = product.expect("small numbers");
                let Some(quotient) = symbols.fraction(&product, divisor, &[]) else {
                    continue;
                };
                for x in 0..=40 {
                    let mut values = vec![x];
                    values.resize(symbols.symbols.len(), 0);
                    set(&symbols, &mut values);
                    let exact = ((x + 3) * factor).div_euclid(divisor);
                    assert_eq!(evaluate(&quotient, &values), exact, "{factor}/{divisor}");
                }
            }
        }
        // Thirds of numbers of 31 bits, as compilers write them, and a factor that is not near enough.
        let mut symbols = symbols(&[Interval::new(0, (1 << 31) - 1)]);
        let of = |factor| Form::symbol(0).times(factor).expect("small numbers");
        let third = symbols.divide(&Form::symbol(0), 3).map(|of| of.0);
        assert!(third.is_some());
        assert_eq!(symbols.fraction(&of(0xaaaa_aaab), 1 << 33, &[]), third);
        assert_eq!(symbols.fraction(&of(0xaaaa_aaaa), 1 << 33, &[]), None);
        assert_eq!(symbols.fraction(&of(43691), 1 << 17, &[]), None);
    }

    #[test]
    fn parts_of_a_division_fold() {
        let mut symbols = symbols(&[Interval::new(0, 99), Interval::new(0, 9)]);
        let dividend = form(&[(0, 1), (1, 2)], 5);
        let Some((quotient, remainder)) = symbols.divide(&dividend, 7) else {
            panic!("small numbers");
        };
        let rest = dividend.plus(-7, &quotient).expect("small numbers");
        assert_eq!(symbols.folded(rest), remainder);
        let whole = dividend.plus(-1, &remainder).expect("small numbers");
        assert_eq!(Some(symbols.folded(whole)), quotient.times(7));
        // With a part of what is divided alone, a form stays as it is.
        let part = Form::symbol(0);
        assert_eq!(symbols.folded(part.clone()), part);
    }

    #[test]
    fn division_is_exact_for_every_value() {
        let mut symbols = symbols(&[Interval::new(-7, 9), Interval::new(0, 5)]);
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
                    set(&symbols, &mut values);
                    assert_eq!(evaluate(&quotient, &values), exact.div_euclid(divisor));
                    assert_eq!(evaluate(&remainder, &values), exact.rem_euclid(divisor));
                    for (symbol, value) in symbols.symbols.iter().zip(&values) {
                        let Interval { low, high } = symbol.range;
                        assert!(*value >= i128::from(low) && *value <= i128::from(high));
                    }
                }
            }
        }
    }

    /// Sets quotients and remainders to what they are.
    fn set(symbols: &Symbols, values: &mut [i128]) {
        for of in &symbols.divisions {
            let dividend = evaluate(&of.dividend, values);
            if let Some(symbol) = of.symbol {
                values[symbol as usize] = dividend.div_euclid(of.divisor);
            }
            values[of.remainder as usize] = dividend.rem_euclid(of.divisor);
            assert_eq!(evaluate(&of.equation, values), 0);
        }
    }

    fn evaluate(form: &Form, values: &[i128]) -> i128 {
        let terms = form.terms.iter();
        form.constant
            + terms
                .map(|term| i128::from(term.coefficient) * values[term.variable as usize])
                .sum::<i128>()
    }
}
