//! Notices a server that answers one connection at a time.
//!
//! A single-threaded server with keep-alive (Python's `SimpleXMLRPCServer` with HTTP/1.1, for one) stays with the first
//! connection of a pool until that closes; the others connect, send, and wait in its backlog for ever. From outside it
//! looks like this: one kept-alive connection is answered call after call, and a fresh one never is. Then the pool goes
//! on with one connection, and the calls on the others are sent again over it.
//!
//! A server with a thread for each of so many connections does the same with what is beyond its threads. There a
//! connection that is kept gives way: it is closed after its answer, or while it is idle, and the server takes the next
//! from its backlog. Nothing is sent again, and where the call was only slow it costs a new connection.
//!
//! This file only counts and decides; it touches no socket except to ask whether the peer has closed one, and to shut
//! down an idle one.

use std::os::fd::OwnedFd;
use std::sync::Weak;
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

use super::socket::closed_by_peer;

/// A fresh connection is given this long before anything is concluded.
const PATIENCE: Duration = Duration::from_millis(60);
/// So many answers on the kept-alive connection meanwhile, and the fresh one is starved.
const ANSWERS: u64 = 8;
/// With a slow server, this long and two answers are as good.
const LONG: Duration = Duration::from_secs(3);
/// Nothing in flight on the kept-alive connection for so long, and the fresh one still waits.
const IDLE: Duration = Duration::from_millis(200);
/// Kept connections give way to a fresh one that has waited so long at least, and twice as long as any call on them took,
/// but not longer than [`LONG`].
const NEGLECTED: Duration = Duration::from_millis(250);
/// A call on the one good connection that takes so long, and several times as long as any before, tells nothing of the
/// others any more: perhaps the server hangs on that message alone, and was taken for single-threaded by mistake.
const STUCK: Duration = Duration::from_millis(500);
/// The first time until a second connection is tried again; doubled each time it starves.
const FIRST_TRIAL: Duration = Duration::from_secs(5);
const LAST_TRIAL: Duration = Duration::from_secs(600);

/// One open connection.
#[derive(Debug)]
struct Live {
    id: u64,
    answers: u64,
    busy: bool,
    /// Before it connected.
    opened: Instant,
    sent: Instant,
    last_answer: Instant,
    neglected: bool,
    socket: Weak<OwnedFd>,
}

/// What the pool knows of its open connections, and what it concludes.
#[derive(Debug)]
pub(super) struct Judge {
    connections: usize,
    live: Vec<Live>,
    /// Answers on connections that had answered before: proof of keep-alive.
    kept_answers: u64,
    last_answered: u64,
    /// When the youngest connection that was answered had been opened.
    youngest_answered: Option<Instant>,
    /// The longest that an answer took, and one on a connection that had answered before.
    longest: Duration,
    longest_kept: Duration,
    /// Connections that were neglected, in all.
    neglected: usize,
    /// One connection was answered between two answers of another: the server serves several at once.
    several: bool,
    trial: Option<(Instant, Duration)>,
    noted: bool,
}

impl Judge {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            connections,
            live: Vec::new(),
            kept_answers: 0,
            last_answered: 0,
            youngest_answered: None,
            longest: Duration::ZERO,
            longest_kept: Duration::ZERO,
            neglected: 0,
            several: false,
            trial: None,
            noted: false,
        }
    }

    /// A connection was opened. Gives the number to be handed to [`starving`](Self::starving).
    pub(super) fn opened(&mut self, id: u64, socket: Weak<OwnedFd>, now: Instant) -> u64 {
        self.live.push(Live {
            id,
            answers: 0,
            busy: true,
            opened: now,
            sent: now,
            last_answer: now,
            neglected: false,
            socket,
        });
        self.kept_answers
    }

    /// A request begins to leave on a connection.
    pub(super) fn sent(&mut self, id: u64, now: Instant) {
        if let Some(live) = self.live.iter_mut().find(|live| live.id == id) {
            (live.busy, live.sent) = (true, now);
        }
    }

    /// A whole answer has come on a connection.
    pub(super) fn answered(&mut self, id: u64, now: Instant) {
        let last = std::mem::replace(&mut self.last_answered, id);
        // A connection that was closed with its answer is not on the list any more, and proves nothing.
        let Some(live) = self.live.iter_mut().find(|live| live.id == id) else { return };
        self.youngest_answered = self.youngest_answered.max(Some(live.opened));
        let took = now.saturating_duration_since(live.sent);
        if live.answers > 0 {
            self.kept_answers += 1;
            self.several |= last != id;
            self.longest_kept = self.longest_kept.max(took);
        }
        self.longest = self.longest.max(took);
        live.answers += 1;
        live.busy = false;
        live.last_answer = now;
    }

    /// A connection was closed by us.
    pub(super) fn closed(&mut self, id: u64) {
        self.live.retain(|live| live.id != id);
    }

    /// Whether a fresh connection has to look after itself at all.
    pub(super) fn watchful(&self) -> bool {
        self.connections > 1
    }

    /// How many connections may be in use at once.
    pub(super) fn limit(&self, now: Instant) -> usize {
        match self.trial {
            Some((at, _)) if !self.several && !self.is_stuck(now) => self.connections.min(if now < at { 1 } else { 2 }),
            _ => self.connections,
        }
    }

    /// Whether a call waits in the server's backlog while it stays with other connections. A backlog is first come, first
    /// served: what was there before a connection that was answered had been opened is not in it.
    pub(super) fn neglects_one(&mut self, now: Instant) -> bool {
        if !self.several && self.live.iter().filter(|live| live.answers > 0).nth(1).is_none() {
            return false;
        }
        // How long a first answer took, its wait for a thread may have made.
        let longest = if self.kept_answers > 0 { self.longest_kept } else { self.longest };
        let patience = (longest * 2).clamp(NEGLECTED, LONG);
        let mut any = false;
        let youngest = self.youngest_answered;
        for live in
            self.live.iter_mut().filter(|live| live.answers == 0 && youngest.is_none_or(|opened| opened <= live.sent))
        {
            if now.saturating_duration_since(live.sent) >= patience {
                self.neglected += usize::from(!std::mem::replace(&mut live.neglected, true));
                any = true;
            }
        }
        any
    }

    /// How many connections were neglected so far.
    pub(super) fn neglected(&self) -> usize {
        self.neglected
    }

    /// Has the idle connections give way, if one is neglected. Their lines find them closed when they need them.
    pub(super) fn free_idle(&mut self, now: Instant) {
        if self.neglects_one(now) {
            for socket in self.live.iter().filter(|live| !live.busy).filter_map(|live| live.socket.upgrade()) {
                // One that the server has closed meanwhile is as good.
                let _ = shutdown(&*socket, Shutdown::Both);
            }
        }
    }

    fn is_stuck(&self, now: Instant) -> bool {
        let patience = STUCK.max(self.longest * 4);
        self.live
            .iter()
            .any(|live| live.busy && live.answers > 0 && now.saturating_duration_since(live.sent) > patience)
    }

    /// Whether the fresh connection `id` waits in vain. `mark` is what [`opened`](Self::opened) gave for it.
    pub(super) fn starving(&mut self, id: u64, opened: Instant, mark: u64, now: Instant) -> bool {
        if !self.watchful() || self.several || self.live.iter().any(|live| live.id == id && live.answers > 0) {
            return false;
        }
        let mut answered = self.live.iter().filter(|live| live.id != id && live.answers > 0);
        let (Some(good), None) = (answered.next(), answered.next()) else { return false };
        let waited = now.saturating_duration_since(opened);
        let answers = self.kept_answers - mark;
        let overtaken = waited >= PATIENCE && answers >= ANSWERS || waited >= LONG && answers >= 2;
        let idle = !good.busy && waited.min(now.saturating_duration_since(good.last_answer)) >= IDLE;
        if self.limit(now) == 1 {
            // Already decided, on another starved connection.
            return true;
        }
        // A server that closes after each answer without saying so leaves a connection that only looks idle.
        if !(overtaken || idle && !good.socket.upgrade().is_some_and(|socket| closed_by_peer(&socket))) {
            return false;
        }
        let pause = self.trial.map_or(FIRST_TRIAL, |(_, pause)| LAST_TRIAL.min(pause * 2));
        self.trial = Some((now + pause, pause));
        true
    }

    /// True once, after the first decision: it is to be told.
    pub(super) fn take_note(&mut self) -> bool {
        self.trial.is_some() && !std::mem::replace(&mut self.noted, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A judge with a clock in milliseconds.
    struct Court {
        judge: Judge,
        start: Instant,
    }

    impl Court {
        fn new(connections: usize) -> Self {
            Self { judge: Judge::new(connections), start: Instant::now() }
        }
        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }
        fn open(&mut self, id: u64, ms: u64) -> u64 {
            self.judge.opened(id, Weak::new(), self.at(ms))
        }
        fn answer(&mut self, id: u64, ms: u64, times: usize) {
            for _ in 0..times {
                let at = self.at(ms);
                self.judge.sent(id, at);
                self.judge.answered(id, self.at(ms));
            }
        }
        fn send(&mut self, id: u64, ms: u64) {
            let at = self.at(ms);
            self.judge.sent(id, at);
        }
        fn starving(&mut self, id: u64, opened: u64, mark: u64, now: u64) -> bool {
            self.judge.starving(id, self.at(opened), mark, self.at(now))
        }
        fn neglects_one(&mut self, ms: u64) -> bool {
            self.judge.neglects_one(self.at(ms))
        }
        fn limit(&self, ms: u64) -> usize {
            self.judge.limit(self.at(ms))
        }
    }

    #[test]
    fn a_fresh_connection_overtaken_eight_times_is_starved() {
        let mut court = Court::new(4);
        let mark = court.open(1, 0);
        court.open(2, 0);
        court.answer(1, 50, 8);
        assert!(!court.starving(2, 0, mark, 60), "the first answer does not prove keep-alive");
        court.answer(1, 55, 1);
        court.send(1, 55);
        assert!(!court.starving(2, 0, mark, 59), "too early to tell");
        assert!(court.starving(2, 0, mark, 60));
        assert_eq!(court.limit(61), 1);
        assert!(court.judge.take_note() && !court.judge.take_note());
        court.open(3, 61);
        assert!(court.starving(3, 61, 8, 62), "what is decided is decided for all");
        assert!(!court.starving(1, 0, 0, 62), "but never for the connection that is answered");
    }

    #[test]
    fn a_slow_server_is_found_out_by_time_and_an_idle_connection_at_once() {
        let mut court = Court::new(2);
        court.open(1, 0);
        court.open(2, 0);
        court.answer(1, 1000, 3);
        court.send(1, 1000);
        assert!(!court.starving(2, 0, 0, 2999));
        assert!(court.starving(2, 0, 0, 3000));

        let mut court = Court::new(2);
        court.open(1, 0);
        court.open(2, 0);
        court.answer(1, 100, 1);
        assert!(!court.starving(2, 0, 0, 299));
        assert!(court.starving(2, 0, 0, 300));
    }

    #[test]
    fn a_second_connection_is_tried_again_later_and_later() {
        let mut court = Court::new(4);
        court.open(1, 0);
        court.open(2, 0);
        court.answer(1, 10, 20);
        assert!(court.starving(2, 0, 0, 60));
        court.judge.closed(2);
        assert_eq!((court.limit(5059), court.limit(5060)), (1, 2));
        let mark = court.open(3, 5060);
        court.answer(1, 5070, 20);
        assert!(court.starving(3, 5060, mark, 5120));
        assert!(court.judge.take_note() && !court.judge.take_note());
        assert_eq!((court.limit(15_119), court.limit(15_120)), (1, 2));
        court.judge.closed(3);
        // It was a false alarm: now both are answered in turn.
        court.open(4, 15_120);
        court.answer(4, 15_130, 1);
        court.answer(1, 15_131, 1);
        assert_eq!(court.limit(15_132), 4);
        let mark = court.open(5, 15_132);
        assert!(!court.starving(5, 15_132, mark, 30_000), "and never again");
    }

    #[test]
    fn a_good_connection_that_hangs_makes_room_for_others() {
        let mut court = Court::new(4);
        court.open(1, 0);
        court.open(2, 0);
        court.answer(1, 20, 20);
        assert!(court.starving(2, 0, 0, 60));
        court.send(1, 100);
        assert_eq!((court.limit(600), court.limit(601)), (1, 4));
        court.answer(1, 700, 1);
        assert_eq!(court.limit(701), 1);
        // Calls that take as long as others did are not stuck.
        court.send(1, 1000);
        court.judge.answered(1, court.at(2000));
        court.send(1, 2000);
        assert_eq!((court.limit(5000), court.limit(6061)), (1, 4));
    }

    #[test]
    fn one_that_waits_behind_several_kept_ones_is_neglected() {
        let mut court = Court::new(4);
        for id in 1..=4 {
            court.open(id, 0);
        }
        court.answer(1, 10, 1);
        assert!(!court.neglects_one(1000), "perhaps it is one at a time");
        court.answer(2, 10, 1);
        assert!(!court.neglects_one(249), "too early to tell");
        assert!(court.neglects_one(250));
        court.judge.closed(1);
        court.answer(3, 251, 1);
        assert!(court.neglects_one(252), "another is");
        court.judge.closed(2);
        // Which of them the server sees first is not told by their numbers.
        court.open(5, 0);
        court.answer(5, 252, 1);
        assert!(court.neglects_one(253));
        court.answer(4, 253, 1);
        assert!(!court.neglects_one(10_000));
        assert_eq!(court.judge.neglected(), 2);
    }

    #[test]
    fn one_that_was_passed_over_is_only_slow() {
        let mut court = Court::new(4);
        for id in 1..=3 {
            court.open(id, 0);
        }
        court.answer(1, 10, 1);
        court.answer(2, 10, 1);
        assert!(court.neglects_one(250));
        court.judge.closed(1);
        court.open(4, 251);
        court.answer(4, 252, 1);
        assert!(!court.neglects_one(10_000), "a younger one was answered");
    }

    #[test]
    fn where_calls_take_long_one_is_neglected_later() {
        let mut court = Court::new(3);
        for id in 1..=3 {
            court.open(id, 0);
        }
        for id in [1, 2] {
            court.answer(id, 500, 1);
            court.send(id, 500);
            court.judge.answered(id, court.at(1000));
        }
        assert!(!court.neglects_one(999));
        assert!(court.neglects_one(1000));
        court.send(1, 1000);
        court.judge.answered(1, court.at(6000));
        assert!(!court.neglects_one(2999));
        assert!(court.neglects_one(3000), "not later than this");
    }

    #[test]
    fn one_call_per_connection_is_no_starvation() {
        let mut court = Court::new(4);
        let mark = court.open(1, 0);
        for id in 2..50 {
            court.open(id, id);
            court.answer(id, id, 1);
            court.judge.closed(id);
        }
        assert!(!court.starving(1, 0, mark, 1000));
        assert_eq!(court.limit(1000), 4);
    }

    #[test]
    fn one_slow_message_among_connections_that_are_answered_is_no_starvation() {
        let mut court = Court::new(3);
        let mark = court.open(1, 0);
        court.open(2, 0);
        court.open(3, 0);
        court.answer(2, 1, 1);
        court.answer(3, 1, 1);
        assert!(!court.starving(1, 0, mark, 500), "two answered");
        court.answer(2, 2, 100);
        assert!(!court.starving(1, 0, mark, 5000));
        assert_eq!(court.limit(5000), 3);
    }
}
