//! `hamsift serve` as a process: started on a free port over the committed sample, stopped by signal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::harness::*;

/// A database trained on the committed ham and spam.
pub(crate) fn database(folder: &std::path::Path) -> String {
    let text = |path: std::path::PathBuf| path.into_os_string().into_string().expect("UTF-8");
    let db = text(folder.join("t.db"));
    let (ham, spam) = (text(file("testdata/sample/ham.mbox")), text(file("testdata/sample/spam.mbox")));
    hamsift(["train", "-q", "--db", &db, "--ham", &ham, "--spam", &spam]).ends_with(0);
    db
}

/// A running `hamsift serve`. It is killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    lines: Receiver<String>,
    pub(crate) url: String,
}

impl Served {
    /// Over this database, with more arguments; ready when this returns.
    pub(crate) fn start(db: &str, more: &[&str]) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hamsift"));
        command
            .env_clear()
            .env("LC_ALL", "C")
            .args(["serve", "--db", db])
            .args(more)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        if !more.iter().any(|argument| matches!(*argument, "--listen" | "--socket")) {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.spawn().expect("it starts");
        let err = BufReader::new(child.stderr.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut served = Served { child, lines, url: String::new() };
        served.url = served.line("listening on ").rsplit(' ').next().expect("a word").to_owned();
        served
    }

    /// The next line on standard error that holds this.
    #[track_caller]
    pub(crate) fn line(&self, text: &str) -> String {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {text:?}: {seen:?}")
    }

    pub(crate) fn authority(&self) -> &str {
        self.url.strip_prefix("http://").expect("a TCP address")
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.authority()).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("set");
        stream
    }

    /// Sends raw bytes on a connection of their own; everything that comes back until the server closes, or nothing
    /// more comes for a while.
    pub(crate) fn raw(&self, request: impl AsRef<[u8]>) -> (String, bool) {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).expect("sent");
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        let closed = loop {
            match stream.read(&mut piece) {
                Ok(0) => break true,
                Ok(count) => answer.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break true,
                Err(_) => break false,
            }
            stream.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
        };
        (String::from_utf8_lossy(&answer).into_owned(), closed)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is alive");
    }

    /// Stops it, which has to succeed; how long that took.
    #[track_caller]
    pub(crate) fn stop(self) -> Duration {
        self.signal(Signal::TERM);
        self.stop_was_told()
    }

    /// Waits for the end of one that was told to stop, which has to succeed; how long that took.
    #[track_caller]
    pub(crate) fn stop_was_told(mut self) -> Duration {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("ours") {
                assert_eq!(status.code(), Some(0), "{:?}", self.lines.try_iter().collect::<Vec<_>>());
                return started.elapsed();
            }
            assert!(started.elapsed() < DEADLINE, "it does not stop");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs Python with the server's URL as its argument.
pub(crate) fn python(served: &Served, script: &str) -> String {
    let out = Command::new("python3").args(["-c", script, &served.url]).output().expect("Python 3");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// A call in XML.
pub(crate) fn call(method: &str, message: &str) -> String {
    format!(
        "<?xml version='1.0'?><methodCall><methodName>{method}</methodName><params><param><value><string>{message}\
         </string></value></param></params></methodCall>"
    )
}

/// A request with a body, and more header lines (each with its line end).
pub(crate) fn post(body: &str, more: &str) -> String {
    let length = body.len();
    format!(
        "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n{more}\r\n{body}"
    )
}
