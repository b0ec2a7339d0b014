//! Which element of which variable of the program an address is: `tile[1][0]` where the type is known, from debug
//! information or from the PTX, and `tile+0x84` elsewhere.

mod debug_info;

use ptx::ast::{Module, Statement, Variable};
use report::names::{VARIABLE, variable};

use self::debug_info::DebugInfo;
use crate::log::{Allocation, Space};

/// A variable in the shared memory of a CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVariable {
    /// Its name, mangled.
    pub name: String,
    /// Offset of its first byte.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

impl SharedVariable {
    /// What has made its memory, as [`Allocation::api`].
    fn made(&self) -> String {
        format!("{VARIABLE}{}", self.name)
    }
}

/// Whether there are other variables than that of `maker` in shared memory from the first offset to the last.
pub(crate) fn made_by_others(
    shared: &[SharedVariable],
    [first, last]: [u64; 2],
    maker: Option<&str>,
) -> bool {
    let within = |of: &&SharedVariable| of.offset <= last && first < of.offset + of.bytes;
    let mut all = shared.iter().filter(within);
    all.any(|of| Some(of.made().as_str()) != maker)
}

/// The variables of a module.
#[derive(Debug)]
pub(crate) struct Variables {
    debug: DebugInfo,
}

impl Variables {
    pub(crate) fn new(module: &Module) -> Self {
        Self {
            debug: DebugInfo::new(module),
        }
    }

    /// Names the element at an address, if it is part of a variable. `module` is the variables' own.
    pub(crate) fn name(
        &self,
        module: &Module,
        shared: &[SharedVariable],
        space: Space,
        address: u64,
        allocation: &mut Option<Allocation>,
    ) {
        if space == Space::Shared {
            let within =
                |of: &&SharedVariable| (of.offset..of.offset + of.bytes).contains(&address);
            *allocation = { shared.iter() }.find(within).map(|of| Allocation {
                id: 0,
                base: of.offset,
                bytes: of.bytes,
                api: of.made(),
                place: None,
            });
        }
        if let Some(of) = allocation
            && let Some(symbol) = of.api.strip_prefix(VARIABLE)
        {
            of.place = Some(self.place(module, symbol, address.saturating_sub(of.base)));
        }
    }

    fn place(&self, module: &Module, symbol: &str, offset: u64) -> String {
        let path = self.debug.path(symbol, offset);
        let path = path.or_else(|| path_in_ptx(declared(module, symbol)?, offset));
        format!(
            "{}{}",
            variable(symbol),
            path.unwrap_or_else(|| plus(offset))
        )
    }
}

/// The declaration of a variable, at module scope or in the body of a function.
fn declared<'a>(module: &'a Module, name: &str) -> Option<&'a Variable> {
    let bodies = module.functions().filter_map(|of| of.body.as_ref());
    let inside = bodies
        .flat_map(|body| &body.statements)
        .filter_map(|of| match of {
            Statement::Variable(variable) => Some(variable),
            _ => None,
        });
    module.variables().chain(inside).find(|of| of.name == name)
}

/// The element by the type in the PTX. Compilers declare most arrays as bytes, which says nothing of their elements.
fn path_in_ptx(variable: &Variable, offset: u64) -> Option<String> {
    let element = u64::from(variable.ty.bytes()) * u64::from(variable.vector);
    match &variable.dims {
        None if variable.vector == 1 => Some(plus(offset)),
        Some(dims) if element > 1 => {
            let rest = plus(offset % element);
            Some(format!("{}{rest}", indices(dims, offset / element)))
        }
        _ => None,
    }
}

/// `[1][0]`, of the element with this number.
fn indices(dims: &[u64], number: u64) -> String {
    let mut rest = number;
    let mut text = String::new();
    for (n, dim) in dims.iter().enumerate().rev() {
        let index = match n {
            // The first dimension may be open.
            0 => rest,
            _ => rest % (*dim).max(1),
        };
        rest /= (*dim).max(1);
        text.insert_str(0, &format!("[{index}]"));
    }
    text
}

fn plus(offset: u64) -> String {
    match offset {
        0 => String::new(),
        _ => format!("+{offset:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, symbol: &str, offset: u64) -> String {
        let module = ptx::parse(text).0;
        Variables::new(&module).place(&module, symbol, offset)
    }

    const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

    #[test]
    fn elements_are_named_by_their_type() {
        let text = format!(
            "{HEAD}.global .align 4 .u32 total;\n.global .align 4 .u32 m[2][3];\n.global .align 4 .b8 b[24];\n\
             .visible .entry k() {{\n.shared .align 4 .f32 _ZZ1kvE1s[8];\nret;\n}}\n"
        );
        for (symbol, offset, expected) in [
            ("total", 0, "total"),
            ("total", 2, "total+0x2"),
            ("m", 16, "m[1][1]"),
            ("m", 17, "m[1][1]+0x1"),
            ("b", 0, "b"),
            ("b", 16, "b+0x10"),
            ("_ZZ1kvE1s", 12, "s[3]"),
            ("_ZN1n4flagE", 4, "n::flag+0x4"),
        ] {
            assert_eq!(named(&text, symbol, offset), expected);
        }
    }

    #[test]
    fn members_are_named_by_debug_information() {
        // As of `nvcc -G`: struct { float x, y; } m[2][3].
        let text = format!(
            "{HEAD}.global .align 4 .b8 m[48];\n.section .debug_abbrev\n{{\n\
             .b8 1,17,1,0,0\n.b8 2,52,0,73,19,2,10,0,0\n.b8 3,1,1,73,19,0,0\n.b8 4,33,0,55,11,0,0\n\
             .b8 5,36,0,11,11,0,0\n.b8 6,19,1,11,11,0,0\n.b8 7,13,0,3,8,73,19,56,10,0,0\n.b8 0\n}}\n\
             .section .debug_info\n{{\n.b32 59\n.b8 2,0\n.b32 .debug_abbrev\n.b8 8\n.b8 1\n\
             .b8 2\n.b32 27\n.b8 9,3\n.b64 m\n\
             .b8 3\n.b32 37\n.b8 4,2\n.b8 4,3\n.b8 0\n\
             .b8 6,8\n.b8 7,120,0\n.b32 60\n.b8 2,35,0\n.b8 7,121,0\n.b32 60\n.b8 2,35,4\n.b8 0\n\
             .b8 5,4\n.b8 0\n}}\n"
        );
        for (offset, expected) in [(0, "m[0][0].x"), (36, "m[1][1].y"), (38, "m[1][1].y+0x2")] {
            assert_eq!(named(&text, "m", offset), expected);
        }
        // Debug information that is cut off names nothing, and the offset stays.
        let cut = text
            .replace(".b8 5,4\n.b8 0\n", "")
            .replace(".b32 59", ".b32 56");
        assert_eq!(named(&cut, "m", 36), "m+0x24");
    }

    #[test]
    fn shared_memory_is_looked_up_by_its_offset() {
        let module = ptx::parse(&format!("{HEAD}.extern .shared .align 4 .b8 s[];\n")).0;
        let shared = [SharedVariable {
            name: "s".to_owned(),
            offset: 16,
            bytes: 64,
        }];
        let place = |address| {
            let mut allocation = None;
            let variables = Variables::new(&module);
            variables.name(&module, &shared, Space::Shared, address, &mut allocation);
            allocation.and_then(|of| of.place)
        };
        assert_eq!(place(20).as_deref(), Some("s+0x4"));
        assert_eq!((place(12), place(80)), (None, None));
    }
}
