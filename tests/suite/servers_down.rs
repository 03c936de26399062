//! `filter` and servers that fail: nothing is lost, nothing is mixed up, and the run ends soon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::harness::*;

#[test]
fn messages_that_the_server_fails_on_pass_unchanged_and_the_others_do_not_notice() {
    let input = mailbox(0, 30);
    for (rule, said) in [
        (json!({ "do": "fault", "text": "out of paper" }), "out of paper"),
        (json!({ "do": "short" }), ""),
        (json!({ "do": "status", "status": "302 Found", "location": "http://127.0.0.1:1/" }), "redirect"),
        (json!({ "do": "status", "status": "404 Not Found" }), "no path"),
        (json!({ "do": "status", "status": "500 Internal Server Error" }), "500"),
        (json!({ "do": "status", "status": "204 No Content" }), "204"),
        (json!({ "do": "garbage", "text": "<html>hello</html>" }), ""),
        (json!({ "do": "garbage", "text": "" }), ""),
        (json!({ "do": "garbage", "text": "<!DOCTYPE a [<!ENTITY b 'c'>]><methodResponse/>" }), ""),
    ] {
        println!("{rule}");
        let mut rule = rule;
        rule["has"] = Value::from("no 7 here");
        let server = Server::with_rule(rule);
        let ended = filter(&server, ["-n", "4"]).stdin(input.clone()).ends_with(75);
        assert_only_verdicts_added(&input, &ended.out, 29);
        assert!(ended.err.contains("message 8") && ended.err.contains(said), "{}", ended.err);
        assert!(ended.err.contains("1 unclassified"), "{}", ended.err);
        assert_eq!(server.count("request"), 30, "an answer began, so nothing is asked twice");
    }
}

#[test]
fn a_connection_closed_without_an_answer_is_tried_again() {
    // The first call on it fails, whatever the message.
    let (server, input) = (Server::with_rule(json!({ "nth": 5, "do": "close" })), mailbox(0, 12));
    let ended = filter(&server, ["-n", "1"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 12);
    assert_eq!(server.count("request"), 13);
    // A message that always fails is given up, and the others are not.
    let server = Server::with_rule(json!({ "has": "no 7 here", "do": "close" }));
    let ended = filter(&server, ["-n", "2", "--retries", "1"]).stdin(input.clone()).ends_with(75);
    assert_only_verdicts_added(&input, &ended.out, 11);
}

#[test]
fn a_message_that_the_server_hangs_on_costs_only_its_own_verdict() {
    let input = mailbox(0, 40);
    // The very first one, too, which is the one that finds out what the server can do.
    for hangs in ["no 7 here", "no 0 here"] {
        let server = Server::with_rule(json!({ "has": hangs, "do": "hang" }));
        let ended = filter(&server, ["-n", "4", "--timeout", "3"]).stdin(input.clone()).ends_with(75);
        assert_only_verdicts_added(&input, &ended.out, 39);
    }
}

#[test]
fn a_server_that_is_not_there_costs_seconds_not_hours() {
    let (input, started) = (mailbox(0, 2000), Instant::now());
    let ended = hamsift(["filter", "-s", &dead_url()]).stdin(input.clone()).ends_with(75);
    assert_same(&input, &ended.out);
    assert!(ended.err.contains("2000 unclassified") && ended.err.lines().count() < 12, "{}", ended.err);
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[test]
fn a_server_that_accepts_and_never_answers_is_given_up() {
    let (server, input, started) = (Server::with_rule(json!({ "do": "hang" })), mailbox(0, 300), Instant::now());
    let ended = filter(&server, ["-n", "2", "--timeout", "1"]).stdin(input.clone()).ends_with(75);
    assert_same(&input, &ended.out);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn of_two_servers_one_may_be_dead() {
    let (server, input) = (Server::good(), mailbox(0, 50));
    for urls in [[dead_url(), server.url().to_owned()], [server.url().to_owned(), dead_url()]] {
        let ended = hamsift(["filter", "-s", &urls[0], "-s", &urls[1]]).stdin(input.clone()).ends_with(0);
        assert_only_verdicts_added(&input, &ended.out, 50);
    }
}

#[test]
fn of_two_servers_one_may_never_answer() {
    let (good, deaf, input) = (Server::good(), Server::with_rule(json!({ "do": "hang" })), mailbox(0, 30));
    for n in ["1", "4"] {
        let arguments = ["filter", "-n", n, "--timeout", "4", "-s", deaf.url(), "-s", good.url()];
        let ended = hamsift(arguments).stdin(input.clone()).ends_with(0);
        assert_only_verdicts_added(&input, &ended.out, 30);
    }
}

#[test]
fn of_two_servers_one_may_be_something_else() {
    let (good, input) = (Server::good(), mailbox(0, 50));
    for rule in [
        json!({ "do": "status", "status": "404 Not Found" }),
        json!({ "do": "status", "status": "403 Forbidden" }),
        json!({ "do": "status", "status": "302 Found", "location": "http://127.0.0.1:1/" }),
        json!({ "do": "garbage", "text": "<html>hello</html>" }),
    ] {
        println!("{rule}");
        let other = Server::with_rule(rule);
        for n in ["1", "4"] {
            let arguments = ["filter", "-n", n, "-s", other.url(), "-s", good.url()];
            let ended = hamsift(arguments).stdin(input.clone()).ends_with(0);
            assert_only_verdicts_added(&input, &ended.out, 50);
            assert_eq!(ended.err.matches("asking the others").count(), 1, "{}", ended.err);
        }
        // Nobody else is there: no call is repeated.
        let ended = hamsift(["filter", "-s", other.url(), "-s", other.url()]).stdin(mailbox(0, 2)).ends_with(75);
        assert_same(&mailbox(0, 2), &ended.out);
    }
}

#[test]
fn of_two_servers_one_may_fall_silent() {
    let (first, second) =
        (Server::start(&json!({ "workers": 1, "rules": [{ "nth": 5, "do": "hang" }] })), Server::good());
    let input = mailbox(0, 60);
    let arguments = ["filter", "-n", "1", "--timeout", "2", "-s", first.url(), "-s", second.url()];
    let ended = hamsift(arguments).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 60);
    // A message that both hang on costs its own verdict alone.
    let slow = Server::with_rule(json!({ "has": "no 7 here", "do": "hang" }));
    let first = Server::start(&json!({ "workers": 1, "rules": [{ "has": "no 7 here", "do": "hang" }] }));
    let arguments = ["filter", "-n", "1", "--timeout", "2", "-s", first.url(), "-s", slow.url()];
    let ended = hamsift(arguments).stdin(input.clone()).ends_with(75);
    assert_only_verdicts_added(&input, &ended.out, 59);
}

#[test]
fn a_server_killed_in_the_middle_loses_nothing() {
    let (mut first, second) = (Server::good(), Server::good());
    let input = mailbox(0, 3000);
    let arguments = ["filter", "-n", "4", "-s", first.url(), "-s", second.url()];
    let running = hamsift(arguments).stdin(input.clone()).start();
    first.wait_for("request", 50);
    first.kill();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&input, &ended.out, 3000);
    // Alone, it takes the verdicts of what comes after it along, and no message.
    let mut alone = Server::good();
    let running = filter(&alone, ["-n", "4"]).stdin(input.clone()).start();
    alone.wait_for("request", 50);
    alone.kill();
    let ended = running.end();
    assert_eq!(ended.code, Some(75), "{}", ended.err);
    let (kept, classified) = without_verdicts(&ended.out);
    assert_same(&input, &kept);
    assert!((40..3000).contains(&classified), "{classified}");
}

#[test]
fn no_answer_is_ever_taken_for_that_of_another_message() {
    // After a time-out the late answer arrives on a connection that nobody uses any more.
    let rules: Vec<_> = (0..60)
        .step_by(7)
        .map(|number| json!({ "has": format!("no {number} here"), "do": "delay", "seconds": 1.2 }))
        .collect();
    let server = Server::start(&json!({ "rules": rules }));
    let input = mailbox(0, 60);
    let plain = filter(&Server::good(), [""; 0]).stdin(input.clone()).ends_with(0).out;
    let (want, arguments) = (verdicts(&plain), ["--method", "filter", "-n", "3", "--timeout", "1", "--retries", "0"]);
    let ended = filter(&server, arguments).stdin(input.clone()).ends_with(75);
    assert_same(&input, &without_verdicts(&ended.out).0);
    let messages = String::from_utf8(ended.out).expect("text");
    let messages: Vec<_> = messages.split("From a@").skip(1).collect();
    for (message, want) in messages.iter().zip(&want) {
        assert!(!message.contains("Classification") || message.contains(want), "{message} {want}");
    }
}
