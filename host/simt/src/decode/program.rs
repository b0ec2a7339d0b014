//! A kernel and everything it reaches, put together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ptx::ast::{Function, Linkage, Module, Space, Variable};
use smol_str::SmolStr;

use super::{function, order, retry};
use crate::code::{Callee, Func, Kind, MbarrierKind, Op, Program, Special};
use crate::config::{KernelInfo, SharedVariable};
use crate::lanes::{CONSTANT, WARP};

/// A module-scope name with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) space: Space,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// What loading a module settled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Symbols {
    /// `.global` and `.const` variables.
    pub(crate) variables: HashMap<SmolStr, Symbol>,
    /// Addresses of functions.
    pub(crate) functions: HashMap<SmolStr, u64>,
    /// `.alias` directives.
    pub(crate) aliases: HashMap<SmolStr, SmolStr>,
    pub(crate) const_bytes: u32,
}

/// A program under construction.
pub(crate) struct Builder<'m> {
    pub(crate) module: &'m Module,
    pub(crate) symbols: &'m Symbols,
    pub(crate) program: Program,
    constants: HashMap<u64, u32>,
    /// Functions in the order of their numbers.
    queue: Vec<&'m Function>,
    numbers: HashMap<&'m str, u32>,
    /// Offset of shared variables: by name for module scope, by statement and function for others.
    shared: HashMap<(SmolStr, usize), u32>,
    /// The same variables, in the order of their offsets.
    shared_variables: Vec<SharedVariable>,
    /// Names of dynamic shared memory.
    dynamic_names: BTreeSet<SmolStr>,
    /// Function being decoded.
    current: usize,
    /// True while decoding what is reached only through addresses.
    indirect: bool,
    dynamic_align: u32,
    /// Constants that are addresses in dynamic shared memory.
    dynamic: Vec<u32>,
}

/// Decodes a kernel. None when the module has no such kernel with a body.
pub(crate) fn program(module: &Module, symbols: &Symbols, kernel: &str) -> Option<Program> {
    let function = module
        .function(kernel)
        .filter(|f| f.entry && f.body.is_some())?;
    let mut builder = Builder {
        module,
        symbols,
        program: Program::default(),
        constants: HashMap::new(),
        queue: vec![function],
        numbers: HashMap::new(),
        shared: HashMap::new(),
        shared_variables: Vec::new(),
        dynamic_names: BTreeSet::new(),
        current: 0,
        indirect: false,
        dynamic_align: 16,
        dynamic: Vec::new(),
    };
    builder.decode_queue();
    if builder.calls_indirectly() {
        builder.indirect = true;
        for function in module.functions().filter(|f| !f.entry && f.body.is_some()) {
            let number = builder.number(function);
            if let Some(&address) = symbols.functions.get(&function.name) {
                builder.program.addresses.push((address, number));
            }
        }
        builder.decode_queue();
        builder.program.addresses.sort_unstable();
    }
    let mut program = builder.program;
    let align = builder.dynamic_align.clamp(1, 1 << 16);
    program.dynamic_start = program.static_shared.next_multiple_of(align);
    for number in builder.dynamic {
        let row = &mut program.consts[number as usize];
        let distance = row[0].wrapping_sub(u64::from(DYNAMIC));
        *row = [u64::from(program.dynamic_start).wrapping_add(distance); WARP];
    }
    let reserved = |op: &Op| matches!(op.kind, Kind::Special(_, Special::ReservedShared(_)));
    program.reserved_shared = program.ops.iter().any(reserved);
    program.communicates = program.ops.iter().any(|op| match &op.kind {
        Kind::Load(access) | Kind::Store(access) => access.strong,
        Kind::Atomic(_) | Kind::Fence | Kind::Mbarrier(_) | Kind::ClusterBarrier { .. } => true,
        _ => false,
    });
    program.waits = program.ops.iter().any(|op| {
        matches!(
            op.kind,
            Kind::Barrier(_) | Kind::ClusterBarrier { .. } | Kind::Exchange(_)
        )
    });
    program.order = order::of(&program.ops);
    program.retries = retry::of(&program.ops, &program.consts);
    program.counts_pending = program.ops.iter().any(|op| match &op.kind {
        Kind::Mbarrier(mbarrier) => mbarrier.kind == MbarrierKind::PendingCount,
        _ => false,
    });
    program.info = info(module, function, symbols, &program);
    let mut variables = builder.shared_variables;
    // All names of dynamic shared memory stand for the same bytes.
    if builder.dynamic_names.len() == 1 {
        variables.extend(
            { builder.dynamic_names.into_iter() }.map(|name| SharedVariable {
                name,
                offset: program.dynamic_start,
                bytes: None,
            }),
        );
    }
    program.info.shared = variables.into();
    Some(program)
}

impl<'m> Builder<'m> {
    fn decode_queue(&mut self) {
        while self.current < self.queue.len() {
            let function = self.queue[self.current];
            let done: Func = function::decode(self, function);
            self.program.functions.push(done);
            self.current += 1;
        }
    }

    fn calls_indirectly(&self) -> bool {
        self.program.ops.iter().any(|op| match &op.kind {
            Kind::Call(call) => matches!(call.callee, Callee::Indirect(_)),
            _ => false,
        })
    }

    /// The number of a function in the program, which it joins if it is new.
    pub(crate) fn number(&mut self, function: &'m Function) -> u32 {
        if function.name == self.queue[0].name {
            return 0;
        }
        if let Some(&number) = self.numbers.get(function.name.as_str()) {
            return number;
        }
        let number = self.queue.len() as u32;
        self.queue.push(function);
        self.numbers.insert(&function.name, number);
        number
    }

    /// Follows aliases.
    pub(crate) fn aliased(&self, name: &str) -> SmolStr {
        let alias = self.symbols.aliases.get(name);
        alias.cloned().unwrap_or_else(|| SmolStr::from(name))
    }

    /// The number of a row of 32 times `value`.
    pub(crate) fn constant(&mut self, value: u64) -> u32 {
        if let Some(&number) = self.constants.get(&value) {
            return number;
        }
        let number = self.program.consts.len() as u32 | CONSTANT;
        self.program.consts.push([value; WARP]);
        self.constants.insert(value, number);
        number
    }

    /// The number of a row that holds an address of a variable in `space`.
    pub(crate) fn constant_address(&mut self, space: Space, address: u64, offset: i64) -> u32 {
        let value = address.wrapping_add_signed(offset);
        if space != Space::Shared || address < u64::from(DYNAMIC) {
            return self.constant(value);
        }
        let number = self.program.consts.len() as u32;
        self.program.consts.push([value; WARP]);
        self.dynamic.push(number);
        number | CONSTANT
    }

    /// Space and address of a module-scope name.
    pub(crate) fn symbol(&mut self, name: &str) -> Option<(Space, u64)> {
        if let Some(symbol) = self.symbols.variables.get(name) {
            return Some((symbol.space, symbol.address));
        }
        if let Some(&address) = self.symbols.functions.get(&self.aliased(name)) {
            return Some((Space::Generic, address));
        }
        let module = self.module;
        let variable = module
            .variables()
            .find(|v| v.name == name && v.space == Space::Shared)?;
        Some((Space::Shared, u64::from(self.shared(variable, None))))
    }

    /// The offset of a shared variable; gives it one when it is new. `statement` tells the
    /// variables of function bodies apart.
    pub(crate) fn shared(&mut self, variable: &Variable, statement: Option<usize>) -> u32 {
        let dynamic = variable.linkage == Linkage::Extern;
        if dynamic {
            self.dynamic_align = self.dynamic_align.max(variable.alignment());
            self.dynamic_names.insert(variable.name.clone());
            // Where it starts is known only when all static variables are.
            return DYNAMIC;
        }
        let scope = statement.map_or(usize::MAX, |statement| statement + (self.current << 32));
        let key = (variable.name.clone(), scope);
        if let Some(&offset) = self.shared.get(&key) {
            return offset;
        }
        let align = variable.alignment().clamp(1, 1 << 16);
        let offset = self.program.static_shared.next_multiple_of(align);
        let bytes = u32::try_from(variable.bytes())
            .unwrap_or(u32::MAX / 2)
            .min(u32::MAX / 4);
        self.program.static_shared = offset.saturating_add(bytes).min(u32::MAX / 4);
        self.shared.insert(key, offset);
        self.shared_variables.push(SharedVariable {
            name: variable.name.clone(),
            offset,
            bytes: Some(bytes),
        });
        offset
    }

    /// Size of the kernel's parameters.
    pub(crate) fn param_bytes(&self) -> u32 {
        ptx::param_layout(&self.queue[0].params).1
    }

    /// Notes what is not supported; the first in directly reached code refuses launches.
    pub(crate) fn unsupported(&mut self, what: &str, offset: u32) {
        if !self.indirect && self.program.unsupported.is_none() {
            self.program.unsupported = Some((what.to_owned(), offset));
        }
    }
}

/// Stands for the address of dynamic shared memory until `Program::dynamic_start` is known.
const DYNAMIC: u32 = 1 << 31;

fn info(module: &Module, function: &Function, symbols: &Symbols, program: &Program) -> KernelInfo {
    let three = |name: &str| {
        let given = function.directive(name)?;
        let at = |index: usize| {
            given
                .get(index)
                .map_or(1, |&n| u32::try_from(n).unwrap_or(u32::MAX))
        };
        Some([at(0), at(1), at(2)])
    };
    let required_block = three("reqntid");
    let threads = |[x, y, z]: [u32; 3]| x.saturating_mul(y).saturating_mul(z);
    let max_threads = required_block
        .or_else(|| three("maxntid"))
        .map_or(1024, |block| threads(block).clamp(1, 1024));
    let (params, param_bytes) = ptx::param_layout(&function.params);
    // PTX has unlimited registers; this only has to be plausible.
    let registers = program
        .functions
        .first()
        .map_or(16, |f| f.rows.clamp(16, 64));
    KernelInfo {
        params,
        param_bytes,
        static_shared: program.static_shared,
        local_bytes: program.functions.first().map_or(0, |f| f.local),
        const_bytes: symbols.const_bytes,
        max_threads,
        registers,
        architecture: module.architecture().unwrap_or_default(),
        required_block,
        cluster: three("reqnctapercluster"),
        shared: Arc::default(),
    }
}
