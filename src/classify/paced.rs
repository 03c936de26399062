//! A classifier that finds out by itself how many messages are best asked about at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Answer, Classifier, Refusal, Strain, Usage};
use crate::pipeline::Threads;
use crate::tune::Climb;

/// Asks another classifier, and sets the number of threads that ask.
pub struct Paced {
    inner: Arc<dyn Classifier>,
    threads: Threads,
    climb: Mutex<Climb>,
}

impl Paced {
    /// Begins with the number that `threads` has, and never has more than `most`.
    pub fn new(inner: Arc<dyn Classifier>, threads: Threads, most: usize) -> Paced {
        let climb = Mutex::new(Climb::new(threads.get(), most));
        Paced { inner, threads, climb }
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
        let stage = |stage: &crate::tune::Stage| match stage.rate {
            Some(rate) => format!("{} ({rate:.1}/s)", stage.parallel),
            None => stage.parallel.to_string(),
        };
        self.climb().path().iter().map(stage).collect::<Vec<_>>().join(", ")
    }
}

impl Classifier for Paced {
    fn classify(&self, message: &[u8]) -> Result<Answer, Refusal> {
        let result = self.inner.classify(message);
        let Strain { most, failures } = self.inner.strain();
        // Set under the lock, so that the last word is the last one.
        let mut climb = self.climb();
        let (before, now) = (climb.parallel(), climb.ended(Instant::now(), most, failures));
        if now != before {
            self.threads.set(now);
            self.inner.at_most(now);
        }
        drop(climb);
        result
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
