//! A server that does what a closure says, connection by connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

pub(super) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// One accepted connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    left: Vec<u8>,
}

/// A request as it came.
pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), left: Vec::new() }
    }

    /// The bare stream, for a layer to be put on it.
    pub(super) fn take_stream(&mut self) -> Box<dyn Stream> {
        std::mem::replace(&mut self.stream, Box::new(std::io::empty()))
    }

    /// Reads once, whatever comes.
    pub(super) fn read_some(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1 << 20];
        let read = self.stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        buffer.truncate(read);
        Some(buffer)
    }

    /// Reads one byte, and leaves the others unread.
    pub(super) fn read_byte(&mut self) {
        let _ = self.stream.read(&mut [0]);
    }

    /// Reads a whole request; none when the client has closed.
    pub(super) fn request(&mut self) -> Option<Request> {
        loop {
            if let Some(at) = self.left.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(self.left[..at].to_vec()).unwrap();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let end = at + 4 + length.parse::<usize>().unwrap();
                while self.left.len() < end {
                    let more = self.read_some()?;
                    self.left.extend(more);
                }
                let rest = self.left.split_off(end);
                let body = std::mem::replace(&mut self.left, rest).split_off(at + 4);
                return Some(Request { head, body });
            }
            let more = self.read_some()?;
            self.left.extend(more);
        }
    }

    /// Sends; what the client does not take is no matter here.
    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Holds the connection open until the client closes it.
    pub(super) fn hold(&mut self) {
        while self.read_some().is_some() {}
    }
}

pub(super) struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    /// A thread per connection. `handle` gets the number of the connection, from 0.
    pub(super) fn threads(handle: impl Fn(&mut Connection, usize) + Send + Sync + 'static) -> Self {
        let handle = Arc::new(handle);
        Self::start(move |mut connection, nth| {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(&mut connection, nth));
        })
    }

    /// One connection at a time.
    pub(super) fn single(handle: impl Fn(&mut Connection, usize) + Send + Sync + 'static) -> Self {
        Self::start(move |mut connection, nth| handle(&mut connection, nth))
    }

    /// One thread that does this with each connection.
    pub(super) fn start(accept: impl Fn(Connection, usize) + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                accept(Connection::new(stream), counter.fetch_add(1, SeqCst));
            }
        });
        Self { address, accepted }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(SeqCst)
    }
}

/// Answers on a Unix-domain socket.
pub(super) fn on_unix_socket(path: &std::path::Path, handle: impl Fn(&mut Connection, usize) + Send + 'static) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for (nth, stream) in listener.incoming().enumerate() {
            handle(&mut Connection::new(stream.unwrap()), nth);
        }
    });
}

/// A good answer with this body.
pub(super) fn ok(body: &[u8]) -> Vec<u8> {
    answer("200 OK", "", body)
}

/// An answer with this status and these headers (each ending in CRLF).
pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
