//! `ld` and `st`.

use ptx::ast::{Instruction, Operand, Space, Type};
use ptx::isa::Semantics;

use super::Result;
use super::context::{Decoder, SINK, Unsupported, last_type, operand};
use crate::code::{Access, Address, AddressSpace, Kind, Width};

/// True when the access is of a kind that spin loops are made of.
fn strong(i: &Instruction) -> bool {
    ptx::isa::memory(i).is_some_and(|op| op.sem != Semantics::Weak)
}

pub(super) fn load(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let to = operand(i, 0)?;
    let address = cx.address(operand(i, 1)?, i.space())?;
    let mut width = width(ty)?;
    if ty.is_signed() {
        let first = match to {
            Operand::Vector(parts) => parts.first().unwrap_or(to),
            other => other,
        };
        width.sign_to = cx.register_bits(first).min(64) as u8;
    }
    if let (AddressSpace::Param, true, 1..=8) = (
        address.address_space,
        is_constant(address.base),
        width.bytes,
    ) {
        let offset =
            cx.builder.program.consts[(address.base & !crate::lanes::CONSTANT) as usize][0];
        let offset = offset.wrapping_add_signed(address.offset);
        let limit = u64::from(cx.builder.param_bytes());
        if !matches!(to, Operand::Vector(_))
            && offset.saturating_add(u64::from(width.bytes)) <= limit
        {
            let d = cx.dst(to)?;
            return cx.push(Kind::Param {
                d,
                offset: offset as u32,
                load: width,
            });
        }
    }
    let parts = match to {
        Operand::Vector(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    check_count(i, parts)?;
    let mut rows = Vec::new();
    for part in parts {
        let d = cx.dst(part)?;
        rows.push(d);
        if width.bytes == 16 {
            rows.push(if d == SINK { SINK } else { d + 1 });
        }
    }
    let mut access = access(i, address, width, rows, parts.len());
    access.narrow = cx.narrow(access.bytes)?;
    cx.push(Kind::Load(Box::new(access)))
}

pub(super) fn store(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let address = cx.address(operand(i, 0)?, i.space())?;
    let width = width(ty)?;
    if address.address_space == AddressSpace::Param {
        return Unsupported::because("a store to a kernel parameter");
    }
    let from = operand(i, 1)?;
    let parts = match from {
        Operand::Vector(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    check_count(i, parts)?;
    let mut rows = Vec::new();
    for part in parts {
        let a = cx.src(part, ty)?;
        rows.push(a);
        if width.bytes == 16 {
            rows.push(a + 1);
        }
    }
    let access = access(i, address, width, rows, parts.len());
    cx.push(Kind::Store(Box::new(access)))
}

fn access(i: &Instruction, address: Address, width: Width, rows: Vec<u32>, count: usize) -> Access {
    Access {
        address,
        width,
        rows,
        bytes: u32::from(width.bytes) * count as u32,
        strong: strong(i),
        narrow: None,
    }
}

/// The vector in the operand must be as wide as the suffix says.
fn check_count(i: &Instruction, parts: &[Operand]) -> Result<()> {
    if parts.len() == usize::from(i.vector()) && parts.len() <= 8 {
        Ok(())
    } else {
        Unsupported::because("a vector of another width than the suffix says")
    }
}

pub(super) fn width(ty: Type) -> Result<Width> {
    match ty.bytes() {
        bytes @ (1 | 2 | 4 | 8 | 16) => Ok(Width {
            bytes: bytes as u8,
            sign_to: 0,
        }),
        _ => Unsupported::because("an access of this type"),
    }
}

fn is_constant(row: u32) -> bool {
    row & crate::lanes::CONSTANT != 0
}

/// The space of the first or second address of an instruction with two.
pub(super) fn spaces(i: &Instruction) -> (Space, Space) {
    let mut spaces = i
        .suffixes
        .iter()
        .filter_map(|suffix| Space::from_suffix(suffix));
    let first = spaces.next().unwrap_or(Space::Generic);
    (first, spaces.next().unwrap_or(Space::Generic))
}
