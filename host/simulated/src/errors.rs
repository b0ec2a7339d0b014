//! Errors of launches in the lines of the program's own PTX.

use simt::LaunchError;

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
        LaunchError::Deadlock {
            waiting: groups, ..
        }
        | LaunchError::Interrupted {
            threads: groups, ..
        } => groups.iter_mut().map(|group| &mut group.at.line).collect(),
        LaunchError::Timeout { running, .. } => running.iter_mut().map(|at| &mut at.line).collect(),
        LaunchError::Unsupported { line, .. } => vec![line],
        LaunchError::UnknownModule
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
