//! The tree back to text.
//!
//! [`module`] walks the nodes in order and puts together what each covers and what lies between;
//! that gives the text back only if the nodes tile it, which is what makes the round trip a test
//! of the parser and not of `String::clone`.
//! An [`Instruction`] also has a normalised form, its [`Display`]: one blank
//! between operands, constants folded. Reading it again gives the same tree.

use std::fmt::{self, Display, Formatter};

use crate::ast::{AddressBase, Guard, Instruction, Item, Module, Operand, Span};

/// The text of a module, put together from its nodes.
pub fn module(module: &Module) -> String {
    let mut printer = Printer {
        module,
        out: String::with_capacity(module.text.len()),
        end: 0,
    };
    for item in &module.items {
        match item {
            Item::Function(function) => {
                if let Some(body) = &function.body {
                    for statement in &body.statements {
                        printer.node(statement.span());
                    }
                    printer.to(body.span.end);
                }
                printer.to(function.span.end);
            }
            other => printer.node(other.span()),
        }
    }
    printer.to(module.text.len() as u32);
    printer.out
}

struct Printer<'a> {
    module: &'a Module,
    out: String,
    end: u32,
}

impl Printer<'_> {
    /// What lies between the last node and this one, then this one. A node that starts before the
    /// last one ended is printed as it is, so that the overlap shows.
    fn node(&mut self, span: Span) {
        self.to(span.start);
        self.out.push_str(self.module.slice(span));
        self.end = span.end;
    }

    fn to(&mut self, end: u32) {
        if end > self.end {
            self.out.push_str(self.module.slice(Span {
                start: self.end,
                end,
            }));
            self.end = end;
        }
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        f.write_str(&self.opcode)?;
        for suffix in &self.suffixes {
            write!(f, ".{suffix}")?;
        }
        if !self.operands.is_empty() {
            f.write_str(" ")?;
            list(f, &self.operands)?;
        }
        f.write_str(";")
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "@{}{}",
            if self.negated { "!" } else { "" },
            self.predicate
        )
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name {
                name,
                component,
                offset,
            } => {
                f.write_str(name)?;
                if let Some(component) = component {
                    f.write_str(".")?;
                    selector(f, *component)?;
                }
                plus(f, *offset)
            }
            Self::Int(value) => write!(f, "{value}"),
            Self::F32(bits) => write!(f, "0f{bits:08X}"),
            Self::F64(bits) => write!(f, "0d{bits:016X}"),
            Self::Address {
                base: AddressBase::Name(name),
                offset,
            } => {
                write!(f, "[{name}")?;
                plus(f, *offset)?;
                f.write_str("]")
            }
            Self::Address {
                base: AddressBase::Absolute(address),
                ..
            } => write!(f, "[{address}]"),
            Self::Vector(elements) => enclosed(f, "{", elements, "}"),
            Self::Paren(elements) => enclosed(f, "(", elements, ")"),
            Self::Bracket(elements) => enclosed(f, "[", elements, "]"),
            Self::Pair(first, second) => write!(f, "{first}|{second}"),
            Self::Not(inner) => write!(f, "!{inner}"),
            Self::Sink => f.write_str("_"),
            Self::Unknown(_) => f.write_str("?"),
        }
    }
}

fn selector(f: &mut Formatter<'_>, component: u16) -> fmt::Result {
    const NAMES: [&str; 10] = ["x", "y", "z", "w", "b0", "b1", "b2", "b3", "h0", "h1"];
    if let Some(name) = NAMES.get(usize::from(component)) {
        return f.write_str(name);
    }
    let letter = if component & 0x8000 != 0 { 'h' } else { 'b' };
    let digits = usize::from(component >> 12 & 7);
    write!(f, "{letter}{:0digits$o}", component & 0xfff)
}

fn plus(f: &mut Formatter<'_>, offset: i64) -> fmt::Result {
    match offset {
        0 => Ok(()),
        // As nvcc writes it, also for negative ones: `+-8`.
        _ => write!(f, "+{offset}"),
    }
}

fn list(f: &mut Formatter<'_>, operands: &[Operand]) -> fmt::Result {
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{operand}")?;
    }
    Ok(())
}

fn enclosed(f: &mut Formatter<'_>, open: &str, operands: &[Operand], close: &str) -> fmt::Result {
    f.write_str(open)?;
    list(f, operands)?;
    f.write_str(close)
}
