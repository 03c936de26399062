//! Whether a server is worth asking: a breaker with a growing pause between probes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// First and longest pause between probes of a failing server.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// So many messages have to use up all their tries before a server counts as gone: one alone may be the message's own
/// fault, such as one that the server hangs on.
const GONE_AFTER: u32 = 2;

#[derive(Default)]
struct State {
    last_answer: Option<Instant>,
    /// Messages that used up their tries since then.
    given_up: u32,
    /// Probes sent since then.
    probes: u32,
    /// When the next probe may go out; `None` while all is well.
    probe_at: Option<Instant>,
}

/// The health of one server.
#[derive(Default)]
pub(super) struct Health(Mutex<State>);

/// What is to be expected of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// An answer, or this call is the probe that finds out.
    Good,
    /// Nobody knows: there were failures, but hardly a message has given up.
    Doubtful,
    /// A failure: the server is gone, and the next probe is not due.
    Gone,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for leave to call. Of a failing server's callers only its next probe is told [`Outlook::Good`].
    pub(super) fn outlook(&self, now: Instant) -> Outlook {
        let mut state = self.lock();
        match state.probe_at {
            None => Outlook::Good,
            Some(at) if at <= now => {
                state.probes += 1;
                state.probe_at = Some(now + pause(state.probes));
                Outlook::Good
            }
            Some(_) if state.given_up >= GONE_AFTER => Outlook::Gone,
            Some(_) => Outlook::Doubtful,
        }
    }

    /// Whether nothing is known against the server.
    pub(super) fn is_well(&self) -> bool {
        self.lock().probe_at.is_none()
    }

    /// Whether the server has answered, and has not failed since.
    pub(super) fn is_proven(&self) -> bool {
        let state = self.lock();
        state.last_answer.is_some() && state.probe_at.is_none()
    }

    /// The server answered, if only with a fault.
    pub(super) fn answered(&self, now: Instant) {
        *self.lock() = State { last_answer: Some(now), ..State::default() };
    }

    /// A call that began at `started` failed before an answer began. It says nothing about a server that has answered
    /// another call meanwhile.
    pub(super) fn failed(&self, started: Instant, now: Instant) {
        let mut state = self.lock();
        if state.last_answer.is_none_or(|answer| answer < started) && state.probe_at.is_none() {
            state.probe_at = Some(now + pause(0));
        }
    }

    /// A message has used up its tries.
    pub(super) fn given_up(&self) {
        let mut state = self.lock();
        state.given_up += u32::from(state.probe_at.is_some());
    }
}

fn pause(probes: u32) -> Duration {
    PAUSE.1.min(PAUSE.0 * 2u32.pow(probes.min(16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_server_is_left_out_and_probed_by_one() {
        let (health, start) = (Health::default(), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(health.outlook(start), Outlook::Good);
        assert!(health.is_well() && !health.is_proven());
        health.failed(start, start);
        assert_eq!(health.outlook(after(499)), Outlook::Doubtful);
        assert!(!health.is_well() && !health.is_proven());
        assert_eq!(health.outlook(after(500)), Outlook::Good);
        assert_eq!(health.outlook(after(501)), Outlook::Doubtful, "only one probe");
        health.given_up();
        assert_eq!(health.outlook(after(502)), Outlook::Doubtful, "one message is not enough");
        health.given_up();
        assert_eq!(health.outlook(after(1499)), Outlook::Gone);
        assert_eq!(health.outlook(after(1500)), Outlook::Good);
        assert_eq!(health.outlook(after(3499)), Outlook::Gone, "the pause grows");
        health.answered(after(3500));
        assert_eq!(health.outlook(after(3501)), Outlook::Good);
        assert!(health.is_well() && health.is_proven());
    }

    #[test]
    fn many_failures_at_once_are_one() {
        let (health, start) = (Health::default(), Instant::now());
        (0..16).for_each(|_| health.failed(start, start));
        assert_eq!(health.outlook(start + PAUSE.0), Outlook::Good);
    }

    #[test]
    fn a_call_that_hangs_says_nothing_about_a_server_that_answers_others() {
        let (health, start) = (Health::default(), Instant::now());
        let later = start + Duration::from_secs(1);
        health.answered(later);
        health.failed(start, later);
        health.given_up();
        health.given_up();
        assert_eq!(health.outlook(later), Outlook::Good);
    }
}
