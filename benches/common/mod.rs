//! What the side-by-side benches share: a mailbox, a server, programs timed in turns, and medians.

// Each bench uses a part of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod canned;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hamsift::mbox::{Part, Rules, Splitter};

/// A message of this many bytes.
pub fn message(size: usize) -> Vec<u8> {
    let mut text =
        b"From: Alice <a@example.org>\nTo: bob@example.net\nSubject: x\nMessage-ID: <1@example.org>\n\n".to_vec();
    let line = b"The quick brown fox jumps over the lazy dog, and so on for seventy columns\n";
    text.extend(line.iter().cycle().take(size - text.len() - 1));
    text.push(b'\n');
    text
}

/// The server that is measured against: the one named by `HAMSIFT_BENCH_SERVER`, or the tests' own, started here.
pub struct Server {
    pub url: String,
    child: Option<Child>,
}

impl Server {
    pub fn find() -> Server {
        if let Ok(url) = std::env::var("HAMSIFT_BENCH_SERVER") {
            return Server { url, child: None };
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/server.py");
        let mut child = Command::new("python3")
            .arg(script)
            .arg(r#"{"mode": "threads"}"#)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut port = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        output.read_line(&mut port).expect("a port");
        // Its log of requests is not wanted, but has to go somewhere.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Server { url: format!("http://127.0.0.1:{}/RPC2", port.trim()), child: Some(child) }
    }
}

/// The `host:port` of a URL.
pub fn address(url: &str) -> &str {
    let rest = url.strip_prefix("http://").expect("an http server");
    rest.split('/').next().expect("never empty")
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The mailbox named by `HAMSIFT_BENCH_MBOX`, or the sample of 289 messages, made anew.
pub fn mailbox() -> PathBuf {
    if let Some(path) = std::env::var_os("HAMSIFT_BENCH_MBOX") {
        return path.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("target/bench-sample.mbox");
    if !path.exists() {
        let out = std::fs::File::create(&path).expect("target is writable");
        let made = Command::new("python3")
            .arg(root.join("testdata/sample/generate.py"))
            .stdout(out)
            .status()
            .expect("python3");
        assert!(made.success());
    }
    path
}

/// The messages of a mailbox.
pub fn messages(path: &Path) -> Vec<Vec<u8>> {
    let file = std::fs::File::open(path).expect("the mailbox");
    let mut splitter = Splitter::new(file, Rules::default(), 64 << 20);
    let mut messages = Vec::new();
    while let Some(piece) = splitter.next_piece().expect("an mbox") {
        if piece.part == Part::Message {
            messages.push(piece.bytes.to_vec());
        }
    }
    messages
}

/// Runs all rows in turns, `rounds` times, so that a slow moment of the machine hits each; returns each one's median.
pub fn medians(rounds: usize, rows: &mut [&mut dyn FnMut() -> Duration]) -> Vec<Duration> {
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for (row, times) in rows.iter_mut().zip(&mut times) {
            times.push(row());
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    times.iter().map(|times| times[times.len() / 2]).collect()
}

/// How long a program runs.
pub fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status().expect("it starts");
    let took = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    took
}

/// The hamsift of this build.
pub fn hamsift() -> Command {
    Command::new(env!("CARGO_BIN_EXE_hamsift"))
}
