//! The pool against small servers made for one test each. Ports are always 0.

mod answers;
mod deadlines;
mod life;
mod server;
mod starve;
mod tls;

use std::time::{Duration, Instant};

use super::{Answer, Endpoint, HttpError, Pool, PoolConfig};
use server::{Connection, Server, ok};

/// Far away; no test that passes gets there.
fn later() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn soon(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn pool(url: &str, connections: usize) -> Pool {
    let config = PoolConfig { connections, ..PoolConfig::default() };
    Pool::new(Endpoint::parse(url).unwrap(), &config).unwrap()
}

/// One call to a server that handles each connection as `handle` says.
fn one_call(handle: impl Fn(&mut Connection, usize) + Send + Sync + 'static) -> Result<Answer, HttpError> {
    let server = Server::threads(handle);
    pool(&server.url(), 1).post(b"<q/>", 1 << 20, later())
}

/// One call to a server that reads the request, sends `bytes` and closes.
fn one_answer(bytes: impl Into<Vec<u8>>) -> Result<Answer, HttpError> {
    let bytes = bytes.into();
    one_call(move |connection, _| {
        connection.request();
        connection.send(&bytes);
    })
}

/// Posts the numbers of a range from `threads` threads at once and checks that each gets its own answer.
fn echo_calls(pool: &Pool, threads: usize, calls: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for call in 0..calls {
                    let body = format!("{thread}-{call}");
                    let answer = pool.post(body.as_bytes(), 1 << 20, later()).unwrap();
                    assert_eq!(String::from_utf8(answer.body).unwrap(), body);
                }
            });
        }
    });
}

/// Answers every request with its own body.
fn echo(connection: &mut Connection, _: usize) {
    while let Some(request) = connection.request() {
        connection.send(&ok(&request.body));
    }
}
