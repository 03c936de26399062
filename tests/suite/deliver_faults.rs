//! `deliver` on full and read-only disks, under limits, as another user, and with signals at any time: what was in the
//! place stays to the byte, and the exit code is 75.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use super::deliver::{MAIL, Spool, messages};
use super::harness::*;

const OLD: &str = "From a@b.example Mon Jan  5 10:00:00 2004\nA: 1\n\nold\n\n";
/// A user that every Debian has.
const NOBODY: u32 = 65534;

/// Files below a folder, with their sizes; folders of a Maildir do not count.
fn found(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() {
            found.extend(self::found(&path).into_iter().map(|(inner, size)| (format!("{name}/{inner}"), size)));
        } else {
            found.push((name, fs::metadata(&path).expect("there").len()));
        }
    }
    found
}

#[test]
#[ignore = "needs root"]
fn on_a_full_or_read_only_disk_all_stays_as_it_was() {
    let spool = Spool::new();
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can mount a file system");
        return;
    }
    let small = Small::mount(&spool.at("disk"), "size=1m");
    fs::write(spool.at("disk/inbox"), OLD).expect("room");
    spool.to("disk/md/", &[]).ends_with(0);
    let large = format!("{MAIL}{}", "0123456789abcde\n".repeat(80_000));
    let before = found(&spool.at("disk"));
    let all_fail = |mail: &str, reason: &str| {
        for place in ["disk/inbox", "disk/new", "disk/md/", "disk/new-md/"] {
            let ended = spool.to(place, &[]).stdin(mail).ends_with(75);
            assert!(ended.err.contains(reason), "{place}: {}", ended.err);
            assert_eq!(found(&spool.at("disk")), before, "{place}");
        }
        assert_eq!(spool.read("disk/inbox"), OLD);
    };
    all_fail(&large, "No space left");
    small.remount("ro");
    all_fail(MAIL, "Read-only file system");
    small.remount("rw");
    // Without room for a dotlock even.
    let filler = spool.at("disk/filler");
    let _ = fs::write(&filler, vec![b'x'; 2 << 20]);
    spool.to("disk/inbox", &[]).ends_with(75);
    spool.to("disk/md/", &[]).ends_with(75);
    fs::remove_file(&filler).expect("there");
    for place in ["disk/inbox", "disk/md/"] {
        spool.to(place, &[]).ends_with(0);
    }
    assert_eq!(messages(&spool.read("disk/inbox")).len(), 2);
    assert_eq!(names(&spool.at("disk/md/new")).len(), 2);
}

#[test]
#[ignore = "needs root"]
fn root_delivers_as_the_user_and_nothing_of_root_is_left() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: not root");
        return;
    }
    let folder = tempfile::Builder::new().prefix("hamsift-user-").tempdir_in("/var/tmp").expect("room");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let at = |name: &str| folder.path().join(name);
    fs::copy(env!("CARGO_BIN_EXE_hamsift"), at("hamsift")).expect("room");
    fs::create_dir(at("own")).expect("room");
    fs::write(at("inbox"), OLD).expect("room");
    for name in ["own", "inbox"] {
        chown(at(name), Some(NOBODY), Some(NOBODY)).expect("root");
    }
    let deliver = |uid: u32, arguments: &[&str]| {
        let mut command = Command::new(at("hamsift"));
        command.args(["deliver", "--no-classify", "--lock-timeout=2"]).args(arguments).current_dir(folder.path());
        command
            .env("HOME", "/")
            .env("MAIL", "/nowhere")
            .env("SECRET", "x")
            .uid(uid)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        child.stdin.take().expect("piped").write_all(MAIL.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), err)
    };
    let own = at("own/inbox").display().to_string();
    assert_eq!(deliver(0, &["-d", "nobody", "--unsure", &own]).0, Some(0));
    let made = fs::metadata(at("own/inbox")).expect("delivered");
    assert_eq!((made.uid(), made.mode() & 0o777), (NOBODY, 0o600));
    let told = at("own/env").display().to_string();
    assert_eq!(deliver(0, &["-d", "nobody", "--unsure", &format!("|{{ id -u; id -G; env; }} > {told}")]).0, Some(0));
    let told = fs::read_to_string(told).expect("written");
    assert!(told.starts_with("65534\n65534\n") && told.contains("\nUSER=nobody\n"), "{told}");
    assert!(!told.contains("SECRET") && !told.contains("/nowhere"), "{told}");
    // Others can only be themselves.
    assert_eq!(deliver(NOBODY, &["-d", "root", "--unsure", &own]).0, Some(75));
    assert_eq!(deliver(NOBODY, &["-d", "nobody", "--unsure", &own]).0, Some(0));
    // Where the folder is not the user's, a kernel lock will do, unless a dotlock is asked for.
    let inbox = at("inbox").display().to_string();
    let (code, err) = deliver(NOBODY, &["--unsure", &inbox]);
    assert!(code == Some(0) && err.contains("no lock file"), "{err}");
    assert_eq!(deliver(NOBODY, &["--lock=dot", "--unsure", &inbox]).0, Some(75));
    assert_eq!(messages(&fs::read_to_string(at("inbox")).expect("there")).len(), 2);
    assert_eq!(deliver(NOBODY, &["--unsure", &at("none").display().to_string()]).0, Some(75));
    assert_eq!(names(folder.path()), ["hamsift", "inbox", "own"]);
}

#[test]
fn whatever_the_umask_nobody_else_can_read_it() {
    let spool = Spool::new();
    for place in ["inbox", "md/", "|cat > copy"] {
        let mut run = spool.to(place, &["--log=log"]);
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "umask 0; exec \"$@\"", "sh"])
            .arg(run.command().get_program())
            .args(run.command().get_args());
        shell.current_dir(spool.at("")).stdin(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        child.stdin.take().expect("piped").write_all(MAIL.as_bytes()).expect("it reads");
        assert!(child.wait().expect("it ends").success());
    }
    for name in ["inbox", "md", "md/new", "copy", "log"] {
        assert_eq!(fs::metadata(spool.at(name)).expect(name).mode() & 0o077, 0, "{name}");
    }
}

#[test]
fn without_memory_for_it_a_message_is_put_off() {
    let spool = Spool::new();
    fs::write(spool.at("inbox"), OLD).expect("room");
    let large = [MAIL.as_bytes(), &b"0123456789abcde\n".repeat(1 << 20)].concat();
    // Too little for reading it, too little for the copies that are made of it, and enough.
    for kilobytes in [50_000, 70_000, 90_000, 400_000] {
        for place in ["inbox", "md/"] {
            let mut run = spool.to(place, &[]);
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("ulimit -v {kilobytes}; ulimit -c 0; exec \"$@\""), "sh"]);
            shell.arg(run.command().get_program()).args(run.command().get_args());
            shell.current_dir(spool.at("")).stdin(Stdio::piped()).stderr(Stdio::null());
            let mut child = shell.spawn().expect("a shell");
            let taken = child.stdin.take().expect("piped").write_all(&large);
            let status = child.wait().expect("it ends");
            let stored = found(&spool.at("")).iter().map(|(_, size)| size).sum::<u64>() - OLD.len() as u64;
            if kilobytes == 400_000 {
                assert!(status.success() && stored >= large.len() as u64, "{place}: {status}");
                taken.expect("all is read");
                let _ = fs::remove_dir_all(spool.at("md"));
                fs::write(spool.at("inbox"), OLD).expect("room");
            } else {
                assert_eq!((status.code(), stored), (Some(75), 0), "{kilobytes} kB, {place}: {status}");
            }
        }
    }
}

#[test]
fn a_nonsense_answer_is_no_reason_to_keep_mail_back() {
    let spool = Spool::new();
    for rule in [
        json!({ "do": "garbage", "text": "<html>busy</html>" }),
        json!({ "do": "fault" }),
        json!({ "do": "short" }),
        json!({ "do": "status", "status": "503 busy" }),
    ] {
        let server = Server::with_rule(rule);
        let mut run = hamsift(["deliver", "-s", server.url(), "--retries=0", "--unsure=inbox", "--ham=x", "--spam=x"]);
        run.command().current_dir(spool.at(""));
        let ended = run.stdin(MAIL).ends_with(0);
        assert!(ended.err.contains("not classified"), "{}", ended.err);
    }
    assert_eq!(messages(&spool.read("inbox")).len(), 4);
    assert_eq!(names(&spool.at("")), ["inbox"]);
}

#[test]
fn a_signal_at_any_time_puts_the_message_off() {
    let spool = Spool::new();
    let server = Server::with_rule(json!({ "do": "hold" }));
    for (number, signal) in [Signal::TERM, Signal::HUP, Signal::INT].into_iter().enumerate() {
        // While the message is read.
        let mut run = spool.to("inbox", &[]);
        let mut child = run.command().stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        // More than the pipe holds: once it is written, somebody reads.
        stdin.write_all(&vec![b'x'; 200_000]).expect("it reads");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(75), "{signal:?}");
        // While it is classified.
        let mut run = hamsift(["deliver", "-s", server.url(), "--unsure=inbox", "--ham=inbox", "--spam=inbox"]);
        run.command().current_dir(spool.at(""));
        let running = run.stdin(MAIL).start();
        server.wait_for("held", number + 1);
        running.signal(signal);
        assert_eq!(running.end().code, Some(75), "{signal:?}");
        // While a command runs, which is ended with all it has started.
        let fifo = spool.at("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .expect("made");
        let running = spool.to("|echo > fifo; sleep 1000 & wait", &[]).start();
        assert_eq!(fs::read(&fifo).expect("it runs"), b"\n");
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(75), "{signal:?}: {}", ended.err);
        fs::remove_file(&fifo).expect("there");
    }
    assert!(names(&spool.at("")).is_empty());
}
