//! Elimination and the tightening of bounds against z3, on systems with more values than can be tried.

use std::fmt::Write as _;

use random::Random;

use super::eliminate::empty;
use super::integer::INFINITE;
use super::system::{System, Variable};
use crate::interval::Interval;
use crate::problem::Term;
use crate::z3;

/// Random systems.
const SYSTEMS: usize = 1200;

/// Greatest absolute value of coefficients, and of bounds of variables.
const LARGE: i64 = 1 << 40;

/// Milliseconds that z3 gets for one system.
const TIMEOUT: u32 = 100;

#[test]
fn what_has_no_solution_has_none_by_z3() {
    let mut random = Random::new(1);
    let mut systems: Vec<System> = (0..SYSTEMS)
        .map(|number| match number % 2 {
            0 => scattered(&mut random),
            _ => nested(&mut random),
        })
        .collect();
    let texts: Vec<String> = systems.iter().map(text).collect();
    let Some(truths) = z3::answers("QF_LIA", TIMEOUT, &texts) else {
        return;
    };
    let (mut unsatisfiable, mut satisfiable) = (0, 0);
    let (mut found, mut by_bounds, mut neither) = (0, 0, 0);
    for ((system, text), truth) in systems.iter_mut().zip(&texts).zip(&truths) {
        let eliminated = empty(system, &mut 0);
        let bounded = !system.propagate(&mut 0);
        assert!(
            !(eliminated || bounded) || truth != "sat",
            "z3 has a solution; no solution by elimination: {eliminated}, by bounds: {bounded}\n{text}"
        );
        match truth.as_str() {
            "sat" => satisfiable += 1,
            "unsat" => {
                unsatisfiable += 1;
                found += u32::from(eliminated);
                by_bounds += u32::from(bounded);
                neither += u32::from(!eliminated && !bounded);
            }
            _ => {}
        }
    }
    let figures = format!(
        "{SYSTEMS} systems: {satisfiable} have a solution by z3, {unsatisfiable} have none; \
         of these {found} by elimination, {by_bounds} by bounds, {neither} by neither"
    );
    println!("{figures}");
    assert!(satisfiable + unsatisfiable >= 1180, "{figures}");
    assert!(satisfiable >= 300 && unsatisfiable >= 500, "{figures}");
    assert!(found * 100 >= unsatisfiable * 85, "{figures}");
    assert!(neither * 100 <= unsatisfiable * 3, "{figures}");
}

/// A number of either sign, small, a power of two, or any.
fn coefficient(random: &mut Random) -> i64 {
    let value = match random.below(4) {
        0 => 1,
        1 => random.between(1, 9),
        2 => 1 << random.between(1, 40),
        _ => random.between(1, LARGE),
    };
    if random.percent(50) { value } else { -value }
}

/// A number of values.
fn extent(random: &mut Random) -> i64 {
    match random.below(4) {
        0 => random.between(1, 7),
        1 => 1 << random.between(3, 40),
        2 => random.between(1, 5000),
        _ => random.between(1, LARGE),
    }
}

/// A sum at a point.
fn value(terms: &[Term<Variable>], point: &[i64]) -> i128 {
    let products = terms
        .iter()
        .map(|term| i128::from(term.coefficient) * i128::from(point[usize::from(term.variable)]));
    products.sum()
}

/// Bounds a sum near its value at a point, so that some systems have a solution and others just not.
fn near(
    random: &mut Random,
    system: &mut System,
    terms: &[Term<Variable>],
    point: &[i64],
    off: i64,
) {
    let low = value(terms, point) + i128::from(random.between(-off, off));
    match random.below(4) {
        0 => system.bound(terms, low, low),
        1 => system.bound(terms, low, low + 3),
        2 => system.bound(terms, low, INFINITE),
        _ => system.bound(terms, -INFINITE, low),
    }
}

/// Rows of any shape over variables of any extent, and perhaps what contradicts two of them together.
fn scattered(random: &mut Random) -> System {
    let mut system = System::default();
    let variables = random.between(2, 6);
    let mut point = Vec::new();
    for _ in 0..variables {
        let low = random.between(-LARGE, LARGE - 1) >> random.between(0, 40);
        let high = (low + extent(random)).min(LARGE);
        system.variable(low.into(), high.into());
        point.push(random.between(low, high));
    }
    let row = |random: &mut Random| {
        let mut terms = Vec::new();
        for variable in (0..).take(point.len()) {
            if random.percent(60) {
                terms.push(Term::new(variable, coefficient(random)));
            }
        }
        terms
    };
    for _ in 0..random.between(1, 5) {
        let terms = row(random);
        let off = i64::from(random.percent(25)) << random.between(0, 30);
        near(random, &mut system, &terms, &point, off);
    }
    if random.percent(60) {
        let (first, second) = (row(random), row(random));
        let (a, b) = (value(&first, &point), value(&second, &point));
        system.bound(&first, a, INFINITE);
        system.bound(&second, b, INFINITE);
        let mut sum = first;
        for term in second {
            match sum.iter_mut().find(|own| own.variable == term.variable) {
                Some(own) => own.coefficient += term.coefficient,
                None => sum.push(term),
            }
        }
        sum.retain(|term| term.coefficient != 0);
        system.bound(&sum, -INFINITE, a + b - i128::from(random.between(0, 4)));
    }
    system
}

/// Two threads at one address: differences of coordinates whose steps contain each other, or nearly so, one of which is
/// not 0, and bounds of what each thread has.
fn nested(random: &mut Random) -> System {
    let mut system = System::default();
    let levels = random.between(2, 4);
    let (mut distance, mut step) = (Vec::new(), 1_i64 << random.between(0, 3));
    let width = i128::from(random.between(1, step));
    let apart = random.between(0, levels - 1);
    let mut point = Vec::new();
    for level in 0..levels {
        let most = extent(random).min(LARGE / step).max(1);
        let low = if level == apart { 1 } else { -most };
        // A coordinate of each thread, and their difference.
        let own = system.variable(0, most.into());
        let other = system.variable(0, most.into());
        let difference = system.variable(low.into(), most.into());
        let terms = [(own, 1), (other, -1), (difference, -1)];
        system.bound(&terms.map(|(of, by)| Term::new(of, by)), 0, 0);
        let of = (random.between(0, most), random.between(0, most));
        point.extend([of.0, of.1, of.0 - of.1]);
        distance.push(Term::new(difference, step));
        let next = step.saturating_mul(most + 1);
        let next = next - random.between(0, 3) * i64::from(random.percent(40));
        if next > LARGE {
            break;
        }
        step = next.max(1);
    }
    system.bound(&distance, 1 - width, width - 1);
    for _ in 0..random.below(3) {
        let variables = u32::try_from(point.len()).unwrap();
        let mut pick = || Variable::try_from(random.below(variables)).unwrap();
        let (a, b) = (pick(), pick());
        if a != b {
            let terms = [
                Term::new(a.min(b), coefficient(random)),
                Term::new(a.max(b), 1),
            ];
            let off = random.between(0, 8);
            near(random, &mut system, &terms, &point, off);
        }
    }
    system
}

/// A system in SMT-LIB 2.
fn text(system: &System) -> String {
    let mut text = String::from("(push)\n");
    let number = |value: i128| match value < 0 {
        true => format!("(- {})", value.unsigned_abs()),
        false => value.to_string(),
    };
    for (variable, &Interval { low, high }) in system.domain.iter().enumerate() {
        let (low, high) = (number(low), number(high));
        let _ = writeln!(text, "(declare-const v{variable} Int)");
        let _ = writeln!(text, "(assert (<= {low} v{variable} {high}))");
    }
    for (terms, low, high) in system.rows() {
        let mut sum = String::from("(+ 0");
        for term in terms {
            let coefficient = number(term.coefficient.into());
            let _ = write!(sum, " (* {coefficient} v{})", term.variable);
        }
        sum.push(')');
        if low > -INFINITE {
            let _ = writeln!(text, "(assert (<= {} {sum}))", number(low));
        }
        if high < INFINITE {
            let _ = writeln!(text, "(assert (<= {sum} {}))", number(high));
        }
    }
    if system.contradiction {
        text.push_str("(assert false)\n");
    }
    text + "(check-sat)\n(pop)\n"
}
