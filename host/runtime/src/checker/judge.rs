//! What a checker asks happens-before, and what becomes of the answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Device;
use shadow::hb::{Cause, Shape};

use super::{Checker, Extent, LaunchOutcome, ModuleKey, PendingLaunch};
use crate::findings::Findings;
use crate::footprint_observer::FootprintObserver;
use crate::grace_period::GracePeriod;
use crate::happens_before::HappensBefore;
use crate::instructions::NumberedSite;
use crate::log::{self, Event};
use crate::logged;
use crate::options::Prove;
use crate::pairs::Found;
use crate::proofs::Proved;
use crate::repair::{Known, Pair};
use crate::replay::Replay;
use crate::source_position;
use crate::verify::{Obstacles, Place};

impl Checker {
    /// The happens-before engine that listens to a launch, if it is judged in that way.
    pub fn engine_for(
        &self,
        key: ModuleKey,
        pending: &PendingLaunch,
        extent: Extent,
    ) -> Option<HappensBefore> {
        let engine = self.engine(key, extent).filter(|_| pending.is_listened())?;
        let proved = pending.proved.as_ref();
        Some(match proved.filter(|_| self.options.prove == Prove::On) {
            Some(proved) => engine.without(proved.offsets()),
            None => engine,
        })
    }

    /// The two that listen to a launch for what its run proves of all runs.
    pub fn followed(
        &self,
        pending: &PendingLaunch,
        engine: HappensBefore,
    ) -> (HappensBefore, Obstacles) {
        let proved = pending.proved.iter().flat_map(|of| of.offsets());
        let verify = self.options.verify.unwrap_or_default();
        let engine = engine.with_barriers_alone(verify.warp_synchronous);
        (engine, Obstacles::new(proved.collect()))
    }

    /// Says of a launch what its run proves of all runs; `obstacles` are those of a launch that was
    /// [followed](Self::followed).
    pub fn verify(
        &self,
        pending: &mut PendingLaunch,
        findings: Option<&Findings>,
        obstacles: Option<&Obstacles>,
        outcome: &LaunchOutcome,
    ) {
        let unknown =
            |why: String| log::Verified::of(log::Answer::Unknown, vec![log::Because::of(why)]);
        let module = self.modules.get(&pending.launch.module);
        let kernel = module.and_then(|of| of.kernels.get(&pending.launch.kernel));
        let unknown_operation = kernel.and_then(|of| of.not_observable.first());
        let verified = match (findings, obstacles, &outcome.error) {
            _ if outcome.deadlock => log::Verified::of(log::Answer::Race, Vec::new()),
            (Some(findings), Some(obstacles), failed) => {
                obstacles.answer(findings, failed.as_deref(), |offset| {
                    let module = module.map(|of| of.code.module());
                    let line = module.map(|of| of.line_column(offset).0);
                    let frames = module
                        .zip(line)
                        .map(|(of, line)| source_position::frames(of, line));
                    Place {
                        ptx_line: line.unwrap_or(0),
                        frames: frames.unwrap_or_default(),
                    }
                })
            }
            (.., Some(failed)) => unknown(format!("the launch failed: {failed}")),
            _ if pending.is_proved() => log::Verified::of(log::Answer::AllData, Vec::new()),
            _ => unknown(match &pending.launch.why_not {
                Some(why) => format!("the launch is not checked: {why}"),
                None => "the launch is not checked".to_owned(),
            }),
        };
        let verified = match verified.answer {
            log::Answer::AllData | log::Answer::ThisData if self.aliases.exist() => {
                unknown("memory is mapped at two addresses".to_owned())
            }
            log::Answer::AllData | log::Answer::ThisData if unknown_operation.is_some() => {
                unknown(format!(
                    "the kernel has an instruction that the checker does not know: {}",
                    unknown_operation.map_or("", String::as_str)
                ))
            }
            _ => verified,
        };
        let assumed = pending.assumed.take().unwrap_or_default();
        pending.launch.verified = Some(Box::new(log::Verified {
            assumptions: assumed.all,
            family: assumed.family,
            ..verified
        }));
    }

    /// Follows what a launch touches that is proved to have no races, if work of others may run beside it, or the host may
    /// touch the same memory.
    pub fn footprints(&self, key: ModuleKey, pending: &PendingLaunch) -> Option<FootprintObserver> {
        let proved = pending.is_proved() && self.listens();
        let at = pending.at.as_ref().filter(|_| proved)?;
        let module = self.modules.get(&key.0)?;
        let device = self.streams.in_flight.device().filter(|device| {
            let bounds = pending.proved.as_ref().and_then(|of| of.bounds());
            bounds.is_none_or(|bounds| !bounds.lies_in(device))
        });
        FootprintObserver::new(module.code.instructions(), at, device)
    }

    /// The loaded text of a launch's module, if the launch keeps a journal.
    pub fn journaled_text(&self, key: ModuleKey, pending: &PendingLaunch) -> Option<&str> {
        let module = self.modules.get(&key.0)?;
        pending.journaled.then(|| module.code.text())
    }

    /// A happens-before engine for a launch of this size.
    pub fn engine(&self, key: ModuleKey, extent: Extent) -> Option<HappensBefore> {
        let module = self.modules.get(&key.0)?;
        let instructions = Arc::clone(module.code.instructions());
        let (shape, model) = (shape(extent), self.options.model);
        Some(HappensBefore::new(instructions, shape, model))
    }

    /// The happens-before engine that has read the journal of a launch, if that has kept one; for an audit it
    /// keeps every race.
    pub fn journal(
        &mut self,
        device: &dyn Device,
        pending: &PendingLaunch,
        key: ModuleKey,
        extent: Extent,
        keep_all: bool,
    ) -> Option<HappensBefore> {
        if !(pending.journaled && pending.launch.checked) {
            return None;
        }
        let mut engine = self.engine(key, extent)?.without_values();
        let module = self.modules.get(&key.0)?;
        let info = module.kernels.get(&pending.launch.kernel)?;
        let shared = info.shared_granule_log2.unwrap_or(2);
        if keep_all {
            engine = engine.keep_all();
        }
        engine.granules = [info.granule_log2, shared].map(|log2| 1 << log2);
        let shifts = module.code.shifts();
        let loaded = |at| shifts.rewritten(at);
        let in_shared = |cta, address| pending.in_shared(cta, address);
        let mut replay = Replay::new(engine, shape(extent), &loaded, &in_shared);
        let limit = self.options.timeout;
        let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = limit.and_then(|limit| pending.started.checked_add(limit));
        let mut grace = GracePeriod::new(deadline);
        let started = Instant::now();
        // Not through the method, which would hold the modules too.
        let shadow = self.shadows.get_mut(&device.memory_id())?;
        let dropped = shadow
            .read_journal(device, |entry| {
                let goes_on = !grace.is_over();
                if goes_on {
                    replay.entry(entry);
                }
                goes_on
            })
            .unwrap_or_else(|error| {
                self.note(format!("cannot read the journal: {error}"));
                1
            });
        self.chooser.spend(started.elapsed().as_secs_f64());
        Some(replay.finish(dropped))
    }

    /// Writes down what the engine has found, in the program's own run or in another one, under the schedule of a seed.
    ///
    /// A race that `proved` excludes shows that the proof is wrong.
    pub(super) fn findings(
        &mut self,
        launch: &log::Launch,
        findings: &Findings,
        schedule: Option<u64>,
        proved: Option<&Proved>,
    ) {
        self.name_sites(launch.module, findings.sites());
        let Some(module) = self.modules.get(&launch.module) else {
            return;
        };
        // A flag that was read late is the cause, unless barriers of the block part the read from the access already.
        let found = findings.found.iter().map(|found| {
            let Some((cause, flag)) = found.read_late else {
                return Cow::Borrowed(found);
            };
            let waits = match cause {
                Cause::Overtaken { .. } => found.race.earlier.site,
                _ => found.race.later.site,
            };
            let parted = flag.read.filter(|_| self.advises).is_some_and(|read| {
                let lines = [read, waits].map(|site| findings.line(site));
                module.code.are_parted(lines)
            });
            match parted {
                true => Cow::Borrowed(found),
                false => Cow::Owned(Found {
                    cause: Some(cause),
                    flag: Some(flag),
                    ..found.clone()
                }),
            }
        });
        let found: Vec<Cow<'_, Found>> = found.collect();
        let races = found.iter().map(|found| {
            let mut race = logged::race(launch, found, &module.named, &self.allocations);
            race.decided &= findings.is_sure(found);
            race.later_block = findings.is_by_later_block(found);
            race
        });
        let races: Vec<log::Race> = races.collect();
        let refuted = findings.found.iter().filter_map(|found| {
            let lines =
                [found.race.earlier.site, found.race.later.site].map(|site| findings.line(site));
            proved.and_then(|of| of.refuted(lines))
        });
        let misused = findings.misuses.keys().filter(|_| {
            // A proof of a whole launch says that of barriers too.
            proved.is_some_and(|of| of.proof.whole)
        });
        let misused = misused.map(|of| {
            let [earlier, later] = [of.before, of.now].map(|site| findings.line(site));
            format!("PTX lines {earlier} and {later} misuse a barrier ({:?}), but the launch is proved as a whole", of.misuse)
        });
        let refuted: Vec<String> = refuted.chain(misused).collect();
        let pairs = found.iter().zip(&races).map(|(found, race)| {
            let sides = [found.race.earlier.site, found.race.later.site];
            let [written, read] = [
                found.flag.and_then(|flag| flag.written),
                found.flag.and_then(|flag| flag.read),
            ]
            .map(|site| site.map(|site| findings.line(site)));
            Pair {
                lines: sides.map(|site| findings.line(site)),
                level: race.level,
                space: race.space,
                flag_written: written,
                own_flag: (found.flag).is_some_and(|of| of.writer == found.race.earlier.thread),
                flag_read: read,
            }
        });
        let known = match self.advises {
            true => module.code.known(&pairs.collect::<Vec<_>>()),
            false => pairs.map(|_| Known::default()).collect(),
        };
        let named = &module.named;
        let races = races.into_iter().zip(known).map(|(mut race, known)| {
            known.put_in(&mut race);
            race
        });
        let misuses = findings.misuses.iter().map(|(&misused, &(thread, count))| {
            logged::misuse(launch, misused, thread, count, named)
        });
        let races: Vec<log::Race> = races.chain(misuses).collect();
        for mut race in races {
            race.schedule = schedule;
            self.name_variables(launch, &mut race);
            self.write(Event::Race(Box::new(race)));
        }
        for text in refuted {
            self.tool_error(launch, &text);
        }
    }

    /// Gives sites of a module numbers of the log, and writes down those that had none.
    pub(super) fn name_sites<'a>(&mut self, key: u32, all: impl Iterator<Item = NumberedSite<'a>>) {
        let Some(module) = self.modules.get_mut(&key) else {
            return;
        };
        let (next, code, named) = (&mut self.next_site, &module.code, &mut module.named);
        let mut sites = Vec::new();
        for NumberedSite { number, site } in all {
            named.entry(number).or_insert_with(|| {
                code.named(number).unwrap_or_else(|| {
                    let id = *next;
                    *next += 1;
                    sites.extend(site.map(|site| log::Site { id, ..site.clone() }));
                    id
                })
            });
        }
        if !sites.is_empty() {
            self.write(Event::Sites { module: key, sites });
        }
    }
}

fn shape(extent: Extent) -> Shape {
    Shape {
        grid: extent.grid,
        cluster: extent.cluster.map(|n| n.max(1)),
        threads: extent.block.iter().product(),
    }
}
