//! How close does `filter -n 4` come to what the server can do at all? The ceiling is a bare loop: four sockets that are
//! kept, sending request bodies prepared beforehand, and reading answers without looking at them.

#![allow(clippy::expect_used)]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hamsift::encode::Encoder;
use hamsift::xmlrpc;

const SOCKETS: usize = 4;
const ROUNDS: usize = 9;

fn main() {
    // `cargo bench` passes options meant for another harness.
    let (server, mbox) = (common::Server::find(), common::mailbox());
    let messages = common::messages(&mbox);
    let requests: Vec<_> = messages.iter().map(|message| request(message, server.address())).collect();
    let mut bare = || loop_over(&requests, server.address());
    let mut filter = || common::time(common::hamsift().args(["filter", "-q", "-n", "4", "-s", &server.url]).arg(&mbox));
    let times = common::medians(ROUNDS, &mut [&mut bare, &mut filter]);
    let rate = |time: Duration| messages.len() as f64 / time.as_secs_f64();
    println!("{} messages, {ROUNDS} rounds, medians", messages.len());
    println!("bare sockets, {SOCKETS}:  {:8.0} messages/s", rate(times[0]));
    println!("filter -n 4:      {:8.0} messages/s", rate(times[1]));
    println!("share of the ceiling: {:.1} %", 100.0 * times[0].as_secs_f64() / times[1].as_secs_f64());
}

fn request(message: &[u8], address: &str) -> Vec<u8> {
    let mut body = Encoder::default();
    xmlrpc::call_message("filter", message, &mut body);
    let body = body.into_vec();
    let head = format!(
        "POST /RPC2 HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

fn loop_over(requests: &[Vec<u8>], address: &str) -> Duration {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..SOCKETS {
            scope.spawn(|| {
                let mut socket = TcpStream::connect(address).expect("the server listens");
                socket.set_nodelay(true).expect("a TCP socket");
                let mut answer = vec![0; 1 << 20];
                while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    socket.write_all(request).expect("the server reads");
                    read_answer(&mut socket, &mut answer);
                }
            });
        }
    });
    start.elapsed()
}

/// Reads one answer, as long as its Content-Length says.
fn read_answer(socket: &mut TcpStream, buffer: &mut Vec<u8>) {
    let (mut filled, mut whole) = (0, None);
    while whole.is_none_or(|whole| filled < whole) {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let length = socket.read(&mut buffer[filled..]).expect("an answer");
        assert!(length > 0, "the server closed the connection");
        filled += length;
        if whole.is_none()
            && let Some(end) = buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n")
        {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.split("content-length:").nth(1).and_then(|rest| rest.split_whitespace().next());
            let length: usize = length.and_then(|length| length.parse().ok()).expect("Content-Length");
            whole = Some(end + 4 + length);
        }
    }
}
