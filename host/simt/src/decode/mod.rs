//! Decoding: from the typed tree to ops, once per kernel.
//!
//! A kernel is decoded together with every function it calls. Where it calls through registers,
//! every function of the module comes with it, because any address may turn up.
//! What is not understood becomes an op that says so; in code that is reached directly it also
//! makes launches of the kernel fail before they start.

mod allocate;
mod atomic;
mod bits;
mod compare;
mod context;
mod control;
mod convert;
mod copy;
mod float;
mod function;
mod half;
mod integer;
mod matrix;
mod memory;
mod moves;
mod narrow;
mod operand;
mod order;
mod pairs;
mod program;
mod retry;
mod special;
mod surface;
mod texture;
mod video;
mod warp;

use ptx::ast::{Instruction, Type};

use crate::code::Kind;
pub(crate) use allocate::visit as visit_rows;
pub(crate) use context::{CARRY, Decoder, SINK, SINK_PRED, TRUE, Unsupported};
pub(crate) use float::fma32;
pub(crate) use program::{Symbol, Symbols, program};
pub(crate) use retry::Retry;

type Result<T> = std::result::Result<T, Unsupported>;

/// Pushes the ops of one instruction.
fn instruction(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let first = i.suffixes.first().map_or("", |suffix| suffix.as_str());
    let ty = i.types().last().copied();
    let float = ty.is_some_and(Type::is_float);
    match i.opcode.as_str() {
        "add" | "sub" | "mul" | "mad" | "div" | "abs" | "neg" | "min" | "max" if float => {
            float::decode(cx, i)
        }
        "fma" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign"
        | "testp" => float::decode(cx, i),
        "add" | "sub" | "mul" | "mad" | "div" | "rem" | "abs" | "neg" | "min" | "max" | "mul24"
        | "mad24" | "sad" | "dp4a" | "dp2a" | "addc" | "subc" | "madc" => integer::decode(cx, i),
        "and" | "or" | "xor" | "not" if ty == Some(Type::Pred) => compare::logic(cx, i),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "popc" | "clz" | "brev"
        | "bfind" | "bfi" | "bfe" | "prmt" | "lop3" | "bmsk" | "szext" | "fns" => {
            bits::decode(cx, i)
        }
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vset" | "vmad" => {
            video::scalar(cx, i)
        }
        "vadd2" | "vsub2" | "vavrg2" | "vabsdiff2" | "vmin2" | "vmax2" | "vset2" | "vadd4"
        | "vsub4" | "vavrg4" | "vabsdiff4" | "vmin4" | "vmax4" | "vset4" => video::simd(cx, i),
        "setp" => compare::setp(cx, i),
        "set" => compare::set(cx, i),
        "selp" | "slct" => compare::select(cx, i),
        "mov" => moves::mov(cx, i),
        "cvta" => moves::cvta(cx, i),
        "isspacep" => moves::isspacep(cx, i),
        "mapa" => moves::mapa(cx, i),
        "alloca" | "stacksave" | "stackrestore" => control::stack(cx, i),
        "getctarank" => moves::getctarank(cx, i),
        "cvt" if narrow::is_narrow(i) => narrow::decode(cx, i),
        "cvt" => convert::decode(cx, i),
        "ld" | "ldu" => memory::load(cx, i),
        "st" if first != "async" && first != "bulk" => memory::store(cx, i),
        "atom" => atomic::decode(cx, i, true),
        "red" if first != "async" => atomic::decode(cx, i, false),
        "cp" => copy::decode(cx, i),
        "st" | "red" if first == "async" => copy::store(cx, i),
        "mbarrier" => copy::mbarrier(cx, i),
        "tex" | "tld4" => texture::decode(cx, i),
        "suld" | "sust" => surface::decode(cx, i),
        "mma" | "wmma" | "ldmatrix" | "stmatrix" | "movmatrix" => matrix::decode(cx, i),
        "bra" => control::branch(cx, i),
        "brx" => control::branch_indexed(cx, i),
        "call" => control::call(cx, i),
        "ret" => cx.push(Kind::Return),
        "exit" => cx.push(Kind::Exit),
        "trap" => cx.push(Kind::Trap),
        "bar" | "barrier" => warp::barrier(cx, i),
        "shfl" | "vote" | "match" | "redux" | "elect" => warp::exchange(cx, i),
        "activemask" => warp::activemask(cx, i),
        "membar" | "fence" => cx.push(Kind::Fence),
        "nanosleep" => control::sleep(cx, i),
        // Where in the caches data should stay says nothing here.
        "createpolicy" => moves::policy(cx, i),
        "griddepcontrol" => cx.push(Kind::Dependency),
        // Nothing to do: caches that cannot be seen, no debugger.
        "prefetch" | "prefetchu" | "brkpt" | "pmevent" | "discard" | "applypriority"
        | "setmaxnreg" => cx.push(Kind::Nop),
        _ => Unsupported::because("this instruction"),
    }
}
