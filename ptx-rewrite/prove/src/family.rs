//! Many launches at once: those with one size of block that fulfil assumptions.
//!
//! What one launch has as a number is a symbol that all threads share: the parameters, and the numbers of blocks. An
//! assumption that is an equation replaces a symbol; others are conditions that hold everywhere. A pointer's first byte
//! is a symbol too, in a range of its own, so that nothing is known of its alignment, and the order of two allocations
//! is not compared ([`operations`](crate::operations)).

use crate::assume::{Assumed, Comparison, Expression, Names, Quantity, Relation};
use crate::form::{Form, Symbols, Uniform};
use crate::graph::Node;
use crate::interval::Interval;
use crate::problem::{Axis, SymbolId, SymbolKind, Term};
use crate::value::{Memory, Rows};
use crate::{Access, Launch, Reason};

/// Which launches are meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    pub(crate) names: &'a Names,
    pub(crate) assumed: &'a [Assumed],
    /// Axes of the grid that are as in the launch that the others are like: those that the kernel does not look at and
    /// no assumption names.
    pub(crate) kept: [bool; 3],
}

/// A pointer of the parameters, or a variable of the module.
#[derive(Debug)]
struct Base {
    /// What it is in the launch that the others are like.
    value: u64,
    /// The first byte of its allocation there.
    start: u64,
    symbol: SymbolId,
    /// Offsets of the parameters that have it, in ascending order.
    parameters: Vec<u32>,
}

/// The quantities of a family of launches.
#[derive(Debug, Default)]
pub(crate) struct Family {
    forms: Vec<(Quantity, Form)>,
    /// What holds in each launch.
    pub(crate) rows: Rows,
    bases: Vec<Base>,
    /// Why nothing can be proved of all of them.
    pub(crate) refused: Option<String>,
}

/// Bytes between the allocations of two pointers, as exponents of two: the allocation, how far inside the pointer is,
/// and among how many bytes.
const APART: [u32; 3] = [48, 46, 40];

/// Most pointers.
const BASES: usize = 1 << 12;

/// Most blocks in y and in z.
const BLOCKS: i64 = 65_535;

/// How often the ranges of quantities are narrowed by all assumptions.
const NARROWINGS: usize = 8;

impl Family {
    /// `symbols` has the axes already.
    pub(crate) fn new(symbols: &mut Symbols, launch: &Launch<'_>, members: Members<'_>) -> Self {
        let mut family = Self::default();
        for of in members.names.quantities() {
            let range = match of {
                Quantity::Block(axis) => {
                    let threads = Form::constant(launch.block[axis].max(1).into());
                    family.forms.push((of, threads));
                    continue;
                }
                Quantity::Grid(axis) if members.kept[axis] => {
                    let blocks = Form::constant(launch.grid[axis].max(1).into());
                    family.forms.push((of, blocks));
                    continue;
                }
                // No index of a thread exceeds an `int`.
                Quantity::Grid(0) => {
                    Interval::new(1, i64::from(i32::MAX) / i64::from(launch.block[0].max(1)))
                }
                Quantity::Grid(_) => Interval::new(1, BLOCKS),
                Quantity::Parameter(_, 1) => Interval::new(i8::MIN.into(), i8::MAX.into()),
                Quantity::Parameter(_, 2) => Interval::new(i16::MIN.into(), i16::MAX.into()),
                Quantity::Parameter(_, 4) => Interval::new(i32::MIN.into(), i32::MAX.into()),
                Quantity::Parameter(..) => Interval::new(i64::MIN, i64::MAX),
            };
            let symbol = symbols.add(SymbolKind::GridUniform, range, None, Uniform::Grid);
            family.forms.push((of, Form::symbol(symbol)));
        }
        family.assume(symbols, members.assumed);
        for axis in 0..3 {
            let blocks = family.grid(axis);
            let most = symbols.range(&blocks).high.clamp(1, 1 << 31);
            let symbol = 3 + axis;
            symbols.symbols[symbol].range = Interval::new(0, most as i64 - 1);
            symbols.uniform[symbol] = match most {
                1 => Uniform::Grid,
                _ => Uniform::Block,
            };
            if blocks.number().is_none() {
                let index = Form::symbol(symbol as SymbolId);
                family.rows.extend(index.below(&blocks, 1));
            }
        }
        family
    }

    /// Blocks of the grid along an axis.
    pub(crate) fn grid(&self, axis: usize) -> Form {
        self.form(Quantity::Grid(axis)).unwrap_or_default()
    }

    fn form(&self, of: Quantity) -> Option<Form> {
        let found = self.forms.iter().find(|(quantity, _)| *quantity == of);
        found.map(|(_, form)| form.clone())
    }

    /// A number of the parameters, if it is one that assumptions can name. `signed`: it is read as a signed number, or in
    /// its own number of bits.
    pub(crate) fn parameter(&self, symbols: &Symbols, of: Quantity, signed: bool) -> Option<Form> {
        let form = self.form(of)?;
        (signed || symbols.range(&form).low >= 0).then_some(form)
    }

    /// A pointer of the parameters, by what it is in the launch that the others are like.
    pub(crate) fn pointer(
        &mut self,
        symbols: &mut Symbols,
        value: u64,
        start: u64,
        offset: u32,
    ) -> Option<(Form, Memory)> {
        let found = self.base(symbols, value, start)?;
        let parameters = &mut self.bases[found].parameters;
        if let Err(at) = parameters.binary_search(&offset) {
            parameters.insert(at, offset);
        }
        Some(self.based(found))
    }

    /// A variable of the module.
    pub(crate) fn variable(&mut self, symbols: &mut Symbols, start: u64) -> (Form, Memory) {
        match self.base(symbols, start, start) {
            Some(found) => self.based(found),
            None => (Form::default(), Memory::Unknown),
        }
    }

    fn based(&self, index: usize) -> (Form, Memory) {
        let form = Form::symbol(self.bases[index].symbol);
        let start = (index as u64 + 1) << APART[0];
        (form, Memory::Global(start, 1 << APART[0]))
    }

    fn base(&mut self, symbols: &mut Symbols, value: u64, start: u64) -> Option<usize> {
        if let Some(index) = self.bases.iter().position(|of| of.value == value) {
            return Some(index);
        }
        if self.bases.iter().any(|of| of.start == start) || self.bases.len() == BASES {
            let text = "two pointers lead to different places of one allocation";
            self.refused.get_or_insert_with(|| text.to_owned());
            return None;
        }
        let index = self.bases.len();
        let first = ((index as i64 + 1) << APART[0]) + (1 << APART[1]);
        let range = Interval::new(first, first + (1 << APART[2]));
        let symbol = symbols.add(SymbolKind::GridUniform, range, None, Uniform::Grid);
        self.bases.push(Base {
            value,
            start,
            symbol,
            parameters: Vec::new(),
        });
        Some(index)
    }

    /// Takes in assumptions. One that is not linear says nothing here.
    fn assume(&mut self, symbols: &mut Symbols, assumed: &[Assumed]) {
        let mut open: Vec<&Comparison> = assumed.iter().flat_map(|of| &of.all).collect();
        // An equation may make others linear.
        loop {
            let before = open.len();
            open.retain(|of| {
                let equation = self.equation(symbols, of);
                equation.and_then(|of| self.solve(symbols, &of)).is_none()
            });
            if open.len() == before {
                break;
            }
        }
        for of in open {
            let (Some(left), Some(right)) = (self.linear(&of.left), self.linear(&of.right)) else {
                continue;
            };
            match of.relation {
                Relation::Less => self.rows.extend(left.below(&right, 1)),
                Relation::LessEqual => self.rows.extend(left.below(&right, 0)),
                Relation::Equal => symbols.equations.extend(left.below(&right, 0)),
                Relation::NotEqual => {}
            }
        }
        for _ in 0..NARROWINGS {
            for row in &self.rows {
                narrow(symbols, row);
            }
        }
    }

    /// A form that is 0 where a comparison holds.
    fn equation(&self, symbols: &mut Symbols, of: &Comparison) -> Option<Form> {
        if of.relation != Relation::Equal {
            return None;
        }
        if let (Expression::Remainder(dividend, by), Expression::Number(remainder)) =
            (&of.left, &of.right)
        {
            let form = self.linear(dividend)?;
            if !(0..*by).contains(remainder) {
                return None;
            }
            let Interval { low, high } = symbols.range(&form);
            let range = Interval::new(
                i64::try_from(low.div_euclid(*by)).ok()?,
                i64::try_from(high.div_euclid(*by)).ok()?,
            );
            let quotient = symbols.add(SymbolKind::GridUniform, range, None, Uniform::Grid);
            return form.plus(-by, &Form::symbol(quotient))?.shifted(-remainder);
        }
        let (left, right) = (self.linear(&of.left)?, self.linear(&of.right)?);
        left.plus(-1, &right)
    }

    /// Replaces a symbol of a form that is 0 everywhere. None if none has a coefficient of 1 or -1.
    fn solve(&mut self, symbols: &Symbols, form: &Form) -> Option<()> {
        let &Term {
            variable: symbol,
            coefficient: factor,
        } = form.terms.iter().find(|term| term.coefficient.abs() == 1)?;
        let value = form
            .plus(-i128::from(factor), &Form::symbol(symbol))?
            .times(-i128::from(factor))?;
        let replaced = |of: &Form| {
            let factor = of.coefficient(symbol);
            of.at(symbol, 0)?.plus(factor.into(), &value)
        };
        let mut forms = self.forms.clone();
        for (_, form) in &mut forms {
            *form = replaced(form)?;
        }
        let mut rows: Rows = self.rows.iter().map(replaced).collect::<Option<_>>()?;
        // What was known of the symbol's range.
        let Interval { low, high } = symbols.symbols[symbol as usize].range;
        rows.push(value.shifted(-i128::from(low))?);
        rows.push(Form::constant(high.into()).plus(-1, &value)?);
        (self.forms, self.rows) = (forms, rows);
        Some(())
    }

    fn linear(&self, term: &Expression) -> Option<Form> {
        match term {
            Expression::Number(number) => Some(Form::constant(*number)),
            Expression::Of(quantity) => self.form(*quantity),
            Expression::Sum(a, b) => self.linear(a)?.plus(1, &self.linear(b)?),
            Expression::Difference(a, b) => self.linear(a)?.plus(-1, &self.linear(b)?),
            Expression::Product(a, b) => {
                let (a, b) = (self.linear(a)?, self.linear(b)?);
                match (a.number(), b.number()) {
                    (Some(factor), _) => b.times(factor),
                    (_, Some(factor)) => a.times(factor),
                    _ => None,
                }
            }
            Expression::Name(..) | Expression::Remainder(..) => None,
        }
    }

    /// What the launches have in common.
    fn conditions(&self, launch: &Launch<'_>, members: Members<'_>) -> Vec<String> {
        let size = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
        let mut all = vec![format!("blockDim == {}", size(launch.block))];
        if launch.cluster.iter().any(|&ctas| ctas > 1) {
            all.push(format!("clusters of {}", size(launch.cluster)));
        }
        if launch.dynamic_shared > 0 {
            all.push(format!(
                "{} bytes of dynamic shared memory",
                launch.dynamic_shared
            ));
        }
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            if members.kept[axis] {
                all.push(format!("gridDim.{name} == {}", launch.grid[axis].max(1)));
            }
        }
        all.extend(members.assumed.iter().map(|of| of.text.clone()));
        if self.grid(0).number().is_none() {
            all.push("gridDim.x * blockDim.x < 2147483648".to_owned());
        }
        for base in &self.bases {
            let name = |&offset: &u32| members.names.name(Quantity::Parameter(offset, 8));
            let names: Vec<String> = base.parameters.iter().map(name).collect();
            if names.len() > 1 {
                all.push(names.join(" == "));
            }
        }
        if self.bases.len() > 1 {
            all.push("pointers that are not null, into different allocations".to_owned());
        }
        all
    }
}

/// Narrows the ranges of the symbols of a row that is not negative.
fn narrow(symbols: &mut Symbols, row: &Form) {
    let highest = symbols.range(row).high;
    for term in &row.terms {
        let Interval { low, high } = symbols.symbols[term.variable as usize].range;
        let own = i128::from(term.coefficient)
            * i128::from(if term.coefficient > 0 { high } else { low });
        // term.coefficient * term.variable >= -(the most that the others are)
        let least = -(highest - own);
        let range = &mut symbols.symbols[term.variable as usize].range;
        if term.coefficient > 0 {
            let bound = least.div_euclid(term.coefficient.into())
                + i128::from(least.rem_euclid(term.coefficient.into()) != 0);
            if bound > low.into() && bound <= high.into() {
                range.low = bound as i64;
            }
        } else {
            let bound = (-least).div_euclid(-i128::from(term.coefficient));
            if bound < high.into() && bound >= low.into() {
                range.high = bound as i64;
            }
        }
    }
}

impl crate::summary::Plan {
    /// Proves all launches that are like one and fulfil assumptions: the conditions, or why not.
    pub(crate) fn prove_family(
        &self,
        accesses: &[Access],
        like: &Launch<'_>,
        names: &Names,
        assumed: &[Assumed],
    ) -> Result<Vec<String>, Reason> {
        let mut kept = [false, true, true];
        for item in &self.graph.items {
            match item.node {
                Node::Block(Axis::Y) | Node::Blocks(Axis::Y) => kept[1] = false,
                Node::Block(Axis::Z) | Node::Blocks(Axis::Z) => kept[2] = false,
                _ => {}
            }
        }
        for of in assumed.iter().flat_map(Assumed::quantities) {
            if let Quantity::Grid(axis) = of {
                kept[axis] = false;
            }
        }
        let members = Members {
            names,
            assumed,
            kept,
        };
        let posed = self.pose(like, Some(members));
        let reason = |text: &str| Reason {
            text: text.to_owned(),
            against: None,
        };
        let conditions = match &posed.family {
            Some(family) => match &family.refused {
                Some(refused) => return Err(reason(refused)),
                None => family.conditions(like, members),
            },
            None => return Err(reason("")),
        };
        let proof = self.decide(accesses, posed);
        if proof.whole {
            return Ok(conditions);
        }
        let places = accesses.iter().zip(proof.accesses);
        let failed = places.filter_map(|(access, result)| Some((access, result.err()?)));
        Err(match failed.into_iter().next() {
            Some((access, of)) => Reason {
                text: format!("{}: {}", self.line(access.statement), of.text),
                ..of
            },
            None => reason(match &self.watched {
                Some(watched) => watched,
                None => "threads of a block may part before a barrier",
            }),
        })
    }
}
