//! Host mappings that a simulated device and the program may both use.
//!
//! Of a [shared](Mapping::shared_above) segment each has a mapping of its own, and the system tells which pages the program
//! has touched through its own.
//!
//! All access goes through relaxed atomic words, so that a program which races with the device
//! (or with itself) on shared memory is a finding, not undefined behaviour of ours.

use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Distance of mappings that are placed by [`Mapping::zeroed_above`]: an access that runs over
/// the end of one does not end up in the next by accident.
const SPACING: u64 = 1 << 16;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Start and end of the mappings placed so, in order.
static PLACED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// A range of host memory seen as 32-bit words.
///
/// A mapping of [`Mapping::zeroed`] costs address space only: the kernel commits a page when it
/// is first touched.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<AtomicU32>,
    bytes: usize,
    kind: Kind,
}

/// Where the memory of a mapping comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Owned,
    /// It is ours, and the program has another mapping of it, at this address.
    Shared(NonNull<AtomicU32>),
    Foreign,
}

// SAFETY: the words are atomics; whoever reaches them may do so from any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself is never changed after it is made.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` zero bytes, rounded up to whole pages, committed when touched.
    ///
    /// Fails when the address space or the process limit does not allow it; zero bytes give one
    /// page.
    pub fn zeroed(bytes: u64) -> io::Result<Mapping> {
        Mapping::at(bytes, 0)
    }

    /// As [`Mapping::zeroed`], at the lowest free address from `floor` on that such a mapping has
    /// not got yet, or anywhere if the system has other plans.
    ///
    /// Memory that host and device share by address is best near the device's own, so that one
    /// window of shadow memory covers both.
    pub fn zeroed_above(bytes: u64, floor: u64) -> io::Result<Mapping> {
        Mapping::placed(bytes, floor, Mapping::at)
    }

    /// As [`Mapping::zeroed_above`], with a mapping of its own for the program at [`Mapping::address`].
    ///
    /// Fails also where the system gives no shared memory (`shmget`), or no further segment of it.
    pub fn shared_above(bytes: u64, floor: u64) -> io::Result<Mapping> {
        Mapping::placed(bytes, floor, Mapping::shared_at)
    }

    /// Makes a mapping at the lowest free address from `floor` on.
    fn placed(
        bytes: u64,
        floor: u64,
        make: impl FnOnce(u64, u64) -> io::Result<Mapping>,
    ) -> io::Result<Mapping> {
        let length = bytes.saturating_add(4096).checked_next_multiple_of(SPACING);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut placed = PLACED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = floor.next_multiple_of(SPACING);
        for &(first, end) in placed.iter() {
            if end > start && start.saturating_add(length) > first {
                start = end;
            }
        }
        let mapping = make(bytes, start)?;
        if mapping.address() == start {
            placed.push((start, start + length));
            placed.sort_unstable();
        }
        Ok(mapping)
    }

    fn at(bytes: u64, hint: u64) -> io::Result<Mapping> {
        let length = whole_pages(bytes)?;
        // SAFETY: without MAP_FIXED the address is a wish, and a fresh anonymous mapping touches
        // nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::with_exposed_provenance_mut(hint as usize),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(too_large)?;
        Ok(Mapping {
            base,
            bytes: length,
            kind: Kind::Owned,
        })
    }

    fn shared_at(bytes: u64, hint: u64) -> io::Result<Mapping> {
        let length = whole_pages(bytes)?;
        // SAFETY: the call makes a segment that no process has yet.
        let id = unsafe {
            libc::shmget(
                libc::IPC_PRIVATE,
                length,
                libc::IPC_CREAT | libc::SHM_NORESERVE | 0o600,
            )
        };
        if id == -1 {
            return Err(io::Error::last_os_error());
        }
        let mappings = attach(id, 0).and_then(|ours| {
            // The address is a wish.
            let theirs = attach(id, hint).or_else(|_| attach(id, 0));
            theirs
                .inspect_err(|_| detach(ours))
                .map(|theirs| [ours, theirs])
        });
        // SAFETY: the segment is ours; it goes with its last mapping, whatever happens to the process.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        let [ours, theirs] = mappings?;
        // SAFETY: the mapping is ours. The call fails where there are no huge pages, of which many pages would be touched at
        // once.
        unsafe { libc::madvise(theirs.as_ptr().cast(), length, libc::MADV_NOHUGEPAGE) };
        Ok(Mapping {
            base: ours,
            bytes: length,
            kind: Kind::Shared(theirs),
        })
    }

    /// Whether the program has a mapping of its own.
    pub fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Shared(_))
    }

    /// The system forgets which pages of a range the program has touched through its own mapping. False where it has none.
    pub fn untouch(&self, range: Range<u64>) -> bool {
        let Kind::Shared(theirs) = self.kind else {
            return false;
        };
        let from = usize::try_from(range.start / PAGE * PAGE).unwrap_or(usize::MAX);
        let end = usize::try_from(range.end).unwrap_or(usize::MAX);
        let end = end.min(self.bytes);
        if from >= end {
            return true;
        }
        // SAFETY: the range lies in the program's mapping, which is ours; pages of shared memory keep what they hold.
        let done = unsafe {
            let start = theirs.as_ptr().cast::<u8>().add(from);
            libc::madvise(start.cast(), end - from, libc::MADV_DONTNEED)
        };
        done == 0
    }

    /// Looks at memory that somebody else owns, such as a pinned buffer of the program.
    ///
    /// The view starts at the word that holds `address` and ends with the word that holds its
    /// last byte, so it may be up to three bytes larger on either side; [`Mapping::address`]
    /// tells where it really starts.
    ///
    /// # Safety
    /// The memory must stay mapped, readable and writable while the mapping lives.
    /// Others may access it at the same time: that is what the words are atomic for.
    pub unsafe fn foreign(address: u64, bytes: u64) -> Option<Mapping> {
        let start = address & !3;
        let end = address.checked_add(bytes)?.checked_next_multiple_of(4)?;
        let base = NonNull::new(std::ptr::with_exposed_provenance_mut(
            usize::try_from(start).ok()?,
        ))?;
        Some(Mapping {
            base,
            bytes: usize::try_from(end - start).ok()?,
            kind: Kind::Foreign,
        })
    }

    /// The memory, word by word.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: base is aligned to four bytes and `bytes` are mapped for as long as self lives,
        // by `zeroed` or by the promise to `foreign`; atomics may be shared.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes / 4) }
    }

    /// Host address of the first word, for the program.
    pub fn address(&self) -> u64 {
        let first = match self.kind {
            Kind::Shared(theirs) => theirs,
            Kind::Owned | Kind::Foreign => self.base,
        };
        first.as_ptr().expose_provenance() as u64
    }

    /// Length in bytes, a multiple of four.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Zeroes a range and gives its whole pages back to the system.
    ///
    /// Does nothing to memory that somebody else owns.
    pub fn discard(&self, offset: u64, bytes: u64) {
        let (Ok(offset), Ok(bytes)) = (usize::try_from(offset), usize::try_from(bytes)) else {
            return;
        };
        let end = offset.saturating_add(bytes).min(self.bytes);
        if self.kind == Kind::Foreign || offset >= end {
            return;
        }
        if let Kind::Shared(_) = self.kind {
            return self.zero(offset, end);
        }
        // Whole pages are dropped, the ragged ends are zeroed by hand.
        let page = PAGE as usize;
        let first = offset.next_multiple_of(page).min(end);
        let last = (end / page * page).max(first);
        self.zero(offset, first);
        self.zero(last, end);
        if first < last {
            // SAFETY: the range lies inside our own private anonymous mapping, whose pages read
            // as zero after MADV_DONTNEED.
            unsafe {
                libc::madvise(
                    self.base.as_ptr().cast::<u8>().add(first).cast(),
                    last - first,
                    libc::MADV_DONTNEED,
                );
            }
        }
    }

    fn zero(&self, from: usize, to: usize) {
        for offset in from..to {
            let shift = (offset % 4) * 8;
            self.words()[offset / 4].fetch_and(!(0xff << shift), Ordering::Relaxed);
        }
    }
}

/// So many bytes in whole pages.
fn whole_pages(bytes: u64) -> io::Result<usize> {
    let whole = bytes.max(1).checked_next_multiple_of(PAGE);
    whole
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(too_large)
}

fn too_large() -> io::Error {
    io::Error::from(io::ErrorKind::OutOfMemory)
}

/// A mapping of a segment, at an address if that is not 0.
fn attach(id: c_int, at: u64) -> io::Result<NonNull<AtomicU32>> {
    let wish = std::ptr::with_exposed_provenance(at as usize);
    // SAFETY: without SHM_REMAP the call takes the place of nothing that exists.
    let base = unsafe { libc::shmat(id, wish, 0) };
    if base.addr() == usize::MAX {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(too_large)
}

fn detach(mapping: NonNull<AtomicU32>) {
    // SAFETY: it is a mapping that `attach` has given, and nobody uses it any more.
    unsafe { libc::shmdt(mapping.as_ptr().cast()) };
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.kind != Kind::Foreign {
            let mut placed = PLACED.lock().unwrap_or_else(PoisonError::into_inner);
            placed.retain(|&(start, _)| start != self.address());
        }
        match self.kind {
            // SAFETY: base and bytes are what mmap gave us, and no view outlives self.
            Kind::Owned => unsafe {
                libc::munmap(self.base.as_ptr().cast(), self.bytes);
            },
            Kind::Shared(theirs) => [self.base, theirs].into_iter().for_each(detach),
            Kind::Foreign => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_zero_and_large_ones_cost_nothing() {
        let mapping = Mapping::zeroed(64 << 30).expect("address space for 64 GiB");
        let words = mapping.words();
        assert_eq!(words.len(), (64 << 30) / 4);
        assert_eq!(words[words.len() - 1].load(Ordering::Relaxed), 0);
        words[12345].store(7, Ordering::Relaxed);
        assert_eq!(words[12345].load(Ordering::Relaxed), 7);
    }

    #[test]
    fn placed_mappings_are_near_and_places_are_reused() {
        let floor = 0x2300_0000_0000;
        let make = || Mapping::zeroed_above(5000, floor).expect("a small mapping");
        let (first, second) = (make(), make());
        assert_eq!(
            [first.address(), second.address()],
            [floor, floor + SPACING]
        );
        drop(first);
        let third = make();
        assert_eq!(third.address(), floor);
        assert_eq!(third.words()[7].load(Ordering::Relaxed), 0);
        let fourth = make();
        assert_eq!(fourth.address(), floor + 2 * SPACING);
    }

    #[test]
    fn impossible_sizes_are_an_error() {
        assert!(Mapping::zeroed(u64::MAX).is_err());
        assert!(Mapping::zeroed(1 << 62).is_err());
        assert_eq!(Mapping::zeroed(0).expect("one page").bytes() % 4096, 0);
    }

    #[test]
    fn foreign_memory_is_seen_in_whole_words() {
        let buffer: Vec<AtomicU32> = (0..8).map(AtomicU32::new).collect();
        let address = buffer.as_ptr().expose_provenance() as u64;
        // SAFETY: the vector outlives the mapping.
        let mapping = unsafe { Mapping::foreign(address + 5, 6) }.expect("a small range");
        assert_eq!(mapping.address(), address + 4);
        assert_eq!(mapping.bytes(), 8);
        assert_eq!(mapping.words()[0].load(Ordering::Relaxed), 1);
    }

    #[test]
    fn discarded_ranges_read_as_zero_and_their_neighbours_stay() {
        let mapping = Mapping::zeroed(4 * 4096).expect("four pages");
        for word in mapping.words() {
            word.store(u32::MAX, Ordering::Relaxed);
        }
        mapping.discard(6, 2 * 4096);
        let byte =
            |at: usize| (mapping.words()[at / 4].load(Ordering::Relaxed) >> (at % 4 * 8)) & 0xff;
        for at in 0..4 * 4096 {
            let inside = (6..6 + 2 * 4096).contains(&at);
            assert_eq!(byte(at) == 0, inside, "byte {at}");
        }
    }
}
