//! What checked programs run on: the simulated device, a driver behind the interposer, and one behind the test runner.
//!
//! Everywhere a module is prepared and loaded, and a launch is armed, started and drained, in this order and by the same
//! rules. They stand here once; a [`Backend`] says how its device does each step.
//! [`Checker::take`] prepares modules.

use std::fmt::Display;

use ptx::ast::{Function, Module, Space};

use crate::checker::{Checker, Prepared};

/// A device, and how a program reaches it.
pub trait Backend {
    /// A module that is to be loaded.
    type Image<'a>;
    /// A loaded module.
    type Module;
    /// Why the device does not take a text.
    type Refusal: Display;
    /// A launch that a program asks for.
    type Request<'a>;
    /// A launch between two steps.
    type Pending;
    /// What the program learns of a launch.
    type Ended;

    /// Uses the checker, if this process is checked and nobody else uses it.
    fn with_checker<R>(&mut self, ask: impl FnOnce(&mut Checker) -> R) -> Option<R>;

    /// Whether there is memory for the state that every launch of a kernel with checks needs.
    fn has_room(&mut self) -> bool {
        true
    }

    /// Loads one of the texts of a module.
    ///
    /// # Errors
    /// Why the device does not take it.
    fn load_text(
        &mut self,
        image: &Self::Image<'_>,
        text: Text,
    ) -> Result<Self::Module, Self::Refusal>;

    /// Decides how a launch is checked, and gets ready what that needs.
    fn arm(&mut self, request: &mut Self::Request<'_>) -> Self::Pending;

    /// Asks the device for an armed launch.
    fn start(&mut self, request: &mut Self::Request<'_>, pending: &mut Self::Pending);

    /// Has what the launch finds written down, now or when it ends.
    fn drain(&mut self, request: &mut Self::Request<'_>, pending: Self::Pending) -> Self::Ended;

    /// Loads a prepared module: with its checks, or the program's own text where the device has no room for those, or
    /// refuses them. All its launches run unchecked then.
    ///
    /// # Errors
    /// Why the device does not take the program's own text.
    fn load(
        &mut self,
        image: &Self::Image<'_>,
        prepared: &Prepared,
    ) -> Result<Loaded<Self::Module>, Self::Refusal> {
        let refused = match prepared.has_checks() {
            false => None,
            true if !self.has_room() => Some("the context has no room for checks".to_owned()),
            true => match self.load_text(image, Text::Checked) {
                Ok(module) => {
                    let refused = None;
                    return Ok(Loaded { module, refused });
                }
                Err(why) => Some(format!("its module does not load with checks: {why}")),
            },
        };
        let module = self.load_text(image, Text::Own)?;
        if let Some(why) = &refused {
            self.with_checker(|checker| checker.give_up(prepared.key, why));
        }
        Ok(Loaded { module, refused })
    }

    /// Runs a launch, or asks for it where the program does not wait for it.
    fn launch(&mut self, mut request: Self::Request<'_>) -> Self::Ended {
        let mut pending = self.arm(&mut request);
        self.start(&mut request, &mut pending);
        self.drain(&mut request, pending)
    }
}

/// One of the texts of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// With checks.
    Checked,
    /// As the program has it.
    Own,
}

/// A module that a device has loaded.
#[derive(Clone, Debug)]
pub struct Loaded<M> {
    /// The device's.
    pub module: M,
    /// Why it has been loaded without its checks.
    pub refused: Option<String>,
}

/// The registers to which the driver's compiler is to limit each thread of a module with checks: so few that every block
/// that runs without checks fits a multiprocessor with them. None if the kernels bound their blocks or registers
/// themselves.
pub fn register_limit(module: &Module) -> Option<u32> {
    let mut entries = module.functions().filter(|function| function.entry);
    let unlimited = entries.any(|entry| !is_limited(entry));
    unlimited.then_some(FEW_REGISTERS)
}

/// Registers with which a block of the largest size still fits a multiprocessor.
const FEW_REGISTERS: u32 = 64;
/// Threads of the largest block that still fits with more: 28 warps with 72 registers, 8 more, of 65,536.
const FEW_THREADS: u64 = 896;

/// Whether every block that a kernel may have fits a multiprocessor without a limit of registers from outside:
/// because it says itself how many it takes, or that its blocks are small. How many blocks it would like to fit
/// (`.minnctapersm`), the compiler sees to.
fn is_limited(entry: &Function) -> bool {
    let bounds = ["maxntid", "reqntid"].map(|name| entry.directive(name));
    let threads = bounds.into_iter().flatten().map(|sizes| {
        let sizes = sizes.iter();
        sizes.fold(1u64, |all, &size| all.saturating_mul(size))
    });
    entry.directive("maxnreg").is_some() || threads.min().is_some_and(|most| most <= FEW_THREADS)
}

/// The names of a module's variables that kernels may write.
pub fn writable(module: &Module) -> impl Iterator<Item = &str> {
    let variables = module.variables();
    let global = variables.filter(|variable| variable.space == Space::Global);
    global.map(|variable| variable.name.as_str())
}

/// The block of parameters of a kernel with checks: the program's, and the hidden one at its offset behind them.
/// Programs may leave out the padding behind the last parameter.
pub fn with_hidden(mut block: Vec<u8>, offset: u32, value: u64) -> Vec<u8> {
    block.resize(offset as usize, 0);
    block.extend(value.to_le_bytes());
    block
}
