//! Pointers that a program hands to an entry point.
//!
//! They are wrapped once, at the border: whoever holds a [`Ptr`] may rely on the promise that the
//! C documentation of the call makes about it, so that the rest of a shim needs little `unsafe`.

use std::ffi::{CStr, c_char, c_void};

use crate::sys::{self, CUresult, launch_param};

/// What an entry point answers: success, or a code.
pub type Answer = Result<(), CUresult>;

/// A pointer from outside: null, or valid for what the C API says about it.
#[derive(Debug)]
pub struct Ptr<T>(*mut T);

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> Ptr<T> {
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The pointer is null or valid, for as long and as far as the call's documentation says.
    pub unsafe fn new(raw: *const T) -> Ptr<T> {
        Ptr(raw.cast_mut())
    }

    /// No pointer.
    pub const NULL: Ptr<T> = Ptr(std::ptr::null_mut());

    /// Whether there is none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address, which for a handle is its number.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// The same address, for another type.
    pub fn cast<U>(self) -> Ptr<U> {
        Ptr(self.0.cast())
    }

    /// Stores a result; null is `CUDA_ERROR_INVALID_VALUE`.
    pub fn set(self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: non-null, so it points to room for a T by the promise to `new`. Programs are
        // not held to alignment, which real drivers do not check either.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores a result that the program may not want.
    pub fn set_if(self, value: T) {
        if !self.0.is_null() {
            let _ = self.set(value);
        }
    }

    /// Reads a value; null is `CUDA_ERROR_INVALID_VALUE`.
    pub fn get(self) -> Result<T, CUresult>
    where
        T: Copy,
    {
        if self.0.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: as in `set`.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The element `index` of an array whose length the call says.
    pub fn at(self, index: usize) -> Ptr<T> {
        match self.0.is_null() {
            true => self,
            false => Ptr(self.0.wrapping_add(index)),
        }
    }

    /// `bytes` bytes of memory, copied.
    pub fn bytes(self, bytes: usize) -> Result<Vec<u8>, CUresult> {
        let mut copy = vec![0; bytes];
        self.read(&mut copy)?;
        Ok(copy)
    }

    /// Fills `into` from the memory.
    pub fn read(self, into: &mut [u8]) -> Answer {
        if into.is_empty() {
            return Ok(());
        }
        if self.0.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: the call's documentation promises so many readable bytes; the destination is
        // ours, so they cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.0.cast(), into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Writes `from` to the memory.
    pub fn write(self, from: &[u8]) -> Answer {
        if from.is_empty() {
            return Ok(());
        }
        if self.0.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: as in `read`, for writable bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.0.cast(), from.len()) };
        Ok(())
    }
}

impl<T> Ptr<*mut T> {
    /// Follows a pointer to a pointer.
    pub fn follow(self) -> Result<Ptr<T>, CUresult> {
        // The promise to `new` covers what the documentation says about the inner pointer.
        self.get().map(Ptr)
    }
}

impl Ptr<*mut c_void> {
    /// Reads the parameter block that the argument `extra` of a launch describes, as a list of
    /// tags and pointers.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` when it makes no sense.
    pub fn launch_buffer(self) -> Result<Vec<u8>, CUresult> {
        let (mut block, mut bytes) = (None, None);
        for index in (0..).step_by(2) {
            let tag = self.at(index).follow()?.address() as usize;
            match tag {
                launch_param::END => break,
                launch_param::BUFFER_POINTER => block = Some(self.at(index + 1).follow()?),
                launch_param::BUFFER_SIZE => {
                    bytes = Some(self.at(index + 1).follow()?.cast::<usize>().get()?);
                }
                _ => return Err(CUresult::INVALID_VALUE),
            }
        }
        match (block, bytes) {
            (Some(block), Some(bytes)) if bytes <= 1 << 16 => block.bytes(bytes),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }
}

impl Ptr<c_char> {
    /// A string that ends in a zero byte.
    pub fn text(self) -> Result<String, CUresult> {
        if self.0.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: the call's documentation promises a string.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// Stores a string in a buffer of `room` bytes, cut to fit, always ended.
    pub fn set_text(self, text: &str, room: usize) -> Answer {
        let Some(most) = room.checked_sub(1) else {
            return Err(CUresult::INVALID_VALUE);
        };
        let cut = &text.as_bytes()[..text.len().min(most)];
        self.write(cut)?;
        self.at(cut.len()).set(0)
    }
}

/// Turns an argument as C passes it into one that is safe to hold.
pub trait FromC {
    /// What the implementation of the entry point gets.
    type Safe;
    /// Wraps an argument.
    ///
    /// # Safety
    /// The argument keeps the promises of the C documentation of the call it comes from.
    unsafe fn make_safe(self) -> Self::Safe;
}

impl<T> FromC for *mut T {
    type Safe = Ptr<T>;
    unsafe fn make_safe(self) -> Ptr<T> {
        // SAFETY: the same promise.
        unsafe { Ptr::new(self) }
    }
}

impl<T> FromC for *const T {
    type Safe = Ptr<T>;
    unsafe fn make_safe(self) -> Ptr<T> {
        // SAFETY: the same promise.
        unsafe { Ptr::new(self) }
    }
}

macro_rules! plain {
    ($($ty:ty),*) => { $(
        impl FromC for $ty {
            type Safe = $ty;
            unsafe fn make_safe(self) -> $ty {
                self
            }
        }
    )* };
}

plain!(
    u8,
    u16,
    u32,
    i32,
    u64,
    usize,
    f32,
    CUresult,
    sys::CUmemLocation,
    sys::CUstreamCallback,
    sys::CUhostFn,
    sys::CUoccupancyB2DSize
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_an_error_and_text_is_cut_to_its_buffer() {
        // SAFETY: null is allowed.
        let null = unsafe { Ptr::<u32>::new(std::ptr::null()) };
        assert_eq!(null.set(1), Err(CUresult::INVALID_VALUE));
        assert_eq!(null.get(), Err(CUresult::INVALID_VALUE));
        null.set_if(1);
        assert!(null.at(3).is_null());
        let mut buffer = [1u8; 5];
        // SAFETY: the buffer has five bytes.
        let pointer = unsafe { Ptr::<c_char>::new(buffer.as_mut_ptr().cast()) };
        assert_eq!(pointer.set_text("abcdef", 5), Ok(()));
        assert_eq!(&buffer, b"abcd\0");
        assert_eq!(pointer.text(), Ok("abcd".to_owned()));
        assert_eq!(pointer.set_text("", 0), Err(CUresult::INVALID_VALUE));
    }
}
