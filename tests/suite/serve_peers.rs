//! `hamsift serve` beside other programs: clients of all kinds, a proxy, systemd. Those that may be missing are asked
//! for by `cargo test -- --ignored`.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::harness::*;
use super::served::*;

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
# A request packed by Python's client.
packing = xmlrpc.client.Transport()
packing.encode_threshold = 100
assert ServerProxy(sys.argv[1] + "/", transport=packing).filter(big).data == s.filter(big).data
print("good")
"#;
    assert_eq!(python(&served, script), "good\n");
    served.stop();
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

#[test]
#[ignore = "needs systemd"]
fn systemd_takes_the_units_and_hands_over_sockets() {
    let folder = tempfile::tempdir().expect("room");
    let program = env!("CARGO_BIN_EXE_hamsift");
    for (kind, name) in [("service", "hamsift.service"), ("socket", "hamsift.socket")] {
        let text = hamsift(["serve", &format!("--print-unit={kind}")]).ends_with(0).out;
        let text = String::from_utf8(text).expect("text");
        let text = text.replace("ExecStart=hamsift ", &format!("ExecStart={program} "));
        fs::write(folder.path().join(name), text).expect("written");
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "hamsift.service", "hamsift.socket"]).current_dir(folder.path());
    let out = verify.output().expect("systemd-analyze");
    let complaints = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !complaints.contains("hamsift"), "{complaints}");

    let (db, socket) = (database(folder.path()), folder.path().join("s.sock"));
    let mut activate = Command::new("systemd-socket-activate");
    activate.arg("-l").arg(&socket).args([program, "serve", "--db", &db]).stderr(Stdio::null());
    let mut child = activate.spawn().expect("systemd-socket-activate");
    let deadline = Instant::now() + DEADLINE;
    while !socket.exists() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let url = format!("unix:{}", socket.display());
    let ended = hamsift(["filter", "-s", &url]).stdin(mailbox(0, 5)).start().end();
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("ours").code(), Some(0));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&mailbox(0, 5), &ended.out, 5);
}
