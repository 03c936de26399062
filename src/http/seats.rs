//! Lends things to at most so many threads at once: first come, first served, and the last returned lent first.
//!
//! Last in, first out keeps as few connections in use as there are calls at once. First come, first served is needed
//! where a server answers one connection only: the thread that gives its line back would otherwise take it again before
//! any of those that wait has woken up, and they would wait until their deadline.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, ThreadId};
use std::time::Instant;

/// See the module.
#[derive(Debug)]
pub(super) struct Seats<T> {
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    idle: VecDeque<T>,
    in_use: usize,
    waiting: VecDeque<Thread>,
}

impl<T> Inner<T> {
    /// Wakes the next in the queue, if there is room for it.
    fn wake(&self, limit: usize) {
        if self.in_use < limit
            && let Some(next) = self.waiting.front()
        {
            next.unpark();
        }
    }

    fn leave(&mut self, who: ThreadId) {
        self.waiting.retain(|thread| thread.id() != who);
    }
}

impl<T> Seats<T> {
    pub(super) fn new() -> Self {
        Self { inner: Mutex::new(Inner { idle: VecDeque::new(), in_use: 0, waiting: VecDeque::new() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a thing, made new if none is idle, as soon as fewer than `limit` are lent. None if `until` is over first.
    pub(super) fn take<L: Fn() -> usize>(
        &self,
        until: Instant,
        limit: L,
        make: impl FnOnce() -> T,
    ) -> Option<Seat<'_, T, L>> {
        let me = thread::current();
        let mut inner = self.lock();
        if inner.in_use >= limit() || !inner.waiting.is_empty() {
            inner.waiting.push_back(me.clone());
            loop {
                let first = inner.waiting.front().is_some_and(|thread| thread.id() == me.id());
                if first && inner.in_use < limit() {
                    inner.leave(me.id());
                    break;
                }
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    inner.leave(me.id());
                    inner.wake(limit());
                    return None;
                }
                drop(inner);
                thread::park_timeout(left);
                inner = self.lock();
            }
        }
        inner.in_use += 1;
        // The limit may have risen since the one behind was last looked at.
        inner.wake(limit());
        let thing = inner.idle.pop_back();
        drop(inner);
        // From here on the seat is given back by its drop, even if making the thing panics.
        let mut seat = Seat { seats: self, thing: None, limit, last: false };
        seat.thing = Some(thing.unwrap_or_else(make));
        Some(seat)
    }

    pub(super) fn in_use(&self) -> usize {
        self.lock().in_use
    }
}

/// A thing that is lent. Given back when dropped.
#[derive(Debug)]
pub(super) struct Seat<'a, T, L: Fn() -> usize> {
    seats: &'a Seats<T>,
    thing: Option<T>,
    limit: L,
    last: bool,
}

impl<T, L: Fn() -> usize> Seat<'_, T, L> {
    /// Uses the thing.
    pub(super) fn with<R>(&self, act: impl FnOnce(&T) -> R) -> Option<R> {
        self.thing.as_ref().map(act)
    }

    /// Given back, the thing shall be lent only when no other is idle.
    pub(super) fn put_last(&mut self, last: bool) {
        self.last = last;
    }
}

impl<T, L: Fn() -> usize> Drop for Seat<'_, T, L> {
    fn drop(&mut self) {
        let mut inner = self.seats.lock();
        inner.in_use -= 1;
        match self.thing.take() {
            Some(thing) if self.last => inner.idle.push_front(thing),
            Some(thing) => inner.idle.push_back(thing),
            None => {}
        }
        inner.wake((self.limit)());
    }
}
