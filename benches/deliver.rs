//! `hamsift deliver` beside procmail: 300 mails into one mbox, one after the other and by eight processes at a time; and
//! the processor time of one delivery. No classifier, for procmail asks none. Prints Markdown.

#![allow(clippy::expect_used)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MAILS: usize = 300;
const ROUNDS: usize = 5;

/// One way to deliver.
struct Row {
    name: &'static str,
    processes: usize,
    command: fn(&Path) -> Command,
}

fn main() {
    let mut mails = common::messages(&common::mailbox());
    mails = mails.into_iter().cycle().take(MAILS).collect();
    let mut rows = vec![
        Row { name: "hamsift deliver", processes: 1, command: hamsift },
        Row { name: "hamsift deliver", processes: 8, command: hamsift },
        Row { name: "hamsift deliver --fsync=never", processes: 1, command: unsynced },
        Row { name: "hamsift deliver --fsync=never", processes: 8, command: unsynced },
    ];
    if Command::new("procmail").arg("-v").output().is_ok() {
        rows.insert(0, Row { name: "procmail `:0:`", processes: 8, command: procmail });
        rows.insert(0, Row { name: "procmail `:0:`", processes: 1, command: procmail });
    } else {
        println!("(no procmail: its rows are left out)");
    }
    let mut taken = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (row, taken) in rows.iter().zip(&mut taken) {
            taken.push(deliver(row, &mails));
        }
    }
    println!("{MAILS} mails into one mbox, {ROUNDS} rounds in turns, medians\n");
    println!("| | processes | wall time | of the first | CPU per mail |\n|---|--:|--:|--:|--:|");
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    };
    let mut first = None;
    for (row, taken) in rows.iter().zip(taken) {
        let (wall, cpu): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
        let (wall, cpu) = (median(wall), median(cpu));
        let whole = *first.get_or_insert(wall);
        println!(
            "| {} | {} | {wall:.2} s | {:.0} % | {:.2} ms |",
            row.name,
            row.processes,
            100.0 * wall / whole,
            1000.0 * cpu / MAILS as f64
        );
    }
}

fn hamsift(folder: &Path) -> Command {
    let mut command = common::hamsift();
    command.args(["deliver", "--no-classify", "-f", "a@b.example", "--unsure"]).arg(folder.join("inbox"));
    command
}

fn unsynced(folder: &Path) -> Command {
    let mut command = hamsift(folder);
    command.arg("--fsync=never");
    command
}

fn procmail(folder: &Path) -> Command {
    let mut command = Command::new("procmail");
    command.args(["-f", "a@b.example", "-m"]).arg(folder.join("rc"));
    command
}

/// Delivers all; returns how long it took, and how much processor time the programs took.
fn deliver(row: &Row, mails: &[Vec<u8>]) -> (Duration, Duration) {
    let folder = tempfile::tempdir().expect("room");
    // As short as procmail can wait for a lock.
    let rules = format!("LOCKSLEEP=1\n:0:\n{}\n", folder.path().join("inbox").display());
    std::fs::write(folder.path().join("rc"), rules).expect("room");
    let next = AtomicUsize::new(0);
    let (cpu, start) = (cpu_of_children(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..row.processes {
            scope.spawn(|| {
                while let Some(mail) = mails.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut command = (row.command)(folder.path());
                    // As an MTA starts them; what cargo sets makes the loader search elsewhere first.
                    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder.path());
                    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
                    let mut stdin = child.stdin.take().expect("piped");
                    std::io::Write::write_all(&mut stdin, mail).expect("it reads");
                    drop(stdin);
                    assert!(child.wait().expect("it ends").success());
                }
            });
        }
    });
    let taken = (start.elapsed(), cpu_of_children() - cpu);
    assert_eq!(common::messages(&folder.path().join("inbox")).len(), mails.len(), "{}", row.name);
    taken
}

/// The processor time of all processes that have ended here, from proc(5).
fn cpu_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc(5)");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("never empty").split(' ').collect();
    // Fields 16 and 17 of the line, of which two have been cut off, in hundredths of a second.
    let ticks: u64 = fields[13..15].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(10 * ticks)
}
