//! What the XML-RPC codec costs per message: `cargo bench --bench xmlrpc`.
//!
//! The sizes are a short mail, the usual one of about 5 kB, and one with a small attachment; the answers are formed as
//! Python's xmlrpc server forms them, with base64 in lines of 76 characters.
#![allow(missing_docs)]

use std::hint::black_box;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hamsift::encode::Encoder;
use hamsift::xmlrpc::{Limits, Value, call_message, decode_call, decode_response};

const SIZES: [usize; 4] = [500, 5_000, 30_000, 1_000_000];

/// Text like that of a mail: lines, mostly ASCII.
fn message(len: usize) -> Vec<u8> {
    let line = b"Received: from mx.example.org (mx.example.org [192.0.2.1]) by mail.example.net\n";
    line.iter().copied().cycle().take(len).collect()
}

fn answer(content: &str) -> Vec<u8> {
    format!(
        "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value>{content}</value>\n</param>\n</params>\n\
         </methodResponse>\n"
    )
    .into_bytes()
}

fn lines(text: &str, end: &str) -> String {
    let lines: Vec<_> = text.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
    lines.join(end)
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("call_message");
    for len in SIZES {
        let message = message(len);
        let mut out = Encoder::default();
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(len.to_string(), |b| {
            b.iter(|| {
                call_message("filter", black_box(&message), &mut out);
                out.as_slice().len()
            });
        });
    }
}

fn decode(c: &mut Criterion) {
    let limits = Limits::default();
    let mut group = c.benchmark_group("decode_response");
    for len in SIZES {
        let text = STANDARD.encode(message(len));
        group.throughput(Throughput::Bytes(len as u64));
        for (name, end) in [("lf", "\n"), ("crlf", "\r\n"), ("indented", "\n    ")] {
            let body = answer(&format!("<base64>\n{}\n</base64>", lines(&text, end)));
            group.bench_function(format!("{len}/{name}"), |b| b.iter(|| decode_response(black_box(&body), &limits)));
        }
    }
    group.throughput(Throughput::Elements(1));
    let score = answer("<double>0.020408163265306122</double>");
    group.bench_function("score", |b| b.iter(|| decode_response(black_box(&score), &limits)));
    let clue = "<value><array><data>\n<value><string>subject:meeting</string></value>\n<value><double>0.0412844</double>\
                </value>\n</data></array></value>\n";
    let evidence = answer(&format!(
        "<array><data>\n<value><double>0.5</double></value>\n<value><array><data>\n{}</data></array></value></data></array>",
        clue.repeat(150)
    ));
    group.bench_function("evidence", |b| b.iter(|| decode_response(black_box(&evidence), &limits)));
}

fn serve(c: &mut Criterion) {
    let mut call = Encoder::default();
    call_message("filter", &message(5_000), &mut call);
    c.bench_function("decode_call/5000", |b| b.iter(|| decode_call(black_box(call.as_slice()), &Limits::default())));
    let answer = Value::Base64(message(5_000));
    let mut out = Encoder::default();
    c.bench_function("response/5000", |b| {
        b.iter(|| {
            hamsift::xmlrpc::response(black_box(&answer), &mut out);
            out.as_slice().len()
        });
    });
}

criterion_group!(benches, encode, decode, serve);
criterion_main!(benches);
