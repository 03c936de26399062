//! Which XML-RPC method a server is asked for: `filter`, or `score` where `filter` is broken.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

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
    /// One call is finding out; the others wait for what it finds.
    Asking,
    Known(Method),
}

/// A server's method, found out by its first good answer.
///
/// Until then one call at a time goes out. Otherwise a fault on the second message, arriving before the first answer,
/// could not be told from a server whose `filter` always faults.
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
        self.0.set(State::Known(method));
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl Choice {
    /// `None`: to be found out.
    pub(super) fn new(fixed: Option<Method>) -> Self {
        Choice { state: Mutex::new(fixed.map_or(State::Unknown, State::Known)), changed: Condvar::new() }
    }

    pub(super) fn turn(&self, deadline: Instant) -> Turn<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                State::Known(method) => return Turn::Call(method),
                State::Unknown => {
                    *state = State::Asking;
                    return Turn::FindOut(Asking(self));
                }
                State::Asking => {
                    let Some(left) = deadline.checked_duration_since(Instant::now()) else { return Turn::TooLate };
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    fn set(&self, new: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = new;
        self.changed.notify_all();
    }

    fn give_up(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Asking = *state {
            *state = State::Unknown;
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
    fn a_fixed_method_is_no_question() {
        let choice = Choice::new(Some(Method::Filter));
        assert!(matches!(choice.turn(Instant::now()), Turn::Call(Method::Filter)));
    }
}
