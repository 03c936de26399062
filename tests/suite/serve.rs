//! `hamsift serve` and its clients, good and bad.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::harness::*;
use super::served::*;

/// Runs Python with the server's URL as its argument.
fn python(served: &Served, script: &str) -> String {
    let out = Command::new("python3").args(["-c", script, &served.url]).output().expect("Python 3");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

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
fn pythons_client_sees_what_it_knows_of_the_original() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &[]);
    let script = r#"
import sys, xmlrpc.client
from xmlrpc.client import Binary, Fault, ServerProxy
s = ServerProxy(sys.argv[1] + "/")
text = b"Subject: x\r\n\r\nbody \xff\x00\r\n"
out = s.filter(Binary(text)).data
field, = [l for l in out.split(b"\r\n") if l.startswith(b"X-Spambayes-Classification: ")]
assert out.replace(field + b"\r\n", b"") == text, out
score, clues = s.score(Binary(text), True)
assert score == s.score(Binary(text)) and [c[0] for c in clues[:2]] == ["*H*", "*S*"], clues
both = s.score_and_filter("Subject: x\n\nb\n", "X-Junk", 0.9, 0.2)
assert isinstance(both[1], str) and "X-Junk: " in both[1], both
assert b"X-Spambayes-Evidence: " in s.filter(Binary(text), "X-Junk", 0.9, 0.2, "", True).data
assert s.formatclues(clues).startswith("'*H*': ") and "; '*S*': " in s.formatclues(clues)
assert "filter" in s.system.listMethods() and "train" not in s.system.listMethods()
assert "msg" in s.system.methodHelp("filter")
for call, text in [(lambda: s.foo(1), "<class 'Exception'>:method \"foo\" is not supported"),
                   (lambda: s.train_ham("x"), "not supported"), (lambda: s.filter(), "<class 'TypeError'>:"),
                   (lambda: s.bayes.store(), "not supported")]:
    try:
        call()
    except Fault as fault:
        assert fault.faultCode == 1 and text in fault.faultString, fault
    else:
        raise AssertionError(text)
# Many words: the answer is packed, for Python's client asks for that.
big = Binary(b"Subject: x\n\n" + b" ".join(b"word%d" % i for i in range(3000)) + b"\n")
assert s.filter(big).data.endswith(b"word2999\n")
print("good")
"#;
    assert_eq!(python(&served, script), "good\n");
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

#[test]
fn a_one_shot_client() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &[]);
    let mut command = Command::new("python3");
    command.arg(file("tests/peers/client.py")).env("SB_URL", &served.url);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python 3");
    child.stdin.take().expect("piped").write_all(&mailbox(0, 1)).expect("sent");
    let out = child.wait_with_output().expect("ended").stdout;
    assert_only_verdicts_added(&mailbox(0, 1), &out, 1);
}

/// As people have used the original: a process per message, four at a time. Each writes a file of its own, for formail
/// mixes the output of those that run at once.
#[test]
#[ignore = "needs formail"]
fn formail_with_four_clients_at_a_time() {
    const COUNT: usize = 40;
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &[]);
    let client = format!("exec python3 '{}' >\"$FILENO\"", file("tests/peers/client.py").display());
    let input = mailbox(0, COUNT);
    fs::write(folder.path().join("in"), &input).expect("written");
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("made");
    let mut formail = Command::new("formail");
    formail.args(["-n", "4", "-s", "sh", "-c", &client]).current_dir(&out).env("SB_URL", &served.url);
    let stdin = fs::File::open(folder.path().join("in")).expect("there");
    assert!(formail.env("FILENO", "000").stdin(stdin).status().expect("formail").success());
    // It may not wait for its last clients; each of them writes all at once.
    let deadline = Instant::now() + DEADLINE;
    let written = |number: usize| fs::read(out.join(format!("{number:03}"))).unwrap_or_default();
    while let Some(number) = (0..COUNT).find(|&number| written(number).is_empty()) {
        assert!(Instant::now() < deadline, "nothing of {number}");
        std::thread::yield_now();
    }
    assert_only_verdicts_added(&input, &(0..COUNT).flat_map(written).collect::<Vec<_>>(), COUNT);
    served.stop();
}

#[test]
#[ignore = "needs curl"]
fn curl_waits_for_continue_and_unpacks() {
    let folder = tempfile::tempdir().expect("room");
    let served = Served::start(&database(folder.path()), &[]);
    let body = folder.path().join("call.xml");
    fs::write(&body, call("filter", &format!("A: 1\n\n{}\n", "words and words ".repeat(200_000)))).expect("written");
    let data = format!("@{}", body.display());
    let curl = |more: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-sS", "-m", "30", "-H", "Content-Type: text/xml", "--data-binary", &data, &served.url]);
        command.args(more).output().expect("curl").stdout
    };
    let plain = curl(&["-H", "Expect: 100-continue"]);
    assert!(plain.len() > 3_000_000 && plain.ends_with(b"</methodResponse>\n"), "{}", plain.len());
    assert_same(&plain, &curl(&["--compressed"]));
}

#[test]
#[ignore = "needs haproxy"]
fn a_server_behind_a_proxy_dies_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("room");
    let db = database(folder.path());
    let mut served: Vec<_> = (0..3).map(|_| Served::start(&db, &[])).collect();
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("bound").port()
    };
    let mut config = format!(
        "defaults\n mode http\n timeout connect 1s\n timeout client 30s\n timeout server 30s\n retries 3\n option redispatch\n \
         retry-on all-retryable-errors\nfrontend f\n bind 127.0.0.1:{port}\n default_backend b\nbackend b\n balance roundrobin\n \
         option httpchk GET /healthz\n http-check send hdr Host localhost\n"
    );
    for (number, one) in served.iter().enumerate() {
        config += &format!(" server s{number} {} check inter 200ms fall 1\n", one.authority());
    }
    let path = folder.path().join("haproxy.cfg");
    fs::write(&path, config).expect("written");
    let mut proxy = Command::new("haproxy").arg("-f").arg(&path).stderr(Stdio::null()).spawn().expect("haproxy");
    let deadline = Instant::now() + DEADLINE;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    let input = mailbox(0, 6000);
    let url = format!("http://127.0.0.1:{port}");
    let running = hamsift(["filter", "-n", "8", "-s", &url]).stdin(input.clone()).start();
    // In the midst of it: some hundred calls are done.
    let busy = |one: &Served| {
        let page = one.raw("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").0;
        let line = page.lines().find_map(|line| line.strip_prefix("hamsift_call_seconds_count "));
        line.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0) > 100
    };
    while !busy(&served[1]) {
        assert!(Instant::now() < deadline);
    }
    assert!(!running.has_ended(), "too fast to be disturbed");
    served[1].kill();
    let ended = running.end();
    proxy.kill().expect("alive");
    proxy.wait().expect("ours");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&input, &ended.out, 6000);
}
