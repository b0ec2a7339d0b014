//! Which of the memory that it shares with the device the program touches between two calls, while work is in flight that
//! touches it too.
//!
//! When a call ends, the system forgets which pages of that memory the program has touched, and copies of them are kept.
//! When the next one begins, the system says which have been touched since ([`os::touches`]), and the copies say which
//! bytes have changed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use os::mem::PAGE;
use os::touches::PageTable;
use runtime::streams::HostTouch;
use simt::Memory;

/// Pages that are watched at most: 64 MiB.
const MOST: usize = 1 << 14;

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
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            table: PageTable::open()?,
            pages: BTreeMap::new(),
            runs: Vec::new(),
            touched: Vec::new(),
        })
    }

    /// What the program has done since the last call to pages that are watched.
    pub(crate) fn look(&mut self, memory: &Memory) -> Vec<HostTouch> {
        let runs = self.runs.iter();
        let touched = runs.filter_map(|run| self.table.touched(run.clone()));
        self.touched = touched.flatten().collect();
        let pages = self.touched.iter().filter_map(|at| self.pages.get(at));
        let found = pages.map(|page| HostTouch {
            page: page.bytes.clone(),
            changed: page.changed(memory),
        });
        let mut found: Vec<HostTouch> = found.collect();
        if !found.is_empty() && PageTable::has_locked() {
            found.retain(|touch| !touch.changed.is_empty());
        }
        found
    }

    /// Watches the pages of this memory, as they are now, and those that the program has touched again.
    pub(crate) fn watch(&mut self, all: &[Range<u64>], memory: &Memory) {
        for address in std::mem::take(&mut self.touched) {
            let page = self.pages.get_mut(&address);
            if page.is_some_and(|page| !page.watch(memory)) {
                self.pages.remove(&address);
            }
        }
        let before = self.pages.len();
        for range in all {
            let mut from = range.start;
            while let Some((start, bytes)) = memory.containing(from).filter(|_| from < range.end) {
                let region = start..start + bytes;
                let end = range.end.min(region.end);
                let pages = from / PAGE * PAGE..end.next_multiple_of(PAGE);
                for page in pages.step_by(PAGE as usize) {
                    let bytes = page.max(region.start)..(page + PAGE).min(region.end);
                    self.watch_page(page, bytes, memory);
                }
                from = end;
            }
        }
        if self.pages.len() > before {
            self.runs = runs(self.pages.keys().copied());
        }
    }

    fn watch_page(&mut self, address: u64, bytes: Range<u64>, memory: &Memory) {
        let is_full = self.pages.len() >= MOST;
        let page = match self.pages.entry(address) {
            Entry::Occupied(known) if known.get().bytes == bytes => known.into_mut(),
            Entry::Vacant(_) if is_full => return,
            entry => entry.insert_entry(Page::new(bytes)).into_mut(),
        };
        if !page.watch(memory) {
            self.pages.remove(&address);
        }
    }

    /// Watches nothing.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.runs.clear();
        self.touched.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether there is no room for more.
    pub(crate) fn is_full(&self) -> bool {
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
        let length = bytes.end.saturating_sub(bytes.start) as usize;
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
