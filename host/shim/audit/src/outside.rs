//! Programs that are started and into which the loader does not bring us: their names are left in the run's folder, for
//! the report.
//!
//! Those that gain privileges when they start, and so drop what leads to us, are said to be missed, and so are those that a
//! process starts which has become another user's, or has another root folder, and cannot reach our files any more. Of
//! those that have no dynamic loader, or one that is not glibc's, the command line finds out whether they use CUDA.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::pass_on;

/// The file of what a run has missed, as `os::run::MISSED` calls it.
const MISSED: &[u8] = b"/missed\0";
/// The file of programs that the command line looks into, as `os::run::FOREIGN` calls it.
const FOREIGN: &[u8] = b"/foreign\0";
/// `CUDARUN_CHECK_DIR` and `CUDARUN_CHECK_SPARE_DIR`
const FOLDER: &[u8] = b"CUDARUN_CHECK_DIR=";
const SPARE: &[u8] = b"CUDARUN_CHECK_SPARE_DIR=";
/// The file in memory for who can open no other, as `os::run::BOARD` calls it, with the bytes of a process's place and the
/// number of places.
const BOARD: &[u8] = b"/board\0";
const PLACE: usize = 256;
const PLACES: usize = 64;
/// `PT_INTERP`
const INTERPRETER: u32 = 3;

const ROOM: usize = libc::PATH_MAX as usize;

/// What a program is that nobody checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// It gains privileges.
    Privileged,
    /// No dynamic loader of glibc loads it.
    Foreign,
    /// Our files are out of its reach.
    Unreached,
}

/// The board of the run.
static SHARED: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Maps the board while it can be reached.
pub(crate) fn prepare() {
    let mut room = [0; ROOM];
    let folders = [SPARE, FOLDER].into_iter().filter_map(pass_on::kept);
    for folder in folders {
        let Some(path) = joined(&mut room, [folder, BOARD, b"", b""]) else {
            continue;
        };
        // SAFETY: the path is a C string; a new mapping at a place of the system's choice.
        let start = unsafe {
            let open = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            if open < 0 {
                continue;
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let bytes = PLACE * PLACES;
            let none = std::ptr::null_mut();
            let start = libc::mmap(none, bytes, access, libc::MAP_SHARED, open, 0);
            libc::close(open);
            start
        };
        if start != libc::MAP_FAILED {
            SHARED.store(start, Ordering::Release);
            return;
        }
    }
}

/// Leaves the name of a program that nobody will check.
pub(crate) fn look_at(path: &CStr) {
    // SAFETY: the place of this thread's own error number.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(what) = outside(path) {
        leave(path, what);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// The same of a program that is looked for in the folders of `PATH` if it is a bare name.
pub(crate) fn look_for(name: &CStr) {
    let bytes = name.to_bytes();
    if bytes.contains(&b'/') || bytes.is_empty() {
        return look_at(name);
    }
    // SAFETY: the name is a C string, and so is a value.
    let folders = unsafe {
        let value = libc::getenv(c"PATH".as_ptr());
        match value.is_null() {
            true => c"/bin:/usr/bin",
            false => CStr::from_ptr(value),
        }
    };
    for folder in folders.to_bytes().split(|byte| *byte == b':') {
        let mut room = [0; ROOM];
        let Some(path) = joined(&mut room, [folder, b"/", bytes, b"\0"]) else {
            continue;
        };
        // SAFETY: the path is a C string.
        if unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0 {
            return look_at(path);
        }
    }
}

/// Parts as one C string, if there is room; the last one has its zero byte.
fn joined<'a>(room: &'a mut [u8; ROOM], parts: [&[u8]; 4]) -> Option<&'a CStr> {
    let mut length = 0;
    for part in parts {
        room.get_mut(length..length + part.len())?
            .copy_from_slice(part);
        length += part.len();
    }
    CStr::from_bytes_until_nul(room).ok()
}

/// Whether what this process starts can reach our library and a folder of the run.
fn is_reached() -> bool {
    let (Some(library), Some(main)) = (pass_on::own_library(), pass_on::kept(FOLDER)) else {
        return true;
    };
    let may = |path: &CStr, mode: c_int| {
        // SAFETY: the path is a C string.
        unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) == 0 }
    };
    let mut room = [0; ROOM];
    if !joined(&mut room, [library, b"\0", b"", b""]).is_some_and(|path| may(path, libc::R_OK)) {
        return false;
    }
    let folders = std::iter::once(main).chain(pass_on::kept(SPARE));
    let mut folders = folders.map(|folder| {
        let mut room = [0; ROOM];
        let path = joined(&mut room, [folder, b"\0", b"", b""]);
        path.is_some_and(|path| may(path, libc::W_OK | libc::X_OK))
    });
    folders.any(|taken| taken)
}

fn outside(path: &CStr) -> Option<Outside> {
    if !is_reached() {
        return Some(Outside::Unreached);
    }
    // SAFETY: the calls get C strings, and room for what they give.
    unsafe {
        let mut file: libc::stat = std::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut file) != 0
            || file.st_mode & libc::S_IFMT != libc::S_IFREG
        {
            return None;
        }
        let user = file.st_mode & libc::S_ISUID != 0 && file.st_uid != libc::getuid();
        let group = libc::S_ISGID | libc::S_IXGRP;
        let group = file.st_mode & group == group && file.st_gid != libc::getgid();
        let capability = c"security.capability";
        let capable = libc::geteuid() != 0
            && libc::getxattr(path.as_ptr(), capability.as_ptr(), std::ptr::null_mut(), 0) > 0;
        let gains = user || group || capable;
        if gains && libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 {
            return Some(Outside::Privileged);
        }
        let open = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if open < 0 {
            return None;
        }
        let foreign = is_foreign(open);
        libc::close(open);
        foreign.then_some(Outside::Foreign)
    }
}

/// Whether a file is a 64-bit program that glibc's loader does not load.
///
/// Three fields of the ELF format by their offsets, where `image` reads them through `object`: the dynamic loader loads this
/// library into every process ahead of the program, also between `fork` and `exec`. So it allocates nothing, reads
/// no more of a file than these headers, and brings no crate along but libc.
fn is_foreign(file: c_int) -> bool {
    let read = |bytes: &mut [u8], at: u64| {
        let at = libc::off_t::try_from(at).unwrap_or(libc::off_t::MAX);
        // SAFETY: the buffer is valid for its length.
        let count = unsafe { libc::pread(file, bytes.as_mut_ptr().cast(), bytes.len(), at) };
        usize::try_from(count).unwrap_or(0)
    };
    let mut head = [0; 64];
    if read(&mut head, 0) < head.len() || !head.starts_with(b"\x7fELF\x02") {
        return false;
    }
    let wide = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let short = |bytes: &[u8]| bytes.try_into().map_or(0, u16::from_le_bytes);
    let (first, bytes, count) = (
        wide(&head[32..40]),
        short(&head[54..56]),
        short(&head[56..58]),
    );
    for index in 0..u64::from(count) {
        let mut part = [0; 56];
        if read(&mut part, first + index * u64::from(bytes)) < part.len() {
            return false;
        }
        if part[..4] == INTERPRETER.to_le_bytes() {
            let mut name = [0; 256];
            read(&mut name, wide(&part[8..16]));
            return !name.windows(9).any(|part| part == b"/ld-linux");
        }
    }
    true
}

/// Adds a line to a file of the run's folder.
fn leave(path: &CStr, what: Outside) {
    let Some(folder) = pass_on::kept(FOLDER) else {
        return;
    };
    let (file, before, behind): (&[u8], &[u8], &[u8]) = match what {
        Outside::Privileged => (
            MISSED,
            b"",
            b" gains privileges when it starts, so it ran unchecked, and so may have what it has started",
        ),
        Outside::Foreign => (FOREIGN, b"", b""),
        Outside::Unreached => (
            MISSED,
            b"files of cudarun-check are not within reach of another user or root folder, so this ran unchecked (install them where all may read them): ",
            b"",
        ),
    };
    let mut name = [0; ROOM];
    let Some(name) = joined(&mut name, [folder, file, b"", b""]) else {
        return;
    };
    // One write keeps the lines of several processes whole.
    let mut line = [0; ROOM];
    let text = path.to_bytes();
    let Some(all) = joined(&mut line, [before, text, behind, b"\n\0"]) else {
        return;
    };
    if !append(name, all) && what != Outside::Foreign {
        put_on_board(all.to_bytes());
    }
}

/// Adds a text to a file; false if it does not take the text.
fn append(file: &CStr, text: &CStr) -> bool {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    let bytes = text.to_bytes();
    // SAFETY: the calls get C strings and their lengths, and sets and times that live long enough. The signal is blocked
    // for this thread while it writes, and taken away: it would end a program whose files may not grow.
    unsafe {
        let open = libc::open(file.as_ptr(), flags, 0o600);
        if open < 0 {
            return false;
        }
        // Whoever has made it lets others add to it.
        libc::fchmod(open, 0o666);
        let mut only: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const only, &raw mut before);
        let written = libc::write(open, bytes.as_ptr().cast(), bytes.len());
        if written < 0 && *libc::__errno_location() == libc::EFBIG {
            let now: libc::timespec = std::mem::zeroed();
            libc::sigtimedwait(&raw const only, std::ptr::null_mut(), &raw const now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        libc::close(open);
        usize::try_from(written).is_ok_and(|written| written == bytes.len())
    }
}

/// Puts a line into this process's place.
fn put_on_board(line: &[u8]) {
    let start = SHARED.load(Ordering::Acquire);
    if start.is_null() {
        return;
    }
    let mut place = [b' '; PLACE];
    let length = line.len().min(PLACE - 1);
    place[..length].copy_from_slice(&line[..length]);
    place[PLACE - 1] = b'\n';
    let from = libc::iovec {
        iov_base: place.as_mut_ptr().cast(),
        iov_len: PLACE,
    };
    // SAFETY: the place lies in the mapping, which stays; the system writes it, and fails where this process would be
    // ended because somebody has cut the file short.
    unsafe {
        let number = libc::getpid() as usize % PLACES;
        let to = libc::iovec {
            iov_base: start.wrapping_byte_add(number * PLACE),
            iov_len: PLACE,
        };
        libc::process_vm_writev(libc::getpid(), &raw const from, 1, &raw const to, 1, 0);
    }
}
