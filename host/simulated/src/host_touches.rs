//! Which of the memory that it shares with the device the program touches between two calls, while work is in flight that
//! touches it too.
//!
//! When a call ends, the system forgets which pages of that memory the program has touched, and copies of them are kept.
//! When the next one begins, the system says which have been touched since ([`os::touches`]), and the copies say which
//! bytes have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use os::mem::PAGE;
use os::touches::{self, PageTable};
use runtime::streams::HostTouch;
use simt::Memory;

use crate::CheckedSim;

/// Pages that are watched at most: 64 MiB.
const MOST: usize = 1 << 14;

impl CheckedSim {
    /// From now on what the program touches is reported to the checker, if that wants to know and the system says so.
    pub fn follow_host(&mut self) {
        let follows = self.checker.as_ref().is_some_and(|of| of.follows_host());
        self.host_touches = follows.then(HostTouches::new).flatten();
        if self.host_touches.is_some() {
            self.device.memory_mut().show_touches();
        }
    }

    /// Notifies the checker of memory that the host can access, too.
    pub fn allocated_for_host(&mut self, address: u64, bytes: u64, call: &str) {
        if let Some(checker) = &mut self.checker {
            checker.allocated(address, bytes, call);
            if !self.device.memory().shows_touches(address) {
                checker.host_is_not_watched();
            }
        }
    }

    /// A call begins: reports to the checker what the program has touched since the last one.
    pub fn look_at_host(&mut self) {
        let (Some(touches), Some(checker)) = (&mut self.host_touches, &mut self.checker) else {
            return;
        };
        let found = touches.look(self.device.memory());
        if !found.is_empty() {
            checker.host_touched(&found);
        }
    }

    /// A call ends: what work in flight touches is watched until the next one. Whether there is such work.
    pub fn watch_host(&mut self) -> bool {
        let (Some(touches), Some(checker)) = (&mut self.host_touches, &mut self.checker) else {
            return false;
        };
        let (in_flight, memory) = (checker.streams().in_flight(), self.device.memory());
        if memory.has_shown_touches() {
            in_flight.watch(memory.arena());
        }
        let news = in_flight.news();
        let is_watched = !in_flight.is_empty();
        // Pages of work that is over are in the way only when there is no room.
        match !is_watched || news.unknown || (news.over && touches.is_full()) {
            true => {
                touches.clear();
                touches.watch(&in_flight.memory(), memory);
            }
            false => touches.watch(&news.touched, memory),
        }
        if news.unjudged || touches.is_full() {
            checker.host_is_not_watched();
        }
        is_watched
    }
}

/// The pages that are watched.
#[derive(Debug)]
pub(crate) struct HostTouches {
    table: PageTable,
    /// By first address.
    pages: BTreeMap<u64, Page>,
    /// Their addresses, those of pages that adjoin as one range.
    runs: Vec<Range<u64>>,
    /// Pages that the program had touched when the present call began.
    touched: Vec<u64>,
}

#[derive(Debug)]
struct Page {
    /// Its bytes that belong to the program.
    bytes: Range<u64>,
    /// What they were when the last call ended.
    copy: Box<[u8]>,
}

impl HostTouches {
    /// Watches nothing yet; none if the system does not say what is touched.
    fn new() -> Option<Self> {
        Some(Self {
            table: PageTable::open()?,
            pages: BTreeMap::new(),
            runs: Vec::new(),
            touched: Vec::new(),
        })
    }

    /// What the program has done since the last call to pages that are watched.
    fn look(&mut self, memory: &Memory) -> Vec<HostTouch> {
        let runs = self.runs.iter();
        let touched = runs.filter_map(|run| self.table.touched(run.clone()));
        self.touched = touched.flatten().collect();
        let pages = self.touched.iter().filter_map(|at| self.pages.get(at));
        let found = pages.map(|page| HostTouch {
            page: page.bytes.clone(),
            changed: page.changed(memory),
        });
        let mut found: Vec<HostTouch> = found.collect();
        if !found.is_empty() && touches::has_locked() {
            found.retain(|touch| !touch.changed.is_empty());
        }
        found
    }

    /// Watches the pages of this memory, as they are now, and again those that the program had touched.
    fn watch(&mut self, all: &[Range<u64>], memory: &Memory) {
        let pages =
            |range: &Range<u64>| (range.start / PAGE * PAGE..range.end).step_by(PAGE as usize);
        let mut wanted: BTreeSet<u64> = all.iter().flat_map(pages).collect();
        wanted.extend(std::mem::take(&mut self.touched));
        if wanted.is_empty() {
            return;
        }
        for page in wanted {
            self.watch_page(page, memory);
        }
        self.runs = runs(self.pages.keys().copied());
    }

    /// Watches a page from now on, if there is room and the system says what of it is touched.
    fn watch_page(&mut self, address: u64, memory: &Memory) {
        let known = self.pages.remove(&address);
        let Some((start, bytes)) = memory.containing(address).filter(|_| !self.is_full()) else {
            return;
        };
        let bytes = address..(address + PAGE).min(start + bytes);
        let known = known.filter(|page| page.bytes == bytes);
        let mut page = known.unwrap_or_else(|| Page::new(bytes));
        if page.watch(memory) {
            self.pages.insert(address, page);
        }
    }

    /// Watches nothing.
    fn clear(&mut self) {
        self.pages.clear();
        self.runs.clear();
        self.touched.clear();
    }

    /// Whether there is no room for more.
    fn is_full(&self) -> bool {
        self.pages.len() >= MOST
    }
}

/// Pages, those that adjoin as one range.
fn runs(pages: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end += PAGE,
            _ => runs.push(page..page + PAGE),
        }
    }
    runs
}

impl Page {
    fn new(bytes: Range<u64>) -> Self {
        let length = (bytes.end - bytes.start) as usize;
        Self {
            bytes,
            copy: vec![0; length].into_boxed_slice(),
        }
    }

    /// Copies it, and forgets that the program has touched it; false if the system does not say whether it has.
    fn watch(&mut self, memory: &Memory) -> bool {
        memory.untouch(self.bytes.clone()) && memory.read(self.bytes.start, &mut self.copy).is_ok()
    }

    /// Its bytes that are others now than in the copy.
    fn changed(&self, memory: &Memory) -> Vec<Range<u64>> {
        let mut now = vec![0; self.copy.len()];
        if memory.read(self.bytes.start, &mut now).is_err() || now == *self.copy {
            return Vec::new();
        }
        let mut changed: Vec<Range<u64>> = Vec::new();
        let pairs = self.copy.iter().zip(&now).zip(self.bytes.clone());
        for (_, address) in pairs.filter(|((before, now), _)| before != now) {
            match changed.last_mut() {
                Some(range) if range.end == address => range.end += 1,
                _ => changed.push(address..address + 1),
            }
        }
        changed
    }
}
