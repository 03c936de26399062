//! The bytes of a connection on their way to and from hyper, and what can be seen of a call by watching them: whether
//! the client is silent, sends, or takes its answer. Deadlines are kept by [`connection`](super::connection).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use super::body::Held;

/// So much of a request is kept to look at its header lines.
const HEAD_KEPT: usize = 16 << 10;

/// So much room for it stays with a connection that is silent.
const HEAD_USUAL: usize = 512;

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The client has sent nothing of a next call.
    Idle,
    /// Some of the header lines have come.
    Head,
    /// The body is coming.
    Body,
    /// The call is being carried out.
    Work,
    /// The answer is on its way.
    Reply,
}

/// What was seen of a connection.
#[derive(Debug)]
pub(super) struct Watch(Mutex<Seen>);

#[derive(Debug)]
pub(super) struct Seen {
    pub(super) phase: Phase,
    /// When the phase began.
    pub(super) since: Instant,
    /// When the last byte passed.
    pub(super) moved: Instant,
    /// The beginning of the request.
    head: Vec<u8>,
    /// Room that its body takes.
    held: Option<Held>,
    /// The last answer went out before the request was read to its end.
    pub(super) unread: bool,
}

impl Watch {
    pub(super) fn new() -> Watch {
        let now = Instant::now();
        Watch(Mutex::new(Seen {
            phase: Phase::Idle,
            since: now,
            moved: now,
            head: Vec::new(),
            held: None,
            unread: false,
        }))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.seen().enter(phase);
    }

    /// Keeps the room that a call takes until its answer is out.
    pub(super) fn holds(&self, held: Held) {
        self.seen().held = Some(held);
    }

    /// Whether the request is known to have no `Content-Length` beside its `Transfer-Encoding`. hyper ignores the former,
    /// as it may; but a proxy in front of us may have done otherwise, and taken the rest for another request. `false`
    /// too where the header lines were not seen from their beginning to their end.
    pub(super) fn has_only_chunks(&self) -> bool {
        let seen = self.seen();
        let end = memmem::find(&seen.head, b"\r\n\r\n").or_else(|| memmem::find(&seen.head, b"\n\n"));
        let Some(end) = end else { return false };
        let lines = || seen.head[..end].split(|&byte| byte == b'\n');
        let count = |name: &[u8]| {
            let is_it = |line: &&[u8]| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
            lines().filter(is_it).count()
        };
        count(b"transfer-encoding") == 1 && count(b"content-length") == 0
    }
}

impl Seen {
    pub(super) fn enter(&mut self, phase: Phase) {
        (self.phase, self.since) = (phase, Instant::now());
        self.moved = self.since;
        if phase == Phase::Idle {
            self.head.clear();
            self.head.shrink_to(HEAD_USUAL);
            self.held = None;
        }
    }

    fn came(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.phase == Phase::Idle {
            self.enter(Phase::Head);
        }
        self.moved = Instant::now();
        if self.phase == Phase::Head {
            // Usually they come at once, and with the body behind them.
            let end = memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
            let room = HEAD_KEPT.saturating_sub(self.head.len()).min(end);
            self.head.extend_from_slice(&bytes[..room]);
        }
    }

    fn went(&mut self) {
        self.moved = Instant::now();
    }
}

/// A connection of either kind that no runtime has yet.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Accepted {
    /// Has it watched by the runtime of the caller.
    pub(super) fn attach(self) -> io::Result<Stream> {
        match self {
            Accepted::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            Accepted::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }
    }
}

/// A connection of either kind.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Passes a call on to the stream that there is.
macro_rules! either {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
        }
    };
}

/// A stream under watch.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: Stream,
    pub(super) watch: std::sync::Arc<Watch>,
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let before = buf.filled().len();
        ready!(either!(&mut wire.stream, stream => Pin::new(stream).poll_read(cx, buf)))?;
        wire.watch.seen().came(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let count = ready!(either!(&mut wire.stream, stream => Pin::new(stream).poll_write(cx, buf)))?;
        wire.watch.seen().went();
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let count = ready!(either!(&mut wire.stream, stream => Pin::new(stream).poll_write_vectored(cx, bufs)))?;
        wire.watch.seen().went();
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        either!(&self.stream, stream => stream.is_write_vectored())
    }

    /// hyper asks for this once all it has is written: the answer is out.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        ready!(either!(&mut wire.stream, stream => Pin::new(stream).poll_flush(cx)))?;
        let mut seen = wire.watch.seen();
        if seen.phase == Phase::Reply {
            seen.enter(Phase::Idle);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.get_mut().stream, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_chunks(pieces: &[&str]) -> bool {
        let watch = Watch::new();
        pieces.iter().for_each(|piece| watch.seen().came(piece.as_bytes()));
        watch.has_only_chunks()
    }

    #[test]
    fn a_length_beside_chunks_is_seen_wherever_it_stands() {
        assert!(only_chunks(&["POST / HTTP/1.1\r\nTransfer-Enc", "oding: chunked\r\n\r\nContent-Length: 1\r\n"]));
        assert!(!only_chunks(&["POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-", "length : 4\r\n\r\n"]));
        assert!(!only_chunks(&["POST / HTTP/1.1\nContent-Length: 4\nTransfer-Encoding: chunked\n\n"]));
        assert!(!only_chunks(&["POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n"]));
        assert!(!only_chunks(&["POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"]), "no end seen");
        assert!(!only_chunks(&[]), "nothing seen");
    }
}
