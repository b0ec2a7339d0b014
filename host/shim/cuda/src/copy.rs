//! Copies and fills, all of them as boxes of rows.
//!
//! An array is where its texels are: the handle becomes an address when the copy is asked for.

pub(crate) mod touched;

use std::ffi::{c_uint, c_void};

use driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUarray_st, CUctx_st, CUdeviceptr,
    CUresult, CUstream_st, memory_type,
};

use crate::Answer;
use crate::pointer::Ptr;
use crate::state::{State, with_context};
use crate::work::{Work, fill_and_wait, submit, submit_and_wait};

/// A copy of `depth` slices of `height` rows of `width` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    from: Side,
    to: Side,
    width: u64,
    height: u64,
    depth: u64,
}

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    owner: Owner,
    /// The first byte copied.
    address: u64,
    /// Bytes from row to row.
    pitch: u64,
    /// Bytes from slice to slice.
    slice: u64,
}

/// Whose address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Host,
    Device,
    /// Whoever has the address: unified addressing.
    Either,
}

/// A fill of `height` rows of `width` elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    pitch: u64,
    value: u32,
    /// Bytes of an element: 1, 2 or 4.
    element: u64,
    width: u64,
    height: u64,
}

impl Side {
    /// Bytes in one piece.
    fn whole(owner: Owner, address: u64) -> Self {
        Self {
            owner,
            address,
            pitch: 0,
            slice: 0,
        }
    }

    fn at(&self, row: u64, slice: u64) -> Option<u64> {
        let rows = row.checked_mul(self.pitch)?;
        self.address
            .checked_add(slice.checked_mul(self.slice)?)?
            .checked_add(rows)
    }
}

impl Side {
    /// A box of an array: `at` and `size` are bytes in x, rows and slices.
    fn of_array(array: u64, at: [u64; 3], size: [u64; 3]) -> Result<Side, CUresult> {
        with_context(|state, _| {
            let array = state.arrays.get(array)?;
            Ok(Side {
                owner: Owner::Device,
                address: array.address_of(at, size)?,
                pitch: array.image.pitch,
                slice: array.image.slice,
            })
        })
    }
}

/// A copy of `bytes` bytes in one piece.
fn line(to: Side, from: Side, bytes: usize) -> Copy {
    Copy {
        from,
        to,
        width: bytes as u64,
        height: 1,
        depth: 1,
    }
}

impl State {
    pub(crate) fn copy(&mut self, copy: &Copy) -> Answer {
        let mut row = Vec::new();
        for slice in 0..copy.depth {
            for line in 0..copy.height {
                let from = copy.from.at(line, slice).ok_or(CUresult::INVALID_VALUE)?;
                let to = copy.to.at(line, slice).ok_or(CUresult::INVALID_VALUE)?;
                let width = usize::try_from(copy.width).map_err(|_| CUresult::INVALID_VALUE)?;
                // Large rows go in pieces, so that a copy never needs much memory of its own.
                for start in (0..width).step_by(PIECE) {
                    row.resize(PIECE.min(width - start), 0);
                    self.fetch(copy.from.owner, from + start as u64, &mut row)?;
                    self.store(copy.to.owner, to + start as u64, &row)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an address of a side is the device's.
    fn on_device_side(&self, owner: Owner, address: u64) -> Result<bool, CUresult> {
        let memory = self.engine.memory();
        match owner {
            Owner::Device => Ok(true),
            Owner::Host if memory.is_arena(address) => Err(CUresult::INVALID_VALUE),
            Owner::Host => Ok(false),
            Owner::Either => Ok(memory.is_arena(address) || memory.containing(address).is_some()),
        }
    }

    fn fetch(&self, owner: Owner, address: u64, into: &mut [u8]) -> Answer {
        match self.on_device_side(owner, address)? {
            true => {
                let read = self.engine.memory().read(address, into);
                read.map_err(|_| CUresult::INVALID_VALUE)
            }
            false => host(address).read(into),
        }
    }

    fn store(&mut self, owner: Owner, address: u64, from: &[u8]) -> Answer {
        match self.on_device_side(owner, address)? {
            true => {
                let written = self.engine.memory_mut().write(address, from);
                written.map_err(|_| CUresult::INVALID_VALUE)
            }
            false => host(address).write(from),
        }
    }

    pub(crate) fn fill(&mut self, fill: &Fill) -> Answer {
        let bad = CUresult::INVALID_VALUE;
        let width = fill.width.checked_mul(fill.element).ok_or(bad)?;
        let aligned = fill.address.is_multiple_of(fill.element)
            && (fill.height == 1 || fill.pitch.is_multiple_of(fill.element));
        if !aligned || (fill.height > 1 && fill.pitch < width) {
            return Err(bad);
        }
        let bytes = fill.value.to_le_bytes();
        let pattern = &bytes[..fill.element as usize];
        let uniform = pattern.iter().all(|&byte| byte == pattern[0]);
        let piece = pattern.repeat(PIECE.min(width as usize) / pattern.len());
        let memory = self.engine.memory_mut();
        for row in 0..fill.height {
            let offset = row.checked_mul(fill.pitch).ok_or(bad)?;
            let start = fill.address.checked_add(offset).ok_or(bad)?;
            if width > 0 && uniform {
                memory.fill(start, pattern[0], width).map_err(|_| bad)?;
                continue;
            }
            for at in (0..width).step_by(PIECE) {
                let count = (width - at).min(PIECE as u64) as usize;
                memory.write(start + at, &piece[..count]).map_err(|_| bad)?;
            }
        }
        Ok(())
    }
}

/// Bytes copied at once; a multiple of every element size.
const PIECE: usize = 1 << 20;

/// Memory of the program.
fn host(address: u64) -> Ptr<u8> {
    // SAFETY: the program named the address for a copy of so many bytes, which is its promise
    // that they are there; it may break it as it may with a real driver, with the same result.
    unsafe { Ptr::new(std::ptr::with_exposed_provenance::<u8>(address as usize)) }
}

macro_rules! copies {
    ($($name:ident $asynchronous:ident: $to:ident $to_ty:ty, $from:ident $from_ty:ty;)*) => { $(
        pub(crate) fn $name(to: $to_ty, from: $from_ty, bytes: usize) -> Answer {
            let to = Side::whole(Owner::$to, address(to));
            let from = Side::whole(Owner::$from, address(from));
            submit_and_wait(line(to, from, bytes))
        }

        pub(crate) fn $asynchronous(
            to: $to_ty,
            from: $from_ty,
            bytes: usize,
            stream: Ptr<CUstream_st>,
        ) -> Answer {
            let to = Side::whole(Owner::$to, address(to));
            let from = Side::whole(Owner::$from, address(from));
            let copy = line(to, from, bytes);
            submit(stream.address(), Work::Copy(copy))
        }
    )* };
}

/// An address, given as a number or as a pointer.
trait Address {
    fn number(self) -> u64;
}

impl Address for CUdeviceptr {
    fn number(self) -> u64 {
        self
    }
}

impl Address for Ptr<c_void> {
    fn number(self) -> u64 {
        self.address()
    }
}

fn address(address: impl Address) -> u64 {
    address.number()
}

copies! {
    cuMemcpy cuMemcpyAsync: Either CUdeviceptr, Either CUdeviceptr;
    cuMemcpyHtoD cuMemcpyHtoDAsync: Device CUdeviceptr, Host Ptr<c_void>;
    cuMemcpyDtoH cuMemcpyDtoHAsync: Host Ptr<c_void>, Device CUdeviceptr;
    cuMemcpyDtoD cuMemcpyDtoDAsync: Device CUdeviceptr, Device CUdeviceptr;
}

/// The end of a copy that lies in an array, so many bytes behind its first texel.
fn in_array(array: Ptr<CUarray_st>, offset: usize, bytes: usize) -> Result<Side, CUresult> {
    let address = with_context(|state, _| {
        let array = state.arrays.get(array.address())?;
        array.run(offset as u64, bytes as u64)
    })?;
    Ok(Side::whole(Owner::Device, address))
}

pub(crate) fn cuMemcpyHtoA(
    to: Ptr<CUarray_st>,
    offset: usize,
    from: Ptr<c_void>,
    bytes: usize,
) -> Answer {
    let from = Side::whole(Owner::Host, from.address());
    submit_and_wait(line(in_array(to, offset, bytes)?, from, bytes))
}

pub(crate) fn cuMemcpyHtoAAsync(
    to: Ptr<CUarray_st>,
    offset: usize,
    from: Ptr<c_void>,
    bytes: usize,
    stream: Ptr<CUstream_st>,
) -> Answer {
    let from = Side::whole(Owner::Host, from.address());
    let copy = line(in_array(to, offset, bytes)?, from, bytes);
    submit(stream.address(), Work::Copy(copy))
}

pub(crate) fn cuMemcpyAtoH(
    to: Ptr<c_void>,
    from: Ptr<CUarray_st>,
    offset: usize,
    bytes: usize,
) -> Answer {
    let to = Side::whole(Owner::Host, to.address());
    submit_and_wait(line(to, in_array(from, offset, bytes)?, bytes))
}

pub(crate) fn cuMemcpyAtoHAsync(
    to: Ptr<c_void>,
    from: Ptr<CUarray_st>,
    offset: usize,
    bytes: usize,
    stream: Ptr<CUstream_st>,
) -> Answer {
    let to = Side::whole(Owner::Host, to.address());
    let copy = line(to, in_array(from, offset, bytes)?, bytes);
    submit(stream.address(), Work::Copy(copy))
}

pub(crate) fn cuMemcpyDtoA(
    to: Ptr<CUarray_st>,
    offset: usize,
    from: CUdeviceptr,
    bytes: usize,
) -> Answer {
    let from = Side::whole(Owner::Device, from);
    submit_and_wait(line(in_array(to, offset, bytes)?, from, bytes))
}

pub(crate) fn cuMemcpyAtoD(
    to: CUdeviceptr,
    from: Ptr<CUarray_st>,
    offset: usize,
    bytes: usize,
) -> Answer {
    let to = Side::whole(Owner::Device, to);
    submit_and_wait(line(to, in_array(from, offset, bytes)?, bytes))
}

pub(crate) fn cuMemcpyAtoA(
    to: Ptr<CUarray_st>,
    to_offset: usize,
    from: Ptr<CUarray_st>,
    from_offset: usize,
    bytes: usize,
) -> Answer {
    let to = in_array(to, to_offset, bytes)?;
    submit_and_wait(line(to, in_array(from, from_offset, bytes)?, bytes))
}

/// Fails unless there are such contexts.
fn live(contexts: [Ptr<CUctx_st>; 2]) -> Answer {
    with_context(|state, _| {
        let mut contexts = contexts.iter();
        contexts.try_for_each(|context| state.contexts.get(context.address()).map(drop))
    })
}

pub(crate) fn cuMemcpyPeer(
    to: CUdeviceptr,
    to_context: Ptr<CUctx_st>,
    from: CUdeviceptr,
    from_context: Ptr<CUctx_st>,
    bytes: usize,
) -> Answer {
    live([to_context, from_context])?;
    cuMemcpyDtoD(to, from, bytes)
}

pub(crate) fn cuMemcpyPeerAsync(
    to: CUdeviceptr,
    to_context: Ptr<CUctx_st>,
    from: CUdeviceptr,
    from_context: Ptr<CUctx_st>,
    bytes: usize,
    stream: Ptr<CUstream_st>,
) -> Answer {
    live([to_context, from_context])?;
    cuMemcpyDtoDAsync(to, from, bytes, stream)
}

/// One side of a boxed copy as C gives it: kind, host address, device address.
fn owner(kind: i32, host: u64, device: u64) -> Result<(Owner, u64), CUresult> {
    match kind {
        memory_type::HOST => Ok((Owner::Host, host)),
        memory_type::DEVICE => Ok((Owner::Device, device)),
        memory_type::UNIFIED => Ok((Owner::Either, device)),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

impl Copy {
    pub(crate) fn from_3d(c: &CUDA_MEMCPY3D) -> Result<Copy, CUresult> {
        let size = [c.width_in_bytes, c.height, c.depth].map(|size| size as u64);
        let side = |kind, host: u64, device, array, pitch: usize, rows: usize, at: [usize; 3]| {
            let at = at.map(|at| at as u64);
            if kind == memory_type::ARRAY {
                return Side::of_array(array, at, size);
            }
            let (owner, base) = owner(kind, host, device)?;
            let [x, y, z] = at;
            // A pitch or height of 0 stands for a box without gaps.
            let pitch = if pitch == 0 { c.width_in_bytes } else { pitch } as u64;
            let rows = if rows == 0 { c.height } else { rows } as u64;
            let tight = pitch < c.width_in_bytes as u64 && (c.height > 1 || c.depth > 1);
            let slice = pitch
                .checked_mul(rows)
                .filter(|_| !tight)
                .ok_or(CUresult::INVALID_VALUE)?;
            let offset = z
                .checked_mul(slice)
                .and_then(|offset| offset.checked_add(y.checked_mul(pitch)?))
                .and_then(|offset| offset.checked_add(x))
                .and_then(|offset| base.checked_add(offset));
            let address = offset.ok_or(CUresult::INVALID_VALUE)?;
            Ok::<_, CUresult>(Side {
                owner,
                address,
                pitch,
                slice,
            })
        };
        let from = [c.src_x_in_bytes, c.src_y, c.src_z];
        let to = [c.dst_x_in_bytes, c.dst_y, c.dst_z];
        let source = c.src_host.expose_provenance() as u64;
        let target = c.dst_host.expose_provenance() as u64;
        Ok(Copy {
            from: side(
                c.src_memory_type,
                source,
                c.src_device,
                c.src_array.addr() as u64,
                c.src_pitch,
                c.src_height,
                from,
            )?,
            to: side(
                c.dst_memory_type,
                target,
                c.dst_device,
                c.dst_array.addr() as u64,
                c.dst_pitch,
                c.dst_height,
                to,
            )?,
            width: c.width_in_bytes as u64,
            height: c.height as u64,
            depth: c.depth as u64,
        })
    }

    /// The copy as a program would describe it; an array is told by where its texels are.
    pub(crate) fn to_3d(self) -> CUDA_MEMCPY3D {
        let kind = |side: &Side| match side.owner {
            Owner::Host => memory_type::HOST,
            Owner::Device => memory_type::DEVICE,
            Owner::Either => memory_type::UNIFIED,
        };
        let host = |side: &Side| match side.owner {
            Owner::Host => std::ptr::with_exposed_provenance_mut(side.address as usize),
            Owner::Device | Owner::Either => std::ptr::null_mut::<c_void>(),
        };
        let device = |side: &Side| match side.owner {
            Owner::Host => 0,
            Owner::Device | Owner::Either => side.address,
        };
        let rows = |side: &Side| side.slice.checked_div(side.pitch).unwrap_or(0) as usize;
        CUDA_MEMCPY3D {
            src_memory_type: kind(&self.from),
            src_host: host(&self.from),
            src_device: device(&self.from),
            src_pitch: self.from.pitch as usize,
            src_height: rows(&self.from),
            dst_memory_type: kind(&self.to),
            dst_host: host(&self.to),
            dst_device: device(&self.to),
            dst_pitch: self.to.pitch as usize,
            dst_height: rows(&self.to),
            width_in_bytes: self.width as usize,
            height: self.height as usize,
            depth: self.depth as usize,
            ..CUDA_MEMCPY3D::default()
        }
    }

    fn from_2d(c: &CUDA_MEMCPY2D) -> Result<Copy, CUresult> {
        Copy::from_3d(&CUDA_MEMCPY3D {
            src_x_in_bytes: c.src_x_in_bytes,
            src_y: c.src_y,
            src_memory_type: c.src_memory_type,
            src_host: c.src_host,
            src_device: c.src_device,
            src_array: c.src_array,
            src_pitch: c.src_pitch,
            dst_x_in_bytes: c.dst_x_in_bytes,
            dst_y: c.dst_y,
            dst_memory_type: c.dst_memory_type,
            dst_host: c.dst_host,
            dst_device: c.dst_device,
            dst_array: c.dst_array,
            dst_pitch: c.dst_pitch,
            width_in_bytes: c.width_in_bytes,
            height: c.height,
            depth: 1,
            ..CUDA_MEMCPY3D::default()
        })
    }
}

pub(crate) fn cuMemcpy2D(copy: Ptr<CUDA_MEMCPY2D>) -> Answer {
    submit_and_wait(Copy::from_2d(&copy.get()?)?)
}

pub(crate) fn cuMemcpy2DUnaligned(copy: Ptr<CUDA_MEMCPY2D>) -> Answer {
    cuMemcpy2D(copy)
}

pub(crate) fn cuMemcpy2DAsync(copy: Ptr<CUDA_MEMCPY2D>, stream: Ptr<CUstream_st>) -> Answer {
    submit(stream.address(), Work::Copy(Copy::from_2d(&copy.get()?)?))
}

pub(crate) fn cuMemcpy3D(copy: Ptr<CUDA_MEMCPY3D>) -> Answer {
    submit_and_wait(Copy::from_3d(&copy.get()?)?)
}

pub(crate) fn cuMemcpy3DAsync(copy: Ptr<CUDA_MEMCPY3D>, stream: Ptr<CUstream_st>) -> Answer {
    submit(stream.address(), Work::Copy(Copy::from_3d(&copy.get()?)?))
}

impl Fill {
    /// What a node of a graph is given.
    pub(crate) fn of_node(p: &CUDA_MEMSET_NODE_PARAMS) -> Result<Fill, CUresult> {
        Fill::rows(p.dst, p.pitch, p.value, p.element_size, p.width, p.height)
    }

    /// As [`Fill::of_node`], back.
    pub(crate) fn to_node(self) -> CUDA_MEMSET_NODE_PARAMS {
        CUDA_MEMSET_NODE_PARAMS {
            dst: self.address,
            pitch: self.pitch as usize,
            value: self.value,
            element_size: self.element as c_uint,
            width: self.width as usize,
            height: self.height as usize,
        }
    }

    /// A fill of rows; `element` is 1, 2 or 4 bytes.
    pub(crate) fn rows(
        address: u64,
        pitch: usize,
        value: u32,
        element: c_uint,
        width: usize,
        height: usize,
    ) -> Result<Fill, CUresult> {
        if !matches!(element, 1 | 2 | 4) {
            return Err(CUresult::INVALID_VALUE);
        }
        Ok(Fill {
            address,
            pitch: pitch as u64,
            value,
            element: u64::from(element),
            width: width as u64,
            height: height as u64,
        })
    }
}

macro_rules! fills {
    ($($line:ident $line_async:ident $rows:ident $rows_async:ident: $ty:ty, $bytes:literal;)*) => { $(
        pub(crate) fn $line(to: CUdeviceptr, value: $ty, count: usize) -> Answer {
            fill_and_wait(Fill::rows(to, 0, u32::from(value), $bytes, count, 1)?)
        }

        pub(crate) fn $line_async(
            to: CUdeviceptr,
            value: $ty,
            count: usize,
            stream: Ptr<CUstream_st>,
        ) -> Answer {
            let fill = Fill::rows(to, 0, u32::from(value), $bytes, count, 1)?;
            submit(stream.address(), Work::Fill(fill))
        }

        pub(crate) fn $rows(
            to: CUdeviceptr,
            pitch: usize,
            value: $ty,
            width: usize,
            height: usize,
        ) -> Answer {
            fill_and_wait(Fill::rows(to, pitch, u32::from(value), $bytes, width, height)?)
        }

        pub(crate) fn $rows_async(
            to: CUdeviceptr,
            pitch: usize,
            value: $ty,
            width: usize,
            height: usize,
            stream: Ptr<CUstream_st>,
        ) -> Answer {
            let fill = Fill::rows(to, pitch, u32::from(value), $bytes, width, height)?;
            submit(stream.address(), Work::Fill(fill))
        }
    )* };
}

fills! {
    cuMemsetD8 cuMemsetD8Async cuMemsetD2D8 cuMemsetD2D8Async: u8, 1;
    cuMemsetD16 cuMemsetD16Async cuMemsetD2D16 cuMemsetD2D16Async: u16, 2;
    cuMemsetD32 cuMemsetD32Async cuMemsetD2D32 cuMemsetD2D32Async: c_uint, 4;
}
