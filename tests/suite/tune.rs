//! `tune` against servers whose limits are known.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::harness::*;

fn tune<'a>(server: &Server, mail: &'a Path, more: impl IntoIterator<Item = &'a str>) -> Run {
    let mut run = hamsift(["tune", "-s", server.url()]);
    run.command().args(more).arg(mail);
    run
}

/// A file of so many short messages.
fn mail(folder: &Path, count: usize) -> std::path::PathBuf {
    let path = folder.join("in.mbox");
    fs::write(&path, mailbox(0, count)).expect("room");
    path
}

/// The cells of the table's row for a number.
fn row(text: &str, number: &str) -> Vec<String> {
    let rows = text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    rows.into_iter().find(|words| words.first().is_some_and(|word| word == number)).expect("a row of that number")
}

#[test]
fn calls_that_take_their_time_are_best_made_together() {
    let folder = tempfile::tempdir().expect("room");
    let server = Server::with_rule(json!({ "do": "delay", "seconds": 0.02 }));
    let mail = mail(folder.path(), 10);
    let ended = tune(&server, &mail, ["-n", "1,8,1", "--rounds", "1"]).ends_with(0);
    let text = String::from_utf8(ended.out).expect("text");
    assert_eq!(row(&text, "1")[4..6], ["100.0", "%"], "{text}");
    let percent: f64 = row(&text, "8")[4].parse().expect("a number");
    assert!(percent < 60.0, "{text}");
    assert!(text.contains("\nuse -n 8: ") && text.contains("\nlimited by latency: "), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("   1 ")).count(), 2, "a row and a bar: {text}");
    assert_eq!(ended.err, "");
    assert_same(&mailbox(0, 10), &fs::read(&mail).expect("there"));
}

#[test]
fn a_server_of_one_connection_at_a_time_is_found_out() {
    let folder = tempfile::tempdir().expect("room");
    let server = Server::start(&json!({ "mode": "single" }));
    let ended = tune(&server, &mail(folder.path(), 100), ["-n", "1,4", "--rounds", "1"]).ends_with(0);
    let text = String::from_utf8(ended.out).expect("text");
    assert!(text.contains("\nlimited by connections: "), "{text}");
    assert_eq!(ended.err.lines().count(), 1, "told once for all runs: {}", ended.err);
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("room");
    let path = mail(folder.path(), 3);
    let mail = path.to_str().expect("UTF-8");
    let ended = hamsift(["tune", "-s", &dead_url(), "--retries", "0", mail]).ends_with(75);
    assert_eq!(ended.out, b"");
    assert!(ended.err.contains("nothing to measure"), "{}", ended.err);
    let server = Server::with_rule(json!({ "do": "fault" }));
    assert_eq!(tune(&server, &path, []).ends_with(75).out, b"");
}

#[test]
fn what_cannot_be_measured() {
    let folder = tempfile::tempdir().expect("room");
    let (server, path) = (Server::good(), mail(folder.path(), 3));
    let mail = path.to_str().expect("UTF-8");
    for wrong in [&["-n", "0"][..], &["-n", "1,x"], &["--rounds", "0"], &["--plot", mail], &["-"], &["--parallel", "3"]]
    {
        tune(&server, &path, wrong.iter().copied()).ends_with(64);
    }
    hamsift(["tune", mail]).ends_with(78);
    tune(&server, &folder.path().join("none"), []).ends_with(66);
    tune(&server, &path, ["--plot", "/no/such/folder.svg"]).ends_with(73);
    fs::write(&path, "Not a mailbox.\n".repeat(100)).expect("room");
    tune(&server, &path, []).ends_with(65);
    fs::write(&path, "").expect("room");
    tune(&server, &path, []).ends_with(65);
    assert_eq!(server.count("request"), 0);
}

#[test]
fn what_was_measured_with_messages_left_over_is_not_saved() {
    let folder = tempfile::tempdir().expect("room");
    let config = folder.path().join("config.toml");
    fs::write(&config, "").expect("room");
    let path = config.to_str().expect("UTF-8");
    let server = Server::with_rule(json!({ "has": "no 3 here", "do": "fault" }));
    let more = ["-n", "1,2", "--rounds", "1", "--save", "--config", path];
    let ended = tune(&server, &mail(folder.path(), 10), more).ends_with(75);
    assert!(ended.err.contains("is not saved"), "{}", ended.err);
    assert_eq!(fs::read(&config).expect("there"), b"");
}

#[test]
fn the_plot_is_not_written_over_what_is_learned_from() {
    let folder = tempfile::tempdir().expect("room");
    let [ham, spam] =
        ["ham", "spam"].map(|class| folder.path().join(class).into_os_string().into_string().expect("UTF-8"));
    fs::write(&ham, mailbox(0, 3)).expect("room");
    fs::write(&spam, mailbox(3, 3)).expect("room");
    let mail = mail(folder.path(), 3);
    for over in [&ham, &spam] {
        let arguments = ["tune", "--ham", &ham, "--spam", &spam, "--plot", over, mail.to_str().expect("UTF-8")];
        hamsift(arguments).ends_with(64);
    }
    assert_same(&mailbox(0, 3), &fs::read(&ham).expect("there"));
    assert_same(&mailbox(3, 3), &fs::read(&spam).expect("there"));
}

#[test]
fn the_number_is_saved_and_nothing_else_of_the_file_changes() {
    let folder = tempfile::tempdir().expect("room");
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().expect("UTF-8");
    let old = "# ours\nquiet = false # at night\n\n[filter]\n# slow\nparallel = 99 # measured\ntimeout = 7\n";
    fs::write(path("config.toml"), old).expect("room");
    let samples = ["ham", "spam"].map(|class| file(&format!("testdata/sample/{class}.mbox")));
    let [ham, spam] = samples.map(|path| path.into_os_string().into_string().expect("UTF-8"));
    let small = file("testdata/sample/small.mbox").into_os_string().into_string().expect("UTF-8");
    let arguments = ["tune", "--ham", &ham, "--spam", &spam, "-n", "2", "--rounds", "1", "--save", "--plot"];
    let more = [&path("plot.svg"), "--config", &path("config.toml"), &small];
    let ended = hamsift(arguments.into_iter().chain(more.map(|word| word as &str))).ends_with(0);
    assert!(ended.err.contains("parallel = 2 is saved"), "{}", ended.err);
    assert_eq!(fs::read_to_string(path("config.toml")).expect("there"), old.replace("99", "2"));
    let plot = fs::read_to_string(path("plot.svg")).expect("written");
    assert!(plot.starts_with("<?xml") && plot.ends_with("</svg>\n"), "{plot}");
    let dump = hamsift(["--config", &path("config.toml"), "--config-dump", "filter"]).ends_with(0).out;
    assert!(String::from_utf8_lossy(&dump).contains("parallel = \"2\"  # "), "{}", String::from_utf8_lossy(&dump));
}
