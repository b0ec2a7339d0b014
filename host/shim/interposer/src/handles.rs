//! Memory that has no address yet (`cuMemCreate`): which handles are of the same.

use std::collections::HashMap;

/// The handles that the program holds.
///
/// The driver may give a handle again once it has been released, while its memory stays mapped. So each memory has a
/// number of ours.
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
    /// The program has got a handle: of `memory`, or of one that was not seen before.
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

    /// The memory of a handle. One that nobody has seen is imported.
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
