//! The mbarriers, and what is done with those of several phases.
//!
//! For each of these a thread has two predicates: `%due` while it may arrive in the current phase,
//! `%sees` while it has to wait for it; the parity of the phase that it waits for; and the state that
//! its last arrival gave.

use super::super::kernel::{Act, Entry, Kernel, LANES, Role, Scope, Strength};
use super::Writer;

impl Writer {
    /// Makes the mbarriers.
    pub(super) fn gates(&mut self, kernel: &Kernel) {
        let (one, several) = (
            kernel.acts().iter().any(|act| act.is_gate()),
            kernel.used_gates(),
        );
        if !one && several.is_empty() {
            return;
        }
        let mut objects = Vec::new();
        if one {
            self.line(".shared .align 8 .b8 gate[8];");
            objects.push(("gate".to_owned(), 2));
        }
        for &gate in &several {
            let name = name(gate);
            self.line(format!(".shared .align 8 .b8 {name}[8];"));
            objects.push((name, kernel.expected(&kernel.gates[gate])));
        }
        self.line("mov.u32 %a, %tid.x;");
        self.line("setp.eq.u32 %p, %a, 0;");
        for (name, arrivals) in objects {
            self.line(format!(
                "@%p mbarrier.init.shared.b64 [{name}], {arrivals};"
            ));
        }
        if kernel.sends() {
            self.line("mov.u64 %x, gate;");
            self.line("mov.u32 %a, %cluster_ctarank;");
            self.line("xor.b32 %a, %a, 1;");
            self.line("mapa.shared::cluster.u64 %far_gate, %x, %a;");
        }
        match (kernel.early, kernel.sends()) {
            (true, _) => {}
            (false, false) => self.line("bar.sync 0;"),
            (false, true) => {
                self.line("barrier.cluster.arrive;");
                self.line("barrier.cluster.wait;");
            }
        }
    }

    /// Who may arrive at which mbarrier of several phases, and who waits there, at first. Needs the
    /// roles.
    pub(super) fn members(&mut self, kernel: &Kernel) {
        let used = kernel.used_gates();
        if used.is_empty() {
            return;
        }
        self.line(".reg .pred %due<2>, %sees<2>, %first<2>;");
        self.line(".reg .b32 %parity<2>;");
        self.line(".reg .b64 %state<2>;");
        for &number in &used {
            self.line(format!("mov.u32 %parity{number}, 0;"));
            self.set("sees", number, false);
        }
        for &number in &used {
            let gate = kernel.gates[number];
            let Role { warps, lanes, .. } = kernel.roles[gate.role];
            let first = warps.trailing_zeros() * LANES + lanes.trailing_zeros();
            self.line("mov.u32 %a, %tid.x;");
            self.line(format!("setp.eq.u32 %first{number}, %a, {first};"));
            match gate.begins {
                true => self.line(format!("mov.pred %due{number}, %role{};", gate.role)),
                false => {
                    self.set("due", number, false);
                    let (waits, role) = (gate.then, gate.role);
                    self.line(format!("mov.pred %sees{waits}, %role{role};"));
                }
            }
        }
    }

    fn set(&mut self, what: &str, gate: usize, to: bool) {
        let compare = if to { "eq" } else { "ne" };
        self.line(format!("setp.{compare}.u32 %{what}{gate}, %one, 1;"));
    }

    pub(super) fn enter(&mut self, gate: usize, how: &Entry, strength: Strength) {
        let (share, then) = (self.gates[gate].share, self.gates[gate].then);
        let skip = self.label();
        self.line(format!("@!%due{gate} bra {skip};"));
        self.set("due", gate, false);
        self.set("sees", then, true);
        match how {
            Entry::Whole => self.arrive(gate, "arrive", share, strength, ""),
            Entry::OneByOne => {
                for _ in 0..share {
                    self.arrive(gate, "arrive", 1, strength, "");
                }
            }
            Entry::NoComplete => {
                for _ in 1..share {
                    self.arrive(gate, "arrive.noComplete", 1, Strength::Plain, "");
                }
                self.arrive(gate, "arrive", 1, strength, "");
            }
            Entry::Drop => {
                self.line(format!("mov.pred %sees{then}, %first{gate};"));
                self.arrive(gate, "arrive", share, strength, &format!("@%first{gate} "));
                self.arrive(
                    gate,
                    "arrive_drop",
                    share,
                    strength,
                    &format!("@!%first{gate} "),
                );
            }
            Entry::Copies => {
                let name = name(gate);
                // Its own arrival is still missing, so that the phase goes on until the copies are
                // there.
                let left = match share > 1 || then != gate {
                    true => {
                        self.line(format!(
                            "cp.async.mbarrier.arrive.noinc.shared.b64 [{name}];"
                        ));
                        share - 1
                    }
                    false => {
                        self.line(format!("cp.async.mbarrier.arrive.shared.b64 [{name}];"));
                        share
                    }
                };
                if left > 0 {
                    self.arrive(gate, "arrive", left, strength, "");
                }
            }
            Entry::Bulk { from, to, apart } => {
                let (others, end, name) = (self.label(), self.label(), name(gate));
                let bytes = from.bytes;
                self.line(format!("@!%first{gate} bra {others};"));
                let left = match apart {
                    true => {
                        self.line(format!(
                            "mbarrier.expect_tx.relaxed.cta.shared.b64 [{name}], {bytes};"
                        ));
                        share
                    }
                    false => {
                        self.line(format!(
                            "mbarrier.arrive.expect_tx{}.shared.b64 %state{gate}, [{name}], {bytes};",
                            order(strength, "release")
                        ));
                        share - 1
                    }
                };
                self.bulk_to(from, to, None, &name, "");
                if left > 0 {
                    self.arrive(gate, "arrive", left, strength, "");
                }
                self.line(format!("bra {end};"));
                self.target(&others);
                self.arrive(gate, "arrive", share, strength, "");
                self.target(&end);
            }
        }
        self.target(&skip);
    }

    /// So many arrivals by one instruction.
    fn arrive(&mut self, gate: usize, what: &str, count: u32, strength: Strength, guard: &str) {
        let how = order(strength, "release");
        // `.noComplete` wants its count.
        let count = match count > 1 || what == "arrive.noComplete" {
            true => format!(", {count}"),
            false => String::new(),
        };
        let name = name(gate);
        self.line(format!(
            "{guard}mbarrier.{what}{how}.shared.b64 %state{gate}, [{name}]{count};"
        ));
    }

    pub(super) fn leave(&mut self, act: &Act) {
        let Act::Leave {
            gate,
            state,
            suspends,
            strength,
            tries,
        } = *act
        else {
            return;
        };
        let (skip, again) = (self.label(), self.label());
        self.line("setp.ne.u32 %got, %one, 1;");
        self.line(format!("@!%sees{gate} bra {skip};"));
        self.set("sees", gate, false);
        self.line("mov.u32 %n, 0;");
        self.target(&again);
        let wait = if suspends { "try_wait" } else { "test_wait" };
        let (parity, phase) = match state {
            true => ("", "state"),
            false => (".parity", "parity"),
        };
        let (how, name) = (order(strength, "acquire"), name(gate));
        self.line(format!(
            "mbarrier.{wait}{parity}{how}.shared.b64 %got, [{name}], %{phase}{gate};"
        ));
        self.again(tries, &again);
        self.line(format!("@!%got bra {skip};"));
        self.line(format!("xor.b32 %parity{gate}, %parity{gate}, 1;"));
        self.set("due", self.gates[gate].then, true);
        self.target(&skip);
    }
}

fn name(gate: usize) -> String {
    format!("phases{gate}")
}

fn order(strength: Strength, default: &str) -> String {
    match strength {
        Strength::Plain => String::new(),
        Strength::Cluster => format!(".{default}.{}", Scope::Cluster.suffix()),
        Strength::Relaxed(scope) => format!(".relaxed.{}", scope.suffix()),
    }
}
