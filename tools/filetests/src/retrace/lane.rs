//! One thread: its registers, and what it does up to the next instruction that others may notice.

use hashbrown::HashMap;

use ptx::ast::{AddressBase, Instruction, Operand, Space, Type, Variable};
use shadow::hb::Location;
use smol_str::SmolStr;

use super::alu::{compute, extend, ty};
use super::code::{Code, align, bytes};
use super::want::{self, Want};
use super::{Launch, Objection, Result};

/// Generic addresses of shared memory begin here, where no other memory lies.
const WINDOW: u64 = 1 << 62;
/// Distance between the shared memories of a cluster's CTAs, own first, then by rank.
const STEP: u64 = 1 << 24;
/// Instructions of a thread between two that others notice, at most.
const MOST_INSTRUCTIONS: u32 = 1_000_000;

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ThreadId {
    /// Linear index of the CTA.
    pub(super) cta: u64,
    pub(super) warp: u32,
    pub(super) lane: u32,
}

/// A call that has not returned.
struct Frame {
    routine: usize,
    pc: usize,
    registers: HashMap<SmolStr, u64>,
    params: HashMap<SmolStr, Vec<u8>>,
}

/// One thread.
pub(super) struct Lane {
    pub(super) thread: ThreadId,
    frames: Vec<Frame>,
}

impl Lane {
    /// A thread of a kernel.
    pub(super) fn new(thread: ThreadId, routine: usize) -> Self {
        let frame = Frame {
            routine,
            pc: 0,
            registers: HashMap::new(),
            params: HashMap::new(),
        };
        Self {
            thread,
            frames: vec![frame],
        }
    }

    fn frame(&mut self) -> Result<&mut Frame> {
        let gone = || Objection::unknown("an instruction of a thread that has ended");
        self.frames.last_mut().ok_or_else(gone)
    }

    /// Goes on to the next instruction that others may notice.
    pub(super) fn advance(&mut self, code: &Code<'_>, launch: &Launch<'_>) -> Result<Want> {
        for _ in 0..MOST_INSTRUCTIONS {
            let (routine, pc) = {
                let frame = self.frame()?;
                (&code.routines[frame.routine], frame.pc)
            };
            let Some(&(instruction, line)) = routine.ops.get(pc) else {
                match self.frames.len() {
                    1 => return Ok(Want::end()),
                    _ => self.leave(code)?,
                }
                continue;
            };
            if !self.holds(instruction)? {
                self.frame()?.pc += 1;
                continue;
            }
            let want = want::of(self, code, launch, instruction)?;
            if let Some(what) = want {
                return Ok(Want { line, what });
            }
            match instruction.opcode.as_str() {
                "bra" => {
                    let Some(Operand::Name { name, .. }) = instruction.operands.first() else {
                        return Err(Objection::unknown("a branch"));
                    };
                    self.frame()?.pc = routine.label(name)?;
                }
                "ret" | "exit" if self.frames.len() == 1 || instruction.opcode == "exit" => {
                    return Ok(Want::end());
                }
                "ret" => self.leave(code)?,
                "call" => self.call(code, launch, instruction)?,
                _ => {
                    self.silent(code, launch, instruction)?;
                    self.frame()?.pc += 1;
                }
            }
        }
        Err(Objection::unknown("a loop in which nothing can be noticed"))
    }

    /// The instruction that it has come to.
    pub(super) fn instruction<'a>(&self, code: &Code<'a>) -> Option<&'a Instruction> {
        let frame = self.frames.last()?;
        let routine = &code.routines[frame.routine];
        routine
            .ops
            .get(frame.pc)
            .map(|&(instruction, _)| instruction)
    }

    /// The instruction it has come to is done.
    pub(super) fn done(&mut self) -> Result<()> {
        self.frame()?.pc += 1;
        Ok(())
    }

    fn holds(&mut self, instruction: &Instruction) -> Result<bool> {
        let Some(guard) = &instruction.guard else {
            return Ok(true);
        };
        let holds = self.frame()?.registers.get(&guard.predicate) == Some(&1);
        Ok(holds != guard.negated)
    }

    /// The value of an operand.
    pub(super) fn value(
        &mut self,
        code: &Code<'_>,
        launch: &Launch<'_>,
        operand: &Operand,
    ) -> Result<u64> {
        match operand {
            Operand::Int(value) => Ok(*value as u64),
            Operand::Not(inner) => Ok(u64::from(self.value(code, launch, inner)? == 0)),
            Operand::Name {
                name,
                component,
                offset,
            } => {
                if let Some(&value) = self.frame()?.registers.get(name) {
                    return Ok(value);
                }
                if let Some(value) = self.special(launch, name, *component) {
                    return Ok(value);
                }
                if let Some(value) = code.address(name) {
                    return Ok(value.wrapping_add(*offset as u64));
                }
                Err(Objection::unknown(format!("the value of {name}")))
            }
            _ => Err(Objection::unknown("an operand")),
        }
    }

    fn special(&self, launch: &Launch<'_>, name: &str, component: Option<u16>) -> Option<u64> {
        let axis = component.map(usize::from);
        let at = |number: u64, of: [u32; 3]| {
            let [x, y] = [u64::from(of[0]), u64::from(of[1])];
            Some([number % x, number / x % y, number / x / y][axis?])
        };
        let thread = u64::from(self.thread.warp * 32 + self.thread.lane);
        let cluster = u64::from(launch.cluster);
        match name {
            "%tid" => at(thread, launch.block),
            "%ctaid" => at(self.thread.cta, launch.grid),
            "%ntid" => Some(launch.block[axis?].into()),
            "%nctaid" => Some(launch.grid[axis?].into()),
            "%laneid" => Some(self.thread.lane.into()),
            "%cluster_ctarank" => Some(self.thread.cta % cluster),
            "%cluster_nctarank" => Some(cluster),
            "WARP_SZ" => Some(32),
            "%envreg1" => Some(launch.workspace? >> 32),
            "%envreg2" => Some(launch.workspace? & 0xffff_ffff),
            _ => None,
        }
    }

    /// Writes a register.
    pub(super) fn set(&mut self, operand: &Operand, value: u64) -> Result<()> {
        match operand {
            Operand::Sink => Ok(()),
            Operand::Name { name, .. } => {
                self.frame()?.registers.insert(name.clone(), value);
                Ok(())
            }
            _ => Err(Objection::unknown("a destination")),
        }
    }

    /// The address that an operand in brackets means.
    pub(super) fn address(
        &mut self,
        code: &Code<'_>,
        launch: &Launch<'_>,
        operand: &Operand,
    ) -> Result<u64> {
        let Operand::Address { base, offset } = operand else {
            return Err(Objection::unknown("an address"));
        };
        let base = match base {
            AddressBase::Absolute(address) => *address,
            AddressBase::Name(name) => {
                let name = Operand::Name {
                    name: name.clone(),
                    component: None,
                    offset: 0,
                };
                self.value(code, launch, &name)?
            }
        };
        Ok(base.wrapping_add(*offset as u64))
    }

    /// The place that an address means in a space.
    pub(super) fn location(
        &self,
        launch: &Launch<'_>,
        space: Space,
        address: u64,
    ) -> Result<Location> {
        let offset = match space {
            Space::Global => return Ok(Location::Global(address)),
            Space::Generic if address < WINDOW => return Ok(Location::Global(address)),
            Space::Generic => address - WINDOW,
            // Some code keeps addresses of 32 bits.
            Space::Shared | Space::SharedCluster => address,
            _ => return Err(Objection::unknown("another space")),
        };
        let cluster = u64::from(launch.cluster);
        let cta = match offset / STEP {
            0 => self.thread.cta,
            rank if rank <= cluster => self.thread.cta / cluster * cluster + rank - 1,
            _ => return Err(Objection::unknown("an address outside of shared memory")),
        };
        Ok(Location::Shared {
            cta,
            offset: (offset % STEP) as u32,
        })
    }

    /// Does an instruction that no other thread can notice.
    fn silent(
        &mut self,
        code: &Code<'_>,
        launch: &Launch<'_>,
        instruction: &Instruction,
    ) -> Result<()> {
        let operands = &instruction.operands;
        let missing = || Objection::unknown(format!("the operands of {}", instruction.opcode));
        let target = operands.first().ok_or_else(missing)?;
        let source = |number: usize| operands.get(number).ok_or_else(missing);
        match instruction.opcode.as_str() {
            "ld" => {
                let ty = ty(instruction)?;
                let value = self.param(code, launch, source(1)?, ty)?;
                self.set(target, extend(value, ty))
            }
            "st" => {
                let value = self.value(code, launch, source(1)?)?;
                let Operand::Address {
                    base: AddressBase::Name(name),
                    offset,
                } = target
                else {
                    return Err(missing());
                };
                let count = ty(instruction)?.bytes() as usize;
                let param = self.frame()?.params.entry(name.clone()).or_default();
                let end = *offset as usize + count;
                param.resize(param.len().max(end), 0);
                param[end - count..end].copy_from_slice(&value.to_le_bytes()[..count]);
                Ok(())
            }
            "cvta" => {
                let value = self.value(code, launch, source(1)?)?;
                let to_generic = !instruction.has("to");
                let value = match instruction.space() {
                    Space::Shared | Space::SharedCluster if to_generic => value + WINDOW,
                    Space::Shared | Space::SharedCluster => value.wrapping_sub(WINDOW),
                    Space::Global => value,
                    _ => return Err(Objection::unknown("an address of another space")),
                };
                self.set(target, value)
            }
            "mapa" => {
                let value = self.value(code, launch, source(1)?)?;
                let rank = self.value(code, launch, source(2)?)?;
                let base = match instruction.space() {
                    Space::Generic => WINDOW,
                    _ => 0,
                };
                let offset = value.wrapping_sub(base) % STEP;
                self.set(target, base + (rank + 1) * STEP + offset)
            }
            "nanosleep" => Ok(()),
            _ => {
                let sources = operands[1..]
                    .iter()
                    .map(|operand| self.value(code, launch, operand));
                let sources = sources.collect::<Result<Vec<u64>>>()?;
                self.set(target, compute(instruction, &sources)?)
            }
        }
    }

    /// A parameter of the kernel or of the function, or the result of a call.
    fn param(
        &mut self,
        code: &Code<'_>,
        launch: &Launch<'_>,
        operand: &Operand,
        ty: Type,
    ) -> Result<u64> {
        let unknown = || Objection::unknown("a parameter");
        let Operand::Address {
            base: AddressBase::Name(name),
            offset,
        } = operand
        else {
            return Err(unknown());
        };
        let entry = self.frames.len() == 1;
        let frame = self.frame()?;
        let routine = frame.routine;
        let (bytes, start) = match frame.params.get(name) {
            Some(bytes) => (bytes.as_slice(), 0),
            None if entry => {
                let params = &code.routines[routine].function.params;
                (launch.params, layout(params, name).ok_or_else(unknown)?)
            }
            None => return Err(unknown()),
        };
        let first = start + *offset as usize;
        let value = bytes.get(first..first + ty.bytes() as usize);
        let value = value.ok_or_else(unknown)?;
        let mut all = [0; 8];
        all.get_mut(..value.len())
            .ok_or_else(unknown)?
            .copy_from_slice(value);
        Ok(u64::from_le_bytes(all))
    }

    /// Calls a function, by name or through a pointer.
    fn call(
        &mut self,
        code: &Code<'_>,
        launch: &Launch<'_>,
        instruction: &Instruction,
    ) -> Result<()> {
        let unknown = || Objection::unknown("a call");
        let mut operands = instruction.operands.iter().peekable();
        if let Some(Operand::Paren(_)) = operands.peek() {
            operands.next();
        }
        let target = operands.next().ok_or_else(unknown)?;
        let arguments = match operands.next() {
            Some(Operand::Paren(arguments)) => arguments.as_slice(),
            _ => &[],
        };
        let address = self.value(code, launch, target)?;
        let routine = code.at(address).ok_or_else(unknown)?;
        let function = code.routines[routine].function;
        let mut params = HashMap::new();
        for (formal, actual) in function.params.iter().zip(arguments) {
            let Operand::Name { name, .. } = actual else {
                return Err(unknown());
            };
            let mut value = self.frame()?.params.get(name).cloned().unwrap_or_default();
            value.resize(bytes(formal) as usize, 0);
            params.insert(formal.name.clone(), value);
        }
        self.frames.push(Frame {
            routine,
            pc: 0,
            registers: HashMap::new(),
            params,
        });
        Ok(())
    }

    /// Returns from a call.
    fn leave(&mut self, code: &Code<'_>) -> Result<()> {
        let unknown = || Objection::unknown("a return");
        let callee = self.frames.pop().ok_or_else(unknown)?;
        let returns = &code.routines[callee.routine].function.returns;
        let called = self.instruction(code).ok_or_else(unknown)?;
        if let Some(Operand::Paren(results)) = called.operands.first()
            && !returns.is_empty()
        {
            for (formal, actual) in returns.iter().zip(results) {
                let Operand::Name { name, .. } = actual else {
                    return Err(unknown());
                };
                let value = callee.params.get(&formal.name).cloned();
                let value = value.ok_or_else(unknown)?;
                self.frame()?.params.insert(name.clone(), value);
            }
        }
        self.done()
    }
}

/// Where a kernel's parameter lies among its bytes.
fn layout(params: &[Variable], name: &str) -> Option<usize> {
    let mut at = 0_usize;
    for param in params {
        let align = align(param).max(1) as usize;
        at = at.div_ceil(align) * align;
        if param.name == name {
            return Some(at);
        }
        at += bytes(param) as usize;
    }
    None
}
