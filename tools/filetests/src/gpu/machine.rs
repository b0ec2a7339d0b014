//! A device behind a driver, checked as the interposer checks it.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use driver::client::{Client, Function, Module, Shape};
use driver::gpu::Gpu;
use driver::sys::CUresult;
use driver::{Device as _, DeviceError};
use ptx::ast::Space;
use report::log::Writer;
use runtime::backend::{self, Backend, Text, with_hidden};
use runtime::session::{ArmedLaunch, Kernel, Session};
use runtime::{Checker, Extent, Model, ModuleKey, Options, Prepared, ShadowSize};

use crate::args::Arg;
use crate::events;
use crate::machine::{Checks, Failure, Launch, LaunchOutcome};

/// How long the checks of a launch that has ended may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The driver refuses a file as it is written, which says nothing about the checks.
#[derive(Debug)]
pub(super) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the driver refuses the file as written: {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// Bytes for arguments. They lie together, so that no two of their granules share a cell.
const ARENA: u64 = 32 << 20;
/// Bytes of the shadow memory.
const SHADOW: u64 = 64 << 20;
/// Arguments begin at multiples of so many bytes, as the driver's allocations do.
const ALIGNMENT: u64 = 256;

/// How launches are checked: mode, journal and memory model.
pub(super) type How = (Checks, Option<Model>);

/// The first device of a driver.
pub(super) struct Machine {
    client: Client,
    memory: Gpu,
    /// Address of the [`ARENA`].
    arena: u64,
    /// What checks all launches, if anything does.
    session: Option<Session>,
    /// A launch has failed: nothing works in this process any more.
    pub(super) broken: bool,
}

/// What a launch needs to know of a loaded module.
struct Loaded {
    module: Module,
    function: Function,
    /// The module's number, when it is checked.
    key: Option<ModuleKey>,
    /// The program's own code, where that has been loaded beside the checks.
    own: Option<Function>,
    /// Offset of the hidden parameter in bytes, if there is one.
    hidden: Option<u32>,
    kernel: String,
    /// Addresses of variables that the checker was notified of.
    variables: Vec<u64>,
}

impl Machine {
    /// Opens the driver that the environment names, or the one that is installed, for one of
    /// `processes` that share the device's memory. All launches of a process are checked in one way,
    /// because a journal takes much of what it has.
    pub(super) fn open(how: Option<How>, processes: u64) -> Result<Self> {
        let client = Client::open().map_err(|why| anyhow!(why))?;
        let mut memory = client.memory().context("no memory on the device")?;
        let arena = memory.alloc(ARENA)?;
        let session = how
            .map(|how| session(how, &client, processes))
            .transpose()?;
        Ok(Self {
            client,
            memory,
            arena,
            session,
            broken: false,
        })
    }

    /// Loads `text`, and launches it `times` times with fresh arguments, unless it has variables,
    /// which keep their values. What is reported is of all launches, contents are of the last.
    pub(super) fn run(
        &mut self,
        text: &str,
        launch: &Launch,
        arguments: &[Arg],
        times: u32,
    ) -> Result<LaunchOutcome> {
        let before = self.events().len();
        if launch.then.is_some() {
            bail!(Refused(
                "one kernel is launched here, and no second one behind it".to_owned()
            ));
        }
        let (parsed, _) = ptx::parse(text);
        let kernel = launch.kernel(&parsed)?;
        let params = parsed.functions().find(|f| f.name == kernel.as_str());
        let params = &params
            .with_context(|| format!("no kernel `{kernel}`"))?
            .params;
        ensure!(
            params.len() == arguments.len(),
            "{} `arg` lines for {} parameters",
            arguments.len(),
            params.len()
        );
        let (layout, _) = ptx::param_layout(params);
        let mut globals = parsed.variables().filter(|of| of.space == Space::Global);
        let times = if globals.next().is_some() { 1 } else { times };

        let loaded = self.load(text, &parsed, kernel)?;
        let (mut block, mut buffers) = (Vec::new(), Vec::new());
        let mut used = 0;
        for (place, argument) in layout.iter().zip(arguments) {
            block.resize(place.offset as usize, 0);
            match argument {
                Arg::Scalar(value) => {
                    block.extend(value);
                    buffers.push(None);
                }
                Arg::Buffer(bytes) => {
                    let (address, length) = (self.arena + used, bytes.len() as u64);
                    used += length.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
                    ensure!(used <= ARENA, "arguments of more than {ARENA} bytes");
                    if let Some(session) = &mut self.session {
                        session.checker().allocated(address, length, "arg");
                    }
                    block.extend(address.to_le_bytes());
                    buffers.push(Some(address));
                }
                Arg::Image(_) => bail!(Refused("texture objects are not made here".to_owned())),
            }
        }
        let mut error = Ok(());
        for _ in 0..times {
            for (argument, address) in arguments.iter().zip(&buffers) {
                if let (Arg::Buffer(bytes), Some(address)) = (argument, address) {
                    self.memory.write(*address, bytes)?;
                }
            }
            let asked = Asked {
                loaded: &loaded,
                launch,
                params: &block,
            };
            error = Backend::launch(self, asked)?;
            if error.is_err() {
                self.broken = true;
                break;
            }
        }
        let contents = match error.is_ok() {
            true => self.contents(arguments, &buffers)?,
            false => Vec::new(),
        };
        if !self.broken {
            self.give_back(loaded.module, &loaded.variables, &buffers);
        }
        events::outcome(&self.events()[before..], &[&loaded.kernel], contents, error)
    }

    fn events(&mut self) -> &[report::log::Event] {
        match &mut self.session {
            Some(session) => session.checker().events(),
            None => &[],
        }
    }

    fn load(&mut self, text: &str, parsed: &ptx::ast::Module, kernel: String) -> Result<Loaded> {
        let Some(session) = &mut self.session else {
            let module = self.client.load(text).map_err(Refused)?;
            let function = self.function(&module, &kernel)?;
            return Ok(Loaded {
                module,
                function,
                key: None,
                hidden: None,
                own: None,
                kernel,
                variables: Vec::new(),
            });
        };
        let prepared = session.checker().prepare(text, "test");
        let loaded = Backend::load(self, &prepared, &prepared).map_err(Refused)?;
        let module = loaded.module;
        if let Some(why) = loaded.refused {
            self.client.unload(module);
            bail!("the driver refuses the checks of a text that it takes: {why}");
        }
        let session = self.session.as_mut().context("no session")?;
        let checker = session.checker();
        let hidden = checker.hidden_parameter(prepared.key, &kernel);
        let mut variables = Vec::new();
        for name in backend::writable(parsed) {
            if let Some((address, bytes)) = self.client.variable(&module, name) {
                checker.allocated_variable(name, address, bytes);
                variables.push(address);
            }
        }
        let own = checker.own_name(prepared.key, &kernel);
        let function = self.function(&module, &kernel)?;
        let own = own.map(|own| self.function(&module, &own)).transpose()?;
        Ok(Loaded {
            module,
            function,
            own,
            key: Some(prepared.key),
            hidden,
            kernel,
            variables,
        })
    }

    fn function(&self, module: &Module, kernel: &str) -> Result<Function> {
        let function = self.client.function(module, kernel);
        function.with_context(|| format!("the driver has no kernel `{kernel}`"))
    }

    fn contents(&self, arguments: &[Arg], buffers: &[Option<u64>]) -> Result<Vec<Vec<u8>>> {
        let pairs = arguments.iter().zip(buffers);
        pairs
            .map(|(argument, address)| match (argument, address) {
                (Arg::Buffer(bytes), Some(address)) => {
                    let mut bytes = vec![0; bytes.len()];
                    self.memory.read(*address, &mut bytes)?;
                    Ok(bytes)
                }
                _ => Ok(Vec::new()),
            })
            .collect()
    }

    fn give_back(&mut self, module: Module, variables: &[u64], buffers: &[Option<u64>]) {
        if let Some(session) = &mut self.session {
            let all = buffers.iter().flatten().chain(variables);
            all.for_each(|address| session.checker().freed(*address));
        }
        self.client.unload(module);
    }
}

/// A launch of a loaded kernel.
pub(super) struct Asked<'a> {
    loaded: &'a Loaded,
    launch: &'a Launch,
    /// The block of the program's parameters.
    params: &'a [u8],
}

/// A launch between two steps.
pub(super) struct Pending {
    /// None where nothing checks it.
    armed: Option<ArmedLaunch>,
    /// What the driver has said.
    asked: Result<(), CUresult>,
    /// Why it could not be asked for the launch.
    failed: Result<()>,
}

impl Machine {
    /// Asks the driver for a launch, with the hidden parameter if its kernel has one.
    fn ask(&self, asked: &Asked<'_>, armed: Option<&ArmedLaunch>) -> Result<Result<(), CUresult>> {
        let Asked {
            loaded,
            launch,
            params,
        } = asked;
        let shape = Shape {
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            cooperative: launch.cooperative,
        };
        let runs_own = armed.is_some_and(|armed| armed.own);
        let function = match (runs_own, loaded.own) {
            (false, _) => loaded.function,
            (true, own) => own.context("the program's own code has no name")?,
        };
        let params = match (loaded.hidden, armed) {
            (Some(offset), Some(armed)) if !runs_own => {
                let parameter = armed.parameter;
                let parameter = parameter.context("no memory for the launch's state")?;
                with_hidden(params.to_vec(), offset, parameter)
            }
            _ => params.to_vec(),
        };
        Ok(self.client.launch(function, &shape, &params))
    }
}

impl Backend for Machine {
    type Image<'a> = Prepared;
    type Module = Module;
    type Refusal = String;
    type Request<'a> = Asked<'a>;
    type Pending = Pending;
    /// How it has failed, if it has.
    type Ended = Result<Result<(), Failure>>;

    fn with_checker<R>(&mut self, ask: impl FnOnce(&mut Checker) -> R) -> Option<R> {
        self.session.as_mut().map(|session| ask(session.checker()))
    }

    fn load_text(&mut self, prepared: &Prepared, text: Text) -> Result<Module, String> {
        self.client.load(match text {
            Text::Checked => prepared.code.text(),
            Text::Own => prepared.code.own().text(),
        })
    }

    fn arm(&mut self, asked: &mut Asked<'_>) -> Pending {
        let (loaded, launch) = (asked.loaded, asked.launch);
        let session = self.session.as_mut();
        let armed = session.zip(loaded.key).map(|(session, key)| {
            let extent = Extent {
                cluster: self.client.cluster(loaded.function),
                grid: launch.grid,
                block: launch.block,
                dynamic_shared: launch.shared,
                shared: 0,
            };
            let kernel = Kernel {
                key,
                name: loaded.kernel.clone(),
                extent: extent.with_static_shared(self.client.static_shared(loaded.function)),
                parameters: asked.params.to_vec(),
            };
            session.begin(self.client.context(), 0, kernel, false)
        });
        Pending {
            armed,
            asked: Ok(()),
            failed: Ok(()),
        }
    }

    fn start(&mut self, asked: &mut Asked<'_>, pending: &mut Pending) {
        match self.ask(asked, pending.armed.as_ref()) {
            Ok(said) => pending.asked = said,
            Err(why) => pending.failed = Err(why),
        }
    }

    fn drain(&mut self, _: &mut Asked<'_>, pending: Pending) -> Result<Result<(), Failure>> {
        pending.failed?;
        let asked = pending.asked;
        let Some((session, armed)) = self.session.as_mut().zip(pending.armed) else {
            return Ok(asked.and_then(|()| self.client.finish()).map_err(failure));
        };
        session.launched(armed, asked.err());
        let ended = asked.and_then(|()| self.client.finish());
        ensure!(
            session.settle(TIMEOUT),
            "the checks of a launch that has ended do not end"
        );
        Ok(ended.map_err(failure))
    }
}

fn session((checks, model): How, client: &Client, processes: u64) -> Result<Session> {
    let options = Options {
        mode: checks.mode,
        as_gpu: checks.as_gpu,
        model,
        shadow: ShadowSize::Bytes(SHADOW),
        ..Options::default()
    };
    let mut session = Session::new(Checker::new(options, Writer::Memory(Vec::new())));
    session.attach(client.context(), || {
        let mut memory = client.memory()?;
        memory.share(processes);
        Ok::<_, DeviceError>(memory)
    })?;
    Ok(session)
}

/// What a launch's code may mean.
fn failure(code: CUresult) -> Failure {
    let kinds: &[&str] = match code {
        CUresult::ILLEGAL_ADDRESS => &["illegal-address", "invalid-texture", "invalid-surface"],
        CUresult::MISALIGNED_ADDRESS => &["misaligned"],
        CUresult::ASSERT => &["assert"],
        CUresult::LAUNCH_TIMEOUT => &["deadlock", "timeout"],
        CUresult::LAUNCH_FAILED | CUresult::ILLEGAL_INSTRUCTION => &["trap", "outside-surface"],
        _ => &["other"],
    };
    Failure {
        kinds,
        message: code.to_string(),
    }
}
