//! One function: its frame, its statements in order, its labels.

use ptx::ast::{Function, Instruction, Space, Statement, Variable};
use ptx::scope::Scopes;
use std::collections::HashMap;

use super::context::Decoder;
use super::program::Builder;
use crate::code::{Formal, Func, Kind};

/// Decodes a function with a body; its ops are appended to the program.
pub(crate) fn decode<'m>(builder: &mut Builder<'m>, function: &'m Function) -> Func {
    let entry = builder.program.ops.len() as u32;
    let mut done = Func {
        entry,
        ..Func::default()
    };
    let Some(body) = &function.body else {
        return done;
    };
    let narrow = ptx::narrow(builder.module, function);
    let mut cx = Decoder {
        narrow,
        builder,
        function,
        body,
        scopes: Scopes::new(body),
        at: 0,
        rows: HashMap::new(),
        preds: HashMap::new(),
        // The reserved ones, see `context`.
        row_count: 1,
        pred_count: 3,
        frame: HashMap::new(),
        params: Vec::new(),
        returns: Vec::new(),
        labels: HashMap::new(),
        unresolved: Vec::new(),
    };
    let mut end = 0u32;
    if function.entry {
        let (layout, _) = ptx::param_layout(&function.params);
        for (param, at) in function.params.iter().zip(layout) {
            let formal = Formal::Frame {
                offset: at.offset,
                bytes: at.bytes,
            };
            cx.params.push((&param.name, formal));
        }
    } else {
        for param in &function.params {
            let formal = formal(&mut cx, param, &mut end);
            cx.params.push((&param.name, formal));
            done.params.push(formal);
        }
        for param in &function.returns {
            let formal = formal(&mut cx, param, &mut end);
            cx.returns.push((&param.name, formal));
            done.returns.push(formal);
        }
    }
    done.local = place_variables(&mut cx, end);
    for (at, statement) in body.statements.iter().enumerate() {
        cx.at = at;
        match statement {
            Statement::Label { .. } => {
                let next = cx.builder.program.ops.len() as u32;
                cx.labels.insert(at, next);
            }
            Statement::Instruction(instruction) => one(&mut cx, instruction),
            _ => {}
        }
    }
    // A body may end without a return.
    let _ = cx.push(Kind::Return);
    let end_offset = body.span.end.saturating_sub(1);
    fill_offsets(&mut cx, end_offset);
    resolve(&mut cx);
    done.rows = cx.row_count;
    done.preds = cx.pred_count;
    let ops = &mut cx.builder.program.ops[entry as usize..];
    super::allocate::allocate(ops, entry, &mut done);
    done
}

/// Where a formal parameter of a device function lies.
fn formal(cx: &mut Decoder<'_, '_>, param: &Variable, end: &mut u32) -> Formal {
    let bytes = u32::try_from(param.bytes())
        .unwrap_or(u32::MAX / 4)
        .min(u32::MAX / 4);
    if param.space == Space::Reg {
        let row = cx.new_row();
        return Formal::Row { row, bytes };
    }
    Formal::Frame {
        offset: place(end, bytes, param.alignment()),
        bytes,
    }
}

fn place(end: &mut u32, bytes: u32, align: u32) -> u32 {
    let offset = end.next_multiple_of(align.clamp(1, 1 << 16));
    *end = offset.saturating_add(bytes).min(u32::MAX / 4);
    offset
}

/// Gives the variables of the body their places behind `end`; variables of blocks that are not
/// live together share them. Returns the frame's size.
fn place_variables(cx: &mut Decoder<'_, '_>, mut end: u32) -> u32 {
    let mut largest = end;
    let mut open = Vec::new();
    for (at, statement) in cx.body.statements.iter().enumerate() {
        match statement {
            Statement::BlockOpen(_) => open.push(end),
            Statement::BlockClose(_) => end = open.pop().unwrap_or(end),
            Statement::Variable(variable)
                if matches!(variable.space, Space::Local | Space::Param) =>
            {
                let bytes = u32::try_from(variable.bytes()).unwrap_or(u32::MAX / 4);
                let bytes = bytes.min(u32::MAX / 4);
                let offset = place(&mut end, bytes, variable.alignment());
                cx.frame.insert(at, (offset, bytes));
                largest = largest.max(end);
            }
            _ => {}
        }
    }
    largest.next_multiple_of(16)
}

/// Decodes an instruction; one that cannot be becomes an op that says so.
fn one(cx: &mut Decoder<'_, '_>, instruction: &Instruction) {
    let first = cx.builder.program.ops.len();
    let guard = match &instruction.guard {
        None => Ok(0),
        Some(guard) => {
            let name = ptx::ast::Operand::Name {
                name: guard.predicate.clone(),
                component: None,
                offset: 0,
            };
            cx.src_pred(&name)
                .map(|pred| pred ^ u32::from(guard.negated))
        }
    };
    let result = guard.and_then(|guard| super::instruction(cx, instruction).map(|()| guard));
    let guard = result.unwrap_or_else(|unsupported| {
        cx.builder.program.ops.truncate(first);
        cx.unresolved.retain(|&op| op < first);
        let mut what = instruction.opcode.to_string();
        for suffix in &instruction.suffixes {
            what.push('.');
            what.push_str(suffix);
        }
        if unsupported.0 != "this instruction" {
            what = format!("{what} ({})", unsupported.0);
        }
        cx.builder.unsupported(&what, instruction.span.start);
        let _ = cx.push(Kind::Unsupported(what.into()));
        0
    });
    fill_offsets(cx, instruction.span.start);
    let ops = &mut cx.builder.program.ops[first..];
    for op in ops.iter_mut() {
        op.guard = guard;
    }
    if let Some(last) = ops.last_mut() {
        last.counts = true;
        last.fences = super::order::fences_device(instruction);
    }
}

/// Gives the ops that have none yet the offset of their instruction.
fn fill_offsets(cx: &mut Decoder<'_, '_>, offset: u32) {
    let program = &mut cx.builder.program;
    program.offsets.resize(program.ops.len(), offset);
}

/// Turns statement numbers of branch targets into op numbers.
fn resolve(cx: &mut Decoder<'_, '_>) {
    let labels = &cx.labels;
    let find = |statement: &mut u32| {
        // Every label statement of the body has an entry.
        *statement = labels.get(&(*statement as usize)).copied().unwrap_or(0);
    };
    for &op in &cx.unresolved {
        match &mut cx.builder.program.ops[op].kind {
            Kind::Branch(target) => find(target),
            Kind::BranchIndexed { targets, .. } => targets.iter_mut().for_each(find),
            _ => {}
        }
    }
}
