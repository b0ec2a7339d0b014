//! What is known of the global memory that a piece of work has touched.

use std::sync::Arc;

use shadow::streams::Footprint;

/// The ranges that are kept of work of which bounds are known. With more, nothing is known of it.
const BOUND_RUNS: usize = 1 << 14;

/// What is known of the global memory that a piece of work has touched.
#[derive(Debug, Default)]
pub(crate) enum Touched {
    /// Each access: the simulated device has reported it, or the host has made it.
    Followed(Box<Followed>),
    /// All of it lies in this footprint, which may be larger. Its sites mean nothing.
    Within(Arc<Footprint>),
    #[default]
    Unknown,
}

/// What a piece of work has done, for those that may run beside it.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// All the global memory that it has touched.
    pub(crate) all: Footprint,
    /// That which it has touched before it has waited for the launch ahead of it, where it may begin
    /// before that has ended.
    pub(crate) early: Footprint,
    /// That which threads have touched that cannot come after a release by another launch; none if that is all of it.
    pub(crate) unacquired: Option<Footprint>,
    /// What has been released in device scope or wider: flags that it may have set.
    pub(crate) released_flags: Footprint,
    /// What has been read strongly in such a scope: flags that it may have seen.
    pub(crate) read_flags: Footprint,
    /// It has let the launch behind it begin (`griddepcontrol.launch_dependents`).
    pub(crate) lets_others_begin: bool,
    /// So many of its CTAs have done so before they have waited for the launch ahead of it.
    pub(crate) passing_on: u64,
    /// What it has touched outside of the device's own memory, but for what is strong in system scope: the host must not
    /// access that as long as the work runs. Nothing where nobody watches the host.
    pub(crate) host: Footprint,
    /// It may have set a flag that the host can read: it has written there strongly, or executed a fence, in system scope.
    pub(crate) signals_host: bool,
    /// Nothing but that is known.
    pub(crate) only_host: bool,
}

impl Followed {
    pub(crate) fn prints(&mut self) -> impl Iterator<Item = &mut Footprint> {
        let Self {
            all,
            early,
            unacquired,
            released_flags,
            read_flags,
            host,
            ..
        } = self;
        [all, early, released_flags, read_flags, host]
            .into_iter()
            .chain(unacquired)
    }

    /// Whether it has read what another piece has released before: some of it may come after some of that.
    pub(super) fn acquires_from(&self, earlier: &Self) -> bool {
        let mut acquired = false;
        if self.unacquired.is_some() {
            earlier
                .released_flags
                .meet(&self.read_flags, |_| acquired = true);
        }
        acquired
    }
}

impl From<Footprint> for Followed {
    /// It has touched this and nothing else.
    fn from(all: Footprint) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }
}

impl From<Followed> for Touched {
    fn from(mut followed: Followed) -> Self {
        followed.prints().for_each(Footprint::settle);
        Self::Followed(Box::new(followed))
    }
}

impl Touched {
    /// How much there is to remember.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Followed(followed) => {
                let Followed {
                    all,
                    early,
                    unacquired,
                    released_flags,
                    read_flags,
                    ..
                } = &**followed;
                let unacquired = unacquired.as_ref().map_or(0, Footprint::len);
                all.len() + early.len() + unacquired + released_flags.len() + read_flags.len()
            }
            Self::Within(footprint) => footprint.len(),
            Self::Unknown => 0,
        }
    }

    pub(crate) fn followed(&self) -> Option<&Followed> {
        match self {
            Self::Followed(followed) => Some(followed),
            Self::Within(_) | Self::Unknown => None,
        }
    }

    /// What lies in it, if that is known: all, and what is touched before the launch ahead has been waited for.
    pub(super) fn bounds(&self) -> Option<(&Footprint, &Footprint)> {
        match self {
            Self::Followed(followed) => Some((&followed.all, &followed.early)),
            Self::Within(footprint) => Some((footprint, footprint)),
            Self::Unknown => None,
        }
    }

    /// Covers what another piece has touched too.
    pub(super) fn cover(&mut self, other: &Touched) {
        let joined = match (&mut *self, other.bounds()) {
            (Self::Within(footprint), Some((all, _))) => {
                let footprint = Arc::make_mut(footprint);
                footprint.cover(all);
                footprint.len() <= BOUND_RUNS
            }
            _ => false,
        };
        if !joined {
            *self = Self::Unknown;
        }
    }

    /// Memory is given back. Whether there was some, and none is left.
    pub(super) fn forget(&mut self, base: u64, bytes: u64) -> bool {
        match self {
            Self::Followed(followed) => {
                followed
                    .prints()
                    .for_each(|print| print.forget(base, bytes));
                followed.all.is_empty() && followed.early.is_empty()
            }
            Self::Within(footprint) => {
                let footprint = Arc::make_mut(footprint);
                footprint.forget(base, bytes);
                footprint.is_empty()
            }
            Self::Unknown => false,
        }
    }
}
