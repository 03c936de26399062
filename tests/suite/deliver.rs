//! `deliver`: a message is in its place whole or not at all, and the exit code says which.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::*;

pub(super) const MAIL: &str =
    "Return-Path: <erin@a.example>\nSubject: x\nMessage-ID: <1@a.example>\n\nFrom here on: text\n";

pub(super) struct Spool(tempfile::TempDir);

impl Spool {
    pub(super) fn new() -> Spool {
        Spool(tempfile::tempdir().expect("room"))
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).expect(name)
    }

    /// All mail to this place, whatever its class.
    pub(super) fn to(&self, place: &str, more: &[&str]) -> Run {
        let mut run = hamsift(["deliver", "--no-classify", "--unsure", place]);
        run.command().args(more).current_dir(self.0.path()).env("HOME", self.0.path()).env("PATH", "/usr/bin:/bin");
        run.stdin(MAIL)
    }
}

/// The messages of an mbox, without their From_ lines.
pub(super) fn messages(content: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = content.match_indices("\n\nFrom ").map(|(at, _)| at + 2).collect();
    if content.starts_with("From ") {
        starts.insert(0, 0);
    }
    starts.push(content.len());
    starts.windows(2).map(|pair| content[pair[0]..pair[1]].split_once('\n').map_or("", |(_, text)| text)).collect()
}

#[test]
fn each_class_has_its_place_and_copies() {
    let spool = Spool::new();
    for (score, place) in [(0.01, "ham"), (0.5, "unsure"), (0.99, "spam")] {
        let server = Server::scoring(score);
        let mut run = hamsift(["deliver", "-s", server.url(), "--ham", "ham", "--ham", "copy/", "--unsure", "unsure"]);
        run.command().args(["--spam", "spam"]).current_dir(spool.0.path());
        run.stdin(MAIL).ends_with(0);
        let content = spool.read(place);
        assert!(content.starts_with("From erin@a.example "), "{content}");
        assert!(
            content.contains(&format!("X-Spambayes-Classification: {place}; {score:.2}\n\n>From here")),
            "{content}"
        );
        assert_eq!(fs::metadata(spool.at(place)).expect("there").mode() & 0o777, 0o600);
    }
    assert_eq!(names(&spool.at("copy/new")).len(), 1);
    assert_eq!(names(spool.0.path()), ["copy", "ham", "spam", "unsure"]);
}

#[test]
fn a_dead_server_is_no_reason_to_keep_mail_back_unless_asked_for() {
    let spool = Spool::new();
    let run = |more: &[&str]| {
        let mut run = hamsift(["deliver", "-s", &dead_url(), "--retries=0", "--unsure", "inbox", "--ham", "x"]);
        run.command().args(more).current_dir(spool.0.path()).env("USER", "nobody-here");
        run.stdin(format!("X-Spambayes-Classification: ham; 0.00\n{MAIL}"))
    };
    run(&["--on-error=tempfail"]).ends_with(75);
    assert!(names(spool.0.path()).is_empty());
    let ended = run(&[]).ends_with(0);
    assert!(ended.err.contains("not classified"), "{}", ended.err);
    assert!(!spool.read("inbox").contains("X-Spambayes"), "a forged verdict");
}

#[test]
fn everything_that_goes_wrong_is_75_and_all_input_is_read() {
    let spool = Spool::new();
    fs::create_dir(spool.at("plain")).expect("room");
    fs::create_dir(spool.at("open")).expect("room");
    fs::set_permissions(spool.at("open"), fs::Permissions::from_mode(0o1777)).expect("ours");
    symlink("../real", spool.at("open/link")).expect("room");
    symlink("nowhere", spool.at("dangling")).expect("room");
    fs::write(spool.at("two"), "").expect("room");
    fs::hard_link(spool.at("two"), spool.at("names")).expect("room");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, spool.at("fifo"), rustix::fs::FileType::Fifo, mode, 0).expect("room");
    let large = [MAIL.as_bytes(), &vec![b'x'; 3 << 20]].concat();
    for (place, more, code) in [
        ("none/inbox", &[][..], 75),
        ("plain", &[], 75),
        ("open/link", &[], 75),
        ("dangling", &[], 75),
        ("two", &[], 75),
        ("fifo", &[], 75),
        ("fifo/", &[], 75),
        ("/dev/full", &[], 75),
        ("|exit 1", &[], 75),
        ("|exec no-such-program", &[], 75),
        ("|kill -9 $$", &[], 75),
        ("|sleep 100", &["--command-timeout=0.1"], 75),
        ("!-oQ/tmp", &[], 75),
        ("!a@b.example", &["--sendmail=/none"], 75),
        ("inbox", &["--nonsense"], 75),
        ("inbox", &["--lock=nonsense"], 75),
        ("inbox", &["-d", "no-such-user-here"], 67),
        ("/dev/null", &[], 0),
        ("|true", &[], 0),
    ] {
        let mut run = spool.to(place, more);
        let mut child = run.command().stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &large).expect("all is read");
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{place} {more:?}: {err}");
        assert!(code == 0 || !err.is_empty());
    }
    assert_eq!(names(spool.0.path()), ["dangling", "fifo", "names", "open", "plain", "two"]);
}

#[test]
fn what_cannot_be_written_whole_leaves_no_trace() {
    let spool = Spool::new();
    let old = "From a@b.example Mon Jan  5 10:00:00 2004\n\nno newline";
    fs::write(spool.at("inbox"), old).expect("room");
    let large = format!("{MAIL}{}", "0123456789abcde\n".repeat(20_000));
    for place in ["inbox", "new", "md/"] {
        let mut run = spool.to(place, &[]);
        let program = run.command().get_program().to_owned();
        let arguments: Vec<_> = run.command().get_args().map(ToOwned::to_owned).collect();
        let mut limited = Command::new("/bin/sh");
        limited.args(["-c", "ulimit -f 100; exec \"$@\"", "sh"]).arg(program).args(arguments);
        limited.current_dir(spool.0.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = limited.spawn().expect("a shell");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), large.as_bytes()).expect("all is read");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(spool.read("inbox"), old);
    assert!(names(&spool.at("md/new")).is_empty() && names(&spool.at("md/tmp")).is_empty());
    // Nor an empty mailbox where there was none.
    assert_eq!(names(spool.0.path()), ["inbox", "md"]);
}

#[test]
fn held_locks_are_waited_for_within_a_limit() {
    let spool = Spool::new();
    fs::write(spool.at("inbox"), "").expect("room");
    let soon = ["--lock-timeout=0.3"];
    fs::write(spool.at("inbox.lock"), "0").expect("room");
    spool.to("inbox", &soon).ends_with(75);
    // Old enough, by what was asked for.
    let age = std::time::SystemTime::now() - Duration::from_secs(30);
    File::options().write(true).open(spool.at("inbox.lock")).and_then(|f| f.set_modified(age)).expect("ours");
    let ended = spool.to("inbox", &["--stale-lock=20"]).ends_with(0);
    assert!(ended.err.contains("stale lock"), "{}", ended.err);
    let held = File::options().write(true).open(spool.at("inbox")).expect("there");
    rustix::fs::fcntl_lock(&held, FlockOperation::LockExclusive).expect("free");
    let started = Instant::now();
    spool.to("inbox", &soon).ends_with(75);
    assert!(started.elapsed() < Duration::from_secs(10));
    spool.to("inbox", &["--lock=dot"]).ends_with(0);
    // A signal ends the waiting.
    let running = spool.to("inbox", &[]).start();
    while Path::new(&format!("/proc/{}", running.pid())).exists() && !spool.at("inbox.lock").exists() {
        if started.elapsed() > Duration::from_secs(2) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(75));
    assert_eq!(messages(&spool.read("inbox")).len(), 2);
    assert_eq!(names(spool.0.path()), ["inbox"]);
}

#[test]
fn the_sender_cannot_make_lines_of_its_own() {
    let spool = Spool::new();
    for sender in ["alice@b.example", "", "a b\nX-Evil: 1", "-x", "<c@d.example>"] {
        spool.to("inbox", &["-f", sender]).ends_with(0);
    }
    let content = spool.read("inbox");
    let words: Vec<_> = content.lines().filter(|l| l.starts_with("From ")).map(|l| l.split(' ').nth(1)).collect();
    let want = ["alice@b.example", "MAILER-DAEMON", "a-b-X-Evil:-1", "-x", "c@d.example"];
    assert_eq!(words, want.map(Some));
    assert_eq!(messages(&content).len(), 5);
}

#[test]
fn commands_and_sendmail_get_the_message_and_the_sender() {
    let spool = Spool::new();
    spool.to("|cat > got; echo \"$SENDER $MAIL_CLASS\" > sender", &["-f", "a@b.example"]).ends_with(0);
    assert_eq!((spool.read("got"), spool.read("sender")), (MAIL.into(), "a@b.example unclassified\n".into()));
    let sendmail = spool.at("sendmail");
    fs::write(&sendmail, "#!/bin/sh\necho \"$@\" > args\ncat > sent\n").expect("room");
    fs::set_permissions(&sendmail, fs::Permissions::from_mode(0o755)).expect("ours");
    let run = spool.to("!c@d.example e@f.example", &["-f", "", "--sendmail", sendmail.to_str().expect("UTF-8")]);
    run.stdin(format!("From x Mon Jan  5 10:00:00 2004\n{MAIL}")).ends_with(0);
    assert_eq!(spool.read("args"), "-oi -f<> -- c@d.example e@f.example\n");
    assert_eq!(spool.read("sent"), MAIL);
}

#[test]
fn a_second_copy_is_dropped_where_asked_for() {
    let spool = Spool::new();
    for _ in 0..2 {
        spool.to("inbox", &["--dedupe"]).ends_with(0);
        spool.to("other", &["--dedupe"]).ends_with(0);
    }
    for name in ["inbox", "other"] {
        assert_eq!(messages(&spool.read(name)).len(), 1);
    }
    assert_eq!(spool.read(".cache/hamsift/message-ids").lines().count(), 2);
    // Without a Message-ID nothing is a copy.
    for _ in 0..2 {
        spool.to("none", &["--dedupe=seen"]).stdin("A: 1\n\n").ends_with(0);
    }
    assert_eq!(messages(&spool.read("none")).len(), 2);
}

#[test]
fn explain_says_where_and_why_and_delivers_nothing() {
    let spool = Spool::new();
    let server = Server::scoring(0.99);
    let mut run =
        hamsift(["deliver", "--explain", "-s", server.url(), "--spam", "junk/", "--ham", "x", "--unsure", "x"]);
    run.command().current_dir(spool.0.path());
    let out = String::from_utf8(run.stdin(MAIL).ends_with(0).out).expect("text");
    for part in ["erin@a.example", "spam; 0.99", "junk/", "is made"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(names(spool.0.path()).is_empty());
}

#[test]
fn the_log_tells_what_was_delivered() {
    let spool = Spool::new();
    spool.to("inbox", &["--log=log"]).ends_with(0);
    spool.to("inbox", &["--log=json", "--log-format=json"]).ends_with(0);
    spool.to("none/x", &["--log=json", "--log-format=json"]).ends_with(75);
    let log = spool.read("log");
    let lines: Vec<_> = log.lines().collect();
    assert!(lines[0].starts_with("From erin@a.example ") && lines[1] == " Subject: x" && lines.len() == 3, "{log}");
    assert!(lines[2].starts_with("  Folder: inbox\t") && lines[2].ends_with(&MAIL.len().to_string()), "{log}");
    let json = spool.read("json");
    let json: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(json.iter().map(|entry| &entry["result"]).collect::<Vec<_>>(), [&json!("stored"), &json!("failed")]);
    assert!(json[1]["error"].as_str().expect("a reason").contains("none/x"));
}

#[test]
fn a_configuration_open_to_all_is_not_used() {
    let spool = Spool::new();
    fs::create_dir_all(spool.at(".config/hamsift")).expect("room");
    let config = spool.at(".config/hamsift/config.toml");
    fs::write(&config, "").expect("room");
    spool.to("inbox", &[]).ends_with(0);
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666)).expect("ours");
    let ended = spool.to("inbox", &[]).ends_with(75);
    assert!(ended.err.contains("config.toml"), "{}", ended.err);
    assert_eq!(messages(&spool.read("inbox")).len(), 1);
}

#[test]
#[ignore = "needs procmail"]
fn procmail_delivers_to_the_same_mailbox_and_mailstat_reads_the_log() {
    let spool = Spool::new();
    let inbox = spool.at("inbox").display().to_string();
    fs::write(spool.at("rc"), format!("LOCKSLEEP=1\n:0:\n{inbox}\n")).expect("room");
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (spool, inbox) = (&spool, &inbox);
            scope.spawn(move || {
                for number in 0..10 {
                    let mail = format!("Message-ID: <{worker}.{number}@x>\n\n{}", "From here on\n".repeat(2000));
                    if worker > 1 {
                        spool.to(inbox, &["--fsync=never"]).stdin(mail).ends_with(0);
                        continue;
                    }
                    let mut procmail = Command::new("procmail");
                    // Without a sender it makes no From_ line.
                    procmail.args(["-f", "p@x", "-m"]).arg(spool.at("rc")).stdin(Stdio::piped());
                    let mut child = procmail.spawn().expect("procmail");
                    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), mail.as_bytes()).expect("read");
                    assert!(child.wait().expect("it ends").success());
                }
            });
        }
    });
    let content = spool.read("inbox");
    let whole = messages(&content).iter().filter(|text| text.matches("\n>From here on").count() == 2000).count();
    assert_eq!((messages(&content).len(), whole), (80, 80));
    for _ in 0..3 {
        spool.to("inbox", &["--log=log"]).ends_with(0);
    }
    let output = Command::new("mailstat").arg("-k").arg(spool.at("log")).output().expect("mailstat");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = format!("{} 3 inbox", 3 * MAIL.len());
    assert!(table.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == row), "{table}");
}

#[test]
fn mail_to_learn_from_is_no_destination() {
    let spool = Spool::new();
    fs::create_dir_all(spool.at(".config/hamsift")).expect("room");
    let config = spool.at(".config/hamsift/config.toml");
    let run = || {
        let mut run = hamsift(["deliver", "--no-classify"]).env("HAMSIFT_HAM", "learned").stdin(MAIL);
        run.command().current_dir(spool.0.path()).env("HOME", spool.0.path()).env("MAIL", spool.at("inbox"));
        run
    };
    fs::write(&config, "ham = \"learned\"\nspam = \"learned\"\n").expect("room");
    run().ends_with(0);
    fs::write(&config, "ham = \"learned\"\n[deliver]\nunsure = [\"one\", \"two\"]\nfsync = \"never\"\n").expect("room");
    run().ends_with(0);
    assert_eq!(names(spool.0.path()), [".config", "inbox", "one", "two"]);
    fs::write(&config, "[deliver]\nunsure = 1.5.2\n").expect("room");
    run().ends_with(75);
    assert_eq!(messages(&spool.read("inbox")).len(), 1);
}
