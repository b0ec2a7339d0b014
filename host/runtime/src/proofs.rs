//! What the arguments of launches prove: the summaries of a module's kernels, and the proofs of launches alike.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use prove::assume::{Assumption, Quantity};
use prove::{Argument, Effort, KnownPair, Launch, Proof, Summary};
use ptx::ast::Module;
use report::log;
use shadow::streams::{Footprint, Touch};

use crate::allocations::Allocations;
use crate::checker::{Extent, Invocation};

/// Most proofs of a kernel that are kept for launches with the same arguments.
const KEPT: usize = 32;

/// A kernel's summary, with the places of its accesses in the program's own text.
#[derive(Debug)]
struct Kernel {
    summary: Summary,
    /// By access: the byte offset of its instruction.
    offsets: Vec<u32>,
    /// The proofs of the latest launches, latest first.
    proofs: Mutex<Vec<(Signature, Arc<Proved>)>>,
    /// What proofs bit by bit may still cost.
    effort: Mutex<Effort>,
}

/// The summaries of a module's kernels, each made when a launch first needs it.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    kernels: HashMap<String, OnceLock<Kernel>>,
}

/// What is proved of a launch.
#[derive(Debug)]
pub(crate) struct Proved {
    /// The proof.
    pub(crate) proof: Proof,
    /// By access, in text order: the byte offset and the line of its instruction in the program's own text.
    instructions: Vec<(u32, u32)>,
    /// The same without the races of earlier launches, where there are any.
    besides: Option<Proof>,
    /// The statements of the accesses that are proved, or of which only known races are left.
    statements: BTreeSet<usize>,
    /// The statements of the accesses whose races with writes are all known, if some races are. Loads may race with them.
    known_among_writes: BTreeSet<usize>,
    /// How it is counted.
    pub(crate) counts: log::Proof,
    /// In what the launch touches of global memory lies, once it has been asked for.
    bounds: OnceLock<Option<Arc<Footprint>>>,
}

impl Proved {
    /// Whether nothing is to be found in the launch but known races, if any.
    pub(crate) fn is_over(&self) -> bool {
        self.besides.as_ref().unwrap_or(&self.proof).whole
    }

    /// Whether all races of the access at a byte offset of the program's own text that are not excluded are known.
    pub(crate) fn is_known(&self, offset: u32) -> bool {
        let at = self
            .instructions
            .binary_search_by_key(&offset, |(of, _)| *of);
        let besides = self.besides.as_ref().zip(at.ok());
        besides.is_some_and(|(of, at)| of.accesses.get(at).is_some_and(Result::is_ok))
    }

    /// A footprint in which all that the launch touches of global memory lies, if one is known. Its sites mean nothing.
    pub(crate) fn bounds(&self) -> Option<Arc<Footprint>> {
        let known = self.bounds.get_or_init(|| {
            let mut bounds = Footprint::default();
            for of in self.proof.footprint.as_ref()? {
                let touch = Touch {
                    writes: of.writes,
                    wide: of.wide,
                    bytes: of.bytes,
                    site: 0,
                };
                bounds.touch(touch, 0, of.start, of.end.saturating_sub(of.start));
            }
            bounds.settle();
            Some(Arc::new(bounds))
        });
        known.clone()
    }

    /// Whether nothing is to be found of the access at a statement of the kernel: it is proved, or only races that are
    /// known are left.
    pub(crate) fn spares(&self, statement: usize) -> bool {
        self.statements.contains(&statement)
    }

    /// Whether all races of the access at a statement with writes are known.
    pub(crate) fn is_known_among_writes(&self, statement: usize) -> bool {
        self.known_among_writes.contains(&statement)
    }

    /// The byte offsets of the instructions whose accesses are proved, in the program's own text.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = u32> {
        let all = self.instructions.iter().zip(&self.proof.accesses);
        all.filter(|(_, result)| result.is_ok())
            .map(|((offset, _), _)| *offset)
    }

    /// What proves the access at a byte offset of the program's own text, if anything does.
    pub(crate) fn argument(&self, offset: u32) -> Option<Argument> {
        let at = self
            .instructions
            .binary_search_by_key(&offset, |(of, _)| *of);
        self.proof.accesses.get(at.ok()?)?.as_ref().ok().copied()
    }

    /// What is wrong with the proof if two accesses race, by their lines in the program's own PTX.
    pub(crate) fn refuted(&self, mut lines: [u32; 2]) -> Option<String> {
        // Whichever came first.
        lines.sort_unstable();
        // Several accesses may share a line. All of them must be proved.
        let argument = |line| {
            let all = self.instructions.iter().zip(&self.proof.accesses);
            let mut on_line = all.filter(|((_, of), _)| *of == line);
            let first = on_line.next()?.1.as_ref().ok().copied();
            first.filter(|_| on_line.all(|(_, result)| result.is_ok()))
        };
        let line = lines.into_iter().find(|line| argument(*line).is_some())?;
        let argument = argument(line)?;
        Some(format!(
            "the accesses at PTX lines {} and {} race, but the one at line {line} is proved not to ({argument:?})",
            lines[0], lines[1]
        ))
    }
}

/// Two instructions that have raced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RacedPair {
    /// In which memory.
    pub(crate) space: log::Space,
    /// Their byte offsets in the program's own text, the lower one first.
    pub(crate) offsets: [u32; 2],
}

/// Pairs of instructions that have raced.
pub(crate) type Raced = BTreeSet<RacedPair>;

/// How much work a proof may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Linear arithmetic alone.
    Linear,
    /// Bit by bit, what that leaves open.
    Bits,
}

/// All that a proof depends on.
#[derive(Debug, PartialEq, Eq)]
struct Signature {
    extent: Extent,
    parameters: Vec<u8>,
    known: Raced,
    /// What was asked of the allocations.
    allocations: Vec<(u64, Option<(u64, u64)>)>,
    /// What was asked of the module's variables.
    variables: Vec<(String, Option<(u64, u64)>)>,
}

impl Proofs {
    /// For the kernels of a module.
    pub(crate) fn new(module: &Module) -> Self {
        let kernels = module.functions().filter(|function| function.entry);
        let kernels = kernels.map(|kernel| (kernel.name.to_string(), OnceLock::new()));
        Self {
            kernels: kernels.collect(),
        }
    }

    /// The accesses of a kernel that launches may prove, by statement. None if nothing can be proved of any.
    pub(crate) fn accesses(&self, module: &Module, kernel: &str) -> Option<Vec<usize>> {
        let summary = &self.kernel(module, kernel)?.summary;
        let statements = summary.accesses.iter().map(|access| access.statement);
        summary.refused.is_none().then(|| statements.collect())
    }

    fn kernel(&self, module: &Module, kernel: &str) -> Option<&Kernel> {
        let known = self.kernels.get(kernel)?;
        Some(known.get_or_init(|| Kernel::new(module, kernel)))
    }

    /// What the arguments of a launch prove, and how long that took: no time if an earlier launch had the same. None if
    /// the kernel is not in the module.
    pub(crate) fn of(
        &self,
        module: &Module,
        invocation: Invocation<'_>,
        allocations: &Allocations,
        races: &Raced,
        depth: Depth,
    ) -> Option<(Arc<Proved>, Duration)> {
        let Invocation {
            kernel,
            extent,
            parameters,
            ..
        } = invocation;
        let known = self.kernel(module, kernel)?;
        let mut proofs = known.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(of, _): &(Signature, Arc<Proved>)| {
            of.holds(extent, parameters, allocations) && of.known == *races
        };
        if let Some(at) = proofs.iter().position(same) {
            proofs[..=at].rotate_right(1);
            return Some((Arc::clone(&proofs[0].1), Duration::ZERO));
        }
        let started = Instant::now();
        let (signature, proved) = known.prove(extent, parameters, allocations, races, depth);
        let took = started.elapsed().max(Duration::from_nanos(1));
        let proved = Arc::new(proved);
        proofs.truncate(KEPT - 1);
        proofs.insert(0, (signature, Arc::clone(&proved)));
        Some((proved, took))
    }
}

/// The user's assumptions in a launch.
#[derive(Debug, Default)]
pub(crate) struct Assumptions {
    pub(crate) all: Vec<log::Assumption>,
    /// What is proved of all launches that fulfil them, if this one does.
    pub(crate) family: Option<log::Family>,
}

impl Proofs {
    /// What assumptions are in a launch, and what is proved of all launches that fulfil those that are about its kernel.
    /// None if the kernel is not in the module.
    pub(crate) fn assumed(
        &self,
        module: &Module,
        invocation: Invocation<'_>,
        allocations: &Allocations,
        texts: &[String],
    ) -> Option<Assumptions> {
        let summary = &self.kernel(module, invocation.kernel)?.summary;
        let (extent, parameters) = (invocation.extent, invocation.parameters);
        let value = |of: Quantity| match of {
            Quantity::Grid(axis) => extent.grid[axis].into(),
            Quantity::Block(axis) => extent.block[axis].into(),
            Quantity::Parameter(offset, bytes) => number(parameters, offset, bytes),
        };
        let (mut all, mut assumed) = (Vec::new(), Vec::new());
        for text in texts {
            let about = Assumption::parse(text).and_then(|of| of.about(&summary.names));
            let standing = match about {
                Err(wrong) => log::Standing::Unfit(wrong.to_string()),
                Ok(of) if of.holds(&value) == Some(true) => {
                    assumed.push(of);
                    log::Standing::Holds
                }
                Ok(of) => {
                    let name = |of| format!("{} = {}", summary.names.name(of), value(of));
                    let values: Vec<String> = of.quantities().into_iter().map(name).collect();
                    log::Standing::Broken(values.join(", "))
                }
            };
            let text = text.clone();
            all.push(log::Assumption { text, standing });
        }
        let broken = |of: &log::Assumption| matches!(of.standing, log::Standing::Broken(_));
        let proves = !assumed.is_empty() && !all.iter().any(broken);
        let family = proves.then(|| {
            let launch = Launch {
                allocation: &|address| allocations.range(address),
                variable: &|name| allocations.only_variable(name),
                ..sized(extent, parameters)
            };
            match summary.prove_family(&launch, &assumed) {
                Ok(conditions) => log::Family::Proved(conditions),
                Err(reason) => log::Family::Open(reason.text),
            }
        });
        Some(Assumptions { all, family })
    }
}

/// A launch of a size, with nothing in memory.
fn sized(extent: Extent, parameters: &[u8]) -> Launch<'_> {
    Launch {
        grid: extent.grid,
        block: extent.block,
        cluster: extent.cluster,
        parameters,
        dynamic_shared: extent.dynamic_shared,
        allocation: &|_| None,
        variable: &|_| None,
    }
}

/// A signed number of the parameters; 0 if it is not there.
fn number(parameters: &[u8], offset: u32, bytes: u32) -> i128 {
    let start = offset as usize;
    let found = parameters.get(start..start + bytes as usize);
    let found = found.unwrap_or_default();
    let sign = match found.last() {
        Some(last) if *last >= 0x80 => 0xff,
        _ => 0,
    };
    let mut all = [sign; 16];
    all[..found.len()].copy_from_slice(found);
    i128::from_le_bytes(all)
}

impl Kernel {
    fn new(module: &Module, name: &str) -> Self {
        let function = module.functions().find(|function| function.name == name);
        let summary = function.map_or_else(Summary::default, |of| Summary::new(module, of));
        let body = function.and_then(|function| function.body.as_ref());
        let offset = |access: &prove::Access| {
            let statement = body.and_then(|body| body.instruction(access.statement));
            statement.map_or(u32::MAX, |instruction| instruction.span.start)
        };
        Self {
            offsets: summary.accesses.iter().map(offset).collect(),
            summary,
            proofs: Mutex::default(),
            effort: Mutex::default(),
        }
    }

    fn prove(
        &self,
        extent: Extent,
        parameters: &[u8],
        allocations: &Allocations,
        races: &Raced,
        depth: Depth,
    ) -> (Signature, Proved) {
        let asked = Mutex::new((Vec::new(), Vec::new()));
        let allocation = |address| {
            let found = allocations.range(address);
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.0.push((address, found));
            found
        };
        let variable = |name: &str| {
            let found = allocations.only_variable(name);
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.1.push((name.to_owned(), found));
            found
        };
        let launch = Launch {
            allocation: &allocation,
            variable: &variable,
            ..sized(extent, parameters)
        };
        let proof = match depth {
            Depth::Linear => self.summary.prove(&launch),
            Depth::Bits => {
                let mut effort = self.effort.lock().unwrap_or_else(PoisonError::into_inner);
                self.summary.prove_by_bits(&launch, &mut effort)
            }
        };
        let index_of = |offset: u32| self.offsets.iter().position(|of| *of == offset);
        let races_here = races.iter().filter_map(|pair| {
            let [a, b] = pair.offsets;
            let (a, b) = (index_of(a)?, index_of(b)?);
            Some(KnownPair {
                space: pair.space,
                accesses: [a.min(b), a.max(b)],
            })
        });
        let races_here: BTreeSet<KnownPair> = races_here.collect();
        let any = !races_here.is_empty() && !proof.whole;
        let besides = any.then(|| self.summary.prove_besides(&launch, &races_here));
        let among_writes = match &besides {
            Some(besides) if !besides.whole => {
                Some(self.summary.prove_among_writes(&launch, &races_here))
            }
            _ => None,
        };
        let (asked, variables) = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        let signature = Signature {
            extent,
            parameters: parameters.to_vec(),
            known: races.clone(),
            allocations: asked,
            variables,
        };
        let counts = self.counts(&proof);
        let spared = besides.as_ref().unwrap_or(&proof);
        let statements = self.statements(spared);
        let known_among_writes = among_writes.map_or_else(BTreeSet::new, |of| self.statements(&of));
        let lines = self.summary.accesses.iter().map(|access| access.ptx_line);
        let instructions = self.offsets.iter().copied().zip(lines).collect();
        (
            signature,
            Proved {
                proof,
                instructions,
                statements,
                besides,
                known_among_writes,
                counts,
                bounds: OnceLock::new(),
            },
        )
    }

    /// The statements of the accesses that are proved.
    fn statements(&self, proof: &Proof) -> BTreeSet<usize> {
        let all = self.summary.accesses.iter().zip(&proof.accesses);
        let proved = all.filter(|(_, result)| result.is_ok());
        proved.map(|(access, _)| access.statement).collect()
    }

    /// How many accesses are proved by what, and what is in the way of the others.
    fn counts(&self, proof: &Proof) -> log::Proof {
        let mut counts = log::Proof {
            whole: proof.whole,
            out_of_steps: proof.out_of_steps,
            ..log::Proof::default()
        };
        for (access, result) in self.summary.accesses.iter().zip(&proof.accesses) {
            match result {
                Ok(Argument::ReadOnly) => counts.read_only += 1,
                Ok(Argument::Private) => counts.private += 1,
                Ok(Argument::Barriers) => counts.barriers += 1,
                Ok(Argument::Atomic) => counts.atomic += 1,
                Err(reason) => {
                    counts.unproved += 1;
                    counts.reasons.push(log::Unproved {
                        ptx_line: access.ptx_line,
                        why: reason.text.clone(),
                    });
                }
            }
        }
        counts
    }
}

impl Signature {
    /// Whether a proof with this signature holds for a launch.
    fn holds(&self, extent: Extent, parameters: &[u8], allocations: &Allocations) -> bool {
        let mut asked = self.allocations.iter();
        let mut variables = self.variables.iter();
        self.extent == extent
            && self.parameters == parameters
            && asked.all(|&(address, found)| allocations.range(address) == found)
            && variables.all(|(name, found)| allocations.only_variable(name) == *found)
    }
}
