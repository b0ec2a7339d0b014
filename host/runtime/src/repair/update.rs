//! Updates: a load, an operation, and a store to the same address. Those of one commutative operation
//! may come in any order, so that an atomic repairs their races. A store of a value that has just been compared with
//! what is there is such an update, too: a minimum or a maximum. Any other store of a value that depends on what was
//! there takes a loop with a compare-and-swap.

use std::cell::RefCell;
use std::collections::BTreeSet;

use ptx::ast::{AddressBase, Body, Guard, Instruction, Operand, Statement};
use ptx::cfg::{BlockId, Cfg};
use ptx::dataflow::Dataflow;
use ptx::isa;
use ptx::values::{Sum, Values};

/// Conversions and copies between load, operation and store, at most.
const STEPS: usize = 4;
/// Blocks between a comparison and what depends on it, at most.
const BLOCKS: usize = 4;

/// Instructions between a load and what depends on it, at most.
const DEPENDENCES: usize = 256;

/// The atomic of which any update can be made.
const ANY: &str = "atomicCAS";
/// The atomic that reads a value and writes another one.
const EXCHANGE: &str = "atomicExch";

/// Updates by one operation that commutes, or one update by whatever operations.
pub(super) struct Common {
    /// The operation, as CUDA's atomic calls it; [`ANY`] if there is none for it.
    pub(super) call: &'static str,
    /// Their stores.
    pub(super) stores: Vec<usize>,
    /// Stores that race to other addresses, and that the same comparison decides.
    pub(super) with: Vec<usize>,
}

impl Common {
    /// It is one update by whatever operations.
    pub(super) fn is_of_any(&self) -> bool {
        self.call == ANY
    }
}

/// What a value is.
#[derive(PartialEq)]
enum Is<'a> {
    Constant(&'a Operand),
    Loaded(Sum),
    Computed(usize),
}

/// What a value is computed from, by operations that one atomic does.
#[derive(Clone, Default)]
struct Terms<'a> {
    /// The load of what was there.
    load: Option<usize>,
    /// The other operands, each with the operation that it is one of.
    others: Vec<(usize, &'a Operand)>,
    seen: BTreeSet<usize>,
}

/// The updates of a function.
pub(super) struct Updates<'a> {
    body: &'a Body,
    flow: &'a Dataflow<'a>,
    cfg: &'a Cfg,
    values: RefCell<Values<'a>>,
}

impl<'a> Updates<'a> {
    pub(super) fn new(body: &'a Body, cfg: &'a Cfg, flow: &'a Dataflow<'a>) -> Self {
        let values = RefCell::new(Values::new(body, cfg, flow));
        Self {
            body,
            flow,
            cfg,
            values,
        }
    }

    /// The updates that both accesses belong to; `racing` says whether a statement has races.
    pub(super) fn common(
        &self,
        sites: [usize; 2],
        racing: impl Fn(usize) -> bool,
    ) -> Option<Common> {
        let part = |site| self.part(site).or_else(|| self.beside(site));
        let [one, other] = sites.map(part);
        let (Some((store, name)), Some((also, same))) = (one, other) else {
            let any = self.any(sites).map(|store| (store, ANY));
            let exchange = || self.exchange(sites).map(|store| (store, EXCHANGE));
            let beside = || self.store_against_atomic(sites).map(|store| (store, ANY));
            let (store, call) = any.or_else(exchange).or_else(beside)?;
            return Some(Common {
                call,
                stores: vec![store],
                with: Vec::new(),
            });
        };
        let mut stores = vec![store, also];
        stores.dedup();
        let with = stores.iter().flat_map(|&store| self.with(store));
        let with: Vec<usize> = with.filter(|&at| racing(at)).collect();
        // What stands beside an update is none itself.
        let complete = sites
            .iter()
            .all(|&site| self.part(site).is_some() || with.contains(&site));
        (name == same && complete).then_some(Common {
            call: name,
            stores,
            with,
        })
    }

    /// Whether a load decides which way a branch goes.
    pub(super) fn decides_branch(&self, load: usize, branch: usize) -> bool {
        let guard = self.instruction(branch).and_then(|of| of.guard.as_ref());
        let is_load = self.instruction(load).is_some_and(|of| of.opcode == "ld");
        is_load && guard.is_some_and(|of| self.register_depends(branch, &of.predicate, load))
    }

    /// The store and the operation of the update that a load or store belongs to.
    fn part(&self, site: usize) -> Option<(usize, &'static str)> {
        match self.instruction(site)?.opcode.as_str() {
            "st" => self.update(site).map(|(_, operation)| (site, operation)),
            "ld" => self.body.instructions().find_map(|(at, store)| {
                let (load, operation) = match store.opcode.as_str() {
                    "st" => self.update(at)?,
                    _ => return None,
                };
                (load == site).then_some((at, operation))
            }),
            _ => None,
        }
    }

    /// The load and the operation of the update that ends in a store.
    fn update(&self, store: usize) -> Option<(usize, &'static str)> {
        self.computed(store).or_else(|| self.compared(store))
    }

    /// The store and the operation of the update that a store to another address stands beside.
    fn beside(&self, site: usize) -> Option<(usize, &'static str)> {
        let block = self.cfg.block_of(site);
        let stores = self.body.instructions();
        let mut stores =
            stores.filter(|&(at, of)| of.opcode == "st" && self.cfg.block_of(at) == block);
        let (store, _) = stores.find(|&(at, _)| self.with(at).contains(&site))?;
        self.update(store).map(|(_, operation)| (store, operation))
    }

    /// The stores to other addresses that the comparison of an update decides too: those that stand with its store.
    fn with(&self, store: usize) -> Vec<usize> {
        if self.computed(store).is_some() || self.compared(store).is_none() {
            return Vec::new();
        }
        let Some(of) = self.instruction(store) else {
            return Vec::new();
        };
        let block = self.cfg.block_of(store);
        let with = self.body.instructions().filter(|&(at, other)| {
            let together = other.opcode == "st"
                && other.guard == of.guard
                && self.cfg.block_of(at) == block
                && !other.has("local");
            together && !self.alike([store, at])
        });
        with.map(|(at, _)| at).collect()
    }

    fn computed(&self, store: usize) -> Option<(usize, &'static str)> {
        let [_, value] = &self.instruction(store)?.operands[..] else {
            return None;
        };
        let (at, operation) = self.writer(store, value)?;
        let name = commutes(operation)?;
        let mut terms = Terms::default();
        if !self.combines(at, operation, store, &mut terms) {
            return None;
        }
        let load = terms.load?;
        // Where only the load is executed there is no update, and where only the store is, it adds to something else.
        let guard = |at| self.instruction(at).map(|of| &of.guard);
        if guard(load) != Some(&None) && guard(load) != guard(store) {
            return None;
        }
        // As in `x + x`, which is no sum of what was there and something else.
        let mut others = terms.others.iter();
        let apart = !others.any(|&(at, other)| self.depends(at, other, load));
        match self.decides(load, store) {
            // As in `if (*count < most) *count += 1`.
            true => Some((load, ANY)),
            false => apart.then_some((load, name)),
        }
    }

    /// Whether an operation combines one load from the address of a store with other terms, also by several operations
    /// of one kind: nvcc makes `(i + *p) + 1` of `*p += i + 1`, and keeps what a loop adds up in a register.
    fn combines(
        &self,
        at: usize,
        operation: &'a Instruction,
        store: usize,
        terms: &mut Terms<'a>,
    ) -> bool {
        let inputs = match operation.opcode.as_str() {
            // A product is added to the third operand.
            "fma" | "mad" => 3..4,
            // What is subtracted from.
            "sub" => 1..2,
            _ => 1..operation.operands.len(),
        };
        for input in inputs {
            let mut found = terms.clone();
            if !self.leads_back(at, operation, input, store, &mut found) {
                continue;
            }
            let others = operation.operands.iter().enumerate().skip(1);
            let others = others.filter(|(number, _)| *number != input);
            found.others.extend(others.map(|(_, other)| (at, other)));
            *terms = found;
            return true;
        }
        false
    }

    /// Whether an operand of an operation is the load, or what the same kind of operation has made of it.
    fn leads_back(
        &self,
        at: usize,
        operation: &'a Instruction,
        input: usize,
        store: usize,
        terms: &mut Terms<'a>,
    ) -> bool {
        let operand = operation.operands.get(input);
        let writers = operand.and_then(|operand| self.writers(at, operand));
        writers.is_some_and(|writers| {
            writers.into_iter().all(|(write, found)| {
                if !terms.seen.insert(write) {
                    return true;
                }
                if found.opcode == "ld" {
                    return self.alike([store, write])
                        && terms.load.replace(write).is_none_or(|load| load == write);
                }
                commutes(found).is_some_and(|name| Some(name) == commutes(operation))
                    && terms.seen.len() < DEPENDENCES
                    && self.combines(write, found, store, terms)
            })
        })
    }

    /// The store of a value that is not read from memory, to a word that the same code has loaded before, if the loaded
    /// value is stored elsewhere: load and store exchange what is there.
    fn exchange(&self, sites: [usize; 2]) -> Option<usize> {
        let (store, value, loads) = self.pair(sites)?;
        let exchanges = |&load: &usize| {
            let together = self.cfg.block_of(load) == self.cfg.block_of(store);
            let mut memory = self.of_opcode("ld");
            let others = self.of_opcode("st").filter(|&(at, _)| at != store);
            let mut kept = others.filter_map(|(at, of)| Some((at, of.operands.get(1)?)));
            load < store
                && together
                && !memory.any(|(at, _)| self.depends(store, value, at))
                && !self.decides(load, store)
                && kept.any(|(at, value)| self.depends(at, value, load))
        };
        loads.iter().any(exchanges).then_some(store)
    }

    /// Whether a load decides if a store is executed: by the guard of the store, or by a branch between the two.
    fn decides(&self, load: usize, store: usize) -> bool {
        let mut between = self.body.instructions().skip_while(|&(at, _)| at < load);
        between.any(|(at, of)| {
            let leads = || {
                let [from, to] = [at, store].map(|of| self.cfg.block_of(of));
                of.opcode == "bra" && self.leads(from, to).is_some()
            };
            let decides = at == store || load < at && at < store && leads();
            let guard = of.guard.as_ref().filter(|_| decides);
            guard.is_some_and(|guard| self.register_depends(at, &guard.predicate, load))
        })
    }

    /// The store of an update that both sites belong to, whatever it computes: what was there decides the value, or whether
    /// there is a store.
    fn any(&self, sites: [usize; 2]) -> Option<usize> {
        let (store, value, loads) = self.pair(sites)?;
        let mut loads = loads.into_iter();
        loads
            .any(|load| self.depends(store, value, load) || self.decides(load, store))
            .then_some(store)
    }

    /// The store of an update that a site belongs to where what was there decides whether there is a store, if the other
    /// site is an atomic.
    fn store_against_atomic(&self, sites: [usize; 2]) -> Option<usize> {
        let of_opcode = |opcode: &str| {
            let is = |at: &&usize| self.instruction(**at).is_some_and(|of| of.opcode == opcode);
            sites.iter().find(is).copied()
        };
        of_opcode("atom")?;
        let decides =
            |load: usize, store: usize| self.alike([store, load]) && self.decides(load, store);
        let ats = |opcode| self.of_opcode(opcode).map(|(at, _)| at);
        match (of_opcode("st"), of_opcode("ld")) {
            (Some(store), _) => ats("ld").any(|load| decides(load, store)).then_some(store),
            (None, Some(load)) => ats("st").find(|&store| decides(load, store)),
            (None, None) => None,
        }
    }

    /// The store among the sites, what it stores, and the loads from its address that the other site may be.
    fn pair(&self, sites: [usize; 2]) -> Option<(usize, &'a Operand, Vec<usize>)> {
        let (store, of) = self.of_opcode("st").find(|(at, _)| sites.contains(at))?;
        let [_, value] = &of.operands[..] else {
            return None;
        };
        let mut loads = self.loads(store);
        loads.retain(|&load| sites.iter().all(|site| [load, store].contains(site)));
        Some((store, value, loads))
    }

    /// The loads from the address of a store.
    pub(super) fn loads(&self, store: usize) -> Vec<usize> {
        let loads = self.of_opcode("ld").map(|(at, _)| at);
        loads.filter(|&load| self.alike([store, load])).collect()
    }

    /// The loads or stores of memory.
    fn of_opcode(
        &self,
        opcode: &'static str,
    ) -> impl Iterator<Item = (usize, &'a Instruction)> + use<'a> {
        let all = self.body.instructions();
        all.filter(move |(_, of)| of.opcode == opcode && !of.has("param"))
    }

    /// Whether the value of an operand depends on a load; also when that cannot be found out.
    fn depends(&self, at: usize, operand: &Operand, load: usize) -> bool {
        match element(operand) {
            Operand::Name { name, .. } => self.register_depends(at, name, load),
            _ => false,
        }
    }

    fn register_depends(&self, at: usize, name: &str, load: usize) -> bool {
        let mut open: Vec<_> = { self.flow.register(at, name) }
            .map(|register| (at, register))
            .into_iter()
            .collect();
        let mut seen = BTreeSet::new();
        while let Some((at, register)) = open.pop() {
            for write in self.flow.reaching(self.cfg, register, at).0 {
                if write == load || seen.len() > DEPENDENCES {
                    return true;
                }
                if seen.insert(write)
                    && let Some(instruction) = self.instruction(write)
                {
                    isa::register_reads(instruction, |name| {
                        let read = self.flow.register(write, name);
                        open.extend(read.map(|register| (write, register)));
                    });
                }
            }
        }
        false
    }

    /// Likewise, of a store that depends on how its value compares with what is there.
    fn compared(&self, store: usize) -> Option<(usize, &'static str)> {
        let stored = self.instruction(store)?;
        let [_, value] = &stored.operands[..] else {
            return None;
        };
        let of_store = Some(self.value(store, value)?);
        let of = |at: usize, guard: &'a Guard, holds: bool| {
            let (at, compare, holds) = self.comparison(at, &guard.predicate, holds)?;
            let [_, one, other] = &compare.operands[..] else {
                return None;
            };
            // Of numbers, `ltu` and the like are the opposites of `ge` and the like.
            let less = match compare.suffixes.first()?.as_str() {
                "lt" | "le" | "lo" | "ls" | "ltu" | "leu" => true,
                "gt" | "ge" | "hi" | "hs" | "gtu" | "geu" => false,
                _ => return None,
            };
            let is_stored = |operand| self.value(at, operand) == of_store;
            let always =
                |load: &usize| self.instruction(*load).is_some_and(|of| of.guard.is_none());
            let load = |operand| self.loaded(at, operand, store).filter(always);
            let (load, loaded_is_one) = match load(one) {
                Some(load) if is_stored(other) => (load, true),
                _ => (load(other).filter(|_| is_stored(one))?, false),
            };
            // Where the store comes, the first operand is less, or greater.
            let is_less = less == holds;
            let name = match is_less == loaded_is_one {
                true => "atomicMax",
                false => "atomicMin",
            };
            Some((load, name))
        };
        if let Some(guard) = &stored.guard {
            return of(store, guard, !guard.negated);
        }
        let mut block = self.cfg.block_of(store);
        for _ in 0..BLOCKS {
            let above = self.cfg.immediate_dominator(block)?;
            if let Some(at) = self.cfg.blocks[above].terminator
                && let Some(branch) = self.instruction(at)
                && let Some(guard) = &branch.guard
                && let Some(taken) = self.leads(above, block)
                && let Some(found) = of(at, guard, taken != guard.negated)
            {
                return Some(found);
            }
            block = above;
        }
        None
    }

    /// The comparison that a predicate comes from, and what of it holds where the predicate does, or does not.
    fn comparison(
        &self,
        mut at: usize,
        mut predicate: &'a str,
        mut holds: bool,
    ) -> Option<(usize, &'a Instruction, bool)> {
        for _ in 0..STEPS {
            let register = self.flow.register(at, predicate)?;
            let (writes, undefined) = self.flow.reaching(self.cfg, register, at);
            let &[write] = &writes[..] else { return None };
            let found = self.instruction(write)?;
            if undefined || found.guard.is_some() {
                return None;
            }
            match (found.opcode.as_str(), found.operands.get(1)) {
                ("setp", _) => return Some((write, found, holds)),
                ("not", Some(Operand::Name { name, .. })) => {
                    (at, predicate, holds) = (write, name, !holds);
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether a block is reached from another only where that one's branch is taken (true), or only where it is not.
    fn leads(&self, from: BlockId, to: BlockId) -> Option<bool> {
        let &[one, other] = &self.cfg.blocks[from].successors[..] else {
            return None;
        };
        let next = self.cfg.blocks[from].end;
        let falls = |block: BlockId| self.cfg.blocks[block].start == next;
        let only = match (self.cfg.dominates(one, to), self.cfg.dominates(other, to)) {
            (true, false) => one,
            (false, true) => other,
            _ => return None,
        };
        (falls(one) != falls(other)).then(|| !falls(only))
    }

    /// The load of an operand's value from the address of a store.
    fn loaded(&self, at: usize, operand: &'a Operand, store: usize) -> Option<usize> {
        let (load, loaded) = self.writer(at, operand)?;
        (loaded.opcode == "ld" && self.alike([store, load])).then_some(load)
    }

    /// Whether two loads or stores have the same address.
    fn alike(&self, sites: [usize; 2]) -> bool {
        let [one, other] = sites.map(|at| self.address(at));
        one.is_some() && one == other || self.stays(sites)
    }

    /// Whether a load and a store have one address register, and a path leads from the load to the store that does not change
    /// it. After a loop, nothing else is known of the address.
    fn stays(&self, [store, load]: [usize; 2]) -> bool {
        let address = |at: usize, place: usize| match self.instruction(at)?.operands.get(place)? {
            Operand::Address {
                base: AddressBase::Name(base),
                offset,
            } => Some((self.flow.register(at, base)?, offset)),
            _ => None,
        };
        let one = address(store, 0);
        one.is_some_and(|(register, _)| {
            let changes = self.flow.writes(register);
            let changes = |at: usize| changes.contains(&at);
            one == address(load, 1) && self.cfg.reaches(load, store, changes)
        })
    }

    /// The address of a load or store.
    fn address(&self, at: usize) -> Option<Sum> {
        let of = self.instruction(at)?;
        let operand = of.operands.get(usize::from(of.opcode == "ld"))?;
        self.values.borrow_mut().address(at, operand)
    }

    /// What an operand's value is: a constant, what is loaded from an address, or what a statement computes.
    fn value(&self, at: usize, operand: &'a Operand) -> Option<Is<'a>> {
        if !matches!(element(operand), Operand::Name { .. }) {
            return Some(Is::Constant(operand));
        }
        let (at, found) = self.writer(at, operand)?;
        match found.opcode.as_str() {
            "ld" => Some(Is::Loaded(self.address(at)?)),
            _ => Some(Is::Computed(at)),
        }
    }

    /// The instructions that may compute an operand, behind copies and conversions; none where that is not known.
    fn writers(&self, at: usize, operand: &'a Operand) -> Option<Vec<(usize, &'a Instruction)>> {
        let mut open = vec![(at, operand)];
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        while let Some((at, operand)) = open.pop() {
            let Operand::Name { name, .. } = element(operand) else {
                return None;
            };
            let (writes, undefined) =
                self.flow
                    .reaching(self.cfg, self.flow.register(at, name)?, at);
            let writes = match writes[..] {
                [default, load] | [load, default] if self.is_default(default, load) => vec![load],
                _ => writes,
            };
            if undefined || writes.is_empty() {
                return None;
            }
            for write in writes.into_iter().filter(|&write| seen.insert(write)) {
                let of = self.instruction(write)?;
                match of.opcode.as_str() {
                    "ld" => found.push((write, of)),
                    _ if of.guard.is_some() => return None,
                    "mov" | "cvt" => open.push((write, of.operands.get(1)?)),
                    _ => found.push((write, of)),
                }
            }
        }
        Some(found)
    }

    /// The instruction that computes an operand, behind copies and conversions.
    fn writer(&self, at: usize, operand: &'a Operand) -> Option<(usize, &'a Instruction)> {
        match self.writers(at, operand)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether a load has a guard, and a constant stands for its value where it is not executed.
    fn is_default(&self, default: usize, load: usize) -> bool {
        let [default, load] = [default, load].map(|at| self.instruction(at));
        let constant = default.filter(|of| of.opcode == "mov" && of.guard.is_none());
        let constant = constant.and_then(|of| of.operands.get(1));
        let loads = load.is_some_and(|of| of.opcode == "ld" && of.guard.is_some());
        loads && constant.is_some_and(|of| !matches!(of, Operand::Name { .. }))
    }

    fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }
}

/// The element of a vector of one, as Triton writes it, or the operand itself.
fn element(operand: &Operand) -> &Operand {
    match operand {
        Operand::Vector(elements) => match &elements[..] {
            [one] => one,
            _ => operand,
        },
        _ => operand,
    }
}

/// The atomic that does what an operation does, if its order does not matter.
fn commutes(operation: &Instruction) -> Option<&'static str> {
    if operation.operands.len() < 3 {
        return None;
    }
    Some(match operation.opcode.as_str() {
        "add" | "fma" | "mad" => "atomicAdd",
        "sub" => "atomicSub",
        "and" => "atomicAnd",
        "or" => "atomicOr",
        "xor" => "atomicXor",
        "min" => "atomicMin",
        "max" => "atomicMax",
        _ => return None,
    })
}
