//! `filter`: reports, statistics, and what is said.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::harness::*;

/// Runs over the sample with `--report` and `--stats`; returns the rows and the totals.
fn reported(server: &Server, folder: &Path, more: &[&str], input: &[u8], code: i32) -> (Vec<Value>, Value, Ended) {
    let (report, stats) = (folder.join("report"), folder.join("stats"));
    let mut run =
        filter(server, ["--report", report.to_str().expect("UTF-8"), "--stats", stats.to_str().expect("UTF-8")]);
    run.command().args(more);
    let ended = run.stdin(input).ends_with(code);
    let rows = fs::read_to_string(report).expect("written");
    let rows = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let stats = serde_json::from_slice(&fs::read(stats).expect("written")).expect("JSON");
    (rows, stats, ended)
}

/// The mailbox of most tests here: text before, a verdict, a fault, a message that is too large, one without content.
fn mixed() -> Vec<u8> {
    let from = "From a@b.example Mon Jan  5 10:00:00 2004\n";
    let fault = format!("{from}Message-ID:\n <folded@b.example>\nA: 1\n\nbad luck\n\n");
    let large = format!("{from}Subject: large\n\n{}\n\n", "text\n".repeat(2000));
    [b"text before\n\n", &mailbox(1, 3)[..], fault.as_bytes(), large.as_bytes(), format!("{from}\n").as_bytes()]
        .concat()
}

fn faulty() -> Server {
    Server::start(&json!({ "rules": [{ "has": "bad luck", "do": "fault", "text": "out of\npaper" }] }))
}

#[test]
fn the_report_has_a_row_per_message_that_finds_it() {
    let (server, folder, input) = (faulty(), tempfile::tempdir().expect("room"), mixed());
    let (rows, _, _) = reported(&server, folder.path(), &["--max-size", "4K"], &input, 75);
    assert_eq!(rows.len(), 6);
    let mut at = 13;
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row["seq"], json!(number + 1));
        assert_eq!(row["offset"], json!(at), "{row}");
        at += row["length"].as_u64().expect("a length");
        assert_eq!(row["file"], json!("standard input"));
    }
    assert_eq!(at, input.len() as u64);
    assert_eq!(rows[0]["message_id"], json!("<1@b.example>"));
    assert_eq!(rows[0]["method"], json!("filter"));
    assert_eq!(rows[0]["server"].as_str().map(|url| url.starts_with(server.url())), Some(true));
    assert!(rows[0]["score"].is_number() && rows[0]["ms"].is_number() && rows[0]["class"].is_string());
    assert_eq!(rows[3]["message_id"], json!("<folded@b.example>"));
    assert!(rows[3]["error"].as_str().is_some_and(|error| error.contains("out of paper")), "{}", rows[3]);
    for name in ["class", "score", "method", "ms"] {
        assert!((3..6).all(|number| rows[number][name].is_null()), "{name}");
    }
    assert!(rows[4]["error"].is_null() && rows[5]["message_id"].is_null());
}

#[test]
fn the_statistics_add_up() {
    let (server, folder, input) = (faulty(), tempfile::tempdir().expect("room"), mixed());
    let (_, stats, ended) = reported(&server, folder.path(), &["--max-size", "4K", "-n", "2"], &input, 75);
    let number = |name: &str| stats[name].as_u64().unwrap_or_else(|| panic!("{name}: {stats}"));
    assert_eq!(number("messages"), number("classified") + number("unclassified") + number("skipped"));
    assert_eq!(number("classified"), number("ham") + number("unsure") + number("spam"));
    assert_eq!((number("classified"), number("unclassified"), number("skipped")), (3, 1, 2));
    assert_eq!(number("preamble_bytes"), 13);
    assert_eq!(number("bytes_in"), input.len() as u64);
    assert_eq!(number("bytes_out"), ended.out.len() as u64);
    assert_eq!(number("parallel"), 2);
    assert_eq!(number("connections") as usize, server.count("accept"));
    assert_eq!(number("requests") as usize, server.count("request"));
    // The last message has no header below its From_ line.
    assert_eq!((number("retries"), number("suspicious")), (0, 1));
    assert!(stats["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0) && stats["messages_per_second"].is_number());
    let latency = ["p50", "p90", "p99", "max"].map(|name| stats["latency_ms"][name].as_f64().expect("a time"));
    assert!(latency.is_sorted(), "{latency:?}");
    assert_eq!(stats["servers"][0]["classified"], json!(3));
}

#[test]
fn a_report_can_be_csv() {
    let (server, folder) = (faulty(), tempfile::tempdir().expect("room"));
    let path = folder.path().join("report.csv");
    let input = mixed();
    filter(&server, ["--report", path.to_str().expect("UTF-8")]).stdin(input.clone()).ends_with(75);
    let mut rows = csv::Reader::from_path(path).expect("written");
    let header: Vec<_> = rows.headers().expect("a header").iter().map(str::to_owned).collect();
    assert_eq!(header.join(","), "seq,file,offset,length,message_id,class,score,method,server,ms,error");
    let rows: Vec<_> = rows.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!((&rows[0][4], &rows[3][5]), ("<1@b.example>", ""));
}

#[test]
fn a_dry_run_asks_nobody_and_writes_only_reports() {
    let (server, folder, input) = (faulty(), tempfile::tempdir().expect("room"), mixed());
    let (rows, stats, _) = reported(&server, folder.path(), &["--max-size", "4K"], &input, 75);
    let out = folder.path().join("out");
    fs::remove_file(folder.path().join("report")).expect("there");
    let asked = server.count("accept");
    let (dry_rows, dry, ended) = reported(
        &server,
        folder.path(),
        &["--max-size", "4K", "--dry-run", "-o", out.to_str().expect("UTF-8")],
        &input,
        0,
    );
    assert!(ended.out.is_empty() && !out.exists());
    assert_eq!(server.count("accept"), asked);
    for name in ["messages", "preamble_bytes", "suspicious", "bytes_in"] {
        assert_eq!(stats[name], dry[name], "{name}");
    }
    assert_eq!(rows.len(), dry_rows.len());
    for (row, dry) in rows.iter().zip(&dry_rows) {
        assert!(
            ["seq", "file", "offset", "length", "message_id"].iter().all(|name| row[name] == dry[name]),
            "{row} {dry}"
        );
    }
    // And it needs no classifier.
    let err = hamsift(["filter", "--dry-run"]).stdin(input).ends_with(0).err;
    assert!(err.contains("6 messages"), "{err}");
}

#[test]
fn offsets_of_skipped_and_later_messages_are_those_of_their_mailbox() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&a, mailbox(1, 2)).expect("room");
    fs::write(&b, mailbox(3, 2)).expect("room");
    let (a, b) = (a.to_str().expect("UTF-8"), b.to_str().expect("UTF-8"));
    let (rows, _, _) = reported(&server, folder.path(), &["--skip", "1", a, b], b"", 0);
    let found: Vec<_> =
        rows.iter().map(|row| (row["seq"].clone(), row["file"].clone(), row["offset"].clone())).collect();
    let half = mailbox(1, 1).len();
    assert_eq!(
        found,
        [(json!(2), json!(a), json!(half)), (json!(3), json!(b), json!(0)), (json!(4), json!(b), json!(half))]
    );
}

#[test]
fn quiet_is_quiet_and_the_last_line_is_the_summary() {
    let server = faulty();
    assert_eq!(filter(&server, ["-q"]).stdin(sample()).ends_with(0).err, "");
    let quiet = filter(&server, ["-q"]).stdin(mixed()).ends_with(75);
    assert!(quiet.err.contains("not classified") && quiet.err.contains("message 4"), "{}", quiet.err);
    let usual = filter(&server, [""; 0]).stdin(mixed()).ends_with(75);
    let last = usual.err.lines().last().unwrap_or_default();
    assert!(
        ["ham", "unsure", "spam", "1 unclassified", "1 skipped", "messages/s", "connection"]
            .iter()
            .all(|word| last.contains(word)),
        "{last}"
    );
    let verbose = filter(&server, ["-v"]).stdin(mixed()).ends_with(75);
    assert_eq!(verbose.err.matches(" ms").count(), 4, "{}", verbose.err);
}

#[test]
fn nobody_commands_the_terminal() {
    let server = Server::with_rule(json!({ "do": "fault", "text": "\u{1b}[2J\u{7}\u{9b}31m" }));
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("\u{1b}[31mmbox");
    fs::write(&path, b"From a@b.example Mon Jan  5 10:00:00 2004\nMessage-ID: <\x1b[2J@x>\nA: 1\n\nx\n").expect("room");
    let ended = filter(&server, [Path::new("-v"), &path]).ends_with(75);
    assert!(ended.err.chars().all(|char| char == '\n' || !char.is_control()), "{:?}", ended.err);
    // Colours are for terminals, unless they are asked for.
    let colourful = filter(&server, ["--color=always"]).stdin(mailbox(1, 1)).ends_with(75);
    assert!(colourful.err.contains("\u{1b}["), "{:?}", colourful.err);
}

#[test]
fn doubtful_beginnings_are_counted_and_listed() {
    let from = "From a@b.example Mon Jan  5 10:00:00 2004\n";
    let input = format!("{from}Subject: x\n\nbody\n\n{from}no field here\n\n");
    let server = Server::good();
    let folder = tempfile::tempdir().expect("room");
    let (_, stats, ended) = reported(&server, folder.path(), &["-v"], input.as_bytes(), 0);
    assert_eq!((&stats["messages"], &stats["suspicious"]), (&json!(2), &json!(1)), "{stats}");
    assert!(ended.err.contains("message 2 at byte 60"), "{}", ended.err);
}
