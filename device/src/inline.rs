//! The fast paths: compiled functions, inlined in front of accesses as straight-line code.

use shadow::rule;

use crate::functions::body;

/// The fast path, to be inlined in front of an access.
///
/// Straight-line code over registers of its own; [`Fast::declarations`] once per function body,
/// [`Fast::inline`] per access.
#[derive(Clone, Copy, Debug)]
pub struct Fast;

/// What the inlined code reads: registers or literals.
#[derive(Clone, Debug)]
pub struct FastArguments<'a> {
    /// Register: [`shadow::layout::LaunchBlock::cells`].
    pub cells: &'a str,
    /// Register: first address checked.
    pub base: &'a str,
    /// Register: bytes checked.
    pub bytes: &'a str,
    /// Register: [`shadow::layout::LaunchBlock::cell_mask`].
    pub cell_mask: &'a str,
    /// 32-bit register: [`shadow::layout::LaunchBlock::tag_from`].
    pub tag_from: &'a str,
    /// 32-bit register: lowest bit of the tag.
    pub tag_shift: &'a str,
    /// Register: [`shadow::layout::LaunchBlock::compared`].
    pub compared: &'a str,
    /// Register: [`shadow::layout::LaunchBlock::compared_by_warps`].
    pub compared_by_warps: &'a str,
    /// Register: the thread's identity.
    pub me: &'a str,
    /// Register: the address, global or generic.
    pub address: &'a str,
    /// log2 of the granule's bytes.
    pub granule_log2: u32,
    /// Kind of the access, `shadow::rule::WEAK_LOAD` and on.
    pub kind: u32,
    /// See [`CellLoad`].
    pub load: CellLoad,
}

/// Where the inlined code finds a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellLoad {
    /// Where all threads see it, in a GPU's second cache.
    Fresh,
    /// In the multiprocessor's own cache, if it is there: what is found may be what the cell held
    /// earlier in the launch. An access that this value settled then is settled by it now, as no epoch has ended
    /// in between (`settled_by_what_the_cell_held_before` of shadow/tests/enumeration.rs). A claim with an
    /// old value changes nothing, because it is a compare-and-swap.
    /// Not where an access is dated by its cell, as for the fence rule.
    Cached,
}

impl CellLoad {
    /// How the device code loads a cell, and what stands for that.
    fn instructions(self) -> [&'static str; 2] {
        let fresh = "ld.relaxed.gpu.global";
        match self {
            Self::Fresh => [fresh; 2],
            Self::Cached => [fresh, "ld.relaxed.cta.global"],
        }
    }
}

/// The fast path for shared memory, likewise; the predicate is that of [`Fast`].
#[derive(Clone, Copy, Debug)]
pub struct FastShared;

/// What the inlined code for shared memory reads: registers or literals.
#[derive(Clone, Debug)]
pub struct FastSharedArguments<'a> {
    /// Register: what `__cudarun_slot` gave.
    pub cells: &'a str,
    /// Register: [`shadow::layout::LaunchBlock::cell_mask`].
    pub cell_mask: &'a str,
    /// Register: [`shadow::layout::LaunchBlock::compared_by_warps`].
    pub compared_by_warps: &'a str,
    /// Register: the thread's identity.
    pub me: &'a str,
    /// Register: the offset in shared memory.
    pub address: &'a str,
    /// log2 of the granule's bytes.
    pub granule_log2: u32,
    /// Kind of the access, of gpu scope if it is strong.
    pub kind: u32,
    /// See [`CellLoad`].
    pub load: CellLoad,
}

/// An inlined fast path, in two parts.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// Loads the cell and compares it with the thread's identity: sets the registers that [`Claim`](crate::Claim)
    /// reads.
    pub find: String,
    /// The rest: decides whether the cell stays as it is.
    pub settle: String,
}

impl Inlined {
    /// The register that [`Inlined::find`] sets last.
    const LAST: &'static str = "%crc_differs";

    fn of(text: &str) -> Self {
        let fills = |line: &&str| {
            let operands = line.split_once(char::is_whitespace);
            operands.is_some_and(|(_, operands)| operands.trim_start().starts_with(Self::LAST))
        };
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let end = lines.iter().position(fills).map_or(0, |at| at + 1);
        let (find, settle) = lines.split_at(end);
        Self {
            find: find.concat(),
            settle: settle.concat(),
        }
    }
}

/// A 64-bit literal as every assembler takes it.
pub(crate) fn literal(bits: u64) -> String {
    bits.cast_signed().to_string()
}

/// The bytes of a granule to those of a cell, as a shift.
fn spread(granule_log2: u32) -> String {
    3u32.saturating_sub(granule_log2).to_string()
}

impl FastShared {
    pub(crate) const NAME: &'static str = "__cudarun_fast_shared";
    const REGISTERS: &'static str = "%crc_f_s_";

    /// Register declarations, to stand once in a function body, behind those of [`Fast`].
    pub fn declarations() -> String {
        declarations(Self::NAME, Self::REGISTERS)
    }

    /// The check of one access; afterwards `%crc_hit` says that nothing is left to do.
    pub fn inline(arguments: &FastSharedArguments<'_>) -> Inlined {
        let kind = arguments.kind;
        let values = [
            arguments.cells,
            arguments.cell_mask,
            arguments.compared_by_warps,
            arguments.me,
            arguments.address,
            &spread(arguments.granule_log2),
            &literal(rule::classes(kind)),
            &literal(!rule::own(kind)),
            &literal(rule::shared_by_warps(kind)),
            &literal(rule::shared_by_lanes(kind)),
        ];
        let [fresh, load] = arguments.load.instructions();
        Inlined::of(&inline(Self::NAME, Self::REGISTERS, &values).replace(fresh, load))
    }
}

impl Fast {
    pub(crate) const NAME: &'static str = "__cudarun_fast";
    const REGISTERS: &'static str = "%crc_f_";

    /// Register declarations, to stand once in a function body.
    pub fn declarations() -> String {
        declarations(Self::NAME, Self::REGISTERS)
            + ".reg .pred %crc_hit;\n\
               .reg .b64 %crc_at, %crc_cell, %crc_who, %crc_differs, %crc_offset;\n"
    }

    /// The check of one access; afterwards `%crc_hit` says that nothing is left to do.
    pub fn inline(arguments: &FastArguments<'_>) -> Inlined {
        let kind = arguments.kind;
        let values = [
            arguments.cells,
            arguments.base,
            arguments.bytes,
            arguments.cell_mask,
            arguments.tag_from,
            arguments.tag_shift,
            arguments.compared,
            arguments.compared_by_warps,
            arguments.me,
            arguments.address,
            &spread(arguments.granule_log2),
            &literal(rule::classes(kind)),
            &literal(!rule::own(kind)),
            &literal(rule::shared(kind)),
            &literal(rule::shared_by_warps(kind)),
            &literal(rule::shared_by_lanes(kind)),
        ];
        let [fresh, load] = arguments.load.instructions();
        Inlined::of(&inline(Self::NAME, Self::REGISTERS, &values).replace(fresh, load))
    }
}

/// What a line that names a value begins with: its name and its register follow.
const NAMED: &str = "//= ";

/// The lines of a function that are more than remarks and its end.
fn code(name: &str) -> impl Iterator<Item = &'static str> {
    body(name).filter(|line| {
        let remark = line.starts_with("//") && !line.starts_with(NAMED);
        !remark && !matches!(*line, "" | "}" | "ret;")
    })
}

/// The function's registers, renamed so that no other code uses them.
fn declarations(name: &str, registers: &str) -> String {
    let lines = code(name).filter(|line| line.starts_with(".reg"));
    lines
        .map(|line| line.replace('%', registers) + "\n")
        .collect()
}

/// What stands in the place of a register: a parameter's value, which is read once, into a register that stays; and the
/// name of a named value.
struct Replacement<'a> {
    register: &'a str,
    value: String,
}

/// The function's code, its parameters replaced by `values`.
fn inline(name: &str, registers: &str, values: &[&str]) -> String {
    let mut same: Vec<Replacement<'_>> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in code(name).filter(|line| !line.starts_with(".reg")) {
        if let Some((register, value)) = parameter(line, values) {
            let value = value.to_owned();
            same.push(Replacement { register, value });
        } else if let Some((name, register)) = line
            .strip_prefix(NAMED)
            .and_then(|line| line.split_once(' '))
        {
            let value = format!("%crc_{name}");
            same.push(Replacement { register, value });
        } else {
            lines.push(line);
        }
    }
    // The result is a predicate, which the last two lines turn into a number and return.
    let settled = lines.iter().rev().nth(1).and_then(|line| {
        let predicate = line.strip_prefix("selp.b32")?.rsplit(',').next()?;
        predicate.trim().strip_suffix(';')
    });
    if let Some(predicate) = settled {
        same.push(Replacement {
            register: predicate,
            value: "%crc_hit".to_owned(),
        });
        lines.truncate(lines.len() - 2);
    }
    let lines = lines.into_iter();
    lines
        .map(|line| substitute(line, registers, &same) + "\n")
        .collect()
}

/// The register that a line reads a parameter into, and what stands for the parameter.
fn parameter<'a>(line: &'a str, values: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let (register, source) = line.strip_prefix("ld.param.")?.split_once(',')?;
    let register = register.split_whitespace().nth(1)?;
    let number = source.trim().strip_suffix("];")?.rsplit('_').next()?;
    Some((register, values.get(number.parse::<usize>().ok()?)?))
}

/// Gives registers other names, or what stands for them.
fn substitute(line: &str, registers: &str, same: &[Replacement<'_>]) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        let end = from[1..].find(|c: char| !c.is_ascii_alphanumeric());
        let (name, behind) = from.split_at(end.map_or(from.len(), |end| end + 1));
        text.push_str(before);
        match same.iter().find(|of| of.register == name) {
            Some(of) => text.push_str(&of.value),
            None => text.extend([registers, &name[1..]]),
        }
        rest = behind;
    }
    text.push_str(rest);
    text
}
