//! Kernels that a program brings without PTX. They run as they are; which ones have run, and how often, is told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What is known of such kernels.
#[derive(Debug, Default)]
pub(crate) struct WithoutPtx {
    /// Why there is none, by the handles of modules and libraries.
    modules: HashMap<u64, Arc<str>>,
    /// By the handles of functions and kernels.
    kernels: HashMap<u64, Kernel>,
    /// Kernels of executable graphs, by the handles of these.
    graphs: HashMap<u64, Vec<Kernel>>,
    /// By name.
    launches: HashMap<Arc<str>, Launches>,
    /// Reasons that the user has been told.
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
    all: u64,
    told: u64,
}

/// Launches that nobody has been told of yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Untold {
    /// The kernel's mangled name.
    pub(crate) kernel: Arc<str>,
    /// Why it has no PTX.
    pub(crate) why: Arc<str>,
    /// How many.
    pub(crate) launches: u64,
}

impl WithoutPtx {
    /// A module or library has been loaded as it is, because it has no PTX.
    pub(crate) fn loaded(&mut self, module: u64, why: &str) {
        self.modules.insert(module, why.into());
    }

    /// A handle of a module or library is none any more, or that of another one.
    pub(crate) fn unloaded(&mut self, module: u64) {
        if self.modules.remove(&module).is_some() {
            self.kernels.retain(|_, kernel| kernel.module != module);
        }
    }

    /// Whether a module or library is one of them.
    pub(crate) fn has(&self, module: u64) -> bool {
        self.modules.contains_key(&module)
    }

    /// Whether no kernel is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// What a context has of a library: a module.
    pub(crate) fn module_of(&mut self, module: u64, library: u64) {
        self.unloaded(module);
        if let Some(why) = self.modules.get(&library).cloned() {
            self.modules.insert(module, why);
        }
    }

    /// The program has found a function or kernel of a module.
    pub(crate) fn found(&mut self, handle: u64, module: u64, name: &str) {
        self.kernels.remove(&handle);
        if let Some(why) = self.modules.get(&module) {
            let (name, why) = (name.into(), Arc::clone(why));
            self.kernels.insert(handle, Kernel { module, name, why });
        }
    }

    /// What a context has of a kernel: a function.
    pub(crate) fn function_of(&mut self, handle: u64, kernel: u64) {
        self.kernels.remove(&handle);
        if let Some(kernel) = self.kernels.get(&kernel).cloned() {
            self.kernels.insert(handle, kernel);
        }
    }

    /// The kernel of that handle, or else of that name: a driver makes handles of its own for kernels in graphs.
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

    /// An executable graph has these kernels.
    pub(crate) fn in_graph(&mut self, exec: u64, kernels: Vec<Kernel>) {
        match kernels.is_empty() {
            true => _ = self.graphs.remove(&exec),
            false => _ = self.graphs.insert(exec, kernels),
        }
    }

    /// A function or kernel has been launched. Most launches are told together with later ones.
    pub(crate) fn launched(&mut self, handle: u64) -> Option<Untold> {
        let kernel = self.kernels.get(&handle)?.clone();
        self.count(&kernel)
    }

    /// An executable graph has been launched.
    pub(crate) fn graph_launched(&mut self, exec: u64) -> Vec<Untold> {
        let kernels = self.graphs.get(&exec).cloned().unwrap_or_default();
        let told = kernels.iter().filter_map(|kernel| self.count(kernel));
        told.collect()
    }

    fn count(&mut self, kernel: &Kernel) -> Option<Untold> {
        let name = Arc::clone(&kernel.name);
        let launches = self.launches.entry(name).or_insert_with(|| Launches {
            why: Arc::clone(&kernel.why),
            all: 0,
            told: 0,
        });
        launches.all += 1;
        // A process that is killed has told of half of them at least, and a log does not grow with each.
        let due = launches.all.is_power_of_two();
        due.then(|| launches.tell(&kernel.name))
    }

    /// Whether a reason is asked about for the first time.
    pub(crate) fn is_news(&mut self, why: &Arc<str>) -> bool {
        self.reasons.insert(Arc::clone(why))
    }

    /// All that has not been told.
    pub(crate) fn rest(&mut self) -> Vec<Untold> {
        let all = self.launches.iter_mut();
        let left = all.filter(|(_, launches)| launches.told < launches.all);
        left.map(|(name, launches)| launches.tell(name)).collect()
    }
}

impl Launches {
    fn tell(&mut self, name: &Arc<str>) -> Untold {
        let launches = self.all - self.told;
        self.told = self.all;
        Untold {
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
    fn every_launch_is_told_once() {
        let mut kernels = WithoutPtx::default();
        kernels.loaded(1, "a cubin");
        kernels.found(10, 1, "k");
        kernels.function_of(11, 10);
        kernels.in_graph(
            20,
            vec![kernels.kernel(99, || Some("k".to_owned())).unwrap()],
        );
        let mut told = 0;
        for _ in 0..100 {
            told += kernels.launched(10).map_or(0, |of| of.launches);
            told += kernels.launched(11).map_or(0, |of| of.launches);
            let of_graph = kernels.graph_launched(20).into_iter();
            told += of_graph.map(|of| of.launches).sum::<u64>();
        }
        assert_eq!(told, 256);
        assert_eq!(
            kernels.rest(),
            [Untold {
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
