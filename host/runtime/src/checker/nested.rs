//! What a checker does with work that kernels have asked for: kernels, copies and fills.
//!
//! Work and the grids that it descends from are compared with what came before each request; what different
//! requests ask for, like work of different streams.

use std::collections::BTreeMap;
use std::sync::Arc;

use shadow::hb::{Access, Engine, LANES, Launched, MemoryOrder, OpKind, Scope};
use shadow::streams::{Meeting, Stream, StreamKind, Touch};

use super::{Checker, ModuleKey, PendingLaunch};
use crate::findings::Findings;
use crate::footprint_recorder::THREADS_LOG2;
use crate::log::{self, Event, Why};
use crate::names;
use crate::streams::{At, Maker, Piece, Touched};

/// A grid whose requests are being run.
pub struct Ancestor {
    piece: Piece,
    /// It was checked.
    checked: bool,
    /// What its accesses are, and what came before each request, if that is known.
    launcher: Option<(Box<Engine>, Vec<Launched>)>,
    /// The request that is being run; none when that is behind the whole grid.
    request: Option<usize>,
}

impl Ancestor {
    /// The grid's place among all work.
    pub fn at(&self) -> &At {
        &self.piece.at
    }

    /// The grid as a launcher of others, by an instruction of this source.
    pub fn launcher(&self, frames: Vec<log::Frame>) -> log::Launcher {
        match &self.piece.maker {
            Maker::Launch(launch, _) => log::Launcher {
                kernel: launch.kernel.clone(),
                launch: launch.launch,
                frames,
            },
            Maker::Call => log::Launcher::default(),
        }
    }

    /// The launch of the grid.
    pub fn launch(&self) -> Option<&log::Launch> {
        match &self.piece.maker {
            Maker::Launch(launch, _) => Some(launch),
            Maker::Call => None,
        }
    }
}

impl Checker {
    /// A launch that has ended and left requests, at its place among all work.
    pub fn ancestor(
        &self,
        pending: &PendingLaunch,
        at: At,
        findings: Option<&mut Findings>,
    ) -> Ancestor {
        let mut instructions = None;
        let mut launcher = None;
        if let Some(findings) = findings {
            instructions = Some(Arc::clone(&findings.instructions));
            launcher = findings.launcher.take();
        }
        let launch = Box::new(pending.launch.clone());
        Ancestor {
            piece: Piece::new(at, Maker::Launch(launch, instructions), Touched::Unknown),
            checked: pending.is_checked(),
            launcher,
            request: None,
        }
    }

    /// A place for a launch that nobody has given one.
    pub fn position(&mut self) -> At {
        let alone = Stream {
            id: u64::MAX,
            context: u64::MAX,
            kind: StreamKind::Blocking,
        };
        let at = self.streams.launch(&alone, log::DEFAULT_STREAM, false);
        self.streams.order().destroyed(alone.id);
        at
    }

    /// The requests of a grid are run next.
    pub fn descend(&mut self, ancestor: Ancestor) {
        self.ancestors.push(ancestor);
    }

    /// One of the requests is run next; none when it is behind the whole grid. Its number in the process.
    pub fn runs_request(&mut self, request: Option<usize>) -> u64 {
        if let Some(last) = self.ancestors.last_mut() {
            last.request = request;
        }
        self.requests += 1;
        self.requests
    }

    /// All requests of the last such grid have been run.
    pub fn ascend(&mut self) {
        if let Some(gone) = self.ancestors.pop()
            && self.ancestors.is_empty()
        {
            self.streams.family_over(gone.at());
        }
    }

    /// The source of the instruction at a byte offset of a module's loaded text, innermost inlined function first,
    /// without the device runtime's own.
    pub fn caller(&mut self, key: ModuleKey, offset: u32) -> Vec<log::Frame> {
        if let Some(known) = self.callers.get(&(key.0, offset)) {
            return known.clone();
        }
        let frames = self.find_caller(key, offset);
        self.callers.insert((key.0, offset), frames.clone());
        frames
    }

    fn find_caller(&self, key: ModuleKey, offset: u32) -> Vec<log::Frame> {
        let Some(module) = self.modules.get(&key.0) else {
            return Vec::new();
        };
        let parsed = module.code.loaded();
        let bodies = parsed.functions().filter_map(|of| of.body.as_ref());
        let found = bodies.into_iter().find_map(|body| {
            let mut all = body.instructions().map(|(_, instruction)| instruction);
            let loc = all.find(|of| of.span.start == offset)?.loc?;
            let frames = parsed.inline_frames(body, loc);
            Some(frames.iter().map(names::frame).collect::<Vec<_>>())
        });
        let mut frames = found.unwrap_or_default();
        frames.retain(|frame| !frame.file.ends_with("cuda_device_runtime_api.h"));
        frames
    }

    /// The races of a piece of work with the grids that it descends from.
    pub(super) fn beside_ancestors(&mut self, piece: &Piece) -> Vec<log::Race> {
        if !self.options.check || !piece.at.is_nested() {
            return Vec::new();
        }
        let checked = match &piece.maker {
            Maker::Launch(launch, _) => launch.checked,
            Maker::Call => true,
        };
        let mut unknown = checked && piece.touched.followed().is_none();
        let mut races = Vec::new();
        let ancestors = std::mem::take(&mut self.ancestors);
        for ancestor in &ancestors {
            let Some(request) = ancestor.request else {
                continue;
            };
            let launcher = ancestor.launcher.as_ref();
            let known = launcher.and_then(|(engine, all)| Some((engine, all.get(request)?)));
            let Some((engine, before)) = known else {
                unknown |= checked && ancestor.checked;
                continue;
            };
            for meeting in meetings(engine, before, piece).into_values() {
                races.push(self.between(&ancestor.piece, piece, &meeting, Why::Child));
            }
        }
        self.ancestors = ancestors;
        if unknown {
            self.write(Event::Unordered { pieces: 1 });
        }
        races
    }
}

/// Where a piece of work meets accesses of a grid that do not come before it, by the sites of both.
fn meetings(engine: &Engine, before: &Launched, piece: &Piece) -> BTreeMap<(u32, u32), Meeting> {
    let mut all: BTreeMap<(u32, u32), Meeting> = BTreeMap::new();
    let Some(touched) = piece.touched.followed() else {
        return all;
    };
    touched.all.parts(|touch, start, end, by| {
        let access = access(touch);
        engine.concurrent(before, start..end, &access, |race| {
            let shadow::hb::Location::Global(word) = race.location else {
                return;
            };
            let thread = race.earlier.thread;
            let first = word + u64::from(race.bytes.trailing_zeros());
            let one = Touch {
                site: race.earlier.site,
                bytes: 1,
                ..*touch
            };
            let key = (race.earlier.site, touch.site);
            let meeting = all.entry(key).or_insert_with(|| Meeting {
                one,
                other: Touch { bytes: 1, ..*touch },
                address: first,
                span: [first; 2],
                bytes: 0,
                by_one: thread.cta << THREADS_LOG2 | u64::from(thread.warp * LANES + thread.lane),
                by_other: by + (first - start) / u64::from(touch.bytes.max(1)),
            });
            meeting.bytes += 1;
            let [low, high] = meeting.span;
            meeting.span = [low.min(first), high.max(first)];
        });
    });
    all
}

/// What does as a touch does.
fn access(touch: &Touch) -> Access {
    Access {
        kind: match touch.writes {
            true => OpKind::Store,
            false => OpKind::Load,
        },
        order: match touch.wide {
            true => MemoryOrder::Relaxed(Scope::Gpu),
            false => MemoryOrder::Weak,
        },
        bytes: touch.bytes,
        elements: 1,
        site: touch.site,
    }
}
