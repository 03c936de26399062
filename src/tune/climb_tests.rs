//! Climbing against a simulated server: time is a number here, so every run is the same.

use super::*;

/// A server that does `cores` calls at once, each of which takes `work` seconds of a core and `wait` seconds of nothing.
#[derive(Clone)]
struct Server {
    work: f64,
    wait: f64,
    cores: usize,
    /// Beyond so many calls at once it refuses, which the caller notices at the end of the next call.
    refuses: usize,
    /// Beyond so many at once it leaves calls in its backlog, which is noticed after a quarter of a second.
    threads: usize,
    /// Only one connection is answered; the client knows that after so many calls.
    single: bool,
    /// How far the speed strays, as a part of it, from one tenth of a second to the next.
    noise: f64,
}

const GOOD: Server =
    Server { work: 0.0, wait: 0.0, cores: 1, refuses: usize::MAX, threads: usize::MAX, single: false, noise: 0.0 };

impl Server {
    /// Calls per second with so many in flight.
    fn rate(&self, parallel: usize) -> f64 {
        let parallel = if self.single { 1 } else { parallel };
        let alone = parallel as f64 / (self.work + self.wait);
        if self.work > 0.0 { alone.min(self.cores as f64 / self.work) } else { alone }
    }
}

/// What came of a run of so many seconds.
struct Outcome {
    climb: Climb,
    /// Calls that were done.
    calls: u64,
    failures: u64,
    /// The most that were in flight after the first second.
    most: usize,
}

fn run(server: &Server, start: usize, seconds: f64) -> Outcome {
    let (mut climb, zero) = (Climb::new(start, 256), Instant::now());
    let (mut now, mut calls, mut failures, mut most) = (0.0, 0, 0, 0);
    let mut seed = 12345_u64;
    let mut speed = 1.0;
    let mut change = 0.0;
    let (mut since, mut neglected) = (f64::MAX, 0);
    while now < seconds {
        if now >= change {
            // The high bits of a linear congruential generator are random enough.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            speed = 1.0 - server.noise * (seed >> 40) as f64 / (1_u64 << 24) as f64;
            change = now + 0.1;
        }
        let parallel = climb.parallel();
        now += 1.0 / (server.rate(parallel.min(server.refuses).min(server.threads)) * speed);
        since = if parallel > server.threads { since.min(now) } else { f64::MAX };
        if now > since + 0.25 {
            neglected += parallel - server.threads;
            since = now;
        }
        calls += 1;
        failures += u64::from(parallel > server.refuses);
        let useful = if server.single && calls > 20 { 1 } else { usize::MAX };
        climb.ended(News { now: zero + Duration::from_secs_f64(now), useful, failures, neglected });
        if now > 1.0 {
            most = most.max(climb.parallel());
        }
    }
    Outcome { climb, calls, failures, most }
}

/// The throughput of the number in force, as a part of the best there is.
#[track_caller]
fn assert_near_best(server: &Server, seconds: f64) -> Outcome {
    let outcome = run(server, 4, seconds);
    let best = (1..=256).map(|n| server.rate(n)).fold(0.0, f64::max);
    let share = server.rate(outcome.climb.settled()) / best;
    assert!(share >= 0.95, "{share}: {:?}", outcome.climb.path());
    outcome
}

#[test]
fn a_server_that_waits_gets_all_there_may_be() {
    let outcome = assert_near_best(&Server { wait: 0.02, ..GOOD }, 3.0);
    assert_eq!(outcome.climb.settled(), 256, "{:?}", outcome.climb.path());
    assert_near_best(&Server { wait: 0.1, ..GOOD }, 8.0);
    assert_near_best(&Server { wait: 0.001, ..GOOD }, 3.0);
}

#[test]
fn a_server_that_works_on_one_at_a_time_is_not_flooded() {
    for work in [0.0001, 0.002, 0.02] {
        let outcome = assert_near_best(&Server { work, ..GOOD }, 20.0);
        assert!(outcome.climb.settled() <= 8 && outcome.most <= 8, "{work}: {:?}", outcome.climb.path());
    }
}

#[test]
fn as_many_as_a_server_has_cores_for() {
    for (cores, wait) in [(2, 0.0), (6, 0.0), (16, 0.002), (3, 0.01), (24, 0.0)] {
        let outcome = assert_near_best(&Server { work: 0.004, wait, cores, ..GOOD }, 20.0);
        let knee = cores as f64 * (0.004 + wait) / 0.004;
        assert!((outcome.climb.settled() as f64) < 2.5 * knee.max(4.0), "{cores}: {:?}", outcome.climb.path());
    }
}

#[test]
fn noise_leads_nobody_astray() {
    for server in [
        Server { wait: 0.02, noise: 0.4, ..GOOD },
        Server { work: 0.002, noise: 0.4, ..GOOD },
        Server { work: 0.004, cores: 12, noise: 0.4, ..GOOD },
    ] {
        assert_near_best(&server, 30.0);
    }
}

#[test]
fn where_calls_are_refused_it_goes_back_and_stays_below() {
    for refuses in [1, 3, 6, 20] {
        let outcome = run(&Server { wait: 0.02, refuses, ..GOOD }, 4, 9.0);
        let settled = outcome.climb.settled();
        assert!(settled <= refuses, "{refuses}: {:?}", outcome.climb.path());
        assert!(settled as f64 >= 0.79 * refuses as f64, "{refuses}: {:?}", outcome.climb.path());
        // Each excursion is noticed at once: it costs the calls of one moment.
        assert!(outcome.failures <= 3 * 8, "{refuses}: {}", outcome.failures);
    }
}

#[test]
fn a_number_at_which_calls_failed_is_tried_again_much_later() {
    let server = Server { wait: 0.02, refuses: 6, ..GOOD };
    let outcome = run(&server, 4, 120.0);
    assert!((2..60).contains(&outcome.failures), "{}", outcome.failures);
    // All in all next to nothing is lost by it.
    assert!(outcome.calls as f64 >= 0.9 * server.rate(6) * 120.0, "{} {:?}", outcome.calls, outcome.climb.path());
}

#[test]
fn where_calls_are_left_it_goes_back_to_those_that_are_not() {
    for threads in [1, 3, 6, 20] {
        let outcome = run(&Server { wait: 0.02, threads, ..GOOD }, 4, 9.0);
        let settled = outcome.climb.settled();
        assert!(settled <= threads && settled as f64 >= 0.79 * threads as f64, "{threads}: {:?}", outcome.climb.path());
    }
}

#[test]
fn one_connection_at_a_time_is_one_in_flight() {
    let outcome = run(&Server { work: 0.002, single: true, ..GOOD }, 4, 5.0);
    assert_eq!((outcome.climb.settled(), outcome.most), (1, 1), "{:?}", outcome.climb.path());
}

#[test]
fn a_short_run_is_hardly_worse_than_one_that_stays_where_it_begins() {
    for server in
        [Server { work: 0.002, ..GOOD }, Server { wait: 0.02, ..GOOD }, Server { work: 0.004, cores: 4, ..GOOD }]
    {
        for seconds in [0.2, 0.5, 1.0, 2.0] {
            let calls = run(&server, 4, seconds).calls as f64;
            assert!(calls >= 0.9 * server.rate(4) * seconds, "{calls} in {seconds} s");
        }
    }
}
