//! A loaded module: its variables in device memory, its kernels decoded when they are asked for.
//!
//! What does not depend on the device is the [`Image`], which any number of devices and loads share.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use ptx::ast::{Init, Item, Linkage, Module, Space, Variable};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::code::Program;
use crate::decode::{self, Symbol, Symbols};
use crate::error::LoadError;
use crate::memory::Memory;
use crate::windows;

/// A module that can be loaded any number of times. A kernel is decoded once for all loads that give the module's
/// variables and functions the same addresses.
#[derive(Debug)]
pub struct Image {
    module: Arc<Module>,
    /// The module that this one stands for, if that is another one.
    original: Option<Arc<Module>>,
    /// Bytes of its text that a tool has inserted, ascending.
    inserted: Vec<Range<u32>>,
    /// By the addresses that a load has given to names.
    programs: Mutex<Vec<(Arc<Symbols>, Programs)>>,
}

/// Decoded kernels by name; none where there is no such kernel.
type Programs = HashMap<String, Option<Arc<Program>>>;

impl Image {
    /// Makes an image of a parsed module.
    pub fn new(module: impl Into<Arc<Module>>) -> Self {
        Self {
            module: module.into(),
            original: None,
            inserted: Vec::new(),
            programs: Mutex::default(),
        }
    }

    /// Makes an image of a module that stands for another one: it does what that does, and more. What a host is told of
    /// its kernels, and how many of their CTAs are resident, is as of the original.
    #[must_use]
    pub fn standing_for(self, original: Arc<Module>) -> Self {
        Self {
            original: Some(original),
            ..self
        }
    }

    /// Says which bytes of the module's text, ascending, a tool has inserted. That code changes nothing that the rest
    /// of it computes.
    #[must_use]
    pub fn with_insertions(self, inserted: Vec<Range<u32>>) -> Self {
        Self { inserted, ..self }
    }

    /// The parsed module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The one copy of these addresses that all loads with them share.
    fn placement(&self, symbols: Symbols) -> Arc<Symbols> {
        let mut all = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, _)) = all.iter().find(|(known, _)| **known == symbols) {
            return Arc::clone(known);
        }
        // No load has the others any more.
        all.retain(|(of, _)| Arc::strong_count(of) > 1);
        let symbols = Arc::new(symbols);
        all.push((Arc::clone(&symbols), Programs::new()));
        symbols
    }

    /// A kernel, decoded for a placement.
    fn program(&self, symbols: &Arc<Symbols>, kernel: &str) -> Option<Arc<Program>> {
        let mut all = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, programs) = all.iter_mut().find(|(of, _)| Arc::ptr_eq(of, symbols))?;
        if let Some(program) = programs.get(kernel) {
            return program.clone();
        }
        let program = decode::program(&self.module, symbols, kernel);
        let program = program.map(|program| Arc::new(self.as_original(program, symbols, kernel)));
        programs.insert(kernel.to_owned(), program.clone());
        program
    }
}

impl Image {
    /// A kernel with the needs of the one that it stands for, as a host is told of them: so that it fits where that one
    /// fits.
    fn as_original(&self, mut program: Program, symbols: &Symbols, kernel: &str) -> Program {
        let original = self.original.as_ref();
        if let Some(of) = original.and_then(|of| decode::program(of, symbols, kernel)) {
            program.info.registers = of.info.registers;
            program.info.local_bytes = of.info.local_bytes;
        }
        program
    }
}

/// Where a module's variables and functions lie on a device, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Addresses of the variables.
    pub variables: BTreeMap<String, u64>,
    /// Addresses of the functions.
    pub functions: BTreeMap<String, u64>,
}

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Loaded {
    image: Arc<Image>,
    symbols: Arc<Symbols>,
}

impl Loaded {
    /// Bytes of the module's text that a tool has inserted, ascending.
    pub(crate) fn inserted(&self) -> &[Range<u32>] {
        &self.image.inserted
    }

    /// Places the variables of a module. `functions` counts the function addresses handed out.
    pub(crate) fn new(
        image: &Arc<Image>,
        memory: &mut Memory,
        functions: &mut u64,
    ) -> Result<Self, LoadError> {
        let module = &image.module;
        let mut symbols = Symbols::default();
        for function in module
            .functions()
            .filter(|function| function.body.is_some())
        {
            let address = windows::FUNCTIONS + *functions * windows::FUNCTION_STEP;
            *functions += 1;
            symbols.functions.insert(function.name.clone(), address);
        }
        symbols.add_aliases(module);
        let outcome =
            place(module, memory, &mut symbols).and_then(|()| initialise(module, memory, &symbols));
        let loaded = Self {
            image: Arc::clone(image),
            symbols: image.placement(symbols),
        };
        match outcome {
            Ok(()) => Ok(loaded),
            Err(error) => {
                loaded.release(memory);
                Err(error)
            }
        }
    }

    /// A module whose variables and functions have their places already, with whatever these hold.
    ///
    /// None when the placement lacks one of them.
    pub(crate) fn at(image: &Arc<Image>, placement: &Placement) -> Option<Self> {
        let mut symbols = Symbols::default();
        let defined = image.module.functions().filter(|of| of.body.is_some());
        for function in defined {
            let address = *placement.functions.get(function.name.as_str())?;
            symbols.functions.insert(function.name.clone(), address);
        }
        symbols.add_aliases(&image.module);
        for variable in defined_variables(&image.module) {
            let address = *placement.variables.get(variable.name.as_str())?;
            symbols.add(variable, address);
        }
        Some(Self {
            image: Arc::clone(image),
            symbols: image.placement(symbols),
        })
    }

    /// Where its variables and functions lie.
    pub(crate) fn placement(&self) -> Placement {
        let variables = self.symbols.variables.iter();
        let functions = self.symbols.functions.iter();
        Placement {
            variables: variables
                .map(|(name, symbol)| (name.to_string(), symbol.address))
                .collect(),
            functions: functions
                .map(|(name, address)| (name.to_string(), *address))
                .collect(),
        }
    }

    /// Frees the variables.
    pub(crate) fn release(self, memory: &mut Memory) {
        for symbol in self.symbols.variables.values() {
            // A program may have freed it by mistake; that is not ours to report.
            if memory.free(symbol.address).is_err() {
                let _ = memory.detach(symbol.address);
            }
        }
    }

    /// The parsed module.
    pub(crate) fn module(&self) -> &Module {
        &self.image.module
    }

    /// Address and size of a variable.
    pub(crate) fn global(&self, name: &str) -> Option<(u64, u64)> {
        let symbol = self.symbols.variables.get(name)?;
        Some((symbol.address, symbol.bytes))
    }

    /// The kernel at an address, with the size of its parameters in bytes.
    pub(crate) fn kernel_at(&self, address: u64) -> Option<(&str, u32)> {
        let mut functions = self.symbols.functions.iter();
        let (name, _) = functions.find(|&(_, &at)| at == address)?;
        let kernel = self.image.module.function(name).filter(|of| of.entry)?;
        Some((name, ptx::param_layout(&kernel.params).1))
    }

    /// A kernel, decoded.
    pub(crate) fn program(&self, kernel: &str) -> Option<Arc<Program>> {
        self.image.program(&self.symbols, kernel)
    }
}

/// Variables that live in device memory.
fn placed(module: &Module) -> impl Iterator<Item = &Variable> {
    module
        .variables()
        .filter(|variable| matches!(variable.space, Space::Global | Space::Const))
}

fn place(module: &Module, memory: &mut Memory, symbols: &mut Symbols) -> Result<(), LoadError> {
    for variable in defined_variables(module) {
        if symbols.variables.contains_key(&variable.name) {
            continue;
        }
        let bytes = variable.bytes();
        let out = |_| LoadError::OutOfMemory {
            variable: variable.name.to_string(),
            bytes,
        };
        let address = if variable.managed {
            memory.alloc_host(bytes).map_err(out)?
        } else {
            memory.alloc(bytes).map_err(out)?
        };
        symbols.add(variable, address);
    }
    Ok(())
}

/// Variables of device memory that the module defines; a declaration stands beside its definition, or means a symbol of
/// another module.
fn defined_variables(module: &Module) -> impl Iterator<Item = &Variable> {
    placed(module).filter(|variable| variable.linkage != Linkage::Extern)
}

impl Symbols {
    fn add_aliases(&mut self, module: &Module) {
        for item in &module.items {
            if let Item::Alias { name, aliasee, .. } = item {
                self.aliases.insert(name.clone(), aliasee.clone());
            }
        }
    }

    /// A variable lies at an address.
    fn add(&mut self, variable: &Variable, address: u64) {
        let symbol = Symbol {
            space: variable.space,
            address,
            bytes: variable.bytes(),
        };
        let before = self.variables.insert(variable.name.clone(), symbol);
        if variable.space == Space::Const && before.is_none() {
            let bytes = u32::try_from(variable.bytes()).unwrap_or(u32::MAX);
            self.const_bytes = self.const_bytes.saturating_add(bytes);
        }
    }
}

fn initialise(module: &Module, memory: &mut Memory, symbols: &Symbols) -> Result<(), LoadError> {
    for variable in placed(module) {
        let (Some(init), Some(symbol)) = (&variable.init, symbols.variables.get(&variable.name))
        else {
            continue;
        };
        let size = variable.ty.bytes() as usize;
        let mut bytes = Vec::new();
        for element in init {
            let value = value(element, variable, module, symbols)?.to_le_bytes();
            bytes.extend_from_slice(&value[..size.min(8)]);
            bytes.resize(bytes.len() + size.saturating_sub(8), 0);
        }
        bytes.truncate(usize::try_from(symbol.bytes).unwrap_or(usize::MAX));
        // The variable was made this large.
        let _ = memory.write(symbol.address, &bytes);
    }
    Ok(())
}

/// The bits of an element of an initialiser.
fn value(
    element: &Init,
    variable: &Variable,
    module: &Module,
    symbols: &Symbols,
) -> Result<u64, LoadError> {
    use ptx::ast::Type;
    Ok(match (element, variable.ty) {
        (Init::Int(bits), _) => *bits,
        (Init::F32(bits), Type::F64) => f64::from(f32::from_bits(*bits)).to_bits(),
        (Init::F32(bits), _) => u64::from(*bits),
        (Init::F64(bits), Type::F32) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
        (Init::F64(bits), _) => *bits,
        (
            Init::Symbol {
                name, offset, mask, ..
            },
            _,
        ) => {
            let address =
                address(name, module, symbols).ok_or_else(|| LoadError::UnknownSymbol {
                    symbol: name.to_string(),
                    line: module.line_column(variable.span.start).0,
                })?;
            let address = address.wrapping_add_signed(*offset);
            match mask {
                // `0xFF00(symbol)` is the byte under the mask.
                Some(mask) if *mask != 0 => (address & mask) >> mask.trailing_zeros(),
                _ => address,
            }
        }
    })
}

fn address(name: &SmolStr, module: &Module, symbols: &Symbols) -> Option<u64> {
    if let Some(symbol) = symbols.variables.get(name) {
        return Some(symbol.address);
    }
    let name = symbols.aliases.get(name).unwrap_or(name);
    if let Some(&address) = symbols.functions.get(name) {
        return Some(address);
    }
    // What is declared but defined nowhere faults when it is used.
    let declared = module.functions().any(|function| function.name == *name)
        || module.variables().any(|variable| variable.name == *name);
    declared.then_some(0)
}
