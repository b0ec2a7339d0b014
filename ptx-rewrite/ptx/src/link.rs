//! Several translation units of relocatable device code as one module.
//!
//! [`link`] does to PTX text what `nvlink` does to machine code: declarations find their
//! definitions, of weak and common ones one is kept, and names that are local to a unit are made
//! different where another unit has the same. Nothing else of the text changes.
//!
//! The parts come out in this order: header and files, declarations of functions, variables,
//! functions, debug strings; so a name is declared before it is used, as PTX wants it.
//!
//! Source: PTX ISA 9.0, "Linking Directives". Departures: of weak definitions the first is taken,
//! without comparing them, as `nvlink` does; DWARF sections but the strings of inlined functions
//! are left out, because their offsets would have to be rewritten.

use std::collections::{BTreeMap, BTreeSet};

use smol_str::{SmolStr, format_smolstr};

use crate::ast::{Function, Item, Linkage, Module, Space, Span, Statement};
use crate::lexer::{Token, TokenKind, tokens};

/// Functions that every device has and no unit defines. Source: CUDA's PTX Writer's Guide to
/// Interoperability, "System Calls".
pub const SYSTEM_CALLS: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Whether a function is one of the device runtime, by which kernels launch kernels and set conditions of graphs. In its older
/// interface the names are those of C: no compiler gives such ones to functions of C++.
pub fn is_device_runtime(name: &str) -> bool {
    let older = name.strip_prefix("cuda");
    older.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        || name
            .strip_prefix("cnp")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        || DEVICE_RUNTIME.iter().any(|part| name.contains(part))
}

/// In the names of the functions of NVIDIA's `libcudadevrt.a`, and of those of the driver that it calls.
const DEVICE_RUNTIME: [&str; 4] = [
    "GetParameterBuffer",
    "LaunchDevice",
    "__cudaCDP2",
    "__cuda_syscall_",
];

/// Whether a translation unit is the device runtime itself: the `libcudadevrt.a` of CUDA 12 has PTX,
/// that of CUDA 13 has not. What it calls, a driver alone defines.
pub fn defines_device_runtime(text: &str) -> bool {
    let launches = |name: &str| name.contains("LaunchDevice");
    launches(text)
        && crate::parse(text)
            .0
            .functions()
            .any(|function| function.body.is_some() && launches(&function.name))
}

/// A translation unit.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// What a person calls it, such as the file that it was compiled from.
    pub name: &'a str,
    /// Its PTX.
    pub text: &'a str,
}

/// Why units cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// Two units define one name, and neither definition is weak.
    Duplicate {
        /// The name.
        symbol: SmolStr,
        /// The unit with the first definition.
        first: String,
        /// The unit with the other one.
        second: String,
    },
    /// No unit defines a name.
    Missing {
        /// The name.
        symbol: SmolStr,
        /// A unit that needs it.
        unit: String,
    },
    /// A name is a function in one unit and a variable in another one, or a kernel in one and a
    /// function in another one.
    Different {
        /// The name.
        symbol: SmolStr,
        /// The unit with the first declaration.
        first: String,
        /// The unit with the other one.
        second: String,
    },
}

impl std::fmt::Display for LinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duplicate {
                symbol,
                first,
                second,
            } => write!(
                f,
                "{symbol} is defined in {first} and in {second}; \
                 make one of them static, or leave it out and declare it extern"
            ),
            Self::Missing { symbol, unit } => write!(
                f,
                "{unit} needs {symbol}, which no translation unit defines; \
                 link the file that does, built with -rdc=true and with PTX in it"
            ),
            Self::Different {
                symbol,
                first,
                second,
            } => write!(
                f,
                "{symbol} is one thing in {first} and another one in {second}; \
                 give one of them another name"
            ),
        }
    }
}

impl std::error::Error for LinkError {}

/// The first errors in a line, and how many more there are.
pub fn in_one_line(errors: &[LinkError]) -> String {
    const SHOWN: usize = 3;
    let mut lines: Vec<String> = errors
        .iter()
        .take(SHOWN)
        .map(LinkError::to_string)
        .collect();
    if errors.len() > SHOWN {
        lines.push(format!("{} more names", errors.len() - SHOWN));
    }
    lines.join("; ")
}

impl LinkError {
    /// What a kernel does by the device runtime with the missing name, in words that follow "kernels that".
    pub fn device_runtime(&self) -> Option<String> {
        let Self::Missing { symbol, .. } = self else {
            return None;
        };
        let name = symbol.as_str();
        if !is_device_runtime(name) {
            return None;
        }
        let launches = ["GetParameterBuffer", "LaunchDevice"];
        let newer = name.strip_prefix("__cudaCDP2");
        Some(match newer.map(|rest| rest.trim_end_matches("_ptsz")) {
            _ if launches.iter().any(|part| name.contains(part)) => "launch kernels".to_owned(),
            Some(rest) => format!("call cuda{rest}"),
            None => format!("call {name}"),
        })
    }
}

/// What a name at module scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Kernel,
    Function,
    Variable,
}

/// A name that units share: who defines it, and who needs it.
#[derive(Debug)]
struct Symbol {
    what: What,
    /// The first unit that has it.
    seen: usize,
    /// Unit, item and strength of the definition taken so far.
    definition: Option<(usize, usize, u64)>,
    /// A unit that needs it, and an item that declares it.
    needed: Option<(usize, usize)>,
}

/// How much a definition counts: a strong one beats all, and of common ones the largest is taken.
const STRONG: u64 = u64::MAX;
const WEAK: u64 = u64::MAX - 1;

/// One item as a symbol.
struct Declared<'a> {
    name: &'a SmolStr,
    what: What,
    linkage: Linkage,
    /// How much it counts, if it is a definition.
    strength: Option<u64>,
}

fn declared(item: &Item) -> Option<Declared<'_>> {
    let (name, what, linkage, defined, bytes) = match item {
        Item::Function(function) => {
            let what = match function.entry {
                true => What::Kernel,
                false => What::Function,
            };
            let linkage = function.linkage;
            (&function.name, what, linkage, function.body.is_some(), 0)
        }
        Item::Variable(variable) => {
            let linkage = variable.linkage;
            let defined = linkage != Linkage::Extern;
            (
                &variable.name,
                What::Variable,
                linkage,
                defined,
                variable.bytes(),
            )
        }
        _ => return None,
    };
    let strength = defined.then_some(match linkage {
        Linkage::Weak => WEAK,
        Linkage::Common => bytes.min(WEAK - 1),
        Linkage::Local | Linkage::Extern | Linkage::Visible => STRONG,
    });
    Some(Declared {
        name,
        what,
        linkage,
        strength,
    })
}

/// Whether an item is the dynamic shared memory of a unit, which is declared and never defined.
fn is_dynamic_shared(item: &Item) -> bool {
    matches!(item, Item::Variable(v) if v.linkage == Linkage::Extern && v.space == Space::Shared)
}

/// The names that no other unit may see: defined without linkage, and not the forward declaration
/// of something that has one. Kernels are found by their names and are never among them.
fn local_names(module: &Module) -> BTreeSet<SmolStr> {
    let mut local = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for found in module.items.iter().filter_map(declared) {
        match found.linkage {
            Linkage::Local if found.what != What::Kernel => local.insert(found.name.clone()),
            _ => shared.insert(found.name.clone()),
        };
    }
    let aliases = module.items.iter().filter_map(|item| match item {
        Item::Alias { name, .. } => Some(name.clone()),
        _ => None,
    });
    local.extend(aliases);
    &local - &shared
}

struct Linker<'a> {
    units: &'a [Unit<'a>],
    modules: Vec<Module>,
    local: Vec<BTreeSet<SmolStr>>,
    symbols: BTreeMap<SmolStr, Symbol>,
    errors: Vec<LinkError>,
}

/// Makes one module of several. `provided` names functions that the device has.
///
/// # Errors
/// All names that are missing, defined twice, or different things in different units.
pub fn link(units: &[Unit<'_>], provided: &[&str]) -> Result<String, Vec<LinkError>> {
    let modules: Vec<Module> = units.iter().map(|unit| crate::parse(unit.text).0).collect();
    let local = modules.iter().map(local_names).collect();
    let mut linker = Linker {
        units,
        modules,
        local,
        symbols: BTreeMap::new(),
        errors: Vec::new(),
    };
    linker.collect();
    linker.find_missing(provided);
    match linker.errors.is_empty() {
        true => Ok(linker.text()),
        false => Err(linker.errors),
    }
}

impl Linker<'_> {
    fn unit_name(&self, unit: usize) -> String {
        self.units[unit].name.to_owned()
    }

    fn collect(&mut self) {
        let mut errors = Vec::new();
        for (unit, module) in self.modules.iter().enumerate() {
            for (at, item) in module.items.iter().enumerate() {
                let Some(found) = declared(item) else {
                    continue;
                };
                if self.local[unit].contains(found.name) {
                    continue;
                }
                let symbol = self.symbols.entry(found.name.clone()).or_insert(Symbol {
                    what: found.what,
                    seen: unit,
                    definition: None,
                    needed: None,
                });
                if symbol.what != found.what {
                    errors.push(LinkError::Different {
                        symbol: found.name.clone(),
                        first: self.units[symbol.seen].name.to_owned(),
                        second: self.units[unit].name.to_owned(),
                    });
                    continue;
                }
                match (found.strength, symbol.definition) {
                    (None, _) if symbol.needed.is_none() => symbol.needed = Some((unit, at)),
                    (None, _) => {}
                    (Some(STRONG), Some((other, _, STRONG))) => {
                        errors.push(LinkError::Duplicate {
                            symbol: found.name.clone(),
                            first: self.units[other].name.to_owned(),
                            second: self.units[unit].name.to_owned(),
                        });
                    }
                    (Some(new), Some((_, _, old))) if new <= old => {}
                    (Some(new), _) => symbol.definition = Some((unit, at, new)),
                }
            }
        }
        self.errors.extend(errors);
    }

    fn find_missing(&mut self, provided: &[&str]) {
        let mut errors = Vec::new();
        let items = self.modules.iter().flat_map(|module| &module.items);
        let aliases: BTreeSet<&SmolStr> = items
            .filter_map(|item| match item {
                Item::Alias { name, .. } => Some(name),
                _ => None,
            })
            .collect();
        for (name, symbol) in &self.symbols {
            if let (None, Some((unit, at))) = (symbol.definition, symbol.needed)
                && !provided.contains(&name.as_str())
                && !aliases.contains(name)
                && !is_dynamic_shared(&self.modules[unit].items[at])
            {
                errors.push(LinkError::Missing {
                    symbol: name.clone(),
                    unit: self.unit_name(unit),
                });
            }
        }
        self.errors.extend(errors);
    }

    /// New names for what other units call the same, and for labels of debug strings.
    fn renames(&self, unit: usize) -> BTreeMap<SmolStr, SmolStr> {
        let taken = |name: &str| {
            self.symbols.contains_key(name)
                || (0..self.units.len())
                    .any(|other| other != unit && self.local[other].contains(name))
        };
        let labels = self.modules[unit].debug_strings.labels.keys();
        let clashing = self.local[unit].iter().filter(|name| taken(name));
        let names = clashing.chain(labels.filter(|_| unit > 0));
        names
            .map(|name| (name.clone(), self.fresh(name, unit)))
            .collect()
    }

    /// A name that no unit's text has.
    fn fresh(&self, name: &str, unit: usize) -> SmolStr {
        let mut new = format_smolstr!("{name}$unit{unit}");
        while self
            .units
            .iter()
            .any(|unit| unit.text.contains(new.as_str()))
        {
            new = format_smolstr!("{new}$");
        }
        new
    }

    fn text(&self) -> String {
        let mut out = self.header();
        let mut base = 0;
        let mut bases = Vec::new();
        for module in &self.modules {
            bases.push(base);
            for (index, path) in &module.files {
                out.push_str(&format!(
                    ".file\t{} \"{path}\"\n",
                    index.saturating_add(base)
                ));
            }
            let last = module.files.iter().map(|(index, _)| *index).max();
            base = base.saturating_add(last.unwrap_or(0));
        }
        let edits: Vec<Edit<'_>> = (0..self.units.len())
            .map(|unit| Edit {
                module: &self.modules[unit],
                renames: self.renames(unit),
                base: bases[unit],
                tokens: tokens(self.units[unit].text)
                    .filter(|token| !token.kind.is_trivia())
                    .collect(),
            })
            .collect();
        for part in [
            Part::Declarations,
            Part::Variables,
            Part::Functions,
            Part::Strings,
        ] {
            for (unit, edit) in edits.iter().enumerate() {
                for (at, item) in edit.module.items.iter().enumerate() {
                    if part_of(item) == Some(part) && self.is_kept(unit, at, item) {
                        edit.write(item, self.linkage_here(item), &mut out);
                    }
                }
            }
        }
        out
    }

    /// The newest version and the largest target of all units.
    fn header(&self) -> String {
        let version = self
            .modules
            .iter()
            .filter_map(|module| module.version)
            .max();
        let (major, minor) = version.unwrap_or((7, 0));
        let targets = self
            .modules
            .iter()
            .filter_map(|module| module.target.first());
        let number = |target: &SmolStr| {
            let digits = target.bytes().filter(u8::is_ascii_digit);
            digits.fold(0u32, |n, digit| {
                n.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
            })
        };
        // A target with a letter has all that the one without has.
        let target = targets.max_by_key(|target| (number(target), target.len()));
        let target = target.map_or("sm_70", SmolStr::as_str);
        format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n")
    }

    /// The linkage that a declaration of what was elsewhere has now that it is here.
    fn linkage_here(&self, item: &Item) -> Option<&'static str> {
        let Item::Function(function) = item else {
            return None;
        };
        if function.linkage != Linkage::Extern {
            return None;
        }
        match self.symbols.get(&function.name)?.definition {
            Some((_, _, WEAK)) => Some(".weak"),
            Some(_) => Some(".visible"),
            None => None,
        }
    }

    fn is_kept(&self, unit: usize, at: usize, item: &Item) -> bool {
        let Some(found) = declared(item) else {
            return true;
        };
        let Some(symbol) = self.symbols.get(found.name) else {
            return true;
        };
        if self.local[unit].contains(found.name) {
            return true;
        }
        match (item, found.strength) {
            // The first declaration of a function stays in front of all that call it.
            (Item::Function(_), None) => symbol.needed == Some((unit, at)),
            (_, Some(_)) => symbol
                .definition
                .is_some_and(|(u, i, _)| (u, i) == (unit, at)),
            (_, None) => symbol.definition.is_none() && symbol.needed == Some((unit, at)),
        }
    }
}

/// The parts of the text, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Declarations,
    Variables,
    Functions,
    Strings,
}

/// Where an item goes; the header and DWARF sections are left out.
fn part_of(item: &Item) -> Option<Part> {
    match item {
        Item::Function(function) if function.body.is_none() => Some(Part::Declarations),
        Item::Function(_) | Item::Alias { .. } | Item::Unknown(_) => Some(Part::Functions),
        Item::Variable(_) => Some(Part::Variables),
        Item::Section { name, .. } if name == ".debug_str" => Some(Part::Strings),
        Item::Section { .. } | Item::Directive(_) => None,
    }
}

/// Writes the items of a unit with new names and numbers of files.
struct Edit<'a> {
    module: &'a Module,
    renames: BTreeMap<SmolStr, SmolStr>,
    /// Added to the numbers of its files.
    base: u32,
    tokens: Vec<Token>,
}

/// A text in the place of another one, which ends at an offset.
struct Change {
    end: u32,
    text: String,
}

impl Change {
    fn new(token: &Token, text: String) -> Self {
        Self {
            end: token.end,
            text,
        }
    }
}

impl Edit<'_> {
    fn tokens_of(&self, span: Span) -> impl Iterator<Item = &Token> {
        let first = self
            .tokens
            .partition_point(|token| token.start < span.start);
        let rest = self.tokens.get(first..).unwrap_or(&[]);
        rest.iter().take_while(move |token| token.end <= span.end)
    }

    /// Writes an item; `linkage` stands in place of `.extern`.
    fn write(&self, item: &Item, linkage: Option<&str>, out: &mut String) {
        let span = item.span();
        let mut changes: BTreeMap<u32, Change> = BTreeMap::new();
        if let (Some(linkage), Some(first)) = (linkage, self.tokens_of(span).next())
            && self.slice(first) == ".extern"
        {
            changes.insert(first.start, Change::new(first, linkage.to_owned()));
        }
        for token in self.tokens_of(span) {
            let text = self.slice(token);
            if token.kind == TokenKind::Name
                && let Some(new) = self.renames.get(text)
            {
                changes.insert(token.start, Change::new(token, new.to_string()));
            }
        }
        if let Item::Function(Function {
            body: Some(body), ..
        }) = item
        {
            for statement in &body.statements {
                if let Statement::Loc(loc) = statement {
                    self.renumber(loc.span, &mut changes);
                }
            }
        }
        let mut at = span.start;
        for (start, change) in changes {
            out.push_str(self.module.slice(Span {
                start: at,
                end: start,
            }));
            out.push_str(&change.text);
            at = change.end;
        }
        out.push_str(self.module.slice(Span {
            start: at,
            end: span.end,
        }));
        out.push('\n');
    }

    fn slice(&self, token: &Token) -> &str {
        self.module.slice(Span {
            start: token.start,
            end: token.end,
        })
    }

    /// Changes the numbers of the files in a `.loc`: the first one, and that behind `inlined_at`.
    fn renumber(&self, loc: Span, changes: &mut BTreeMap<u32, Change>) {
        let mut expected = false;
        for token in self.tokens_of(loc) {
            let text = self.slice(token);
            match token.kind {
                TokenKind::Dot => expected = text == ".loc",
                TokenKind::Name => expected = text == "inlined_at",
                TokenKind::Int if expected => {
                    expected = false;
                    if let Ok(file) = text.parse::<u32>() {
                        let new = file.saturating_add(self.base).to_string();
                        changes.insert(token.start, Change::new(token, new));
                    }
                }
                _ => expected = false,
            }
        }
    }
}
