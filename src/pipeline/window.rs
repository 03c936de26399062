//! The window of items under way: bounded in number and weight, filled out of order, taken in order.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Limits;

/// The sink has gone, or the run was stopped: nothing more is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// An item's place in the order.
pub(super) struct Place {
    number: u64,
    weight: usize,
}

pub(super) enum Taken {
    Items,
    Nothing,
    Stopped,
    End,
}

struct State<T> {
    /// Ordered: the items from `first` on, `None` where one is still being worked on. Unordered: those done.
    slots: VecDeque<Option<(T, usize)>>,
    /// Number of the item at the front of `slots`.
    first: u64,
    next: u64,
    /// Items and bytes between source and sink.
    items: usize,
    bytes: usize,
    /// The source has ended.
    closed: bool,
    stopped: bool,
}

pub(super) struct Window<T> {
    limits: Limits,
    state: Mutex<State<T>>,
    /// Signalled when there is room again.
    room: Condvar,
    /// Signalled when the next item is ready.
    ready: Condvar,
}

impl<T> Window<T> {
    pub(super) fn new(limits: Limits) -> Self {
        let state =
            State { slots: VecDeque::new(), first: 0, next: 0, items: 0, bytes: 0, closed: false, stopped: false };
        Window { limits, state: Mutex::new(state), room: Condvar::new(), ready: Condvar::new() }
    }

    /// The state is changed only by code here, none of which panics half way.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room and takes the next place.
    pub(super) fn reserve(&self, weight: usize) -> Result<Place, Closed> {
        let full = |state: &mut State<T>| {
            !state.stopped
                && state.items > 0
                && (state.items >= self.limits.items || state.bytes.saturating_add(weight) > self.limits.bytes)
        };
        let mut state = self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return Err(Closed);
        }
        state.items += 1;
        state.bytes += weight;
        if self.limits.ordered {
            state.slots.push_back(None);
        }
        state.next += 1;
        Ok(Place { number: state.next - 1, weight })
    }

    /// Puts an item in its place.
    pub(super) fn fill(&self, place: Place, item: T) {
        let mut state = self.lock();
        let is_next = if self.limits.ordered {
            let index = (place.number - state.first) as usize;
            if let Some(slot) = state.slots.get_mut(index) {
                *slot = Some((item, place.weight));
            }
            index == 0
        } else {
            state.slots.push_back(Some((item, place.weight)));
            true
        };
        drop(state);
        if is_next {
            self.ready.notify_one();
        }
    }

    /// Takes all items that are next in order; waits for the first one at most `quiet`.
    pub(super) fn take(&self, out: &mut Vec<T>, quiet: Duration) -> Taken {
        let nothing = |state: &mut State<T>| {
            let ended = state.stopped || (state.closed && state.items == 0);
            !ended && !matches!(state.slots.front(), Some(Some(_)))
        };
        let waited = self.ready.wait_timeout_while(self.lock(), quiet, nothing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        while let Some(Some(_)) = state.slots.front() {
            if let Some((item, weight)) = state.slots.pop_front().flatten() {
                out.push(item);
                state.first += 1;
                state.items -= 1;
                state.bytes -= weight;
            }
        }
        let taken = match &*state {
            _ if !out.is_empty() => Taken::Items,
            State { stopped: true, .. } => Taken::Stopped,
            State { closed: true, items: 0, .. } => Taken::End,
            _ => Taken::Nothing,
        };
        drop(state);
        if let Taken::Items = taken {
            self.room.notify_one();
        }
        taken
    }

    /// The source has ended: once all is taken, that is the end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_one();
    }

    /// Ends the run: places are no longer given, only what is ready is still taken.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.ready.notify_one();
        self.room.notify_one();
    }
}

trait Stoppable: Send + Sync {
    fn stop(&self);
}

impl<T: Send> Stoppable for Window<T> {
    fn stop(&self) {
        Window::stop(self);
    }
}

/// A switch that ends a run from another thread, such as the one that waits for signals.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<Switch>>);

#[derive(Default)]
struct Switch {
    pulled: bool,
    window: Option<Arc<dyn Stoppable>>,
}

impl Stop {
    /// Ends the run, or the next one.
    pub fn now(&self) {
        let mut switch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        switch.pulled = true;
        if let Some(window) = &switch.window {
            window.stop();
        }
    }

    /// Whether it was pulled.
    pub fn pulled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pulled
    }

    pub(super) fn closes<T: Send + 'static>(&self, window: Arc<Window<T>>) {
        let mut switch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if switch.pulled {
            window.stop();
        }
        switch.window = Some(window);
    }
}
