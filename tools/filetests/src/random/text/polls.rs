//! Loops that wait for a flag, and what else goes where they look.

use std::collections::BTreeSet;

use super::super::kernel::{Access, AccessKind, AccessOrder, Target};
use super::{Text, Writer};

impl Writer {
    /// Looks at a flag until it is set, so many times at most; `before` that loop, too.
    pub(super) fn poll(&mut self, access: &Access, tries: u32, before: bool) {
        let (again, seen) = (self.label(), self.label());
        if before {
            self.look(access);
            self.line(format!("@%got bra {seen};"));
        }
        self.line("mov.u32 %n, 0;");
        self.target(&again);
        let line = self.look(access);
        let weak = access.order == AccessOrder::Plain && access.kind == AccessKind::Load;
        if !weak && !matches!(access.kind, AccessKind::Atom("cas" | "exch")) {
            self.text.waits.insert(line);
        }
        self.again(tries, &again);
        if before {
            self.target(&seen);
        }
    }

    /// Looks at a flag. Gives the line that does.
    fn look(&mut self, access: &Access) -> u32 {
        self.access(access, "");
        let line = self.text.lines.len() as u32;
        if access.target.bytes == 8 {
            self.line("cvt.u32.u64 %v, %w;");
        }
        self.line("setp.ne.u32 %got, %v, 0;");
        line
    }

    /// Jumps back unless it has got what it waits for, so many times at most.
    pub(super) fn again(&mut self, tries: u32, again: &str) {
        self.line("add.u32 %n, %n, 1;");
        self.line(format!("setp.lt.u32 %q, %n, {tries};"));
        self.line("not.pred %p, %got;");
        self.line("and.pred %q, %q, %p;");
        self.line(format!("@%q bra {again};"));
    }
}

impl Text {
    /// Every line that accesses what a loop of its function waits for, whether or not a run comes to the loop.
    pub(super) fn waited_for(&self) -> BTreeSet<u32> {
        let functions: Vec<usize> = self
            .lines
            .iter()
            .scan(0, |number, line| {
                *number += usize::from(line.contains(".entry") || line.contains(".func"));
                Some(*number)
            })
            .collect();
        let target = |line: u32, target: &Target| {
            // A generic address is another way to write the same.
            let target = Target {
                generic: false,
                ..*target
            };
            (functions[line as usize - 1], target)
        };
        let targets = || self.targets.iter().map(|((line, _), at)| (*line, at));
        let waited: Vec<_> = targets()
            .filter(|(line, _)| self.waits.contains(line))
            .map(|(line, at)| target(line, at))
            .collect();
        targets()
            .filter(|&(line, at)| waited.contains(&target(line, at)))
            .map(|(line, _)| line)
            .collect()
    }
}
