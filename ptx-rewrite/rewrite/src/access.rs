//! Which accesses are checked, and the text of a check.

use std::fmt::Write;

use device::{
    CellLoad, Claim, Fast, FastArguments, FastShared, FastSharedArguments, Inlined, Known,
};
use ptx::ast::{AddressBase, Guard, Instruction, Operand, Space};
use ptx::isa::matrix::{self as lines, Lines};
use ptx::isa::{self, MemoryKind, MemoryOp, Scope};
use shadow::layout::{ACCESS_SHARED, LaunchBlock, UNWRITTEN_WORDS};
use shadow::rule;

use crate::analysis::Granules;
use crate::call::{ME, Value, call};
use crate::cluster;
use crate::copies::{self, Copy};
use crate::matrix;
use crate::names::{Meaning, Names};
use crate::outlined::Outlined;
use crate::proved::Free;

/// What becomes of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Checked {
    /// It does not access memory.
    NoAccess,
    /// It gets a check.
    Yes(Access),
    /// It is an asynchronous copy or store, and gets checks.
    Copy(Copy),
    /// Shared memory, in a way the check does not follow.
    Shared,
    /// Local memory, parameters, constants.
    Private,
    /// It accesses memory in a way the check does not follow.
    NotUnderstood,
}

/// An access that gets a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// What it does.
    pub(crate) op: MemoryOp,
    /// Where.
    pub(crate) address_space: AddressSpace,
    /// It is made by the lanes of a warp together, a line by each.
    pub(crate) lines: Option<Lines>,
}

/// An instruction at its place in a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located<'a> {
    /// The number of its statement.
    pub(crate) at: usize,
    pub(crate) instruction: &'a Instruction,
}

/// How a launch may spare the check of an access, or a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortcuts {
    /// Only some granules are checked.
    pub(crate) sample: bool,
    /// It may be checked as one granule.
    pub(crate) word: bool,
    /// Where a launch says that it needs no check.
    pub(crate) free: Option<Free>,
}

/// How the checks of a function are written.
pub(crate) struct Form<'a> {
    pub(crate) granules: Granules,
    /// The functions that its checks are in; none where they are inlined.
    pub(crate) outlined: Option<&'a mut Outlined>,
}

/// Where a checked access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    /// To global memory.
    Global,
    /// To shared memory of the thread's own CTA.
    Shared,
    /// To shared memory of a CTA of its cluster.
    Cluster,
    /// Its address says it.
    Generic,
}

impl AddressSpace {
    /// The address space that a state space is, if it can be checked.
    pub(crate) fn of(space: Space) -> Option<Self> {
        match space {
            Space::Global => Some(Self::Global),
            Space::Shared => Some(Self::Shared),
            Space::SharedCluster => Some(Self::Cluster),
            Space::Generic => Some(Self::Generic),
            _ => None,
        }
    }

    pub(crate) fn may_be_global(self) -> bool {
        matches!(self, Self::Global | Self::Generic)
    }

    pub(crate) fn may_be_shared(self) -> bool {
        self != Self::Global
    }
}

/// Decides for the instruction at statement `at`.
pub(crate) fn classify(names: &Names<'_>, at: usize, instruction: &Instruction) -> Checked {
    let Some(mut op) = isa::memory(instruction) else {
        return Checked::NoAccess;
    };
    let lines = lines::lines(instruction);
    if let Some(lines) = &lines {
        op = matrix::access(op, lines);
    }
    if let Some(narrow) = names.narrow(at) {
        op.bytes_per_element = narrow.bytes;
    }
    let address = instruction.operands.get(op.address);
    let Some(space) = space_of(names, at, op.space, address) else {
        return Checked::NotUnderstood;
    };
    if asynchronous(&op) {
        let copy = copies::read(names, at, instruction, &op);
        return copy.map_or(Checked::NotUnderstood, Checked::Copy);
    }
    let plain =
        op.is_plain() && op.bytes() != 0 && matches!(address, Some(Operand::Address { .. }));
    match space {
        _ if plain && let Some(address_space) = AddressSpace::of(space) => Checked::Yes(Access {
            op,
            address_space,
            lines,
        }),
        Space::Shared => Checked::Shared,
        Space::Local | Space::Param | Space::Const | Space::Reg | Space::Sreg => Checked::Private,
        _ => Checked::NotUnderstood,
    }
}

/// The space of an address, where a symbol without one means its own; none if the symbol is unknown.
pub(crate) fn space_of(
    names: &Names<'_>,
    at: usize,
    space: Space,
    address: Option<&Operand>,
) -> Option<Space> {
    match (space, address) {
        (
            Space::Generic,
            Some(Operand::Address {
                base: AddressBase::Name(name),
                ..
            }),
        ) => match names.meaning(at, name) {
            Meaning::Variable(space) => Some(space),
            Meaning::Register(_) => Some(Space::Generic),
            Meaning::Unknown => None,
        },
        (space, _) => Some(space),
    }
}

/// Whether the access completes at a time of its own.
fn asynchronous(op: &MemoryOp) -> bool {
    matches!(
        op.kind,
        MemoryKind::AsyncCopy | MemoryKind::BulkCopy | MemoryKind::AsyncStore | MemoryKind::Opaque
    )
}

/// Scope from which a strong access to global memory includes all who can reach it.
///
/// Cluster scope counts as cta scope: it includes no other CTA unless the launch has clusters, and
/// then the kernel's conflicts are candidates anyway.
pub(crate) const GLOBAL: Scope = Scope::Gpu;
/// The same for shared memory that is only its CTA's: every scope.
pub(crate) const SHARED: Scope = Scope::Cta;
/// The same for shared memory that CTAs of the cluster reach.
const CLUSTER: Scope = Scope::Cluster;

/// The rule's kind of an access to memory where scopes are wide from `wide` on.
pub(crate) fn kind(op: &MemoryOp, wide: Scope) -> u32 {
    let wide = op.scope >= wide;
    match op.kind {
        MemoryKind::Load if !op.is_strong() => rule::WEAK_LOAD,
        MemoryKind::Load if wide => rule::STRONG_LOAD_GPU,
        MemoryKind::Load => rule::STRONG_LOAD_CTA,
        MemoryKind::Store if !op.is_strong() => rule::WEAK_STORE,
        _ if wide => rule::STRONG_WRITE_GPU,
        _ => rule::STRONG_WRITE_CTA,
    }
}

/// `@!p ` or `@p `: where the guarded instruction does not execute.
pub(crate) fn unless(guard: &Guard) -> String {
    let not = if guard.negated { "" } else { "!" };
    format!("@{not}{} ", guard.predicate)
}

/// Most granules that are looked at one by one before the called check takes over.
const INLINE_GRANULES: u32 = 4;

/// Reads whether the launch accesses the memory of all words that may be checked as one granule by whole words only.
pub(crate) fn read_words() -> String {
    let offset = std::mem::offset_of!(LaunchBlock, unwritten);
    format!(
        ".reg .pred %crc_words;\nld.global.u64 %crc_next, [%crc_launch+{offset}];\n\
         and.b64 %crc_next, %crc_next, {UNWRITTEN_WORDS};\nsetp.ne.u64 %crc_words, %crc_next, 0;\n"
    )
}

/// Granules that the inlined check of an access looks at.
pub(crate) fn inlined(access: &Access, granules: Granules) -> u32 {
    let of = |log2: u32| match access.op.bytes().div_ceil(1 << log2) {
        few @ ..=INLINE_GRANULES => few,
        _ => 0,
    };
    let global = access
        .address_space
        .may_be_global()
        .then(|| of(granules.global));
    let shared = granules
        .shared
        .filter(|_| access.address_space.may_be_shared());
    let shared = shared.filter(|_| !granules.clusters).map(of);
    global.unwrap_or(0) + shared.unwrap_or(0)
}

/// The check of one access, to stand in front of it. `label` is unique in its function.
pub(crate) fn check(
    names: &Names<'_>,
    located: Located<'_>,
    access: &Access,
    site: u32,
    form: Form<'_>,
    shortcuts: Shortcuts,
    label: u32,
) -> String {
    let Located { at, instruction } = located;
    let Access {
        op,
        address_space,
        lines,
    } = access;
    let (op, address_space) = (op, *address_space);
    let Shortcuts { sample, word, free } = shortcuts;
    let Form {
        granules,
        mut outlined,
    } = form;
    let mut text = String::from("\n");
    let skip = format!("$crc_checked_{label}");
    if let Some(guard) = &instruction.guard {
        line(&mut text, format_args!("{}bra {skip};", unless(guard)));
    }
    if let Some(free) = free {
        text.push_str(&free.unless(&skip));
    }
    let operand = instruction.operands.get(op.address);
    address(&mut text, names, at, operand, address_space);
    if let Some(lines) = lines {
        text.push_str(&matrix::line(instruction, lines, &skip));
    }
    let either = address_space == AddressSpace::Generic;
    let shared = granules.shared.filter(|_| address_space.may_be_shared());
    if either {
        let other = match shared {
            Some(_) => format!("$crc_elsewhere_{label}"),
            None => skip.clone(),
        };
        line(
            &mut text,
            format_args!("isspacep.global %crc_global, %crc_address;"),
        );
        line(&mut text, format_args!("@!%crc_global bra {other};"));
    }
    if address_space.may_be_global() {
        if sample && op.bytes() <= 1 << granules.global {
            unless_sampled(&mut text, &skip);
        }
        let inline = granules.claims && (!sample || op.bytes() <= 1 << granules.global);
        let mut target = Target::new(op, GLOBAL, granules.global);
        target.bit = free.and_then(Free::bit);
        let load = load(inline);
        let check = Check { target, load, word };
        check.stand(&mut text, site, outlined.as_deref_mut(), &skip, label);
    }
    if let Some(granule_log2) = shared
        && granules.clusters
    {
        if either {
            line(
                &mut text,
                format_args!("bra {skip};\n$crc_elsewhere_{label}:"),
            );
        }
        text.push_str(&cluster::place(address_space, &skip));
        let target = Target::new(op, CLUSTER, granule_log2);
        let called = match op.bytes() <= 1 << granule_log2 {
            true => Called::Slow,
            false => Called::Range,
        };
        target.call(&mut text, called, &target.site(site));
    } else if let Some(granule_log2) = shared {
        if either {
            text.push_str(&format!(
                "bra {skip};\n$crc_elsewhere_{label}:\nisspacep.shared %crc_global, %crc_address;\n\
                 @!%crc_global bra {skip};\ncvta.to.shared.u64 %crc_address, %crc_address;\n"
            ));
        }
        if sample && op.bytes() <= 1 << granule_log2 {
            unless_sampled(&mut text, &skip);
        }
        let inline = granules.claims && (!sample || op.bytes() <= 1 << granule_log2);
        let check = Check {
            target: Target::new(op, SHARED, granule_log2),
            load: load(inline),
            word: false,
        };
        check.stand(&mut text, site, outlined, &skip, label);
    }
    line(&mut text, format_args!("{skip}:"));
    text
}

/// Goes to `skip` unless the one granule at `%crc_address` is checked, as `rule::is_sampled` says. For
/// several granules, the called check asks.
fn unless_sampled(text: &mut String, skip: &str) {
    text.push_str(&format!(
        "shr.u64 %crc_next, %crc_address, {};\ncvt.u32.u64 %crc_word, %crc_next;\n\
         mul.wide.u32 %crc_next, %crc_word, {};\nshr.u64 %crc_next, %crc_next, {};\n\
         and.b64 %crc_next, %crc_next, %crc_sample_mask;\n\
         setp.ne.u64 %crc_settled, %crc_next, 0;\n@%crc_settled bra {skip};\n",
        rule::SAMPLE_WORD_LOG2,
        rule::SAMPLE_FACTOR,
        rule::SAMPLE_SHIFT,
    ));
}

/// What a check in one memory is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Bytes of the access.
    bytes: u32,
    /// The rule's kind of the access.
    pub(crate) kind: u32,
    granule_log2: u32,
    /// It is in shared memory, and not in global memory.
    pub(crate) shared: bool,
    /// Its bit in what a launch says of it, if it is in global memory.
    bit: Option<u64>,
}

/// The check of an access in one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) target: Target,
    /// Cells that are read cached are claimed in place.
    load: CellLoad,
    /// `%crc_words` says whether the first granule stands for all.
    pub(crate) word: bool,
}

/// Which access it is that is checked: registers or literals.
pub(crate) struct Which<'a> {
    /// Its site's number on the device.
    pub(crate) site: &'a str,
    /// Its [`witness`](device::witness); read where [`Check::claims`].
    pub(crate) witness: &'a str,
}

/// What a check calls.
#[derive(Clone, Copy)]
enum Called {
    /// For one granule, where an inlined check has left the cell's address and the thread's identity for
    /// that of weak loads.
    Load,
    /// For one granule.
    Slow,
    /// For all granules of an access.
    Range,
}

/// How cells are read where they are claimed in place, or not.
fn load(claims: bool) -> CellLoad {
    match claims {
        true => CellLoad::Cached,
        false => CellLoad::Fresh,
    }
}

impl Check {
    /// Whether it claims cells in place.
    pub(crate) fn claims(&self) -> bool {
        self.load == CellLoad::Cached && rule::claims(self.target.kind)
    }

    /// Stands in front of an access of the site `id`: inlined, or as a call of a function that has it.
    fn stand(
        mut self,
        text: &mut String,
        id: u32,
        outlined: Option<&mut Outlined>,
        skip: &str,
        label: u32,
    ) {
        let site = self.target.site(id);
        if let Some(outlined) = outlined {
            // One function serves many accesses, so it skips none for its known races.
            self.target.bit = None;
            return text.push_str(&outlined.call(self, &site));
        }
        let kind = self.target.kind;
        let which = Which {
            site: &site,
            witness: &device::witness(rule::site_of_kind(id, kind), kind),
        };
        self.inline(text, &which, skip, label);
    }

    /// The check of `%crc_address`; goes to `skip` when there is nothing left to do.
    pub(crate) fn inline(&self, text: &mut String, which: &Which<'_>, skip: &str, label: u32) {
        let &Self { target, load, word } = self;
        let Target {
            bytes,
            kind,
            granule_log2,
            shared,
            bit,
        } = target;
        let claims = self.claims();
        let granules = bytes.div_ceil(1 << granule_log2);
        let name = if shared { "slot_" } else { "" };
        let ask = format!("$crc_ask_{name}{label}");
        let inline = granules <= INLINE_GRANULES;
        let word = word && inline && granules > 1;
        for n in (0..granules).filter(|_| inline) {
            let fast = target.fast(text, n << granule_log2, load);
            text.push_str(&fast.find);
            let last = n + 1 == granules;
            let next = match last {
                true => skip.to_owned(),
                false => format!("$crc_next_{name}{label}_{n}"),
            };
            if claims {
                let claim = Claim {
                    launch: "%crc_launch",
                    bytes: (!shared).then_some("%crc_bytes"),
                    me: "%crc_me",
                    scratch: ["%crc_next", "%crc_new"],
                    predicate: "%crc_settled",
                    kind,
                    known: bit.filter(|_| kind == rule::WEAK_STORE).map(|bit| Known {
                        bit,
                        compared: "%crc_compared",
                        done: &next,
                    }),
                    witness: which.witness,
                    swaps: &format!("$crc_swap_{name}{label}_{n}"),
                    not: &ask,
                };
                text.push_str(&claim.early());
                text.push_str(&fast.settle);
                line(text, format_args!("@%crc_hit bra {next};"));
                text.push_str(&claim.late());
                text.push_str(&claim.swap());
                match last {
                    true => line(text, format_args!("@%crc_settled bra {skip};")),
                    false => line(text, format_args!("@!%crc_settled bra {ask};\n{next}:")),
                }
            } else {
                text.push_str(&fast.settle);
                match last {
                    true => line(text, format_args!("@%crc_hit bra {skip};")),
                    false => line(text, format_args!("@!%crc_hit bra {ask};")),
                }
            }
            if word && n == 0 {
                line(text, format_args!("@%crc_words bra {skip};"));
            }
        }
        if inline && (claims || granules > 1) {
            line(text, format_args!("{ask}:"));
        }
        let one = match claims && kind == rule::WEAK_LOAD {
            true => Called::Load,
            false => Called::Slow,
        };
        if word {
            let parts = format!("$crc_parts_{label}");
            line(text, format_args!("@!%crc_words bra {parts};"));
            target.call(text, one, which.site);
            line(text, format_args!("bra {skip};\n{parts}:"));
        }
        let called = if granules == 1 { one } else { Called::Range };
        target.call(text, called, which.site);
    }
}

impl Target {
    /// An access; `wide` is the narrowest scope that reaches all threads of its memory.
    fn new(op: &MemoryOp, wide: Scope, granule_log2: u32) -> Self {
        Self {
            bytes: op.bytes(),
            kind: kind(op, wide),
            granule_log2,
            shared: wide != GLOBAL,
            bit: None,
        }
    }

    /// The literal that stands for the site `id` on the device.
    fn site(&self, id: u32) -> String {
        rule::site_of_kind(id, self.kind).to_string()
    }

    /// The fast path for the granule at that offset from `%crc_address`, to be inlined behind `text`;
    /// `%crc_hit` says whether it is settled.
    fn fast(&self, text: &mut String, offset: u32, load: CellLoad) -> Inlined {
        let &Self {
            kind,
            granule_log2,
            shared,
            ..
        } = self;
        let mut address = "%crc_address";
        if offset > 0 {
            address = "%crc_next";
            line(
                text,
                format_args!("add.s64 %crc_next, %crc_address, {offset};"),
            );
        }
        match shared {
            false => Fast::inline(&FastArguments {
                cells: "%crc_cells",
                base: "%crc_base",
                bytes: "%crc_bytes",
                cell_mask: "%crc_cell_mask",
                tag_from: "%crc_tag_from",
                tag_shift: "%crc_tag_shift",
                compared: "%crc_compared",
                compared_by_warps: "%crc_by_warps",
                me: "%crc_me",
                address,
                granule_log2,
                kind,
                load,
            }),
            true => FastShared::inline(&FastSharedArguments {
                cells: "%crc_slot",
                cell_mask: "%crc_slot_mask",
                compared_by_warps: "%crc_by_warps",
                me: "%crc_me",
                address,
                granule_log2,
                kind,
                load,
            }),
        }
    }

    /// The called check of `%crc_address`, with the site that is or is in `site`.
    fn call(&self, text: &mut String, called: Called, site: &str) {
        let &Self {
            bytes,
            kind,
            granule_log2,
            shared,
            ..
        } = self;
        let name = match called {
            Called::Load => "load",
            Called::Slow => "slow",
            Called::Range => "range",
        };
        let mut access = device::access_word(kind, granule_log2, bytes);
        let mut launch = "%crc_launch";
        if shared {
            access |= ACCESS_SHARED;
            launch = "%crc_next";
            line(
                text,
                format_args!(
                    "add.s64 {launch}, %crc_launch, {};",
                    size_of::<LaunchBlock>()
                ),
            );
        }
        let access = access.to_string();
        let who = if shared { "%crc_me" } else { "%crc_who" };
        let mut arguments = vec![
            Value::new("b64", launch),
            ME,
            Value::new("b64", "%crc_address"),
            Value::new("b32", site),
            Value::new("b32", &access),
        ];
        if matches!(called, Called::Load) {
            arguments.extend([Value::new("b64", "%crc_at"), Value::new("b64", who)]);
        }
        text.push_str(&call(name, None, &arguments));
    }
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}

/// Puts the address of an operand of the statement `at` into `%crc_address`.
pub(crate) fn address(
    text: &mut String,
    names: &Names<'_>,
    at: usize,
    operand: Option<&Operand>,
    address_space: AddressSpace,
) {
    let Some(Operand::Address { base, offset }) = operand else {
        return;
    };
    if let Some(narrow) = names.narrow(at) {
        let pointer = &narrow.pointer;
        line(text, format_args!("mov.u64 %crc_address, {pointer};"));
        return;
    }
    match base {
        AddressBase::Name(name) => {
            // A narrow register is extended with zeros, as the access itself does.
            let narrow = matches!(names.meaning(at, name), Meaning::Register(4));
            if narrow
                && *offset != 0
                && matches!(address_space, AddressSpace::Shared | AddressSpace::Cluster)
            {
                // Addresses of shared memory wrap around at 32 bits: nvcc computes some as a negative number plus an offset.
                line(
                    text,
                    format_args!(
                        "add.u32 %crc_a, {name}, {offset};\ncvt.u64.u32 %crc_address, %crc_a;"
                    ),
                );
                return;
            }
            let get = if narrow { "cvt.u64.u32" } else { "mov.u64" };
            line(text, format_args!("{get} %crc_address, {name};"));
            if *offset != 0 {
                line(
                    text,
                    format_args!("add.s64 %crc_address, %crc_address, {offset};"),
                );
            }
        }
        AddressBase::Absolute(at) => {
            let at = at.wrapping_add_signed(*offset);
            line(text, format_args!("mov.u64 %crc_address, {at};"));
        }
    }
}
