//! Locks, and stores into the other CTA of a cluster.

use super::super::kernel::{Access, AccessKind, Act, Target};
use super::Writer;

impl Writer {
    /// Tries to take a lock, or gives it back.
    pub(super) fn lock(&mut self, act: &Act) {
        match act {
            Act::Take { access, tries } => {
                let again = self.label();
                self.line("mov.u32 %n, 0;");
                self.target(&again);
                self.swap(access, 0, 1, "");
                self.text.takes.insert(self.text.lines.len() as u32);
                self.line("setp.eq.u32 %got, %v, 0;");
                self.again(*tries, &again);
                self.line("mov.pred %holds, %got;");
            }
            Act::Give(access) => {
                self.swap(access, 1, 0, "@%holds ");
                self.text.gives.insert(self.text.lines.len() as u32);
                self.line("setp.ne.u32 %holds, %one, 1;");
            }
            _ => {}
        }
    }

    /// Writes a value into the word of a lock, of which another is expected.
    fn swap(&mut self, access: &Access, expected: u32, new: u32, guard: &str) {
        let order = super::order(access.order);
        let address = format!("[%global0+{}]", access.target.offset);
        self.line(match access.kind {
            AccessKind::Atom("cas") => {
                format!("{guard}atom{order}.global.cas.b32 %v, {address}, {expected}, {new};")
            }
            AccessKind::Store => format!("{guard}st{order}.global.u32 {address}, {new};"),
            _ => format!("{guard}atom{order}.global.exch.b32 %v, {address}, {new};"),
        });
        self.goes(&access.target);
    }

    /// The mbarrier of the own CTA expects what the other CTA stores, and this stores there.
    pub(super) fn send(&mut self, to: &Target, op: Option<&str>, guard: &str) {
        let bytes = to.bytes;
        self.line(format!(
            "{guard}mbarrier.arrive.expect_tx.shared.b64 %t, [gate], {bytes};"
        ));
        let row = if to.by_lane { bytes } else { 0 };
        let what = match op {
            None => "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32".to_owned(),
            Some(op) => format!(
                "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{}",
                super::atomic_type(op, 32)
            ),
        };
        let address = format!("[%far{row}+{}]", to.offset);
        self.line(format!("{guard}{what} {address}, %one, [%far_gate];"));
        self.goes(to);
    }
}
