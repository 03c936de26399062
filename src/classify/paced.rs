//! A classifier that finds out by itself how many messages are best asked about at once.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Answer, Classifier, Refusal, Strain, Usage};
use crate::pipeline::Threads;
use crate::tune::{Climb, News, Stage};

/// Asks another classifier, and sets the number of threads that ask.
pub struct Paced {
    inner: Arc<dyn Classifier>,
    threads: Threads,
    state: Mutex<State>,
}

struct State {
    climb: Climb,
    /// When the calls under way began, by their numbers, which are in that order.
    calls: BTreeMap<u64, Instant>,
    next: u64,
    /// How long calls took lately, in seconds: an average in which the last one counts a sixteenth.
    took: f64,
}

/// A call under way for this long, and for so many times as long as others took, is stuck.
const STUCK: (f64, f64) = (1.0, 20.0);

impl State {
    fn begin(&mut self, now: Instant) -> u64 {
        self.next += 1;
        self.calls.insert(self.next, now);
        self.next
    }

    /// Takes a call that has ended off the list, and tells how many of the others are stuck.
    fn end(&mut self, call: u64, now: Instant) -> usize {
        let since = |began: Instant| now.saturating_duration_since(began).as_secs_f64();
        if let Some(began) = self.calls.remove(&call) {
            let took = since(began);
            self.took = if self.took == 0.0 { took } else { self.took + (took - self.took) / 16.0 };
        }
        let limit = STUCK.0.max(STUCK.1 * self.took);
        self.calls.values().take_while(|began| since(**began) > limit).count()
    }
}

impl Paced {
    /// Begins with the number that `threads` has, and never has more than `most`.
    pub fn new(inner: Arc<dyn Classifier>, threads: Threads, most: usize) -> Paced {
        let climb = Climb::new(threads.get(), most);
        inner.at_most(threads.get());
        let state = Mutex::new(State { climb, calls: BTreeMap::new(), next: 0, took: 0.0 });
        Paced { inner, threads, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number it has come to.
    pub fn settled(&self) -> usize {
        self.state().climb.settled()
    }

    /// The numbers on the way there, with the messages per second that each of them brought.
    pub fn path(&self) -> String {
        let stage = |stage: &Stage| match stage.rate {
            Some(rate) => format!("{} ({rate:.1}/s)", stage.parallel),
            None => stage.parallel.to_string(),
        };
        self.state().climb.path().iter().map(stage).collect::<Vec<_>>().join(", ")
    }
}

impl Classifier for Paced {
    fn classify(&self, message: &[u8]) -> Result<Answer, Refusal> {
        let call = self.state().begin(Instant::now());
        let result = catch_unwind(AssertUnwindSafe(|| self.inner.classify(message)));
        let Strain { most, failures } = self.inner.strain();
        // Set under the lock, so that the last word is the last one.
        let mut state = self.state();
        let now = Instant::now();
        let stuck = state.end(call, now);
        let before = state.climb.parallel();
        let after = state.climb.ended(News { now, useful: most, failures, stuck });
        if after != before {
            self.threads.set(after);
            self.inner.at_most(after);
        }
        drop(state);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn at_most(&self, calls: usize) {
        self.inner.at_most(calls);
    }

    fn strain(&self) -> Strain {
        self.inner.strain()
    }
}
