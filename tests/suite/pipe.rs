//! `pipe`: one message through, whatever happens.

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::*;

const MAIL: &str = "From a@b.example Mon Jan  5 10:00:00 2004\nSubject: x\n\nbody\nFrom here on: text\n\nFrom c@d.example Mon Jan  5 10:00:00 2004\n\nend";

fn pipe(url: &str, more: &[&str]) -> Run {
    let mut run = hamsift(["pipe", "-s", url]);
    run.command().args(more);
    run.stdin(MAIL)
}

#[test]
fn the_verdict_is_added_and_nothing_else() {
    let server = Server::scoring(0.95);
    let ended = pipe(server.url(), &[]).ends_with(0);
    assert_only_verdicts_added(MAIL.as_bytes(), &ended.out, 1);
    assert_eq!(ended.err, "");
    let crlf = "Subject: x\r\n\r\nbody\r\n";
    let out = hamsift(["pipe", "-s", server.url()]).stdin(crlf).ends_with(0).out;
    assert_eq!(out, b"Subject: x\r\nX-Spambayes-Classification: spam; 0.95\r\n\r\nbody\r\n");
}

#[test]
fn the_exit_code_can_tell_the_verdict() {
    for (score, code) in [(0.99, 0), (0.01, 1), (0.5, 2)] {
        assert_only_verdicts_added(
            MAIL.as_bytes(),
            &pipe(Server::scoring(score).url(), &["--exit-code"]).ends_with(code).out,
            1,
        );
    }
    assert_same(MAIL.as_bytes(), &pipe(&dead_url(), &["--exit-code"]).ends_with(3).out);
}

#[test]
fn on_any_trouble_the_message_goes_out_unchanged() {
    for rule in [
        json!({ "do": "fault" }),
        json!({ "do": "close" }),
        json!({ "do": "short" }),
        json!({ "do": "hang" }),
        json!({ "do": "garbage", "text": "<nonsense" }),
        json!({ "do": "status", "status": "401 Unauthorized" }),
    ] {
        println!("{rule}");
        let server = Server::with_rule(rule);
        let ended = pipe(server.url(), &["--timeout", "1"]).ends_with(0);
        assert_same(MAIL.as_bytes(), &ended.out);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        let ended = pipe(server.url(), &["--timeout", "1", "--on-error", "tempfail"]).ends_with(75);
        assert!(ended.out.is_empty());
    }
    let server = Server::good();
    let ended = pipe(server.url(), &["--max-size", "10"]).ends_with(0);
    assert_same(MAIL.as_bytes(), &ended.out);
}

#[test]
fn without_a_classifier_it_is_trouble_like_any_other() {
    let ended = hamsift(["pipe"]).stdin(MAIL).ends_with(0);
    assert_same(MAIL.as_bytes(), &ended.out);
    assert!(ended.err.contains("no classifier") && ended.err.lines().count() == 1, "{}", ended.err);
    assert!(hamsift(["pipe", "--on-error=tempfail"]).stdin(MAIL).ends_with(75).out.is_empty());
    assert_same(MAIL.as_bytes(), &hamsift(["pipe", "-s", "ftp://h"]).stdin(MAIL).ends_with(0).out);
}

#[test]
fn a_usage_error_still_copies_the_message() {
    for arguments in [vec!["pipe", "--no-such-option"], vec!["pipe", "--timeout", "soon"], vec!["pipe", "a-file"]] {
        let ended = hamsift(&arguments).stdin(MAIL).ends_with(64);
        assert_same(MAIL.as_bytes(), &ended.out);
        assert!(!ended.err.is_empty());
    }
}

#[test]
fn a_server_that_never_answers_is_left_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let started = Instant::now();
    assert_same(MAIL.as_bytes(), &pipe(&url, &["--timeout", "1"]).ends_with(0).out);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn all_input_is_read_before_it_ends() {
    // Whoever writes must never see a closed pipe, even where there is nothing to be done with a message.
    let large = [MAIL.as_bytes(), &vec![b'x'; 3 << 20]].concat();
    for arguments in [vec!["pipe"], vec!["pipe", "--no-such-option"], vec!["pipe", "--on-error=tempfail"]] {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hamsift"));
        command
            .env_clear()
            .args(&arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(writer)
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("it starts");
        drop(command);
        let reading = std::thread::spawn(move || reader.read_to_end(&mut Vec::new()).expect("a pipe"));
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &large).expect("all is read");
        let read = reading.join().expect("no panic");
        assert!(read == large.len() || arguments.contains(&"--on-error=tempfail"));
        child.wait().expect("it ends");
    }
}

#[test]
fn an_empty_input_is_an_empty_output() {
    let server = Server::good();
    assert!(hamsift(["pipe", "-s", server.url()]).stdin("").ends_with(0).out.is_empty());
    assert_eq!(server.count("accept"), 0);
}

#[test]
fn forged_fields_go_even_when_the_server_fails() {
    let forged = "X-Spambayes-Classification: ham; 0.00\nSubject: x\n\nbody\n";
    let out = hamsift(["pipe", "-s", &dead_url(), "--retries", "0"]).stdin(forged).ends_with(0).out;
    assert_eq!(String::from_utf8_lossy(&out), "Subject: x\n\nbody\n");
}
