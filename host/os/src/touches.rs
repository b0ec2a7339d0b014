//! Which pages of memory a process has touched: those that its page table has.
//!
//! The system says so in `/proc/self/pagemap` (Documentation/admin-guide/mm/pagemap.rst of Linux). Accesses by any thread
//! count, and those by the system in its name, such as `write`. Nothing disturbs the process.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::mem::{Mapping, PAGE};

/// Bytes of an entry for a page.
const ENTRY: u64 = 8;
/// The page is in memory, or in swap: then it has been touched, too.
const PRESENT: u64 = 3 << 62;
/// Entries that are read at once.
const BATCH: usize = 1 << 12;

/// The calling process's page table.
#[derive(Debug)]
pub struct PageTable {
    file: File,
}

impl PageTable {
    /// Opens it, if it tells of each page of a [shared](Mapping::shared_above) mapping by itself whether it was touched.
    pub fn open() -> Option<Self> {
        let table = Self {
            file: File::open("/proc/self/pagemap").ok()?,
        };
        table.is_exact().then_some(table)
    }

    /// Tries it.
    fn is_exact(&self) -> bool {
        const PAGES: u64 = 40;
        let Ok(mapping) = Mapping::shared_above(PAGES * PAGE, 0) else {
            return false;
        };
        // Memory that was not used yet has no pages.
        for word in mapping.words() {
            word.store(1, std::sync::atomic::Ordering::Relaxed);
        }
        let start = mapping.address();
        let all = start..start + PAGES * PAGE;
        let touched = || {
            let pages = self.touched(all.clone())?;
            let numbers = pages.into_iter().map(|page| (page - start) / PAGE);
            Some(numbers.collect::<Vec<u64>>())
        };
        let before = touched();
        for page in [7, 20] {
            let at = std::ptr::with_exposed_provenance::<u32>((start + page * PAGE) as usize);
            // SAFETY: the address lies in the mapping, which lives.
            let _ = unsafe { at.read_volatile() };
        }
        let after = touched();
        mapping.untouch(0..PAGES * PAGE)
            && before == Some(Vec::new())
            && after == Some(vec![7, 20])
            && touched() == Some(Vec::new())
    }

    /// The first addresses of the pages of a range that the process has touched; none if the system does not say.
    pub fn touched(&self, range: Range<u64>) -> Option<Vec<u64>> {
        let (mut page, end) = (range.start / PAGE, range.end.div_ceil(PAGE));
        let mut found = Vec::new();
        let mut entries = vec![0; BATCH * ENTRY as usize];
        while page < end {
            let count = (end - page).min(BATCH as u64);
            let batch = &mut entries[..(count * ENTRY) as usize];
            self.file.read_exact_at(batch, page * ENTRY).ok()?;
            let touched = batch.as_chunks().0.iter().zip(page..);
            let touched = touched.filter(|(entry, _)| u64::from_ne_bytes(**entry) & PRESENT != 0);
            found.extend(touched.map(|(_, page)| page * PAGE));
            page += count;
        }
        Some(found)
    }
}

/// Whether the process has locked memory (`mlock`), which touches its pages.
pub fn has_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_some_and(|locked| !locked.trim().starts_with("0 "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    #[allow(clippy::print_stderr, reason = "why it is skipped")]
    fn pages_count_that_a_thread_or_the_system_touches() {
        let Some(table) = PageTable::open() else {
            eprintln!("skipped: this system does not tell which pages a process touches");
            return;
        };
        let mapping = Mapping::shared_above(64 * PAGE, 0).expect("a little shared memory");
        let words = mapping.words();
        for word in words {
            word.store(7, std::sync::atomic::Ordering::Relaxed);
        }
        let start = mapping.address();
        let all = start..start + 64 * PAGE;
        let touched = || {
            let pages = table.touched(all.clone()).unwrap_or_default();
            let numbers = pages.into_iter().map(|page| (page - start) / PAGE);
            numbers.collect::<Vec<u64>>()
        };
        // Our own view is another one.
        assert_eq!(touched(), []);
        let at =
            |page: u64| std::ptr::with_exposed_provenance_mut::<u8>((start + page * PAGE) as usize);
        let write = |page: u64| {
            // SAFETY: the mapping lives, and only this test uses it.
            unsafe { at(page).write_volatile(1) }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| write(3));
        });
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(at(9), 2 * PAGE as usize) };
        File::create("/dev/null").unwrap().write_all(bytes).unwrap();
        // /dev/null does not look at them.
        assert_eq!(touched(), [3]);
        let mut pipe = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        pipe.stdin.take().unwrap().write_all(bytes).unwrap();
        pipe.wait().unwrap();
        assert_eq!(touched(), [3, 9, 10]);
        assert!(mapping.untouch(9 * PAGE + 5..9 * PAGE + 6));
        assert_eq!(touched(), [3, 10]);
        // What is there stays.
        assert!(mapping.untouch(0..64 * PAGE));
        assert_eq!(touched(), []);
        let first = words[3 * PAGE as usize / 4].load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(first & 0xff, 1);
    }
}
