//! A launch as a [`Problem`], and its decision in words.

use std::collections::{BTreeSet, HashMap};

use ptx::isa::Scope;

use crate::bits::{Bits, Effort};
use crate::decide::{self, Conflict, Decision, Threads, Why};
use crate::evaluate::Evaluation;
use crate::family::{Family, Members};
use crate::form::Form;
use crate::graph::{Advance, Node, NodeId, Op};
use crate::interval::Interval;
use crate::problem::{Access, Alternative, Effect, Problem, Space, SymbolKind};
use crate::ssa::full_range;
use crate::summary::{AddressSpace, Plan, Site};
use crate::value::{ALTERNATIVES, Memory, Rows, both, simplified};
use crate::{Argument, Footprint, KnownPair, Launch, Pairs, Proof, Reason};

/// How much work a decision may be.
const BUDGET: u64 = 4_000_000;

/// A launch as integers, and what of it belongs to which access.
#[derive(Debug, Default)]
pub struct Posed {
    /// The accesses that may conflict.
    pub problem: Problem,
    /// By access of the problem: the access of the summary. One that can be in several memories is several.
    pub site: Vec<usize>,
    /// By access of the summary: what keeps it from being proved, whatever the decision.
    pub refused: Vec<Option<String>>,
    /// The bytes of global memory that the accesses can touch. None if that is not known of all.
    pub footprint: Option<Vec<Footprint>>,
    /// Accesses of the summary whose addresses are assumed to stay in the allocation of their pointer, as an index is
    /// not known: first byte and the byte behind the last.
    pub assumed: Vec<(usize, u64, u64)>,
    /// All threads of each block execute the same barriers; there may be none.
    pub barriers: bool,
    /// Nothing but races needs a check.
    pub unwatched: bool,
    /// By access of the summary: what its address is computed from that is not known, in words.
    hints: Vec<String>,
    /// The launches that are meant, if more than one.
    pub(crate) family: Option<Family>,
}

impl Posed {
    /// Asks nothing of known pairs of accesses of the summary, and of other pairs than those that are asked about.
    fn leave_out(&mut self, known: &BTreeSet<KnownPair>, pairs: Pairs) {
        let sites = || self.site.iter().copied().enumerate();
        for (first, a) in sites() {
            for (second, b) in sites().skip(first) {
                let loads = |at: usize| self.problem.accesses[at].effect == Effect::Load;
                let asked = pairs == Pairs::All || !(loads(first) || loads(second));
                // A pair that has raced in one memory says nothing of another one.
                let pair = KnownPair {
                    space: self.problem.accesses[first].space,
                    accesses: [a.min(b), a.max(b)],
                };
                if !asked || known.contains(&pair) {
                    self.problem.known.insert((first, second));
                }
            }
        }
    }
}

/// One memory that an access can touch.
struct Piece {
    space: Space,
    /// Empty if it can be any address.
    alternatives: Vec<Alternative>,
    anywhere: bool,
}

impl Plan {
    /// The launch as integers.
    pub(crate) fn pose(&self, launch: &Launch<'_>, family: Option<Members<'_>>) -> Posed {
        let (mut posed, evaluation) = self.pose_with(launch, family);
        posed.family = evaluation.family;
        posed
    }

    /// The same, with the values that it was made from.
    fn pose_with<'a>(
        &'a self,
        launch: &'a Launch<'_>,
        family: Option<Members<'_>>,
    ) -> (Posed, Evaluation<'a>) {
        let (globals, shared) = (&self.globals[..], &self.shared[..]);
        let mut evaluation = Evaluation::new(&self.graph, globals, shared, launch, family);
        let uniform = |nodes: &[u32]| nodes.iter().all(|&node| evaluation.is_uniform(node));
        let barriers = self.barriers.is_none() && uniform(&self.control);
        let single = launch.cluster.iter().all(|&ctas| ctas <= 1);
        let mut posed = Posed {
            refused: vec![None; self.sites.len()],
            footprint: Some(Vec::new()),
            barriers,
            unwatched: self.watched.is_none() && single && uniform(&self.warp_control),
            hints: vec![String::new(); self.sites.len()],
            ..Posed::default()
        };
        for (index, site) in self.sites.iter().enumerate() {
            self.pose_site(&mut evaluation, &mut posed, index, site);
        }
        posed.problem.equations = evaluation
            .symbols
            .equations
            .iter()
            .map(Form::linear)
            .collect();
        posed.problem.symbols = evaluation.symbols.symbols.clone();
        if barriers {
            self.meetings(&mut posed);
        }
        (posed, evaluation)
    }

    /// Which accesses of a block barriers order.
    fn meetings(&self, posed: &mut Posed) {
        let mut known = HashMap::new();
        // Ascending, so that a tree is made of them at once.
        let mut all = Vec::new();
        for (first, &a) in posed.site.iter().enumerate() {
            for (second, &b) in posed.site.iter().enumerate().skip(first) {
                let (x, y) = (
                    &posed.problem.accesses[first],
                    &posed.problem.accesses[second],
                );
                if x.space != y.space || (x.effect, y.effect) == (Effect::Load, Effect::Load) {
                    continue;
                }
                let segments = (self.sites[a].segment, self.sites[b].segment);
                let meetings = known
                    .entry(segments)
                    .or_insert_with(|| self.phases.meetings(segments.0, segments.1));
                all.push(((first, second), meetings.clone()));
            }
        }
        posed.problem.meetings = all.into_iter().collect();
    }

    fn pose_site(
        &self,
        evaluation: &mut Evaluation<'_>,
        posed: &mut Posed,
        index: usize,
        site: &Site,
    ) {
        // What holds at the access: rows, and lists of which one holds.
        let mut path = evaluation.assumed().to_vec();
        let mut choices: Vec<Vec<Rows>> = Vec::new();
        let conditions = self.graph.holds[site.block].iter().chain(&site.guard);
        for &(condition, holds) in conditions {
            let when = evaluation.predicate(condition).when(holds).to_vec();
            match &when[..] {
                // It is never executed.
                [] => return,
                [only] => path.extend(only.iter().cloned()),
                _ => choices.push(when),
            }
        }
        for of in self.graph.around(site.home) {
            path.extend(evaluation.steady[of as usize].iter().cloned());
            choices.extend(evaluation.choices[of as usize].iter().cloned());
        }
        let Some(path) = simplified(&evaluation.symbols, path) else {
            return;
        };
        let mut ways = vec![Rows::new()];
        for choice in &choices {
            ways = both(&evaluation.symbols, &ways, choice);
        }
        if ways.is_empty() {
            return;
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let value = site
            .address
            .and_then(|node| evaluation.values[node as usize].clone());
        let alternatives = match value {
            Some(crate::value::Value::Integer(all)) => all,
            _ => smallvec::SmallVec::new(),
        };
        if alternatives.is_empty() {
            self.anywhere(posed, &mut pieces, index, site);
        }
        for of in &alternatives {
            // The alternative by way, without those ways in which it is not the one.
            let mut own: Vec<Rows> = Vec::new();
            for way in &ways {
                let when: Rows = of.when.iter().chain(way).cloned().collect();
                own.extend(simplified(&evaluation.symbols, when));
            }
            if own.is_empty() {
                continue;
            }
            let Some((space, form, start, bytes)) = self.located(evaluation, site, of) else {
                if of.memory != Memory::Private || site.address_space != AddressSpace::Generic {
                    self.anywhere(posed, &mut pieces, index, site);
                }
                continue;
            };
            let Some(form) = form else {
                self.anywhere(posed, &mut pieces, index, site);
                continue;
            };
            let end = start + bytes - i128::from(site.bytes);
            let mut hull: Option<Interval<i128>> = None;
            own.retain(|when| {
                let rows: Rows = path.iter().chain(when).cloned().collect();
                let Some(rows) = simplified(&evaluation.symbols, rows) else {
                    return false;
                };
                let mut range = evaluation.symbols.bounds(&form, &rows);
                if range.low < start || range.high > end {
                    range = evaluation.symbols.narrow_bounds(&form, &rows);
                }
                if !range.is_empty() {
                    hull = Some(hull.map_or(range, |known| known.hull(range)));
                }
                !range.is_empty()
            });
            let Some(Interval { mut low, mut high }) = hull else {
                continue;
            };
            let mut address = form;
            let open: Vec<u32> = self.open(evaluation, &address);
            if let Some(&symbol) = open.first() {
                posed.hints[index] = self.hint(evaluation, symbol);
            }
            if low < start || high > end {
                let assumed = open
                    .iter()
                    .any(|&symbol| self.is_assumed(evaluation, symbol))
                    && !(space == Space::Global
                        && self.is_elsewhere(
                            evaluation,
                            &address,
                            &path,
                            &own,
                            [start, start + bytes],
                        ));
                if !assumed || end < start {
                    let text = "its address may leave the allocation of its pointer".to_owned();
                    posed.refused[index].get_or_insert(text);
                    // Beyond, the address is not known to be the form, or other variables are there.
                    if space == Space::Shared || low < 0 || high > i64::MAX.into() {
                        self.anywhere(posed, &mut pieces, index, site);
                        continue;
                    }
                } else {
                    // An index that is not known leads to no other allocation than that of its pointer.
                    let uniform = evaluation.symbols.uniform(&address);
                    let range = Interval::new(start as i64, end as i64);
                    let symbol = evaluation.symbols.unknown(range, site.home, uniform);
                    address = Form::symbol(symbol);
                    (low, high) = (start, end);
                    posed
                        .assumed
                        .push((index, start as u64, (start + bytes) as u64));
                }
            }
            if space == Space::Global
                && let Some(all) = &mut posed.footprint
            {
                all.push(Footprint {
                    bytes: site.element,
                    wide: site.scope >= Scope::Gpu,
                    start: low.max(0) as u64,
                    end: (high + i128::from(site.bytes)).max(0) as u64,
                    writes: site.effect(false) != Effect::Load,
                });
            }
            let position = pieces.iter().position(|piece| piece.space == space);
            let position = position.unwrap_or_else(|| {
                pieces.push(Piece {
                    space,
                    alternatives: Vec::new(),
                    anywhere: false,
                });
                pieces.len() - 1
            });
            for when in own {
                pieces[position].alternatives.push(Alternative {
                    address: address.linear(),
                    when: when.iter().map(Form::linear).collect(),
                });
            }
        }
        let mut loops: Vec<u32> = self.graph.around(site.home).collect();
        loops.reverse();
        for mut piece in pieces {
            if piece.alternatives.is_empty() && !piece.anywhere {
                continue;
            }
            if piece.anywhere || piece.alternatives.len() > 4 * ALTERNATIVES {
                piece.alternatives.clear();
            }
            posed.site.push(index);
            posed.problem.accesses.push(Access {
                space: piece.space,
                effect: site.effect(piece.space == Space::Shared),
                bytes: site.bytes,
                alternatives: piece.alternatives,
                path: path.iter().map(Form::linear).collect(),
                loops: loops.clone(),
            });
        }
    }

    /// An access that can be at any address of its memory.
    fn anywhere(&self, posed: &mut Posed, pieces: &mut Vec<Piece>, index: usize, site: &Site) {
        let text = "its address is not known: it is not computed from one pointer".to_owned();
        posed.refused[index].get_or_insert(text);
        let spaces: &[Space] = match site.address_space {
            AddressSpace::Global => &[Space::Global],
            AddressSpace::Shared => &[Space::Shared],
            AddressSpace::Generic => &[Space::Global, Space::Shared],
        };
        if site.address_space != AddressSpace::Shared {
            posed.footprint = None;
        }
        for &space in spaces {
            match pieces.iter_mut().find(|piece| piece.space == space) {
                Some(piece) => piece.anywhere = true,
                None => pieces.push(Piece {
                    space,
                    alternatives: Vec::new(),
                    anywhere: true,
                }),
            }
        }
    }

    /// The memory of an address, the address in it, and where the memory of its pointer begins and how large it is.
    fn located(
        &self,
        evaluation: &mut Evaluation<'_>,
        site: &Site,
        of: &crate::value::Alternative,
    ) -> Option<(Space, Option<Form>, i128, i128)> {
        match (site.address_space, of.memory) {
            (AddressSpace::Global | AddressSpace::Generic, Memory::Global(start, bytes)) => Some((
                Space::Global,
                Some(of.form.clone()),
                start.into(),
                bytes.into(),
            )),
            (AddressSpace::Shared | AddressSpace::Generic, Memory::Shared(index)) => {
                let base = evaluation.shared_base(index);
                let Interval {
                    low: start,
                    high: bytes,
                } = evaluation.shared_range(index);
                let mut form = of.form.plus(-1, &base);
                if site.address_space == AddressSpace::Generic {
                    let window = Form::symbol(evaluation.window());
                    form = form.and_then(|form| form.plus(-1, &window));
                }
                let form = form.and_then(|form| form.shifted(start));
                Some((Space::Shared, form, start, bytes))
            }
            _ => None,
        }
    }

    /// The symbols of a form that stand for values that are not followed, or that nothing bounds.
    fn open(&self, evaluation: &Evaluation<'_>, form: &Form) -> Vec<u32> {
        let is_open = |symbol: u32| {
            let endless = match evaluation.symbols.symbols[symbol as usize].kind {
                SymbolKind::Counter(of) => evaluation.endless.contains(&of),
                _ => false,
            };
            endless || evaluation.origin.iter().any(|&(of, _)| of == symbol)
        };
        let mut open: Vec<u32> = Vec::new();
        let mut work: Vec<u32> = form.terms.iter().map(|term| term.variable).collect();
        let mut seen = work.clone();
        while let Some(symbol) = work.pop() {
            if is_open(symbol) {
                open.push(symbol);
            }
            // Quotients and remainders of what is not followed are not followed.
            let dividend = evaluation.symbols.dividend(symbol);
            for term in dividend.iter().flat_map(|form| &form.terms) {
                let of = term.variable;
                if !seen.contains(&of) {
                    seen.push(of);
                    work.push(of);
                }
            }
        }
        open
    }

    /// Whether an index with that symbol is assumed to stay in its allocation: nothing is known of its range but that of
    /// its type, or what it comes from is not followed.
    fn is_assumed(&self, evaluation: &Evaluation<'_>, symbol: u32) -> bool {
        let node = evaluation.origin.iter().find(|&&(of, _)| of == symbol);
        let Some(&(_, node)) = node else {
            // A loop without a bound.
            return true;
        };
        let item = &self.graph.items[node as usize];
        let range = evaluation.symbols.symbols[symbol as usize].range;
        let full = full_range(item.bits);
        let bounded = range.low > full.low || range.high < full.high;
        !bounded || self.is_opaque(evaluation, node, &mut Vec::new())
    }

    /// Whether the known part of an address lies outside of the bytes of its pointer's memory, in other memory or over more
    /// than one address. `ways` are those in which the access comes about.
    fn is_elsewhere(
        &self,
        evaluation: &mut Evaluation<'_>,
        address: &Form,
        path: &Rows,
        ways: &[Rows],
        [start, end]: [i128; 2],
    ) -> bool {
        let mut known = address.clone();
        known.terms.retain(|term| {
            self.open(evaluation, &Form::symbol(term.variable))
                .is_empty()
        });
        let mut hull: Option<Interval<i128>> = None;
        for way in ways {
            let rows: Rows = path.iter().chain(way).cloned().collect();
            let range = evaluation.symbols.bounds(&known, &rows);
            hull = Some(hull.map_or(range, |known| known.hull(range)));
        }
        let Some(Interval { low, high }) = hull else {
            return false;
        };
        let in_other = || {
            let memory = u64::try_from(low).map(|at| evaluation.allocation(at));
            matches!(memory, Ok(Memory::Global(first, _)) if i128::from(first) != start)
        };
        (low > end || high < start) && (low != high || in_other())
    }

    /// Whether a value is one of some that are not followed.
    fn is_opaque(&self, evaluation: &Evaluation<'_>, node: NodeId, seen: &mut Vec<NodeId>) -> bool {
        let node = self.graph.resolve(node);
        if seen.contains(&node) {
            return true;
        }
        seen.push(node);
        let mut is_opaque = |node: NodeId| self.is_opaque(evaluation, node, seen);
        match &self.graph.items[node as usize].node {
            Node::Opaque { .. } => true,
            &Node::Operation {
                op: Op::Convert { .. },
                inputs: [of, ..],
                ..
            } => is_opaque(of),
            Node::Join { inputs, .. } => inputs.iter().all(|&(input, _)| is_opaque(input)),
            &Node::Select { yes, no, .. } => is_opaque(yes) && is_opaque(no),
            &Node::Out { value, .. } => is_opaque(value),
            Node::Header {
                first,
                next,
                kind: Advance::Numbers(..),
                ..
            } => {
                // Where its first values are followed, they are alternatives to its symbol.
                let alone = evaluation.integer(node).len() == 1;
                next.iter().all(|&next| is_opaque(next))
                    && (!alone || first.iter().all(|&first| is_opaque(first)))
            }
            _ => false,
        }
    }

    /// Where a value comes from that is not followed.
    fn hint(&self, evaluation: &Evaluation<'_>, symbol: u32) -> String {
        if let SymbolKind::Counter(of) = evaluation.symbols.symbols[symbol as usize].kind {
            let header = &self.graph.items[self.graph.loops[of as usize].counter as usize];
            return format!(
                "the loop at {} has no known bound",
                self.line(header.statement)
            );
        }
        let node = evaluation.origin.iter().find(|&&(of, _)| of == symbol);
        match node {
            Some(&(_, node)) => {
                let item = &self.graph.items[node as usize];
                let line = self.line(item.statement);
                match item.node {
                    Node::Opaque { .. } => {
                        format!("its address depends on a value that is not followed, from {line}")
                    }
                    _ => format!(
                        "its address depends on a value at {line} whose arithmetic may wrap or is not linear"
                    ),
                }
            }
            None => String::new(),
        }
    }

    /// A line for a person: that of the source where it is known.
    pub(crate) fn line(&self, statement: usize) -> String {
        match self.lines.get(statement) {
            Some((_, Some((_, line)))) => format!("line {line}"),
            Some((line, None)) => format!("PTX line {line}"),
            None => "an unknown line".to_owned(),
        }
    }

    /// Decides a launch.
    pub(crate) fn prove(
        &self,
        accesses: &[crate::Access],
        launch: &Launch<'_>,
        known: &BTreeSet<KnownPair>,
        pairs: Pairs,
    ) -> Proof {
        let mut posed = self.pose(launch, None);
        if !known.is_empty() || pairs != Pairs::All {
            posed.leave_out(known, pairs);
        }
        let decision = decide::decide(&posed.problem, BUDGET);
        self.decided(accesses, posed, &decision)
    }

    /// Decides a launch, and bit by bit what linear arithmetic leaves open.
    pub(crate) fn prove_by_bits(
        &self,
        accesses: &[crate::Access],
        launch: &Launch<'_>,
        effort: &mut Effort,
    ) -> Proof {
        let (posed, evaluation) = self.pose_with(launch, None);
        let mut bits = Bits::new(self, &evaluation, &posed, effort);
        let mut judge = |asked: &decide::Asked<'_>| bits.is_impossible(asked);
        let decision = decide::decide_with(&posed.problem, BUDGET, &mut judge);
        self.decided(accesses, posed, &decision)
    }

    /// Decides all launches of a family.
    pub(crate) fn decide(&self, accesses: &[crate::Access], posed: Posed) -> Proof {
        let decision = decide::decide(&posed.problem, BUDGET);
        self.decided(accesses, posed, &decision)
    }

    /// A decision in words.
    fn decided(&self, accesses: &[crate::Access], posed: Posed, decision: &Decision) -> Proof {
        let mut results: Vec<Result<Argument, Reason>> = posed
            .refused
            .iter()
            .map(|refused| match refused {
                None => Ok(Argument::ReadOnly),
                Some(text) => Err(Reason {
                    text: text.clone(),
                    against: None,
                }),
            })
            .collect();
        for (piece, decided) in decision.accesses.iter().enumerate() {
            let site = posed.site[piece];
            let Ok(known) = &mut results[site] else {
                continue;
            };
            match decided {
                Ok(argument) => *known = (*known).max(*argument),
                Err(conflict) => {
                    results[site] = Err(self.reason(accesses, &posed, site, conflict));
                }
            }
        }
        let read_only_path = self.hold_read_only_path(&mut results);
        let proved = results.iter().all(Result::is_ok);
        let mut failed = decision.accesses.iter().filter_map(|of| of.as_ref().err());
        Proof {
            out_of_steps: failed.any(|conflict| conflict.why == Why::Steps),
            whole: proved && posed.barriers && posed.unwatched,
            read_only_path,
            footprint: posed.footprint,
            accesses: results,
        }
    }

    /// Nothing orders a load through the read-only path with a write to its bytes, neither a barrier nor the program
    /// order of one thread (PTX ISA, `ld.global.nc`). So no write of the launch may reach them; where one may, the
    /// launch's writes are not proved either. Says whether none may.
    fn hold_read_only_path(&self, results: &mut [Result<Argument, Reason>]) -> bool {
        let broken = |(site, result): (&Site, &Result<Argument, Reason>)| {
            site.read_only_path && *result != Ok(Argument::ReadOnly)
        };
        if !self.sites.iter().zip(&*results).any(broken) {
            return true;
        }
        for (site, result) in self.sites.iter().zip(results) {
            let writes =
                site.address_space != AddressSpace::Shared && site.effect(false) != Effect::Load;
            if result.is_ok() && (writes || broken((site, result))) {
                let text = "a load through the read-only path may read what the launch writes";
                *result = Err(Reason {
                    text: text.to_owned(),
                    against: None,
                });
            }
        }
        false
    }

    fn reason(
        &self,
        accesses: &[crate::Access],
        posed: &Posed,
        site: usize,
        conflict: &Conflict,
    ) -> Reason {
        let against = posed.site.get(conflict.against).copied().unwrap_or(site);
        let threads_text = match conflict.between {
            Threads::OfOneBlock => "threads of one block",
            Threads::OfTwoBlocks => "threads of different blocks",
        };
        let what = match self.sites[against].kind {
            ptx::isa::MemoryKind::Load => "load",
            ptx::isa::MemoryKind::Store => "store",
            _ => "atomic",
        };
        let mut text = match conflict.why {
            Why::Overlap if against == site => {
                format!("two {threads_text} may execute it with the same bytes")
            }
            Why::Overlap => {
                let line = self.line(accesses[against].statement);
                format!("the {what} at {line} may touch the same bytes, by {threads_text}")
            }
            Why::Steps => "the proof would take too long".to_owned(),
            Why::Large => "its numbers are too large".to_owned(),
        };
        let hint = [site, against].into_iter().map(|of| &posed.hints[of]);
        if let Some(hint) = hint.into_iter().find(|hint| !hint.is_empty()) {
            text.push_str("; ");
            text.push_str(hint);
        }
        if !posed.barriers {
            text.push_str(
                "; barriers are not relied on, as threads of a block may part before them",
            );
        }
        Reason {
            text,
            against: Some(against),
        }
    }
}
