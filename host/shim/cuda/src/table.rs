//! Handles: numbers that look like pointers and are never followed.
//!
//! A handle that does not exist, or that has been destroyed, is found out instead of crashing.

use std::collections::BTreeMap;

use driver::sys::CUresult;

use crate::pointer::Ptr;

/// Things of one kind by their handles.
#[derive(Debug)]
pub(crate) struct Table<T> {
    base: u64,
    made: u64,
    items: BTreeMap<u64, T>,
    missing: CUresult,
}

impl<T> Table<T> {
    /// `kind` keeps the handles of different kinds apart; `missing` is the answer to a bad one.
    pub(crate) fn new(kind: u8, missing: CUresult) -> Table<T> {
        // Not an address of user space, so nothing that is one passes for a handle.
        let base = 0x00c0_da00_0000_0000 | u64::from(kind) << 32;
        Table {
            base,
            made: 0,
            items: BTreeMap::new(),
            missing,
        }
    }

    pub(crate) fn insert(&mut self, item: T) -> u64 {
        self.made += 1;
        let handle = self.base + self.made * 16;
        self.items.insert(handle, item);
        handle
    }

    /// Which of all that were made a handle is, from 1.
    pub(crate) fn ordinal(&self, handle: u64) -> u64 {
        handle.saturating_sub(self.base) / 16
    }

    pub(crate) fn get(&self, handle: u64) -> Result<&T, CUresult> {
        self.items.get(&(handle & !SECOND)).ok_or(self.missing)
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Result<&mut T, CUresult> {
        let item = self.items.get_mut(&(handle & !SECOND));
        item.ok_or(self.missing)
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Result<T, CUresult> {
        self.items.remove(&handle).ok_or(self.missing)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|(&handle, item)| (handle, item))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.items.iter_mut().map(|(&handle, item)| (handle, item))
    }

    /// Removes what `gone` says and returns it.
    pub(crate) fn take(&mut self, mut gone: impl FnMut(&T) -> bool) -> Vec<T> {
        let handles: Vec<u64> = self
            .items
            .iter()
            .filter(|(_, item)| gone(item))
            .map(|(&handle, _)| handle)
            .collect();
        handles
            .iter()
            .filter_map(|handle| self.items.remove(handle))
            .collect()
    }
}

/// What a second handle of the same thing has besides the first: a function is what a context has of a kernel.
pub(crate) const SECOND: u64 = 8;

/// A handle as C sees it.
pub(crate) fn pointer<T>(handle: u64) -> *mut T {
    std::ptr::without_provenance_mut(handle as usize)
}

/// Stores a new handle.
pub(crate) fn set<T>(out: Ptr<*mut T>, handle: u64) -> crate::Answer {
    out.set(pointer(handle))
}
