//! The driver behind the interposer as a backend of checked launches.

use driver::sys::{Api, CUresult};
use runtime::Checker;
use runtime::backend::{Backend, Text};

use super::launch::{Launching, Pending};
use super::load::{Loading, Refused};
use crate::state::with;

/// The driver that a program's calls are passed on to.
pub(super) struct Driver(pub(super) &'static Api);

impl Backend for Driver {
    type Image<'a> = Loading<'a>;
    /// Its handle.
    type Module = u64;
    type Refusal = Refused;
    type Request<'a> = Launching<'a>;
    type Pending = Pending;
    type Ended = CUresult;

    fn with_checker<R>(&mut self, ask: impl FnOnce(&mut Checker) -> R) -> Option<R> {
        with(|state| ask(state.session.checker()))
    }

    fn has_room(&mut self) -> bool {
        with(|state| state.is_ready()) != Some(false)
    }

    fn load_text(&mut self, loading: &Loading<'_>, text: Text) -> Result<u64, Refused> {
        match text {
            Text::Checked => loading.checked(self.0),
            Text::Own => loading.own(),
        }
    }

    fn arm(&mut self, launching: &mut Launching<'_>) -> Pending {
        launching.arm(self.0)
    }

    fn start(&mut self, launching: &mut Launching<'_>, pending: &mut Pending) {
        launching.start(self.0, pending);
    }

    fn drain(&mut self, _: &mut Launching<'_>, pending: Pending) -> CUresult {
        pending.drain()
    }
}
