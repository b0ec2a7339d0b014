//! The typed tree of a PTX module.
//!
//! Every node carries the byte range of the text it came from, so that a rewriter can splice text
//! in beside it and a report can point at it.
//! The text itself is kept whole in [`Module::text`]: printing a module gives back what was parsed.
//! Names follow the PTX ISA 9.0 manual.

pub use events::Space;
use smol_str::SmolStr;

use crate::isa;

/// A half-open byte range of the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// Something the parser has to say about a place in the text. Parsing goes on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub span: Span,
    /// Lower case, no final period: `unknown directive .foo`.
    pub message: String,
    /// True when the construct was kept as text and not understood.
    pub unknown: bool,
}

/// A PTX module: its text and what was understood of it.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The text, byte for byte as it was parsed.
    pub text: String,
    /// `.version major.minor`.
    pub version: Option<(u32, u32)>,
    /// `.target` list, such as `sm_90`, `debug`.
    pub target: Vec<SmolStr>,
    /// `.address_size`, 32 or 64.
    pub address_size: Option<u32>,
    /// Module-scope items in text order.
    pub items: Vec<Item>,
    /// `.file` table: (index, path).
    pub files: Vec<(u32, SmolStr)>,
    /// Byte offset of the start of each line of the text, in order.
    pub line_starts: Vec<u32>,
    /// Names of the functions declared or defined with `.noreturn`.
    pub noreturn: std::collections::HashSet<SmolStr>,
    /// What `.section .debug_str` holds.
    pub debug_strings: DebugStrings,
}

/// The string table of the module's `.debug_str` sections.
#[derive(Clone, Debug, Default)]
pub struct DebugStrings {
    /// The bytes, strings ending in NUL.
    pub bytes: Vec<u8>,
    /// Offset of each label into the bytes.
    pub labels: std::collections::HashMap<SmolStr, u32>,
}

/// A module-scope item.
#[derive(Clone, Debug)]
pub enum Item {
    /// A kernel, a device function, or the declaration of one.
    Function(Function),
    /// A module-scope variable.
    Variable(Variable),
    /// `.alias name, aliasee;`
    Alias {
        /// The new name.
        name: SmolStr,
        /// The function it stands for.
        aliasee: SmolStr,
        /// The whole directive.
        span: Span,
    },
    /// `.section` with its braces (DWARF); kept, not interpreted beyond `.debug_str` in [`Module::debug_str`].
    Section {
        /// Section name, such as `.debug_str`.
        name: SmolStr,
        /// The whole section.
        span: Span,
    },
    /// `.version`, `.target`, `.address_size`, `.file`, `.pragma` and the like.
    Directive(Span),
    /// Not understood; survives as text.
    Unknown(Span),
}

/// Linking directives in front of a function or variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// None: local to the module.
    #[default]
    Local,
    /// `.extern`
    Extern,
    /// `.visible`
    Visible,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// `.entry` or `.func`, defined or declared.
#[derive(Clone, Debug)]
pub struct Function {
    /// True for `.entry`.
    pub entry: bool,
    /// Its linkage.
    pub linkage: Linkage,
    /// Its (mangled) name.
    pub name: SmolStr,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Formal parameters.
    pub params: Vec<Variable>,
    /// Byte range of the parameter list's parentheses, if it has one (`(` included to `)` included).
    pub params_span: Option<Span>,
    /// Performance and cluster directives: `.maxntid 256`, `.reqnctapercluster 2`, `.noreturn`, …
    /// with their integer arguments. Names stand without the dot; see [`Function::directive`].
    pub directives: Vec<(SmolStr, Vec<u64>)>,
    /// The body, absent for a declaration.
    pub body: Option<Body>,
    /// From the linkage directive to the closing brace or semicolon.
    pub span: Span,
    /// Only the name.
    pub name_span: Span,
}

/// A function body.
#[derive(Clone, Debug)]
pub struct Body {
    /// Statements in text order, nested blocks flattened between [`Statement::BlockOpen`] and
    /// [`Statement::BlockClose`].
    pub statements: Vec<Statement>,
    /// The braces and what is between.
    pub span: Span,
}

/// What may stand in a body.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `name:`
    Label {
        /// The label.
        name: SmolStr,
        /// Name and colon.
        span: Span,
    },
    /// An instruction.
    Instruction(Instruction),
    /// A `.reg` declaration.
    Registers(RegisterDecl),
    /// A body-scope `.local`, `.shared`, `.param`, `.const` or `.global` variable.
    Variable(Variable),
    /// `.loc file line column [, function_name label[+imm], inlined_at file line column]`
    Loc(Loc),
    /// `label: .branchtargets a, b;`, and `label: .calltargets f, g;` which has the same form.
    BranchTargets {
        /// Label naming the list.
        name: SmolStr,
        /// The targets.
        targets: Vec<SmolStr>,
        /// The whole statement.
        span: Span,
    },
    /// `label: .callprototype (ret) _ (params);`
    CallPrototype {
        /// Label naming the prototype.
        name: SmolStr,
        /// Return parameters.
        returns: Vec<Variable>,
        /// Formal parameters.
        params: Vec<Variable>,
        /// True when it says `.noreturn`.
        noreturn: bool,
        /// The whole statement.
        span: Span,
    },
    /// `.pragma "…";`
    Pragma(Span),
    /// `{`
    BlockOpen(Span),
    /// `}`
    BlockClose(Span),
    /// Not understood; survives as text.
    Unknown(Span),
}

/// `.reg .type name;`, `.reg .type name<N>;` or a list.
#[derive(Clone, Debug)]
pub struct RegisterDecl {
    /// Register type.
    pub ty: Type,
    /// `(name, Some(n))` declares `name0` to `name{n-1}`.
    pub names: Vec<(SmolStr, Option<u32>)>,
    /// Vector width of the registers, 1 when scalar.
    pub vector: u8,
    /// The whole statement.
    pub span: Span,
}

/// A variable or parameter declaration.
#[derive(Clone, Debug)]
pub struct Variable {
    /// State space; [`Space::Reg`] for register parameters.
    pub space: Space,
    /// Its linkage.
    pub linkage: Linkage,
    /// Element type.
    pub ty: Type,
    /// `.v2`/`.v4` width, 1 when scalar.
    pub vector: u8,
    /// Explicit `.align` in bytes.
    pub align: Option<u32>,
    /// Name; `_` for unnamed prototype parameters.
    pub name: SmolStr,
    /// Array dimensions; `Some(vec![0])` for `[]`.
    pub dims: Option<Vec<u64>>,
    /// Initialiser, flattened to elements.
    pub init: Option<Vec<Init>>,
    /// `.managed` attribute.
    pub managed: bool,
    /// `.ptr` attribute of a kernel parameter, with its state space if given.
    pub ptr: Option<Option<Space>>,
    /// The whole declaration.
    pub span: Span,
}

/// One element of an initialiser.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Value bits of an integer.
    Int(u64),
    /// `0f…` or a decimal literal in an `.f32` array.
    F32(u32),
    /// `0d…` or a decimal literal.
    F64(u64),
    /// Address of a symbol plus a constant; `generic` when written `generic(symbol)`.
    /// `mask` is set for the byte-extracting form `0xFF00(symbol)`.
    Symbol {
        /// The symbol.
        name: SmolStr,
        /// Byte offset.
        offset: i64,
        /// Converted to a generic address.
        generic: bool,
        /// Mask of the `mask(symbol)` form.
        mask: Option<u64>,
    },
}

/// Fundamental types.
#[allow(missing_docs, reason = "each is the PTX type of the same name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    F32,
    F64,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    U16x2,
    S16x2,
    Pred,
    TexRef,
    SamplerRef,
    SurfRef,
}

/// A source position attached to instructions by `.loc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loc {
    /// `.file` index.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
    /// Inlining: the function this code was inlined from (label and offset into `.debug_str`) and
    /// the position it was inlined at.
    pub inlined: Option<Inlined>,
    /// The whole statement.
    pub span: Span,
}

/// The inlining part of a `.loc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// Label in `.debug_str`, such as `$L__info_string0`.
    pub function_label: SmolStr,
    /// Byte offset added to the label.
    pub function_offset: u32,
    /// File, line and column of the call that was inlined. That position has in turn the `.loc`
    /// with the same file, line and column as its own, which may be inlined too.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Index into the body's statements of the last `.loc` before this one with that file, line
    /// and column, if there is one. Always smaller than the index of this `.loc`.
    pub parent: Option<u32>,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// `@p` or `@!p`.
    pub guard: Option<Guard>,
    /// Text of the opcode before the first dot: `ld`, `bar`, `cvta`.
    pub opcode: SmolStr,
    /// The rest, without dots: `["global", "v4", "f32"]`, `["shared::cta", …]`.
    pub suffixes: Vec<SmolStr>,
    /// Operands in text order. For `call`: `Paren(returns)`, `Name(function)`, `Paren(args)`,
    /// then the prototype label, each only if present.
    pub operands: Vec<Operand>,
    /// From the guard to the semicolon, both included.
    pub span: Span,
    /// Index into the body's statements of the `.loc` in force, if any.
    pub loc: Option<u32>,
    /// What it does to memory, and what it orders; see [`isa::memory()`] and [`isa::sync()`].
    pub(crate) meaning: isa::Meaning,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// True for `@!p`.
    pub negated: bool,
    /// The predicate register.
    pub predicate: SmolStr,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, special register (`%tid.x` with the component split off only for special
    /// registers and vector registers), symbol, label or function, plus a constant for `sym+4`.
    Name {
        /// The name as written: `%r1`, `%tid`, `array`, `WARP_SZ`.
        name: SmolStr,
        /// `x`, `y`, `z` or `w` (or `r`, `g`, `b`, `a`) as 0 to 3; the selectors of video
        /// instructions `b0` to `b3` as 4 to 7, `h0` and `h1` as 8 and 9; those of several parts,
        /// `h10` or `b3210`, as their number of parts times `0x1000` plus the parts as octal digits,
        /// and `0x8000` for halves.
        component: Option<u16>,
        /// Constant added, 0 if none.
        offset: i64,
    },
    /// An integer literal's bits (negative ones in two's complement). Constant expressions are folded.
    Int(i128),
    /// `0f3F800000`.
    F32(u32),
    /// `0d…` or decimal literal; to be rounded to the instruction's type.
    F64(u64),
    /// `[base+offset]`
    Address {
        /// What is addressed.
        base: AddressBase,
        /// Byte offset.
        offset: i64,
    },
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `a|b`
    Pair(Box<Operand>, Box<Operand>),
    /// `!p` in front of a predicate. (PTX has no `-a`; where it is written it is kept as this.)
    Not(Box<Operand>),
    /// `(a, b)` of a call.
    Paren(Vec<Operand>),
    /// `_`
    Sink,
    /// Texture operand or anything else in brackets: `[tex, {x, y}]`.
    Bracket(Vec<Operand>),
    /// Not understood.
    Unknown(Span),
}

/// The base of an address operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// A register or a symbol.
    Name(SmolStr),
    /// An absolute address.
    Absolute(u64),
}
