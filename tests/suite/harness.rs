//! Runs the program and its peers. Every wait has a deadline; nothing is waited for by sleeping.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The longest that anything may take here.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A file that belongs to the repository.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The committed sample.
pub(crate) fn sample() -> Vec<u8> {
    std::fs::read(file("testdata/sample/small.mbox")).expect("committed")
}

/// A mailbox of `count` short messages, numbered in body and Message-ID from `first`.
pub(crate) fn mailbox(first: usize, count: usize) -> Vec<u8> {
    let message = |number: usize| {
        format!(
            "From a@b.example Mon Jan  5 10:00:00 2004\nMessage-ID: <{number}@b.example>\nSubject: {number}\n\nno {number} here.\n\n"
        )
    };
    (first..first + count).map(message).collect::<String>().into_bytes()
}

/// A program that is to be run.
pub(crate) struct Run {
    command: Command,
    input: Option<Vec<u8>>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// hamsift with these arguments, in an environment that holds nothing of the user's.
pub(crate) fn hamsift<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamsift"));
    command.env_clear().env("LC_ALL", "C").args(arguments);
    Run { command, input: None }
}

/// `hamsift filter` that asks this server.
pub(crate) fn filter<S: AsRef<OsStr>>(server: &Server, arguments: impl IntoIterator<Item = S>) -> Run {
    let mut run = hamsift(["filter", "-s", server.url()]);
    run.command.args(arguments);
    run
}

impl Run {
    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Run {
        self.input = Some(input.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Run {
        self.command.env(name, value);
        self
    }

    pub(crate) fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it. Its input is fed, and its outputs are read, by threads.
    pub(crate) fn start(mut self) -> Running {
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), self.input) {
            // A program may end before it has read everything.
            thread::spawn(move || drop(stdin.write_all(&input)));
        }
        let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        Running { out: read_all(out), err: read_all(err), child }
    }

    /// Runs it to its end.
    pub(crate) fn end(self) -> Ended {
        self.start().end()
    }

    /// Runs it to its end, which has to be this exit code.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Ended {
        let ended = self.end();
        assert_eq!((ended.code, ended.signal), (Some(code), None), "{}", ended.err);
        ended
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// A program that runs. It is killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it is alive or not yet reaped");
    }

    /// Whether it has ended. It can still be signalled then: its number is kept until [`Running::end`].
    pub(crate) fn has_ended(&self) -> bool {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let out = self.out.recv_timeout(DEADLINE);
        let err = self.err.recv_timeout(DEADLINE).unwrap_or_default();
        let err = String::from_utf8_lossy(&err).into_owned();
        let Ok(out) = out else { panic!("it hangs; so far it said: {err}") };
        // Both outputs are closed, so its end is near.
        let status = self.child.wait().expect("it is ours");
        Ended { code: status.code(), signal: status.signal(), out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A scoring server (`tests/peers/server.py`). It ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    stdin: Option<Mutex<ChildStdin>>,
    url: String,
    events: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Server {
    /// A server of this configuration; `server.py` says what may stand in it.
    pub(crate) fn start(config: &Value) -> Server {
        let mut command = Command::new("python3");
        command.arg(file("tests/peers/server.py")).arg(config.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python 3");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let events = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (seen, (sender, port)) = (events.clone(), channel());
        thread::spawn(move || {
            let _ = lines.next().and_then(Result::ok).map(|port| sender.send(port));
            for line in lines.map_while(Result::ok) {
                seen.0.lock().expect("no panic").push(line);
                seen.1.notify_all();
            }
        });
        let port = port.recv_timeout(DEADLINE).expect("the server is ready");
        let url = match config["unix"].as_str() {
            Some(path) => format!("unix:{path}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let stdin = child.stdin.take().map(Mutex::new);
        Server { child, stdin, url, events }
    }

    /// A good server: HTTP/1.1, a thread per connection.
    pub(crate) fn good() -> Server {
        Server::start(&json!({}))
    }

    /// A server that gives all messages this score.
    pub(crate) fn scoring(score: f64) -> Server {
        Server::start(&json!({ "score": score }))
    }

    /// A good server that does this with messages that hold a text.
    pub(crate) fn with_rule(rule: Value) -> Server {
        Server::start(&json!({ "rules": [rule] }))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Events so far that begin so.
    #[track_caller]
    pub(crate) fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|line| line.starts_with(event)).count()
    }

    /// All that has happened by now: they are read by a thread, which may be late.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<String> {
        let synced = |lines: &Vec<String>| lines.iter().filter(|line| *line == "synced").count();
        let asked = synced(&self.events.0.lock().expect("no panic")) + 1;
        if self.send("sync").is_ok() {
            self.wait_for("synced", asked);
        }
        self.events.0.lock().expect("no panic").clone()
    }

    /// Waits until so many events that begin so have come.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str, count: usize) {
        let lines = self.events.0.lock().expect("no panic");
        let few = |lines: &mut Vec<String>| lines.iter().filter(|line| line.starts_with(event)).count() < count;
        let (lines, late) = self.events.1.wait_timeout_while(lines, DEADLINE, few).expect("no panic");
        assert!(!late.timed_out(), "{count} times {event}: {lines:?}");
    }

    /// Lets the answers go that the rule `hold` keeps back.
    pub(crate) fn release(&self) {
        self.send("release").expect("it listens");
    }

    fn send(&self, line: &str) -> std::io::Result<()> {
        let stdin = self.stdin.as_ref().expect("open until it is dropped");
        writeln!(stdin.lock().expect("no panic"), "{line}")
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.kill();
    }
}

/// A port that nobody listens on: it was free a moment ago.
pub(crate) fn dead_url() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("bound"))
}

/// Whether a line, without its line end, is one that hamsift adds.
fn is_verdict(line: &[u8]) -> bool {
    let Some(value) = line.strip_prefix(b"X-Spambayes-Classification: ") else { return false };
    let text = std::str::from_utf8(value).unwrap_or("");
    let Some((class, score)) = text.trim_end_matches('\r').split_once("; ") else { return false };
    matches!(class, "ham" | "unsure" | "spam") && score.len() == 4 && score.parse::<f64>().is_ok()
}

/// Takes the lines that hamsift adds out of a mailbox; also says how many there are. Knows nothing of messages: it is
/// only to be used where the input holds no such line.
pub(crate) fn without_verdicts(bytes: &[u8]) -> (Vec<u8>, usize) {
    let (mut kept, mut count) = (Vec::with_capacity(bytes.len()), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(text) if is_verdict(text) => count += 1,
            None if is_verdict(line) => {
                // One at the very end without a newline was added behind a newline of its own.
                kept.truncate(kept.len() - if kept.ends_with(b"\r\n") { 2 } else { 1 });
                count += 1;
            }
            _ => kept.extend_from_slice(line),
        }
    }
    (kept, count)
}

/// The byte promise: output minus the added lines is the input, and so many lines were added.
#[track_caller]
pub(crate) fn assert_only_verdicts_added(input: &[u8], output: &[u8], added: usize) {
    let (kept, count) = without_verdicts(output);
    assert_same(input, &kept);
    assert_eq!(count, added, "added lines");
}

/// Byte equality that shows only the neighbourhood of the first difference.
#[track_caller]
pub(crate) fn assert_same(want: &[u8], got: &[u8]) {
    if want == got {
        return;
    }
    let at = want.iter().zip(got).take_while(|(a, b)| a == b).count();
    let show = |bytes: &[u8]| {
        bytes[at.saturating_sub(60).min(bytes.len())..(at + 60).min(bytes.len())].escape_ascii().to_string()
    };
    panic!("bytes differ at {at} of {} and {}:\n  {}\n  {}", want.len(), got.len(), show(want), show(got));
}

/// The verdicts of a mailbox, in order.
pub(crate) fn verdicts(bytes: &[u8]) -> VecDeque<String> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| is_verdict(line));
    lines.map(|line| String::from_utf8_lossy(&line[28..]).trim().to_owned()).collect()
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("one").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A small file system in memory, gone when this is. Only root can make one.
pub(crate) struct Small(pub(crate) PathBuf);

impl Small {
    pub(crate) fn mount(path: &Path, options: &str) -> Small {
        std::fs::create_dir(path).expect("room");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).status();
        assert!(status.is_ok_and(|status| status.success()));
        Small(path.to_owned())
    }

    pub(crate) fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Whether all of these are there. Says so if one is not.
pub(crate) fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).stdout(Stdio::null()).status();
        !found.is_ok_and(|status| status.success())
    });
    missing.inspect(|program| println!("SKIPPED: there is no {program}")).is_none()
}
