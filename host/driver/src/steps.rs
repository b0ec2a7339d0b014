//! Launches in steps: the calls before `cuLaunchKernel` that set a function up one value at a time.
//!
//! Source: `cuFuncSetBlockShape`, `cuFuncSetSharedSize`, `cuParamSet*` and `cuLaunch*` of `cuda.h`,
//! deprecated since CUDA 4.0 and still exported by drivers of CUDA 13.

use std::ffi::{c_int, c_void};

use crate::pointer::Answer;
use crate::sys::{CUresult, launch_param};

/// Bytes of a parameter block, at most: what a kernel of any architecture may take, and some.
const MOST: usize = 1 << 15;

/// What has been set for the launches of one function.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Threads of a block; zeroes as long as nobody has said.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    size: usize,
    params: Vec<u8>,
}

impl Steps {
    /// Sets the shape of a block.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` when it is not positive.
    pub fn set_block(&mut self, shape: [c_int; 3]) -> Answer {
        if shape.iter().any(|&size| size <= 0) {
            return Err(CUresult::INVALID_VALUE);
        }
        self.block = shape.map(c_int::unsigned_abs);
        Ok(())
    }

    /// Sets how many bytes of parameters there are.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` when no kernel takes so many.
    pub fn set_size(&mut self, bytes: u32) -> Answer {
        self.size = room(0, bytes as usize)?;
        Ok(())
    }

    /// Sets parameters from an offset on, in bytes.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` when there is no such place.
    pub fn set(&mut self, offset: c_int, bytes: &[u8]) -> Answer {
        let end = room(offset, bytes.len())?;
        if self.params.len() < end {
            self.params.resize(end, 0);
        }
        self.params[end - bytes.len()..end].copy_from_slice(bytes);
        Ok(())
    }

    /// The parameters, as many bytes as were announced; what was not set is zero.
    pub fn params(&self) -> Vec<u8> {
        let mut params = self.params.clone();
        params.resize(self.size, 0);
        params
    }
}

/// The end of so many bytes from an offset on.
fn room(offset: c_int, bytes: usize) -> Result<usize, CUresult> {
    let start = usize::try_from(offset).ok();
    let end = start.and_then(|start| start.checked_add(bytes));
    end.filter(|&end| end <= MOST)
        .ok_or(CUresult::INVALID_VALUE)
}

/// A parameter block, as a launch takes it by its argument `extra`.
#[derive(Debug)]
pub struct Block {
    params: Vec<u8>,
    size: usize,
    extra: [*mut c_void; 5],
}

impl Block {
    /// A block of these bytes, which stay where they are.
    pub fn new(params: Vec<u8>) -> Box<Block> {
        let mut block = Box::new(Block {
            size: params.len(),
            params,
            extra: [std::ptr::null_mut(); 5],
        });
        let tag = |tag: usize| std::ptr::without_provenance_mut(tag);
        let size: *mut usize = &mut block.size;
        block.extra = [
            tag(launch_param::BUFFER_POINTER),
            block.params.as_mut_ptr().cast(),
            tag(launch_param::BUFFER_SIZE),
            size.cast(),
            tag(launch_param::END),
        ];
        block
    }

    /// The argument `extra`, good for as long as the block lives.
    pub fn extra(&mut self) -> *mut *mut c_void {
        self.extra.as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointer::Ptr;

    #[test]
    fn parameters_are_as_many_bytes_as_announced() {
        let mut steps = Steps::default();
        assert_eq!(steps.set(8, &7u32.to_le_bytes()), Ok(()));
        assert_eq!(steps.set(0, &[1, 2]), Ok(()));
        assert_eq!(steps.params(), []);
        assert_eq!(steps.set_size(10), Ok(()));
        assert_eq!(steps.params(), [1, 2, 0, 0, 0, 0, 0, 0, 7, 0]);
        assert_eq!(steps.set_size(14), Ok(()));
        let mut block = Block::new(steps.params());
        // SAFETY: the block lives until the end of the test.
        let read = unsafe { Ptr::new(block.extra()) }.launch_buffer();
        assert_eq!(read, Ok(steps.params()));
    }

    #[test]
    fn places_that_no_kernel_has_are_refused() {
        let mut steps = Steps::default();
        let bad = Err(CUresult::INVALID_VALUE);
        assert_eq!(steps.set(-1, &[0]), bad);
        assert_eq!(steps.set(c_int::MAX, &[0]), bad);
        assert_eq!(steps.set_size(u32::MAX), bad);
        assert_eq!(steps.set_block([1, 0, 1]), bad);
        assert_eq!(steps.set_block([1, 2, -1]), bad);
        assert_eq!(steps.set_block([3, 2, 1]), Ok(()));
        assert_eq!(steps.block, [3, 2, 1]);
    }
}
