//! What a checker does with work of different streams.

use std::sync::Arc;

use shadow::streams::{Footprint, Meeting};

use super::{Checker, PendingLaunch, thread};
use crate::footprint_recorder::THREADS_LOG2;
use crate::instructions::Instructions;
use crate::log::{self, Call, Event};
use crate::streams::{
    self, At, CallRange, Encounter, Followed, HostTouch, Maker, Piece, Streams, Touched, UNCOMPARED,
};

/// The number of a launch.
fn number(piece: &Piece) -> Option<u64> {
    match &piece.maker {
        Maker::Launch(launch, _) => Some(launch.launch),
        Maker::Call => None,
    }
}

impl Checker {
    /// The streams of the process.
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    /// A call on the host has run at a place among the streams, and has left a footprint.
    pub fn called(&mut self, at: At, footprint: Footprint) {
        if self.options.check {
            let host = self.streams.in_flight.outside(&footprint);
            // What nothing runs beside is in no report.
            let host_calls = match at.may_overlap || host.is_some() {
                true => self.host_calls_here(),
                false => 0,
            };
            if let Some(host) = host {
                let piece = Piece::new(at.clone(), Maker::Call, Followed::from(host).into());
                self.streams.in_flight.add(piece.called_in(host_calls));
            }
            let touched = Followed::from(footprint);
            let piece = Piece::new(at, Maker::Call, touched.into());
            self.compare(piece.called_in(host_calls));
        }
    }

    /// The host has freed memory of a pool, which waits for nothing.
    pub fn freed_on_host(&mut self, base: u64, bytes: u64) {
        if self.options.check {
            let call = Call::FreeOnHost;
            let range = CallRange { base, bytes, call };
            let touched = Followed::from(streams::footprint([range]));
            let piece = Piece::new(self.streams.on_host(), Maker::Call, touched.into());
            let mut piece = piece.called_in(self.host_calls_here());
            let mut streams = std::mem::take(&mut self.streams);
            let mut met = Vec::new();
            streams.compare(&mut piece, |earlier, later, encounter| {
                met.push(self.met(earlier, later, encounter));
            });
            self.streams = streams;
            self.write_met(met);
        }
    }

    /// Whether it matters what the host touches while work is in flight.
    pub fn follows_host(&self) -> bool {
        self.options.check && self.listens()
    }

    /// The host has touched memory that work in flight touches too.
    pub fn host_touched(&mut self, touches: &[HostTouch]) {
        let streams = std::mem::take(&mut self.streams);
        let mut races = Vec::new();
        for (earlier, touched) in streams.in_flight.races(touches) {
            let touched = Followed::from(touched).into();
            let later = Piece::new(streams.on_host(), Maker::Call, touched);
            let later = later.called_in(self.host_calls_here());
            let (Some(before), Some(now)) = (earlier.touched.followed(), later.touched.followed())
            else {
                continue;
            };
            before.all.meet(&now.all, |meeting| {
                races.push(log::Race {
                    count: 1,
                    ..self.between(earlier, &later, &meeting, log::Why::Streams)
                });
            });
        }
        let pages = streams.in_flight.undecided(touches);
        self.streams = streams;
        for race in races {
            self.write(Event::Race(Box::new(race)));
        }
        if pages > 0 {
            self.write(Event::HostUndecided { pages });
        }
    }

    /// A launch is over. If it is not known what it has touched, it cannot be compared.
    pub(super) fn launch_over(
        &mut self,
        pending: &PendingLaunch,
        instructions: Option<Arc<Instructions>>,
        mut touched: Option<Followed>,
    ) {
        if let Some(at) = pending.at.clone().filter(|_| self.options.check) {
            let bounds = pending.proved.as_ref().and_then(|of| of.bounds());
            let in_flight = &mut self.streams.in_flight;
            let host = match touched.as_mut().filter(|_| pending.launch.checked) {
                Some(touched) => in_flight.take(touched),
                None => {
                    let device = in_flight.device();
                    let inside =
                        device.is_some_and(|of| bounds.as_ref().is_some_and(|it| it.lies_in(&of)));
                    if !inside {
                        in_flight.unknown_ran();
                    }
                    None
                }
            };
            let touched = match touched.filter(|touched| !touched.only_host) {
                Some(followed) => followed.into(),
                None => bounds.map_or(Touched::Unknown, Touched::Within),
            };
            let module = self.modules.get(&pending.launch.module);
            let instructions =
                instructions.or_else(|| module.map(|of| Arc::clone(of.code.instructions())));
            let (number, module) = (pending.launch.launch, pending.launch.module);
            let launch = log::Launch {
                launch: number,
                module,
                grid: pending.launch.grid,
                block: pending.launch.block,
                checked: pending.launch.checked,
                ..log::Launch::default()
            };
            let maker = Maker::Launch(Box::new(launch), instructions);
            if let Some(host) = host {
                let touched = Followed::from(host).into();
                let piece = Piece::new(at.clone(), maker.clone(), touched);
                self.streams.in_flight.add(piece);
            }
            self.compare(Piece::new(at, maker, touched));
        }
    }

    fn compare(&mut self, piece: Piece) {
        for race in self.beside_ancestors(&piece) {
            self.write(Event::Race(Box::new(race)));
        }
        let mut streams = std::mem::take(&mut self.streams);
        let assumed: Vec<log::Launches> = streams
            .assumed(&piece)
            .map(|earlier| log::Launches {
                launches: [number(earlier), number(&piece)],
            })
            .collect();
        let mut met = Vec::new();
        streams.ran(piece, |earlier, later, encounter| {
            met.push(self.met(earlier, later, encounter));
        });
        self.streams = streams;
        self.write_met(met);
        for pair in assumed {
            self.write(Event::Assumed(pair));
        }
        let pieces = std::mem::take(&mut self.streams.forgotten);
        if pieces > 0 {
            self.write(Event::Forgotten { pieces });
            self.note_uncompared();
        }
    }

    /// What is said of two pieces of work that nothing orders; nothing if one of them was not to be checked.
    fn met(&mut self, earlier: &Piece, later: &Piece, encounter: Encounter) -> Option<Event> {
        let meeting = match encounter {
            Encounter::Race(meeting) => meeting,
            Encounter::Possible => {
                let checked = |piece: &Piece| match &piece.maker {
                    Maker::Launch(launch, _) => launch.checked,
                    Maker::Call => true,
                };
                let launches = [number(earlier), number(later)];
                let both = self.listens() && checked(earlier) && checked(later);
                return both.then_some(Event::Unfollowed(log::Launches { launches }));
            }
        };
        let why = match earlier.at.is_related(&later.at) {
            true => log::Why::Siblings,
            false => log::Why::Streams,
        };
        Some(Event::Race(Box::new(
            self.between(earlier, later, &meeting, why),
        )))
    }

    fn write_met(&mut self, met: Vec<Option<Event>>) {
        for event in met {
            match event {
                Some(event) => self.write(event),
                None => self.note_uncompared(),
            }
        }
    }

    /// Notes once, for the user, that work of different streams was not compared.
    pub(crate) fn note_uncompared(&mut self) {
        if !std::mem::replace(&mut self.reported_uncompared, true) {
            self.note(UNCOMPARED);
            self.write(Event::Uncompared {});
        }
    }

    /// A race of two pieces of work in the log's terms.
    pub(super) fn between(
        &mut self,
        earlier: &Piece,
        later: &Piece,
        meeting: &Meeting,
        why: log::Why,
    ) -> log::Race {
        let previous_site = self.site_of(earlier, meeting.one.site);
        let site = self.site_of(later, meeting.other.site);
        let numbers = [earlier, later].map(number);
        let thread_of = |piece: &Piece, by: u64| match &piece.maker {
            Maker::Launch(launch, _) => {
                let cta = u32::try_from(by >> THREADS_LOG2).unwrap_or(u32::MAX);
                Some(thread(launch, cta, by as u32 & ((1 << THREADS_LOG2) - 1)))
            }
            Maker::Call => None,
        };
        let smaller = meeting.one.bytes.min(meeting.other.bytes).max(1);
        let mut race = log::Race {
            launch: numbers[1].or(numbers[0]).unwrap_or(0),
            decided: true,
            why,
            site,
            previous_site,
            count: meeting.bytes.div_ceil(u64::from(smaller)),
            address: meeting.address,
            span: meeting.span,
            allocation: self.allocations.find(meeting.address).cloned(),
            thread: thread_of(later, meeting.by_other).unwrap_or_default(),
            previous_thread: thread_of(earlier, meeting.by_one),
            work: [earlier, later]
                .map(|piece| log::Work {
                    launch: number(piece),
                    number: piece.number,
                    host_calls: piece.host_calls,
                    host_stack: Vec::new(),
                    stream: match why {
                        log::Why::Streams => piece.at.host_stream().to_owned(),
                        _ => piece.at.stream.clone(),
                    },
                })
                .to_vec(),
            apart: earlier.apart(later),
            ..log::Race::default()
        };
        for piece in [later, earlier] {
            if let Maker::Launch(launch, _) = &piece.maker {
                self.name_variables(launch, &mut race);
                break;
            }
        }
        race
    }

    /// The log's number for the site of a piece of work; 0 where it has none.
    fn site_of(&mut self, piece: &Piece, site: u32) -> u32 {
        match &piece.maker {
            Maker::Launch(launch, Some(instructions)) => {
                let known = instructions.numbered(site);
                self.name_sites(launch.module, [known].into_iter());
                let module = self.modules.get(&launch.module);
                module.and_then(|of| of.named.get(&site).copied())
            }
            Maker::Launch(_, None) => None,
            Maker::Call => {
                let call = Call::ALL.get(site as usize).copied();
                call.map(|call| self.site_of_call(call))
            }
        }
        .unwrap_or(0)
    }

    fn site_of_call(&mut self, call: Call) -> u32 {
        if let Some(&id) = self.calls.get(&(call as u32)) {
            return id;
        }
        let id = self.next_site;
        self.next_site += 1;
        self.calls.insert(call as u32, id);
        self.write(Event::Sites {
            module: 0,
            sites: vec![call.site(id)],
        });
        id
    }
}
