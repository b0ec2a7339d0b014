//! From where the program launches: the calls on the host that a launch is made in.
//!
//! The same few places launch again and again, so the log has each list of calls once, and launches name it by number.
//! The log has addresses as offsets in files, and the command looks up their source: debug information may be large, and
//! reading it here would take memory of the checked program.

use std::cell::RefCell;
use std::collections::HashMap;

use os::{python, unwind};

use crate::log::{Event, HostCall, HostFrame};

/// Calls that are looked at, those inside of our own libraries included.
const MOST: usize = 64;
/// Those under Python, whose interpreter makes many for each line.
const MOST_UNDER_PYTHON: usize = 16;
/// Lines of Python that are looked at.
const MOST_LINES: usize = 32;
/// Different lists of calls that are kept; a program that recurses may have any number.
const MOST_LISTS: usize = 4096;

thread_local! {
    /// The lines of Python that the next launch of the thread is made in.
    static PYTHON: RefCell<Vec<python::Line>> = const { RefCell::new(Vec::new()) };
}

/// Asks for the lines of Python that the calling thread executes, for the launch that it makes next.
///
/// It may wait for Python's lock: the caller must hold nothing that another thread of the program may wait for.
pub fn ask_python() {
    PYTHON.set(python::lines(MOST_LINES));
}

/// The lists of calls that are known, by their addresses and the lines of Python.
#[derive(Debug, Default)]
pub(crate) struct HostCalls {
    known: HashMap<(Vec<u64>, Vec<python::Line>), u32>,
}

impl HostCalls {
    /// The number of the list that the calling thread is in; 0 if it is not kept. With what to write down if it is new.
    pub(crate) fn here(&mut self) -> (u32, Option<Event>) {
        // There are none where the thread, or the process, comes to its end.
        let lines = PYTHON.try_with(RefCell::take).unwrap_or_default();
        let callers = unwind::callers(match lines.is_empty() {
            true => MOST,
            false => MOST_UNDER_PYTHON,
        });
        let all = (callers, lines);
        if let Some(&known) = self.known.get(&all) {
            return (known, None);
        }
        if self.known.len() == MOST_LISTS {
            return (0, None);
        }
        let number = self.known.len() as u32 + 1;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let calls = calls(&all.0, &maps);
        let python = all.1.iter().map(|of| HostFrame {
            file: of.file.clone(),
            line: of.line,
            function: of.function.clone(),
        });
        let python = python.collect();
        self.known.insert(all, number);
        let event = Event::HostCalls {
            number,
            calls,
            python,
        };
        (number, Some(event))
    }
}

/// Where the addresses lie in files, without those of the innermost file, which is ours.
fn calls(callers: &[u64], maps: &str) -> Vec<HostCall> {
    let mapped: Vec<Mapped<'_>> = maps.lines().filter_map(mapped).collect();
    let calls = callers.iter().filter_map(|&address| {
        let at = mapped
            .iter()
            .find(|at| (at.start..at.end).contains(&address))?;
        Some(HostCall {
            file: at.file.to_owned(),
            offset: address - at.start + at.offset,
        })
    });
    let calls: Vec<HostCall> = calls.collect();
    let own = calls.first().map(|call| call.file.clone());
    let outside = calls
        .iter()
        .position(|call| Some(&call.file) != own.as_ref());
    calls[outside.unwrap_or(calls.len())..].to_vec()
}

/// A part of a file in memory.
struct Mapped<'a> {
    start: u64,
    end: u64,
    offset: u64,
    file: &'a str,
}

/// Reads `55d0-55d4 r-xp 00002000 fd:00 1234   /usr/bin/app`.
fn mapped(line: &str) -> Option<Mapped<'_>> {
    let mut rest = line;
    let mut words = [""; 5];
    for word in &mut words {
        (*word, rest) = rest.split_once(' ')?;
    }
    let (start, end) = words[0].split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let file = rest.trim_start();
    file.starts_with('/').then_some(Mapped {
        start: number(start)?,
        end: number(end)?,
        offset: number(words[2])?,
        file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_offsets_in_files_outside_of_our_own() {
        let maps = "1000-2000 r-xp 00000000 fd:00 7                  /lib/libcuda.so.1\n\
                    2000-3000 rw-p 00000000 00:00 0 \n\
                    3000-5000 r-xp 00001000 fd:00 8                  /a folder/app\n";
        let found = calls(&[0x1010, 0x1020, 0x3004, 0x2100, 0x1030, 0x9000], maps);
        let expected = [("/a folder/app", 0x1004), ("/lib/libcuda.so.1", 0x30)];
        let found: Vec<_> = found
            .iter()
            .map(|of| (of.file.as_str(), of.offset))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_place_is_written_down_once() {
        let mut calls = HostCalls::default();
        let mut recorded = Vec::new();
        // One call in the code, however it is compiled.
        for _ in 0..std::hint::black_box(3) {
            recorded.push(calls.here());
        }
        assert!(recorded.iter().all(|(number, _)| *number == 1));
        assert_eq!(
            recorded.iter().filter(|(_, event)| event.is_some()).count(),
            1
        );
        assert_eq!(calls.here().0, 2);
    }
}
