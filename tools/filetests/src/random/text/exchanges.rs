//! Exchanges whose result nothing reads.

use std::collections::{BTreeMap, BTreeSet};

use super::Text;

impl Text {
    /// The lines of them: no line of their function reads the register that they write.
    pub(super) fn unread_exchanges(&self) -> BTreeSet<u32> {
        let mut function = 0;
        let mut read: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        let mut exchanges = Vec::new();
        for (line, number) in self.lines.iter().zip(1..) {
            function += usize::from(line.contains(".entry") || line.contains(".func"));
            let (written, others) = registers(line);
            read.entry(function).or_default().extend(others);
            if line.contains("atom.") && line.contains(".exch.") {
                exchanges.extend(written.map(|register| (number, function, register)));
            }
        }
        let unread = exchanges
            .into_iter()
            .filter(|(_, function, register)| !read[function].contains(register));
        unread.map(|(number, ..)| number).collect()
    }
}

/// The register that an atomic of a line writes, and all others that the line names.
fn registers(line: &str) -> (Option<&str>, Vec<&str>) {
    let word = |at: usize| {
        let name = &line[at..];
        let end = name[1..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        &name[..end.map_or(name.len(), |end| end + 1)]
    };
    let mut all = line.match_indices('%').map(|(at, _)| at);
    let atomic = line.find("atom.");
    let loads = line.find("ld.");
    // What stands behind the opcode of an atomic or a load, up to the address, is written.
    let written = |at: usize| {
        let begin = atomic.or(loads);
        begin.is_some_and(|begin| at > begin) && line.find('[').is_some_and(|end| at < end)
    };
    let first = all.clone().find(|&at| atomic.is_some() && written(at));
    let declared = line.contains(".reg");
    let others = all.by_ref().filter(|&at| !declared && !written(at));
    (first.map(word), others.map(word).collect())
}
