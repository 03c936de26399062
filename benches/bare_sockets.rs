//! How close does `filter -n 4` come to what the server can do at all? The ceiling is a bare loop: four sockets that are
//! kept, sending request bodies prepared beforehand, and reading answers without looking at them.

#![allow(clippy::expect_used)]

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::canned::{Cost, canned, read_message};
use hamsift::encode::Encoder;
use hamsift::xmlrpc;

const SOCKETS: usize = 4;
const ROUNDS: usize = 9;
/// How often the mailbox is repeated for the server that costs nothing.
const TIMES: usize = 20;

fn main() {
    // `cargo bench` passes options meant for another harness.
    let (server, mbox) = (common::Server::find(), common::mailbox());
    let messages = common::messages(&mbox);
    println!("{ROUNDS} rounds in turns, medians, messages/s\n");
    println!("| server | {SOCKETS} bare sockets | `filter -n {SOCKETS}` | share |\n|---|--:|--:|--:|");
    compare("Python's standard library", &server.url, &mbox, &messages);
    for (name, work) in [("costs 0.5 ms", 500), ("costs 2 ms", 2000)] {
        let cost = Cost { work: Duration::from_micros(work), ..Cost::default() };
        compare(name, &canned(cost), &mbox, &messages);
    }
    // So many that the start of the program does not count.
    let folder = tempfile::tempdir().expect("a folder");
    let many = folder.path().join("many.mbox");
    std::fs::write(&many, std::fs::read(&mbox).expect("the mailbox").repeat(TIMES)).expect("room for it");
    compare("costs nothing", &canned(Cost::default()), &many, &vec![messages; TIMES].concat());
}

fn compare(name: &str, url: &str, mbox: &Path, messages: &[Vec<u8>]) {
    let address = common::address(url);
    let requests: Vec<_> = messages.iter().map(|message| request(message, address)).collect();
    let mut bare = || loop_over(&requests, address);
    let mut filter = || common::time(common::hamsift().args(["filter", "-q", "-n", "4", "-s", url]).arg(mbox));
    let times = common::medians(ROUNDS, &mut [&mut bare, &mut filter]);
    let rate = |time: Duration| messages.len() as f64 / time.as_secs_f64();
    let share = 100.0 * times[0].as_secs_f64() / times[1].as_secs_f64();
    println!("| {name}, {} messages | {:.0} | {:.0} | {share:.1} % |", messages.len(), rate(times[0]), rate(times[1]));
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
                    read_message(&mut socket, &mut answer).expect("an answer");
                }
            });
        }
    });
    start.elapsed()
}
