//! Handles of memory that programs map themselves (`cuMemCreate`).

use std::collections::HashMap;

/// The handles that the program holds.
///
/// A driver may reuse the number of a released handle while the memory of that handle is still mapped. So each memory has
/// a number of its own here.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    held: HashMap<u64, Held>,
    made: u64,
}

#[derive(Debug)]
struct Held {
    memory: u64,
    references: u64,
}

impl Handles {
    /// The program has received a handle of `memory`, or of new memory.
    pub(crate) fn got(&mut self, handle: u64, memory: Option<u64>) {
        let made = &mut self.made;
        let held = self.held.entry(handle).or_insert_with(|| Held {
            memory: memory.unwrap_or_else(|| {
                *made += 1;
                *made
            }),
            references: 0,
        });
        held.references += 1;
    }

    pub(crate) fn released(&mut self, handle: u64) {
        if let Some(held) = self.held.get_mut(&handle) {
            held.references -= 1;
            if held.references == 0 {
                self.held.remove(&handle);
            }
        }
    }

    /// The memory of a handle. A handle that is not known here was imported by the program.
    pub(crate) fn memory(&mut self, handle: u64) -> Option<u64> {
        if !self.held.contains_key(&handle) {
            self.got(handle, None);
        }
        self.held.get(&handle).map(|held| held.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_is_given_again_is_of_other_memory() {
        let mut handles = Handles::default();
        handles.got(9, None);
        let first = handles.memory(9);
        handles.got(9, first);
        handles.released(9);
        assert_eq!(handles.memory(9), first, "one reference is left");
        handles.released(9);
        handles.got(9, None);
        assert_ne!(handles.memory(9), first);
        handles.got(5, first);
        assert_eq!(handles.memory(5), first, "a new handle of mapped memory");
        assert_eq!(handles.memory(4), handles.memory(4));
    }
}
