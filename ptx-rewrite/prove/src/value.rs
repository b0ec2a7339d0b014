//! Values of a launch: forms, with alternatives where several are possible, and predicates as what they imply.

use smallvec::{SmallVec, smallvec};

use crate::form::{Form, Symbols};
use crate::interval::Interval;

/// Most alternatives of a value or of a condition.
pub(crate) const ALTERNATIVES: usize = 12;

/// The memory that a value points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// None: a number.
    Number,
    /// The allocation or variable with that first byte and size.
    Global(u64, u64),
    /// A variable in shared memory, by index.
    Shared(u32),
    /// Memory of the thread alone, or parameters.
    Private,
    /// Not known.
    Unknown,
}

impl Memory {
    /// Where the sum of two values points.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (of, Self::Number) | (Self::Number, of) => of,
            _ => Self::Unknown,
        }
    }

    /// Where a difference points.
    pub(crate) fn minus(self, other: Self) -> Self {
        match (self, other) {
            (of, Self::Number) => of,
            _ => Self::Unknown,
        }
    }

    /// Where a value points that is one of two.
    pub(crate) fn either(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }

    /// Where a value points that is computed from it in another way.
    pub(crate) fn otherwise(self) -> Self {
        match self {
            Self::Number => Self::Number,
            _ => Self::Unknown,
        }
    }
}

/// What holds at once: each form is not negative.
pub(crate) type Rows = Vec<Form>;

/// One of the forms that a value can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    /// Equal to the value, modulo two to the number of its bits.
    pub(crate) form: Form,
    pub(crate) memory: Memory,
    /// What holds where this is the one.
    pub(crate) when: Rows,
}

pub(crate) type Alternatives = SmallVec<[Alternative; 1]>;

/// What is known of a predicate: where it holds, all rows of one of these do; and where it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predicate {
    pub(crate) yes: Vec<Rows>,
    pub(crate) no: Vec<Rows>,
}

impl Predicate {
    pub(crate) fn unknown() -> Self {
        Self {
            yes: vec![Vec::new()],
            no: vec![Vec::new()],
        }
    }

    pub(crate) fn negated(self) -> Self {
        Self {
            yes: self.no,
            no: self.yes,
        }
    }

    pub(crate) fn when(&self, holds: bool) -> &[Rows] {
        if holds { &self.yes } else { &self.no }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Integer(Alternatives),
    Predicate(Predicate),
}

impl Value {
    pub(crate) fn form(form: Form, memory: Memory) -> Self {
        let when = Vec::new();
        Self::Integer(smallvec![Alternative { form, memory, when }])
    }

    /// The number that it is.
    pub(crate) fn number(&self) -> Option<(i128, Memory)> {
        match self {
            Self::Integer(all) if all.len() == 1 => Some((all[0].form.number()?, all[0].memory)),
            _ => None,
        }
    }

    /// The one form that it has.
    pub(crate) fn single(&self) -> Option<&Alternative> {
        match self {
            Self::Integer(all) if all.len() == 1 => all.first(),
            _ => None,
        }
    }
}

/// Rows that do not hold anyway, the strictest of those with the same terms. None if they cannot all hold.
pub(crate) fn simplified(symbols: &Symbols, rows: Rows) -> Option<Rows> {
    let mut kept: Rows = Vec::with_capacity(rows.len());
    'rows: for row in rows {
        let Interval { low, high } = symbols.range(&row);
        if high < 0 {
            return None;
        }
        if low >= 0 {
            continue;
        }
        for known in &mut kept {
            if known.terms == row.terms {
                known.constant = known.constant.min(row.constant);
                continue 'rows;
            }
            if are_opposite(known, &row) && known.constant + row.constant < 0 {
                return None;
            }
        }
        kept.push(row);
    }
    Some(kept)
}

/// Whether the terms of two forms add up to nothing.
fn are_opposite(left: &Form, right: &Form) -> bool {
    left.terms.len() == right.terms.len()
        && (left.terms.iter().zip(&right.terms))
            .all(|(a, b)| a.variable == b.variable && a.coefficient == -b.coefficient)
}

/// Most pairs of conditions that are looked at for those that can hold at once.
const PAIRS: usize = 8 * ALTERNATIVES;

/// One of each of two lists. Those of one list alone if there would be too many: what is dropped is a fact fewer.
pub(crate) fn both(symbols: &Symbols, left: &[Rows], right: &[Rows]) -> Vec<Rows> {
    let mut all = Vec::new();
    if left.len() * right.len() <= PAIRS {
        for a in left {
            for b in right {
                let rows: Rows = a.iter().chain(b).cloned().collect();
                all.extend(simplified(symbols, rows));
            }
        }
        if all.len() <= ALTERNATIVES {
            return all;
        }
    }
    match (left.len(), right.len()) {
        (..=ALTERNATIVES, _) => left.to_vec(),
        (_, ..=ALTERNATIVES) => right.to_vec(),
        _ => vec![Vec::new()],
    }
}

/// One of two lists.
pub(crate) fn any(left: &[Rows], right: &[Rows]) -> Vec<Rows> {
    let mut all: Vec<Rows> = left.to_vec();
    for rows in right {
        if !all.contains(rows) {
            all.push(rows.clone());
        }
    }
    if all.iter().any(Vec::is_empty) || all.len() > ALTERNATIVES {
        return vec![Vec::new()];
    }
    all
}

/// The value of a number's bits as a number between the least negative and the greatest unsigned one: negative where
/// the topmost bit is set.
pub(crate) fn centered(bits: u64, width: u32) -> i128 {
    let value = if width >= 64 {
        i128::from(bits)
    } else {
        i128::from(bits & ((1 << width) - 1))
    };
    match width {
        1 => value,
        _ if value >> (width.min(64) - 1) & 1 == 1 => value - (1 << width.min(64)),
        _ => value,
    }
}
