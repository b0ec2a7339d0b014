//! Calls, returns and indexed branches.

use super::address::{deposit, fetch, lanes};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::taint::Passed;
use super::warp::{Frame, Split, Warp};
use crate::code::{Argument, Call, Callee, Formal, Kind};
use crate::lanes::{Lanes, WARP};

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// Executes a call for all lanes of a split. Lanes that call another function through the
    /// same register stay behind and call it later.
    pub(crate) fn call(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &mut Split,
        call: &Call,
    ) -> Result<(), Box<Fault>> {
        let program = self.setup.program;
        let lane = split.mask.trailing_zeros();
        let function = match &call.callee {
            Callee::Function(function) => *function,
            Callee::Indirect(row) => {
                let targets = warp.read(&split.frame, *row, &program.consts);
                let target = targets[lane as usize];
                part(warp, split, |lane| targets[lane] == target);
                let found = program
                    .addresses
                    .binary_search_by_key(&target, |&(address, _)| address);
                match found {
                    Ok(index) => program.addresses[index].1,
                    Err(_) => {
                        return Err(Fault::new(lane, FaultKind::BadCall { address: target }));
                    }
                }
            }
            builtin => {
                self.builtin(cta, warp, split, call, builtin)?;
                split.pc += 1;
                return Ok(());
            }
        };
        let caller = &program.functions[split.frame.function as usize];
        let callee = &program.functions[function as usize];
        let limit = self.setup.config.local_per_thread;
        let frame = warp.enter(&split.frame, caller, function, callee, split.mask, limit);
        let Some(frame) = frame else {
            return Err(Fault::new(lane, FaultKind::StackOverflow));
        };
        for (argument, formal) in call.arguments.iter().zip(&callee.params) {
            self.pass(warp, split.mask, &split.frame, *argument, &frame, *formal);
        }
        split.callers.push((split.frame, split.pc + 1));
        split.frame = frame;
        split.pc = callee.entry;
        Ok(())
    }

    /// Returns from a function that was called.
    pub(crate) fn return_from(&mut self, warp: &mut Warp, split: &mut Split) {
        let program = self.setup.program;
        let Some((caller, pc)) = split.callers.pop() else {
            return;
        };
        let callee = &program.functions[split.frame.function as usize];
        if let Kind::Call(call) = &program.ops[pc as usize - 1].kind {
            for (result, formal) in call.returns.iter().zip(&callee.returns) {
                self.give_back(warp, split.mask, &split.frame, *formal, &caller, *result);
            }
        }
        split.frame = caller;
        split.pc = pc;
    }

    /// Copies an actual parameter into the callee's frame.
    fn pass(
        &self,
        warp: &mut Warp,
        mask: u32,
        caller: &Frame,
        argument: Argument,
        callee: &Frame,
        formal: Formal,
    ) {
        if self.follows_values() {
            let from = Passed::argument(caller, argument);
            self.follow_passed(warp, mask, from, Passed::formal(callee, formal));
        }
        let consts = &self.setup.program.consts;
        match (argument, formal) {
            (
                Argument::Frame {
                    offset: from,
                    bytes,
                },
                Formal::Frame {
                    offset: to,
                    bytes: room,
                },
            ) => {
                copy(
                    warp,
                    mask,
                    caller.local + from,
                    callee.local + to,
                    bytes.min(room),
                );
            }
            (Argument::Row(row), Formal::Frame { offset, bytes }) => {
                let value = warp.read(caller, row, consts);
                write(warp, mask, callee.local + offset, bytes, &value);
            }
            (Argument::Frame { offset, bytes }, Formal::Row { row, .. }) => {
                let value = read(warp, mask, caller.local + offset, bytes);
                warp.rows(callee, consts).put(row, mask, &value);
            }
            (Argument::Row(from), Formal::Row { row, .. }) => {
                let value = warp.read(caller, from, consts);
                warp.rows(callee, consts).put(row, mask, &value);
            }
        }
    }

    /// Copies a result into the caller's frame.
    fn give_back(
        &self,
        warp: &mut Warp,
        mask: u32,
        callee: &Frame,
        formal: Formal,
        caller: &Frame,
        result: Argument,
    ) {
        if self.follows_values() {
            let to = Passed::argument(caller, result);
            self.follow_passed(warp, mask, Passed::formal(callee, formal), to);
        }
        let consts = &self.setup.program.consts;
        match (formal, result) {
            (
                Formal::Frame {
                    offset: from,
                    bytes,
                },
                Argument::Frame {
                    offset: to,
                    bytes: room,
                },
            ) => {
                copy(
                    warp,
                    mask,
                    callee.local + from,
                    caller.local + to,
                    bytes.min(room),
                );
            }
            (Formal::Frame { offset, bytes }, Argument::Row(row)) => {
                let value = read(warp, mask, callee.local + offset, bytes);
                warp.rows(caller, consts).put(row, mask, &value);
            }
            (Formal::Row { row, bytes }, Argument::Frame { offset, .. }) => {
                let value = warp.read(callee, row, consts);
                write(warp, mask, caller.local + offset, bytes, &value);
            }
            (Formal::Row { row: from, .. }, Argument::Row(row)) => {
                let value = warp.read(callee, from, consts);
                warp.rows(caller, consts).put(row, mask, &value);
            }
        }
    }

    /// The value of an actual parameter in every lane.
    pub(crate) fn argument(
        &self,
        warp: &Warp,
        split: &Split,
        argument: Option<&Argument>,
    ) -> Lanes {
        match argument {
            None => [0; WARP],
            Some(&Argument::Row(row)) => warp.read(&split.frame, row, &self.setup.program.consts),
            Some(&Argument::Frame { offset, bytes }) => {
                read(warp, split.mask, split.frame.local + offset, bytes)
            }
        }
    }

    /// Sets a result of a call of a built-in function.
    pub(crate) fn set_result(
        &self,
        warp: &mut Warp,
        split: &Split,
        result: Option<&Argument>,
        value: &Lanes,
    ) {
        if let Some(&to) = result.filter(|_| self.follows_values()) {
            let to = Passed::argument(&split.frame, to);
            self.follow_passed(warp, split.mask, Passed::Result, to);
        }
        match result {
            None => {}
            Some(&Argument::Row(row)) => {
                warp.rows(&split.frame, &self.setup.program.consts)
                    .put(row, split.mask, value);
            }
            Some(&Argument::Frame { offset, bytes }) => {
                write(warp, split.mask, split.frame.local + offset, bytes, value);
            }
        }
    }

    /// `brx.idx`: lanes with another index stay behind.
    pub(crate) fn branch_indexed(
        &mut self,
        warp: &mut Warp,
        split: &mut Split,
        index: u32,
        targets: &[u32],
    ) -> Result<(), Box<Fault>> {
        let indices = warp.read(&split.frame, index, &self.setup.program.consts);
        let lane = split.mask.trailing_zeros();
        let index = indices[lane as usize];
        part(warp, split, |lane| indices[lane] == index);
        match targets.get(index as usize) {
            Some(&target) => {
                split.pc = target;
                Ok(())
            }
            None => Err(Fault::new(lane, FaultKind::BadCall { address: index })),
        }
    }
}

/// Leaves the lanes that `stays` does not hold for behind, at the same place.
fn part(warp: &mut Warp, split: &mut Split, stays: impl Fn(usize) -> bool) {
    let same = lanes(split.mask)
        .filter(|&lane| stays(lane))
        .fold(0, |mask, lane| mask | 1 << lane);
    if same != split.mask {
        let mut other = split.clone();
        other.mask = split.mask & !same;
        other.turn = warp.clock;
        split.mask = same;
        warp.splits.push(other);
    }
}

/// Copies bytes of local memory.
fn copy(warp: &mut Warp, mask: u32, from: u32, to: u32, bytes: u32) {
    let unit = if (from | to | bytes).is_multiple_of(4) {
        4
    } else {
        1
    };
    for lane in lanes(mask) {
        for step in (0..bytes).step_by(unit as usize) {
            let at = |base: u32| u64::from(base + step);
            let value = fetch(unit, at(from), |word| warp.local[word * WARP + lane]);
            deposit(unit, at(to), value, |word, keep, bits| {
                let word = &mut warp.local[word * WARP + lane];
                *word = *word & !keep | bits & keep;
            });
        }
    }
}

/// A value of up to 8 bytes in local memory.
fn read(warp: &Warp, mask: u32, offset: u32, bytes: u32) -> Lanes {
    let mut value = [0; WARP];
    for lane in lanes(mask) {
        let size = if bytes >= 8 { 8 } else { bytes.max(1) };
        value[lane] = fetch(size, u64::from(offset), |word| {
            warp.local[word * WARP + lane]
        });
    }
    value
}

fn write(warp: &mut Warp, mask: u32, offset: u32, bytes: u32, value: &Lanes) {
    for lane in lanes(mask) {
        let size = if bytes >= 8 { 8 } else { bytes.max(1) };
        deposit(size, u64::from(offset), value[lane], |word, keep, bits| {
            let word = &mut warp.local[word * WARP + lane];
            *word = *word & !keep | bits & keep;
        });
    }
}
