//! Puts the registers of a function into few rows.
//!
//! PTX has as many registers as the compiler likes, nearly one per instruction; each would cost 256
//! bytes per warp. Registers that are never needed at the same time share a row, so that the rows of
//! a warp stay in the cache.
//! Source: linear scan (Poletto and Sarkar, TOPLAS 1999) over live ranges from the usual backward
//! data flow. A range covers everything from its first to its last place in the order of the ops.
//! The lanes of a warp may be at different places, but each only ever uses its own column, for
//! which this holds lane by lane. A write under a guard does not end the life of what it replaces.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::code::{
    Argument, Barrier, BarrierKind, Callee, Exchange, ExchangeKind, Formal, Func, Kind, Map,
    Mbarrier, MbarrierKind, Op, Rank,
};
use crate::lanes::{CONSTANT, Shape};

/// Renumbers the rows of `function`, whose ops are `ops`; the first of them has number `first`.
pub(super) fn allocate(ops: &mut [Op], first: u32, function: &mut Func) {
    forget_unread(ops, function);
    let ranges = Ranges::of(ops, first, function);
    let map = assign(&ranges);
    let rename = |row: &mut u32| *row = map[*row as usize];
    for op in ops {
        visit(&mut op.kind, &mut |row, _| rename(row));
    }
    for formal in function.params.iter_mut().chain(&mut function.returns) {
        if let Formal::Row { row, .. } = formal {
            rename(row);
        }
    }
    function.rows = map.iter().max().map_or(1, |&most| most + 1);
}

/// Makes reductions of the atomics whose results nobody reads, as compilers leave them.
fn forget_unread(ops: &mut [Op], function: &Func) {
    let mut read = Set::new(function.rows as usize);
    formal_rows(&function.returns).for_each(|row| read.insert(row));
    for op in ops.iter_mut() {
        visit(&mut op.kind, &mut |row, write| {
            if !write {
                read.insert(*row);
            }
        });
    }
    for op in ops {
        if let Kind::Atomic(atomic) = &mut op.kind
            && atomic.results.iter().all(|&row| !read.contains(row))
        {
            atomic.results.clear();
        }
    }
}

/// First and last place where each row matters. Op n reads at 2n and writes at 2n + 1.
struct Ranges(Vec<(u32, u32)>);

/// A set of rows.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(rows: usize) -> Self {
        Self(vec![0; rows.div_ceil(64)])
    }

    fn insert(&mut self, row: u32) {
        self.0[row as usize / 64] |= 1 << (row % 64);
    }

    fn contains(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let bits = std::iter::successors(Some(word), |&word| Some(word & word.wrapping_sub(1)));
            bits.take_while(|&word| word != 0)
                .map(move |word| 64 * index as u32 + word.trailing_zeros())
        })
    }
}

/// A straight piece of code.
struct Block {
    start: usize,
    end: usize,
    next: Vec<usize>,
    /// Rows read before they are written, and rows surely written.
    reads: Set,
    writes: Set,
    live_in: Set,
}

impl Ranges {
    fn of(ops: &mut [Op], first: u32, function: &Func) -> Self {
        let rows = function.rows as usize;
        let mut blocks = blocks(ops, first, function);
        live(&mut blocks);
        let mut ranges = Self(vec![(u32::MAX, 0); rows]);
        for block in &blocks {
            for row in block.live_in.iter() {
                ranges.note(row, 2 * block.start as u32);
            }
            for &next in &block.next {
                for row in blocks[next].live_in.iter() {
                    ranges.note(row, 2 * block.end as u32 - 1);
                }
            }
        }
        for (index, op) in ops.iter_mut().enumerate() {
            let at = 2 * index as u32;
            visit(&mut op.kind, &mut |row, write| {
                ranges.note(*row, at + u32::from(write))
            });
            if matches!(op.kind, Kind::Return) {
                formal_rows(&function.returns).for_each(|row| ranges.note(row, at));
            }
        }
        formal_rows(&function.params).for_each(|row| ranges.note(row, 0));
        ranges
    }

    fn note(&mut self, row: u32, at: u32) {
        let range = &mut self.0[row as usize];
        *range = (range.0.min(at), range.1.max(at));
    }
}

fn formal_rows(formals: &[Formal]) -> impl Iterator<Item = u32> {
    formals.iter().filter_map(|formal| match formal {
        Formal::Row { row, .. } => Some(*row),
        Formal::Frame { .. } => None,
    })
}

/// Cuts the ops into blocks, with what each reads and writes.
fn blocks(ops: &mut [Op], first: u32, function: &Func) -> Vec<Block> {
    let targets = |kind: &Kind| -> Vec<usize> {
        match kind {
            Kind::Branch(target) => vec![(*target - first) as usize],
            Kind::BranchIndexed { targets, .. } => targets
                .iter()
                .map(|target| (*target - first) as usize)
                .collect(),
            _ => Vec::new(),
        }
    };
    let ends = |kind: &Kind| {
        matches!(
            kind,
            Kind::Branch(_) | Kind::BranchIndexed { .. } | Kind::Return | Kind::Exit | Kind::Trap
        )
    };
    let mut starts = BTreeSet::from([0]);
    for (index, op) in ops.iter().enumerate().filter(|(_, op)| ends(&op.kind)) {
        starts.extend(targets(&op.kind));
        starts.insert(index + 1);
    }
    let starts: Vec<usize> = starts
        .into_iter()
        .filter(|&start| start < ops.len())
        .collect();
    let number = |start: usize| starts.binary_search(&start).ok();
    let rows = function.rows as usize;
    let mut blocks = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(ops.len());
        let last = &ops[end - 1];
        let mut next: Vec<usize> = targets(&last.kind).into_iter().filter_map(number).collect();
        if !ends(&last.kind) || last.guard != 0 {
            next.extend(number(end));
        }
        let (mut reads, mut writes) = (Set::new(rows), Set::new(rows));
        for op in &mut ops[start..end] {
            let surely = op.guard == 0;
            visit(&mut op.kind, &mut |row, write| {
                if !write && !writes.contains(*row) {
                    reads.insert(*row);
                }
            });
            if matches!(op.kind, Kind::Return) {
                formal_rows(&function.returns)
                    .filter(|&row| !writes.contains(row))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|row| reads.insert(row));
            }
            visit(&mut op.kind, &mut |row, write| {
                if write && surely {
                    writes.insert(*row);
                }
            });
        }
        let live_in = Set::new(rows);
        blocks.push(Block {
            start,
            end,
            next,
            reads,
            writes,
            live_in,
        });
    }
    blocks
}

/// Finds the rows that are live where each block starts.
fn live(blocks: &mut [Block]) {
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..blocks.len()).rev() {
            let mut live = blocks[index].reads.clone();
            for word in 0..live.0.len() {
                let out = blocks[index]
                    .next
                    .iter()
                    .fold(0, |out, &next| out | blocks[next].live_in.0[word]);
                live.0[word] |= out & !blocks[index].writes.0[word];
            }
            changed |= live != blocks[index].live_in;
            blocks[index].live_in = live;
        }
    }
}

/// The new number of every row. Row 0, the sink, keeps its number; what is never used gets it too.
fn assign(ranges: &Ranges) -> Vec<u32> {
    let mut map = vec![0; ranges.0.len()];
    let mut order: Vec<usize> = (1..map.len())
        .filter(|&row| ranges.0[row].0 != u32::MAX)
        .collect();
    order.sort_unstable_by_key(|&row| ranges.0[row]);
    let mut busy: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut count = 1;
    for row in order {
        let (start, end) = ranges.0[row];
        while let Some(&Reverse((over, number))) = busy.peek() {
            if over >= start {
                break;
            }
            busy.pop();
            free.push(Reverse(number));
        }
        let number = match free.pop() {
            Some(Reverse(number)) => number,
            None => {
                count += 1;
                count - 1
            }
        };
        map[row] = number;
        busy.push(Reverse((end, number)));
    }
    map
}

/// Shows `f` every row an op uses, and whether it is written.
pub(crate) fn visit(kind: &mut Kind, f: &mut dyn FnMut(&mut u32, bool)) {
    let f = &mut |row: &mut u32, write: bool| {
        if *row & CONSTANT == 0 {
            f(row, write);
        }
    };
    match kind {
        Kind::Alu(_, args) => {
            if args.shape != Shape::Preds {
                f(&mut args.a, false);
                f(&mut args.b, false);
            }
            if matches!(args.shape, Shape::Rows | Shape::Carry) {
                f(&mut args.c, false);
            }
            if matches!(args.shape, Shape::Rows | Shape::Carry | Shape::Choose) {
                f(&mut args.d, true);
            }
        }
        Kind::Special(d, _)
        | Kind::FrameAddress { d, .. }
        | Kind::Param { d, .. }
        | Kind::ActiveMask(d) => f(d, true),
        Kind::Load(access) => {
            f(&mut access.address.base, false);
            let narrow = access.narrow.iter_mut();
            narrow.for_each(|narrow| f(&mut narrow.pointer, false));
            access.rows.iter_mut().for_each(|row| f(row, true));
        }
        Kind::Store(access) => {
            f(&mut access.address.base, false);
            access.rows.iter_mut().for_each(|row| f(row, false));
        }
        Kind::Atomic(atomic) => {
            f(&mut atomic.address.base, false);
            atomic.operands.iter_mut().for_each(|row| f(row, false));
            atomic.second.iter_mut().for_each(|row| f(row, false));
            let narrow = atomic.narrow.iter_mut();
            narrow.for_each(|narrow| f(&mut narrow.pointer, false));
            atomic.results.iter_mut().for_each(|row| f(row, true));
        }
        Kind::Copy(copy) => {
            f(&mut copy.to.base, false);
            f(&mut copy.from.base, false);
            f(&mut copy.bytes, false);
            copy.source_bytes.iter_mut().for_each(|row| f(row, false));
            copy.multicast.iter_mut().for_each(|row| f(row, false));
            copy.complete
                .iter_mut()
                .for_each(|address| f(&mut address.base, false));
        }
        Kind::AsyncStore(store) => {
            f(&mut store.to.base, false);
            f(&mut store.complete.base, false);
            store.rows.iter_mut().for_each(|row| f(row, false));
        }
        Kind::Texture(texture) => {
            texture.texel.rows_mut().for_each(|row| f(row, false));
            texture.rows.iter_mut().for_each(|row| f(row, true));
        }
        Kind::Surface(surface) => {
            surface.texel.rows_mut().for_each(|row| f(row, false));
            let load = !surface.store;
            surface.rows.iter_mut().for_each(|row| f(row, load));
        }
        Kind::Matrix(matrix) => matrix.visit(f),
        Kind::Mbarrier(mbarrier) => {
            let Mbarrier {
                kind,
                address,
                d,
                a,
                b,
            } = &mut **mbarrier;
            f(&mut address.base, false);
            f(a, false);
            f(b, false);
            if !matches!(kind, MbarrierKind::TestWait { .. }) {
                d.iter_mut().for_each(|row| f(row, true));
            }
        }
        Kind::BranchIndexed { index, .. } => f(index, false),
        Kind::Call(call) => {
            if let Callee::Indirect(row) = &mut call.callee {
                f(row, false);
            }
            let mut each = |arguments: &mut Vec<Argument>, write| {
                for argument in arguments {
                    if let Argument::Row(row) = argument {
                        f(row, write);
                    }
                }
            };
            each(&mut call.arguments, false);
            each(&mut call.returns, true);
        }
        Kind::Barrier(barrier) => {
            let Barrier {
                kind, id, count, d, ..
            } = &mut **barrier;
            f(id, false);
            count.iter_mut().for_each(|row| f(row, false));
            if *kind == BarrierKind::Popc {
                f(d, true);
            }
        }
        Kind::Exchange(exchange) => {
            let votes = matches!(
                exchange.kind,
                ExchangeKind::VoteAll
                    | ExchangeKind::VoteAny
                    | ExchangeKind::VoteUni
                    | ExchangeKind::Ballot
            );
            let Exchange {
                members,
                d,
                a,
                b,
                c,
                ..
            } = &mut **exchange;
            members.iter_mut().for_each(|row| f(row, false));
            if !votes {
                f(a, false);
            }
            f(b, false);
            f(c, false);
            d.iter_mut().for_each(|row| f(row, true));
        }
        Kind::Map(Map {
            d, address, rank, ..
        }) => {
            f(address, false);
            f(rank, false);
            f(d, true);
        }
        Kind::Rank(Rank { d, address, .. }) => {
            f(address, false);
            f(d, true);
        }
        Kind::IsSpace { address, .. } => f(address, false),
        Kind::Allocate { d, bytes, .. } => {
            f(bytes, false);
            f(d, true);
        }
        Kind::StackSave(d) => f(d, true),
        Kind::StackRestore(a) | Kind::Sleep(a) => f(a, false),
        Kind::Branch(_)
        | Kind::Return
        | Kind::Exit
        | Kind::Trap
        | Kind::ClusterBarrier { .. }
        | Kind::Fence
        | Kind::Copies
        | Kind::Dependency
        | Kind::Nop
        | Kind::Unsupported(_) => {}
    }
}
