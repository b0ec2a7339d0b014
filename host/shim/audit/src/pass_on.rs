//! What a process hands to a program that it starts: with whatever environment it does so, the variables that
//! led us here are in it.
//!
//! A script with `env -i`, or a program that builds the environment of its children itself, would lose them
//! otherwise, and nobody would know what is not checked. Variables that the new environment has are left as
//! they are, but for the loader's lists, which get our file in front.
//!
//! Limits: calls that libraries bind without a procedure linkage table, system calls that are made without the C library's
//! `syscall` (as Go does), and programs without a dynamic loader, which are named ([`crate::outside`]).

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use crate::mapped::Mapped;

/// What we set begins so.
const PREFIX: &[u8] = b"CUDARUN_";
/// Lists of the loader that name a file of ours.
const LISTS: [&[u8]; 2] = [AUDIT, b"LD_PRELOAD="];
const AUDIT: &[u8] = b"LD_AUDIT=";
/// What this library is called.
const OWN_NAME: &[u8] = b"/audit.so";
/// More variables than the command line sets.
const ROOM: usize = 32;

/// The variables, as `NAME=value`; of a list, only the element that is ours.
struct Kept {
    texts: [&'static CStr; ROOM],
    count: usize,
}

static KEPT: OnceLock<Kept> = OnceLock::new();

/// An environment: strings, and a null pointer behind the last one.
pub(crate) type Environment = *const *const c_char;

/// Copies the variables, before the program runs: it may overwrite them. The folder is that of our libraries.
///
/// # Safety
/// `environment` is one.
pub(crate) unsafe fn prepare(environment: Environment, folder: &CStr) {
    KEPT.get_or_init(|| {
        let mut kept = Kept {
            texts: [c""; ROOM],
            count: 0,
        };
        // SAFETY: the caller's condition.
        for text in unsafe { texts(environment) } {
            let Some((name, rest)) = ours(text.to_bytes(), folder.to_bytes()) else {
                continue;
            };
            if let (Some(room), Some(copy)) =
                (kept.texts.get_mut(kept.count), copy([name, rest, b""]))
            {
                *room = copy;
                kept.count += 1;
            }
        }
        kept
    });
}

/// The value of a variable of ours that begins with this text.
pub(crate) fn kept(prefix: &[u8]) -> Option<&'static [u8]> {
    let kept = KEPT.get()?;
    let mut texts = kept.texts[..kept.count].iter();
    texts.find_map(|text| text.to_bytes().strip_prefix(prefix))
}

/// The path of this library.
pub(crate) fn own_library() -> Option<&'static [u8]> {
    kept(AUDIT)
}

/// What of a variable has to be passed on, in two parts.
fn ours<'a>(text: &'a [u8], folder: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    if text.starts_with(PREFIX) {
        return Some((text, b""));
    }
    let list = LISTS.into_iter().find(|list| text.starts_with(list))?;
    let mut files = text[list.len()..].split(|byte| b": ".contains(byte));
    let ours = files.find(|file| match list {
        AUDIT => file.ends_with(OWN_NAME),
        _ => file.starts_with(folder),
    })?;
    Some((list, ours))
}

/// An environment with our variables: the one that is given, if it has them.
///
/// # Safety
/// `environment` is one, or null, which stands for an empty one.
pub(crate) unsafe fn extended(environment: Environment) -> Environment {
    let Some(kept) = KEPT.get() else {
        return environment;
    };
    let kept = &kept.texts[..kept.count];
    // SAFETY: the caller's condition, here and below.
    let given = || unsafe { texts(environment) };
    if kept.iter().all(|ours| given().any(|text| has(text, ours))) {
        return environment;
    }
    let Some(mut all) = Mapped::new(given().count() + kept.len() + 1) else {
        return environment;
    };
    for ours in kept {
        let name = name(ours.to_bytes());
        match given().find(|text| self::name(text.to_bytes()) == name) {
            None => all.push(ours.as_ptr()),
            Some(text) if has(text, ours) => all.push(text.as_ptr()),
            // A list without us.
            Some(text) => {
                let theirs = text.to_bytes().get(name.len() + 1..).unwrap_or_default();
                let joined = copy([ours.to_bytes(), b":", theirs]);
                all.push(joined.unwrap_or(text).as_ptr());
            }
        }
    }
    for text in given() {
        let known = |ours: &&CStr| name(ours.to_bytes()) == name(text.to_bytes());
        if !kept.iter().any(known) {
            all.push(text.as_ptr());
        }
    }
    all.finish()
}

/// Whether a variable is what we want it to be: of a list, that our file is in it; else, that it is there.
fn has(text: &'static CStr, ours: &'static CStr) -> bool {
    let (text, ours) = (text.to_bytes(), ours.to_bytes());
    let name = name(ours);
    if self::name(text) != name {
        return false;
    }
    let is_list = LISTS.iter().any(|list| ours.starts_with(list));
    let value = |text: &'static [u8]| text.get(name.len() + 1..).unwrap_or_default();
    let mut files = value(text).split(|byte| b": ".contains(byte));
    !is_list || files.any(|file| file == value(ours))
}

/// The name of a variable; the whole text, if it is none.
fn name(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'=');
    &text[..end.unwrap_or(text.len())]
}

/// A text that stays.
fn copy(parts: [&[u8]; 3]) -> Option<&'static CStr> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut room = Mapped::<u8>::new(length + 1)?;
    for byte in parts.iter().copied().flatten() {
        room.push(*byte);
    }
    CStr::from_bytes_until_nul(room.all()).ok()
}

/// The strings of an environment.
///
/// # Safety
/// It is one, or null.
unsafe fn texts(environment: Environment) -> impl Iterator<Item = &'static CStr> {
    let mut at = environment;
    std::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        // SAFETY: the caller's condition; the walk ends at the null pointer.
        unsafe {
            let text = *at;
            if text.is_null() {
                return None;
            }
            at = at.add(1);
            Some(CStr::from_ptr(text))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(texts: &[&'static CStr]) -> Environment {
        let all: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let all = [all, vec![std::ptr::null()]].concat();
        Box::leak(all.into_boxed_slice()).as_ptr()
    }

    fn extended(environment: Environment) -> (Environment, Vec<&'static CStr>) {
        // SAFETY: the tests make environments.
        let after = unsafe { super::extended(environment) };
        // SAFETY: as above.
        (after, unsafe { texts(after) }.collect())
    }

    #[test]
    fn what_led_us_here_is_passed_on() {
        let own = environment(&[
            c"PATH=/bin",
            c"LD_AUDIT=/x/lib/audit.so:/other.so",
            c"CUDARUN_CHECK_DIR=/tmp/1",
            c"LD_PRELOAD=/other.so",
        ]);
        // SAFETY: an environment.
        unsafe { prepare(own, c"/x/lib/") };
        // One that has everything stays where it is.
        let whole = environment(&[c"LD_AUDIT=/x/lib/audit.so", c"CUDARUN_CHECK_DIR=/tmp/2"]);
        assert_eq!(extended(whole).0, whole);
        assert_eq!(extended(own).0, own);
        let both = [c"LD_AUDIT=/x/lib/audit.so", c"CUDARUN_CHECK_DIR=/tmp/1"];
        assert_eq!(extended(std::ptr::null()).1, both);
        assert_eq!(extended(environment(&[])).1, both);
        let list = environment(&[c"A=1", c"LD_AUDIT=/other.so", c"odd"]);
        assert_eq!(
            extended(list).1,
            [
                c"LD_AUDIT=/x/lib/audit.so:/other.so",
                c"CUDARUN_CHECK_DIR=/tmp/1",
                c"A=1",
                c"odd"
            ]
        );
    }
}
