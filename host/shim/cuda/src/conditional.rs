//! Conditional nodes of graphs: what they run depends on a value that kernels set.
//!
//! The handle of a value is the address of its word in the device's memory. Departure: the word is there once for a graph
//! and for all that is made of it.

use std::ffi::{c_int, c_uint};

use driver::sys::{CUctx_st, CUgraph_st, CUgraphNodeParams, CUresult};

use crate::Answer;
use crate::graph::Graph;
use crate::node::Task;
use crate::order::Launching;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::work::{Work, run};

/// `CU_GRAPH_COND_ASSIGN_DEFAULT`: each launch begins with the default value.
const ASSIGN_DEFAULT: c_uint = 1;

/// A value that nodes go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    graph: u64,
    /// What a launch of the graph begins with.
    default: Option<u32>,
}

/// How a node goes by its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choosing {
    /// The first graph unless it is 0, else the second, if there is one.
    If,
    /// The graph again and again until it is 0.
    While,
    /// The graph of that number, if there is one.
    Switch,
}

/// What a conditional node does.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    /// The address of the value.
    pub(crate) handle: u64,
    pub(crate) choosing: Choosing,
    /// The graphs of which it runs one; the program is told where this lies.
    pub(crate) bodies: Box<[u64]>,
}

impl Conditional {
    /// Runs what it chooses behind some nodes of a graph; gives the nodes behind which what waits for it comes.
    /// `body` runs one of its graphs.
    pub(crate) fn run(
        &self,
        launching: &mut Launching,
        after: &[usize],
        mut body: impl FnMut(&mut Launching, usize, &[usize]) -> Result<Vec<usize>, CUresult>,
    ) -> Result<Vec<usize>, CUresult> {
        let mut last = vec![run(launching, after, &Work::Empty)?];
        let value = || {
            with(|state| {
                let mut word = [0; 4];
                let read = state.engine.memory().read(self.handle, &mut word);
                read.map_err(|_| CUresult::ILLEGAL_ADDRESS)?;
                Ok(u32::from_le_bytes(word))
            })
        };
        let chosen = match (self.choosing, value()?) {
            (Choosing::While, mut now) => {
                while now != 0 {
                    last = body(launching, 0, &last)?;
                    now = value()?;
                }
                return Ok(last);
            }
            (Choosing::If, value) => usize::from(value == 0),
            (Choosing::Switch, value) => value as usize,
        };
        match chosen < self.bodies.len() {
            true => body(launching, chosen, &last),
            false => Ok(last),
        }
    }
}

pub(crate) fn cuGraphConditionalHandleCreate(
    out: Ptr<u64>,
    graph: Ptr<CUgraph_st>,
    _context: Ptr<CUctx_st>,
    default: c_uint,
    flags: c_uint,
) -> Answer {
    if flags & !ASSIGN_DEFAULT != 0 || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    out.set(with_context(|state, _| {
        state.graphs.get(graph.address())?;
        let memory = state.engine.memory_mut();
        let made = memory.alloc(4).map_err(|_| CUresult::OUT_OF_MEMORY)?;
        let written = memory.write(made, &0u32.to_le_bytes());
        written.map_err(|_| CUresult::OUT_OF_MEMORY)?;
        let condition = Condition {
            graph: graph.address(),
            default: (flags == ASSIGN_DEFAULT).then_some(default),
        };
        state.conditions.insert(made, condition);
        Ok(made)
    })?)
}

/// Adds a conditional node, and tells the program where its graphs are listed.
pub(crate) fn add_conditional(
    graph: u64,
    params: &mut CUgraphNodeParams,
    before: Vec<u64>,
) -> Result<u64, CUresult> {
    let [handle, kind, ..] = params.value;
    let (kind, size) = (kind as u32 as c_int, kind >> 32);
    let choosing = match (kind, size) {
        (0, 1 | 2) => Choosing::If,
        (1, 1) => Choosing::While,
        (2, 1..=0xffff) => Choosing::Switch,
        _ => return Err(CUresult::INVALID_VALUE),
    };
    with(|state| {
        if !state.conditions.contains_key(&handle) {
            return Err(CUresult::INVALID_VALUE);
        }
        state.graphs.get(graph)?;
        let new = |_| {
            state.graphs.insert(Graph {
                embedded: true,
                ..Graph::default()
            })
        };
        let bodies: Box<[u64]> = (0..size).map(new).collect();
        params.value[2] = bodies.as_ptr().expose_provenance() as u64;
        let task = Task::Conditional(Conditional {
            handle,
            choosing,
            bodies: bodies.clone(),
        });
        let node = state.add_node(graph, task, before);
        match &node {
            Ok(node) => {
                let found = state.nodes.get(*node)?;
                if let Task::Conditional(kept) = &found.task {
                    params.value[2] = kept.bodies.as_ptr().expose_provenance() as u64;
                }
            }
            Err(_) => {
                for body in bodies {
                    state.destroy_graph(body)?;
                }
            }
        }
        node
    })
}

impl State {
    /// A launch begins: values get their defaults.
    pub(crate) fn begin_conditions(&mut self, handles: &[u64]) -> Answer {
        for handle in handles {
            let default = self.conditions.get(handle).and_then(|of| of.default);
            if let Some(value) = default {
                let memory = self.engine.memory_mut();
                let written = memory.write(*handle, &value.to_le_bytes());
                written.map_err(|_| CUresult::ILLEGAL_ADDRESS)?;
            }
        }
        Ok(())
    }

    /// Frees the values of graphs that are gone, unless something executable goes by them.
    pub(crate) fn collect_conditions(&mut self) {
        let unused = |handle: &u64, of: &Condition| {
            let mut execs = self.execs.iter();
            self.graphs.get(of.graph).is_err() && !execs.any(|(_, exec)| exec.goes_by(*handle))
        };
        let all = self.conditions.iter();
        let gone: Vec<u64> = all
            .filter(|(handle, of)| unused(handle, of))
            .map(|(&handle, _)| handle)
            .collect();
        for handle in gone {
            self.conditions.remove(&handle);
            let _ = self.engine.memory_mut().free(handle);
        }
    }
}
