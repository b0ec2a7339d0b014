//! Where in the program's own PTX, and in its source, something happened in the rewritten text.

use ptx::ast::Module;
use simt::LaunchError;

use crate::log::Frame;

/// A line of a rewritten text as a line of the original.
///
/// The first piece of original text on the line decides; a line that is wholly inserted stands for
/// the original line that follows it.
pub(crate) fn original_line(rewritten: &str, line: u32) -> u32 {
    let skipped = (line as usize).saturating_sub(1);
    let lines = rewritten.split_inclusive('\n').take(skipped);
    let mut at: usize = lines.map(str::len).sum();
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
    let bodies = module
        .functions()
        .filter_map(|function| function.body.as_ref());
    for body in bodies {
        for (_, instruction) in body.instructions() {
            if module.line_column(instruction.span.start).0 == line
                && let Some(loc) = instruction.loc
            {
                let frames = module.inline_frames(body, loc);
                return frames.iter().map(crate::names::frame).collect();
            }
        }
    }
    Vec::new()
}

/// Puts `map` of every PTX line of an error in its place, and gives the first one of them.
pub(crate) fn translate(error: &mut LaunchError, map: impl Fn(u32) -> u32) -> Option<u32> {
    let lines: Vec<&mut u32> = match error {
        LaunchError::IllegalAddress { at, .. }
        | LaunchError::Misaligned { at, .. }
        | LaunchError::InvalidProgramCounter { at, .. }
        | LaunchError::InvalidTexture { at, .. }
        | LaunchError::InvalidSurface { at, .. }
        | LaunchError::OutsideSurface { at, .. }
        | LaunchError::StackOverflow { at }
        | LaunchError::Trap { at }
        | LaunchError::Assert { at, .. } => vec![&mut at.line],
        LaunchError::Deadlock { waiting, .. } => {
            waiting.iter_mut().map(|group| &mut group.at.line).collect()
        }
        LaunchError::Timeout { running, .. } => running.iter_mut().map(|at| &mut at.line).collect(),
        LaunchError::Unsupported { line, .. } => vec![line],
        LaunchError::Interrupted { .. }
        | LaunchError::UnknownModule
        | LaunchError::UnknownKernel(_)
        | LaunchError::InvalidConfiguration(_)
        | LaunchError::OutOfResources(_)
        | LaunchError::CooperativeTooLarge(_) => Vec::new(),
    };
    let mut first = None;
    for line in lines.into_iter().filter(|line| **line != 0) {
        *line = map(*line);
        first.get_or_insert(*line);
    }
    first
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
    }

    #[test]
    fn a_launch_error_speaks_of_the_original() {
        let mut error = LaunchError::Unsupported {
            kernel: "k".into(),
            what: "tcgen05.ld".into(),
            line: 40,
        };
        assert_eq!(translate(&mut error, |line| line / 10), Some(4));
        assert!(error.to_string().contains("line 4"), "{error}");
    }
}
