//! Functions that keep a journal, for kernels whose order the cells do not follow.
//!
//! The entry of a weak access stands in front of the access; proved accesses and others that cannot race have none.
//! Strong accesses, and weak stores to locations that have strong accesses, are made under the lock of
//! their location, so that the journal has them in the location's order. The lanes of a warp try for
//! the lock in a loop that contains the access, so no lane waits for a lane that it blocks.
//! Fences, barriers and exits have their entry in front; a wait at a barrier has a second one behind.
//! `fence.sc` has a lock of its own.

use std::collections::HashSet;

use device::LAUNCH_PARAM;
use ptx::ast::{Function, Instruction, Module, Operand};
use ptx::isa::{
    self, AtomicOp, BarrierKind, FenceSemantics, MemoryKind, MemoryOp, Semantics, SyncOp,
};
use shadow::layout::{
    ACCESS_SHARED, ENTRY_ARRIVE, ENTRY_CLUSTER_ARRIVE, ENTRY_CLUSTER_WAIT, ENTRY_COPIES,
    ENTRY_EXIT, ENTRY_FENCE, ENTRY_PASS, ENTRY_WARP_ARRIVE, ENTRY_WARP_PASS, IDLE_ALWAYS,
    IDLE_IF_CLEAR, IDLE_IF_OTHER, IDLE_IF_SAME, IDLE_IF_SET, IDLE_IF_ZERO, JOURNAL_FORCED,
    JOURNAL_LOOK_PLACES, JOURNAL_LOOK_SHIFT, JOURNAL_LOOKS, JOURNAL_ONCE, JOURNAL_PIECE_SHIFT,
    JOURNAL_READ_ONLY, JOURNAL_STATE, JOURNAL_UPDATES, JOURNAL_WRITES, LaunchBlock,
};

use crate::access::{self, Access, AddressSpace, Checked, Located, unless};
use crate::analysis::{Granules, Plan};
use crate::call::{LAUNCH, Value, call};
use crate::calls::{self, STATE_PARAM};
use crate::cluster;
use crate::copies;
use crate::edit::Edits;
use crate::function;
use crate::matrix;
use crate::mbarrier;
use crate::names::Names;
use crate::proved::{self, Free};

/// Jumps to the attempt to make an access again: behind the access, and where it is not the thread's turn.
const AGAIN: &str = "@%crc_todo bra $crc_try_";
const NOT_YET: &str = "@%crc_global bra $crc_again_";

/// The jumps in a loaded text by which accesses are made again, by their byte offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Lanes whose load is void, and lanes that come from one in [`Self::not_made`].
    pub made: HashSet<u32>,
    /// Lanes that have not made the access, because it is not their turn.
    pub not_made: HashSet<u32>,
}

/// Finds them.
pub fn again(loaded: &str) -> Again {
    let all = |jump: &str| {
        loaded
            .match_indices(jump)
            .map(|(at, _)| at as u32)
            .collect()
    };
    Again {
        made: all(AGAIN),
        not_made: all(NOT_YET),
    }
}

/// The address of the thread's state.
pub(crate) const STATE: Value<'static> = Value::new("b64", "%crc_state");

/// Adds the edits of a function.
pub(crate) fn rewrite(
    function: &Function,
    names: Option<&Names<'_>>,
    module: &Module,
    plan: &Plan,
    granules: Granules,
    edits: &mut Edits,
) {
    calls::extend_parameters(module, function, edits);
    let Some(names) = names else {
        return;
    };
    let body = names.body();
    let skips = plan.skips.get(function.name.as_str());
    let mut prologue = prologue(function);
    if let Some(skips) = skips.filter(|skips| !skips.is_empty()) {
        prologue.push_str(&proved::read(skips));
    }
    edits.insert(body.span.start + 1, prologue);
    for declarations in function::more_registers(body, granules) {
        edits.insert(body.span.start + 1, declarations);
    }
    let mut looks = body.span.start;
    let is_mbarrier = |i: &Instruction| matches!(isa::sync(i), Some(SyncOp::Mbarrier { .. }));
    if body.instructions().any(|(_, i)| is_mbarrier(i)) {
        edits.insert(body.span.start + 1, mbarrier::DECLARATIONS);
    }
    for (at, instruction) in body.instructions() {
        let checked = names.checked(at);
        let located = Located { at, instruction };
        if let Checked::Yes(access) = checked {
            let op = access.op;
            let turns = op.is_strong() || (plan.journals_strong && op.kind != MemoryKind::Load);
            let turns = (turns && access.lines.is_none()).then_some(plan.piece_log2);
            // What other threads may observe is recorded, whether it is proved or not.
            let free = skips.and_then(|of| of.get(&at)).filter(|_| !op.is_strong());
            let free = free.copied().map(Free::Bit);
            let turn = turns.map(|piece_log2| Turn {
                piece_log2,
                look: look_place(&mut looks, &op),
            });
            record_access(names, located, &access, turn, free, granules, edits);
        }
        if let Checked::Copy(copy) = checked {
            let text = copies::record(names, located, &copy, granules);
            edits.insert(instruction.span.start, text);
        }
        if mbarrier::record(names, located, granules, edits) {
            continue;
        }
        if let Some(event) = event(function, instruction) {
            record_event(instruction, at, event, edits);
        }
        if calls::checked_callee(plan, instruction) {
            calls::pass_state(module, instruction, at, edits);
        }
    }
    if function.entry {
        let end = Event::before(ENTRY_EXIT).text(Recording::Entry(ENTRY_EXIT), body.span.end);
        edits.insert(body.span.end - 1, format!("\n{end}"));
    }
}

/// What an access needs that may have to wait for its turn.
struct Turn {
    /// log2 of the bytes that have a lock.
    piece_log2: u32,
    /// See [`look_place`].
    look: u32,
}

/// The place of a thread's looks that is for an access, as its word has it. Instructions of a function have places
/// of their own, as far as there are enough.
fn look_place(looks: &mut u32, op: &MemoryOp) -> u32 {
    if !matches!(op.kind, MemoryKind::Load | MemoryKind::Rmw) {
        return 0;
    }
    *looks += 1;
    *looks % JOURNAL_LOOK_PLACES
}

/// Declares the registers and fills them.
fn prologue(function: &Function) -> String {
    let mut text = format!(
        "\n.reg .pred %crc_global, %crc_guard, %crc_todo;\n.reg .b32 %crc_word, %crc_got, %crc_a;\n\
         .reg .b64 %crc_launch, %crc_me, %crc_state, %crc_address, %crc_block, %crc_operand;\n\
         ld.param.u64 %crc_launch, [{LAUNCH_PARAM}];\n"
    );
    if function.entry {
        text.push_str(&format!(
            ".local .align 16 .b8 __cudarun_me[{JOURNAL_STATE}];\nmov.u64 %crc_state, __cudarun_me;\n"
        ));
        text.push_str(&call("journal_enter", None, &[LAUNCH, STATE]));
    } else {
        text.push_str(&format!("ld.param.u64 %crc_state, [{STATE_PARAM}];\n"));
    }
    text
}

/// Adds what an access needs.
fn record_access(
    names: &Names<'_>,
    located: Located<'_>,
    access: &Access,
    turn: Option<Turn>,
    free: Option<Free>,
    granules: Granules,
    edits: &mut Edits,
) {
    let Located { at, instruction } = located;
    let Access {
        op,
        address_space,
        lines,
    } = access;
    let (op, address_space) = (op, *address_space);
    let turns = turn.is_some();
    let skip = match turns {
        true => format!("$crc_run_{at}"),
        false => format!("$crc_recorded_{at}"),
    };
    let mut text = String::from("\n");
    if turns {
        text.push_str("setp.ne.u32 %crc_todo, 0, 0;\n");
    }
    if let Some(guard) = &instruction.guard {
        text.push_str(&format!("{}bra {skip};\n", unless(guard)));
    }
    if let Some(free) = free {
        text.push_str(&free.unless(&skip));
    }
    let operand = instruction.operands.get(op.address);
    access::address(&mut text, names, at, operand, address_space);
    if let Some(lines) = lines {
        text.push_str(&matrix::line(instruction, lines, &skip));
    }
    let mut word = op.bytes() << shadow::layout::ACCESS_BYTES_SHIFT;
    if op.kind != MemoryKind::Load {
        word |= JOURNAL_WRITES;
    }
    word |= if op.is_strong() { JOURNAL_FORCED } else { 0 };
    word |= if op.nc { JOURNAL_READ_ONLY } else { 0 };
    word |= if is_once(op, instruction) {
        JOURNAL_ONCE
    } else {
        0
    };
    if matches!(op.kind, MemoryKind::Rmw | MemoryKind::Reduction) {
        word |= JOURNAL_UPDATES;
    }
    if let Some(turn) = turn {
        let piece = turn.piece_log2 - 2;
        word |= (piece << JOURNAL_PIECE_SHIFT) | (turn.look << JOURNAL_LOOK_SHIFT);
    }
    let releases = matches!(op.sem, Semantics::Release | Semantics::AcqRel);
    let looks = match op.kind == MemoryKind::Rmw && !releases && op.bytes() <= 8 {
        true => JOURNAL_LOOKS,
        false => 0,
    };
    let global = looks | word | granules.global << shadow::layout::ACCESS_GRANULE_SHIFT;
    let granule = granules.shared.unwrap_or(2);
    let shared = word | granule << shadow::layout::ACCESS_GRANULE_SHIFT | ACCESS_SHARED;
    let in_global = format!("mov.u64 %crc_block, %crc_launch;\nmov.u32 %crc_word, {global};\n");
    let in_shared = format!(
        "add.s64 %crc_block, %crc_launch, {};\nmov.u32 %crc_word, {shared};\n",
        size_of::<LaunchBlock>()
    );
    let clusters = granules.clusters;
    match address_space {
        AddressSpace::Global => text.push_str(&in_global),
        AddressSpace::Shared | AddressSpace::Cluster if clusters => {
            text.push_str(&(cluster::place(address_space, &skip) + &in_shared));
        }
        AddressSpace::Shared | AddressSpace::Cluster => text.push_str(&in_shared),
        AddressSpace::Generic if clusters => text.push_str(&format!(
            "{in_global}isspacep.global %crc_global, %crc_address;\n@%crc_global bra $crc_known_{at};\n\
             {}{in_shared}$crc_known_{at}:\n",
            cluster::place(address_space, &skip)
        )),
        AddressSpace::Generic => text.push_str(&format!(
            "{in_global}isspacep.global %crc_global, %crc_address;\n@%crc_global bra $crc_known_{at};\n\
             isspacep.shared %crc_global, %crc_address;\n@!%crc_global bra {skip};\n\
             cvta.to.shared.u64 %crc_address, %crc_address;\n{in_shared}$crc_known_{at}:\n"
        )),
    }
    let what = instruction.span.start.to_string();
    let arguments = [
        Value::new("b64", "%crc_block"),
        STATE,
        Value::new("b64", "%crc_address"),
        Value::new("b32", &what),
        Value::new("b32", "%crc_word"),
    ];
    if !turns {
        text.push_str(&call("journal_access", None, &arguments));
        text.push_str(&format!("{skip}:\n"));
        edits.insert(instruction.span.start, text);
        return;
    }
    let look = match looks != 0 {
        true => look(located, op, &arguments, &skip),
        false => String::new(),
    };
    text.push_str(&format!(
        "setp.eq.u32 %crc_todo, 0, 0;\n$crc_try_{at}:\n{look}{}setp.eq.u32 %crc_global, %crc_got, 0;\n\
         {NOT_YET}{at};\n{skip}:\n",
        call("journal_lock", Some(Value::new("b32", "%crc_got")), &arguments)
    ));
    edits.insert(instruction.span.start, text);
    edits.insert(
        instruction.span.end,
        format!(
            "\n@!%crc_todo bra $crc_recorded_{at};\n{}setp.ne.u32 %crc_todo, %crc_got, 0;\n\
             $crc_again_{at}:\n{AGAIN}{at};\n$crc_recorded_{at}:\n",
            call(
                "journal_made",
                Some(Value::new("b32", "%crc_got")),
                &arguments
            )
        ),
    );
}

/// In front of the turn of an atomic that may change nothing: takes a turn together with other lanes, or
/// when it is to be had. Then it goes on at `skip`.
fn look(
    Located { at, instruction }: Located<'_>,
    op: &MemoryOp,
    arguments: &[Value<'_>; 5],
    skip: &str,
) -> String {
    let operand = match instruction.operands.get(op.address + 1) {
        Some(Operand::Int(value)) => value.to_string(),
        Some(Operand::Name { name, .. }) => name.to_string(),
        _ => return String::new(),
    };
    let (Some(mut idle), None) = (idle(op), instruction.operands.get(op.address + 3)) else {
        return String::new();
    };
    // A compare-and-swap of a value with itself.
    if instruction.operands.get(op.address + 1) == instruction.operands.get(op.address + 2) {
        idle = IDLE_ALWAYS;
    }
    let bits = 8 * op.bytes();
    let widened = match bits {
        32 => format!("mov.b32 %crc_got, {operand};\ncvt.u64.u32 %crc_operand, %crc_got;\n"),
        _ => format!("mov.b64 %crc_operand, {operand};\n"),
    };
    let idle = idle.to_string();
    let [block, state, address, what, word] = *arguments;
    let more = [Value::new("b32", &idle), Value::new("b64", "%crc_operand")];
    let arguments = [block, state, address, what, word, more[0], more[1]];
    format!(
        "{widened}{}setp.eq.u32 %crc_global, %crc_got, 0;\n{NOT_YET}{at};\n\
         setp.eq.u32 %crc_global, %crc_got, 2;\n@%crc_global bra {skip};\n",
        call(
            "journal_look",
            Some(Value::new("b32", "%crc_got")),
            &arguments
        )
    )
}

/// When an atomic changes nothing, if its first operand shows that.
fn idle(op: &MemoryOp) -> Option<u32> {
    let wide = matches!(op.bytes_per_element, 4 | 8) && op.vector == 1;
    match op.op.filter(|_| wide && op.ty.is_integer())? {
        AtomicOp::Add | AtomicOp::Xor => Some(IDLE_IF_ZERO),
        AtomicOp::Cas => Some(IDLE_IF_OTHER),
        AtomicOp::Or => Some(IDLE_IF_SET),
        AtomicOp::And => Some(IDLE_IF_CLEAR),
        AtomicOp::Exch => Some(IDLE_IF_SAME),
        AtomicOp::Inc | AtomicOp::Dec | AtomicOp::Min | AtomicOp::Max => None,
    }
}

/// True of an access that cannot be made twice: it has effects, or overwrites its own address or operand.
fn is_once(op: &MemoryOp, instruction: &Instruction) -> bool {
    let mut read = Vec::new();
    isa::register_reads(instruction, |name| read.push(name));
    let mut once = op.sem == Semantics::Mmio;
    isa::register_writes(instruction, |name| once |= read.contains(&name));
    once
}

/// Something to be recorded that is not an access.
struct Event<'a> {
    /// In front of the instruction.
    before: Option<Recording>,
    /// Behind it.
    behind: Option<Recording>,
    /// Operand with the barrier or the mask.
    about: Option<&'a Operand>,
}

/// What to call.
#[derive(Clone, Copy)]
enum Recording {
    /// Records an entry of that kind.
    Entry(u32),
    /// Waits for the turn to execute `fence.sc`.
    Fence,
    /// Records that it has been executed.
    Fenced,
}

impl Event<'_> {
    fn before(kind: u32) -> Self {
        Self {
            before: Some(Recording::Entry(kind)),
            behind: None,
            about: None,
        }
    }

    fn text(&self, recording: Recording, what: u32) -> String {
        let (name, kind) = match recording {
            Recording::Fence => return call("journal_fence", None, &[LAUNCH, STATE]),
            Recording::Fenced => ("journal_fenced", ENTRY_FENCE),
            Recording::Entry(kind) => ("journal_event", kind),
        };
        let about = match self.about {
            Some(Operand::Int(value)) => {
                format!("mov.u64 %crc_address, {};\n", *value as u32)
            }
            Some(Operand::Name { name, .. }) => format!("cvt.u64.u32 %crc_address, {name};\n"),
            _ => "mov.u64 %crc_address, 0;\n".to_owned(),
        };
        about + &entry(name, kind, what)
    }
}

/// Calls what writes an entry of a kind, for the instruction at byte `what`, about `%crc_address`.
pub(crate) fn entry(name: &str, kind: u32, what: u32) -> String {
    let (kind, what) = (kind.to_string(), what.to_string());
    let arguments = [
        LAUNCH,
        STATE,
        Value::new("b32", &kind),
        Value::new("b32", &what),
        Value::new("b64", "%crc_address"),
    ];
    call(name, None, &arguments)
}

/// What is recorded of an instruction that is not an access.
fn event<'a>(function: &Function, instruction: &'a Instruction) -> Option<Event<'a>> {
    let ends = match instruction.opcode.as_str() {
        "exit" => true,
        "ret" => function.entry,
        _ => false,
    };
    if ends {
        return Some(Event::before(ENTRY_EXIT));
    }
    let operand = |at: usize| instruction.operands.get(at);
    let copies = instruction.opcode == "cp";
    match isa::sync(instruction)? {
        SyncOp::Fence { sem, proxy, .. } if !proxy => Some(match sem {
            FenceSemantics::Sc => Event {
                before: Some(Recording::Fence),
                behind: Some(Recording::Fenced),
                about: None,
            },
            _ => Event::before(ENTRY_FENCE),
        }),
        SyncOp::CtaBarrier { kind, id, .. } => Some(Event {
            before: Some(Recording::Entry(ENTRY_ARRIVE)),
            behind: (kind != BarrierKind::Arrive).then_some(Recording::Entry(ENTRY_PASS)),
            about: operand(id),
        }),
        SyncOp::ClusterBarrier { arrive: true, .. } => Some(Event::before(ENTRY_CLUSTER_ARRIVE)),
        SyncOp::ClusterBarrier { arrive: false, .. } => Some(Event {
            before: None,
            behind: Some(Recording::Entry(ENTRY_CLUSTER_WAIT)),
            about: None,
        }),
        SyncOp::Fence { .. } => Some(Event::before(ENTRY_FENCE)),
        SyncOp::CommitGroup if copies => Some(Event::before(ENTRY_COPIES)),
        SyncOp::WaitGroup if copies => Some(Event {
            before: None,
            behind: Some(Recording::Entry(ENTRY_COPIES)),
            about: None,
        }),
        SyncOp::WarpBarrier { mask } => Some(Event {
            before: Some(Recording::Entry(ENTRY_WARP_ARRIVE)),
            behind: Some(Recording::Entry(ENTRY_WARP_PASS)),
            about: operand(mask),
        }),
        _ => None,
    }
}

/// True when an instruction orders threads of the launch and the journal does not record it. `griddepcontrol` orders
/// launches, not threads of one launch.
pub(crate) fn is_beyond(instruction: &Instruction) -> bool {
    let sync = isa::sync(instruction);
    let recorded = match sync {
        Some(SyncOp::CommitGroup | SyncOp::WaitGroup) => instruction.opcode == "cp",
        Some(SyncOp::Other) => false,
        _ => true,
    };
    !recorded || isa::lookup(&instruction.opcode).is_none()
}

/// Adds what is recorded in front of an instruction and behind it.
fn record_event(instruction: &Instruction, at: usize, event: Event<'_>, edits: &mut Edits) {
    let mut before = String::from("\n");
    let mut guard = instruction.guard.clone();
    if let Some(guard) = &mut guard {
        // `@p bar.red.or.pred p, …` leaves something else in its guard.
        let mut overwritten = false;
        isa::register_writes(instruction, |name| overwritten |= name == guard.predicate);
        if overwritten {
            before.push_str(&format!("mov.pred %crc_guard, {};\n", guard.predicate));
            guard.predicate = "%crc_guard".into();
        }
    }
    let guarded = |recording: Recording, label: &str| {
        let text = event.text(recording, instruction.span.start);
        match &guard {
            Some(guard) => format!("{}bra {label};\n{text}{label}:\n", unless(guard)),
            None => text,
        }
    };
    if let Some(recording) = event.before {
        before.push_str(&guarded(recording, &format!("$crc_before_{at}")));
    }
    edits.insert(instruction.span.start, before);
    if let Some(recording) = event.behind {
        let text = guarded(recording, &format!("$crc_behind_{at}"));
        edits.insert(instruction.span.end, format!("\n{text}"));
    }
}
