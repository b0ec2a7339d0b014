//! The source of the calls that launches are made in, from the debug information of the program; under Python, from its
//! interpreter.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use addr2line::Loader;
use object::{Object, ObjectSegment, ReadCache};
use report::Log;
use report::log::{Event, HostCall, HostFrame};
use report::names::{base, demangle, is_called};

/// Calls of a launch that are reported.
const MOST: usize = 16;
/// Part of the names of functions that nvcc makes to launch a kernel.
const STUB: &str = "__device_stub_";
/// Parts of the paths where nvcc's functions to launch kernels, and those of the runtime, have their source.
const OF_RUNTIME: [&str; 3] = [".cudafe1.stub.c", "/cuda_runtime.h", "/include/crt/"];

/// A call, with the linker's name of its function.
type Named = (HostFrame, String);

/// Fills in the source of all launches, and of calls that race, as far as the program was compiled with `-g`; calls inside
/// of our `libraries` are left out.
pub(crate) fn fill(logs: &mut [Log], libraries: &Path) {
    let mut programs = HashMap::new();
    for log in logs {
        let mut known: HashMap<u32, Vec<Named>> = HashMap::new();
        for event in &mut log.events {
            match event {
                Event::HostCalls {
                    number,
                    calls,
                    python,
                } => {
                    let outside = calls.iter().filter(|of| !is_ours(&of.file, libraries));
                    // What the interpreter does says nothing of the program.
                    let under = !python.is_empty();
                    let outside = outside.take_while(|of| !(under && is_interpreter(&of.file)));
                    let outside = outside.filter(|of| !(under && is_of_library(&of.file)));
                    let frames = outside.flat_map(|call| {
                        let program = programs.entry(call.file.clone());
                        let program = program.or_insert_with(|| Program::open(&call.file));
                        program.as_ref().map_or(Vec::new(), |of| of.frames(call))
                    });
                    let mut frames: Vec<Named> = frames.collect();
                    frames.extend(own_lines(python).map(|of| (of.clone(), String::new())));
                    known.insert(*number, frames);
                }
                Event::Launch(launch) => {
                    if let Some(frames) = known.get(&launch.host_calls) {
                        launch.host_stack = stack(frames, Some(&launch.kernel));
                    }
                }
                Event::Race(race) => {
                    for work in &mut race.work {
                        if let Some(frames) = known.get(&work.host_calls) {
                            work.host_stack = stack(frames, None);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a file is Python's interpreter.
fn is_interpreter(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.starts_with("python") || name.starts_with("libpython")
}

/// Whether a file belongs to Python or to a package, and not to the program.
fn is_of_library(file: &str) -> bool {
    ["/site-packages/", "/dist-packages/", "/lib/python"]
        .iter()
        .any(|part| file.contains(part))
        || file.starts_with('<')
}

/// The lines of Python without those of packages that the innermost ones are in.
fn own_lines(lines: &[HostFrame]) -> impl Iterator<Item = &HostFrame> {
    let own = lines.iter().position(|of| !is_of_library(&of.file));
    lines[own.unwrap_or(0)..].iter()
}

/// Whether a file is one of our libraries.
fn is_ours(file: &str, libraries: &Path) -> bool {
    file.contains(".so") && Path::new(file).starts_with(libraries)
}

/// Whether a function of the host bears a kernel's name: nvcc makes one for each, which launches it. Debug information has
/// no linker's name of functions that are known in one file only, and leaves out what they are in.
fn is_kernel(symbol: &str, kernel: &str) -> bool {
    if symbol.starts_with("_Z") {
        return symbol == kernel;
    }
    let demangled = demangle(kernel);
    let name = base(&demangled);
    let within = name
        .rsplit_once("::")
        .map(|(within, _)| format!("{within}::{symbol}"));
    is_called(kernel, symbol) || within.is_some_and(|name| is_called(kernel, &name))
}

/// The calls without those that every launch of a kernel has, and without those in headers of the runtime.
fn stack(frames: &[Named], kernel: Option<&str>) -> Vec<HostFrame> {
    let launches = |(frame, symbol): &&Named| {
        kernel.is_some_and(|kernel| is_kernel(symbol, kernel))
            || symbol.contains(STUB)
            || OF_RUNTIME.iter().any(|part| frame.file.contains(part))
    };
    let own = frames.iter().skip_while(launches);
    own.take(MOST).map(|(frame, _)| frame.clone()).collect()
}

/// A program or library with debug information.
struct Program {
    debug: Loader,
    /// Offsets in the file, and the address that the first of them is loaded at.
    segments: Vec<(std::ops::Range<u64>, u64)>,
}

impl Program {
    /// None for a file that is gone or is no program.
    fn open(path: &str) -> Option<Self> {
        let file = ReadCache::new(File::open(path).ok()?);
        let object = object::File::parse(&file).ok()?;
        let segments = object.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset..offset.saturating_add(bytes), segment.address())
        });
        Some(Self {
            segments: segments.collect(),
            debug: Loader::new(path).ok()?,
        })
    }

    /// The call, and those that are inlined around it, innermost first; none without debug information.
    fn frames(&self, call: &HostCall) -> Vec<Named> {
        let mut within = self.segments.iter();
        let segment = within.find(|(offsets, _)| offsets.contains(&call.offset));
        let address = segment.map(|(offsets, at)| at.wrapping_add(call.offset - offsets.start));
        let found = address.and_then(|address| self.debug.find_frames(address).ok());
        let mut frames = Vec::new();
        let Some(mut found) = found else {
            return frames;
        };
        // What cannot be read ends the list.
        while let Ok(Some(frame)) = found.next() {
            let symbol = frame
                .function
                .and_then(|of| Some(of.raw_name().ok()?.into_owned()));
            let place = frame.location.and_then(|of| Some((of.file?, of.line?)));
            if let (Some(symbol), Some((file, line))) = (symbol, place)
                && line > 0
            {
                let demangled = demangle(&symbol);
                let frame = HostFrame {
                    file: file.to_owned(),
                    line,
                    function: base(&demangled).into_owned(),
                };
                frames.push((frame, symbol));
            }
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_own_lines_of_python_come_first() {
        let frame = |file: &str| HostFrame {
            file: file.to_owned(),
            line: 1,
            function: "f".to_owned(),
        };
        let lines = [
            "/v/lib/python3.11/site-packages/numba/dispatcher.py",
            "<frozen importlib>",
            "app.py",
            "/usr/lib/python3/dist-packages/pytest.py",
        ]
        .map(frame);
        let own: Vec<_> = own_lines(&lines).map(|of| of.file.as_str()).collect();
        assert_eq!(own, ["app.py", "/usr/lib/python3/dist-packages/pytest.py"]);
        assert_eq!(own_lines(&lines[..1]).count(), 1);
        assert!(
            is_interpreter("/usr/bin/python3.11")
                && is_interpreter("/usr/lib/libpython3.12.so.1.0")
        );
        assert!(!is_interpreter("/opt/python/app"));
    }

    #[test]
    fn what_nvcc_puts_around_a_launch_is_left_out() {
        let named = |file: &str, symbol: &str| {
            let (file, function) = (file.to_owned(), symbol.to_owned());
            let frame = HostFrame {
                file,
                line: 1,
                function,
            };
            (frame, symbol.to_owned())
        };
        let frames = [
            named("/usr/include/cuda_runtime.h", "_ZL16cudaLaunchKernelIcE"),
            named(
                "/usr/include/crt/device_functions.h",
                "__cudaLaunchKernel_helper",
            ),
            named("/tmp/app.cudafe1.stub.c", "_ZL24__device_stub__Z5countPiPi"),
            // Of the instance of a template, at the line of its declaration.
            named("app.cu", "_Z28__wrapper__device_stub_countRPi"),
            named("app.cu", "_Z5countPi"),
            named("app.cu", "main"),
            named("/usr/include/cuda_runtime.h", "other"),
        ];
        let shown = |kernel: &str| {
            let stack = stack(&frames, Some(kernel)).into_iter();
            stack.map(|frame| frame.function).collect::<Vec<_>>()
        };
        assert_eq!(shown("_Z5countPi"), ["main", "other"]);
        // Templates, and what is in a namespace.
        assert!(is_kernel("k<float, 16>", "_Z1kIfLi16EEvPf"));
        assert!(is_kernel("k<float>", "_ZN2ns1kIfEEvPT_"));
        assert!(is_kernel("k", "_ZN2ns1kEv") && is_kernel("k", "k"));
        assert!(!is_kernel("k<double, 16>", "_Z1kIfLi16EEvPf"));
        assert!(!is_kernel("_Z1kv", "_ZN2ns1kEv") && !is_kernel("main", "_Z1kv"));
        assert_eq!(shown("_Z4scanPi"), ["_Z5countPi", "main", "other"]);
    }
}
