//! How does the cost grow? With the size of the mailbox: time per MB and memory. With the messages in flight and the
//! server's latency: messages/s, which is n / latency until a limit. Prints Markdown. The largest mailbox is as many
//! gigabytes as `HAMSIFT_BENCH_GB` says (1).

#![allow(clippy::expect_used)]

mod common;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::canned::{Cost, canned};

const MB: u64 = 1_000_000;

fn main() {
    let sample = std::fs::read(common::mailbox()).expect("the mailbox");
    let folder = tempfile::tempdir().expect("a folder");
    sizes(&sample, folder.path());
    latencies(&sample, folder.path());
}

/// The sample again and again, up to about this many bytes.
fn mailbox(sample: &[u8], bytes: u64, folder: &Path) -> PathBuf {
    let path = folder.join(format!("{}.mbox", bytes / MB));
    let mut out = BufWriter::new(File::create(&path).expect("a file"));
    for _ in 0..(bytes / sample.len() as u64).max(1) {
        out.write_all(sample).expect("room for it");
    }
    out.flush().expect("room for it");
    path
}

/// Wall time, and the most memory that was resident, in MB.
fn run(arguments: &[&str], mbox: &Path) -> (Duration, f64) {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hamsift"))
        .args(arguments)
        .arg(mbox)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0_f64;
    loop {
        if let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            most = most.max(kilobytes.unwrap_or(0.0) / 1024.0);
        }
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{arguments:?}: {status}");
            return (started.elapsed(), most);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn sizes(sample: &[u8], folder: &Path) {
    let url = canned(Cost::default());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sample");
    let database = folder.join("words.db");
    let trained = common::hamsift()
        .args(["train", "-q", "--db"])
        .arg(&database)
        .arg("--ham")
        .arg(root.join("ham.mbox"))
        .arg("--spam")
        .arg(root.join("spam.mbox"))
        .status();
    assert!(trained.expect("it starts").success());
    let database = database.to_str().expect("a plain name");
    let largest = std::env::var("HAMSIFT_BENCH_GB").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    let mut sizes = vec![10 * MB, 100 * MB, 1000 * MB, largest * 1000 * MB];
    sizes.retain(|&size| size <= largest * 1000 * MB);
    sizes.dedup();
    println!("| mailbox | `--dry-run` | `--max-size 1` | `-s`, a server that costs nothing | `--db` |");
    println!("|---|--:|--:|--:|--:|");
    for size in sizes {
        let mbox = mailbox(sample, size, folder);
        let length = mbox.metadata().expect("written").len() as f64 / MB as f64;
        // Once before, so that it is in the page cache.
        run(&["filter", "--dry-run", "-q"], &mbox);
        let cells = [
            &["filter", "-q", "--dry-run"][..],
            &["filter", "-q", "--max-size", "1", "-s", &url],
            &["filter", "-q", "-n", "4", "-s", &url],
            &["filter", "-q", "--db", database],
        ]
        .map(|arguments| {
            let (time, memory) = run(arguments, &mbox);
            format!("{:.2} ms/MB, {memory:.0} MB", 1000.0 * time.as_secs_f64() / length)
        });
        println!("| {length:.0} MB | {} |", cells.join(" | "));
        std::fs::remove_file(&mbox).expect("it is there");
    }
    println!();
}

fn latencies(sample: &[u8], folder: &Path) {
    const PARALLEL: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
    let mbox = mailbox(sample, 20 * MB, folder);
    let messages = common::messages(&mbox);
    println!("messages/s; in brackets the share of n / latency\n");
    println!("| latency | {} |", PARALLEL.map(|n| format!("`-n {n}`")).join(" | "));
    println!("|---|{}", "--:|".repeat(PARALLEL.len()));
    for latency in [0, 1, 10, 100] {
        let url = canned(Cost { wait: Duration::from_millis(latency), ..Cost::default() });
        let cells = PARALLEL.map(|n| {
            // Some seconds at most: a slow server is asked about fewer messages.
            let most = if latency == 0 { messages.len() } else { (2000 * n / latency as usize).max(2 * n) };
            let count = most.min(messages.len());
            let arguments = ["filter", "-q", "-n", &n.to_string(), "--total", &count.to_string(), "-s", &url];
            let (time, _) = run(&arguments, &mbox);
            let rate = count as f64 / time.as_secs_f64();
            if latency == 0 {
                return format!("{rate:.0}");
            }
            format!("{rate:.0} ({:.0} %)", 100.0 * rate * latency as f64 / 1000.0 / n as f64)
        });
        println!("| {latency} ms | {} |", cells.join(" | "));
    }
}
