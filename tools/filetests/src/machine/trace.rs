//! A launch, and what the happens-before engine has received of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use driver::Device as _;
use ptx::ast::Module;
use runtime::audit::Audit;
use runtime::traced::TraceEvent;
use simt::Limits;

use super::{Launch, Machine, TIMEOUT};
use crate::args::Arg;
use crate::retrace::{self, Objection};

/// A launch that has come to its end.
pub struct Trace {
    /// What the engine has received.
    pub traced: Vec<TraceEvent>,
    module: Module,
    entry: String,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: u32,
    shared_content: u32,
    params: Vec<u8>,
    variables: BTreeMap<String, u64>,
    before: Vec<(u64, Vec<u8>)>,
    after: Vec<Vec<u8>>,
}

impl Machine {
    /// Runs a launch, whose arguments are scalars and buffers, and keeps what the engine has received.
    ///
    /// # Errors
    /// When it does not load, or fails.
    pub fn trace(mut self, text: &str, launch: &Launch, arguments: &[Arg]) -> Result<Trace> {
        let (module, _) = ptx::parse(text);
        let entry = launch.kernel(&module)?;
        let id = self.sim.load(text, "test")?;
        let (params, addresses) = self.arguments(id, &entry, arguments)?;
        let mut request = simt::Launch::new(launch.grid, launch.block, params.clone());
        request.dynamic_shared = launch.shared;
        request.cooperative = launch.cooperative;
        request.limits = Limits {
            timeout: Some(TIMEOUT),
            ..Limits::default()
        };
        let buffers = arguments.iter().zip(addresses);
        let before: Vec<(u64, Vec<u8>)> = buffers
            .filter_map(|(argument, address)| match argument {
                Arg::Buffer(bytes) => Some((address, bytes.clone())),
                Arg::Scalar(_) | Arg::Image(_) => None,
            })
            .collect();
        let names = module.variables().map(|variable| variable.name.to_string());
        let variables = names.filter_map(|name| {
            let (address, _) = self.sim.device().global(id, &name)?;
            Some((name, address))
        });
        let variables = variables.collect();
        let info = self.sim.kernel(id, &entry).context("no such kernel")?;
        let mut audit = Audit::default();
        self.sim.audit(id, &entry, &request, &mut audit)?;
        let after = before.iter().map(|(address, bytes)| {
            let mut bytes = vec![0; bytes.len()];
            self.sim.device().read(*address, &mut bytes)?;
            Ok(bytes)
        });
        let after = after.collect::<Result<_>>()?;
        Ok(Trace {
            traced: audit.traced,
            module,
            entry,
            grid: launch.grid,
            block: launch.block,
            cluster: info.cluster.map_or(1, |cluster| cluster.iter().product()),
            shared_content: self.shared_content,
            params,
            variables,
            before,
            after,
        })
    }
}

impl Trace {
    /// Whether the text, and what memory holds in the end, agree with what the engine has received.
    ///
    /// # Errors
    /// What does not agree, or is not understood.
    pub fn confirm(&self) -> Result<(), Objection> {
        let launch = retrace::Launch {
            module: &self.module,
            entry: &self.entry,
            grid: self.grid,
            block: self.block,
            cluster: self.cluster,
            shared_content: self.shared_content,
            params: &self.params,
            variables: &self.variables,
            memory: &self.before,
            workspace: None,
        };
        let contents = retrace::follow(&launch, &self.traced)?;
        let same = contents.iter().zip(&self.after);
        match same.clone().position(|((_, says), holds)| says != holds) {
            None => Ok(()),
            Some(argument) => Err(Objection::Differs {
                after: self.traced.len(),
                what: format!("buffer {argument} holds something else"),
            }),
        }
    }
}
