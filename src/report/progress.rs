//! The progress line: a live one on terminals, a plain line now and then where it is asked for elsewhere.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use super::When;

/// Pause between plain lines.
const EVERY: Duration = Duration::from_secs(2);

/// Shows how far a run is.
#[derive(Debug)]
pub struct Progress {
    /// Hidden where standard error is no terminal.
    bar: ProgressBar,
    plain: Option<Mutex<Plain>>,
}

#[derive(Debug)]
struct Plain {
    started: Instant,
    told: Instant,
}

impl Progress {
    /// A progress line where it is wanted. `bytes` is the size of all input where it is known.
    pub fn new(when: When, bytes: Option<u64>) -> Option<Progress> {
        if !when.here() {
            return None;
        }
        let (bar, template) = match bytes {
            Some(bytes) => (ProgressBar::new(bytes), "{bytes}/{total_bytes} {wide_bar} {msg} {eta}"),
            None => (ProgressBar::no_length(), "{bytes} {spinner} {msg} {elapsed}"),
        };
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        let now = Instant::now();
        let plain = (!io::stderr().is_terminal()).then(|| Mutex::new(Plain { started: now, told: now }));
        Some(Progress { bar, plain })
    }

    pub(super) fn at(&self, messages: u64, bytes: u64) {
        match &self.plain {
            None => {
                let rate = messages as f64 / self.bar.elapsed().as_secs_f64().max(1e-3);
                self.bar.set_message(format!("{messages} messages, {rate:.0}/s"));
                self.bar.set_position(bytes);
            }
            Some(plain) => {
                let mut plain = plain.lock().unwrap_or_else(PoisonError::into_inner);
                if plain.told.elapsed() >= EVERY {
                    plain.told = Instant::now();
                    let rate = messages as f64 / plain.started.elapsed().as_secs_f64();
                    eprintln!("hamsift: {messages} messages, {}, {rate:.0}/s", HumanBytes(bytes));
                }
            }
        }
    }

    pub(super) fn aside(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
