//! Finds the best number of messages in flight while the work goes on.
//!
//! It goes up while that pays: by doubling at first, then in steps of a quarter. Whether it pays is told by windows of the
//! throughput, with the old number and the new one in turns, because what else a machine does changes more than a step
//! may bring. A step that brings the most it can is taken at once; one that brings little is looked at five times. Where
//! nothing pays, it stays for a while and tries again, later and later.
//!
//! Failures are no matter of measuring: at the first one it goes back to half, and for some time not up again to where they
//! came. Nor are calls that a server leaves in its backlog while it answers others: one that has a thread for each
//! of so many connections does not look at the next one. It goes back by as many.
//!
//! Pure: it is told what happened and when, and says a number.

use std::time::{Duration, Instant};

use super::median;

/// A window is at least so long and has at least so many calls, and so many for each in flight, lest it begins and ends in
/// the middle of calls that go in step. In that time a server that answers one connection at a time is mostly found out, so
/// that no more of them are opened.
const WINDOW: Duration = Duration::from_millis(100);
const CALLS: usize = 16;
const EACH: usize = 3;
/// With a slow server, this long and a call for each in flight are as good.
const LONG: Duration = Duration::from_secs(1);
/// Pairs of windows, old number and new, at most, to decide on a step.
const PAIRS: usize = 5;
/// A step pays if it brings so much.
const GAIN: f64 = 1.03;
/// First and longest time until another step is tried where none has paid.
const REST: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// First and longest time for which a number is not reached again at which calls failed.
const BAN: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// Failures this soon after another are the same one: of calls that went out together.
const SAME: Duration = Duration::from_millis(100);
/// Calls that were left have so much time to get on after it went back.
const FREED: Duration = Duration::from_secs(1);

/// How to go on from where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Double,
    Quarter,
    Half,
}

/// A number that is being compared with the one in force.
#[derive(Clone, Debug)]
struct Trial {
    step: Step,
    parallel: usize,
    /// New throughput by old, of each pair of windows.
    gains: Vec<f64>,
}

/// What is known when a call has ended.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// When it was.
    pub now: Instant,
    /// So many calls at once are of any use, as far as is known.
    pub useful: usize,
    /// Attempts that have failed, in all.
    pub failures: u64,
    /// Calls that were left until another connection was closed, in all.
    pub neglected: usize,
}

/// A number and the throughput it had, as far as that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Messages in flight.
    pub parallel: usize,
    /// Calls per second, where a window came to its end.
    pub rate: Option<f64>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Climb {
    most: usize,
    /// The number in force, and its throughput in the last window.
    base: Stage,
    trial: Option<Trial>,
    /// Whether the trial's number is the one in flight.
    trying: bool,
    /// Steps that have not been tried from here.
    steps: Vec<Step>,
    /// When to try the next one, and how long to rest after it.
    next: Option<Instant>,
    rest: Duration,
    /// Calls that belong to the number before.
    settling: usize,
    began: Option<Instant>,
    calls: usize,
    failures: u64,
    neglected: usize,
    failed: Option<Instant>,
    /// The smallest number that is not to be reached again until then, and for how long next time.
    banned: Option<(usize, Instant)>,
    ban: Duration,
    path: Vec<Stage>,
}

impl Climb {
    /// Begins with `start` in flight and never has more than `most`.
    pub fn new(start: usize, most: usize) -> Climb {
        let base = Stage { parallel: start.clamp(1, most.max(1)), rate: None };
        Climb {
            most,
            base,
            trial: None,
            trying: false,
            steps: vec![Step::Half, Step::Double],
            next: None,
            rest: REST.0,
            settling: 0,
            began: None,
            calls: 0,
            failures: 0,
            neglected: 0,
            failed: None,
            banned: None,
            ban: BAN.0,
            path: vec![base],
        }
    }

    /// Messages to have in flight.
    pub fn parallel(&self) -> usize {
        self.trial.as_ref().filter(|_| self.trying).map_or(self.base.parallel, |trial| trial.parallel)
    }

    /// The number in force: what would go on if nothing else was tried.
    pub fn settled(&self) -> usize {
        self.base.parallel
    }

    /// The numbers that were in force, each with its last throughput.
    pub fn path(&self) -> &[Stage] {
        &self.path
    }

    /// A call has ended. Gives the number of messages to have in flight from now on.
    pub fn ended(&mut self, news: News) -> usize {
        let (before, now) = (self.parallel(), news.now);
        let left = news.neglected.saturating_sub(std::mem::replace(&mut self.neglected, news.neglected));
        if news.failures > std::mem::replace(&mut self.failures, news.failures) {
            self.back_off(now, SAME, (before / 2).max(1), before.max(2));
        } else if left > 0 {
            let others = before.saturating_sub(left).max(1);
            self.back_off(now, FREED, others, others + 1);
        } else if news.useful < before {
            self.force(news.useful.max(1));
        } else {
            self.count(now, news.useful);
        }
        let after = self.parallel();
        if after != before {
            self.settling = before.max(after);
            self.began = None;
        }
        after
    }

    /// Goes back to a number, and not up to another for some time. What is told within `same` after the last time is still
    /// of that.
    fn back_off(&mut self, now: Instant, same: Duration, parallel: usize, banned: usize) {
        if self.failed.is_some_and(|last| now.saturating_duration_since(last) < same) {
            return;
        }
        self.failed = Some(now);
        self.banned = Some((banned, now + self.ban));
        self.ban = BAN.1.min(self.ban * 2);
        self.force(parallel);
    }

    /// Goes to a number whatever it brings.
    fn force(&mut self, parallel: usize) {
        self.trial = None;
        self.go(Stage { parallel, rate: None }, vec![Step::Quarter, Step::Double]);
    }

    fn go(&mut self, base: Stage, steps: Vec<Step>) {
        if base.parallel != self.base.parallel {
            self.path.push(base);
        }
        (self.base, self.steps) = (base, steps);
        (self.next, self.rest) = (None, REST.0);
        (self.began, self.calls, self.trying) = (None, 0, false);
    }

    fn count(&mut self, now: Instant, useful: usize) {
        if self.settling > 0 {
            self.settling -= 1;
            return;
        }
        let Some(began) = self.began else {
            (self.began, self.calls) = (Some(now), 0);
            return;
        };
        self.calls += 1;
        let (took, parallel) = (now.saturating_duration_since(began), self.parallel());
        let enough = took >= WINDOW && self.calls >= CALLS.max(EACH * parallel);
        if enough || took >= LONG && self.calls >= parallel {
            let rate = self.calls as f64 / took.as_secs_f64();
            (self.began, self.calls) = (Some(now), 0);
            self.measured(rate, now, useful);
        }
    }

    /// A window has come to its end.
    fn measured(&mut self, rate: f64, now: Instant, useful: usize) {
        let Some(trial) = self.trial.as_mut().filter(|_| self.trying) else {
            self.base.rate = Some(rate);
            if let Some(stage) = self.path.last_mut() {
                stage.rate = Some(rate);
            }
            self.trying = self.trial.is_some() || self.try_next(now, useful);
            return;
        };
        trial.gains.extend(self.base.rate.map(|base| rate / base));
        let gain = median(trial.gains.iter().copied());
        let Trial { step, parallel, ref gains } = *trial;
        // What doubling can bring at best, and the like.
        let full = parallel as f64 / self.base.parallel as f64;
        match (verdict(gain, full, gains.len()), step) {
            (None, _) => self.trying = false,
            (Some(true), step) => {
                self.trial = None;
                let steps = match step {
                    Step::Half => vec![Step::Half],
                    // The most is not far any more.
                    _ if gain < 1.0 + (full - 1.0) / 2.0 => vec![Step::Quarter],
                    _ => vec![Step::Quarter, Step::Double],
                };
                self.go(Stage { parallel, rate: Some(rate) }, steps);
                self.trying = self.try_next(now, useful);
            }
            (Some(false), step) => {
                (self.trial, self.trying) = (None, false);
                // Too large a step may have gone over the top.
                if step == Step::Double && gain < 1.0 {
                    self.steps.push(Step::Quarter);
                }
            }
        }
    }

    /// Begins the next trial, if one is due; tells whether.
    fn try_next(&mut self, now: Instant, useful: usize) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        let banned = self.banned.filter(|(_, until)| now < *until).map_or(usize::MAX, |(number, _)| number - 1);
        let most = self.most.min(useful).min(banned);
        while let Some(step) = self.steps.pop() {
            let base = self.base.parallel;
            let parallel = match step {
                Step::Double => base * 2,
                Step::Quarter => base + base.div_ceil(4),
                Step::Half => base / 2,
            };
            let parallel = parallel.clamp(1, most.max(1));
            if parallel != base {
                self.trial = Some(Trial { step, parallel, gains: Vec::new() });
                return true;
            }
        }
        self.steps = vec![Step::Half, Step::Quarter];
        self.next = Some(now + self.rest);
        self.rest = REST.1.min(self.rest * 2);
        false
    }
}

/// Whether a step pays that could bring `full` at best and has brought `gain`, the median of so many pairs; none if that
/// cannot be told yet.
fn verdict(gain: f64, full: f64, pairs: usize) -> Option<bool> {
    let much = 1.0 + (full - 1.0) * 0.6;
    match pairs {
        _ if gain < 0.75 => Some(false),
        1 if full > 1.5 && gain >= much => Some(true),
        0 | 1 => None,
        2 if full > 1.5 && gain >= 1.25 => Some(true),
        _ if gain < 0.95 => Some(false),
        3.. if gain >= 1.1 => Some(true),
        PAIRS.. => Some(gain >= GAIN),
        _ => None,
    }
}

#[cfg(test)]
#[path = "climb_tests.rs"]
mod tests;
