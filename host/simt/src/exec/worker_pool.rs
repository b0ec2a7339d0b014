//! Threads of the host that stay between launches, so that a launch need not start them anew. They
//! sleep while there is nothing to do.
//!
//! They belong to a device, and come with the first launch that is long enough for them.

use std::sync::mpsc;
use std::{process, thread};

use os::signals;
use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// The threads of a device, if it has had use for any.
#[derive(Debug, Default)]
pub(crate) struct WorkerPool(Option<Members>);

#[derive(Debug)]
struct Members {
    pool: ThreadPool,
    /// How many were wanted; the system may have had fewer.
    wanted: usize,
    /// The process that they run in. A child made by `fork` has memory that speaks of them, but not
    /// them.
    process: u32,
}

impl WorkerPool {
    /// Up to `wanted` threads, or more where earlier launches wanted more; none where the system has
    /// none.
    pub(crate) fn threads(&mut self, wanted: usize) -> Option<&ThreadPool> {
        self.threads_in(process::id(), wanted)
    }

    fn threads_in(&mut self, process: u32, wanted: usize) -> Option<&ThreadPool> {
        let stay = |members: &Members| members.process == process && members.wanted >= wanted;
        if !self.0.as_ref().is_some_and(stay) {
            self.leave(process);
            self.0 = start(wanted).map(|pool| Members {
                pool,
                wanted,
                process,
            });
        }
        self.0.as_ref().map(|members| &members.pool)
    }

    /// Ends the threads, seen from a process.
    fn leave(&mut self, process: u32) {
        if let Some(members) = self.0.take()
            && members.process != process
        {
            // They have not come along, and whatever locks they held are held for ever.
            std::mem::forget(members);
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.leave(process::id());
    }
}

/// Starts up to `wanted` threads.
fn start(wanted: usize) -> Option<ThreadPool> {
    // A pool gets all its threads or none, so it gets those that are there already.
    let mut idle: Vec<_> = signals::without(|| (1..=wanted).map_while(thread).collect());
    if idle.is_empty() {
        return None;
    }
    let pool = ThreadPoolBuilder::new().num_threads(idle.len());
    let pool = pool.spawn_handler(|member| {
        let thread = idle.pop();
        let sent = thread.and_then(|thread| thread.send(member).ok());
        sent.ok_or_else(|| std::io::ErrorKind::NotFound.into())
    });
    pool.build().ok()
}

/// Starts a thread that will be a member of a pool.
fn thread(number: usize) -> Option<mpsc::Sender<ThreadBuilder>> {
    let (sender, receiver) = mpsc::channel::<ThreadBuilder>();
    let thread = thread::Builder::new().name(format!("simt {number}"));
    let started = thread.spawn(move || {
        if let Ok(member) = receiver.recv() {
            member.run();
        }
    });
    started.ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names under which the system keeps a pool's threads.
    fn tasks(pool: &ThreadPool) -> Vec<String> {
        let task = |_: rayon_core::BroadcastContext<'_>| {
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            link.file_name().unwrap().to_string_lossy().into_owned()
        };
        pool.broadcast(task)
    }

    #[test]
    fn threads_stay_and_more_come() {
        let mut workers = WorkerPool::default();
        let two = tasks(workers.threads(2).unwrap());
        assert_eq!(two.len(), 2);
        assert_eq!(tasks(workers.threads(2).unwrap()), two);
        assert_eq!(tasks(workers.threads(1).unwrap()), two);
        assert_eq!(tasks(workers.threads(3).unwrap()).len(), 3);
    }

    #[test]
    fn another_process_gets_its_own() {
        let mut workers = WorkerPool::default();
        let parent = tasks(workers.threads(2).unwrap());
        let other = process::id() + 1;
        let child = tasks(workers.threads_in(other, 2).unwrap());
        assert_eq!(child.len(), 2);
        assert!(child.iter().all(|task| !parent.contains(task)));
    }

    #[test]
    fn idle_threads_sleep() {
        let mut workers = WorkerPool::default();
        for task in tasks(workers.threads(2).unwrap()) {
            let stat = format!("/proc/self/task/{task}/stat");
            let sleeps = || {
                let stat = std::fs::read_to_string(&stat).unwrap();
                stat.rsplit(')').next().unwrap().starts_with(" S")
            };
            let asleep = (0..10_000).any(|_| {
                thread::sleep(std::time::Duration::from_millis(1));
                sleeps()
            });
            assert!(asleep, "{stat}");
        }
    }
}
