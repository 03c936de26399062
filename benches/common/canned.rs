//! A server that does nothing but what it is told to cost: it reads a request, waits or works for a while, and gives
//! always the same answer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What each call costs.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// CPU time, one call at a time: an interpreter with a global lock.
    pub work: Duration,
    /// Time that passes, for all calls at once: a server far away.
    pub wait: Duration,
}

/// Its URL. It ends with the process.
pub fn canned(cost: Cost) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let interpreter = Arc::new(Mutex::new(()));
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, interpreter) = (socket.expect("a connection"), interpreter.clone());
            thread::spawn(move || serve(socket, cost, &interpreter));
        }
    });
    format!("http://{address}/RPC2")
}

fn serve(mut socket: TcpStream, cost: Cost, interpreter: &Mutex<()>) {
    socket.set_nodelay(true).expect("a TCP socket");
    let message = hamsift::xmlrpc::Value::Base64(b"X-Spambayes-Classification: ham; 0.02\n\n".to_vec());
    let mut body = hamsift::encode::Encoder::default();
    hamsift::xmlrpc::response(&message, &mut body);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.as_slice().len());
    let answer = [head.as_bytes(), body.as_slice()].concat();
    let mut buffer = vec![0; 1 << 20];
    while let Some(()) = read_message(&mut socket, &mut buffer) {
        if !cost.work.is_zero() {
            let _held = interpreter.lock().expect("nobody panics");
            let start = Instant::now();
            while start.elapsed() < cost.work {
                std::hint::spin_loop();
            }
        }
        if !cost.wait.is_zero() {
            thread::sleep(cost.wait);
        }
        if socket.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Reads one request or answer, as long as its Content-Length says; `None` where the connection ends before.
pub fn read_message(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let (mut filled, mut whole) = (0, None);
    while whole.is_none_or(|whole| filled < whole) {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let length = socket.read(&mut buffer[filled..]).ok()?;
        if length == 0 {
            return None;
        }
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
    Some(())
}
