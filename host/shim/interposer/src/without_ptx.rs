//! Counts launches of kernels that have no PTX. Such a kernel runs unchecked, and the report names it with its number of
//! launches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// All kernels without PTX that the program has looked up.
#[derive(Debug, Default)]
pub(crate) struct WithoutPtx {
    /// Modules and libraries without PTX, by handle, each with the reason.
    modules: HashMap<u64, Arc<str>>,
    /// Their kernels, by the handles of functions and kernels.
    kernels: HashMap<u64, Kernel>,
    /// Executable graphs, by handle, each with its kernels that have no PTX.
    graphs: HashMap<u64, Vec<Kernel>>,
    /// Launches, by the kernel's mangled name.
    launches: HashMap<Arc<str>, Launches>,
    /// Reasons that a note in the log has named.
    reasons: HashSet<Arc<str>>,
}

/// A kernel without PTX.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    module: u64,
    name: Arc<str>,
    why: Arc<str>,
}

#[derive(Debug)]
struct Launches {
    why: Arc<str>,
    total: u64,
    /// How many of them are in the log.
    logged: u64,
}

/// Launches of a kernel that are to be written to the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unlogged {
    /// The kernel's mangled name.
    pub(crate) kernel: Arc<str>,
    /// Why it has no PTX.
    pub(crate) why: Arc<str>,
    /// Number of launches.
    pub(crate) launches: u64,
}

impl WithoutPtx {
    /// Adds a module or library that was loaded without checks, because it has no PTX.
    pub(crate) fn loaded(&mut self, module: u64, why: &str) {
        self.modules.insert(module, why.into());
    }

    /// Removes a module or library, because it was unloaded or because the driver uses its handle again.
    pub(crate) fn unloaded(&mut self, module: u64) {
        if self.modules.remove(&module).is_some() {
            self.kernels.retain(|_, kernel| kernel.module != module);
        }
    }

    /// Whether a module or library has no PTX.
    pub(crate) fn has(&self, module: u64) -> bool {
        self.modules.contains_key(&module)
    }

    /// Whether the program has looked up no kernel without PTX.
    pub(crate) fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// Adds the module by which a context knows a library.
    pub(crate) fn module_of(&mut self, module: u64, library: u64) {
        self.unloaded(module);
        if let Some(why) = self.modules.get(&library).cloned() {
            self.modules.insert(module, why);
        }
    }

    /// Adds a function or kernel that the program has looked up in a module.
    pub(crate) fn found(&mut self, handle: u64, module: u64, name: &str) {
        self.kernels.remove(&handle);
        if let Some(why) = self.modules.get(&module) {
            let (name, why) = (name.into(), Arc::clone(why));
            self.kernels.insert(handle, Kernel { module, name, why });
        }
    }

    /// Adds the function by which a context knows a kernel.
    pub(crate) fn function_of(&mut self, handle: u64, kernel: u64) {
        self.kernels.remove(&handle);
        if let Some(kernel) = self.kernels.get(&kernel).cloned() {
            self.kernels.insert(handle, kernel);
        }
    }

    /// The kernel with a handle, or else with a name. In graphs a driver uses handles that the program has not looked up.
    pub(crate) fn kernel(
        &self,
        handle: u64,
        name: impl FnOnce() -> Option<String>,
    ) -> Option<Kernel> {
        let known = self.kernels.get(&handle);
        known.cloned().or_else(|| {
            let name = name()?;
            let mut kernels = self.kernels.values();
            kernels.find(|kernel| *kernel.name == *name).cloned()
        })
    }

    /// Sets the kernels without PTX of an executable graph.
    pub(crate) fn in_graph(&mut self, exec: u64, kernels: Vec<Kernel>) {
        match kernels.is_empty() {
            true => _ = self.graphs.remove(&exec),
            false => _ = self.graphs.insert(exec, kernels),
        }
    }

    /// Counts a launch of a function or kernel. Returns the launches to log, if it is time to log any.
    pub(crate) fn launched(&mut self, handle: u64) -> Option<Unlogged> {
        let kernel = self.kernels.get(&handle)?.clone();
        self.count(&kernel)
    }

    /// Counts a launch of an executable graph. Returns the launches to log.
    pub(crate) fn graph_launched(&mut self, exec: u64) -> Vec<Unlogged> {
        let kernels = self.graphs.get(&exec).cloned().unwrap_or_default();
        let due = kernels.iter().filter_map(|kernel| self.count(kernel));
        due.collect()
    }

    fn count(&mut self, kernel: &Kernel) -> Option<Unlogged> {
        let name = Arc::clone(&kernel.name);
        let launches = self.launches.entry(name).or_insert_with(|| Launches {
            why: Arc::clone(&kernel.why),
            total: 0,
            logged: 0,
        });
        launches.total += 1;
        // The log does not grow with every launch, and of a process that is killed it has at least half of them.
        let due = launches.total.is_power_of_two();
        due.then(|| launches.log(&kernel.name))
    }

    /// Whether this is the first call with a reason.
    pub(crate) fn is_news(&mut self, why: &Arc<str>) -> bool {
        self.reasons.insert(Arc::clone(why))
    }

    /// All launches that are not in the log.
    pub(crate) fn rest(&mut self) -> Vec<Unlogged> {
        let all = self.launches.iter_mut();
        let left = all.filter(|(_, launches)| launches.logged < launches.total);
        left.map(|(name, launches)| launches.log(name)).collect()
    }
}

impl Launches {
    fn log(&mut self, name: &Arc<str>) -> Unlogged {
        let launches = self.total - self.logged;
        self.logged = self.total;
        Unlogged {
            kernel: Arc::clone(name),
            why: Arc::clone(&self.why),
            launches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launch_is_logged_once() {
        let mut kernels = WithoutPtx::default();
        kernels.loaded(1, "a cubin");
        kernels.found(10, 1, "k");
        kernels.function_of(11, 10);
        kernels.in_graph(
            20,
            vec![kernels.kernel(99, || Some("k".to_owned())).unwrap()],
        );
        let mut logged = 0;
        for _ in 0..100 {
            logged += kernels.launched(10).map_or(0, |of| of.launches);
            logged += kernels.launched(11).map_or(0, |of| of.launches);
            let of_graph = kernels.graph_launched(20).into_iter();
            logged += of_graph.map(|of| of.launches).sum::<u64>();
        }
        assert_eq!(logged, 256);
        assert_eq!(
            kernels.rest(),
            [Unlogged {
                kernel: "k".into(),
                why: "a cubin".into(),
                launches: 44
            }]
        );
        assert_eq!(kernels.rest(), []);
    }

    #[test]
    fn handles_that_are_used_again_are_none_of_theirs() {
        let mut kernels = WithoutPtx::default();
        kernels.loaded(1, "a cubin");
        kernels.found(10, 1, "k");
        kernels.found(10, 2, "checked");
        assert_eq!(kernels.launched(10), None);
        kernels.found(10, 1, "k");
        kernels.unloaded(1);
        assert_eq!(kernels.launched(10), None);
    }
}
