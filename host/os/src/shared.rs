//! A file that is mapped into memory, and shared by several processes. A process can still write there after it has closed
//! its descriptors, changed its user or its root folder, or lost the right to write files.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The first bytes of a file, mapped.
#[derive(Debug)]
pub struct Shared {
    start: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the memory is never read or written by this process's own instructions.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps so many bytes of a file that has them and is open for reading and writing.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn of(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place of the system's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, bytes }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Writes from the start on, as far as there is room.
    ///
    /// # Errors
    /// As for [`Shared::put_at`].
    pub fn put(&self, bytes: &[u8]) -> io::Result<()> {
        self.put_at(0, bytes)
    }

    /// Writes from a byte on, as far as there is room.
    ///
    /// The system copies the bytes (`process_vm_writev`). A store of this process would end it by SIGBUS if the file has
    /// been truncated or its file system is full; the system returns an error instead.
    ///
    /// # Errors
    /// In these cases.
    pub fn put_at(&self, first: usize, bytes: &[u8]) -> io::Result<()> {
        let first = first.min(self.bytes);
        let length = bytes.len().min(self.bytes - first);
        let from = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: length,
        };
        let to = libc::iovec {
            iov_base: self.start.as_ptr().wrapping_byte_add(first),
            iov_len: length,
        };
        // SAFETY: the bytes are read only; the mapping is ours, and lives as long as `self`.
        let done = unsafe {
            libc::process_vm_writev(libc::getpid(), &raw const from, 1, &raw const to, 1, 0)
        };
        match usize::try_from(done) {
            Ok(done) if done == length => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: usize) -> (std::path::PathBuf, File) {
        let number = std::process::id();
        let path = std::env::temp_dir().join(format!("cudarun-shared-{number}-{bytes}"));
        std::fs::write(&path, vec![b' '; bytes]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (path, file)
    }

    #[test]
    fn what_is_put_stands_in_the_file_though_it_is_closed() {
        let (path, file) = file(8);
        let shared = Shared::of(&file, 8).unwrap();
        drop(file);
        shared.put(b"one").unwrap();
        shared.put(b"more than fits").unwrap();
        let found = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(found, b"more tha");
    }

    #[test]
    fn a_file_that_is_cut_short_ends_nobody() {
        let (path, file) = file(9);
        let shared = Shared::of(&file, 9).unwrap();
        file.set_len(0).unwrap();
        let put = shared.put(b"text");
        std::fs::remove_file(path).unwrap();
        assert!(put.is_err());
    }
}
