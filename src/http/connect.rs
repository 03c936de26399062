//! Opens one connection within the time set for connecting, trying each address of the server in turn.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use log::debug;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, sockopt};
use ureq::Error;
use ureq::unversioned::transport::{ConnectionDetails, Connector};

use super::line::{LineState, Trouble};
use super::socket::Socket;
use super::wait::Waiter;

/// A Unix-domain socket whose backlog is full cannot be waited for, only asked again.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Opens the sockets of one line.
#[derive(Debug)]
pub(super) struct SocketConnector(pub(super) Arc<LineState>);

impl Connector for SocketConnector {
    type Out = Socket;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<Self::Out>, Error> {
        let line = &self.0;
        let until = line.lock().begin_connecting();
        let site = &line.site;
        let (fd, waiter) = match site.endpoint.socket() {
            Some(path) => self.unix(path, until)?,
            None => self.tcp(&details.addrs, until)?,
        };
        site.count_connection();
        line.lock().opened(waiter.id());
        Ok(Some(Socket::new(fd, waiter)))
    }
}

/// What became of one attempt.
enum Attempt {
    Connected(Arc<OwnedFd>, Waiter),
    Failed(io::Error),
    TimedOut,
}

impl SocketConnector {
    fn tcp(&self, addresses: &[SocketAddr], until: Instant) -> Result<(Arc<OwnedFd>, Waiter), Error> {
        let line = &self.0;
        let mut trouble = Trouble::Timeout;
        for (at, address) in addresses.iter().enumerate() {
            // Half of what is left for each but the last, so that a first address that swallows everything (an IPv6
            // address behind a broken tunnel) does not use up the time of the others.
            let left = until.saturating_duration_since(Instant::now());
            let share = if at + 1 == addresses.len() { left } else { left / 2 };
            match self.try_tcp(*address, Instant::now() + share)? {
                Attempt::Connected(fd, waiter) => {
                    line.site.names.worked(*address);
                    return Ok((fd, waiter));
                }
                Attempt::Failed(error) => {
                    debug!("{address}: {error}");
                    trouble = Trouble::Connect(in_words(&error));
                }
                Attempt::TimedOut => trouble = Trouble::Timeout,
            }
        }
        line.site.names.forget();
        Err(line.fail(trouble))
    }

    fn try_tcp(&self, address: SocketAddr, until: Instant) -> Result<Attempt, Error> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let fd = Arc::new(match stream_socket(family) {
            Ok(fd) => fd,
            // Such as IPv6 being switched off on this machine: the next address may be of the other kind.
            Err(error) => return Ok(Attempt::Failed(error.into())),
        });
        let waiter = Waiter::new(&self.0, &fd);
        let mut result = connect(&fd, &address);
        if matches!(result, Err(Errno::INPROGRESS | Errno::INTR)) {
            if !waiter.wait(&fd, PollFlags::OUT, until)? {
                return Ok(Attempt::TimedOut);
            }
            result = sockopt::socket_error(&fd).and_then(|outcome| outcome);
        }
        // A request leaves in one write and the next waits for its answer: holding bytes back gains nothing.
        Ok(match result.and_then(|()| sockopt::set_tcp_nodelay(&fd, true)) {
            Ok(()) => Attempt::Connected(fd, waiter),
            Err(error) => Attempt::Failed(error.into()),
        })
    }

    fn unix(&self, path: &Path, until: Instant) -> Result<(Arc<OwnedFd>, Waiter), Error> {
        let fail = |error: Errno| self.0.fail(Trouble::Connect(in_words(&error.into())));
        let address = SocketAddrUnix::new(path).map_err(fail)?;
        let fd = Arc::new(stream_socket(AddressFamily::UNIX).map_err(fail)?);
        let waiter = Waiter::new(&self.0, &fd);
        loop {
            match connect(&fd, &address) {
                Ok(()) => return Ok((fd, waiter)),
                Err(Errno::AGAIN | Errno::INTR) => {
                    if !waiter.pause(ASK_AGAIN, until)? {
                        return Err(self.0.fail(Trouble::Timeout));
                    }
                }
                Err(error) => return Err(fail(error)),
            }
        }
    }
}

/// A socket that never blocks and is not passed on to programs that are started.
#[cfg(not(target_vendor = "apple"))]
fn stream_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, socket_with};
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// A socket that never blocks and is not passed on to programs that are started.
#[cfg(target_vendor = "apple")]
fn stream_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let fd = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::ioctl_fioclex(&fd)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

/// The words without the number of the error, where the standard library has them.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        kind @ (io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable) => kind.to_string(),
        io::ErrorKind::TimedOut => "no answer from the host".to_owned(),
        io::ErrorKind::NotFound => "no such socket".to_owned(),
        _ => error.to_string(),
    }
}
