//! `filter` and servers that work, each in its own way.

use std::time::Instant;

use serde_json::json;

use super::harness::*;

#[test]
fn a_server_sees_exactly_as_many_connections_as_asked_for() {
    for n in [1, 4, 16] {
        // Only once n calls are there at a time is the first of them answered.
        let server = Server::with_rule(json!({ "do": "gather", "count": n }));
        let input = mailbox(0, 200);
        let n = n.to_string();
        let ended = filter(&server, ["--method", "filter", "-n", &n]).stdin(input.clone()).ends_with(0);
        assert_only_verdicts_added(&input, &ended.out, 200);
        assert_eq!((server.count("accept").to_string(), server.count("request")), (n, 200));
    }
}

#[test]
fn an_http_1_0_server_gets_a_connection_per_call() {
    let (server, input) = (Server::start(&json!({ "mode": "http10" })), mailbox(0, 40));
    let ended = filter(&server, ["-n", "4"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 40);
    assert_eq!(server.count("request"), 40);
}

#[test]
fn a_server_of_one_connection_at_a_time_starves_nobody() {
    let input = mailbox(0, 400);
    let took = |n: &str| {
        let server = Server::start(&json!({ "mode": "single" }));
        let started = Instant::now();
        let ended = filter(&server, ["-n", n]).stdin(input.clone()).ends_with(0);
        assert_only_verdicts_added(&input, &ended.out, 400);
        (started.elapsed(), ended.err)
    };
    let (alone, quiet) = took("1");
    let (together, noted) = took("8");
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
    assert_eq!(noted.lines().count(), 2, "one note and the summary: {noted}");
    // Twice as long is promised; the rest is for a busy machine.
    assert!(together.as_secs_f64() < 2.0 * alone.as_secs_f64() + 2.0, "{alone:?} {together:?}");
}

#[test]
fn a_broken_filter_method_is_replaced_by_score_with_one_note() {
    let (server, input) = (Server::start(&json!({ "py3": true, "score": 0.95 })), mailbox(0, 30));
    let ended = filter(&server, ["-n", "4"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 30);
    assert!(verdicts(&ended.out).iter().all(|verdict| verdict == "spam; 0.95"));
    assert_eq!((server.count("request filter"), server.count("request score")), (1, 30));
    assert_eq!(ended.err.matches("score").count(), 1, "{}", ended.err);
    // Who asks for `filter` by name gets no other.
    let ended = filter(&server, ["--method", "filter"]).stdin(mailbox(0, 2)).ends_with(75);
    assert_same(&mailbox(0, 2), &ended.out);
    assert_eq!(verdicts(&filter(&server, ["--method", "score"]).stdin(mailbox(0, 2)).ends_with(0).out).len(), 2);
}

#[test]
fn the_cutoffs_are_strict() {
    for (score, want) in [
        (0.0, "ham; 0.00"),
        (0.19, "ham; 0.19"),
        (0.2, "unsure; 0.20"),
        (0.9, "unsure; 0.90"),
        (0.91, "spam; 0.91"),
        (1.0, "spam; 1.00"),
    ] {
        let server = Server::scoring(score);
        let out = filter(&server, ["--method", "score"]).stdin(mailbox(0, 1)).ends_with(0).out;
        assert_eq!(verdicts(&out), [want]);
    }
}

#[test]
fn more_calls_at_once_than_the_server_has_threads_for_take_turns() {
    for count in [3, 8, 300] {
        let (server, input) = (Server::start(&json!({ "workers": 2 })), mailbox(0, count));
        let ended = filter(&server, ["-n", "8", "--timeout", "20"]).stdin(input.clone()).ends_with(0);
        assert_only_verdicts_added(&input, &ended.out, count);
    }
}

#[test]
fn a_unix_socket_is_as_good_as_a_port() {
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("socket");
    let server = Server::start(&json!({ "unix": path }));
    let input = mailbox(0, 40);
    let ended = filter(&server, ["-n", "4"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 40);
    assert!((1..=4).contains(&server.count("accept")));
}

#[test]
fn credentials_are_sent_and_never_shown() {
    let server = Server::with_rule(json!({ "has": "no 1 here", "do": "fault" }));
    let folder = tempfile::tempdir().expect("room");
    let url = server.url().replace("http://", "http://me:s%40cret@");
    let files = ["report", "stats"].map(|name| folder.path().join(name).to_str().expect("UTF-8").to_owned());
    let arguments = ["filter", "-v", "-s", &url, "--report", &files[0], "--stats", &files[1]];
    let ended = hamsift(arguments).stdin(mailbox(0, 2)).ends_with(75);
    // base64 of me:s@cret
    assert_eq!(server.count("request filter Basic bWU6c0BjcmV0"), 2, "{:?}", server.events());
    let report =
        std::fs::read_to_string(&files[0]).expect("there") + &std::fs::read_to_string(&files[1]).expect("there");
    for text in [&ended.err, &report] {
        assert!(!text.contains("cret"), "{text}");
    }
    // Nor where the server is not there.
    let dead = dead_url().replace("http://", "http://me:s%40cret@");
    let ended = hamsift(["filter", "-v", "-s", &dead, "--retries", "0"]).stdin(mailbox(0, 2)).ends_with(75);
    assert!(!ended.err.contains("cret"), "{}", ended.err);
}

#[test]
fn no_proxy_comes_between() {
    let server = Server::good();
    let mut run = filter(&server, [""; 0]).stdin(mailbox(0, 2));
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        run = run.env(name, &dead_url());
    }
    assert_eq!(verdicts(&run.ends_with(0).out).len(), 2);
}

#[test]
fn two_servers_share_the_work() {
    // Neither answers before it has seen two calls at a time.
    let rule = json!({ "do": "gather", "count": 2 });
    let (a, b) = (Server::with_rule(rule.clone()), Server::with_rule(rule));
    let input = mailbox(0, 60);
    let arguments = ["filter", "-n", "4", "--method", "filter", "-s", a.url(), "-s", b.url()];
    let ended = hamsift(arguments).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 60);
    assert_eq!(a.count("request") + b.count("request"), 60);
    assert!(a.count("request") >= 2 && b.count("request") >= 2);
}

#[test]
fn one_call_at_a_time_is_shared_too() {
    let (a, b, input) = (Server::good(), Server::good(), mailbox(0, 20));
    filter(&a, ["-n", "1", "--method", "filter", "-s", b.url()]).stdin(input).ends_with(0);
    assert_eq!((a.count("request"), b.count("request")), (10, 10));
}
