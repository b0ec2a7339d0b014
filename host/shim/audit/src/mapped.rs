//! Room that stays until the process ends, from the system itself: this library allocates nothing.

use std::ffi::c_void;
use std::marker::PhantomData;

/// Room for so many values, zeroed.
pub(crate) struct Mapped<T> {
    start: *mut T,
    room: usize,
    count: usize,
    of: PhantomData<T>,
}

/// What zero bytes are a value of.
pub(crate) trait Zeroed: Copy + 'static {}
impl Zeroed for u8 {}
impl Zeroed for *const std::ffi::c_char {}

impl<T: Zeroed> Mapped<T> {
    pub(crate) fn new(room: usize) -> Option<Self> {
        let bytes = room.checked_mul(size_of::<T>())?;
        // SAFETY: new memory at a place of the system's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (start != libc::MAP_FAILED).then_some(Self {
            start: start.cast::<c_void>().cast(),
            room,
            count: 0,
            of: PhantomData,
        })
    }

    /// Adds a value, if there is room.
    pub(crate) fn push(&mut self, value: T) {
        if self.count < self.room {
            // SAFETY: the place lies in the room.
            unsafe { self.start.add(self.count).write(value) };
            self.count += 1;
        }
    }

    /// Its first value; behind those that were added come zeroes, where there is room.
    pub(crate) fn finish(self) -> *const T {
        self.start
    }

    /// All of it.
    pub(crate) fn all(self) -> &'static [T] {
        // SAFETY: zeroes are values, and nothing takes the room back.
        unsafe { std::slice::from_raw_parts(self.start, self.room) }
    }
}
