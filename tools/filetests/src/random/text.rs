//! A random kernel as PTX, one instruction per line.

mod functions;
mod gates;
mod locks;
mod polls;

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::{
    Access, AccessKind, AccessOrder, Act, Call, Gate, HOT, Kernel, Role, Step, Target, Whole,
};

/// A kernel's text, and where its accesses stand in it.
#[derive(Clone, Debug)]
pub struct Text {
    /// The lines.
    pub lines: Vec<String>,
    /// Where the access of a line goes, to global memory and to shared; lines count from 1.
    targets: BTreeMap<(u32, bool), Target>,
    /// Lines of accesses to what a loop of the same function waits for: of strong loads, and of atomics but swaps,
    /// that decide whether a loop which contains them ends, and of others to the same place.
    pub waits: BTreeSet<u32>,
    /// Lines that try to take a lock.
    pub takes: BTreeSet<u32>,
    /// Lines that give one back.
    pub gives: BTreeSet<u32>,
    /// Lines of `cp.async.mbarrier.arrive`.
    pub copies_arrive: BTreeSet<u32>,
}

/// The name of the kernel, whose only parameter is the address of its global memory. Those beside it have
/// a number behind that.
pub const ENTRY: &str = "k";

/// Writes a kernel's module down.
pub fn write(kernel: &Kernel) -> Text {
    let mut text = Text {
        lines: Vec::new(),
        targets: BTreeMap::new(),
        waits: BTreeSet::new(),
        takes: BTreeSet::new(),
        gives: BTreeSet::new(),
        copies_arrive: BTreeSet::new(),
    };
    for line in [".version 8.6", ".target sm_90", ".address_size 64", ""] {
        text.lines.push(line.to_owned());
    }
    for (number, other) in kernel.beside.iter().enumerate() {
        text = entry(other, &format!("{ENTRY}{number}"), text);
    }
    let mut text = entry(kernel, ENTRY, text);
    text.waits = text.waited_for();
    let lines = 1..=text.lines.len() as u32;
    text.copies_arrive = lines
        .filter(|&line| text.has(line, "cp.async.mbarrier.arrive"))
        .collect();
    text
}

/// Adds a kernel of a name, and its functions.
fn entry(kernel: &Kernel, name: &str, text: Text) -> Text {
    let mut writer = Writer {
        text,
        entry: name.to_owned(),
        called: 0,
        labels: 0,
        threads: kernel.threads(),
        gates: kernel.gates.clone(),
    };
    writer.functions(kernel);
    writer.head(kernel);
    writer.steps(&kernel.steps);
    if kernel.reaches_far() {
        // Orders nothing.
        writer.line("barrier.cluster.arrive.relaxed;");
        writer.line("barrier.cluster.wait;");
    }
    writer.line("ret;");
    writer.text.lines.push("}".to_owned());
    writer.text
}

impl Text {
    /// Where the access of a line to one of the memories goes.
    pub fn target_at(&self, line: u32, shared: bool) -> Option<&Target> {
        self.targets.get(&(line, shared))
    }

    /// Whether a line is an asynchronous copy.
    pub fn is_copy(&self, line: u32) -> bool {
        ["cp.async.ca", "st.async", "red.async"]
            .iter()
            .any(|opcode| self.has(line, opcode))
            || self.is_bulk(line)
    }

    /// Whether a line is a bulk copy.
    pub fn is_bulk(&self, line: u32) -> bool {
        self.has(line, "async.bulk")
    }

    fn has(&self, line: u32, opcode: &str) -> bool {
        let line = line
            .checked_sub(1)
            .and_then(|at| self.lines.get(at as usize));
        line.is_some_and(|line| line.contains(opcode))
    }

    /// All of it.
    pub fn whole(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

struct Writer {
    text: Text,
    entry: String,
    /// Functions called so far.
    called: usize,
    labels: u32,
    threads: u32,
    gates: Vec<Gate>,
}

impl Writer {
    fn line(&mut self, text: impl AsRef<str>) {
        self.text.lines.push(format!("    {}", text.as_ref()));
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    fn target(&mut self, label: &str) {
        self.text.lines.push(format!("{label}:"));
    }

    fn head(&mut self, kernel: &Kernel) {
        let entry = format!(".visible .entry {}(.param .u64 memory)", self.entry);
        self.text.lines.push(entry);
        if kernel.clusters {
            self.text.lines.push(".reqnctapercluster 2".to_owned());
        }
        self.text.lines.push("{".to_owned());
        let acts = kernel.acts();
        let targets = || acts.iter().flat_map(|act| act.targets()).copied();
        let shared = targets().any(|target| target.shared);
        if shared {
            let bulk = acts.iter().any(|act| act.is_bulk());
            let align = if bulk { 16 } else { 8 };
            self.line(format!(".shared .align {align} .b8 tile[{HOT}];"));
        }
        self.registers();
        if shared {
            self.line("mov.u64 %shared0, tile;");
        }
        self.bases(&acts);
        self.gates(kernel);
        let used = kernel.used_roles();
        for (number, role) in kernel.roles.iter().enumerate() {
            if !used.contains(&number) {
                continue;
            }
            let Role { ctas, warps, lanes } = role;
            self.line(format!("shr.u32 %a, {ctas}, %cta;"));
            self.line(format!("shr.u32 %b, {warps}, %warp;"));
            self.line("and.b32 %a, %a, %b;");
            self.line(format!("shr.u32 %b, {lanes}, %lane;"));
            self.line("and.b32 %a, %a, %b;");
            self.line("and.b32 %a, %a, 1;");
            self.line(format!("setp.ne.u32 %role{number}, %a, 0;"));
        }
        self.members(kernel);
    }

    /// Declares the registers of a kernel or a function, and says who executes it.
    fn registers(&mut self) {
        self.line(".reg .pred %p, %q, %got, %holds, %more, %role<10>;");
        self.line(".reg .b32 %cta, %warp, %lane, %a, %b, %n, %one, %v, %u, %round<4>;");
        self.line(".reg .b16 %half, %one16;");
        self.line(".reg .b64 %global<17>, %shared<17>, %generic<17>, %x, %wide, %w, %t;");
        self.line(".reg .b64 %far<17>, %there<17>, %far_gate, %target, %methods;");
        self.line("ld.param.u64 %global0, [memory];");
        self.line("mov.u32 %a, %tid.x;");
        self.line("shr.u32 %warp, %a, 5;");
        self.line("and.b32 %lane, %a, 31;");
        self.line("mov.u32 %cta, %ctaid.x;");
        self.line("mov.u32 %one, 1;");
        self.line("mov.u16 %one16, 1;");
        self.line("mov.u64 %wide, 1;");
        self.line("setp.ne.u32 %got, %one, 1;");
    }

    /// The addresses that acts begin with; `%global0` and `%shared0` are there.
    fn bases(&mut self, acts: &[&Act]) {
        let targets: Vec<&Target> = acts.iter().flat_map(|act| act.targets()).collect();
        let shared = targets.iter().any(|target| target.shared);
        let far = targets.iter().any(|target| target.far);
        if shared {
            self.line("cvta.shared.u64 %generic0, %shared0;");
        }
        if far {
            self.line("mov.u32 %a, %cluster_ctarank;");
            self.line("xor.b32 %a, %a, 1;");
            self.line("mapa.shared::cluster.u64 %far0, %shared0, %a;");
            self.line("mapa.u64 %there0, %generic0, %a;");
        }
        for row in [1, 2, 4, 8, 16] {
            let by_lane = |target: &&Target| target.by_lane && target.bytes * target.vector == row;
            if !targets.iter().any(by_lane) {
                continue;
            }
            self.line(format!("mul.wide.u32 %x, %lane, {row};"));
            self.line(format!("add.s64 %global{row}, %global0, %x;"));
            if shared {
                self.line(format!("add.s64 %shared{row}, %shared0, %x;"));
                self.line(format!("add.s64 %generic{row}, %generic0, %x;"));
            }
            if far {
                self.line(format!("add.s64 %far{row}, %far0, %x;"));
                self.line(format!("add.s64 %there{row}, %there0, %x;"));
            }
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Acts {
                role,
                branch,
                acts,
                others,
                call,
            } => {
                let inline = *call == Call::Inline;
                let apart =
                    *branch || !inline || !others.is_empty() || acts.iter().any(Act::needs_branch);
                if !apart {
                    for act in acts {
                        self.act(act, &format!("@%role{role} "));
                    }
                    return;
                }
                let (skip, end) = (self.label(), self.label());
                self.line(format!("@!%role{role} bra {skip};"));
                match call {
                    Call::Inline => acts.iter().for_each(|act| self.act(act, "")),
                    _ => self.call(*call, acts),
                }
                if others.is_empty() {
                    self.target(&skip);
                    return;
                }
                self.line(format!("bra {end};"));
                self.target(&skip);
                others.iter().for_each(|act| self.act(act, ""));
                self.target(&end);
            }
            Step::Barrier(Whole::Bar) => self.line("bar.sync 0;"),
            Step::Barrier(Whole::Unaligned) => self.line("barrier.cta.sync 0;"),
            Step::Barrier(Whole::Reduce) => self.line("bar.red.popc.u32 %v, 0, %got;"),
            Step::Named { id, sync, arrive } => {
                let existing = (1 << (self.threads / 32)) - 1;
                let (sync, arrive) = (sync & existing, arrive & !sync & existing);
                let count = 32 * (sync | arrive).count_ones();
                for (what, warps) in [("sync", sync), ("arrive", arrive)] {
                    if warps != 0 {
                        let skip = self.bit(warps, "%warp");
                        self.line(format!("barrier.cta.{what} {id}, {count};"));
                        self.target(&skip);
                    }
                }
            }
            Step::WarpBarrier { mask, register } => {
                let skip = (*mask != u32::MAX).then(|| self.bit(*mask, "%lane"));
                match register {
                    true => {
                        self.line(format!("mov.u32 %b, {mask};"));
                        self.line("bar.warp.sync %b;");
                    }
                    false => self.line(format!("bar.warp.sync {mask};")),
                }
                if let Some(skip) = skip {
                    self.target(&skip);
                }
            }
            Step::ClusterArrive { relaxed: true } => self.line("barrier.cluster.arrive.relaxed;"),
            Step::ClusterArrive { relaxed: false } => self.line("barrier.cluster.arrive;"),
            Step::ClusterWait => self.line("barrier.cluster.wait;"),
            Step::Grid => self.grid(),
            Step::Loop { times, steps } => {
                let again = self.label();
                // Loops do not nest, so that one counter is enough.
                self.line("mov.u32 %round0, 0;");
                self.target(&again);
                self.steps(steps);
                self.line("add.u32 %round0, %round0, 1;");
                self.line(format!("setp.lt.u32 %more, %round0, {times};"));
                self.line(format!("@%more bra {again};"));
            }
        }
    }

    /// A barrier of the grid, as nvcc compiles that of cooperative groups: every register is written
    /// once, and declared here, because there may be several barriers.
    fn grid(&mut self) {
        let (spin, joined) = (self.label(), self.label());
        let n = self.labels;
        self.line(format!(".reg .pred %others{n}, %first{n}, %same{n};"));
        self.line(format!(".reg .b32 %old{n}, %now{n}, %flips{n};"));
        self.line(format!(".reg .b32 %env{n}_<2>, %adds{n}_<2>;"));
        self.line(format!(".reg .b64 %half{n}_<2>, %ws{n};"));
        for (half, special) in ["envreg2", "envreg1"].into_iter().enumerate() {
            self.line(format!("mov.u32 %env{n}_{half}, %{special};"));
            self.line(format!("cvt.u64.u32 %half{n}_{half}, %env{n}_{half};"));
        }
        self.line(format!("bfi.b64 %ws{n}, %half{n}_1, %half{n}_0, 32, 32;"));
        self.line("barrier.sync 0;");
        let thread = self.total("tid", "add");
        self.line(format!("setp.ne.u32 %others{n}, {thread}, 0;"));
        self.line(format!("@%others{n} bra {joined};"));
        let ctas = self.total("nctaid", "mul.lo");
        let cta = self.total("ctaid", "add");
        self.line(format!("setp.eq.u32 %first{n}, {cta}, 0;"));
        self.line(format!("sub.s32 %adds{n}_0, -2147483647, {ctas};"));
        self.line(format!("selp.b32 %adds{n}_1, %adds{n}_0, 1, %first{n};"));
        self.line(format!(
            "atom.add.release.gpu.u32 %old{n}, [%ws{n}+4], %adds{n}_1;"
        ));
        self.target(&spin);
        self.line(format!("ld.acquire.gpu.u32 %now{n}, [%ws{n}+4];"));
        self.line(format!("xor.b32 %flips{n}, %now{n}, %old{n};"));
        self.line(format!("setp.gt.s32 %same{n}, %flips{n}, -1;"));
        self.line(format!("@%same{n} bra {spin};"));
        self.target(&joined);
        self.line("barrier.sync 0;");
    }

    /// The three parts of a special register added or multiplied, in a new register.
    fn total(&mut self, special: &str, operation: &str) -> String {
        let part = |axis: &str| format!("%{special}_{axis}{}", self.labels);
        let [x, y, z, xy, xyz] = ["x", "y", "z", "xy", "xyz"].map(part);
        self.line(format!(".reg .b32 {x}, {y}, {z}, {xy}, {xyz};"));
        for (register, axis) in [(&x, "x"), (&y, "y"), (&z, "z")] {
            self.line(format!("mov.u32 {register}, %{special}.{axis};"));
        }
        self.line(format!("{operation}.s32 {xy}, {x}, {y};"));
        self.line(format!("{operation}.s32 {xyz}, {xy}, {z};"));
        xyz
    }

    /// Jumps to the label it gives back unless a bit of `mask` is set.
    fn bit(&mut self, mask: u32, number: &str) -> String {
        let skip = self.label();
        self.line(format!("shr.u32 %a, {mask}, {number};"));
        self.line("and.b32 %a, %a, 1;");
        self.line("setp.eq.u32 %p, %a, 0;");
        self.line(format!("@%p bra {skip};"));
        skip
    }

    fn act(&mut self, act: &Act, guard: &str) {
        match act {
            Act::Access(access) => {
                let guard = if access.after_flag { "@%got " } else { guard };
                self.access(access, guard);
            }
            Act::Fence("membar", scope) => {
                let scope = scope.suffix().replace("gpu", "gl").replace("cluster", "gl");
                self.line(format!("{guard}membar.{scope};"));
            }
            Act::Fence(sem, scope) => self.line(format!("{guard}fence.{sem}.{};", scope.suffix())),
            Act::Copy { from, to } => self.copy(from, to, guard),
            Act::Commit => self.line(format!("{guard}cp.async.commit_group;")),
            Act::WaitGroup(None) => self.line(format!("{guard}cp.async.wait_all;")),
            Act::WaitGroup(Some(left)) => {
                self.line(format!("{guard}cp.async.wait_group {left};"));
            }
            Act::Bulk { from, to, op } => self.bulk(from, to, *op, guard),
            Act::BulkCommit => self.line(format!("{guard}cp.async.bulk.commit_group;")),
            Act::BulkWait { left, read } => {
                let read = if *read { ".read" } else { "" };
                self.line(format!("{guard}cp.async.bulk.wait_group{read} {left};"));
            }
            Act::Take { .. } | Act::Give(_) => self.lock(act),
            Act::Send { to, op } => self.send(to, *op, guard),
            Act::ProxyFence => self.line(format!("{guard}fence.proxy.async;")),
            Act::Arrive { copies: true, .. } => self.line(format!(
                "{guard}cp.async.mbarrier.arrive.noinc.shared.b64 [gate];"
            )),
            Act::Arrive { relaxed, .. } => {
                let how = if *relaxed { ".relaxed.cta" } else { "" };
                self.line(format!(
                    "{guard}mbarrier.arrive{how}.shared.b64 %t, [gate];"
                ));
            }
            Act::Pass { tries, relaxed } => {
                let again = self.label();
                self.line("mov.u32 %n, 0;");
                self.target(&again);
                let how = if *relaxed { ".relaxed.cta" } else { "" };
                self.line(format!(
                    "mbarrier.test_wait.parity{how}.shared.b64 %got, [gate], 0;"
                ));
                self.again(*tries, &again);
            }
            Act::Enter {
                gate,
                how,
                strength,
            } => self.enter(*gate, how, *strength),
            Act::Leave { .. } => self.leave(act),
            Act::Poll {
                access,
                tries,
                before,
            } => self.poll(access, *tries, *before),
        }
    }

    fn access(&mut self, access: &Access, guard: &str) {
        let target = &access.target;
        let space = match (target.generic, target.shared) {
            (true, _) => "",
            (false, true) if target.far => ".shared::cluster",
            (false, true) => ".shared",
            (false, false) => ".global",
        };
        let base = match (target.generic && target.shared, target.shared) {
            (true, _) if target.far => "there",
            (true, _) => "generic",
            (false, true) if target.far => "far",
            (false, true) => "shared",
            (false, false) => "global",
        };
        let row = match target.by_lane {
            true => target.bytes * target.vector,
            false => 0,
        };
        let address = format!("[%{base}{row}+{}]", target.offset);
        let order = order(access.order);
        let bits = target.bytes * 8;
        let atomic = matches!(access.kind, AccessKind::Atom(_));
        let (vector, loaded, stored) = match (target.vector, target.bytes) {
            (_, 2) if atomic => ("", "%half", "%one16"),
            (2, 8) => (".v2", "{%w, %t}", "{%wide, %wide}"),
            (2, _) => (".v2", "{%v, %u}", "{%one, %one}"),
            (_, 8) => ("", "%w", "%wide"),
            _ => ("", "%v", "%one"),
        };
        // `.nc` follows the space, the other orders stand before it.
        let text = match access.kind {
            AccessKind::Load if access.order == AccessOrder::ReadOnly => {
                format!("ld{space}{order}{vector}.u{bits} {loaded}, {address};")
            }
            AccessKind::Load => format!("ld{order}{space}{vector}.u{bits} {loaded}, {address};"),
            AccessKind::Store => format!("st{order}{space}{vector}.u{bits} {address}, {stored};"),
            AccessKind::Atom(op) => {
                let ty = atomic_type(op, bits);
                let compared = if op == "cas" {
                    format!("{stored}, ")
                } else {
                    String::new()
                };
                format!("atom{order}{space}.{op}.{ty} {loaded}, {address}, {compared}{stored};")
            }
            AccessKind::Red(op) => {
                let ty = atomic_type(op, bits);
                format!("red{order}{space}.{op}.{ty} {address}, {stored};")
            }
        };
        self.line(format!("{guard}{text}"));
        self.goes(target);
    }

    /// The last line accesses a target.
    fn goes(&mut self, target: &Target) {
        let number = self.text.lines.len() as u32;
        self.text.targets.insert((number, target.shared), *target);
    }

    /// Into shared memory it completes with the mbarrier, which is notified of its bytes.
    fn bulk(&mut self, from: &Target, to: &Target, op: Option<&'static str>, guard: &str) {
        let bytes = from.bytes;
        if to.shared {
            self.line(format!(
                "{guard}mbarrier.arrive.expect_tx.shared.b64 %t, [gate], {bytes};"
            ));
        }
        self.bulk_to(from, to, op, "gate", guard);
    }

    /// A bulk copy; into shared memory it completes with an mbarrier.
    fn bulk_to(
        &mut self,
        from: &Target,
        to: &Target,
        op: Option<&'static str>,
        barrier: &str,
        guard: &str,
    ) {
        let address = |target: &Target| {
            let base = if target.shared { "shared" } else { "global" };
            let row = if target.by_lane { target.bytes } else { 0 };
            format!("[%{base}{row}+{}]", target.offset)
        };
        let (target, source, bytes) = (address(to), address(from), from.bytes);
        self.line(match (to.shared, op) {
            (true, _) => format!(
                "{guard}cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {target}, {source}, {bytes}, [{barrier}];"
            ),
            (false, None) => format!(
                "{guard}cp.async.bulk.global.shared::cta.bulk_group {target}, {source}, {bytes};"
            ),
            (false, Some(op)) => format!(
                "{guard}cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{} {target}, {source}, {bytes};",
                atomic_type(op, 32)
            ),
        });
        self.goes(from);
        self.goes(to);
    }

    fn copy(&mut self, from: &Target, to: &Target, guard: &str) {
        let row = |target: &Target| match target.by_lane {
            true => target.bytes,
            false => 0,
        };
        let target = format!("[%shared{}+{}]", row(to), to.offset);
        let source = format!("[%global{}+{}]", row(from), from.offset);
        let bytes = from.bytes;
        self.line(format!(
            "{guard}cp.async.ca.shared.global {target}, {source}, {bytes};"
        ));
        self.goes(from);
        self.goes(to);
    }
}

/// An order as a suffix.
fn order(order: AccessOrder) -> String {
    match order {
        AccessOrder::Plain => String::new(),
        AccessOrder::ReadOnly => ".nc".to_owned(),
        AccessOrder::Volatile => ".volatile".to_owned(),
        AccessOrder::Strong(sem, scope) => format!(".{sem}.{}", scope.suffix()),
    }
}

fn atomic_type(op: &str, bits: u32) -> String {
    let kind = if matches!(op, "add" | "max" | "inc") {
        "u"
    } else {
        "b"
    };
    format!("{kind}{bits}")
}
