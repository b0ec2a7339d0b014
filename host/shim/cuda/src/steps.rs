//! Launches in steps, deprecated and still served: the function keeps what its next launch needs.

use std::ffi::{c_int, c_uint, c_void};

use driver::steps::{Block, Steps};
use driver::sys::{CUfunc_st, CUstream_st};

use crate::Answer;
use crate::launch::{Shape, prepare};
use crate::pointer::Ptr;
use crate::state::with_context;
use crate::work::submit;

fn step(func: Ptr<CUfunc_st>, set: impl FnOnce(&mut Steps) -> Answer) -> Answer {
    with_context(|state, _| set(&mut state.functions.get_mut(func.address())?.steps))
}

pub(crate) fn cuFuncSetBlockShape(func: Ptr<CUfunc_st>, x: c_int, y: c_int, z: c_int) -> Answer {
    step(func, |steps| steps.set_block([x, y, z]))
}

pub(crate) fn cuFuncSetSharedSize(func: Ptr<CUfunc_st>, bytes: c_uint) -> Answer {
    step(func, |steps| {
        steps.shared = bytes;
        Ok(())
    })
}

pub(crate) fn cuParamSetSize(func: Ptr<CUfunc_st>, bytes: c_uint) -> Answer {
    step(func, |steps| steps.set_size(bytes))
}

pub(crate) fn cuParamSeti(func: Ptr<CUfunc_st>, offset: c_int, value: c_uint) -> Answer {
    step(func, |steps| steps.set(offset, &value.to_le_bytes()))
}

pub(crate) fn cuParamSetf(func: Ptr<CUfunc_st>, offset: c_int, value: f32) -> Answer {
    step(func, |steps| steps.set(offset, &value.to_le_bytes()))
}

pub(crate) fn cuParamSetv(
    func: Ptr<CUfunc_st>,
    offset: c_int,
    ptr: Ptr<c_void>,
    bytes: c_uint,
) -> Answer {
    let given = ptr.bytes(bytes as usize)?;
    step(func, |steps| steps.set(offset, &given))
}

pub(crate) fn cuLaunch(func: Ptr<CUfunc_st>) -> Answer {
    cuLaunchGrid(func, 1, 1)
}

pub(crate) fn cuLaunchGrid(func: Ptr<CUfunc_st>, width: c_int, height: c_int) -> Answer {
    cuLaunchGridAsync(func, width, height, Ptr::NULL)
}

pub(crate) fn cuLaunchGridAsync(
    func: Ptr<CUfunc_st>,
    width: c_int,
    height: c_int,
    stream: Ptr<CUstream_st>,
) -> Answer {
    let steps = with_context(|state, _| Ok(state.functions.get(func.address())?.steps.clone()))?;
    let shape = Shape {
        // What is negative is no size either.
        grid: [width, height, 1].map(|size| u32::try_from(size).unwrap_or(0)),
        block: steps.block,
        cluster: [1; 3],
        shared: steps.shared,
        cooperative: false,
        programmatic: false,
    };
    let mut block = Block::new(steps.params());
    // SAFETY: the block is ours, and lives until the parameters have been read.
    let extra = unsafe { Ptr::new(block.extra()) };
    submit(
        stream.address(),
        prepare(func.address(), &shape, Ptr::NULL, extra)?,
    )
}
