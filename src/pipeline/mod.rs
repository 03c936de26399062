//! An order-keeping, bounded, parallel map: a source thread, `threads` workers, and the caller as the sink. It knows
//! nothing of mail.
//!
//! All threads own what they touch, so that [`run`] can return at once when it is told to stop, while the source still
//! hangs in a read and a worker in a call: the process then ends without waiting for either.

mod window;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use window::{Closed, Stop};
use window::{Taken, Window};

/// How much may be under way at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Worker threads: jobs in flight.
    pub threads: usize,
    /// Items between source and sink.
    pub items: usize,
    /// Sum of their weights, in bytes; a single heavier item passes alone.
    pub bytes: usize,
    /// Whether the sink gets the items in the order of the source.
    pub ordered: bool,
}

/// What comes out for a job.
#[derive(Debug)]
pub struct Done<J, O> {
    /// The job as the worker left it.
    pub job: J,
    /// What the worker made of it; `None` where it panicked.
    pub outcome: Option<O>,
}

/// What the sink is given.
#[derive(Debug)]
pub enum Event<T> {
    /// An item.
    Item(T),
    /// Nothing came for a while: the moment to flush.
    Idle,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End<S> {
    /// The source came to its end, with this; all its items went to the sink.
    Complete(S),
    /// [`Stop::now`] was called; the items that were ready in order went to the sink.
    Stopped,
    /// The source panicked; all items before that went to the sink.
    SourcePanicked,
}

/// Where the source puts its items.
pub struct Feed<J, O, T> {
    window: Arc<Window<T>>,
    pool: rayon::ThreadPool,
    work: Arc<dyn Fn(&mut J) -> O + Send + Sync>,
    finish: fn(Done<J, O>) -> T,
}

impl<J: Send + 'static, O: Send + 'static, T: Send + 'static> Feed<J, O, T> {
    /// Hands a job to the workers; waits while the window is full.
    pub fn work(&self, mut job: J, weight: usize) -> Result<(), Closed> {
        let place = self.window.reserve(weight)?;
        let (window, work, finish) = (self.window.clone(), self.work.clone(), self.finish);
        self.pool.spawn_fifo(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut job))).ok();
            window.fill(place, finish(Done { job, outcome }));
        });
        Ok(())
    }

    /// Puts an item in its place without any work; waits while the window is full.
    pub fn ready(&self, item: T, weight: usize) -> Result<(), Closed> {
        let place = self.window.reserve(weight)?;
        self.window.fill(place, item);
        Ok(())
    }
}

/// Runs `source` in a thread of its own, `work` on `limits.threads` workers, and `sink` here, on each item in order.
/// Ends early when `sink` fails or `stop` is used. `quiet` is how long nothing has to come before the sink is told.
pub fn run<J, O, T, S, E>(
    limits: Limits,
    stop: &Stop,
    quiet: Duration,
    source: impl FnOnce(&Feed<J, O, T>) -> S + Send + 'static,
    work: impl Fn(&mut J) -> O + Send + Sync + 'static,
    finish: fn(Done<J, O>) -> T,
    mut sink: impl FnMut(Event<T>) -> Result<(), E>,
) -> Result<End<S>, E>
where
    J: Send + 'static,
    O: Send + 'static,
    T: Send + 'static,
    S: Send + 'static,
    E: From<std::io::Error>,
{
    let window = Arc::new(Window::new(limits));
    stop.closes(window.clone());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(limits.threads)
        .thread_name(|number| format!("worker {number}"))
        .build()
        .map_err(std::io::Error::other)?;
    let feed = Feed { window: window.clone(), pool, work: Arc::new(work), finish };
    let at_end = CloseOnDrop(window.clone());
    let reader = thread::Builder::new().name("reader".into()).spawn(move || {
        let result = source(&feed);
        drop(at_end);
        result
    })?;
    // However the sink ends, nothing waits for room any more.
    let _abandon = AbandonOnDrop(window.clone());
    let mut ready = Vec::new();
    loop {
        match window.take(&mut ready, quiet) {
            Taken::Items => ready.drain(..).try_for_each(|item| sink(Event::Item(item)))?,
            Taken::Nothing => sink(Event::Idle)?,
            Taken::Stopped => return Ok(End::Stopped),
            Taken::End => break,
        }
    }
    Ok(reader.join().map_or(End::SourcePanicked, End::Complete))
}

struct CloseOnDrop<T>(Arc<Window<T>>);

impl<T> Drop for CloseOnDrop<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct AbandonOnDrop<T>(Arc<Window<T>>);

impl<T> Drop for AbandonOnDrop<T> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests;
