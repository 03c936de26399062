//! `hamsift serve` and its clients, good and bad.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::harness::*;
use super::served::*;

#[test]
fn filter_through_it_is_filter_with_the_engine() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let served = Served::start(&db, &[]);
    let engine = hamsift(["filter", "--db", &db]).stdin(sample()).ends_with(0).out;
    for n in ["1", "4", "16"] {
        let through = hamsift(["filter", "-n", n, "-s", &served.url]).stdin(sample()).ends_with(0).out;
        assert_same(&engine, &through);
        let scored = ["filter", "-n", n, "-s", &served.url, "--method", "score"];
        assert_same(&engine, &hamsift(scored).stdin(sample()).ends_with(0).out);
    }
    served.stop();
}

#[test]
fn training_needs_leave_and_lasts() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let served = Served::start(&db, &["--allow-train"]);
    let script = r#"
import sys, xmlrpc.client
s = xmlrpc.client.ServerProxy(sys.argv[1])
text = xmlrpc.client.Binary(b"Subject: quux\n\nquux teapot zebra\n")
before = s.score(text)
assert s.train_spam(text) is True and s.train_spam(text) is False
after = s.score(text)
assert after > before, (before, after)
assert s.store() is True
print(after)
"#;
    let score = python(&served, script);
    served.stop();
    let served = Served::start(&db, &[]);
    let body = call("score", "Subject: quux\n\nquux teapot zebra\n");
    let answer = served.raw(post(&body, "")).0;
    assert!(answer.contains(&format!("<double>{}", &score[..6])), "{score} {answer}");
    // What another process trains is seen as well.
    let ham = folder.path().join("ham.eml");
    fs::write(&ham, "Subject: quux\n\nquux teapot zebra\n").expect("written");
    hamsift(["train", "--db", &db, "--ham", ham.to_str().expect("UTF-8")]).ends_with(0);
    let deadline = Instant::now() + Duration::from_secs(20);
    while served.raw(post(&body, "Connection: close\r\n")).0.contains(&format!("<double>{}", &score[..6])) {
        assert!(Instant::now() < deadline, "it never notices");
    }
}

#[test]
fn a_socket_is_private_and_stale_ones_are_replaced() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let path = folder.path().join("s.sock");
    let socket = path.to_str().expect("UTF-8");
    let mut first = Served::start(&db, &["--socket", socket]);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(first.url, format!("unix:{socket}"));
    hamsift(["serve", "--db", &db, "--socket", socket]).ends_with(73);
    first.kill();
    assert!(path.exists());
    let second = Served::start(&db, &["--socket", socket]);
    let ended = hamsift(["filter", "-s", &second.url]).stdin(mailbox(0, 5)).ends_with(0);
    assert_only_verdicts_added(&mailbox(0, 5), &ended.out, 5);
    second.stop();
    assert!(!path.exists());
}

#[test]
fn a_token_opens_the_door() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "secret\n").expect("written");
    let served = Served::start(&db, &["--token-file", tokens.to_str().expect("UTF-8")]);
    let body = call("score", "A: 1\n\nb\n");
    let status = |more: &str| served.raw(post(&body, more)).0[9..12].to_owned();
    assert_eq!(status(""), "401");
    assert_eq!(status("Authorization: Bearer wrong\r\n"), "401");
    assert_eq!(status("Authorization: Bearer secret\r\n"), "200");
    let url = served.url.replace("http://", "http://me:secret@");
    hamsift(["filter", "-s", &url]).stdin(mailbox(0, 3)).ends_with(0);
    fs::write(&tokens, "other\n").expect("written");
    served.signal(Signal::HUP);
    served.line("reloaded");
    assert_eq!(
        (status("Authorization: Bearer secret\r\n"), status("Authorization: Bearer other\r\n")),
        ("401".into(), "200".into())
    );
}

#[test]
fn hangup_reads_the_configuration_again() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let options = folder.path().join("rc");
    fs::write(&options, "").expect("written");
    let served = Served::start(&db, &["--spambayesrc", options.to_str().expect("UTF-8")]);
    let body = call("score_and_filter", "A: 1\n\nb\n");
    assert!(served.raw(post(&body, "")).0.contains("unsure; 0.5"));
    fs::write(&options, "[Categorization]\nham_cutoff: 0.8\n").expect("written");
    served.signal(Signal::HUP);
    served.line("reloaded");
    assert!(served.raw(post(&body, "")).0.contains("ham; 0.5"));
}

#[test]
fn http_is_kept_to() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &["--max-body", "4K"]);
    let body = call("score", "A: 1\n\nb\n");
    let large = "x".repeat(5000);
    let chunks = |more: &str, end: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n{more}Transfer-Encoding: chunked\r\n{end}\r\n\
             {:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
    };
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let old = post(&body, "").replace("HTTP/1.1", "HTTP/1.0");
    for (about, request, status, closed) in [
        ("good", post(&body, ""), "200", false),
        ("two at once", post(&body, "") + &post(&body, ""), "200", false),
        ("closing", post(&body, "Connection: close\r\n"), "200", true),
        ("HTTP/1.0", old.clone(), "200", true),
        ("HTTP/1.0, kept", old.replace("Host", "Connection: keep-alive\r\nHost"), "200", false),
        ("chunks", chunks("", "") + smuggled, "200", true),
        ("length, then chunks", chunks("Content-Length: 4\r\n", "") + smuggled, "400", true),
        ("chunks, then length", chunks("", "content-length: 4\r\n") + smuggled, "400", true),
        ("two lengths", post(&body, "Content-Length: 4\r\n"), "400", true),
        ("no length", post(&body, "").replace("Content-Length", "X"), "411", true),
        ("a huge length", post("", "").replace("Length: 0", "Length: 42949672960"), "413", true),
        ("too much", post(&large, ""), "413", true),
        (
            "too much in chunks",
            chunks("", "").replace("0\r\n\r\n", &format!("1388\r\n{large}\r\n0\r\n\r\n")),
            "413",
            true,
        ),
        ("other path", post(&body, "").replace("/RPC2", "/x"), "404", true),
        ("GET", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), "405", true),
        ("no host", post(&body, "").replace("Host: localhost\r\n", ""), "400", true),
        ("foreign host", post(&body, "").replace("localhost", "evil.example"), "403", true),
        ("a page", post(&body, "Origin: http://evil.example\r\n"), "403", true),
        ("a form", post(&body, "").replace("text/xml", "text/plain"), "415", true),
        ("other coding", post(&body, "Content-Encoding: br\r\n"), "415", true),
        ("bad gzip", post(&body, "Content-Encoding: gzip\r\n"), "400", true),
        ("long header lines", post(&body, &format!("X: {}\r\n", "x".repeat(20_000))), "431", true),
        ("rubbish", "\u{1}\u{2}\r\n\r\n".into(), "400", true),
    ] {
        let (answer, was_closed) = served.raw(&request);
        assert_eq!((answer.get(9..12), was_closed), (Some(status), closed), "{about}: {answer}");
        let answers = answer.matches("HTTP/1.").count();
        assert_eq!(answers, if about == "two at once" { 2 } else { 1 }, "{about}: {answer}");
        assert!(!answer.to_ascii_lowercase().contains("access-control"), "{about}");
        assert!(served.raw(post(&body, "")).0.contains("<double>"), "a good call after {about}");
    }
    let health = served.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").0;
    assert!(health.starts_with("HTTP/1.1 200") && health.ends_with("ok\n"), "{health}");
    let page = served.raw("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").0;
    assert!(page.contains("hamsift_http_responses_total{status=\"413\"} 3\n"), "{page}");
    served.stop();
}

#[test]
fn slow_clients_are_left_and_silent_ones_make_room() {
    let folder = tempfile::tempdir().expect("room");
    let more = ["--header-timeout", "0.5", "--idle-timeout", "30", "--max-connections", "20"];
    let served = Served::start(&database(folder.path()), &more);
    let mut slow = served.connect();
    slow.write_all(b"POST / HTTP/1.1\r\nHost: local").expect("sent");
    let idle: Vec<_> = (0..60).map(|_| served.connect()).collect();
    let started = Instant::now();
    assert!(served.raw(post(&call("score", "A: 1\n\nb\n"), "")).0.contains("<double>"));
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(slow.read(&mut [0; 100]).expect("closed"), 0, "nothing is said to a slow client");
    drop(idle);
    served.stop();
}

#[test]
fn those_that_never_send_a_whole_header_make_room_and_nobody_else_has_to() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let more = ["--header-timeout", "600", "--idle-timeout", "600", "--max-connections", "20"];
    let served = Served::start(&db, &more);
    let request = post(&call("score", "A: 1\n\nb\n"), "");
    let half = |count: usize| {
        let send = |_| {
            let mut slow = served.connect();
            slow.write_all(b"POST / HTTP/1.1\r\nHost: local").expect("sent");
            slow
        };
        (0..count).map(send).collect::<Vec<_>>()
    };
    let mut slow = half(60);
    for _ in 0..3 {
        assert!(served.raw(&request).0.contains("<double>"));
    }
    assert_eq!(slow[0].read(&mut [0; 100]).expect("closed"), 0);
    drop(slow);
    served.stop();
    // Twenty calls in the middle of their bodies: there is nobody to go, and one more has to wait.
    let served = Served::start(&db, &more);
    let asking = post(&call("score", "A: 1\n\nb\n"), "Expect: 100-continue\r\n");
    let (begin, end) = asking.split_at(asking.len() - 5);
    let begin = |_| {
        let mut busy = served.connect();
        busy.write_all(begin.as_bytes()).expect("sent");
        // It has the header lines then.
        let mut answer = [0; 25];
        busy.read_exact(&mut answer).expect("told to go on");
        assert!(answer.starts_with(b"HTTP/1.1 100"));
        busy
    };
    let mut busy: Vec<_> = (0..20).map(begin).collect();
    let mut late = served.connect();
    late.write_all(request.as_bytes()).expect("sent");
    // Word that somebody has to go is out when they are answered.
    for stream in &mut busy {
        stream.write_all(end.as_bytes()).expect("still there");
        let mut answer = [0; 4096];
        assert_ne!(stream.read(&mut answer).expect("answered"), 0);
    }
    assert_ne!(late.read(&mut [0; 4096]).expect("answered"), 0);
    drop((busy, late));
    for _ in 0..20 {
        assert!(served.raw(&request).0.contains("<double>"), "nobody goes where there is room");
    }
    served.stop();
}

#[test]
fn clients_that_come_again_and_again_do_not_keep_it() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &["--grace", "600"]);
    let address = served.authority().to_owned();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let address = address.clone();
            std::thread::spawn(move || while std::net::TcpStream::connect(&address).is_ok() {})
        })
        .collect();
    assert!(served.stop() < Duration::from_secs(10));
    clients.into_iter().for_each(|client| client.join().expect("refused in the end"));
}

#[test]
fn it_stops_when_calls_are_done() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &["-v"]);
    let body = call("score", "A: 1\n\nb\n");
    let (mut busy, idle) = (served.connect(), served.connect());
    let request = post(&body, "");
    let (begin, end) = request.split_at(request.len() - 5);
    busy.write_all(begin.as_bytes()).expect("sent");
    // It has the beginning by the time it has answered another.
    assert!(served.raw(post(&body, "")).0.contains("<double>"));
    let line = served.line("score");
    assert!(line.contains("8 bytes, unsure, ") && !line.contains("A: 1"), "{line}");
    served.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    busy.write_all(end.as_bytes()).expect("still there");
    let mut answer = String::new();
    busy.read_to_string(&mut answer).expect("answered and closed");
    assert!(answer.contains("<double>") && answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
    drop(idle);
    assert!(served.stop() < Duration::from_secs(10));
}

#[test]
fn it_waits_no_longer_than_it_may() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let request = post(&call("score", "A: 1\n\nb\n"), "");
    let half_way = |served: &Served| {
        let mut busy = served.connect();
        busy.write_all(&request.as_bytes()[..request.len() - 5]).expect("sent");
        // It has that by the time it has answered another.
        assert!(served.raw(&request).0.contains("<double>"));
        busy
    };
    let served = Served::start(&db, &["--grace", "0.2"]);
    let _busy = half_way(&served);
    served.signal(Signal::TERM);
    assert!(served.line("--grace is over").contains("1 connections open"));
    assert!(served.stop_was_told() < Duration::from_secs(10));
    let served = Served::start(&db, &["--grace", "600"]);
    let _busy = half_way(&served);
    served.signal(Signal::TERM);
    // It accepts no more from the moment it has understood the first signal.
    let deadline = Instant::now() + DEADLINE;
    while std::net::TcpStream::connect(served.authority()).is_ok() {
        assert!(Instant::now() < deadline);
    }
    assert!(served.stop() < Duration::from_secs(10), "a second signal ends it at once");
}

#[test]
fn bodies_that_come_at_once_have_a_limit_together() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &["--max-body", "1M"]);
    let request = post(&call("score", &format!("A: 1\n\n{}\n", "word ".repeat(190_000))), "");
    let (most, last) = request.as_bytes().split_at(request.len() - 1);
    let mut held: Vec<_> = (0..2).map(|_| served.connect()).collect();
    held.iter_mut().for_each(|stream| stream.write_all(most).expect("sent"));
    let body = request.len() - request.find("\r\n\r\n").expect("a head") - 4;
    let taken = format!("\nhamsift_body_bytes {}\n", 2 * (body - 1));
    let deadline = Instant::now() + DEADLINE;
    while !served.raw("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").0.contains(&taken) {
        assert!(Instant::now() < deadline, "not {taken:?}");
    }
    let third = served.raw(&request).0;
    assert!(third.starts_with("HTTP/1.1 503 "), "two bodies of 0.95 MB leave no room for a third in 2 MB: {third}");
    for mut stream in held {
        stream.write_all(last).expect("sent");
        let mut start = [0; 12];
        stream.read_exact(&mut start).expect("answered");
        assert_eq!(&start, b"HTTP/1.1 200");
    }
    assert!(served.raw(&request).0.contains("<double>"), "room again");
    served.stop();
}

#[test]
fn what_is_wrong_is_said_before_it_runs() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let err = |more: &[&str], code| hamsift(["serve", "--db", &db].iter().chain(more)).ends_with(code).err;
    assert!(err(&["--listen", "0.0.0.0:0"], 64).contains("--allow-remote"));
    assert!(err(&["--listen", "nonsense:x"], 64).contains("nonsense"));
    assert!(err(&["--token-file", "/nowhere"], 78).contains("/nowhere"));
    hamsift(["serve", "--db", "/nowhere/t.db"]).ends_with(78);
    let unit = hamsift(["serve", "--print-unit"]).ends_with(0).out;
    assert!(String::from_utf8_lossy(&unit).contains("ExecStart=hamsift serve"));
    let unit = hamsift(["serve", "--print-unit=socket"]).ends_with(0).out;
    assert!(String::from_utf8_lossy(&unit).contains("ListenStream=127.0.0.1:65000"));
}
