//! Branches and calls.

use ptx::ast::{Instruction, Operand, Statement, Type};

use super::Result;
use super::context::{Decoder, Unsupported, operand};
use super::operand::Named;
use crate::code::{Argument, Call, Callee, Kind};
use crate::device_call::DeviceCall;

pub(super) fn branch(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let target = label(cx, operand(i, 0)?)?;
    cx.unresolved.push(cx.builder.program.ops.len());
    cx.push(Kind::Branch(target))
}

/// The statement of a label, as a branch target that is still to be resolved.
fn label(cx: &Decoder<'_, '_>, operand: &Operand) -> Result<u32> {
    let Operand::Name { name, .. } = operand else {
        return Unsupported::because("a branch target of this form");
    };
    match cx.scopes.label(cx.at, name) {
        Some(at) if matches!(cx.body.statements[at], Statement::Label { .. }) => Ok(at as u32),
        _ => Unsupported::because(format!("the unknown label {name}")),
    }
}

/// `brx.idx index, list;`
pub(super) fn branch_indexed(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let index = cx.src(operand(i, 0)?, Type::U32)?;
    let Operand::Name { name, .. } = operand(i, 1)? else {
        return Unsupported::because("a list of targets of this form");
    };
    let list = cx.scopes.label(cx.at, name);
    let Some(Statement::BranchTargets { targets, .. }) = list.map(|at| &cx.body.statements[at])
    else {
        return Unsupported::because(format!("the unknown list of targets {name}"));
    };
    let mut statements = Vec::new();
    for target in targets {
        let name = Operand::Name {
            name: target.clone(),
            component: None,
            offset: 0,
        };
        statements.push(label(cx, &name)?);
    }
    cx.unresolved.push(cx.builder.program.ops.len());
    cx.push(Kind::BranchIndexed {
        index,
        targets: statements.into(),
    })
}

/// `call (returns), function, (arguments), prototype;`
pub(super) fn call(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let position = i
        .operands
        .iter()
        .position(|operand| matches!(operand, Operand::Name { .. }));
    let Some((position, Operand::Name { name, .. })) =
        position.map(|position| (position, &i.operands[position]))
    else {
        return Unsupported::because("a call of this form");
    };
    let list = |operand: Option<&Operand>| match operand {
        Some(Operand::Paren(list)) => list.clone(),
        _ => Vec::new(),
    };
    let returns = if position > 0 {
        list(i.operands.first())
    } else {
        Vec::new()
    };
    let mut arguments = Vec::new();
    for argument in list(i.operands.get(position + 1)) {
        arguments.push(self::argument(cx, &argument, false)?);
    }
    let mut results = Vec::new();
    for result in returns {
        results.push(argument(cx, &result, true)?);
    }
    let callee = match cx.register(name) {
        Some((register, ty)) => Callee::Indirect(cx.row(register, ty)),
        None => direct(cx, name),
    };
    cx.push(Kind::Call(Box::new(Call {
        callee,
        arguments,
        returns: results,
    })))
}

fn direct(cx: &mut Decoder<'_, '_>, name: &str) -> Callee {
    let name = cx.builder.aliased(name);
    let module = cx.builder.module;
    match module.function(&name) {
        Some(function) if function.body.is_some() => Callee::Function(cx.builder.number(function)),
        _ => match name.as_str() {
            "vprintf" => Callee::Vprintf,
            "malloc" => Callee::Malloc,
            "free" => Callee::Free,
            "__assertfail" => Callee::AssertFail,
            _ => match DeviceCall::named(&name) {
                Some((call, own_stream)) => Callee::Device { call, own_stream },
                None => Callee::Missing(name),
            },
        },
    }
}

/// Where an actual parameter lies in the caller.
fn argument(cx: &mut Decoder<'_, '_>, operand: &Operand, result: bool) -> Result<Argument> {
    if let Operand::Name {
        name,
        component: None,
        offset: 0,
    } = operand
        && cx.register(name).is_none()
    {
        let statement = cx.scopes.variable(cx.at, name);
        if let Some(&(offset, bytes)) = statement.and_then(|at| cx.frame.get(&at)) {
            return Ok(Argument::Frame { offset, bytes });
        }
        if let Ok(Named::Row(row)) = cx.named(name) {
            return Ok(Argument::Row(row));
        }
    }
    let row = if result {
        cx.dst(operand)?
    } else {
        cx.src(operand, Type::B64)?
    };
    Ok(Argument::Row(row))
}

/// `nanosleep.u32 time;`
pub(super) fn sleep(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let time = cx.src(operand(i, 0)?, Type::U32)?;
    cx.push(Kind::Sleep(time))
}

/// `alloca.type p, bytes{, align};`, `stacksave.type d;` and `stackrestore.type a;`
pub(super) fn stack(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let first = operand(i, 0)?;
    match i.opcode.as_str() {
        "stacksave" => {
            let d = cx.dst(first)?;
            cx.push(Kind::StackSave(d))
        }
        "stackrestore" => {
            let a = cx.src(first, Type::B64)?;
            cx.push(Kind::StackRestore(a))
        }
        _ => {
            let align = match i.operands.get(2) {
                None => 8,
                Some(Operand::Int(align)) => u32::try_from(*align).unwrap_or(0),
                Some(_) => 0,
            };
            if !align.is_power_of_two() || align > 1 << 16 {
                return Unsupported::because("an alignment of this form");
            }
            let d = cx.dst(first)?;
            let bytes = cx.src(operand(i, 1)?, Type::B64)?;
            cx.push(Kind::Allocate { d, bytes, align })
        }
    }
}
