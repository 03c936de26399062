//! A classifier that finds out by itself how many messages are best asked about at once.

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
    climb: Mutex<Climb>,
}

impl Paced {
    /// Begins with the number that `threads` has, and never has more than `most`.
    pub fn new(inner: Arc<dyn Classifier>, threads: Threads, most: usize) -> Paced {
        let climb = Climb::new(threads.get(), most);
        inner.at_most(threads.get());
        Paced { inner, threads, climb: Mutex::new(climb) }
    }

    fn climb(&self) -> MutexGuard<'_, Climb> {
        self.climb.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number it has come to.
    pub fn settled(&self) -> usize {
        self.climb().settled()
    }

    /// The numbers on the way there, with the messages per second that each of them brought.
    pub fn path(&self) -> String {
        let stage = |stage: &Stage| match stage.rate {
            Some(rate) => format!("{} ({rate:.1}/s)", stage.parallel),
            None => stage.parallel.to_string(),
        };
        self.climb().path().iter().map(stage).collect::<Vec<_>>().join(", ")
    }
}

impl Classifier for Paced {
    fn classify(&self, message: &[u8]) -> Result<Answer, Refusal> {
        let result = catch_unwind(AssertUnwindSafe(|| self.inner.classify(message)));
        let Strain { most, failures, neglected } = self.inner.strain();
        // Set under the lock, so that the last word is the last one.
        let mut climb = self.climb();
        let before = climb.parallel();
        let after = climb.ended(News { now: Instant::now(), useful: most, failures, neglected });
        if after != before {
            self.threads.set(after);
            self.inner.at_most(after);
        }
        drop(climb);
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
