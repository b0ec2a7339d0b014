//! Operands: registers, constants, special registers, addresses of variables.

use ptx::ast::{AddressBase, Operand, Space, Statement, Type};

use super::context::{Decoder, SINK, SINK_PRED, TRUE, Unsupported};
use super::{Result, special};
use crate::code::{Address, AddressSpace, Formal, Kind};

/// What a name that is no register stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// An address known when decoding, in the variable's space.
    Absolute(Space, u64),
    /// Offset in the frame.
    Frame(u32),
    /// Offset in the kernel's parameters.
    KernelParam(u32),
    /// Row of a `.reg` parameter.
    Row(u32),
}

impl Decoder<'_, '_> {
    /// A source row for an operand of type `ty`.
    pub(crate) fn src(&mut self, operand: &Operand, ty: Type) -> Result<u32> {
        let mask = if ty.bytes() >= 8 {
            u64::MAX
        } else {
            (1 << (8 * ty.bytes())) - 1
        };
        match operand {
            Operand::Name {
                name,
                component,
                offset,
            } => {
                if component.is_none()
                    && *offset == 0
                    && let Some((register, ty)) = self.register(name)
                {
                    if ty == Type::Pred {
                        return Unsupported::because(format!("predicate {name} as a value"));
                    }
                    return Ok(self.row(register, ty));
                }
                if name == "WARP_SZ" {
                    return Ok(self.builder.constant(32));
                }
                if let Some(special) = special::lookup(name, *component) {
                    let d = self.new_row();
                    self.push(Kind::Special(d, special))?;
                    return Ok(d);
                }
                self.address_of(name, *offset)
            }
            Operand::Int(value) => Ok(self.builder.constant(*value as u64 & mask)),
            Operand::F32(bits) if ty == Type::F64 => {
                let wide = f64::from(f32::from_bits(*bits)).to_bits();
                Ok(self.builder.constant(wide))
            }
            Operand::F32(bits) => Ok(self.builder.constant(u64::from(*bits) & mask)),
            Operand::F64(bits) if ty == Type::F32 => {
                let narrow = (f64::from_bits(*bits) as f32).to_bits();
                Ok(self.builder.constant(u64::from(narrow)))
            }
            Operand::F64(bits) => Ok(self.builder.constant(*bits & mask)),
            Operand::Sink => Ok(SINK),
            _ => Unsupported::because("an operand of this form"),
        }
    }

    /// A row with the address of a variable or function.
    fn address_of(&mut self, name: &str, offset: i64) -> Result<u32> {
        match self.named(name)? {
            Named::Absolute(space, address) => {
                Ok(self.builder.constant_address(space, address, offset))
            }
            Named::KernelParam(at) => Ok(self
                .builder
                .constant(u64::from(at).wrapping_add_signed(offset))),
            Named::Frame(at) => {
                let offset = u32::try_from(i64::from(at).saturating_add(offset));
                let Ok(offset) = offset else {
                    return Unsupported::because("an address below its variable");
                };
                let d = self.new_row();
                self.push(Kind::FrameAddress { d, offset })?;
                Ok(d)
            }
            Named::Row(row) => Ok(row),
        }
    }

    /// What a name that is no register stands for.
    pub(crate) fn named(&mut self, name: &str) -> Result<Named> {
        if let Some(statement) = self.scopes.variable(self.at, name)
            && let Statement::Variable(variable) = &self.body.statements[statement]
        {
            return match variable.space {
                Space::Shared => {
                    let offset = self.builder.shared(variable, Some(statement));
                    Ok(Named::Absolute(Space::Shared, u64::from(offset)))
                }
                Space::Local | Space::Param => match self.frame.get(&statement) {
                    Some(&(offset, _)) => Ok(Named::Frame(offset)),
                    None => Unsupported::because(format!("{name} before its declaration")),
                },
                _ => Unsupported::because(format!("the variable {name} in a function body")),
            };
        }
        let formal = self
            .params
            .iter()
            .chain(&self.returns)
            .find(|(formal, _)| *formal == name);
        if let Some((_, formal)) = formal {
            return Ok(match *formal {
                Formal::Frame { offset, .. } if self.function.entry => Named::KernelParam(offset),
                Formal::Frame { offset, .. } => Named::Frame(offset),
                Formal::Row { row, .. } => Named::Row(row),
            });
        }
        match self.builder.symbol(name) {
            Some((space, address)) => Ok(Named::Absolute(space, address)),
            None => Unsupported::because(format!("the unknown name {name}")),
        }
    }

    /// The row a result goes to.
    pub(crate) fn dst(&mut self, operand: &Operand) -> Result<u32> {
        match operand {
            Operand::Name {
                name,
                component: None,
                offset: 0,
            } => {
                if let Some((register, ty)) = self.register(name)
                    && ty != Type::Pred
                {
                    return Ok(self.row(register, ty));
                }
                match self.named(name) {
                    Ok(Named::Row(row)) => Ok(row),
                    _ => Unsupported::because(format!("{name} as a result")),
                }
            }
            Operand::Sink => Ok(SINK),
            _ => Unsupported::because("a result of this form"),
        }
    }

    /// Bits of the register an operand names; 32 for the sink.
    pub(crate) fn register_bits(&self, operand: &Operand) -> u32 {
        match operand {
            Operand::Name { name, .. } => match self.register(name) {
                Some((_, ty)) => 8 * ty.bytes(),
                None => 64,
            },
            _ => 64,
        }
    }

    /// The predicate a result goes to.
    pub(crate) fn dst_pred(&mut self, operand: &Operand) -> Result<u32> {
        match operand {
            Operand::Name {
                name,
                component: None,
                ..
            } => match self.register(name) {
                Some((register, Type::Pred)) => Ok(self.pred(register)),
                _ => Unsupported::because(format!("{name} as a predicate")),
            },
            Operand::Sink => Ok(SINK_PRED),
            _ => Unsupported::because("a predicate of this form"),
        }
    }

    /// A predicate source: twice the predicate's number, plus one when negated.
    pub(crate) fn src_pred(&mut self, operand: &Operand) -> Result<u32> {
        match operand {
            Operand::Not(inner) => Ok(self.src_pred(inner)? ^ 1),
            Operand::Int(value) => Ok(2 * TRUE + u32::from(*value == 0)),
            Operand::Sink => Ok(2 * TRUE),
            _ => Ok(2 * self.dst_pred(operand)?),
        }
    }

    /// An address operand in `space`.
    pub(crate) fn address(&mut self, operand: &Operand, space: Space) -> Result<Address> {
        let address_space = match space {
            Space::Global | Space::Const => AddressSpace::Global,
            Space::Shared | Space::SharedCluster => AddressSpace::Shared,
            Space::Local => AddressSpace::Local,
            Space::Param => AddressSpace::Param,
            Space::Generic => AddressSpace::Generic,
            Space::Reg | Space::Sreg | Space::Tex => {
                return Unsupported::because("an address in this space");
            }
        };
        let (base, offset) = match operand {
            Operand::Address { base, offset } => (base, *offset),
            _ => return Unsupported::because("an address of this form"),
        };
        let name = match base {
            AddressBase::Absolute(address) => {
                let base = self.builder.constant(*address);
                return Ok(Address {
                    address_space,
                    base,
                    offset,
                });
            }
            AddressBase::Name(name) => name,
        };
        if let Some((register, ty)) = self.register(name) {
            let base = self.row(register, ty);
            return Ok(Address {
                address_space,
                base,
                offset,
            });
        }
        match self.named(name)? {
            Named::Row(base) => Ok(Address {
                address_space,
                base,
                offset,
            }),
            Named::Frame(at) => {
                let base = self.builder.constant(u64::from(at));
                Ok(Address {
                    address_space: AddressSpace::Frame,
                    base,
                    offset,
                })
            }
            Named::KernelParam(at) => {
                let base = self.builder.constant(u64::from(at));
                Ok(Address {
                    address_space: AddressSpace::Param,
                    base,
                    offset,
                })
            }
            Named::Absolute(own, address) => {
                let base = self.builder.constant_address(own, address, 0);
                // Without a space the symbol's own says where it is.
                let address_space = match own {
                    Space::Shared => AddressSpace::Shared,
                    _ => AddressSpace::Global,
                };
                Ok(Address {
                    address_space,
                    base,
                    offset,
                })
            }
        }
    }
}
