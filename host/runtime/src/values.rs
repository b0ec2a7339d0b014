//! What memory held when, so that a report can say what both sides of a race read or wrote.
//!
//! Every access gets a stamp, and every change of a word is kept with the stamp and lane that made
//! it and what was there before. What a location held after an access is then what the first later
//! change found there, or what it holds now. So loads cost nothing, nor do stores of what is there
//! already, and the engine's history need not hold values: one number per access will do.
//!
//! The room is bounded: the older half of the changes is forgotten when there are too many, and
//! values from before are no longer known.

use hashbrown::HashMap;

use shadow::hb::{LANES, Location, Made};

/// Words of a line.
const WORDS: usize = 32;
/// Bytes of a word.
const WORD: u64 = 4;
/// Changes that a half holds; a line counts for as many as it has words.
const ROOM: usize = 1 << 20;
/// Changes of a word that are looked through for one value.
const MOST: usize = 64;

/// When an access was made, to the lane: lanes of one instruction come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) stamp: u32,
    pub(crate) lane: u32,
}

impl Moment {
    /// The moment before.
    pub(crate) fn before(self) -> Self {
        match self.lane.checked_sub(1) {
            Some(lane) => Self { lane, ..self },
            None => Self {
                stamp: self.stamp.saturating_sub(1),
                lane: LANES,
            },
        }
    }
}

/// What has become of memory in a launch.
#[derive(Debug)]
pub(crate) struct Values {
    stamp: u32,
    /// The older and the newer changes.
    halves: [Half; 2],
    /// Changes before this stamp may be forgotten.
    forgotten: u32,
    room: usize,
}

#[derive(Debug, Default)]
struct Half {
    index: HashMap<u64, u32>,
    lines: Vec<Line>,
    changes: Vec<Change>,
    /// The line that was changed last.
    recent: Option<(u64, u32)>,
}

/// Where the last change of each word is, plus 1; 0 for none.
type Line = [u32; WORDS];

#[derive(Clone, Copy, Debug)]
struct Change {
    at: Moment,
    before: u32,
    /// The word's change before this one, as in [`Line`].
    previous: u32,
}

/// What the changes of a word say about its content at some moment.
enum Content {
    /// It has not changed since.
    Current,
    /// It was this.
    Was(u32),
    Unknown,
}

impl Default for Values {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

impl Values {
    fn with_room(room: usize) -> Self {
        Self {
            stamp: 0,
            halves: Default::default(),
            forgotten: 0,
            room,
        }
    }

    /// The stamp of the operation that is received next.
    pub(crate) fn next(&mut self) -> u32 {
        self.stamp = (self.stamp + 1).min(Made::LAST);
        self.stamp
    }

    /// The last stamp.
    pub(crate) fn last(&self) -> u32 {
        self.stamp
    }

    /// A lane changes an aligned word, by the operation with the last stamp.
    pub(crate) fn change(&mut self, word: Location, lane: u32, before: u32) {
        if self.halves[1].is_full(self.room) {
            self.halves.swap(0, 1);
            self.halves[1] = Half::default();
            let kept = self.halves[0].changes.first();
            self.forgotten = kept.map_or(0, |first| first.at.stamp + 1);
        }
        let at = Moment {
            stamp: self.stamp,
            lane,
        };
        self.halves[1].enter(word, at, before);
    }

    /// Lanes have written different values to a word by the instruction with the last stamp; it holds
    /// `now` since. For [`Self::after`], that is a change behind all of them.
    pub(crate) fn mixed(&mut self, word: Location, now: u32) {
        self.change(word, LANES, now);
    }

    /// What an aligned word held after a moment; `now` is what it holds. `several`: after that moment
    /// and after every write since.
    pub(crate) fn after(
        &self,
        word: Location,
        moment: Moment,
        several: bool,
        now: Option<u32>,
    ) -> Option<u32> {
        // Stamps that have run out say nothing about the order.
        if moment.stamp < self.forgotten || self.stamp == Made::LAST {
            return None;
        }
        for half in &self.halves {
            match half.after(word, moment) {
                Content::Current => {}
                Content::Was(_) if several => return None,
                Content::Was(before) => return Some(before),
                Content::Unknown => return None,
            }
        }
        now
    }
}

impl Half {
    fn is_full(&self, room: usize) -> bool {
        self.changes.len() + self.lines.len() * WORDS >= room
    }

    fn enter(&mut self, word: Location, at: Moment, before: u32) {
        let (key, word) = key(word);
        let line = match self.recent {
            Some((recent, line)) if recent == key => line,
            _ => *self.index.entry(key).or_insert_with(|| {
                self.lines.push([0; WORDS]);
                self.lines.len() as u32 - 1
            }),
        };
        self.recent = Some((key, line));
        let last = &mut self.lines[line as usize][word];
        self.changes.push(Change {
            at,
            before,
            previous: *last,
        });
        *last = self.changes.len() as u32;
    }

    /// The first change of a word after a moment.
    fn after(&self, word: Location, moment: Moment) -> Content {
        let (key, word) = key(word);
        let Some(&line) = self.index.get(&key) else {
            return Content::Current;
        };
        let mut found = Content::Current;
        let mut next = self.lines[line as usize][word];
        for _ in 0..MOST {
            let change = (next as usize).checked_sub(1).map(|at| self.changes[at]);
            match change {
                Some(change) if change.at > moment => {
                    found = Content::Was(change.before);
                    next = change.previous;
                }
                _ => return found,
            }
        }
        Content::Unknown
    }
}

/// A number for the line of an aligned word, and the word in it.
fn key(word: Location) -> (u64, usize) {
    let (space, bytes) = match word {
        Location::Global(address) => (0, address),
        Location::Shared { cta, offset } => (1 << 63 | cta << 24, u64::from(offset)),
    };
    let word = bytes / WORD;
    let line = word / WORDS as u64;
    (space | line, (word % WORDS as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Location = Location::Global(0x1000);

    fn moment(stamp: u32, lane: u32) -> Moment {
        Moment { stamp, lane }
    }

    #[test]
    fn a_word_held_what_the_next_change_found_there() {
        let mut values = Values::default();
        for before in [10, 11, 12] {
            values.next();
            values.change(AT, 3, before);
        }
        let after = |stamp, lane| values.after(AT, moment(stamp, lane), false, Some(13));
        assert_eq!(after(0, 0), Some(10));
        assert_eq!(after(1, 2), Some(10));
        assert_eq!(after(1, 3), Some(11));
        assert_eq!(after(2, 31), Some(12));
        assert_eq!(after(3, 3), Some(13));
        let other = Location::Shared {
            cta: 0,
            offset: 0x1000,
        };
        assert_eq!(values.after(other, moment(0, 0), false, None), None);
        assert_eq!(values.after(other, moment(0, 0), false, Some(7)), Some(7));
    }

    #[test]
    fn several_accesses_have_a_value_only_while_nothing_changes() {
        let mut values = Values::default();
        values.next();
        values.change(AT, 0, 5);
        let after = |stamp| values.after(AT, moment(stamp, 0), true, Some(6));
        assert_eq!((after(0), after(1)), (None, Some(6)));
    }

    /// A word that is changed a thousand times, each time to the number of the change.
    fn changed(room: usize) -> Values {
        let mut values = Values::with_room(room);
        for before in 0..1000 {
            values.next();
            values.change(AT, 0, before);
        }
        values
    }

    #[test]
    fn what_is_too_many_changes_ago_is_not_known() {
        let values = changed(ROOM);
        let after = |stamp| values.after(AT, moment(stamp, 0), false, Some(1000));
        let most = MOST as u32;
        assert_eq!(
            (after(1000), after(1001 - most)),
            (Some(1000), Some(1001 - most))
        );
        assert_eq!(after(1000 - most), None);
    }

    #[test]
    fn what_is_forgotten_is_not_known() {
        let values = changed(2 * WORDS);
        let elsewhere = Location::Global(0x2000);
        let after = |stamp| values.after(elsewhere, moment(stamp, 0), false, Some(9));
        assert_eq!((after(1), after(900), after(1000)), (None, None, Some(9)));
    }
}
