//! One connection from its beginning to its end: hyper speaks, and this watches the clock.
//!
//! A connection costs memory only while it is silent. It is closed when it is silent for long, when header lines, body
//! or the taking of an answer come to a halt, when others need the room, and when the server stops; never while a call
//! is carried out.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::Shared;
use super::http::{self, Client};
use super::wire::{Phase, Seen, Stream, Watch, Wire};

/// The body may not halt for longer than this, nor take longer in all.
const BODY: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(300));
/// The taking of an answer may not halt for longer than this.
const REPLY: Duration = Duration::from_secs(30);
/// A call is carried out in less, so this is only in case that something hangs.
const WORK: Duration = Duration::from_secs(600);
/// What a client still sends after it was refused is thrown away for this long, or it would not see the refusal: closing
/// a connection with unread bytes resets it.
const LINGER: Duration = Duration::from_secs(2);
/// Header lines may take so many bytes, and be so many.
const HEADERS: (usize, usize) = (16 << 10, 100);
/// Bytes read at once.
const BUFFER: usize = 256 << 10;

fn deadline(shared: &Shared, seen: &Seen) -> Instant {
    match seen.phase {
        Phase::Idle => seen.since + shared.idle_timeout,
        Phase::Head => seen.since + shared.header_timeout,
        Phase::Body => (seen.moved + BODY.0).min(seen.since + BODY.1),
        Phase::Work => seen.since + WORK,
        Phase::Reply => seen.moved + REPLY,
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(shared: Arc<Shared>, stream: Stream, peer: Arc<str>, mut stop: watch::Receiver<bool>) {
    let watch = Arc::new(Watch::new());
    let client = Arc::new(Client { peer, watch: watch.clone() });
    let wire = Wire { stream, watch: watch.clone() };
    let service = {
        let shared = shared.clone();
        service_fn(move |request| Box::pin(http::answer(shared.clone(), client.clone(), request)))
    };
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .half_close(true)
        .max_buf_size(BUFFER)
        .max_header_size(HEADERS.0)
        .max_headers(HEADERS.1)
        .serve_connection(TokioIo::new(wire), service);
    let mut stopped = pin!(stop.wait_for(|&stopped| stopped));
    let mut told = false;
    let mut clock = pin!(sleep_until(deadline(&shared, &watch.seen())));
    // With the time from which on it is in line.
    let mut turn = None;
    let clean = poll_fn(|cx| {
        if let Poll::Ready(result) = connection.poll_without_shutdown(cx) {
            return Poll::Ready(result.is_ok());
        }
        // Only now, so that a request that has come already is answered.
        if !told && stopped.as_mut().poll(cx).is_ready() {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
            if let Poll::Ready(result) = connection.poll_without_shutdown(cx) {
                return Poll::Ready(result.is_ok());
            }
        }
        let (phase, since, due) = {
            let seen = watch.seen();
            (seen.phase, seen.since, deadline(&shared, &seen))
        };
        // A later deadline is met when the earlier one rings: that saves setting the clock for each call.
        if due < clock.deadline() {
            clock.as_mut().reset(due);
        }
        while clock.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                if phase != Phase::Idle {
                    shared.metrics.timed_out.fetch_add(1, Ordering::Relaxed);
                }
                return Poll::Ready(true);
            }
            clock.as_mut().reset(due);
        }
        if matches!(phase, Phase::Idle | Phase::Head) {
            let turn = match &mut turn {
                Some((begun, turn)) if *begun == since => turn,
                other => &mut other.insert((since, Box::pin(shared.crowd.turn()))).1,
            };
            if turn.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
        } else {
            turn = None;
        }
        Poll::Pending
    })
    .await;
    let unread = watch.seen().unread || !clean;
    let mut stream = connection.into_parts().io.into_inner().stream;
    close(&mut stream, unread).await;
}

async fn close(stream: &mut Stream, unread: bool) {
    let shut = match stream {
        Stream::Tcp(stream) => stream.shutdown().await,
        Stream::Unix(stream) => stream.shutdown().await,
    };
    if shut.is_err() || !unread {
        return;
    }
    let mut rest = vec![0; 16 << 10];
    let drain = async {
        loop {
            let count = match stream {
                Stream::Tcp(stream) => stream.read(&mut rest).await,
                Stream::Unix(stream) => stream.read(&mut rest).await,
            };
            if !matches!(count, Ok(1..)) {
                return;
            }
        }
    };
    let _ = timeout(LINGER, drain).await;
}
