//! What the two sides of a race have read and written, in the element that they share.

use events::SHARED_STEP;
use ptx::ast::Space;
use shadow::hb::{Access, LANES, Location, MemoryOrder, OpKind, Race, Rule, Shape, Side, Written};

use crate::instructions::Instructions;
use crate::log::Value;
use crate::values::{Moment, Values};

/// What is known of the values of a pair of sites that raced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    /// Both are stores.
    stores: bool,
    /// How often they wrote the same, up to the first time that they did not.
    same: u64,
    /// They did not once, as far as is known.
    differs: bool,
    /// What the witness's accesses have read and written, the earlier one's first.
    pub(crate) values: [Value; 2],
}

/// A look at memory when the later access of some races has just been made.
pub(crate) struct Sides<'a> {
    pub(crate) instructions: &'a Instructions,
    pub(crate) values: &'a Values,
    /// The later access's stamp.
    pub(crate) stamp: u32,
    /// What an aligned word holds.
    pub(crate) read: &'a dyn Fn(Location) -> Option<u32>,
}

/// True when both sides of a race are stores, and nothing is wrong but that they are not ordered.
pub(crate) fn are_stores(instructions: &Instructions, race: &Race) -> bool {
    let store = |side: Side| {
        let access = instructions.access(side.site);
        access.is_some_and(|access| access.kind == OpKind::Store)
    };
    matches!(race.rule, Rule::Unordered | Rule::Scope) && store(race.earlier) && store(race.later)
}

impl Compared {
    pub(crate) fn new(stores: bool) -> Self {
        Self {
            stores,
            ..Self::default()
        }
    }

    /// Whenever the two raced, which is `count` times, both were stores that wrote the same bytes.
    pub(crate) fn same_value(&self, count: u64) -> bool {
        self.same == count
    }

    /// They may turn out to be different, so that it matters what others wrote.
    pub(crate) fn matters(&self) -> bool {
        self.stores && !self.differs
    }

    /// They did not write the same once.
    pub(crate) fn differs(&self) -> bool {
        self.differs
    }

    /// Whether to compare the values of one more race.
    pub(crate) fn wants(&self, race: &Race) -> bool {
        // Lanes of one instruction may matter to others; see `Sides::is_mixed`.
        let together = race.earlier.thread.warp() == race.later.thread.warp();
        self.stores && (!self.differs || together)
    }

    /// Compares the values of a race; true if they are the first that are not the same.
    pub(crate) fn compare(&mut self, race: &Race, sides: &Sides<'_>) -> bool {
        if !self.stores || self.differs {
            return false;
        }
        self.differs = !sides.wrote_same(race);
        self.same += u64::from(!self.differs);
        self.differs
    }
}

impl Sides<'_> {
    /// Two lanes have stored different values to a word by one instruction. Whoever stands for
    /// several accesses, one of them by such a lane, cannot say what it wrote.
    pub(crate) fn is_mixed(&self, race: &Race) -> bool {
        race.made.stamp() == self.stamp
            && are_stores(self.instructions, race)
            && !self.wrote_same(race)
    }

    /// Two stores have written the same to the bytes of the word that both access, and so have all
    /// other lanes that the earlier one stands for. False where that is not known.
    pub(crate) fn wrote_same(&self, race: &Race) -> bool {
        let bytes = (0..4).filter(|byte| race.bytes >> byte & 1 == 1);
        let mask = bytes.fold(0, |mask, byte| mask | 0xff << (8 * byte));
        let later = self.word(race.location, self.later(race), false);
        let earlier = (0..32)
            .filter(|lane| race.lanes >> lane & 1 == 1)
            .map(|lane| {
                let (made, several) = self.earlier(race, lane);
                self.word(race.location, made, several)
            });
        later.is_some_and(|later: u32| {
            let same = |held: Option<u32>| held.is_some_and(|held| (held ^ later) & mask == 0);
            earlier.into_iter().all(same)
        })
    }

    /// What the earlier and the later access have read and written.
    pub(crate) fn both(&self, race: &Race) -> [Value; 2] {
        let (made, several) = self.earlier(race, race.earlier.thread.lane);
        [
            self.value(race, race.earlier, made, several),
            self.value(race, race.later, self.later(race), false),
        ]
    }

    /// When the earlier side's access by a lane was made, and whether it stands for several.
    fn earlier(&self, race: &Race, lane: u32) -> (Moment, bool) {
        let several = race.made.is_of_several();
        let weak = |access: Access| access.order == MemoryOrder::Weak;
        // The first of several may have been by any lane. Weak stores of lanes by one instruction
        // race with one another, so that it is known if they differ.
        let lane = match several
            && self
                .instructions
                .access(race.earlier.site)
                .is_some_and(weak)
        {
            true => LANES - 1,
            false => lane,
        };
        let stamp = race.made.stamp();
        (Moment { stamp, lane }, several)
    }

    fn later(&self, race: &Race) -> Moment {
        Moment {
            stamp: self.stamp,
            lane: race.later.thread.lane,
        }
    }

    fn value(&self, race: &Race, side: Side, made: Moment, several: bool) -> Value {
        let Some(access) = self.instructions.access(side.site) else {
            return Value::default();
        };
        let found = |at| self.element(race, &access, at, several);
        match access.kind {
            OpKind::Load => Value {
                old: found(made),
                new: None,
            },
            OpKind::Store => Value {
                old: None,
                new: found(made),
            },
            OpKind::Rmw | OpKind::Reduction => Value {
                old: found(made.before()),
                new: found(made),
            },
        }
    }

    /// What the element of an access held at a moment; none where it is larger than 8 bytes.
    fn element(&self, race: &Race, access: &Access, when: Moment, several: bool) -> Option<u64> {
        let bytes = u64::from(access.bytes);
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return None;
        }
        // Elements are aligned.
        let shared = race.location.address() + u64::from(race.bytes.trailing_zeros());
        let start = shared - shared % bytes;
        let first = start - start % 4;
        let low = self.word(moved(race.location, first), when, several)?;
        let high = match bytes {
            8 => self.word(moved(race.location, first + 4), when, several)?,
            _ => 0,
        };
        let value = (u64::from(low) | u64::from(high) << 32) >> (8 * (start % 4));
        Some(value & (u64::MAX >> (64 - 8 * bytes)))
    }

    fn word(&self, word: Location, when: Moment, several: bool) -> Option<u32> {
        self.values.after(word, when, several, (self.read)(word))
    }
}

/// Where an address of a space is, as a thread of `cta` sees it.
pub(crate) fn at(shape: &Shape, cta: u64, space: Space, address: u64) -> Location {
    match space {
        Space::Global => Location::Global(address),
        _ => in_shared(shape, cta, address),
    }
}

/// Where an address in shared memory is, as a thread of `cta` sees it.
pub(crate) fn in_shared(shape: &Shape, cta: u64, address: u64) -> Location {
    Location::Shared {
        cta: match address / SHARED_STEP {
            0 => cta,
            rank => shape.peer(cta, rank as u32 - 1),
        },
        offset: (address % SHARED_STEP) as u32,
    }
}

/// The address of a location as a thread of `cta` sees it.
pub(crate) fn address(shape: &Shape, cta: u64, location: Location) -> Option<(Space, u64)> {
    match location {
        Location::Global(address) => Some((Space::Global, address)),
        Location::Shared { cta: of, offset } => {
            let ctas: u32 = shape.cluster.iter().product();
            let window = match of == cta {
                true => 0,
                false => 1 + (0..ctas).find(|&rank| shape.peer(cta, rank) == of)?,
            };
            let address = u64::from(window) * SHARED_STEP + u64::from(offset);
            Some((Space::Shared, address))
        }
    }
}

/// What a scalar holds; `read` gives the aligned word at an address as the CTA that has written it sees it.
pub(crate) fn value(
    shape: &Shape,
    of: &Written,
    read: &dyn Fn(Space, u64) -> Option<u32>,
) -> Option<u64> {
    let (space, address) = address(shape, of.cta, of.location)?;
    let word = |at: u64| read(space, at).map(u64::from);
    let low = word(address / 4 * 4)? >> (address % 4 * 8);
    match of.bytes {
        8 => Some(low | word(address + 4)? << 32),
        bytes @ 1..=4 => Some(low & ((1 << (bytes * 8)) - 1)),
        _ => None,
    }
}

/// The location with another address in the same memory.
fn moved(location: Location, address: u64) -> Location {
    match location {
        Location::Global(_) => Location::Global(address),
        Location::Shared { cta, .. } => Location::Shared {
            cta,
            offset: address as u32,
        },
    }
}
