//! The table of the benchmark of 2004, today: one mailbox through each client, against the same server, in turns. Prints
//! Markdown. Rows whose program is not there are left out and named. `sb_cclient`, if it is on PATH, is a client in C++ for
//! one message that takes the server from SB_URL.

#![allow(clippy::expect_used)]

mod common;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hamsift::mbox::{Part, Rules, Splitter};
use hamsift::message::Message;

const ROUNDS: usize = 3;
/// The sizes of the two messages of 2004, bytes, and how often the server was asked about each.
const SIZES: [usize; 2] = [524, 43_920];
const TIMES: usize = 101;

struct Row {
    name: String,
    shell: String,
}

fn main() {
    let (server, mbox) = (common::Server::find(), common::mailbox());
    let clients = Clients::find(&server.url);
    let input = std::fs::read(&mbox).expect("the mailbox");
    let count = messages(&input).len();
    println!("{count} messages, {} bytes, {ROUNDS} rounds in turns, medians\n", input.len());
    println!("| | wall time | messages/s | of the first | out of order | lines astray |\n|---|--:|--:|--:|--:|--:|");
    let rows = clients.of_mailbox();
    for (out, line) in measured(&rows, &mbox, count, &server.url) {
        let Damage { out_of_order, astray } = damage(&input, &out);
        println!("{line} {out_of_order} | {astray} |");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for size in SIZES {
        println!("\nA message of {size} bytes, {TIMES} times\n");
        println!("| | wall time | messages/s | of the first |\n|---|--:|--:|--:|");
        let one = folder.path().join("one.eml");
        std::fs::write(&one, common::message(size)).expect("room for it");
        let many = folder.path().join("many.mbox");
        let text = [&b"From a@b Mon Jan  5 10:00:00 2004\n"[..], &common::message(size), b"\n"].concat();
        std::fs::write(&many, text.repeat(TIMES)).expect("room for it");
        for (_, line) in measured(&clients.of_message(&many), &one, TIMES, &server.url) {
            println!("{line}");
        }
    }
}

/// Runs all rows in turns. Per row: its output, and the first cells of its line.
fn measured(rows: &[Row], input: &Path, count: usize, url: &str) -> Vec<(Vec<u8>, String)> {
    let mut times = vec![Vec::new(); rows.len()];
    let mut outputs = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (number, row) in rows.iter().enumerate() {
            let (took, out) = run(&row.shell, input, url);
            times[number].push(took);
            outputs[number] = out;
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    let line = |row: &Row, time: f64| {
        let rate = count as f64 / time;
        format!("| `{}` | {time:.3} s | {rate:.0} | {:.1} % |", row.name, 100.0 * time / medians[0])
    };
    rows.iter().zip(&medians).zip(outputs).map(|((row, &time), out)| (out, line(row, time))).collect()
}

/// The programs that are there, and how they are started.
struct Clients {
    url: String,
    python: String,
    script: String,
    formail: bool,
    compiled: bool,
    hamsift: &'static str,
}

impl Clients {
    fn find(url: &str) -> Clients {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/client.py");
        let (formail, compiled) = (has("formail"), has("sb_cclient"));
        if !formail {
            println!("(no formail: its rows are left out)");
        }
        if !compiled {
            println!("(no sb_cclient on PATH: its rows are left out)");
        }
        // `python3` itself may be a script that looks for the right one.
        let python =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
        Clients {
            url: url.to_owned(),
            python: String::from_utf8_lossy(&python.stdout).trim().to_owned(),
            script: script.display().to_string(),
            formail,
            compiled,
            hamsift: env!("CARGO_BIN_EXE_hamsift"),
        }
    }

    /// Programs for one message each.
    fn single(&self) -> Vec<(&'static str, String)> {
        let Clients { url, python, script, hamsift, .. } = self;
        let mut clients = vec![
            ("client.py", format!("{python} {script}")),
            ("python3 -S client.py", { format!("{python} -S {script}") }),
        ];
        if self.compiled {
            clients.push(("sb_cclient", "sb_cclient".to_owned()));
        }
        clients.push(("hamsift pipe", format!("{hamsift} pipe -s {url}")));
        clients
    }

    fn of_mailbox(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, client) in self.single().into_iter().filter(|_| self.formail) {
            for formail in ["formail -s", "formail -n 4 -s"] {
                rows.push(Row { name: format!("{formail} {name}"), shell: format!("{formail} {client}") });
            }
        }
        rows.extend([1, 4, 16].map(|parallel| self.filter(parallel, "")));
        rows
    }

    fn of_message(&self, many: &Path) -> Vec<Row> {
        let again = |(name, client): (&str, String)| Row {
            name: format!("{name}, a process each"),
            shell: format!("i=0; while [ $i -lt {TIMES} ]; do {client} < \"$ONE\"; i=$((i+1)); done"),
        };
        let mut rows: Vec<_> = self.single().into_iter().map(again).collect();
        let Clients { python, script, .. } = self;
        rows.push(Row { name: "client.py, one process".to_owned(), shell: format!("{python} {script} {TIMES}") });
        rows.extend([1, 4, 16].map(|parallel| self.filter(parallel, &many.display().to_string())));
        rows
    }

    fn filter(&self, parallel: usize, mbox: &str) -> Row {
        let Clients { url, hamsift, .. } = self;
        let shell = format!("{hamsift} filter -n {parallel} -q -s {url} {mbox}");
        Row { name: format!("hamsift filter -n {parallel}"), shell }
    }
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn run(shell: &str, input: &Path, url: &str) -> (Duration, Vec<u8>) {
    let start = std::time::Instant::now();
    let out = Command::new("sh")
        .args(["-c", shell])
        .env("SB_URL", url)
        .env("ONE", input)
        .stdin(std::fs::File::open(input).expect("the input"))
        .stderr(Stdio::inherit())
        .output()
        .expect("sh");
    (start.elapsed(), out.stdout)
}

/// Each message's bytes by its Message-ID, in order.
fn messages(mbox: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut splitter = Splitter::new(mbox, Rules::default(), mbox.len());
    let mut found = Vec::new();
    while let Some(piece) = splitter.next_piece().expect("an mbox") {
        if piece.part == Part::Message {
            let message = Message::parse(piece.bytes, "X-Spambayes-Classification");
            let id = message.field("Message-ID").map_or(&b""[..], |field| field.value.trim_ascii());
            found.push((id.to_vec(), piece.bytes.to_vec()));
        }
    }
    found
}

struct Damage {
    /// Messages that stand behind one they came before.
    out_of_order: usize,
    /// Lines in a message that are not the message's own, and not added by a classifier.
    astray: usize,
}

fn damage(input: &[u8], output: &[u8]) -> Damage {
    let originals = messages(input);
    let place: HashMap<&[u8], usize> = originals.iter().enumerate().map(|(n, (id, _))| (id.as_slice(), n)).collect();
    let (mut furthest, mut damage) = (0, Damage { out_of_order: 0, astray: 0 });
    for (id, bytes) in messages(output) {
        let Some(&number) = place.get(id.as_slice()) else {
            damage.astray += bytes.split(|&byte| byte == b'\n').count();
            continue;
        };
        damage.out_of_order += usize::from(number < furthest);
        furthest = furthest.max(number);
        let mut own: HashMap<&[u8], usize> = HashMap::new();
        for line in originals[number].1.split(|&byte| byte == b'\n') {
            *own.entry(line.trim_ascii_end()).or_default() += 1;
        }
        for line in bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end) {
            let unquoted = line.strip_prefix(b">").unwrap_or(line);
            let known = [line, unquoted].into_iter().find(|line| own.get(*line).is_some_and(|&count| count > 0));
            match known {
                Some(line) => *own.entry(line).or_default() -= 1,
                None if line.is_empty() || line.starts_with(b"X-Spambayes-") => {}
                None => damage.astray += 1,
            }
        }
    }
    damage
}
