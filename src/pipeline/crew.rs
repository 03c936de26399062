//! The workers: threads that take jobs from a queue. A thread is started when a job finds none idle, and as many work at
//! once as are wanted at that moment.
//!
//! A thread pool of a library has a number of threads that is settled when it is made, or has no limit.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many jobs are worked on at once. Clones share the number, which may be changed while a pipeline runs: work that
/// has begun goes on, and from then on so many go on with the next.
#[derive(Clone, Debug)]
pub struct Threads(Arc<AtomicUsize>);

impl Threads {
    /// So many, but at least one.
    pub fn new(number: usize) -> Threads {
        Threads(Arc::new(AtomicUsize::new(number.max(1))))
    }

    /// Changes the number, to at least one.
    pub fn set(&self, number: usize) {
        self.0.store(number.max(1), Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

struct Inner<J> {
    jobs: VecDeque<J>,
    threads: usize,
    /// Threads that wait to be called, and those of them that have been called and did not wake yet.
    idle: usize,
    called: usize,
    /// No more jobs come.
    closed: bool,
}

pub(super) struct Crew<J> {
    wanted: Threads,
    work: Box<dyn Fn(J) + Send + Sync>,
    inner: Mutex<Inner<J>>,
    call: Condvar,
}

impl<J: Send + 'static> Crew<J> {
    /// A crew with a first worker: it can do everything, however few threads can be had later.
    pub(super) fn start(wanted: Threads, work: impl Fn(J) + Send + Sync + 'static) -> io::Result<Arc<Crew<J>>> {
        let inner = Inner { jobs: VecDeque::new(), threads: 1, idle: 0, called: 0, closed: false };
        let crew = Arc::new(Crew { wanted, work: Box::new(work), inner: Mutex::new(inner), call: Condvar::new() });
        crew.spawn(0)?;
        Ok(crew)
    }

    fn spawn(self: &Arc<Self>, number: usize) -> io::Result<()> {
        let crew = self.clone();
        thread::Builder::new().name(format!("worker {number}")).spawn(move || crew.live()).map(drop)
    }

    /// The state is changed only by code here, none of which panics half way.
    fn lock(&self) -> MutexGuard<'_, Inner<J>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over a job.
    pub(super) fn give(self: &Arc<Self>, job: J) {
        let mut inner = self.lock();
        inner.jobs.push_back(job);
        self.call_one(&mut inner);
    }

    /// No more jobs come: the threads end when there are none left.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.call.notify_all();
    }

    /// Has one more thread work, if one is wanted and there is something to do for it.
    fn call_one(self: &Arc<Self>, inner: &mut Inner<J>) {
        let wanted = self.wanted.get();
        if inner.jobs.len() <= inner.called || inner.threads - inner.idle + inner.called >= wanted {
            return;
        }
        if inner.idle > inner.called {
            inner.called += 1;
            self.call.notify_one();
        } else if inner.threads < wanted && self.spawn(inner.threads).is_ok() {
            inner.threads += 1;
        }
    }

    fn live(self: Arc<Self>) {
        let mut inner = self.lock();
        loop {
            if inner.threads - inner.idle <= self.wanted.get()
                && let Some(job) = inner.jobs.pop_front()
            {
                // More may be wanted than when those jobs came.
                self.call_one(&mut inner);
                drop(inner);
                (self.work)(job);
                inner = self.lock();
                continue;
            }
            if inner.closed && inner.jobs.is_empty() {
                inner.threads -= 1;
                drop(inner);
                // Those that were not wanted while there were jobs would wait for ever.
                self.call.notify_all();
                return;
            }
            inner.idle += 1;
            inner = self.call.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.idle -= 1;
            inner.called = inner.called.saturating_sub(1);
        }
    }
}
