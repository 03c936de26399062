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

struct Row {
    name: String,
    shell: String,
}

fn main() {
    let (server, mbox) = (common::Server::find(), common::mailbox());
    let input = std::fs::read(&mbox).expect("the mailbox");
    let rows = rows(&server.url);
    let count = messages(&input).len();
    let mut times = vec![Vec::new(); rows.len()];
    let mut outputs = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (number, row) in rows.iter().enumerate() {
            let (took, out) = run(&row.shell, &mbox, &server.url);
            times[number].push(took);
            outputs[number] = out;
        }
    }
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64()
        })
        .collect();
    println!("{count} messages, {} bytes, {ROUNDS} rounds in turns, medians\n", input.len());
    println!("| | wall time | messages/s | of the first | out of order | lines astray |\n|---|--:|--:|--:|--:|--:|");
    for ((row, time), out) in rows.iter().zip(&medians).zip(&outputs) {
        let Damage { out_of_order, astray } = damage(&input, out);
        println!(
            "| `{}` | {time:.3} s | {:.0} | {:.1} % | {out_of_order} | {astray} |",
            row.name,
            count as f64 / time,
            100.0 * time / medians[0],
        );
    }
}

fn rows(url: &str) -> Vec<Row> {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/client.py");
    let client = format!("python3 {}", client.display());
    let bin = env!("CARGO_BIN_EXE_hamsift");
    let mut rows = Vec::new();
    let mut add = |name: &str, shell: String| rows.push(Row { name: name.to_owned(), shell });
    if has("formail") {
        add("formail -s client.py", format!("formail -s {client}"));
        add("formail -n 4 -s client.py", format!("formail -n 4 -s {client}"));
        if has("sb_cclient") {
            add("formail -s sb_cclient", "formail -s sb_cclient".to_owned());
            add("formail -n 4 -s sb_cclient", "formail -n 4 -s sb_cclient".to_owned());
        } else {
            println!("(no sb_cclient on PATH: its rows are left out)");
        }
        add("formail -n 4 -s hamsift pipe", format!("formail -n 4 -s {bin} pipe -s {url}"));
    } else {
        println!("(no formail: its rows are left out)");
    }
    for parallel in [1, 4, 16] {
        let options = format!("filter -n {parallel}");
        add(&format!("hamsift {options}"), format!("{bin} {options} -q -s {url}"));
    }
    rows
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn run(shell: &str, mbox: &Path, url: &str) -> (Duration, Vec<u8>) {
    let start = std::time::Instant::now();
    let input = std::fs::File::open(mbox).expect("the mailbox");
    let out = Command::new("sh")
        .args(["-c", shell])
        .env("SB_URL", url)
        .stdin(input)
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
