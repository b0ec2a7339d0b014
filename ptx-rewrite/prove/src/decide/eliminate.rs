//! Whether a conjunction of linear rows over the integers is certainly empty: substitution of equations, then
//! Fourier–Motzkin elimination with rounding.
//!
//! Each step keeps all integer solutions, so "empty" is a proof. "Not empty" is none: eliminating over the rationals
//! can lose that no integer is left.

use super::integer::{INFINITE, gcd};
use super::system::System;
use crate::interval::Interval;

/// Most rows at a time.
const ROWS: usize = 250;

/// Where numbers end, far from those that wrap.
const LARGE: u128 = 1 << 120;

/// Rows over the same variables: a coefficient per variable, then the constant.
struct Rows {
    width: usize,
    values: Vec<i128>,
}

/// What one step came to.
enum Step {
    /// No integer satisfies the rows.
    Empty,
    /// There is more to eliminate.
    Open,
    /// Elimination ends without a proof.
    End,
}

/// Whether nothing satisfies the rows and bounds of a system. Counts the coefficients it has looked at.
pub(super) fn empty(system: &System, steps: &mut u64) -> bool {
    decide(system, steps).unwrap_or(false)
}

/// `None` if a number is too large.
fn decide(system: &System, steps: &mut u64) -> Option<bool> {
    if system.contradiction {
        return Some(true);
    }
    // The variables with more than one value are columns.
    let mut column = vec![usize::MAX; system.domain.len()];
    let mut variables = Vec::new();
    for (variable, &Interval { low, high }) in system.domain.iter().enumerate() {
        if low > high {
            return Some(true);
        }
        if low < high {
            column[variable] = variables.len();
            variables.push((low, high));
        }
    }
    let width = variables.len() + 1;
    let (mut equal, mut least) = (Rows::new(width), Rows::new(width));
    let mut row = vec![0; width];
    for (terms, low, high) in system.rows() {
        row.fill(0);
        for term in terms {
            let coefficient = i128::from(term.coefficient);
            match column[term.variable as usize] {
                usize::MAX => {
                    row[width - 1] += coefficient * system.domain[term.variable as usize].low
                }
                column => row[column] += coefficient,
            }
        }
        let sum = row[width - 1];
        if low == high {
            row[width - 1] = sum - low;
            equal.push(&row);
            continue;
        }
        if low > -INFINITE {
            row[width - 1] = sum - low;
            least.push(&row);
        }
        if high < INFINITE {
            row.iter_mut().for_each(|value| *value = -*value);
            row[width - 1] = high - sum;
            least.push(&row);
        }
    }
    for (column, &(low, high)) in variables.iter().enumerate() {
        row.fill(0);
        (row[column], row[width - 1]) = (1, -low);
        least.push(&row);
        (row[column], row[width - 1]) = (-1, high);
        least.push(&row);
    }
    if substitute(&mut equal, &mut least, steps)? {
        return Some(true);
    }
    loop {
        match eliminate(&mut least, steps)? {
            Step::Empty => return Some(true),
            Step::End => return Some(false),
            Step::Open => {}
        }
    }
}

impl Rows {
    fn new(width: usize) -> Self {
        Self {
            width,
            values: Vec::new(),
        }
    }

    fn push(&mut self, row: &[i128]) {
        self.values.extend_from_slice(row);
    }

    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn row(&self, index: usize) -> &[i128] {
        &self.values[index * self.width..][..self.width]
    }

    fn iter(&self) -> std::slice::ChunksExact<'_, i128> {
        self.values.chunks_exact(self.width)
    }

    fn iter_mut(&mut self) -> std::slice::ChunksExactMut<'_, i128> {
        self.values.chunks_exact_mut(self.width)
    }

    /// Takes a row out; the last one takes its index.
    fn take(&mut self, index: usize) -> Vec<i128> {
        let row = self.row(index).to_vec();
        let last = self.len() - 1;
        self.values
            .copy_within(last * self.width.., index * self.width);
        self.values.truncate(last * self.width);
        row
    }
}

/// Replaces variables by what equations say they are; true if the equations alone have no solution.
///
/// Equations without a coefficient of 1 or -1 become two inequalities.
fn substitute(equal: &mut Rows, least: &mut Rows, steps: &mut u64) -> Option<bool> {
    let constant = equal.width - 1;
    loop {
        let mut unit = None;
        for (index, row) in equal.iter_mut().enumerate() {
            let common = row[..constant]
                .iter()
                .fold(0, |common, &value| gcd(common, value));
            if common == 0 {
                if row[constant] != 0 {
                    return Some(true);
                }
                continue;
            }
            if row[constant] % common != 0 {
                return Some(true);
            }
            if common > 1 {
                row.iter_mut().for_each(|value| *value /= common);
            }
            if unit.is_none() {
                let column = row[..constant].iter().position(|value| value.abs() == 1);
                unit = column.map(|column| (index, column));
            }
        }
        let Some((index, column)) = unit else { break };
        let definition = equal.take(index);
        *steps += ((equal.len() + least.len()) * equal.width) as u64;
        for row in equal.iter_mut().chain(least.iter_mut()) {
            let factor = row[column] * definition[column];
            if factor != 0 {
                combine(row, 1, &definition, -factor)?;
            }
        }
    }
    for row in equal.iter() {
        least.push(row);
        let opposite: Vec<i128> = row.iter().map(|value| -value).collect();
        least.push(&opposite);
    }
    Some(false)
}

/// Makes a row `a * row + b * other`; `None` if a number is too large.
fn combine(row: &mut [i128], a: i128, other: &[i128], b: i128) -> Option<()> {
    for (value, other) in row.iter_mut().zip(other) {
        if *value == 0 && *other == 0 {
            continue;
        }
        let sum = value.checked_mul(a)?.checked_add(other.checked_mul(b)?)?;
        *value = (sum.unsigned_abs() < LARGE).then_some(sum)?;
    }
    Some(())
}

/// Eliminates the variable that leaves the fewest rows.
fn eliminate(rows: &mut Rows, steps: &mut u64) -> Option<Step> {
    let constant = rows.width - 1;
    *steps += rows.values.len() as u64;
    match tidy(rows) {
        Step::Open => {}
        end => return Some(end),
    }
    let mut counts = vec![(0_usize, 0_usize); constant];
    for row in rows.iter() {
        for (count, &value) in counts.iter_mut().zip(row) {
            match value.signum() {
                1 => count.0 += 1,
                -1 => count.1 += 1,
                _ => {}
            }
        }
    }
    let occurring = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| count.0 + count.1 > 0);
    let Some((column, count)) = occurring.min_by_key(|(_, count)| count.0 * count.1) else {
        return Some(Step::End);
    };
    if rows.len() - count.0 - count.1 + count.0 * count.1 > ROWS {
        return Some(Step::End);
    }
    let mut left = Rows::new(rows.width);
    for above in rows.iter() {
        if above[column] == 0 {
            left.push(above);
        }
        if above[column] <= 0 {
            continue;
        }
        for below in rows.iter().filter(|row| row[column] < 0) {
            let common = gcd(above[column], below[column]);
            let mut row = above.to_vec();
            combine(
                &mut row,
                -below[column] / common,
                below,
                above[column] / common,
            )?;
            left.push(&row);
        }
    }
    *steps += left.values.len() as u64;
    *rows = left;
    Some(Step::Open)
}

/// Divides rows by their common divisors, keeps the strictest of those with the same coefficients, and compares those
/// with opposite ones.
fn tidy(rows: &mut Rows) -> Step {
    let constant = rows.width - 1;
    let mut order: Vec<usize> = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter_mut().enumerate() {
        let common = row[..constant]
            .iter()
            .fold(0, |common, &value| gcd(common, value));
        if common == 0 {
            if row[constant] < 0 {
                return Step::Empty;
            }
            continue;
        }
        if common > 1 {
            row[..constant]
                .iter_mut()
                .for_each(|value| *value /= common);
            row[constant] = row[constant].div_euclid(common);
        }
        order.push(index);
    }
    // Rows with the same or opposite coefficients stand together, and of the same the strictest first.
    let positive = |row: &[i128]| {
        row.iter()
            .find(|value| **value != 0)
            .is_none_or(|value| *value > 0)
    };
    let compare = |a: &[i128], b: &[i128]| {
        let (a_sign, b_sign) = (positive(a), positive(b));
        let normal = |value: &i128, sign: bool| if sign { *value } else { -*value };
        let coefficients = (a[..constant].iter().map(|value| normal(value, a_sign)))
            .cmp(b[..constant].iter().map(|value| normal(value, b_sign)));
        (
            coefficients,
            a_sign.cmp(&b_sign).then(a[constant].cmp(&b[constant])),
        )
    };
    order.sort_unstable_by(|&a, &b| {
        let (coefficients, rest) = compare(rows.row(a), rows.row(b));
        coefficients.then(rest)
    });
    let mut kept = Rows::new(rows.width);
    let mut last: Option<usize> = None;
    for &index in &order {
        let row = rows.row(index);
        if let Some(last) = last {
            let last = rows.row(last);
            let (coefficients, _) = compare(last, row);
            if coefficients.is_eq() {
                if positive(last) == positive(row) {
                    continue;
                }
                let sum = last[constant].checked_add(row[constant]);
                if sum.is_some_and(|sum| sum < 0) {
                    return Step::Empty;
                }
            }
        }
        kept.push(row);
        last = Some(index);
    }
    if kept.len() == 0 {
        return Step::End;
    }
    *rows = kept;
    Step::Open
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;
    use crate::decide::integer::INFINITE;
    use crate::problem::Term;

    /// A system of few variables with few values.
    fn system(random: &mut Random) -> System {
        let mut system = System::default();
        let variables = random.between(2, 5);
        let mut point = Vec::new();
        for _ in 0..variables {
            let low = random.between(-6, 3);
            let high = low + random.between(0, 7);
            system.variable(low.into(), high.into());
            point.push(random.between(low, high));
        }
        for _ in 0..random.between(2, 5) {
            let mut terms = Vec::new();
            for variable in 0..variables {
                let coefficient = random.between(-9, 9);
                if coefficient != 0 && random.between(0, 2) > 0 {
                    terms.push(Term::new(u16::try_from(variable).unwrap(), coefficient));
                }
            }
            // Near a point, so that some systems have a solution and others just not.
            let at: i64 = terms
                .iter()
                .map(|term| term.coefficient * point[usize::from(term.variable)])
                .sum();
            let low = i128::from(at + random.between(-8, 8));
            match random.between(0, 3) {
                0 => system.bound(&terms, low, low),
                1 => system.bound(&terms, low, low + 3),
                2 => system.bound(&terms, low, INFINITE),
                _ => system.bound(&terms, -INFINITE, low),
            }
        }
        system
    }

    /// Whether some values satisfy a system, by trying all.
    fn satisfiable(system: &System) -> bool {
        let mut values: Vec<i128> = system.domain.iter().map(|domain| domain.low).collect();
        loop {
            let holds = |(terms, low, high): (&[Term<u16>], i128, i128)| {
                let sum: i128 = terms
                    .iter()
                    .map(|term| i128::from(term.coefficient) * values[usize::from(term.variable)])
                    .sum();
                low <= sum && sum <= high
            };
            if system.rows().all(holds) {
                return true;
            }
            // The next values, the first variable fastest; none if all have come back to their least.
            let next = values.iter_mut().zip(&system.domain).find_map(
                |(value, &Interval { low, high })| {
                    *value = if *value == high { low } else { *value + 1 };
                    (*value != low).then_some(())
                },
            );
            if next.is_none() {
                return false;
            }
        }
    }

    #[test]
    fn empty_systems_have_no_solution() {
        let mut random = Random::new(1);
        let (mut unsatisfiable, mut found, mut by_bounds) = (0, 0, 0);
        for number in 0..20_000 {
            let mut system = system(&mut random);
            let truth = !system.contradiction && satisfiable(&system);
            let answer = empty(&system, &mut 0);
            assert!(!(truth && answer), "system {number}: {:?}", system.domain);
            unsatisfiable += u32::from(!truth);
            found += u32::from(answer);
            let bounded = system.propagate(&mut 0);
            assert!(bounded || !truth, "system {number}: {:?}", system.domain);
            by_bounds += u32::from(!bounded);
        }
        let figures = format!("of {unsatisfiable}: {found} by elimination, {by_bounds} by bounds");
        assert!((10_000..17_000).contains(&unsatisfiable), "{figures}");
        assert!(found * 100 > unsatisfiable * 90, "{figures}");
    }
}
