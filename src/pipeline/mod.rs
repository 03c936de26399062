//! An order-keeping, bounded, parallel map from a source through workers to a sink. It knows nothing of mail.
//!
//! The source runs in a thread of its own and jobs on a crew of `threads` workers, whose number may change meanwhile. The sink has no thread: whoever
//! makes the next item in order ready, source or worker, carries all that is ready to the sink, one at a time. So an
//! item is written where it is still in the cache, and no thread has to be woken for it.
//!
//! All threads own what they touch, so that [`run`] can return at once when it is told to stop, while the source still
//! hangs in a read and a worker in a call: the process then ends without waiting for either.

mod crew;
mod window;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crew::Crew;
pub use crew::Threads;
use window::{Carried, Filled, Place, State, Window};
pub use window::{Closed, Stop};

/// How much may be under way at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Jobs in flight.
    pub threads: Threads,
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

/// Where items end.
pub trait Sink<T>: Send + 'static {
    /// Why the sink can take no more.
    type Error: Send;

    /// Takes an item. After an error nothing more comes.
    fn take(&mut self, event: Event<T>) -> Result<(), Self::Error>;
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End<S, E> {
    /// The source came to its end, with this; all its items went to the sink.
    Complete(S),
    /// [`Stop::now`] was called; the items that were ready in order went to the sink.
    Stopped,
    /// The sink failed.
    Failed(E),
    /// The source or the sink panicked; all items before that went to the sink.
    Panicked,
}

/// The sink's side, shared by all who may carry items to it.
struct Outlet<T, K: Sink<T>> {
    window: Window<T>,
    sink: Mutex<Option<K>>,
    error: Mutex<Option<K::Error>>,
}

/// What [`Feed`] needs to know of an outlet, whatever its sink.
trait Carry<T>: Send + Sync {
    fn window(&self) -> &Window<T>;
    fn carry(&self);
}

impl<T: Send, K: Sink<T>> Carry<T> for Outlet<T, K> {
    fn window(&self) -> &Window<T> {
        &self.window
    }

    /// Carries what is ready to the sink until nothing is. Only the one thread that [`Window`] has told to do so runs this.
    fn carry(&self) {
        let mut ready = Vec::new();
        let mut carried = Carried::default();
        while self.window.take(&mut ready, carried) {
            carried = Carried { items: ready.len(), bytes: ready.iter().map(|(_, weight)| weight).sum() };
            let items = ready.drain(..).map(|(item, _)| Event::Item(item));
            if !self.give(items) {
                return;
            }
        }
    }
}

impl<T: Send, K: Sink<T>> Outlet<T, K> {
    /// Gives events to the sink; tells whether it wants more.
    fn give(&self, events: impl IntoIterator<Item = Event<T>>) -> bool {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            // Once the run has ended, its sink is gone.
            sink.as_mut().map_or(Ok(()), |sink| events.into_iter().try_for_each(|event| sink.take(event)))
        }));
        if let Ok(Ok(())) = result {
            return true;
        }
        if let Ok(Err(error)) = result {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        self.window.fail();
        false
    }
}

/// Where the source puts its items.
pub struct Feed<J: Send + 'static, T> {
    outlet: Arc<dyn Carry<T>>,
    crew: Arc<Crew<(J, Place)>>,
}

impl<J: Send + 'static, T: Send + 'static> Feed<J, T> {
    /// Hands a job to the workers; waits while the window is full.
    pub fn work(&self, job: J, weight: usize) -> Result<(), Closed> {
        let place = self.outlet.window().reserve(weight)?;
        self.crew.give((job, place));
        Ok(())
    }

    /// Puts an item in its place without any work; waits while the window is full.
    pub fn ready(&self, item: T, weight: usize) -> Result<(), Closed> {
        let place = self.outlet.window().reserve(weight)?;
        if let Filled::Carry = self.outlet.window().fill(place, item) {
            self.outlet.carry();
        }
        Ok(())
    }
}

impl<J: Send + 'static, T> Drop for Feed<J, T> {
    fn drop(&mut self) {
        self.crew.close();
    }
}

/// Runs `source` in a thread of its own and `work` on `limits.threads` workers, until all has gone to `sink`, which is
/// given back, or that failed, or `stop` was used. `quiet` is how long nothing has to come before the sink is told.
pub fn run<J, O, T, S, K>(
    limits: Limits,
    stop: &Stop,
    quiet: Duration,
    source: impl FnOnce(&Feed<J, T>) -> S + Send + 'static,
    work: impl Fn(&mut J) -> O + Send + Sync + 'static,
    finish: fn(Done<J, O>) -> T,
    sink: K,
) -> io::Result<(K, End<S, K::Error>)>
where
    J: Send + 'static,
    O: 'static,
    T: Send + 'static,
    S: Send + 'static,
    K: Sink<T>,
{
    let threads = limits.threads.clone();
    let outlet =
        Arc::new(Outlet { window: Window::new(limits), sink: Mutex::new(Some(sink)), error: Mutex::new(None) });
    stop.stops(outlet.clone());
    let place = outlet.clone();
    let crew = Crew::start(threads, move |(mut job, at): (J, Place)| {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut job))).ok();
        if let Filled::Carry = place.window.fill(at, finish(Done { job, outcome })) {
            place.carry();
        }
    })?;
    let feed = Feed { outlet: outlet.clone(), crew };
    let at_end = CloseOnDrop(outlet.clone());
    let source = thread::Builder::new().name("reader".into()).spawn(move || {
        let result = source(&feed);
        drop(at_end);
        result
    })?;
    let state = loop {
        match outlet.window.wait(quiet) {
            // This thread has been told to carry, and so has the sink for itself.
            State::Idle => {
                if outlet.give([Event::Idle]) {
                    outlet.carry();
                }
            }
            state => break state,
        }
    };
    let failed = outlet.error.lock().unwrap_or_else(PoisonError::into_inner).take();
    let end = match (state, failed) {
        (_, Some(error)) => End::Failed(error),
        (State::Failed, None) => End::Panicked,
        (State::Stopped, None) => End::Stopped,
        (State::Idle | State::Ended, None) => source.join().map_or(End::Panicked, End::Complete),
    };
    let sink = outlet.sink.lock().unwrap_or_else(PoisonError::into_inner).take();
    sink.map(|sink| (sink, end)).ok_or_else(|| io::Error::other("the sink is gone"))
}

struct CloseOnDrop<T>(Arc<dyn Carry<T>>);

impl<T> Drop for CloseOnDrop<T> {
    fn drop(&mut self) {
        self.0.window().close();
    }
}

#[cfg(test)]
mod tests;
