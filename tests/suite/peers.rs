//! Other programs: why one of them is replaced, why one must not be used, and those that hamsift works beside. Those
//! that may be missing are asked for by `cargo test -- --ignored`.

use std::fs;
use std::process::{Command, Stdio};

use super::harness::*;

/// Runs another program over an input.
fn peer(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("input");
    fs::write(&path, input).expect("room");
    let stdin = fs::File::open(path).expect("there");
    let output = Command::new(program).args(arguments).stdin(stdin).stderr(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {}", output.status);
    output.stdout
}

/// formail starts the next `cat` before the last one has ended, and all of them write to one pipe. Nothing tells the
/// user: the exit code is 0. This is the reason why hamsift exists.
#[test]
#[ignore = "needs formail"]
fn formail_in_parallel_mixes_messages_and_filter_does_not() {
    let server = Server::good();
    // Messages larger than a pipe's atomic write, so that they can be torn apart.
    let large = |number: usize| {
        format!(
            "From a@b.example Mon Jan  5 10:00:00 2004\nSubject: {number}\n\n{}\n",
            format!("no {number} here\n").repeat(3000)
        )
    };
    let input: String = (0..200).map(large).collect();
    let mixed = (0..5).any(|_| peer("formail", &["-n", "4", "-s", "cat"], input.as_bytes()) != input.as_bytes());
    assert!(mixed, "formail -n 4 gave the right output five times in a row");
    let ended = filter(&server, ["-n", "4"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(input.as_bytes(), &ended.out, 200);
}

#[test]
#[ignore = "needs formail"]
fn formail_counts_as_filter_does_under_its_rule() {
    let names = names(&file("testdata/mbox"));
    // It does not know CRLF, and what it makes of text before the first message is a message.
    let odd = ["crlf", "preamble", "byte-order-mark"];
    let golden = names.iter().filter(|name| name.ends_with(".in") && !odd.iter().any(|odd| name.starts_with(odd)));
    let golden = golden.map(|name| (name.clone(), fs::read(file("testdata/mbox").join(name)).expect("committed")));
    for (name, input) in golden.chain([("sample".to_owned(), sample())]) {
        let theirs = peer("formail", &["-s", "sh", "-c", "cat >/dev/null; echo x"], &input).len() / 2;
        let err = hamsift(["filter", "--dry-run", "--from-rule=formail"]).stdin(input).ends_with(0).err;
        assert_eq!(err.split_whitespace().nth(1), Some(theirs.to_string().as_str()), "{name}");
    }
}

#[test]
#[ignore = "needs procmail"]
fn procmail_takes_pipe_as_a_filter() {
    let (server, folder) = (Server::scoring(0.95), tempfile::tempdir().expect("room"));
    let home = folder.path().to_str().expect("UTF-8");
    let rc = format!(
        "SHELL=/bin/sh\nMAILDIR={home}\nDEFAULT={home}/inbox\nLOGFILE={home}/log\n\n\
         :0fw\n| {} pipe -s {}\n\n:0:\n* ^X-Spambayes-Classification: spam\nspam\n",
        env!("CARGO_BIN_EXE_hamsift"),
        server.url()
    );
    fs::write(folder.path().join("rc"), rc).expect("room");
    let mail = mailbox(1, 1);
    peer("procmail", &["-m", &format!("{home}/rc")], &mail);
    assert_only_verdicts_added(&mail, &fs::read(folder.path().join("spam")).expect("delivered there"), 1);
}

#[test]
#[ignore = "needs haproxy"]
fn behind_haproxy_one_server_of_three_may_die() {
    let mut servers = [Server::scoring(0.5), Server::scoring(0.5), Server::scoring(0.5)];
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("haproxy.cfg");
    let (socket, backend) = (folder.path().join("front"), |number: usize| servers[number].url().replace("http://", ""));
    let config = format!(
        "defaults\n mode http\n timeout connect 1s\n timeout client 30s\n timeout server 30s\n retries 3\n option redispatch\n \
         retry-on all-retryable-errors\nfrontend f\n bind unix@{}\n default_backend b\nbackend b\n balance roundrobin\n \
         server a {} check inter 200ms\n server b {} check inter 200ms\n server c {} check inter 200ms\n",
        socket.display(),
        backend(0),
        backend(1),
        backend(2)
    );
    fs::write(&path, config).expect("room");
    let mut haproxy = Command::new("haproxy");
    haproxy.arg("-db").arg("-f").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    let mut haproxy = haproxy.spawn().expect("haproxy");
    let input = mailbox(0, 4000);
    // Its socket appears when it is ready; the retries of the first calls wait for that.
    let url = format!("unix:{}", socket.display());
    let running = hamsift(["filter", "-n", "8", "--retries", "6", "-s", &url]).stdin(input.clone()).start();
    servers[1].wait_for("request", 100);
    servers[1].kill();
    let ended = running.end();
    haproxy.kill().expect("it runs");
    haproxy.wait().expect("ours");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&input, &ended.out, 4000);
}

/// `mbox-reader` 0.2 never yields the last message of a file, and takes every line that begins with `From ` for the
/// beginning of one. It must not read anybody's mail; it is here as a peer to be measured against.
#[test]
fn the_crate_mbox_reader_loses_the_last_message() {
    let folder = tempfile::tempdir().expect("room");
    let count = |content: &[u8]| {
        let path = folder.path().join("mbox");
        fs::write(&path, content).expect("room");
        let mailbox = mbox_reader::MboxFile::from_file(&path).expect("there");
        mailbox.iter().count()
    };
    assert_eq!(count(&mailbox(1, 3)), 2);
    let text = "From a@b.example Mon Jan  5 10:00:00 2004\nSubject: x\n\nbody\n\nFrom here on it is text.\n\n";
    assert_eq!(count([text.as_bytes(), &mailbox(1, 1)].concat().as_slice()), 2);
    for (content, want) in [(mailbox(1, 3), "3"), ([text.as_bytes(), &mailbox(1, 1)].concat(), "2")] {
        let err = hamsift(["filter", "--dry-run"]).stdin(content).ends_with(0).err;
        assert_eq!(err.split_whitespace().nth(1), Some(want));
    }
}
