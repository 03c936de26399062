//! What a run takes of the machine, and how it ends when its output does.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::*;

/// The value of a field in `/proc/PID/status`.
fn status(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find(|line| line.split(':').next() == Some(name)).expect("Linux has it");
    line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
#[cfg(target_os = "linux")]
fn threads_and_sockets_are_few_and_nothing_is_forked() {
    for n in [1u64, 4, 16] {
        let server = Server::start(&json!({ "rules": [{ "has": "no 90 here", "do": "hold" }] }));
        let running = filter(&server, ["--method=filter", "-n", &n.to_string()]).stdin(mailbox(0, 100)).start();
        server.wait_for("held", 1);
        let threads = status(running.pid(), "Threads");
        assert!(threads <= n + 6, "-n {n}: {threads} threads");
        let sockets = fs::read_dir(format!("/proc/{}/fd", running.pid())).expect("it runs").flatten();
        let sockets = sockets.filter_map(|fd| fs::read_link(fd.path()).ok());
        let sockets = sockets.filter(|to| to.to_string_lossy().starts_with("socket:")).count() as u64;
        // The signal handler has a pair of its own.
        assert!(sockets <= n + 2, "-n {n}: {sockets} sockets");
        for task in fs::read_dir(format!("/proc/{}/task", running.pid())).expect("it runs").flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            assert_eq!(children.trim(), "");
        }
        server.release();
        assert_eq!(running.end().code, Some(0));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_mailbox_nor_behind_a_slow_message() {
    // 80 MB behind a message that is answered last.
    let server = Server::start(&json!({ "score": 0.0, "rules": [{ "has": "no 2 here", "do": "hold" }] }));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamsift"));
    command.env_clear().args(["filter", "-q", "--max-size", "20K", "--method=filter", "-s", server.url()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let large = format!("From a@b.example Mon Jan  5 10:00:00 2004\nSubject: large\n\n{}\n\n", "text\n".repeat(8000));
    let (head, length) = (mailbox(0, 6), mailbox(0, 6).len() + 2000 * large.len());
    let (sender, fed) = channel();
    let feeding = thread::spawn(move || {
        stdin.write_all(&head).expect("it reads");
        (0..2000).for_each(|_| stdin.write_all(large.as_bytes()).expect("it reads"));
        sender.send(()).expect("somebody waits");
        stdin
    });
    let reading = thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()).expect("a pipe"));
    server.wait_for("request", 6);
    // More than enough time to take it all in, if nothing held it back.
    assert!(fed.recv_timeout(Duration::from_secs(2)).is_err(), "all was read behind a message without an answer");
    server.release();
    fed.recv_timeout(DEADLINE).expect("it goes on");
    let peak = status(child.id(), "VmHWM");
    drop(feeding.join().expect("no panic"));
    let read = reading.join().expect("no panic");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(read as usize, length + 6 * "X-Spambayes-Classification: ham; 0.00\n".len());
    assert!(peak < 64 << 10, "{peak} kB");
}

#[test]
fn a_reader_who_leaves_ends_the_run_at_once_and_quietly() {
    // The input never ends, and the server hangs on a later message.
    let server = Server::with_rule(json!({ "has": "no 30 here", "do": "hang" }));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamsift"));
    command.env_clear().args(["filter", "-s", server.url(), "-n", "2"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(&mailbox(0, 40)).expect("it reads");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert_eq!(lines.next().and_then(Result::ok).as_deref(), Some("From a@b.example Mon Jan  5 10:00:00 2004"));
    let started = Instant::now();
    drop(lines);
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut err = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
        sender.send((child.wait().expect("ours"), err))
    });
    let (status, err) = receiver.recv_timeout(DEADLINE).expect("it ends though its input does not");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    drop(stdin);
}

#[test]
fn help_into_a_closed_pipe_is_no_panic() {
    for arguments in [vec!["--help"], vec!["filter", "--help"], vec!["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output =
            Command::new(env!("CARGO_BIN_EXE_hamsift")).args(&arguments).stdout(writer).output().expect("it runs");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{arguments:?}");
    }
}
