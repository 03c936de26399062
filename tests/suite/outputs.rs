//! `filter`: where messages go, and the exit codes of trouble with that.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::json;

use super::harness::*;

/// A mailbox with two messages of each class.
fn of_all_classes() -> Vec<u8> {
    let message =
        |score: &str| format!("From a@b.example Mon Jan  5 10:00:00 2004\nX-Score: {score}\nSubject: x\n\nbody\n\n");
    ["0.01", "0.5", "0.99", "0.95", "0.2", "0.1"].map(message).concat().into_bytes()
}

#[test]
fn only_the_classes_asked_for_are_written() {
    let server = Server::good();
    let only = |classes: &str| verdicts(&filter(&server, ["--only", classes]).stdin(of_all_classes()).ends_with(0).out);
    assert_eq!(only("spam,unsure"), ["unsure; 0.50", "spam; 0.99", "spam; 0.95", "unsure; 0.20"]);
    assert_eq!(only("ham"), ["ham; 0.01", "ham; 0.10"]);
}

#[test]
fn sorting_writes_a_mailbox_per_class_and_overwrites_none() {
    let server = Server::start(&json!({ "rules": [{ "has": "bad luck", "do": "fault" }] }));
    let folder = tempfile::tempdir().expect("room");
    let to = folder.path().join("new/sorted");
    let bad = b"From a@b.example Mon Jan  5 10:00:00 2004\nA: 1\n\nbad luck\n\n";
    let input = [&of_all_classes()[..], bad].concat();
    let run = || filter(&server, ["--sort", to.to_str().expect("UTF-8")]).stdin(input.clone());
    let ended = run().ends_with(75);
    assert!(ended.out.is_empty());
    assert_eq!(names(&to), ["ham.mbox", "spam.mbox", "unclassified.mbox", "unsure.mbox"]);
    let read = |name: &str| fs::read(to.join(name)).expect("written");
    assert_eq!(verdicts(&read("ham.mbox")), ["ham; 0.01", "ham; 0.10"]);
    assert_eq!(verdicts(&read("unsure.mbox")), ["unsure; 0.50", "unsure; 0.20"]);
    assert_eq!(verdicts(&read("spam.mbox")), ["spam; 0.99", "spam; 0.95"]);
    assert_same(bad, &read("unclassified.mbox"));
    let again = run().ends_with(73);
    assert!(again.err.contains("ham.mbox"), "{}", again.err);
    assert_eq!(verdicts(&read("ham.mbox")).len(), 2);
}

#[test]
fn an_output_file_appears_whole_and_alone() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let path = folder.path().join("out");
    fs::write(&path, "old").expect("room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("ours");
    let ended = filter(&server, ["-o", path.to_str().expect("UTF-8")]).stdin(sample()).ends_with(0);
    assert!(ended.out.is_empty());
    assert_only_verdicts_added(&sample(), &fs::read(&path).expect("there"), 25);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn no_output_may_be_an_input_or_another_output() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let (mbox, link) = (folder.path().join("mbox"), folder.path().join("link"));
    fs::write(&mbox, sample()).expect("room");
    std::os::unix::fs::symlink(&mbox, &link).expect("room");
    let mbox = mbox.to_str().expect("UTF-8");
    for option in ["-o", "--report", "--stats"] {
        for output in [mbox, link.to_str().expect("UTF-8")] {
            filter(&server, [option, output, mbox]).ends_with(64);
        }
    }
    // The shell's `hamsift filter mbox >> mbox`.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamsift"));
    let append = fs::File::options().append(true).open(mbox).expect("there");
    let status = command.args(["filter", "-s", server.url(), mbox]).stdout(append).stderr(Stdio::null()).status();
    assert_eq!(status.expect("it runs").code(), Some(64));
    assert_same(&sample(), &fs::read(mbox).expect("there"));
}

#[test]
fn no_output_may_be_what_the_verdicts_come_from() {
    let folder = tempfile::tempdir().expect("room");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (ham, spam, db) = (at("ham"), at("spam"), at("db"));
    fs::write(&ham, sample()).expect("room");
    fs::write(&spam, of_all_classes()).expect("room");
    hamsift(["train", "-q", "--db", &db, "--ham", &ham, "--spam", &spam]).stdin("").ends_with(0);
    let before = fs::read(&db).expect("made");
    for option in ["-o", "--report", "--stats"] {
        for used in [&ham, &spam] {
            hamsift(["filter", "--ham", &ham, "--spam", &spam, option, used]).stdin(sample()).ends_with(64);
        }
        hamsift(["filter", "--db", &db, option, &db]).stdin(sample()).ends_with(64);
    }
    hamsift(["db", "--db", &db, "export", &db]).ends_with(64);
    assert_same(&sample(), &fs::read(&ham).expect("there"));
    assert_same(&of_all_classes(), &fs::read(&spam).expect("there"));
    assert_same(&before, &fs::read(&db).expect("there"));
}

#[test]
fn a_file_that_may_not_grow_is_like_a_full_disk() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    fs::write(folder.path().join("in"), of_all_classes().repeat(200)).expect("room");
    let run = |arguments: &str| {
        let script = format!("ulimit -f 8; exec \"$0\" {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_hamsift")]).current_dir(folder.path());
        command.env("HAMSIFT_SERVER", server.url()).stdin(Stdio::null());
        command.output().expect("it runs")
    };
    for arguments in ["filter -o out in", "filter --in-place in", "filter --sort sorted in", "filter in > all"] {
        let ended = run(arguments);
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(74), "{arguments}: {told}");
        assert!(told.contains("File too large"), "{arguments}: {told}");
    }
    assert_eq!(run("pipe < in > one").status.code(), Some(74));
    assert_eq!(run("train --db db --ham in").status.code(), Some(73));
    assert_same(&of_all_classes().repeat(200), &fs::read(folder.path().join("in")).expect("there"));
    let left = names(folder.path());
    assert!(!left.iter().any(|name| name.contains(".hamsift-") || name.ends_with(".lock")), "{left:?}");
}

#[test]
fn what_cannot_be_created_is_73() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let path = folder.path().join("no/such/folder");
    for option in ["-o", "--report", "--stats"] {
        let ended = filter(&server, [option, path.to_str().expect("UTF-8")]).stdin(sample()).ends_with(73);
        assert!(ended.err.contains("no/such/folder") && ended.out.is_empty(), "{option}: {}", ended.err);
    }
    let file = folder.path().join("file");
    fs::write(&file, "").expect("room");
    filter(&server, ["--sort", file.to_str().expect("UTF-8")]).stdin(sample()).ends_with(73);
    assert_eq!(server.count("accept"), 0);
}

#[test]
fn a_full_device_is_74() {
    let server = Server::good();
    for arguments in [["-o", "/dev/full"], ["--report", "/dev/full"], ["--stats", "/dev/full"]] {
        let ended = filter(&server, arguments).stdin(sample()).ends_with(74);
        assert!(ended.err.contains("cannot write"), "{}", ended.err);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamsift"));
    command.args(["filter", "-s", server.url()]).arg(file("testdata/sample/small.mbox"));
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux");
    let output = command.stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(74), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_a_broken_run_has_done_does_not_look_complete() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let path = folder.path().join("out");
    let packed = zstd::encode_all(&mailbox(0, 20_000)[..], 1).expect("a Vec");
    let arguments = ["--max-size", "1", "-o", path.to_str().expect("UTF-8")];
    filter(&server, arguments).stdin(&packed[..packed.len() / 2]).ends_with(65);
    assert_eq!(names(folder.path()), ["out.partial"]);
    assert!(mailbox(0, 20_000).starts_with(&fs::read(folder.path().join("out.partial")).expect("there")));
}

#[test]
fn what_of_the_answer_is_taken_over_can_be_chosen() {
    let input = "From a@b.example Mon Jan  5 10:00:00 2004\r\nSubject: x\r\n\r\nbody\r\n";
    let server = Server::scoring(0.95);
    let applied = |what: &str| {
        let out = filter(&server, ["--apply", what]).stdin(input).ends_with(0).out;
        String::from_utf8(out).expect("text")
    };
    assert_eq!(
        applied("message"),
        "From a@b.example Mon Jan  5 10:00:00 2004\r\nSubject: x\nX-Spambayes-Classification: spam; 0.95\n\nbody\n"
    );
    assert_eq!(applied("subject"), input.replace("x\r\n", "x\r\nX-Spambayes-Classification: spam; 0.95\r\n"));
}

#[test]
fn usage_errors_are_64_and_a_missing_classifier_78() {
    for arguments in [
        vec!["filter", "-s", "http://h", "-n", "0"],
        vec!["filter", "-s", "http://h", "-n", "-1"],
        vec!["filter", "-s", "http://h", "-n", "many"],
        vec!["filter", "-s", "http://h", "-n", ""],
        vec!["filter", "-s", "ftp://h"],
        vec!["filter", "--no-such-option"],
        vec!["filter", "-s", "http://h", "--in-place"],
        vec!["filter", "-s", "http://h", "--in-place", "-o", "x", "y"],
        vec!["filter", "-s", "http://h", "--header", "Subject"],
        vec!["no-such-command"],
        vec![],
    ] {
        let ended = hamsift(&arguments).stdin("From a\n").ends_with(64);
        assert!(ended.out.is_empty() && !ended.err.is_empty(), "{arguments:?}");
    }
    let ended = hamsift(["filter"]).stdin(sample()).ends_with(78);
    assert!(ended.err.contains("-s") && ended.err.contains("HAMSIFT_SERVER") && ended.out.is_empty(), "{}", ended.err);
}

#[test]
fn the_environment_names_the_server_and_the_command_line_wins() {
    let (server, other) = (Server::scoring(0.5), Server::scoring(0.95));
    let run =
        |arguments: &[&str]| hamsift(arguments).env("HAMSIFT_SERVER", other.url()).stdin(mailbox(1, 1)).ends_with(0);
    assert_eq!(verdicts(&run(&["filter"]).out), ["spam; 0.95"]);
    assert_eq!(verdicts(&run(&["filter", "-s", server.url()]).out), ["unsure; 0.50"]);
}

#[test]
fn very_many_connections_are_capped_with_a_note() {
    let server = Server::good();
    let ended = filter(&server, ["-n", "99999999999999999999"]).stdin(mailbox(1, 1)).end();
    // More than fits 64 bits is no number; less is capped.
    assert_eq!(ended.code, Some(64));
    let ended = filter(&server, ["-n", "1000000"]).stdin(mailbox(1, 3)).ends_with(0);
    assert!(ended.err.contains("-n 256 is the most"), "{}", ended.err);
}

#[test]
fn help_version_and_completions_are_no_errors() {
    for arguments in [vec!["--help"], vec!["--version"], vec!["filter", "--help"], vec!["completions", "bash"]] {
        let ended = hamsift(&arguments).ends_with(0);
        assert!(!ended.out.is_empty() && ended.err.is_empty(), "{arguments:?}");
    }
}
