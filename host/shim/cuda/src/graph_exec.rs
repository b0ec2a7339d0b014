//! Executable graphs: made from a graph, changed since, and launched.
//!
//! Departure: an executable graph is updated whenever the kinds of its nodes are the same; a real
//! driver compares dependencies too, and some parameters cannot be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_int, c_uint};

use driver::sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUgraph_st,
    CUgraphExec, CUgraphExec_st, CUgraphExecUpdateResultInfo, CUgraphNode, CUgraphNode_st,
    CUgraphNodeParams, CUresult, CUstream_st,
};

use crate::Answer;
use crate::conditional::Conditional;
use crate::missing::{ignored, missing};
use crate::node::{Task, kernel_node, with_attributes_of};
use crate::node_params::work_of;
use crate::order::Launching;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::{pointer, set};
use crate::user_object::{Held, settle};
use crate::work::{Work, run};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`: a launch frees what an earlier one has allocated.
const AUTO_FREE: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;
/// All flags that there are.
const FLAGS: u64 = 15;

/// An executable graph.
#[derive(Clone, Debug)]
pub(crate) struct Exec {
    flags: u64,
    steps: Vec<Step>,
    /// What it keeps alive.
    objects: Held,
}

/// What is done for a node.
#[derive(Clone, Debug)]
struct Step {
    /// Its node, behind the nodes whose child graph it is in.
    path: Vec<u64>,
    work: Work,
    enabled: bool,
    /// The steps that it waits for.
    after: Vec<usize>,
    /// It is a conditional node, with the steps of each of its graphs.
    choice: Option<Choice>,
}

/// What a conditional node does, and the steps of its graphs.
#[derive(Clone, Debug)]
struct Choice {
    of: Conditional,
    bodies: Vec<Vec<Step>>,
}

/// All steps, those inside conditional nodes included.
fn all(steps: &[Step]) -> Vec<&Step> {
    let choices = steps.iter().filter_map(|step| step.choice.as_ref());
    let inside = choices.flat_map(|choice| &choice.bodies);
    let inside = inside.flat_map(|body| all(body));
    steps.iter().chain(inside).collect()
}

/// The step of a node.
fn find(steps: &mut [Step], node: u64) -> Option<&mut Step> {
    for step in steps {
        if step.path.last() == Some(&node) {
            return Some(step);
        }
        let bodies = step.choice.iter_mut().flat_map(|of| &mut of.bodies);
        for body in bodies {
            if let Some(found) = find(body, node) {
                return Some(found);
            }
        }
    }
    None
}

/// Runs steps behind some nodes of a graph; gives the nodes that end last. Disabled ones only order others.
fn run_steps(
    launching: &mut Launching,
    steps: &[Step],
    entry: &[usize],
) -> Result<Vec<usize>, CUresult> {
    let mut ends: Vec<Vec<usize>> = Vec::new();
    for step in steps {
        let before = step.after.iter().filter_map(|&step| ends.get(step));
        let mut after: Vec<usize> = before.flatten().copied().collect();
        if after.is_empty() {
            after.extend(entry);
        }
        ends.push(match (&step.choice, step.enabled) {
            (Some(choice), _) => choice.of.run(launching, &after, |launching, body, entry| {
                run_steps(launching, &choice.bodies[body], entry)
            })?,
            (None, true) => vec![run(launching, &after, &step.work)?],
            (None, false) => vec![run(launching, &after, &Work::Empty)?],
        });
    }
    let waited: BTreeSet<usize> = steps.iter().flat_map(|step| step.after.clone()).collect();
    let last = ends.into_iter().enumerate();
    let last = last.filter(|(step, _)| !waited.contains(step));
    let last: Vec<usize> = last.flat_map(|(_, ends)| ends).collect();
    Ok(match last.is_empty() {
        // An empty graph passes on what it waits for.
        true => entry.to_vec(),
        false => last,
    })
}

impl Exec {
    /// Whether a launch allocates this memory of a graph.
    pub(crate) fn allocates(&self, address: u64) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step.work, Work::Alloc(at) if at == address))
    }

    /// What a launch does, in order.
    fn work(&self) -> impl Iterator<Item = &Work> {
        let enabled = self.steps.iter().filter(|step| step.enabled);
        enabled.map(|step| &step.work)
    }

    /// Whether some steps may be done at the same time: not each waits for the one before it.
    fn is_apart(&self) -> bool {
        let mut later = self.steps.iter().zip(0..).skip(1);
        later.any(|(step, at): (&Step, usize)| !step.after.contains(&(at - 1)))
    }

    fn step(&mut self, node: u64) -> Result<&mut Step, CUresult> {
        find(&mut self.steps, node).ok_or(CUresult::INVALID_VALUE)
    }

    /// The values that its conditional nodes go by.
    fn conditions(&self) -> Vec<u64> {
        let choices = all(&self.steps).into_iter();
        let choices = choices.filter_map(|step| step.choice.as_ref());
        choices.map(|choice| choice.of.handle).collect()
    }

    /// Whether a conditional node of it goes by a value.
    pub(crate) fn goes_by(&self, handle: u64) -> bool {
        self.conditions().contains(&handle)
    }
}

impl State {
    /// What a graph keeps alive, those inside it included.
    fn held_by(&self, graph: u64) -> Result<Held, CUresult> {
        let found = self.graphs.get(graph)?;
        let mut held = found.objects.clone();
        for &node in &found.nodes {
            for &inside in self.nodes.get(node)?.task.inside() {
                for (object, count) in self.held_by(inside)? {
                    *held.entry(object).or_default() += count;
                }
            }
        }
        Ok(held)
    }

    /// All work of a graph, that of child graphs at the place of their nodes.
    fn steps_of(&self, graph: u64, path: &[u64]) -> Result<Vec<Step>, CUresult> {
        let mut steps = Vec::new();
        self.add_steps(graph, path, &[], &mut steps)?;
        Ok(steps)
    }

    /// Adds the work of a graph that waits for the steps `after`; gives the steps that whoever waits
    /// for the graph has to wait for.
    fn add_steps(
        &self,
        graph: u64,
        path: &[u64],
        after: &[usize],
        steps: &mut Vec<Step>,
    ) -> Result<Vec<usize>, CUresult> {
        let mut ends: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for node in self.ordered(graph)? {
            let path = [path, &[node]].concat();
            let found = self.nodes.get(node)?;
            let mut before = after.to_vec();
            let dependencies = found.dependencies.iter();
            before.extend(dependencies.filter_map(|of| ends.get(of)).flatten());
            let end = match &found.task {
                Task::Child(child) => self.add_steps(*child, &path, &before, steps)?,
                Task::Work(work) => {
                    steps.push(Step {
                        path,
                        work: work.clone(),
                        enabled: true,
                        after: before,
                        choice: None,
                    });
                    vec![steps.len() - 1]
                }
                Task::Conditional(of) => {
                    let bodies = of.bodies.iter().map(|&body| {
                        let body = self.steps_of(body, &path)?;
                        match body.iter().all(|step| may_be_chosen(&step.work)) {
                            true => Ok(body),
                            false => Err(CUresult::INVALID_VALUE),
                        }
                    });
                    let bodies = bodies.collect::<Result<_, _>>()?;
                    let of = of.clone();
                    steps.push(Step {
                        path,
                        work: Work::Empty,
                        enabled: true,
                        after: before,
                        choice: Some(Choice { of, bodies }),
                    });
                    vec![steps.len() - 1]
                }
            };
            ends.insert(node, end);
        }
        let mut all: Vec<usize> = ends.into_values().flatten().collect();
        // An empty graph passes on what it waits for.
        if all.is_empty() {
            all.extend(after);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

/// Whether a graph of a conditional node may do this (CUDA Driver API, `CUDA_CONDITIONAL_NODE_PARAMS`).
fn may_be_chosen(work: &Work) -> bool {
    matches!(
        work,
        Work::Launch(..) | Work::Copy(_) | Work::Fill(_) | Work::Empty
    )
}

fn instantiate(out: Ptr<CUgraphExec>, graph: Ptr<CUgraph_st>, flags: u64) -> Answer {
    if flags & !FLAGS != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(missing("graphs that are launched from the device"));
    }
    let exec = with_context(|state, _| {
        let steps = state.steps_of(graph.address(), &[])?;
        let objects = state.held_by(graph.address())?;
        state.hold(&objects)?;
        Ok(state.execs.insert(Exec {
            flags,
            steps,
            objects,
        }))
    })?;
    set(out, exec)
}

pub(crate) fn cuGraphInstantiateWithFlags(
    out: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    flags: u64,
) -> Answer {
    instantiate(out, graph, flags)
}

pub(crate) fn cuGraphInstantiateWithParams(
    out: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    params: Ptr<CUDA_GRAPH_INSTANTIATE_PARAMS>,
) -> Answer {
    let given = params.get()?;
    let result = instantiate(out, graph, given.flags);
    params.set(CUDA_GRAPH_INSTANTIATE_PARAMS {
        error_node_out: std::ptr::null_mut(),
        result_out: c_int::from(result.is_err()),
        ..given
    })?;
    result
}

pub(crate) fn cuGraphInstantiate_v1(
    out: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    error_node: Ptr<CUgraphNode>,
    log: Ptr<c_char>,
    room: usize,
) -> Answer {
    cuGraphInstantiate_v2(out, graph, error_node, log, room)
}

pub(crate) fn cuGraphInstantiate_v2(
    out: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    error_node: Ptr<CUgraphNode>,
    log: Ptr<c_char>,
    room: usize,
) -> Answer {
    error_node.set_if(std::ptr::null_mut());
    if !log.is_null() && room > 0 {
        log.set_text("", room)?;
    }
    instantiate(out, graph, 0)
}

pub(crate) fn cuGraphExecGetFlags(exec: Ptr<CUgraphExec_st>, flags: Ptr<u64>) -> Answer {
    flags.set(with(|state| Ok(state.execs.get(exec.address())?.flags))?)
}

/// The number in `CUgraphExecUpdateResult` that says how it went.
fn update(exec: u64, graph: u64) -> Result<c_int, CUresult> {
    with(|state| {
        let new = state.steps_of(graph, &[])?;
        let steps = &mut state.execs.get_mut(exec)?.steps;
        let depths =
            |steps: &[Step]| -> Vec<usize> { steps.iter().map(|step| step.path.len()).collect() };
        if depths(&new) != depths(steps) {
            return Ok(2);
        }
        let kinds = |steps: &[Step]| -> Vec<_> {
            let kinds = steps.iter().map(|step| std::mem::discriminant(&step.work));
            kinds.collect()
        };
        let choices = |steps: &[Step]| -> Vec<bool> {
            steps.iter().map(|step| step.choice.is_some()).collect()
        };
        if kinds(&new) != kinds(steps) || choices(&new) != choices(steps) {
            return Ok(3);
        }
        // A step keeps its node: that of the graph that the executable one was made from.
        for (step, new) in steps.iter_mut().zip(new) {
            step.work = new.work;
            step.choice = new.choice;
        }
        Ok(0)
    })
}

fn updated(result: c_int) -> Answer {
    match result {
        0 => Ok(()),
        _ => Err(CUresult::GRAPH_EXEC_UPDATE_FAILURE),
    }
}

pub(crate) fn cuGraphExecUpdate(
    exec: Ptr<CUgraphExec_st>,
    graph: Ptr<CUgraph_st>,
    info: Ptr<CUgraphExecUpdateResultInfo>,
) -> Answer {
    let result = update(exec.address(), graph.address())?;
    info.set(CUgraphExecUpdateResultInfo {
        result,
        ..CUgraphExecUpdateResultInfo::default()
    })?;
    updated(result)
}

pub(crate) fn cuGraphExecUpdate_v1(
    exec: Ptr<CUgraphExec_st>,
    graph: Ptr<CUgraph_st>,
    error_node: Ptr<CUgraphNode>,
    result_out: Ptr<c_int>,
) -> Answer {
    let result = update(exec.address(), graph.address())?;
    error_node.set_if(pointer(0));
    result_out.set(result)?;
    updated(result)
}

/// Gives the step of a node other work of the same kind.
pub(crate) fn set_work(exec: Ptr<CUgraphExec_st>, node: Ptr<CUgraphNode_st>, work: Work) -> Answer {
    with(|state| {
        let step = state.execs.get_mut(exec.address())?.step(node.address())?;
        if std::mem::discriminant(&step.work) != std::mem::discriminant(&work) {
            return Err(CUresult::INVALID_VALUE);
        }
        step.work = work;
        Ok(())
    })
}

/// Gives the step of a kernel's node other parameters.
fn set_kernel(exec: Ptr<CUgraphExec_st>, node: Ptr<CUgraphNode_st>, work: Work) -> Answer {
    with(|state| {
        let step = state.execs.get_mut(exec.address())?.step(node.address())?;
        let Work::Launch(_, old) = &step.work else {
            return Err(CUresult::INVALID_VALUE);
        };
        step.work = with_attributes_of(old, work);
        Ok(())
    })
}

pub(crate) fn cuGraphExecNodeSetParams(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUgraphNodeParams>,
) -> Answer {
    let params = params.get()?;
    match params.child() {
        Some(child) => set_child(exec.address(), node.address(), child),
        None => match work_of(&params)? {
            kernel @ Work::Launch(..) => set_kernel(exec, node, kernel),
            work => set_work(exec, node, work),
        },
    }
}

pub(crate) fn cuGraphExecKernelNodeSetParams(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    set_kernel(exec, node, kernel_node(&params.get()?)?)
}

pub(crate) fn cuGraphExecKernelNodeSetParams_v1(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    set_kernel(exec, node, kernel_node(&params.get()?.into())?)
}

/// The steps of a child graph's node get what the nodes of another graph do.
fn set_child(exec: u64, node: u64, child: u64) -> Answer {
    with(|state| {
        let new = state.steps_of(child, &[node])?;
        let steps = &mut state.execs.get_mut(exec)?.steps;
        let within = |step: &&mut Step| {
            let (_, above) = step.path.split_last().unwrap_or((&0, &[]));
            above.contains(&node)
        };
        let old: Vec<&mut Step> = steps.iter_mut().filter(within).collect();
        // What it does, and how deep inside the child graph.
        let kind = |step: &Step| {
            let inside = step.path.iter().skip_while(|&&of| of != node).count();
            (std::mem::discriminant(&step.work), inside)
        };
        let same = old
            .iter()
            .zip(&new)
            .all(|(old, new)| kind(old) == kind(new));
        if old.is_empty() || old.len() != new.len() || !same {
            return Err(CUresult::GRAPH_EXEC_UPDATE_FAILURE);
        }
        for (old, new) in old.into_iter().zip(new) {
            old.work = new.work;
        }
        Ok(())
    })
}

pub(crate) fn cuGraphExecChildGraphNodeSetParams(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    child: Ptr<CUgraph_st>,
) -> Answer {
    set_child(exec.address(), node.address(), child.address())
}

pub(crate) fn cuGraphNodeSetEnabled(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    enabled: c_uint,
) -> Answer {
    with(|state| {
        let step = state.execs.get_mut(exec.address())?.step(node.address())?;
        match step.work {
            Work::Launch(..) | Work::Copy(_) | Work::Fill(_) => step.enabled = enabled != 0,
            _ => return Err(CUresult::INVALID_VALUE),
        }
        Ok(())
    })
}

pub(crate) fn cuGraphNodeGetEnabled(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    enabled: Ptr<c_uint>,
) -> Answer {
    enabled.set(with(|state| {
        let step = state.execs.get_mut(exec.address())?.step(node.address())?;
        Ok(c_uint::from(step.enabled))
    })?)
}

pub(crate) fn cuGraphLaunch(exec: Ptr<CUgraphExec_st>, stream: Ptr<CUstream_st>) -> Answer {
    let (stream, handle) = (stream.address(), exec.address());
    runtime::host_calls::ask_python();
    let exec = with_context(|state, _| {
        let exec = state.execs.get(handle)?.clone();
        match state.capture_of(stream)? {
            Some(capture) => {
                if exec.steps.iter().any(|step| step.choice.is_some()) {
                    return Err(missing(
                        "graphs with conditional nodes that are launched into a stream being captured",
                    ));
                }
                for work in exec.work() {
                    state.captured(stream, capture, work.clone())?;
                }
                Ok(None)
            }
            None => {
                for work in exec.work().filter(|_| exec.flags & AUTO_FREE != 0) {
                    if let Work::Alloc(address) = work {
                        // The program may have freed it.
                        let _ = state.drop_graph_memory(*address);
                    }
                }
                state.begin_conditions(&exec.conditions())?;
                Ok(Some(exec))
            }
        }
    })?;
    let Some(exec) = exec else {
        return Ok(());
    };
    // One launch of an executable graph waits for the one before it, whatever their streams (CUDA Driver API,
    // `cuGraphLaunch`).
    with_context(|state, context| state.stream_waits(context, stream, handle))?;
    let mut launching = Launching::begin(stream, exec.is_apart())?;
    let result = run_steps(&mut launching, &exec.steps, &[]).map(drop);
    launching.end()?;
    with_context(|state, context| state.mark(context, handle, stream))?;
    result
}

pub(crate) fn cuGraphUpload(exec: Ptr<CUgraphExec_st>, stream: Ptr<CUstream_st>) -> Answer {
    ignored("there is nothing to prepare");
    with_context(|state, _| {
        state.check_stream(stream.address())?;
        state.execs.get(exec.address()).map(drop)
    })
}

pub(crate) fn cuGraphExecDestroy(exec: Ptr<CUgraphExec_st>) -> Answer {
    with(|state| {
        let gone = state.execs.remove(exec.address())?;
        state.event_gone(exec.address());
        state.collect_graph_memory();
        state.collect_conditions();
        state.let_go(&gone.objects)
    })?;
    settle()
}
