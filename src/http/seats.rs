//! Lends things to at most so many threads at once: first come, first served, and the last returned lent first.
//!
//! Last in, first out keeps as few connections in use as there are calls at once. First come, first served is needed
//! where a server answers one connection only: the thread that gives its line back would otherwise take it again before
//! any of those that wait has woken up, and they would wait until their deadline.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

/// How often one that waits looks whether there is room.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

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
                // The limit may rise with time alone, of which nobody tells.
                thread::park_timeout(left.min(LOOK_AGAIN));
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

    /// Gives the seat back without the thing, which is no more.
    pub(super) fn discard(mut self) {
        drop(self.thing.take());
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn the_last_returned_is_lent_first_unless_put_last() {
        let (seats, made) = (Seats::new(), AtomicUsize::new(0));
        let take = || seats.take(later(), || 3, || made.fetch_add(1, SeqCst)).unwrap();
        let (first, mut second, third) = (take(), take(), take());
        assert_eq!((seats.in_use(), made.load(SeqCst)), (3, 3));
        drop(first);
        second.put_last(true);
        drop(third);
        drop(second);
        let order: Vec<_> = [take(), take(), take()].iter().map(|seat| seat.with(|nth| *nth).unwrap()).collect();
        assert_eq!((order, made.load(SeqCst)), (vec![2, 0, 1], 3));
    }

    #[test]
    fn those_who_wait_are_served_in_the_order_they_came() {
        let seats = Seats::new();
        let held = seats.take(later(), || 1, || ()).unwrap();
        let (sender, served) = mpsc::channel();
        thread::scope(|scope| {
            for nth in 0..5 {
                let (sender, seats) = (sender.clone(), &seats);
                scope.spawn(move || {
                    let _seat = seats.take(later(), || 1, || ()).unwrap();
                    sender.send(nth).unwrap();
                });
                while seats.lock().waiting.len() <= nth {
                    thread::yield_now();
                }
            }
            drop(held);
            assert_eq!(served.iter().take(5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        });
    }

    #[test]
    fn one_who_gives_up_does_not_block_those_behind() {
        let seats = Seats::new();
        let held = seats.take(later(), || 1, || ()).unwrap();
        thread::scope(|scope| {
            let impatient =
                scope.spawn(|| seats.take(Instant::now() + Duration::from_millis(10), || 1, || ()).is_none());
            while seats.lock().waiting.is_empty() && !impatient.is_finished() {
                thread::yield_now();
            }
            let patient = scope.spawn(|| seats.take(later(), || 1, || ()).is_some());
            assert!(impatient.join().unwrap());
            drop(held);
            assert!(patient.join().unwrap());
        });
        assert_eq!(seats.in_use(), 0);
    }

    #[test]
    fn when_the_limit_rises_all_who_wait_are_seated_at_once() {
        let (seats, most) = (Seats::new(), AtomicUsize::new(1));
        let limit = || most.load(SeqCst);
        let held = seats.take(later(), limit, || ()).unwrap();
        let together = std::sync::Barrier::new(3);
        thread::scope(|scope| {
            for nth in 0..3 {
                let (seats, together) = (&seats, &together);
                scope.spawn(move || {
                    let _seat = seats.take(later(), limit, || ()).unwrap();
                    together.wait();
                });
                while seats.lock().waiting.len() <= nth {
                    thread::yield_now();
                }
            }
            most.store(3, SeqCst);
            // The next to give back wakes the first, which wakes the next.
            drop(held);
        });
        assert_eq!(seats.in_use(), 0);
    }
}
