//! One socket, TCP or Unix-domain, every wait on it bounded by the deadline of the call.
//!
//! The time-outs ureq passes down are not used: they are set per agent and start anew in each phase. The deadline comes
//! from the [`LineState`], so that a server that drips a byte at a time gains nothing.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use ureq::Error;
use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

use super::buffers::Wire;
use super::line::{LineState, Trouble};
use super::wait::{NAP, Waiter};

/// No SIGPIPE from a closed connection, whatever the program has set for its standard output. (Apple has no such flag;
/// there the default of Rust programs, which ignore the signal, has to do.)
const SEND: SendFlags = {
    #[cfg(not(target_vendor = "apple"))]
    let flags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
    #[cfg(target_vendor = "apple")]
    let flags = SendFlags::DONTWAIT;
    flags
};

/// Whether the other side has closed an idle connection.
pub(super) fn closed_by_peer(socket: &OwnedFd) -> bool {
    let mut byte = [0_u8];
    match recv(socket, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
        Ok((read, _)) => read == 0,
        Err(error) => error != Errno::AGAIN && error != Errno::INTR,
    }
}

/// The innermost transport of a connection.
pub(super) struct Socket {
    fd: Arc<OwnedFd>,
    waiter: Waiter,
    wire: Wire,
    /// The other side takes nothing more; an answer may still be there to be read.
    deaf: bool,
    /// Whether reads without `DONTWAIT` wait, which the first of them arranges.
    waits: Option<bool>,
}

impl Socket {
    pub(super) fn new(fd: Arc<OwnedFd>, waiter: Waiter) -> Self {
        Self { fd, waiter, wire: Wire::default(), deaf: false, waits: None }
    }

    fn line(&self) -> &LineState {
        self.waiter.line()
    }

    fn flush(&mut self) -> Result<(), Error> {
        let mut done = 0;
        while !self.deaf && done < self.wire.pending().len() {
            match send(&*self.fd, &self.wire.pending()[done..], SEND) {
                Ok(sent) => done += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                // A server that refuses a request by its head may answer and close before it has read the body. Its
                // answer says more than "broken pipe", so go on as if all were sent, and read.
                Err(_) => self.deaf = true,
            }
        }
        self.wire.sent_all();
        Ok(())
    }

    /// How to read where there is nothing to read yet. A read that waits is one system call; to wait and then to read are
    /// two, and are needed where the connection has to be looked after meanwhile.
    fn wait_for_input(&mut self) -> Result<RecvFlags, Error> {
        let until = self.line().lock().wait_until();
        if self.waiter.may_nap(until) {
            let fd = &self.fd;
            let arrange = || ioctl_fionbio(fd, false).and_then(|()| set_socket_timeout(fd, Timeout::Recv, Some(NAP)));
            if *self.waits.get_or_insert_with(|| arrange().is_ok()) {
                return Ok(RecvFlags::empty());
            }
        }
        self.wait(PollFlags::IN)?;
        Ok(RecvFlags::DONTWAIT)
    }

    fn wait(&self, what: PollFlags) -> Result<(), Error> {
        let until = self.line().lock().wait_until();
        if self.waiter.wait(&self.fd, what, until)? { Ok(()) } else { Err(self.line().fail(Trouble::Timeout)) }
    }
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.wire
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        if self.wire.keep(amount) { self.flush() } else { Ok(()) }
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        // Right after a request there is nothing to read yet: asking first would be a system call for nothing.
        let mut wait_first = !self.wire.pending().is_empty();
        self.flush()?;
        loop {
            let flags = if std::mem::take(&mut wait_first) { self.wait_for_input()? } else { RecvFlags::DONTWAIT };
            let room = self.wire.input_append_buf();
            if room.is_empty() {
                // Reading nothing would look like the end of the answer.
                return Err(self.line().fail(Trouble::Protocol("a line of it is too long")));
            }
            match recv(&*self.fd, room, flags) {
                // The reset was met while sending; here it only looks like a regular end.
                Ok((0, _)) if self.deaf => return Err(self.line().fail(Trouble::Reset)),
                Ok((read, _)) => {
                    self.wire.input_appended(read);
                    // A server that always has a byte ready must not outlast the deadline either.
                    if self.line().is_late() {
                        return Err(self.line().fail(Trouble::Timeout));
                    }
                    return Ok(read > 0);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.line().lock().no_wait => {
                    return Err(Error::Io(std::io::ErrorKind::WouldBlock.into()));
                }
                Err(Errno::AGAIN) => wait_first = true,
                // ureq takes a reset for the regular end of an answer without length.
                Err(_) => return Err(self.line().fail(Trouble::Reset)),
            }
        }
    }

    /// Only answers whether the connection is not known to be done for; [`Watch`](super::watch::Watch) does the asking.
    fn is_open(&mut self) -> bool {
        !self.deaf && self.wire.pending().is_empty()
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("id", &self.waiter.id()).finish_non_exhaustive()
    }
}
