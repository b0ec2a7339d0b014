//! What is proved of a launch, against what its threads did.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use anyhow::{Context, Result, bail, ensure};
use events::AccessKind;
use prove::{Argument, Proof, Summary};

use super::make::{ENTRY, Kernel};
use super::run::{Access, Run, Runner};

/// What was found, over many kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Kernels that ran.
    pub kernels: u64,
    /// Kernels that did not run to their end.
    pub stopped: u64,
    /// Kernels that access memory outside of the allocation of a pointer; those accesses are left out.
    pub outside: u64,
    /// Kernels whose accesses do not conflict.
    pub free_kernels: u64,
    /// Those of them that are proved as a whole.
    pub whole: u64,
    /// Instructions that access memory and were executed.
    pub accesses: u64,
    /// Those of them that do not conflict.
    pub free: u64,
    /// Those of them that are proved.
    pub proved: u64,
    /// By argument.
    pub arguments: [u64; 4],
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.kernels += other.kernels;
        self.stopped += other.stopped;
        self.outside += other.outside;
        self.free_kernels += other.free_kernels;
        self.whole += other.whole;
        self.accesses += other.accesses;
        self.free += other.free;
        self.proved += other.proved;
        for (own, other) in self.arguments.iter_mut().zip(other.arguments) {
            *own += other;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [read_only, private, barriers, atomic] = self.arguments;
        write!(
            f,
            "{} kernels ({} leave a buffer, {} more did not end): {} without a conflict, {} of them proved as a whole; {} instructions \
             that access memory: {} without a conflict, {} of them proved ({read_only} read-only, {private} private, \
             {barriers} by barriers, {atomic} atomic)",
            self.kernels,
            self.outside,
            self.stopped,
            self.free_kernels,
            self.whole,
            self.accesses,
            self.free,
            self.proved
        )
    }
}

/// What is true of an instruction.
#[derive(Clone, Copy, Default)]
struct Truth {
    conflict: Option<(Access, Access)>,
    shared: bool,
    written: bool,
}

/// Compares the proof of a kernel with a run of it.
///
/// # Errors
/// When something is proved that is not so.
pub fn judge(kernel: &Kernel, runner: &mut Runner) -> Result<Tally> {
    let (module, diagnostics) = ptx::parse(&kernel.text);
    ensure!(diagnostics.is_empty(), "{diagnostics:?}");
    let run = match runner.run(kernel, &module) {
        Ok(run) => run,
        Err(_) => {
            return Ok(Tally {
                stopped: 1,
                ..Tally::default()
            });
        }
    };
    let function = module.functions().find(|function| function.name == ENTRY);
    let summary = Summary::new(&module, function.context("no kernel")?);
    let proof = prove(&summary, kernel, &run);
    compare(kernel, &summary, &proof, &run)
}

fn prove(summary: &Summary, kernel: &Kernel, run: &Run) -> Proof {
    let inside = |address: u64| {
        let holds = |buffer: &&(u64, u64)| (buffer.0..buffer.0 + buffer.1).contains(&address);
        run.buffers.iter().find(holds).copied()
    };
    summary.prove(&prove::Launch {
        grid: kernel.grid,
        block: kernel.block,
        cluster: [0; 3],
        parameters: &run.parameters,
        dynamic_shared: kernel.dynamic_shared,
        allocation: &inside,
        variable: &|_| None,
    })
}

fn compare(kernel: &Kernel, summary: &Summary, proof: &Proof, run: &Run) -> Result<Tally> {
    ensure!(
        proof.accesses.len() == summary.accesses.len(),
        "the proof speaks of {} accesses, the summary of {}",
        proof.accesses.len(),
        summary.accesses.len()
    );
    let pointers = pointers(&kernel.text);
    let mut accesses = run.accesses.clone();
    accesses.retain(|access| stays(kernel, run, &pointers, access));
    let outside = accesses.len() < run.accesses.len();
    let truths = truths(kernel, &accesses);
    let mut tally = Tally {
        kernels: 1,
        outside: u64::from(outside),
        ..Tally::default()
    };
    let conflicts = truths.values().any(|truth| truth.conflict.is_some());
    tally.free_kernels = u64::from(!conflicts);
    tally.whole = u64::from(proof.whole);
    for (line, truth) in &truths {
        let known = summary
            .accesses
            .iter()
            .position(|access| access.ptx_line == *line);
        ensure!(
            known.is_some() || summary.refused.is_some(),
            "line {line} accesses memory and is not in the summary"
        );
        if proof.whole
            && let Some((a, b)) = truth.conflict
        {
            bail!("the launch is proved as a whole, but {a:?} conflicts with {b:?}");
        }
        tally.accesses += 1;
        tally.free += u64::from(truth.conflict.is_none());
        let Some(Ok(argument)) = known.map(|known| &proof.accesses[known]) else {
            continue;
        };
        if let Some((a, b)) = truth.conflict {
            bail!("line {line} is proved ({argument:?}), but {a:?} conflicts with {b:?}");
        }
        let other = match argument {
            Argument::ReadOnly => truth.written,
            Argument::Private => truth.shared,
            Argument::Barriers | Argument::Atomic => false,
        };
        ensure!(!other, "line {line} is proved, but not by {argument:?}");
        tally.proved += 1;
        tally.arguments[*argument as usize] += 1;
    }
    Ok(tally)
}

/// By line of the text, the pointer from which its global address is computed.
fn pointers(text: &str) -> Vec<Option<usize>> {
    let sums = text.lines().filter_map(|line| {
        let (sum, rest) = line.trim().strip_prefix("add.s64 ")?.split_once(", %rd")?;
        let (pointer, _) = rest.split_once(',')?;
        Some((sum, pointer.parse::<usize>().ok()? - 1))
    });
    let sums: BTreeMap<&str, usize> = sums.collect();
    let pointer = |line: &str| {
        let (_, address) = line.split_once('[')?;
        let register = address.split(['+', ']']).next()?;
        sums.get(register).copied()
    };
    text.lines().map(pointer).collect()
}

/// Whether an access stays in the allocation of its pointer. One that does not is an error of its own: proofs assume,
/// as checks do, that an index which is not known leads nowhere else.
fn stays(kernel: &Kernel, run: &Run, pointers: &[Option<usize>], access: &Access) -> bool {
    let Some(pointer) = pointers[access.line as usize - 1] else {
        return true;
    };
    let (first, bytes) = run.buffers[kernel.pointers[pointer].0];
    access.address >= first && access.address + u64::from(access.bytes) <= first + bytes
}

/// By line, what is true of its accesses; every access against every other.
fn truths(kernel: &Kernel, accesses: &[Access]) -> BTreeMap<u32, Truth> {
    // Atomics of a CTA's scope.
    let narrow: Vec<bool> = kernel
        .text
        .lines()
        .map(|line| line.contains(".relaxed.cta."))
        .collect();
    let narrow = |access: &Access| narrow[access.line as usize - 1];
    let mut truths: BTreeMap<u32, Truth> = BTreeMap::new();
    for (at, a) in accesses.iter().enumerate() {
        truths.entry(a.line).or_default();
        let behind = accesses[at..].iter();
        let near = behind
            .take_while(|b| b.shared == a.shared && b.address < a.address + u64::from(a.bytes));
        for b in near {
            if a.shared && a.cta != b.cta {
                continue;
            }
            let written = [a, b].map(|access| access.kind != AccessKind::Load);
            truths.entry(a.line).or_default().written |= written[1];
            truths.entry(b.line).or_default().written |= written[0];
            let atomic = a.kind == AccessKind::Rmw && b.kind == AccessKind::Rmw;
            let scopes = a.cta == b.cta || !narrow(a) && !narrow(b);
            let together = atomic && scopes && a.bytes == b.bytes && a.address == b.address;
            let same = a.cta == b.cta && a.thread == b.thread;
            if same || together || !written[0] && !written[1] {
                continue;
            }
            let unordered = a.cta != b.cta || a.interval == b.interval;
            for line in [a.line, b.line] {
                let truth = truths.entry(line).or_default();
                truth.shared = true;
                if unordered {
                    truth.conflict.get_or_insert((*a, *b));
                }
            }
        }
    }
    truths
}
