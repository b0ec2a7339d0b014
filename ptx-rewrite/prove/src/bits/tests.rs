//! Words against the machine's arithmetic, and formulas against brute force and z3.

use std::time::{Duration, Instant};

use random::Random;

use super::circuit::{Answer, Circuit, Limit, Word};
use crate::graph::{Comparison, Op};
use crate::machine::{compute, mask};
use crate::z3;

/// Milliseconds that z3 gets for one formula.
const TIMEOUT: u32 = 2000;

const BINARY: [Op; 13] = [
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::MulHigh,
    Op::Div,
    Op::Rem,
    Op::Shl,
    Op::Shr,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Min,
    Op::Max,
];

const UNARY: [Op; 3] = [Op::Not, Op::Neg, Op::Abs];

fn circuit() -> Circuit {
    Circuit::new(Limit {
        steps: 10_000_000,
        until: Instant::now() + Duration::from_secs(600),
    })
}

/// A word that is a number, but not for the gates.
fn hidden(circuit: &mut Circuit, value: u64, bits: u32) -> Word {
    let (word, number) = (circuit.word(bits), circuit.constant(value, bits));
    let same = circuit.equal(&word, &number);
    circuit.require(same);
    word
}

/// Holds an operation on numbers against the machine: they are constants for the gates, or not.
fn agrees(op: Op, signed: bool, bits: u32, inputs: &[u64], hide: &[bool]) {
    let mut all = [0; 3];
    all[..inputs.len()].copy_from_slice(inputs);
    let Some(expected) = compute(op, signed, bits, all) else {
        return;
    };
    let mut circuit = circuit();
    let words: Vec<Word> = inputs
        .iter()
        .zip(hide)
        .map(|(&value, &hide)| match hide {
            true => hidden(&mut circuit, value, bits),
            false => circuit.constant(value, bits),
        })
        .collect();
    let Some(word) = circuit.operation(op, signed, bits, &words) else {
        assert!(bits > 32 || op == Op::Field, "{op:?} {bits}");
        return;
    };
    assert_eq!(circuit.solve(), Answer::Possible);
    let found = circuit.value(&word);
    assert_eq!(found, expected, "{op:?} {signed} {bits} {inputs:x?}");
    // And nothing else.
    let number = circuit.constant(expected, bits);
    let same = circuit.equal(&word, &number);
    circuit.require(!same);
    let answer = circuit.solve();
    assert_eq!(
        answer,
        Answer::Impossible,
        "{op:?} {signed} {bits} {inputs:x?}"
    );
}

#[test]
fn small_words_are_as_the_machine_computes_them() {
    for op in BINARY {
        for signed in [false, true] {
            for a in 0..8 {
                for b in 0..8 {
                    agrees(op, signed, 3, &[a, b], &[true, true]);
                }
            }
        }
    }
    for op in UNARY {
        for a in 0..32 {
            agrees(op, true, 5, &[a], &[true]);
        }
    }
    for value in (0..64).step_by(3) {
        for (from, to) in [(3, 6), (6, 3), (4, 4), (2, 5), (6, 6), (5, 2)] {
            for signed in [false, true] {
                for to_signed in [false, true] {
                    let op = Op::Convert {
                        from,
                        to,
                        to_signed,
                    };
                    agrees(op, signed, 6, &[value], &[true]);
                }
            }
        }
        for from in 0..7 {
            for count in 0..7 {
                agrees(
                    Op::Field,
                    false,
                    6,
                    &[value, from, count],
                    &[true, false, false],
                );
            }
        }
    }
}

#[test]
fn large_words_are_as_the_machine_computes_them() {
    let mut random = Random::new(5);
    let mut number = |bits: u32| {
        let value = u64::from(random.below(u32::MAX)) << 32 | u64::from(random.below(u32::MAX));
        let value = match random.below(5) {
            0 => value,
            1 => value & 0xff,
            2 => (value & 0xf).wrapping_neg(),
            3 => 1 << (value & 63),
            _ => value >> (value & 31),
        };
        value & mask(bits)
    };
    for round in 0..4 {
        for bits in [32, 64] {
            for op in BINARY.into_iter().chain([Op::MulWide]) {
                let (a, b) = (number(bits), number(bits));
                let b = match op {
                    Op::Shl | Op::Shr => b % 80,
                    _ => b,
                };
                // Both unknown where that is not slow.
                let slow = matches!(op, Op::MulHigh | Op::Div | Op::Rem | Op::MulWide | Op::Mul);
                for signed in [false, true] {
                    agrees(
                        op,
                        signed,
                        bits,
                        &[a, b],
                        &[true, !slow || bits == 32 && round == 0],
                    );
                }
            }
            for op in UNARY {
                agrees(op, true, bits, &[number(bits)], &[true]);
            }
        }
    }
}

/// An expression over two variables: its text for z3, and its word.
struct Term {
    text: String,
    word: Word,
}

/// Writes random formulas for both.
struct Formula<'a> {
    random: &'a mut Random,
    circuit: &'a mut Circuit,
    bits: u32,
    variables: Vec<Word>,
}

impl Formula<'_> {
    fn term(&mut self, depth: u32) -> Term {
        let bits = self.bits;
        match self.random.below(if depth == 0 { 3 } else { 10 }) {
            0 => {
                let value = u64::from(self.random.below(1 << 20)) & mask(bits);
                Term {
                    text: format!("(_ bv{value} {bits})"),
                    word: self.circuit.constant(value, bits),
                }
            }
            1 | 2 => {
                let index = self.random.index(self.variables.len());
                Term {
                    text: format!("v{index}"),
                    word: self.variables[index].clone(),
                }
            }
            _ => {
                let (a, b) = (self.term(depth - 1), self.term(depth - 1));
                let (op, signed, name) = self.random.pick(&[
                    (Op::Add, false, "bvadd"),
                    (Op::Sub, false, "bvsub"),
                    (Op::Mul, false, "bvmul"),
                    (Op::And, false, "bvand"),
                    (Op::Or, false, "bvor"),
                    (Op::Xor, false, "bvxor"),
                    (Op::Xor, false, "bvxor"),
                    (Op::Shl, false, "bvshl"),
                    (Op::Shr, false, "bvlshr"),
                    (Op::Shr, true, "bvashr"),
                ]);
                let word = self
                    .circuit
                    .operation(op, signed, bits, &[a.word, b.word])
                    .expect("an operation that is followed");
                Term {
                    text: format!("({name} {} {})", a.text, b.text),
                    word,
                }
            }
        }
    }

    /// Requires a comparison, and says so to z3.
    fn require(&mut self) -> String {
        let (a, b) = (self.term(3), self.term(2));
        let (comparison, signed, name) = self.random.pick(&[
            (Comparison::Equal, false, "="),
            (Comparison::Equal, false, "="),
            (Comparison::Less, false, "bvult"),
            (Comparison::LessEqual, true, "bvsle"),
            (Comparison::Greater, true, "bvsgt"),
        ]);
        let holds = self.circuit.compare(comparison, signed, &a.word, &b.word);
        self.circuit.require(holds);
        format!("(assert ({name} {} {}))\n", a.text, b.text)
    }
}

#[test]
fn formulas_have_a_solution_where_z3_has_one() {
    let mut random = Random::new(11);
    let (mut texts, mut found) = (Vec::new(), Vec::new());
    for _ in 0..600 {
        let mut circuit = circuit();
        let bits = random.pick(&[6, 8, 12, 16]);
        let variables: Vec<Word> = (0..2).map(|_| circuit.word(bits)).collect();
        let comparisons = 1 + random.below(4);
        let mut formula = Formula {
            random: &mut random,
            circuit: &mut circuit,
            bits,
            variables,
        };
        let all: String = (0..comparisons).map(|_| formula.require()).collect();
        texts.push(format!(
            "(push)\n(declare-const v0 (_ BitVec {bits}))\n(declare-const v1 (_ BitVec {bits}))\n\
             {all}(check-sat)\n(pop)\n"
        ));
        found.push(circuit.solve());
    }
    let Some(truths) = z3::answers("QF_BV", TIMEOUT, &texts) else {
        return;
    };
    let (mut possible, mut impossible) = (0, 0);
    for ((answer, text), truth) in found.iter().zip(&texts).zip(&truths) {
        let expected = match truth.as_str() {
            "sat" => Answer::Possible,
            "unsat" => Answer::Impossible,
            _ => continue,
        };
        match expected {
            Answer::Possible => possible += 1,
            _ => impossible += 1,
        }
        assert_eq!(*answer, expected, "{text}");
    }
    println!("{possible} formulas have a solution, {impossible} have none");
    assert!(
        possible > 100 && impossible > 100,
        "{possible} {impossible}"
    );
}

#[test]
fn the_limit_does_not_depend_on_the_clock() {
    // Two factors of a product of primes.
    let steps = || {
        let mut circuit = Circuit::new(Limit {
            steps: 500,
            until: Instant::now() + Duration::from_secs(600),
        });
        let (a, b) = (circuit.word(32), circuit.word(32));
        let [x, y] = [&a, &b].map(|of| circuit.extended(of, 64, false));
        let product = circuit.mul(&x, &y);
        let number = circuit.constant(0xffff_ffff_0000_0001, 64);
        let same = circuit.equal(&product, &number);
        circuit.require(same);
        assert_eq!(circuit.solve(), Answer::Stopped);
        circuit.steps()
    };
    let first = steps();
    assert!((501..520).contains(&first), "{first}");
    assert_eq!(steps(), first);
}
