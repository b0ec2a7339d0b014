//! Where in the program's own PTX, and in its source, something happened in the rewritten text.

use ptx::ast::Module;

use crate::log::Frame;

/// A line of a rewritten text as a line of the original.
///
/// The first piece of original text on the line decides; a line that is wholly inserted stands for
/// the original line that follows it.
pub(crate) fn original_line(rewritten: &str, line: u32) -> u32 {
    let skipped = (line as usize).saturating_sub(1);
    let lines = rewritten.split_inclusive('\n').take(skipped);
    let mut at: usize = lines.map(str::len).sum();
    if let Some((original, lines)) = rewrite::edit::copied_lines(rewritten, at) {
        let own = rewrite::erase(rewritten);
        let before = own[..original as usize].matches('\n').count();
        return (before + lines) as u32 + 1;
    }
    if let Some(open) = rewritten[..at].rfind(rewrite::edit::OPEN)
        && let Some(length) = rewritten[open..].find(rewrite::edit::CLOSE)
        && open + length >= at
    {
        // The line begins inside an insertion.
        at = open + length + rewrite::edit::CLOSE.len();
    }
    let before = rewrite::erase(&rewritten[..at]);
    before.matches('\n').count() as u32 + 1
}

/// The source of the first instruction on a line of a module, innermost inlined function first.
pub(crate) fn frames(module: &Module, line: u32) -> Vec<Frame> {
    function_and_frames(module, line).map_or_else(Vec::new, |(_, frames)| frames)
}

/// The same with the function that it stands in, mangled.
pub(crate) fn function_and_frames(module: &Module, line: u32) -> Option<(String, Vec<Frame>)> {
    let bodies = module
        .functions()
        .filter_map(|function| Some((&function.name, function.body.as_ref()?)));
    for (name, body) in bodies {
        for (_, instruction) in body.instructions() {
            if module.line_column(instruction.span.start).0 == line
                && let Some(loc) = instruction.loc
            {
                let frames = module.inline_frames(body, loc);
                let frames = frames.iter().map(crate::names::frame).collect();
                return Some((name.to_string(), frames));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_original() {
        // Lines of the original: one, two, three.
        let text = "one\n/*+crc*/\nadded\n/*-crc*/two /*+crc*/\nx\n/*-crc*/\nthree\n";
        assert_eq!(rewrite::erase(text), "one\ntwo \nthree\n");
        let original: Vec<u32> = (1..=8).map(|line| original_line(text, line)).collect();
        assert_eq!(original, [1, 2, 2, 2, 2, 2, 3, 4]);
        assert_eq!(original_line("a\nb\n", 2), 2);
        assert_eq!(original_line("", 1), 1);
        let text = "a\nb\nc\n/*+crc*/\n/*=crc 2*/b\nc\n/*-crc*/d\n";
        let original: Vec<u32> = (1..=7).map(|line| original_line(text, line)).collect();
        assert_eq!(original, [1, 2, 3, 4, 4, 3, 4]);
    }
}
