//! Assumptions about launches, as a user writes them: `rows == cols`, `gridDim.x * 16 >= n`, `pitch % 32 == 0`.
//!
//! An assumption compares two sums of products of numbers and *quantities* of a launch: its parameters, the dimensions
//! of its grid and those of its blocks. Comparisons may be joined by `&&`, and a chain (`0 <= offset < n`) holds if
//! each of its comparisons does. Arithmetic is exact: nothing wraps around.
//!
//! A parameter is an integer of 1, 2, 4 or 8 bytes and is read as a signed number, since PTX does not distinguish `int` from
//! `unsigned`. `arg0`, `arg1` and so on are the parameters by position; the names of the PTX are known too.

use std::fmt;

use ptx::ast::Function;

/// A number of a launch that an assumption can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// CTAs of the grid along an axis: 0 for x, 1 for y, 2 for z.
    Grid(usize),
    /// Threads of a block along an axis.
    Block(usize),
    /// A parameter: its first byte among the parameters, and how many bytes it has.
    Parameter(u32, u32),
}

/// What is wrong with the text of an assumption, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The character, from 1.
    pub column: usize,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "column {}: {}", self.column, self.text)
    }
}

/// How the two sides of a comparison are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
}

/// A sum, product or remainder. `Name` is replaced by `Of` when the kernel is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    Number(i128),
    Name(String, usize),
    Of(Quantity),
    Sum(Box<Expression>, Box<Expression>),
    Difference(Box<Expression>, Box<Expression>),
    Product(Box<Expression>, Box<Expression>),
    /// By a positive number, with a result that is not negative.
    Remainder(Box<Expression>, i128),
}

/// A comparison of two terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) left: Expression,
    pub(crate) relation: Relation,
    pub(crate) right: Expression,
}

/// An assumption that is not about a kernel yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    text: String,
    all: Vec<Comparison>,
}

/// An assumption about the launches of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// As it was written.
    pub text: String,
    pub(crate) all: Vec<Comparison>,
}

/// The quantities of a kernel by their names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names of a quantity, the one for a person first.
    all: Vec<(Vec<String>, Quantity)>,
    /// Names that an assumption cannot use, and why.
    unfit: Vec<(Vec<String>, &'static str)>,
}

impl Names {
    /// Those of a kernel.
    pub fn of(kernel: &Function) -> Self {
        let mut names = Self::default();
        let (layout, _) = ptx::param_layout(&kernel.params);
        for (index, (param, place)) in kernel.params.iter().zip(layout).enumerate() {
            let (position, name) = (format!("arg{index}"), param.name.to_string());
            // nvcc numbers the parameters and keeps no names.
            let called = match name.ends_with(&format!("_param_{index}")) {
                true => vec![position, name],
                false => vec![name, position],
            };
            match place.bytes {
                _ if param.ty.is_float() => {
                    names.unfit.push((called, "is a floating-point number"))
                }
                1 | 2 | 4 | 8 if param.vector == 1 => {
                    let quantity = Quantity::Parameter(place.offset, place.bytes);
                    names.all.push((called, quantity));
                }
                _ => names
                    .unfit
                    .push((called, "is no integer of at most 8 bytes")),
            }
        }
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let grid = vec![format!("gridDim.{name}"), format!("%nctaid.{name}")];
            let block = vec![format!("blockDim.{name}"), format!("%ntid.{name}")];
            names.all.push((grid, Quantity::Grid(axis)));
            names.all.push((block, Quantity::Block(axis)));
        }
        names
    }

    fn find(&self, name: &str, column: usize) -> Result<Quantity, Wrong> {
        let is = |names: &Vec<String>| names.iter().any(|of| of == name);
        if let Some((_, quantity)) = self.all.iter().find(|(names, _)| is(names)) {
            return Ok(*quantity);
        }
        let text = match self.unfit.iter().find(|(names, _)| is(names)) {
            Some((_, why)) => format!("`{name}` {why}"),
            None => {
                let known = self.all.iter().map(|(names, _)| names.join(" or "));
                let known: Vec<String> = known.collect();
                format!("unknown name `{name}`; the kernel has {}", known.join(", "))
            }
        };
        Err(Wrong { column, text })
    }

    /// The quantities.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = Quantity> + '_ {
        self.all.iter().map(|&(_, quantity)| quantity)
    }

    /// The name of a quantity for a person.
    pub fn name(&self, of: Quantity) -> String {
        let found = self.all.iter().find(|(_, quantity)| *quantity == of);
        match (found.and_then(|(names, _)| names.first()), of) {
            (Some(name), _) => name.clone(),
            (None, Quantity::Parameter(offset, _)) => format!("parameter+{offset}"),
            (None, _) => String::new(),
        }
    }
}

impl Assumption {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and at which character.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let mut parser = Parser {
            all: text.chars().collect(),
            at: 0,
        };
        if parser.all.len() > LENGTH {
            parser.at = LENGTH;
            return Err(parser.wrong(format!("more than {LENGTH} characters")));
        }
        let mut all = Vec::new();
        loop {
            let mut left = parser.sum()?;
            let mut compared = false;
            while let Some((relation, turned)) = parser.relation() {
                let right = parser.sum()?;
                let (a, b) = match turned {
                    true => (right.clone(), left),
                    false => (left, right.clone()),
                };
                all.push(Comparison {
                    left: a,
                    relation,
                    right: b,
                });
                (left, compared) = (right, true);
            }
            if !compared {
                return Err(parser.wrong("a comparison is expected: ==, !=, <, <=, > or >="));
            }
            if !parser.takes("&&") {
                break;
            }
        }
        parser.skip();
        match parser.at < parser.all.len() {
            true => Err(parser.wrong("an operator or the end is expected")),
            false => Ok(Self {
                text: text.trim().to_owned(),
                all,
            }),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says of the launches of a kernel.
    ///
    /// # Errors
    ///
    /// A name that the kernel does not have, and those that it has.
    pub fn about(&self, names: &Names) -> Result<Assumed, Wrong> {
        let all = self.all.iter().map(|of| {
            Ok(Comparison {
                left: of.left.about(names)?,
                relation: of.relation,
                right: of.right.about(names)?,
            })
        });
        Ok(Assumed {
            text: self.text.clone(),
            all: all.collect::<Result<_, Wrong>>()?,
        })
    }
}

impl Assumed {
    /// Whether it holds where `value` gives the quantities. None if a number becomes too large.
    pub fn holds(&self, value: &dyn Fn(Quantity) -> i128) -> Option<bool> {
        let mut holds = true;
        for of in &self.all {
            let (left, right) = (of.left.value(value)?, of.right.value(value)?);
            holds &= match of.relation {
                Relation::Equal => left == right,
                Relation::NotEqual => left != right,
                Relation::Less => left < right,
                Relation::LessEqual => left <= right,
            };
        }
        Some(holds)
    }

    /// The quantities that it names, each once, the parameters in their order.
    pub fn quantities(&self) -> Vec<Quantity> {
        let mut all = Vec::new();
        for of in &self.all {
            of.left.quantities(&mut all);
            of.right.quantities(&mut all);
        }
        all.sort_unstable();
        all
    }
}

impl Expression {
    fn about(&self, names: &Names) -> Result<Self, Wrong> {
        let both = |a: &Expression, b: &Expression| {
            Ok::<_, Wrong>((Box::new(a.about(names)?), Box::new(b.about(names)?)))
        };
        Ok(match self {
            Self::Number(_) | Self::Of(_) => self.clone(),
            Self::Name(name, column) => Self::Of(names.find(name, *column)?),
            Self::Sum(a, b) => {
                let (a, b) = both(a, b)?;
                Self::Sum(a, b)
            }
            Self::Difference(a, b) => {
                let (a, b) = both(a, b)?;
                Self::Difference(a, b)
            }
            Self::Product(a, b) => {
                let (a, b) = both(a, b)?;
                Self::Product(a, b)
            }
            Self::Remainder(of, by) => Self::Remainder(Box::new(of.about(names)?), *by),
        })
    }

    fn value(&self, value: &dyn Fn(Quantity) -> i128) -> Option<i128> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(..) => None,
            Self::Of(quantity) => Some(value(*quantity)),
            Self::Sum(a, b) => a.value(value)?.checked_add(b.value(value)?),
            Self::Difference(a, b) => a.value(value)?.checked_sub(b.value(value)?),
            Self::Product(a, b) => a.value(value)?.checked_mul(b.value(value)?),
            Self::Remainder(of, by) => of.value(value)?.checked_rem_euclid(*by),
        }
    }

    fn quantities(&self, all: &mut Vec<Quantity>) {
        match self {
            Self::Number(_) | Self::Name(..) => {}
            Self::Of(quantity) if all.contains(quantity) => {}
            Self::Of(quantity) => all.push(*quantity),
            Self::Sum(a, b) | Self::Difference(a, b) | Self::Product(a, b) => {
                a.quantities(all);
                b.quantities(all);
            }
            Self::Remainder(of, _) => of.quantities(all),
        }
    }
}

/// Deepest nesting of parentheses.
const DEPTH: usize = 32;

/// Most characters: a term is nested as deep as it has operators.
const LENGTH: usize = 1000;

struct Parser {
    all: Vec<char>,
    at: usize,
}

impl Parser {
    fn wrong(&self, text: impl Into<String>) -> Wrong {
        Wrong {
            column: self.at + 1,
            text: text.into(),
        }
    }

    fn skip(&mut self) {
        while self.all.get(self.at).is_some_and(|of| of.is_whitespace()) {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.skip();
        let found = word
            .chars()
            .enumerate()
            .all(|(index, of)| self.all.get(self.at + index) == Some(&of));
        if found {
            self.at += word.chars().count();
        }
        found
    }

    /// A relation, and whether its sides are to be exchanged.
    fn relation(&mut self) -> Option<(Relation, bool)> {
        let all = [
            ("==", (Relation::Equal, false)),
            ("!=", (Relation::NotEqual, false)),
            ("<=", (Relation::LessEqual, false)),
            (">=", (Relation::LessEqual, true)),
            ("<", (Relation::Less, false)),
            (">", (Relation::Less, true)),
        ];
        let found = all.into_iter().find(|(word, _)| self.takes(word));
        found.map(|(_, relation)| relation)
    }

    fn sum(&mut self) -> Result<Expression, Wrong> {
        self.sum_within(0)
    }

    fn sum_within(&mut self, depth: usize) -> Result<Expression, Wrong> {
        let mut sum = self.product(depth)?;
        loop {
            if self.takes("+") {
                sum = Expression::Sum(Box::new(sum), Box::new(self.product(depth)?));
            } else if self.takes("-") {
                sum = Expression::Difference(Box::new(sum), Box::new(self.product(depth)?));
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expression, Wrong> {
        let mut product = self.factor(depth)?;
        loop {
            if self.takes("*") {
                product = Expression::Product(Box::new(product), Box::new(self.factor(depth)?));
            } else if self.takes("%") {
                self.skip();
                let column = self.at + 1;
                match self.factor(depth)? {
                    Expression::Number(by) if by > 0 => {
                        product = Expression::Remainder(Box::new(product), by);
                    }
                    _ => {
                        let text = "a positive number is expected after %".to_owned();
                        return Err(Wrong { column, text });
                    }
                }
            } else {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self, depth: usize) -> Result<Expression, Wrong> {
        if depth > DEPTH {
            return Err(self.wrong("too many parentheses"));
        }
        if self.takes("-") {
            let of = self.factor(depth + 1)?;
            return Ok(Expression::Difference(
                Box::new(Expression::Number(0)),
                Box::new(of),
            ));
        }
        if self.takes("(") {
            let sum = self.sum_within(depth + 1)?;
            return match self.takes(")") {
                true => Ok(sum),
                false => Err(self.wrong("`)` is expected")),
            };
        }
        self.skip();
        let start = self.at;
        let is_word = |of: &char| of.is_alphanumeric() || matches!(of, '_' | '.' | '$');
        if self.all.get(self.at) == Some(&'%') {
            self.at += 1;
        }
        while self.all.get(self.at).is_some_and(is_word) {
            self.at += 1;
        }
        let word: String = self.all[start..self.at].iter().collect();
        let column = start + 1;
        match word.chars().next() {
            Some(first) if first.is_ascii_digit() => {
                let number = match word.strip_prefix("0x") {
                    Some(digits) => i64::from_str_radix(digits, 16),
                    None => word.parse(),
                };
                number
                    .map(|of| Expression::Number(of.into()))
                    .map_err(|_| Wrong {
                        column,
                        text: format!("`{word}` is no number below 2^63"),
                    })
            }
            Some(_) if word != "%" => Ok(Expression::Name(word, column)),
            _ => {
                self.at = start;
                Err(self.wrong("a name or a number is expected"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = ".version 8.0\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 to, .param .u32 rows, .param .u32 cols, .param .f32 scale) { ret; }";

    fn names() -> Names {
        let (module, diagnostics) = ptx::parse(KERNEL);
        assert!(diagnostics.is_empty());
        Names::of(module.function("k").expect("a kernel"))
    }

    fn holds(text: &str, rows: i128, cols: i128) -> bool {
        let value = |of| match of {
            Quantity::Parameter(8, 4) => rows,
            Quantity::Parameter(12, 4) => cols,
            Quantity::Grid(axis) => 10 + axis as i128,
            Quantity::Block(axis) => 20 + axis as i128,
            Quantity::Parameter(..) => panic!("{of:?}"),
        };
        let assumed = Assumption::parse(text).and_then(|of| of.about(&names()));
        assumed.expect(text).holds(&value).expect("small numbers")
    }

    #[test]
    fn comparisons_hold_as_arithmetic_says() {
        for (text, expected) in [
            ("rows == cols", false),
            ("rows != cols", true),
            ("rows + 1 == cols", true),
            ("arg1 < arg2", true),
            ("rows>=cols", false),
            ("-3 <= rows < cols", true),
            ("rows * (cols - 1) == 9 && cols == 4", true),
            ("rows * cols - 1 == 9 && cols == 4", false),
            ("(rows - 7) % 16 == 12", true),
            (
                "gridDim.x == 10 && %nctaid.y == 11 && blockDim.z == 22",
                true,
            ),
            ("0x10 > rows", true),
        ] {
            assert_eq!(holds(text, 3, 4), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = |text: &str| {
            let parsed = Assumption::parse(text).and_then(|of| of.about(&names()));
            parsed.expect_err(text).to_string()
        };
        assert_eq!(
            error("rows"),
            "column 5: a comparison is expected: ==, !=, <, <=, > or >="
        );
        assert_eq!(
            error("rows == "),
            "column 9: a name or a number is expected"
        );
        assert_eq!(
            error("rows == cols)"),
            "column 13: an operator or the end is expected"
        );
        assert_eq!(error("(rows == 1"), "column 7: `)` is expected");
        assert_eq!(
            error("rows % cols == 0"),
            "column 8: a positive number is expected after %"
        );
        assert_eq!(
            error("rows < 99999999999999999999"),
            "column 8: `99999999999999999999` is no number below 2^63"
        );
        assert_eq!(
            error(&format!("rows < {}1", "1 + ".repeat(100_000))),
            "column 1001: more than 1000 characters"
        );
        assert_eq!(
            error("scale > 0"),
            "column 1: `scale` is a floating-point number"
        );
        assert_eq!(
            error("rows == columns"),
            "column 9: unknown name `columns`; the kernel has to or arg0, rows or arg1, cols or arg2, \
             gridDim.x or %nctaid.x, blockDim.x or %ntid.x, gridDim.y or %nctaid.y, blockDim.y or %ntid.y, \
             gridDim.z or %nctaid.z, blockDim.z or %ntid.z"
        );
    }
}
