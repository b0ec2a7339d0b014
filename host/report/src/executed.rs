//! How many accesses threads have made, by what is known of them.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::words::{counted, number};

/// Accesses of single threads to memory that threads share, as the simulated device counts them: an instruction counts
/// for each thread as often as the thread executes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// To global memory, by generic addresses too.
    pub global: Tally,
    /// To shared memory.
    pub shared: Tally,
}

/// Accesses by what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Proved: no thread writes the bytes.
    pub read_only: u64,
    /// Proved: no other thread accesses the bytes.
    pub private: u64,
    /// Proved: barriers order all conflicting accesses.
    pub barriers: u64,
    /// Proved: all conflicting accesses are atomics that include each other.
    pub atomic: u64,
    /// Not proved, and checked.
    pub checked: u64,
    /// Neither proved nor checked.
    pub unchecked: u64,
    /// Not checked any more: of the races that are not excluded, earlier launches have shown all.
    #[serde(default)]
    pub known: u64,
}

impl Tally {
    pub(crate) fn proved(&self) -> u64 {
        self.read_only + self.private + self.barriers + self.atomic
    }

    fn total(&self) -> u64 {
        self.proved() + self.checked + self.unchecked + self.known
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.read_only += other.read_only;
        self.private += other.private;
        self.barriers += other.barriers;
        self.atomic += other.atomic;
        self.checked += other.checked;
        self.unchecked += other.unchecked;
        self.known += other.known;
    }
}

impl AddAssign for Executed {
    fn add_assign(&mut self, other: Self) {
        self.global += other.global;
        self.shared += other.shared;
    }
}

impl Executed {
    /// Adds the accesses of a launch, if they are known.
    pub(crate) fn add(known: &mut Option<Self>, launch: Option<Self>) {
        if let Some(launch) = launch {
            *known.get_or_insert_default() += launch;
        }
    }

    /// For COVERAGE. None where there are no accesses.
    pub(crate) fn text(&self) -> Option<String> {
        let mut all = self.global;
        all += self.shared;
        let total = all.total();
        let arguments = [
            (all.read_only, "read-only"),
            (all.private, "private"),
            (all.barriers, "ordered by barriers"),
            (all.atomic, "atomic"),
        ];
        let arguments = arguments.iter().filter(|(count, _)| *count > 0);
        let arguments: Vec<String> = arguments
            .map(|(count, what)| format!("{} {what}", number(*count)))
            .collect();
        let proved = match all.proved() {
            0 => String::new(),
            of => format!("{} proved ({})", number(of), arguments.join(", ")),
        };
        let rest = [
            (all.checked, "checked"),
            (all.unchecked, "not checked"),
            (all.known, "not checked any more, as their races are known"),
        ];
        let rest = rest.iter().filter(|(count, _)| *count > 0);
        let rest = rest.map(|(count, what)| format!("{} {what}", number(*count)));
        let parts: Vec<String> = [proved]
            .into_iter()
            .filter(|part| !part.is_empty())
            .chain(rest)
            .collect();
        let all = counted(total, "access");
        (total > 0).then(|| format!("{all} by threads: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_accesses_are_reported_by_what_is_known_of_them() {
        let mut known = None;
        Executed::add(&mut known, None);
        assert_eq!(known, None);
        assert_eq!(Executed::default().text(), None);
        let global = Tally {
            read_only: 1000,
            private: 2,
            checked: 30,
            ..Tally::default()
        };
        let shared = Tally {
            private: 4,
            barriers: 500,
            atomic: 6,
            unchecked: 7,
            known: 8,
            ..Tally::default()
        };
        Executed::add(&mut known, Some(Executed { global, shared }));
        let text = known.and_then(|known| known.text());
        assert_eq!(
            text.as_deref(),
            Some(
                "1,557 accesses by threads: 1,512 proved (1,000 read-only, 6 private, 500 ordered by barriers, 6 atomic), \
                 30 checked, 7 not checked, 8 not checked any more, as their races are known"
            )
        );
        let checked = Executed {
            global: Tally {
                checked: 1,
                ..Tally::default()
            },
            ..Executed::default()
        };
        assert_eq!(
            checked.text().as_deref(),
            Some("1 access by threads: 1 checked")
        );
    }
}
