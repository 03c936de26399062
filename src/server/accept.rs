//! Takes connections in, as many as there may be.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use super::Shared;
use super::connection;
use super::listen::Listener;
use super::threads::Threads;
use super::wire::Accepted;
use crate::report::Teller;

/// Files open besides connections: sockets that listen, the database, standard streams.
const OTHER_FILES: u64 = 64;
/// When there are as many connections as there may be, it is seen after this whether one has gone.
const FULL: Duration = Duration::from_millis(1);
/// When the system is short of something, it is asked again after this.
const SHORT_OF_SOMETHING: Duration = Duration::from_millis(50);
/// Once the server is to stop, connections that wait to be accepted are, until none comes for so long.
const LAST_ONES: Duration = Duration::from_millis(10);
/// And for no longer than this, or clients that connect again and again would keep the server.
const LAST_ONES_IN_ALL: Duration = Duration::from_millis(200);

/// How many connections there may be: as wanted, if the system allows so many open files.
pub(super) fn room_for(wanted: u64, teller: &Teller) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let (now, most) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let needed = wanted.saturating_add(OTHER_FILES);
    if now >= needed {
        return wanted;
    }
    let files = needed.min(most);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum });
    let room = if raised.is_ok() { files } else { now }.saturating_sub(OTHER_FILES).max(1);
    if room < wanted {
        teller.note(&format!("at most {room} connections: the system allows no more open files"));
    }
    room.min(wanted)
}

/// A connection being open, as counted.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: &Arc<Shared>) -> Open {
        shared.metrics.accepted.fetch_add(1, Ordering::Relaxed);
        shared.metrics.open.fetch_add(1, Ordering::Relaxed);
        Open(shared.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.metrics.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The line of the connections that can go when others need the room.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    line: Notify,
    /// Who needs room at the moment.
    wanting: AtomicUsize,
}

impl Crowd {
    /// Gets in line and waits to be the one that goes.
    pub(super) async fn turn(&self) {
        loop {
            self.line.notified().await;
            // Where nobody was in line, word to go is kept for the next one, but by then there may be room.
            if self.wanting.load(Ordering::SeqCst) > 0 {
                return;
            }
        }
    }

    /// Room is needed until this is dropped.
    fn want(&self) -> Wanting<'_> {
        self.wanting.fetch_add(1, Ordering::SeqCst);
        Wanting(self)
    }
}

/// Somebody who needs room.
struct Wanting<'a>(&'a Crowd);

impl Wanting<'_> {
    /// Has the first in line go.
    fn tell(&self) {
        self.0.line.notify_one();
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.0.wanting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until there is room for one more connection. Of those that have sent no whole header, the one that has not for
/// longest goes; where there is none, one that has been answered goes.
async fn make_room(shared: &Shared) {
    let wanting = shared.crowd.want();
    while shared.metrics.open.load(Ordering::Relaxed) >= shared.max_connections {
        // Connections of a moment ago are to be in line before the first in line is told.
        yield_now().await;
        wanting.tell();
        yield_now().await;
        sleep(FULL).await;
    }
}

/// Accepts connections until the server is to stop. All of them hold `alive`.
pub(super) async fn run(
    shared: Arc<Shared>,
    threads: Arc<Threads>,
    listener: Listener,
    mut stop: watch::Receiver<bool>,
    alive: mpsc::Sender<()>,
) {
    let stopped = stop.clone();
    let take = |stream: Accepted, peer: Arc<str>| {
        let (open, alive, stop) = (Open::new(&shared), alive.clone(), stopped.clone());
        let shared = shared.clone();
        threads.give(async move {
            // It can fail only where the system is out of memory.
            if let Ok(stream) = stream.attach() {
                connection::serve(shared, stream, peer, stop).await;
            }
            drop((open, alive));
        });
    };
    loop {
        let accept = async {
            let accepted = listener.accept().await;
            make_room(&shared).await;
            accepted
        };
        let accepted = tokio::select! {
            accepted = accept => accepted,
            _ = stop.wait_for(|&stop| stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => take(stream, peer),
            Err(error) if is_of_one(&error) => {}
            Err(error) => {
                let wanting = shared.crowd.want();
                wanting.tell();
                shared.teller.trouble("accepting", &listener.url(), &error.to_string());
                sleep(SHORT_OF_SOMETHING).await;
            }
        }
    }
    // Their clients have connected: to them the server is there.
    let end = Instant::now() + LAST_ONES_IN_ALL;
    while Instant::now() < end
        && let Ok(Ok((stream, peer))) = timeout(LAST_ONES, listener.accept()).await
    {
        take(stream, peer);
    }
}

/// Whether only this connection failed, not the accepting.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | InvalidInput | NotConnected)
}
