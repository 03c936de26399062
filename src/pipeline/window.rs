//! The window of items under way: bounded in number and weight, filled out of order, taken in order.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Carry, Limits};

/// The sink has failed, or the run was stopped: nothing more is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// An item's place in the order.
pub(super) struct Place {
    number: u64,
    weight: usize,
}

/// What whoever filled a place has to do.
pub(super) enum Filled {
    /// Carry what is ready to the sink: it was the next in order, and nobody else is at it.
    Carry,
    /// Nothing.
    Kept,
}

/// How much has been carried.
#[derive(Clone, Copy, Default)]
pub(super) struct Carried {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has come for a while. The caller has to carry.
    Idle,
    /// All has been taken.
    Ended,
    Stopped,
    Failed,
}

struct Inner<T> {
    /// Ordered: the items from number `first` on, `None` where one is still being worked on. Unordered: those done.
    slots: VecDeque<Option<(T, usize)>>,
    first: u64,
    next: u64,
    /// Items and bytes between source and sink, those being carried included.
    items: usize,
    bytes: usize,
    /// Somebody is carrying, and nobody else may.
    carrying: bool,
    /// Items carried, modulo 2^64: whether anything has come since somebody looked.
    carried: u64,
    /// The source has ended.
    closed: bool,
    stopped: bool,
    failed: bool,
}

pub(super) struct Window<T> {
    limits: Limits,
    inner: Mutex<Inner<T>>,
    /// Signalled when there is room again.
    room: Condvar,
    /// Signalled when the run has come to an end of some sort.
    end: Condvar,
}

impl<T> Window<T> {
    pub(super) fn new(limits: Limits) -> Self {
        let inner = Inner {
            slots: VecDeque::new(),
            first: 0,
            next: 0,
            items: 0,
            bytes: 0,
            carrying: false,
            carried: 0,
            closed: false,
            stopped: false,
            failed: false,
        };
        Window { limits, inner: Mutex::new(inner), room: Condvar::new(), end: Condvar::new() }
    }

    /// The state is changed only by code here, none of which panics half way.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room and takes the next place. Once the window is full, that is until half of it is free again: a source
    /// that is woken for every item costs the workers more than it gives them.
    pub(super) fn reserve(&self, weight: usize) -> Result<Place, Closed> {
        let fits = |inner: &Inner<T>| {
            inner.items == 0
                || (inner.items < self.limits.items && inner.bytes.saturating_add(weight) <= self.limits.bytes)
        };
        let mut inner = self.lock();
        if !fits(&inner) {
            let wait = |inner: &mut Inner<T>| !(inner.is_over() || self.is_half_free(inner) && fits(inner));
            inner = self.room.wait_while(inner, wait).unwrap_or_else(PoisonError::into_inner);
        }
        if inner.is_over() {
            return Err(Closed);
        }
        inner.items += 1;
        inner.bytes += weight;
        if self.limits.ordered {
            inner.slots.push_back(None);
        }
        inner.next += 1;
        Ok(Place { number: inner.next - 1, weight })
    }

    fn is_half_free(&self, inner: &Inner<T>) -> bool {
        inner.items == 0 || (inner.items <= self.limits.items / 2 && inner.bytes <= self.limits.bytes / 2)
    }

    /// Puts an item in its place.
    pub(super) fn fill(&self, place: Place, item: T) -> Filled {
        let mut inner = self.lock();
        if inner.is_over() {
            return Filled::Kept;
        }
        if self.limits.ordered {
            let index = (place.number - inner.first) as usize;
            if let Some(slot) = inner.slots.get_mut(index) {
                *slot = Some((item, place.weight));
            }
        } else {
            inner.slots.push_back(Some((item, place.weight)));
        }
        if inner.carrying || !matches!(inner.slots.front(), Some(Some(_))) {
            return Filled::Kept;
        }
        inner.carrying = true;
        Filled::Carry
    }

    /// For the one who carries: gives back the room of what has been carried, and takes all items that are next in
    /// order. False: there are none, and somebody else may carry.
    pub(super) fn take(&self, out: &mut Vec<(T, usize)>, done: Carried) -> bool {
        let mut inner = self.lock();
        inner.items -= done.items;
        inner.bytes -= done.bytes;
        inner.carried = inner.carried.wrapping_add(done.items as u64);
        while let Some(Some(_)) = inner.slots.front() {
            out.extend(inner.slots.pop_front().flatten());
            inner.first += 1;
        }
        inner.carrying = !out.is_empty();
        let over = !inner.carrying && (inner.stopped || inner.is_done());
        let room = done.items > 0 && self.is_half_free(&inner);
        drop(inner);
        if room {
            self.room.notify_one();
        }
        if over {
            self.end.notify_one();
        }
        !out.is_empty()
    }

    /// Waits for an end, or until nothing has come for `quiet`.
    pub(super) fn wait(&self, quiet: Duration) -> State {
        let mut inner = self.lock();
        loop {
            if inner.failed {
                return State::Failed;
            }
            if !inner.carrying && inner.is_done() {
                return State::Ended;
            }
            if !inner.carrying && inner.stopped {
                return State::Stopped;
            }
            let before = inner.carried;
            let (guard, timeout) = self.end.wait_timeout(inner, quiet).unwrap_or_else(PoisonError::into_inner);
            inner = guard;
            if timeout.timed_out() && !inner.carrying && inner.carried == before && !inner.is_over() && !inner.is_done()
            {
                inner.carrying = true;
                return State::Idle;
            }
        }
    }

    /// The source has ended: once all is taken, that is the end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.end.notify_one();
    }

    /// The sink takes no more.
    pub(super) fn fail(&self) {
        let mut inner = self.lock();
        (inner.failed, inner.carrying) = (true, false);
        drop(inner);
        self.end.notify_one();
        self.room.notify_one();
    }

    /// Ends the run: places are no longer given, only what is ready is still taken.
    fn stop(&self) {
        self.lock().stopped = true;
        self.end.notify_one();
        self.room.notify_one();
    }
}

impl<T> Inner<T> {
    fn is_over(&self) -> bool {
        self.stopped || self.failed
    }

    fn is_done(&self) -> bool {
        self.closed && self.items == 0
    }
}

trait Stoppable: Send + Sync {
    fn stop(&self);
}

struct Stopper<T>(Arc<dyn Carry<T>>);

impl<T> Stoppable for Stopper<T> {
    fn stop(&self) {
        self.0.window().stop();
    }
}

/// A switch that ends a run from another thread, such as the one that waits for signals.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<Switch>>);

#[derive(Default)]
struct Switch {
    pulled: bool,
    run: Option<Box<dyn Stoppable>>,
}

impl Stop {
    /// Ends the run, or the next one.
    pub fn now(&self) {
        let mut switch = self.lock();
        switch.pulled = true;
        if let Some(run) = &switch.run {
            run.stop();
        }
    }

    /// Whether it was pulled.
    pub fn pulled(&self) -> bool {
        self.lock().pulled
    }

    pub(super) fn stops<T: Send + 'static>(&self, outlet: Arc<dyn Carry<T>>) {
        let mut switch = self.lock();
        let run = Stopper(outlet);
        if switch.pulled {
            run.stop();
        }
        switch.run = Some(Box::new(run));
    }

    fn lock(&self) -> MutexGuard<'_, Switch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
