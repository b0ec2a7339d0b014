//! What the threads of a launch do, as far as it depends on more than the launch's arguments.

/// What a value may depend on, besides the launch's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sources {
    /// Memory that the launch has not written: its input.
    pub input: bool,
    /// The order in which threads have run.
    pub schedule: bool,
}

/// What a value decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decides {
    /// Where an access goes, or how many bytes it has.
    Address,
    /// Whether lanes make an access.
    Access,
    /// Where lanes go on, or which barrier they come to.
    Flow,
}
