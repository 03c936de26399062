//! What the embedded engine costs per message: `cargo bench --bench score`.
//!
//! The messages are made here: a short text, the usual mail of about 5 kB, one in HTML, one in base64, and a long one.
#![allow(missing_docs)]

use std::hint::black_box;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hamsift::engine::{Memory, Options, TokenSet, score};

/// Text of about this many bytes, of words that differ.
fn text(len: usize, first: usize) -> String {
    let mut text = String::new();
    let mut state = first as u32 + 1;
    while text.len() < len {
        // Numbers without a pattern, the same each time (xorshift).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        text.push_str(&format!("word{} ", state % 20_000));
        if state.is_multiple_of(11) {
            text.push('\n');
        }
    }
    text
}

fn message(kind: &str, body: &str) -> Vec<u8> {
    format!(
        "From a@b.example Mon Jan  5 10:00:01 2004\nReceived: from mx.example.org (mx.example.org [192.0.2.1])\n\tby \
         mail.example.net with ESMTP; Mon, 5 Jan 2004 10:00:00 +0000\nFrom: A Sender <a@b.example>\nTo: \
         reader@home.example\nSubject: What the engine costs\nMessage-ID: <1@b.example>\nMIME-Version: 1.0\n{kind}\n\
         {body}\n"
    )
    .into_bytes()
}

fn messages() -> [(&'static str, Vec<u8>); 5] {
    let html = text(10_000, 3).replace('\n', "<br>\n<a href=\"http://www.example.com/a/b?c=d\">link</a> &nbsp; <b>");
    let coded: Vec<_> = STANDARD.encode(text(10_000, 4)).into_bytes();
    let coded = coded.chunks(76).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    [
        ("text 500", message("", &text(500, 1))),
        ("text 5000", message("", &text(5_000, 2))),
        ("html 10000", message("Content-Type: text/html\n", &html)),
        ("base64 10000", message("Content-Type: text/plain\nContent-Transfer-Encoding: base64\n", &coded)),
        ("text 200000", message("", &text(200_000, 5))),
    ]
}

/// A database that knows some 20,000 words, each from a few messages of both classes.
fn trained() -> Memory {
    let (mut memory, mut set) = (Memory::new(), TokenSet::new());
    for number in 0..400 {
        memory.learn(set.fill(&message("", &text(5_000, 1000 + number)), &Options::default()), number % 3 == 0);
    }
    memory
}

fn tokens(c: &mut Criterion) {
    let mut group = c.benchmark_group("tokens");
    let options = Options::default();
    for (name, message) in messages() {
        let mut set = TokenSet::new();
        group.throughput(Throughput::Bytes(message.len() as u64));
        group.bench_function(name, |b| b.iter(|| set.fill(black_box(&message), &options).len()));
    }
}

fn scores(c: &mut Criterion) {
    let mut group = c.benchmark_group("score");
    let (memory, options) = (trained(), Options::default());
    for (name, message) in messages() {
        let mut set = TokenSet::new();
        set.fill(&message, &options);
        group.throughput(Throughput::Elements(set.len() as u64));
        group.bench_function(name, |b| b.iter(|| score(black_box(&set), &memory, &options)));
    }
}

/// The same message, of which more and more words are combined: the difference is products and chi-squared sums.
fn chi2(c: &mut Criterion) {
    let mut group = c.benchmark_group("chi2");
    let memory = trained();
    let mut set = TokenSet::new();
    set.fill(&message("", &text(20_000, 6)), &Options::default());
    for max_discriminators in [1, 15, 150, 1500] {
        let options = Options { max_discriminators, ..Options::default() };
        group.bench_function(max_discriminators.to_string(), |b| {
            b.iter(|| score(black_box(&set), &memory, &options));
        });
    }
}

criterion_group!(benches, tokens, scores, chi2);
criterion_main!(benches);
