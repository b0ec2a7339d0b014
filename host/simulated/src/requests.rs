//! What kernels ask of the device runtime, run when the grid that has asked has ended.
//!
//! Requests run in the order in which they were made, each with all that follows from it, and those of the
//! tail stream behind all others: one of the orders that a program must allow for. The checker learns which
//! others there are: every CTA has a default stream, handles are streams of the grid, and what is fired
//! and forgotten is in no order with the rest (CUDA C++ Programming Guide 13.0, "CUDA Dynamic Parallelism").

use std::collections::HashMap;

use ptx::ast::Space;
use shadow::streams::{Stream, StreamKind, StreamOrder};
use simt::{Child, ExecutionPoint, Launch, LaunchError, ModuleId, Request, Requests, Wanted};

use super::CheckedSim;
use super::backend::Grid;
use report::log::{self, Call};
use runtime::Ancestor;
use runtime::backend::Backend;
use runtime::streams::{At, CallRange, footprint};

/// The streams of a grid.
#[derive(Default)]
struct Streams {
    order: StreamOrder,
    /// By handle, and for streams of a CTA or a thread by these.
    ids: HashMap<(u64, u64, u32), u64>,
    last: u64,
}

impl Streams {
    /// The stream of a request.
    fn of(&mut self, request: &Request) -> Stream {
        let key = match request.stream {
            0 => Some((0, request.cta, 0)),
            Requests::THREAD => Some((Requests::THREAD, request.cta, request.thread)),
            Requests::FORGET => None,
            handle => Some((handle, 0, 0)),
        };
        let known = key.and_then(|key| self.ids.get(&key).copied());
        let id = known.unwrap_or_else(|| {
            self.last += 1;
            self.ids.extend(key.map(|key| (key, self.last)));
            self.last
        });
        Stream {
            id,
            context: 0,
            kind: StreamKind::NonBlocking,
        }
    }
}

/// What a person calls a stream that a thread of a CTA of a grid has given work.
fn name(launcher: &Ancestor, request: &Request) -> String {
    let Some(launch) = launcher.launch() else {
        return String::new();
    };
    let cta = u32::try_from(request.cta).unwrap_or(u32::MAX);
    let [x, y, z] = runtime::thread(launch, cta, 0).block;
    match request.stream {
        0 => format!(
            "the default stream of block ({x},{y},{z}) of launch #{}",
            launch.launch
        ),
        Requests::THREAD => format!("the stream of a thread of launch #{}", launch.launch),
        Requests::TAIL => format!("cudaStreamTailLaunch of launch #{}", launch.launch),
        Requests::FORGET => format!("cudaStreamFireAndForget of launch #{}", launch.launch),
        handle => format!(
            "device stream #{} of launch #{}",
            handle >> 8,
            launch.launch
        ),
    }
}

/// Where a request is run: its place among all work, and the instruction that made it.
struct Asked {
    at: Option<At>,
    by: Option<log::Launcher>,
}

impl CheckedSim {
    /// Runs what a launch of a kernel of a module has asked for.
    pub(super) fn run_requests(
        &mut self,
        id: ModuleId,
        launch: &Launch,
        launcher: Option<Ancestor>,
        asked: Vec<Request>,
    ) -> Result<(), LaunchError> {
        let mut streams = Streams::default();
        let key = self.modules.get(&id).and_then(|loaded| loaded.key);
        let known = launcher.as_ref().map(|launcher| {
            let names: Vec<String> = asked.iter().map(|of| name(launcher, of)).collect();
            (launcher.at().clone(), launcher.launcher(Vec::new()), names)
        });
        if let (Some(checker), Some(launcher)) = (&mut self.checker, launcher) {
            checker.descend(launcher);
        }
        let tail = |of: &Request| of.stream == Requests::TAIL;
        let (tails, others): (Vec<_>, Vec<_>) =
            asked.into_iter().enumerate().partition(|(_, of)| tail(of));
        let mut result = Ok(());
        for (number, request) in others.into_iter().chain(tails) {
            let stream = streams.of(&request);
            match request.wanted {
                Wanted::Record(event) => {
                    streams.order.mark(event, &stream);
                    continue;
                }
                Wanted::Wait(event) => {
                    streams.order.wait(&stream, event);
                    continue;
                }
                _ => {}
            }
            let turn = streams.order.enter(&stream);
            if request.stream == Requests::FORGET {
                streams.order.destroyed(stream.id);
            }
            let mut place = Asked { at: None, by: None };
            if let (Some(checker), Some((at, by, names))) = (&mut self.checker, &known) {
                let behind = tail(&request);
                let nth = checker.runs_request((!behind).then_some(number));
                place.at = Some(at.of_request(nth, turn, behind, names[number].clone()));
                let offset = request.offset;
                place.by = Some(log::Launcher {
                    frames: key.map_or_else(Vec::new, |key| checker.caller(key, offset)),
                    ..by.clone()
                });
            }
            result = self.run_request(id, launch, place, &request);
            if let (Err(error), Some(checker)) = (&result, &mut self.checker)
                && !matches!(request.wanted, Wanted::Launch(_))
            {
                checker.note(error.to_string());
            }
            if result.is_err() {
                break;
            }
        }
        if let (Some(checker), Some(_)) = (&mut self.checker, known) {
            checker.ascend();
        }
        result
    }

    fn run_request(
        &mut self,
        id: ModuleId,
        launch: &Launch,
        asked: Asked,
        request: &Request,
    ) -> Result<(), LaunchError> {
        match &request.wanted {
            Wanted::Launch(child) => self.run_child(id, launch, asked, child),
            &Wanted::Copy { from, to, bytes } => {
                let memory = self.device.memory_mut();
                let room = usize::try_from(bytes.min(memory.total()));
                let mut data = vec![0; room.unwrap_or(0)];
                if (data.len() as u64) < bytes {
                    return Err(outside(request, from, bytes, false));
                }
                let read = memory.read(from, &mut data);
                read.map_err(|_| outside(request, from, bytes, false))?;
                let written = memory.write(to, &data);
                written.map_err(|_| outside(request, to, bytes, true))?;
                let range = |base, call| CallRange { base, bytes, call };
                let ranges = [range(from, Call::CopyFrom), range(to, Call::CopyTo)];
                self.pass_touched(asked.at, &ranges);
                Ok(())
            }
            &Wanted::Fill {
                address,
                value,
                bytes,
            } => {
                let filled = self.device.memory_mut().fill(address, value, bytes);
                filled.map_err(|_| outside(request, address, bytes, true))?;
                let range = CallRange {
                    base: address,
                    bytes,
                    call: Call::Fill,
                };
                self.pass_touched(asked.at, &[range]);
                Ok(())
            }
            Wanted::Record(_) | Wanted::Wait(_) => Ok(()),
        }
    }

    /// Runs a kernel that a kernel has launched, with all that follows.
    fn run_child(
        &mut self,
        id: ModuleId,
        parent: &Launch,
        asked: Asked,
        child: &Child,
    ) -> Result<(), LaunchError> {
        let launch = Launch {
            dynamic_shared: child.dynamic_shared,
            schedule: parent.schedule,
            limits: parent.limits,
            printf: parent.printf.clone(),
            threads: parent.threads,
            requests: Requests::new(parent.requests.depth() + 1),
            ..Launch::new(child.grid, child.block, child.params.clone())
        };
        let ran = Backend::launch(
            self,
            Grid {
                at: asked.at,
                by: asked.by,
                ..Grid::new(id, &child.kernel, &launch)
            },
        );
        ran.result?;
        let more = launch.requests.take();
        match more.is_empty() {
            true => Ok(()),
            false => self.run_requests(id, &launch, ran.launcher, more),
        }
    }

    /// Notifies the checker of memory that a request has touched.
    fn pass_touched(&mut self, at: Option<At>, ranges: &[CallRange]) {
        if let (Some(checker), Some(at)) = (&mut self.checker, at) {
            checker.called(at, footprint(ranges.iter().copied()));
        }
    }
}

/// A copy or a fill of memory that is not there.
fn outside(request: &Request, address: u64, bytes: u64, write: bool) -> LaunchError {
    LaunchError::IllegalAddress {
        at: ExecutionPoint {
            kernel: "a copy or a fill that a kernel has asked for".to_owned(),
            offset: request.offset,
            ..ExecutionPoint::default()
        },
        address,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        space: Space::Global,
        write,
    }
}
