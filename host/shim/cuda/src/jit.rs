//! Options of the driver's compiler and linker (`CUjit_option`), and what they let a program read.

use std::ffi::{c_char, c_int, c_void};
use std::time::Instant;

use driver::sys::{CUresult, jit_option};

use crate::pointer::Ptr;

/// Options whose values the driver writes, into the array of values.
const RESULTS: [c_int; 3] = [
    jit_option::WALL_TIME,
    jit_option::INFO_LOG_BUFFER_SIZE_BYTES,
    jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
];

/// A buffer for text of the compiler; addresses, because a link outlives the call that names it.
#[derive(Clone, Copy, Debug, Default)]
struct Log {
    address: u64,
    room: usize,
}

impl Log {
    /// Writes text, as far as there is room; how much of it.
    fn write(self, text: &str) -> usize {
        if self.address == 0 || self.room == 0 {
            return 0;
        }
        // SAFETY: the program has given the buffer for this, and keeps it until the load, or the link, is over.
        let buffer: Ptr<c_char> = unsafe { at(self.address) };
        let _ = buffer.set_text(text, self.room);
        text.len().min(self.room - 1)
    }
}

/// # Safety
/// As for [`Ptr::new`].
unsafe fn at<T>(address: u64) -> Ptr<T> {
    // SAFETY: by the contract.
    unsafe { Ptr::new(std::ptr::with_exposed_provenance::<T>(address as usize)) }
}

/// What a load or a link is asked for besides the code.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Where the program wants to read how much there is to read, or how long it took.
    results: Vec<(c_int, u64)>,
    /// The buffer in which it wants to read why its PTX was refused.
    errors: Log,
    /// That for everything else. There is nothing else to say: nothing is compiled.
    information: Log,
    /// Registers that a thread may have at most.
    max_registers: Option<u32>,
    /// Nothing is to be optimised.
    plainly: bool,
    started: Instant,
}

/// What the options of a load make of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiled {
    /// Threads that a block may have.
    pub(crate) most_threads: u32,
    /// Nothing is optimised.
    pub(crate) plainly: bool,
}

impl Options {
    /// What the load makes of its module.
    ///
    /// `CUDARUN_SIM_REGISTERS` says how many registers each thread needs unless the load says less; without it,
    /// there are always enough. A block has 65,536.
    pub(crate) fn compiled(&self) -> Compiled {
        let needed = std::env::var("CUDARUN_SIM_REGISTERS").ok();
        let needed = needed.and_then(|text| text.parse::<u32>().ok());
        let needed = needed.map(|n| n.min(self.max_registers.unwrap_or(n)).max(1));
        Compiled {
            most_threads: needed.map_or(u32::MAX, |n| (1 << 16) / n / 32 * 32),
            plainly: self.plainly,
        }
    }

    /// Nothing is asked for.
    pub(crate) fn none() -> Options {
        Options {
            results: Vec::new(),
            errors: Log::default(),
            information: Log::default(),
            max_registers: None,
            plainly: false,
            started: Instant::now(),
        }
    }

    /// Reads the options of a load or a link. As long as there is nothing to tell, logs are empty.
    pub(crate) fn new(
        count: usize,
        options: Ptr<c_int>,
        values: Ptr<*mut c_void>,
    ) -> Result<Options, CUresult> {
        let mut read = Options::none();
        if count > 0 && (options.is_null() || values.is_null()) {
            return Err(CUresult::INVALID_VALUE);
        }
        for index in 0..count {
            let value = values.at(index).follow()?.address();
            let option = options.at(index).get()?;
            if RESULTS.contains(&option) {
                read.results.push((option, values.at(index).address()));
            }
            match option {
                jit_option::MAX_REGISTERS => read.max_registers = Some(value as u32),
                jit_option::OPTIMIZATION_LEVEL => read.plainly = value as u32 == 0,
                jit_option::INFO_LOG_BUFFER => read.information.address = value,
                jit_option::ERROR_LOG_BUFFER => read.errors.address = value,
                // The values of these options are no pointers to the size but the size itself.
                jit_option::INFO_LOG_BUFFER_SIZE_BYTES => {
                    read.information.room = value as u32 as usize;
                }
                jit_option::ERROR_LOG_BUFFER_SIZE_BYTES => read.errors.room = value as u32 as usize,
                _ => {}
            }
        }
        read.write_logs("");
        Ok(read)
    }

    /// Writes down what there is to read by now: the reason of a refusal, or nothing, and how long it took.
    pub(crate) fn write_logs(&self, refusal: &str) {
        let (information, errors) = (self.information.write(""), self.errors.write(refusal));
        let milliseconds = self.started.elapsed().as_secs_f32() * 1e3;
        for &(option, result) in &self.results {
            let value = match option {
                jit_option::ERROR_LOG_BUFFER_SIZE_BYTES => errors,
                jit_option::WALL_TIME => milliseconds.to_bits() as usize,
                _ => information,
            };
            // SAFETY: as for the buffers; the values are no pointers.
            let result: Ptr<*mut c_void> = unsafe { at(result) };
            result.set_if(std::ptr::without_provenance_mut(value));
        }
    }
}
