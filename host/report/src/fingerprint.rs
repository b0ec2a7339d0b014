//! A name for a race that other edits do not move: no line numbers, no addresses.

use crate::model::Access;
use crate::names;
use crate::source::Sources;

/// `(id, fingerprint)` of a race.
///
/// Hashed are the rule and, for each side in an order that does not depend on the run, the kernel
/// or function without template arguments, the file's name, and the text of the source line (the
/// opcode where there is none), and what the access does.
pub(crate) fn of(rule: &str, accesses: &[Access; 2], sources: &Sources) -> (String, String) {
    let mut sides: Vec<String> = accesses.iter().map(|side| of_side(side, sources)).collect();
    sides.sort();
    let hash = fnv(&format!("{rule}\n{}\n{}", sides[0], sides[1]));
    (
        format!("CR-{:08x}", hash >> 32),
        format!("fnv1a:{hash:016x}"),
    )
}

fn of_side(access: &Access, sources: &Sources) -> String {
    let opcode = access
        .ptx
        .text
        .split_whitespace()
        .find(|word| !word.starts_with('@'))
        .unwrap_or_default();
    let Some(frame) = access.shown() else {
        return format!(
            "{}\n\n{opcode}\n{}",
            names::base(&access.function),
            access.op
        );
    };
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    let line = sources.line(&frame.file, frame.line);
    let line = line.map_or_else(
        || opcode.to_owned(),
        |text| text.split_whitespace().collect::<Vec<_>>().join(" "),
    );
    format!(
        "{}\n{file}\n{line}\n{}",
        names::base(&frame.function),
        access.op
    )
}

/// 64-bit FNV-1a: short, stable over versions and machines. Nobody attacks a fingerprint.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of the algorithm's authors.
        assert_eq!(fnv(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv("foobar"), 0x8594_4171_f739_67e8);
    }
}
