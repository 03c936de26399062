//! Signals: what is written is whole, and the run can be taken up again.

use rustix::process::Signal;
use serde_json::json;

use super::harness::*;

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let server = Server::start(&json!({ "score": 0.5, "rules": [{ "has": "no 77 here", "do": "hold" }] }));
        let input = mailbox(0, 120);
        let running = filter(&server, ["-n", "4"]).stdin(input.clone()).start();
        server.wait_for("request", 100);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        let skip = ended.err.split("--skip ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a number");
        let number: usize = skip.parse().expect("a number");
        assert!(number <= 77, "{number}");
        assert_only_verdicts_added(&mailbox(0, number), &ended.out, number);
        let rest = filter(&Server::scoring(0.5), ["--skip", skip]).stdin(input.clone()).ends_with(0).out;
        assert_only_verdicts_added(&input, &[ended.out, rest].concat(), 120);
    }
}

#[test]
fn the_number_to_go_on_with_counts_what_was_skipped_before() {
    let server = Server::with_rule(json!({ "has": "no 50 here", "do": "hold" }));
    let input = mailbox(0, 60);
    let running = filter(&server, ["-n", "2", "--skip", "20"]).stdin(input).start();
    server.wait_for("request", 40);
    running.signal(Signal::INT);
    let ended = running.end();
    assert!(ended.err.contains("to go on: --skip 50"), "{}", ended.err);
    assert_only_verdicts_added(&mailbox(20, 30), &ended.out, 30);
}

#[test]
fn a_signal_ends_a_run_whose_input_never_ends() {
    let server = Server::good();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hamsift"));
    command.env_clear().args(["filter", "-s", server.url()]).stdin(reader);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut writer, &mailbox(0, 3)).expect("it reads");
    server.wait_for("request", 2);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).expect("alive");
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().expect("ours")));
    let output = receiver.recv_timeout(DEADLINE).expect("it ends though its input does not");
    assert_eq!(output.status.code(), Some(143));
    let (kept, count) = without_verdicts(&output.stdout);
    assert!(count <= 2);
    assert_same(&mailbox(0, count), &kept);
    drop(writer);
}

#[test]
fn an_output_file_that_was_interrupted_does_not_look_complete() {
    let server = Server::with_rule(json!({ "has": "no 50 here", "do": "hold" }));
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("out");
    let running = filter(&server, ["-n", "2", "-o", path.to_str().expect("UTF-8")]).stdin(mailbox(0, 60)).start();
    server.wait_for("request", 60);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert_eq!(names(folder.path()), ["out.partial"]);
    assert_only_verdicts_added(&mailbox(0, 50), &std::fs::read(folder.path().join("out.partial")).expect("there"), 50);
}
