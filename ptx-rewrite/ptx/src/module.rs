//! Questions one asks of a parsed module: where is this function, what line is this byte on,
//! which source line does this instruction come from.

use smol_str::SmolStr;

use crate::ast::{
    Body, Function, Init, Inlined, Instruction, Item, Loc, Module, Space, Span, Statement, Type,
    Variable,
};

impl Span {
    /// The range as `usize`, for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// True when `offset` lies inside.
    pub fn contains(self, offset: u32) -> bool {
        (self.start..self.end).contains(&offset)
    }
}

/// Chains of inlined calls are cut off at this length.
const MAX_FRAMES: usize = 256;

/// A place in the source program, one of a chain of inlined calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Path as the `.file` directive gives it; empty when the module does not list the file.
    pub file: SmolStr,
    /// Line, from 1; 0 for code the compiler made up.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
    /// Mangled name of the inlined function the place lies in; none for the function the body
    /// belongs to.
    pub function: Option<SmolStr>,
}

/// The number in the name of an architecture: 90 for `sm_90a`.
pub fn architecture(name: &str) -> Option<u32> {
    let number = name.strip_prefix("sm_")?;
    number.trim_end_matches(char::is_alphabetic).parse().ok()
}

impl Module {
    /// The functions, declarations included, in text order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }

    /// The number of the module's target architecture.
    pub fn architecture(&self) -> Option<u32> {
        self.target.iter().find_map(|name| architecture(name))
    }

    /// The function of that name; the definition where there is one besides declarations.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let mut declared = None;
        for function in self.functions().filter(|function| function.name == name) {
            if function.body.is_some() {
                return Some(function);
            }
            declared = declared.or(Some(function));
        }
        declared
    }

    /// The module-scope variables in text order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.items.iter().filter_map(|item| match item {
            Item::Variable(variable) => Some(variable),
            _ => None,
        })
    }

    /// The text of a span; empty for a span that is not of this module.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column, both from 1, of a byte. Columns count bytes.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = line
            .checked_sub(1)
            .map_or(0, |index| self.line_starts[index]);
        (line.max(1) as u32, offset - start + 1)
    }

    /// The path of a `.file` index.
    pub fn file(&self, index: u32) -> Option<&str> {
        self.file_path(index).map(SmolStr::as_str)
    }

    fn file_path(&self, index: u32) -> Option<&SmolStr> {
        // nvcc numbers the files from 1 in order, so the guess is nearly always right.
        let guess = self.files.get((index as usize).wrapping_sub(1));
        guess
            .filter(|file| file.0 == index)
            .or_else(|| self.files.iter().find(|file| file.0 == index))
            .map(|(_, path)| path)
    }

    /// The mangled name of an inlined function, from `.debug_str`.
    pub fn debug_str(&self, inlined: &Inlined) -> Option<&str> {
        let strings = &self.debug_strings;
        let label = *strings.labels.get(&inlined.function_label)?;
        let start = label.checked_add(inlined.function_offset)? as usize;
        let bytes = strings.bytes.get(start..)?;
        let end = bytes.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }

    /// Where the code under the `.loc` at statement `loc_index` comes from: the innermost inlined
    /// function first, the function the body belongs to last. Empty if that is not a `.loc`.
    ///
    /// Compilers write line 0 for code that they have merged from several lines. Then the frames are those of the nearest
    /// earlier `.loc` that has a line, or none.
    pub fn inline_frames(&self, body: &Body, loc_index: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut next = body.loc_with_line(loc_index);
        while let Some(loc) = next
            && frames.len() < MAX_FRAMES
        {
            let inlined = loc.inlined.as_ref();
            frames.push(Frame {
                file: self.file_path(loc.file).cloned().unwrap_or_default(),
                line: loc.line,
                column: loc.column,
                function: inlined
                    .and_then(|inlined| self.debug_str(inlined))
                    .map(SmolStr::from),
            });
            let Some(inlined) = inlined else { break };
            next = inlined.parent.and_then(|parent| body.loc(parent));
            if next.is_none() {
                // The call has no `.loc` of its own, so it stands in the body's own function.
                frames.push(Frame {
                    file: self.file_path(inlined.file).cloned().unwrap_or_default(),
                    line: inlined.line,
                    column: inlined.column,
                    function: None,
                });
            }
        }
        frames.retain(|frame| frame.line > 0);
        frames
    }
}

impl Function {
    /// True when it is only declared: its code is elsewhere.
    pub fn is_declaration(&self) -> bool {
        self.body.is_none()
    }

    /// The arguments of a directive such as `maxntid`, if the function has it.
    pub fn directive(&self, name: &str) -> Option<&[u64]> {
        self.directives
            .iter()
            .find(|(directive, _)| directive == name)
            .map(|(_, arguments)| arguments.as_slice())
    }
}

impl Body {
    /// The instructions with the index of their statement.
    pub fn instructions(&self) -> impl Iterator<Item = (usize, &Instruction)> {
        self.statements
            .iter()
            .enumerate()
            .filter_map(|(index, statement)| match statement {
                Statement::Instruction(instruction) => Some((index, instruction)),
                _ => None,
            })
    }

    /// The instruction at a statement index.
    pub fn instruction(&self, index: usize) -> Option<&Instruction> {
        match self.statements.get(index) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    /// The `.loc` at a statement index, or the nearest one before it that has a line.
    fn loc_with_line(&self, index: u32) -> Option<&Loc> {
        let all = self.statements.get(..=index as usize)?;
        let here = self.loc(index)?;
        if here.line > 0 {
            return Some(here);
        }
        all.iter().rev().find_map(|statement| match statement {
            Statement::Loc(loc) if loc.line > 0 => Some(loc),
            _ => None,
        })
    }

    /// The `.loc` at a statement index.
    pub fn loc(&self, index: u32) -> Option<&Loc> {
        match self.statements.get(index as usize) {
            Some(Statement::Loc(loc)) => Some(loc),
            _ => None,
        }
    }
}

impl Statement {
    /// Its byte range.
    pub fn span(&self) -> Span {
        match self {
            Self::Label { span, .. }
            | Self::BranchTargets { span, .. }
            | Self::CallPrototype { span, .. }
            | Self::Pragma(span)
            | Self::BlockOpen(span)
            | Self::BlockClose(span)
            | Self::Unknown(span) => *span,
            Self::Instruction(instruction) => instruction.span,
            Self::Registers(registers) => registers.span,
            Self::Variable(variable) => variable.span,
            Self::Loc(loc) => loc.span,
        }
    }
}

impl Item {
    /// Its byte range.
    pub fn span(&self) -> Span {
        match self {
            Self::Function(function) => function.span,
            Self::Variable(variable) => variable.span,
            Self::Alias { span, .. }
            | Self::Section { span, .. }
            | Self::Directive(span)
            | Self::Unknown(span) => *span,
        }
    }
}

impl Instruction {
    /// True when it has that suffix (without the dot).
    pub fn has(&self, suffix: &str) -> bool {
        self.suffixes.iter().any(|have| have == suffix)
    }

    /// The suffixes that name a type, in order.
    pub fn types(&self) -> Vec<Type> {
        self.suffixes
            .iter()
            .filter_map(|suffix| Type::from_suffix(suffix))
            .collect()
    }

    /// The first state space among the suffixes; generic when there is none.
    pub fn space(&self) -> Space {
        self.suffixes
            .iter()
            .find_map(|suffix| Space::from_suffix(suffix))
            .unwrap_or(Space::Generic)
    }

    /// Width of a `.v2`, `.v4` or `.v8` suffix, 1 without.
    pub fn vector(&self) -> u8 {
        let width = |suffix: &SmolStr| match suffix.as_str() {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        };
        self.suffixes.iter().find_map(width).unwrap_or(1)
    }
}

impl Variable {
    /// How many elements it has: the dimensions multiplied, an open first dimension taken from
    /// the initialiser. 0 for `[]` without one, such as dynamic shared memory.
    pub fn elements(&self) -> u64 {
        let Some(dims) = &self.dims else { return 1 };
        let inner = dims
            .iter()
            .skip(1)
            .fold(1u64, |all, &dim| all.saturating_mul(dim));
        match dims.first() {
            None => 1,
            Some(0) => {
                let given = self.init.as_ref().map_or(0, |init| init.len() as u64);
                given.div_ceil(inner.max(1)).saturating_mul(inner)
            }
            Some(&first) => first.saturating_mul(inner),
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        let element = u64::from(self.ty.bytes()) * u64::from(self.vector);
        self.elements().saturating_mul(element)
    }

    /// Alignment in bytes: as declared, otherwise that of an element.
    pub fn alignment(&self) -> u32 {
        self.align
            .unwrap_or(self.ty.bytes() * u32::from(self.vector))
            .max(1)
    }
}

/// Where a parameter lies in the parameter block of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// Byte offset.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// The layout of a kernel's parameters and the size of the whole block in bytes (not rounded up).
pub fn param_layout(params: &[Variable]) -> (Vec<ParamLayout>, u32) {
    let mut end = 0u32;
    let layout = params
        .iter()
        .map(|param| {
            let align = param.alignment();
            let offset = end.div_ceil(align).saturating_mul(align);
            let bytes = u32::try_from(param.bytes()).unwrap_or(u32::MAX);
            end = offset.saturating_add(bytes);
            ParamLayout {
                offset,
                bytes,
                align,
            }
        })
        .collect();
    (layout, end)
}

impl Init {
    /// The value when it is a number; none for an address.
    pub fn bits(&self) -> Option<u64> {
        match self {
            Self::Int(bits) | Self::F64(bits) => Some(*bits),
            Self::F32(bits) => Some(u64::from(*bits)),
            Self::Symbol { .. } => None,
        }
    }
}
