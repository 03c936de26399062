use std::fs;
use std::time::Duration;

use super::*;
use crate::lock;

const OLD: &str = "From a@b Mon Jan  5 10:00:00 2004\nA: 1\n\nold\n\n";
const NEW: &str = "From c@d Tue Jan  6 10:00:00 2004\nB: 2\n\nnew\n\n";

struct Spool {
    folder: tempfile::TempDir,
    warnings: Vec<String>,
}

fn deliveries(stop: &dyn Fn() -> bool) -> How<'_> {
    let lock::How { kinds, wait, stale, .. } = lock::How::default();
    let (command_wait, sendmail) = (Duration::ZERO, "/none".into());
    How { locks: kinds, lock_wait: wait, stale, sync: true, command_wait, sendmail, stop }
}

/// What is noted of a message of this length at this place.
fn note(at: usize, length: usize, line: &str) -> String {
    let (stored, came) = (Fingerprint::of(NEW.as_bytes()), Fingerprint::of(b"B: 2\n\nnew\n"));
    format!("append {} {line}", Stretch { at: at as u64, length: length as u64, stored, came }.in_words())
}

impl Spool {
    fn new(content: &str) -> Spool {
        let folder = tempfile::tempdir().expect("room");
        fs::write(folder.path().join("inbox"), content).expect("written");
        Spool { folder, warnings: Vec::new() }
    }

    fn append(&mut self, text: &str, stop: &dyn Fn() -> bool) -> Result<(), DeliverError> {
        let path = self.folder.path().join("inbox");
        let how = lock::How { wait: Duration::ZERO, delivers: true, ..lock::How::default() };
        let mut locked = Locked::take(&path, &how, &mut |text| self.warnings.push(text)).expect("free");
        mend(&mut locked, &path, &mut |text| self.warnings.push(text)).expect("mended");
        append(&mut locked, &path, text.as_bytes(), &Fingerprint::of(b"came"), &deliveries(stop))
    }

    fn content(&self) -> String {
        fs::read_to_string(self.folder.path().join("inbox")).expect("there")
    }

    /// A lock of somebody who is no more.
    fn abandon(&self, note: &str) {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        child.wait().expect("ended");
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let lock = format!("{} {host}\n{note}\n", child.id());
        fs::write(self.folder.path().join("inbox.lock"), lock).expect("written");
    }
}

#[test]
fn what_is_missing_at_the_end_is_added_first() {
    for (old, between) in [
        (OLD, ""),
        ("", ""),
        ("From a@b Mon Jan  5 10:00:00 2004\nA: 1\n\nold\n", "\n"),
        ("From a@b Mon Jan  5 10:00:00 2004\nA: 1\n\nold", "\n\n"),
        ("From a@b Mon Jan  5 10:00:00 2004\r\nA: 1\r\n\r\nold\r\n", "\r\n"),
        ("From a@b Mon Jan  5 10:00:00 2004\r\nA: 1\r\n\r\nold", "\r\n\r\n"),
        ("\n", ""),
        ("x", "\n\n"),
    ] {
        let mut spool = Spool::new(old);
        spool.append(NEW, &|| false).expect("room");
        assert_eq!(spool.content(), format!("{old}{between}{NEW}"));
        assert!(spool.warnings.is_empty());
    }
}

#[test]
fn told_to_stop_it_leaves_the_mailbox_as_it_was() {
    let long = format!("{NEW}{}\n\n", "x".repeat(3 * PIECE));
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    // The missing end goes too.
    for old in [OLD, "From a@b Mon Jan  5 10:00:00 2004\nA: 1\n\nold"] {
        asked.set(0);
        let mut spool = Spool::new(old);
        assert!(matches!(spool.append(&long, &stop), Err(DeliverError::Stopped)));
        assert_eq!(spool.content(), old);
    }
}

#[test]
fn a_half_message_of_the_killed_is_cut_off() {
    let (at, length) = (OLD.len(), NEW.len());
    let line = NEW.lines().next().expect("a From_ line");
    for half in [1, 3, 20, 36, NEW.len() - 1] {
        let mut spool = Spool::new(&format!("{OLD}{}", &NEW[..half]));
        spool.abandon(&note(at, length, line));
        spool.append(NEW, &|| false).expect("room");
        assert_eq!(spool.content(), format!("{OLD}{NEW}"), "{half}");
        assert_eq!(spool.warnings.len(), 2, "{:?}", spool.warnings);
    }
}

#[test]
fn what_may_be_somebody_elses_is_never_cut_off() {
    let (at, length) = (OLD.len(), NEW.len());
    let line = NEW.lines().next().expect("a From_ line");
    let other = "From e@f Wed Jan  7 10:00:00 2004\n\n";
    for (tail, left) in [
        // Whole: who was killed had written all.
        (NEW.to_owned(), note(at, length, line)),
        // Another program has added to it, glued or not.
        (format!("{}{other}", &NEW[..40]), note(at, 1000, line)),
        (format!("{}\n\n{other}", &NEW[..40]), note(at, 1000, line)),
        // It is another message, in another place, or no note of ours.
        (other.to_owned(), note(at, 1000, line)),
        (NEW[..40].to_owned(), note(at - 1, 1000, line)),
        (NEW[..40].to_owned(), note(at + 100, 1000, line)),
        (NEW[..40].to_owned(), "append x".to_owned()),
        (NEW[..40].to_owned(), String::new()),
    ] {
        let mut spool = Spool::new(&format!("{OLD}{tail}"));
        spool.abandon(&left);
        spool.append(NEW, &|| false).expect("room");
        let content = spool.content();
        assert!(content.starts_with(&format!("{OLD}{tail}")) && content.ends_with(NEW), "{left}: {content}");
    }
}

#[test]
fn what_was_stored_by_the_killed_is_stored_once() {
    let line = NEW.lines().next().expect("a From_ line");
    let other = "From e@f Wed Jan  7 10:00:00 2004\nC: 3\n\nother\n\n";
    let deliver = |spool: &mut Spool, text: &str| {
        let mail = Mail::new(text.as_bytes(), Fingerprint::of(text.as_bytes()), None, std::time::SystemTime::now());
        let warnings = &mut spool.warnings;
        let done =
            deliver(&spool.folder.path().join("inbox"), &mail, &deliveries(&|| false), &mut |text| warnings.push(text));
        done.expect("stored").1
    };
    // Its second try comes first, or another message, which must not make the first one forgotten.
    for between in ["", other] {
        let mut spool = Spool::new(&format!("{OLD}{NEW}"));
        spool.abandon(&note(OLD.len(), NEW.len(), line));
        if !between.is_empty() {
            assert!(!deliver(&mut spool, between));
        }
        // At another time, so with another From_ line.
        let again = "From c@d Tue Jan  6 11:11:11 2004\nB: 2\n\nnew\n";
        assert!(deliver(&mut spool, again));
        assert_eq!(spool.content(), format!("{OLD}{NEW}{between}"));
        // What is sent again after that is meant to come again.
        assert!(!deliver(&mut spool, again));
        assert_eq!(fs::read_dir(spool.folder.path()).expect("there").count(), 1);
    }
}
