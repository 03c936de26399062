//! `filter --in-place`: the mailbox is somebody's mail, and other programs deliver to it meanwhile.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::process::Signal;
use serde_json::json;

use super::harness::*;

/// A folder with this mailbox in it.
fn inbox(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("inbox");
    fs::write(&path, content).expect("room");
    (folder, path)
}

fn in_place(server: &Server, path: &Path) -> Run {
    let mut run = filter(server, ["--in-place"]);
    run.command().arg(path);
    run
}

/// Delivers as procmail and Postfix do, under dotlock and kernel lock; returns whether it got them at once.
fn deliver(path: &Path, mail: &[u8]) -> bool {
    let dotlock = path.with_extension("lock");
    if File::options().write(true).create_new(true).open(&dotlock).is_err() {
        return false;
    }
    let mut mailbox = File::options().append(true).open(path).expect("there");
    let locked = rustix::fs::fcntl_lock(&mailbox, FlockOperation::NonBlockingLockExclusive).is_ok();
    if locked {
        mailbox.write_all(mail).expect("room");
    }
    drop(mailbox);
    fs::remove_file(dotlock).expect("ours");
    locked
}

#[test]
fn inode_and_mode_stay_and_nothing_else_is_left() {
    let server = Server::good();
    let (folder, path) = inbox(&sample());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("ours");
    let before = fs::metadata(&path).expect("there");
    let ended = in_place(&server, &path).ends_with(0);
    assert!(ended.out.is_empty());
    let after = fs::metadata(&path).expect("there");
    assert_eq!((before.ino(), before.mode(), before.uid()), (after.ino(), after.mode(), after.uid()));
    assert_only_verdicts_added(&sample(), &fs::read(&path).expect("there"), 25);
    assert_eq!(names(folder.path()), ["inbox"]);
    // And once more: the same verdicts, or others that make it shorter.
    let once = fs::read(&path).expect("there");
    in_place(&server, &path).ends_with(0);
    assert_same(&once, &fs::read(&path).expect("there"));
    in_place(&Server::scoring(0.0), &path).ends_with(0);
    assert_only_verdicts_added(&sample(), &fs::read(&path).expect("there"), 25);
    assert_eq!(names(folder.path()), ["inbox"]);
}

#[test]
fn mail_delivered_meanwhile_is_kept() {
    let server = Server::with_rule(json!({ "has": "no 5 here", "do": "hold" }));
    // One mailbox ends as it should, and one lacks its last line end.
    for end in ["\n\n", "\n", ""] {
        let content = [mailbox(1, 9).trim_ascii_end(), end.as_bytes()].concat();
        let (folder, path) = inbox(&content);
        let held = server.count("held");
        let running = in_place(&server, &path).start();
        if held == 0 {
            server.wait_for("held", 1);
            // While messages are classified nobody is locked out.
            assert!(deliver(&path, &mailbox(50, 2)));
            server.release();
        }
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let later = if held == 0 { mailbox(50, 2) } else { Vec::new() };
        assert_only_verdicts_added(&[content, later].concat(), &fs::read(&path).expect("there"), 9);
        assert_eq!(names(folder.path()), ["inbox"]);
    }
}

#[test]
fn a_mailbox_rewritten_by_somebody_else_is_read_anew() {
    let server = Server::with_rule(json!({ "has": "no 5 here", "do": "hold" }));
    let (folder, path) = inbox(&mailbox(1, 9));
    let running = in_place(&server, &path).start();
    server.wait_for("held", 1);
    // A mail reader expunges a message.
    fs::write(&path, mailbox(4, 6)).expect("room");
    server.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&mailbox(4, 6), &fs::read(&path).expect("there"), 6);
    assert!(ended.err.contains("6 messages:"), "{}", ended.err);
    assert_eq!(names(folder.path()), ["inbox"]);
}

#[test]
fn a_mailbox_shortened_while_it_is_read_is_read_anew() {
    let server = Server::with_rule(json!({ "has": "no 5 here", "do": "hold" }));
    // More than is under way at once, so that reading has not come to the end.
    let large =
        [&b"From a@b.c Mon Jan  5 10:00:01 2004\nSubject: large\n\n"[..], &b"text\n".repeat(8 << 20), b"\n"].concat();
    let (folder, path) = inbox(&[mailbox(1, 9), large].concat());
    let report = folder.path().join("report");
    let mut run = in_place(&server, &path);
    run.command().arg("--report").arg(&report);
    let running = run.start();
    server.wait_for("held", 1);
    fs::write(&path, mailbox(1, 4)).expect("room");
    server.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("truncated") && ended.err.contains("4 messages:"), "{}", ended.err);
    assert_only_verdicts_added(&mailbox(1, 4), &fs::read(&path).expect("there"), 4);
    assert_eq!(fs::read_to_string(&report).expect("there").lines().count(), 4);
    assert_eq!(names(folder.path()), ["inbox", "report"]);
}

#[test]
fn the_report_may_go_into_a_pipe() {
    let server = Server::good();
    let (_folder, path) = inbox(&mailbox(1, 9));
    let mut run = in_place(&server, &path);
    run.command().args(["--report", "/dev/stdout"]);
    let ended = run.ends_with(0);
    assert_eq!(ended.out.iter().filter(|byte| **byte == b'\n').count(), 9);
    assert_only_verdicts_added(&mailbox(1, 9), &fs::read(&path).expect("there"), 9);
}

#[test]
fn what_another_program_made_of_a_mailbox_after_a_kill_stays() {
    let server = Server::good();
    let (folder, path) = inbox(&mailbox(50, 2));
    // Killed while it rewrote a mailbox of 100 bytes; then that was emptied, and new mail came.
    fs::write(folder.path().join(".inbox.hamsift-recovery-0-500-100"), mailbox(1, 9)).expect("room");
    fs::write(folder.path().join("inbox.hamsift-saved"), "earlier").expect("room");
    let ended = in_place(&server, &path).ends_with(0);
    assert!(ended.err.contains("left as it is") && ended.err.contains("inbox.hamsift-saved-2"), "{}", ended.err);
    assert_only_verdicts_added(&mailbox(50, 2), &fs::read(&path).expect("there"), 2);
    assert_eq!(names(folder.path()), ["inbox", "inbox.hamsift-saved", "inbox.hamsift-saved-2"]);
    assert_eq!(fs::read(folder.path().join("inbox.hamsift-saved")).expect("there"), b"earlier");
}

#[test]
fn a_failing_server_leaves_the_mail_as_it_was() {
    let (folder, path) = inbox(&mailbox(1, 9));
    let mut run = hamsift(["filter", "--in-place", "-s", &dead_url(), "--retries", "0"]);
    run.command().arg(&path);
    run.ends_with(75);
    assert_same(&mailbox(1, 9), &fs::read(&path).expect("there"));
    assert_eq!(names(folder.path()), ["inbox"]);
}

#[test]
fn several_mailboxes_are_rewritten_and_a_bad_one_does_not_stop_the_rest() {
    let server = Server::good();
    let (folder, a) = inbox(&mailbox(1, 2));
    let (b, c) = (folder.path().join("binary"), folder.path().join("c"));
    fs::write(&b, b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0\0").expect("room");
    fs::write(&c, mailbox(3, 2)).expect("room");
    let mut run = filter(&server, ["--in-place"]);
    run.command().args([&a, &b, &c]);
    run.ends_with(65);
    assert_only_verdicts_added(&mailbox(1, 2), &fs::read(&a).expect("there"), 2);
    assert_only_verdicts_added(&mailbox(3, 2), &fs::read(&c).expect("there"), 2);
    assert_eq!(fs::read(&b).expect("there").len(), 25);
    assert_eq!(names(folder.path()), ["binary", "c", "inbox"]);
}

#[test]
fn what_cannot_be_rewritten_is_refused() {
    let server = Server::good();
    let (folder, path) = inbox(&zstd::encode_all(&mailbox(1, 2)[..], 1).expect("a Vec"));
    let packed = fs::read(&path).expect("there");
    let ended = in_place(&server, &path).end();
    assert!(ended.code != Some(0) && ended.err.contains("packed"), "{ended:?}");
    assert_same(&packed, &fs::read(&path).expect("there"));
    filter(&server, ["--in-place", "-"]).stdin(mailbox(1, 1)).ends_with(64);
    in_place(&server, &folder.path().join("missing")).ends_with(66);
    assert_eq!(names(folder.path()), ["inbox"]);
}

#[test]
fn a_link_is_followed_and_stays_one() {
    let server = Server::good();
    let (folder, path) = inbox(&mailbox(1, 2));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("inbox", &link).expect("room");
    in_place(&server, &link).ends_with(0);
    assert!(link.symlink_metadata().expect("there").is_symlink());
    assert_only_verdicts_added(&mailbox(1, 2), &fs::read(&path).expect("there"), 2);
}

#[test]
fn an_interrupted_run_leaves_the_mail_as_it_was() {
    let server = Server::with_rule(json!({ "has": "no 5 here", "do": "hold" }));
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (folder, path) = inbox(&mailbox(1, 9));
        let before = server.count("held");
        let running = in_place(&server, &path).start();
        server.wait_for("held", before + 1);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        assert_same(&mailbox(1, 9), &fs::read(&path).expect("there"));
        assert_eq!(names(folder.path()), ["inbox"]);
    }
}

/// Another program delivers, breaking the dead one's lock as it would after a while.
fn deliver_later(path: &Path, mail: &[u8]) {
    let _ = fs::remove_file(path.with_extension("lock"));
    assert!(deliver(path, mail));
}

/// Our own delivery, which finds out for itself that the lock's owner is dead.
fn deliver_by_hamsift(path: &Path, mail: &[u8]) {
    let mut run = hamsift(["deliver", "--no-classify", "--lock-timeout=5", "--unsure"]);
    run.command().arg(path);
    run.stdin(mail).ends_with(0);
}

/// Kills runs of `--in-place`, each when `ripe` says so of the run's folder and number, has mail delivered, and sees to
/// it that the next run makes all good. Returns how many were killed, and how many of them while the mailbox was being
/// rewritten.
fn kill_and_go_on(kills: u32, deliver: fn(&Path, &[u8]), ripe: impl Fn(&Path, &Running, u32, Duration)) -> (u32, u32) {
    // Forged fields that are taken out or renamed make the mailbox shorter or longer, and no server is needed.
    let content = String::from_utf8(mailbox(1, 12_000)).expect("text");
    let content = content.replace("Subject: ", "X-Spambayes-Classification: ham; 0.00\nSubject: ");
    let (mut killed, mut rewriting) = (0, 0);
    for (option, new) in [("-q", ""), ("--keep-forged", "X-Old-Spambayes-Classification: ham; 0.00\n")] {
        let want = content.replace("X-Spambayes-Classification: ham; 0.00\n", new);
        let want = [want.as_bytes(), &mailbox(50_000, 1)].concat();
        let run = |path: &Path| {
            let mut run = hamsift(["filter", "--in-place", "-s", "http://127.0.0.1:1", "--max-size=1", option]);
            run.command().arg(path);
            run
        };
        // How long a whole run takes.
        let (_folder, path) = inbox(content.as_bytes());
        let started = Instant::now();
        run(&path).ends_with(0);
        let whole = started.elapsed();
        for number in 0..kills {
            let (folder, path) = inbox(content.as_bytes());
            let running = run(&path).start();
            ripe(folder.path(), &running, number, whole);
            running.signal(Signal::KILL);
            killed += u32::from(running.end().signal.is_some());
            deliver(&path, &mailbox(50_000, 1));
            let ended = run(&path).ends_with(0);
            rewriting += u32::from(ended.err.contains("broken off"));
            assert_same(&want, &fs::read(&path).expect("there"));
            let left: Vec<_> = names(folder.path()).into_iter().filter(|name| !name.starts_with(".hamsift-")).collect();
            assert_eq!(left, ["inbox"], "after {number}");
        }
    }
    (killed, rewriting)
}

#[test]
fn killed_at_any_moment_nothing_is_lost_and_the_next_run_ends_it() {
    // Not to synchronise with anything: any moment will do.
    for deliver in [deliver_later, deliver_by_hamsift] {
        let (killed, _) = kill_and_go_on(12, deliver, |_, _, number, whole| std::thread::sleep(whole * number / 12));
        assert!(killed > 12, "{killed}");
    }
}

#[test]
fn killed_while_it_rewrites_nothing_is_lost_and_the_next_run_ends_it() {
    for deliver in [deliver_later, deliver_by_hamsift] {
        let (_, rewriting) = kill_and_go_on(8, deliver, |folder, running, number, _| {
            // Watched without a pause: the copy is there for a moment only.
            while !running.has_ended() && !names(folder).iter().any(|name| name.contains("recovery")) {}
            let further = Instant::now() + Duration::from_micros(300) * number;
            while Instant::now() < further {}
        });
        assert!(rewriting > 0, "{rewriting}");
    }
}

#[test]
fn the_lock_of_a_killed_run_is_not_in_the_way() {
    let server = Server::with_rule(json!({ "nth": 1, "do": "hold" }));
    let (folder, path) = inbox(&mailbox(1, 3));
    let running = in_place(&server, &path).start();
    server.wait_for("held", 1);
    running.signal(Signal::KILL);
    let pid = running.pid();
    assert_eq!(running.end().signal, Some(9));
    // As if it had been killed while it held its lock.
    let host = rustix::system::uname();
    fs::write(path.with_extension("lock"), format!("{pid} {}\n", host.nodename().to_string_lossy())).expect("room");
    let ended = in_place(&server, &path).ends_with(0);
    assert!(ended.err.contains("stale lock"), "{}", ended.err);
    assert!(!names(folder.path()).contains(&"inbox.lock".to_owned()));
}

#[test]
fn a_half_message_is_cut_off_before_the_mailbox_is_rewritten() {
    let server = Server::good();
    let whole = mailbox(1, 3);
    let (folder, path) = inbox(&[&whole[..], &mailbox(7, 1)[..70]].concat());
    let mut dead = std::process::Command::new("true").spawn().expect("true");
    dead.wait().expect("ended");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let note = format!("append {} 100 0 0 From a@b.example Mon Jan  5 10:00:00 2004", whole.len());
    fs::write(path.with_extension("lock"), format!("{} {host}\n{note}\n", dead.id())).expect("room");
    let ended = in_place(&server, &path).ends_with(0);
    assert!(ended.err.contains("cut off 70 bytes"), "{}", ended.err);
    assert_only_verdicts_added(&whole, &fs::read(&path).expect("there"), 3);
    assert_eq!(names(folder.path()), ["inbox"]);
}
