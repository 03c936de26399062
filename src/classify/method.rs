//! Which XML-RPC method a server is asked for: `filter`, or `score` where `filter` is broken.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A call that finds out is waited for no longer than this before another one tries: the server may hang on that one
/// message.
const PATIENCE: Duration = Duration::from_secs(1);

/// The method to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The message comes back with its verdict in a header field.
    Filter,
    /// The score alone comes back.
    Score,
}

impl Method {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Method::Filter => "filter",
            Method::Score => "score",
        }
    }
}

#[derive(Clone, Copy)]
enum State {
    Unknown,
    /// Since then, one more call is finding out; the others wait for what it finds.
    Asking(Instant),
    Known(Method),
}

/// A server's method, found out by its first good answer.
///
/// Until then one call at a time goes out, or one more per second if no answer comes. Otherwise a fault on the second
/// message, arriving before the first answer, could not be told from a server whose `filter` always faults.
pub(super) struct Choice {
    state: Mutex<State>,
    changed: Condvar,
}

/// What a call has to do.
pub(super) enum Turn<'a> {
    /// The method is known.
    Call(Method),
    /// This call finds it out; the others wait until the guard is dropped.
    FindOut(Asking<'a>),
    /// The deadline has passed while another call was finding out.
    TooLate,
}

pub(super) struct Asking<'a>(&'a Choice);

impl Asking<'_> {
    pub(super) fn found(self, method: Method) {
        self.0.found(method);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// How long a call that began to ask at `since` is waited for by one that has until `deadline`: never so long that too
/// little time is left.
fn patient_until(since: Instant, deadline: Instant) -> Instant {
    since + PATIENCE.min(deadline.saturating_duration_since(since) / 2)
}

impl Choice {
    /// `None`: to be found out.
    pub(super) fn new(fixed: Option<Method>) -> Self {
        Choice { state: Mutex::new(fixed.map_or(State::Unknown, State::Known)), changed: Condvar::new() }
    }

    pub(super) fn turn(&self, deadline: Instant) -> Turn<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            match *state {
                State::Known(method) => return Turn::Call(method),
                State::Asking(_) if now >= deadline => return Turn::TooLate,
                State::Asking(since) if now < patient_until(since, deadline) => {
                    let left = patient_until(since, deadline) - now;
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                State::Unknown | State::Asking(_) => {
                    *state = State::Asking(now);
                    return Turn::FindOut(Asking(self));
                }
            }
        }
    }

    /// That `filter` works is proved by one answer; that it does not, never for good.
    fn found(&self, method: Method) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if method == Method::Filter || !matches!(*state, State::Known(_)) {
            *state = State::Known(method);
        }
        self.changed.notify_all();
    }

    fn give_up(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Asking(_) = *state {
            *state = State::Unknown;
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_finds_out_and_the_rest_follow() {
        let choice = Choice::new(None);
        let soon = || Instant::now() + Duration::from_secs(20);
        let Turn::FindOut(asking) = choice.turn(soon()) else { panic!("nobody asks yet") };
        assert!(matches!(choice.turn(Instant::now()), Turn::TooLate));
        drop(asking);
        let Turn::FindOut(asking) = choice.turn(soon()) else { panic!("the first found nothing") };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| matches!(choice.turn(soon()), Turn::Call(Method::Score)));
            asking.found(Method::Score);
            assert!(waiting.join().expect("no panic"));
        });
    }

    #[test]
    fn a_call_that_hangs_does_not_keep_the_others() {
        let choice = Choice::new(None);
        let soon = || Instant::now() + Duration::from_secs(20);
        let Turn::FindOut(hangs) = choice.turn(soon()) else { panic!("nobody asks yet") };
        let Turn::FindOut(other) = choice.turn(soon()) else { panic!("the first one hangs") };
        other.found(Method::Filter);
        drop(hangs);
        assert!(matches!(choice.turn(soon()), Turn::Call(Method::Filter)));
    }

    #[test]
    fn a_fixed_method_is_no_question() {
        let choice = Choice::new(Some(Method::Filter));
        assert!(matches!(choice.turn(Instant::now()), Turn::Call(Method::Filter)));
    }
}
