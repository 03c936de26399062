//! Nothing a server does, or does not, makes a call last longer than its deadline.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, getsockname, listen, socket};

use super::server::{Server, ok};
use super::*;

/// Runs a call that must end at its deadline, neither before nor long after.
fn ends_in_time(pool: &Pool, body: &[u8]) -> HttpError {
    let start = Instant::now();
    let error = pool.post(body, 1 << 20, soon(150)).unwrap_err();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(150) && took < Duration::from_millis(1500), "{took:?}: {error:?}");
    error
}

#[test]
fn a_server_that_never_answers() {
    let server = Server::threads(|connection, _| connection.hold());
    let error = ends_in_time(&pool(&server.url(), 1), b"q");
    assert!(matches!(error, HttpError::Timeout { answer_began: false }), "{error:?}");
}

#[test]
fn a_server_that_drips() {
    for head in ["", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"] {
        let server = Server::threads(move |connection, _| {
            connection.request();
            connection.send(head.as_bytes());
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".iter().cycle() {
                std::thread::sleep(Duration::from_millis(5));
                if !connection.send(&[*byte]) {
                    break;
                }
            }
        });
        let error = ends_in_time(&pool(&server.url(), 1), b"q");
        assert!(matches!(error, HttpError::Timeout { answer_began: true }), "{error:?}");
    }
}

#[test]
fn a_server_that_never_reads() {
    let (end, ended) = mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    let server = Server::threads(move |_, _| {
        // Keeps the connection without reading from it.
        let _ = ended.lock().unwrap().recv();
    });
    let error = ends_in_time(&pool(&server.url(), 1), &vec![b'x'; 40 << 20]);
    assert!(matches!(error, HttpError::Timeout { answer_began: false }), "{error:?}");
    drop(end);
}

#[test]
fn a_connection_that_is_not_free_in_time() {
    let (first_is_there, wait_for_first) = mpsc::channel();
    let server = Server::threads(move |connection, _| {
        while let Some(request) = connection.request() {
            if request.body == b"hang" {
                first_is_there.send(()).unwrap();
                connection.hold();
            }
            connection.send(&ok(&request.body));
        }
    });
    let pool = pool(&server.url(), 1);
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| pool.post(b"hang", 10, soon(600)));
        wait_for_first.recv().unwrap();
        let error = ends_in_time(&pool, b"q");
        assert!(matches!(error, HttpError::Timeout { answer_began: false }), "{error:?}");
        assert!(hanging.join().unwrap().is_err());
    });
    echo_calls(&pool, 2, 5);
    assert_eq!(pool.counters().requests, 11, "the one that waited was never sent");
}

#[test]
fn a_call_after_its_deadline_is_not_begun() {
    let server = Server::threads(echo);
    let pool = pool(&server.url(), 1);
    echo_calls(&pool, 1, 1);
    let error = pool.post(b"q", 10, Instant::now()).unwrap_err();
    assert!(matches!(error, HttpError::Timeout { answer_began: false }), "{error:?}");
    echo_calls(&pool, 1, 1);
}

/// A pool that is given 100 ms to connect; what it says then.
fn connecting_takes_too_long(url: &str) {
    let connect_timeout = Duration::from_millis(100);
    let config = PoolConfig { connections: 1, connect_timeout, ca_file: None };
    let pool = Pool::new(Endpoint::parse(url).unwrap(), &config).unwrap();
    let start = Instant::now();
    let error = pool.post(b"q", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::ConnectTimeout { .. }) && !error.answer_began(), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(error.to_string(), "cannot connect: no connection within 0.1 s");
    // The deadline of the call comes first: then it is that which is told.
    let error = pool.post(b"q", 10, soon(20)).unwrap_err();
    assert!(matches!(error, HttpError::Timeout { answer_began: false }), "{error:?}");
}

/// A listening socket without a place left for another connection.
fn listen_full(family: AddressFamily, bound: impl FnOnce(&OwnedFd)) -> OwnedFd {
    let fd = socket(family, SocketType::STREAM, None).unwrap();
    bound(&fd);
    listen(&fd, 0).unwrap();
    fd
}

#[test]
fn a_tcp_server_with_a_full_backlog() {
    let fd = listen_full(AddressFamily::INET, |fd| {
        bind(fd, &"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap()).unwrap()
    });
    let address = std::net::SocketAddr::try_from(getsockname(&fd).unwrap()).unwrap();
    let mut fill = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        fill.push(stream);
    }
    connecting_takes_too_long(&format!("http://{address}"));
}

#[test]
fn a_unix_server_with_a_full_backlog() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let _fd = listen_full(AddressFamily::UNIX, |fd| bind(fd, &SocketAddrUnix::new(&path).unwrap()).unwrap());
    let _fill = UnixStream::connect(&path).unwrap();
    connecting_takes_too_long(&format!("unix:{}", path.display()));
}
