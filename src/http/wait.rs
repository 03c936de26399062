//! The one place that waits on a socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use ureq::Error;

use super::line::{LineState, Trouble};

/// How often a connection that was never answered looks whether it is starved.
const GLANCE: Duration = Duration::from_millis(20);

/// A read that waits by itself looks at the clock after this.
pub(super) const NAP: Duration = Duration::from_secs(1);

/// Waits for one connection, which the judge knows from the first attempt to connect until this is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    line: Arc<LineState>,
    id: u64,
    opened: Instant,
    /// What the judge had counted when this connection was opened.
    mark: u64,
}

impl Waiter {
    pub(super) fn new(line: &Arc<LineState>, socket: &Arc<OwnedFd>) -> Self {
        let opened = Instant::now();
        let id = line.site.new_id();
        let mark = line.site.judge().opened(id, Arc::downgrade(socket), opened);
        Self { line: Arc::clone(line), id, opened, mark }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn line(&self) -> &LineState {
        &self.line
    }

    /// Whether there is nothing to do but wait, for [`NAP`] at least: the connection has answered before, so that it
    /// cannot be starved.
    pub(super) fn may_nap(&self, until: Instant) -> bool {
        self.line.lock().answers() > 0 && until.saturating_duration_since(Instant::now()) > NAP
    }

    /// Waits until the socket is ready (true) or `until` is over (false).
    ///
    /// # Errors
    /// When the connection is known to be starved, or cannot be waited for.
    pub(super) fn wait(&self, socket: &OwnedFd, what: PollFlags, until: Instant) -> Result<bool, Error> {
        while let Some(slice) = self.slice(until)? {
            let mut fds = [PollFd::new(socket, what)];
            match poll(&mut fds, Timespec::try_from(slice).ok().as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(Error::Io(error.into())),
            }
        }
        Ok(false)
    }

    /// Sleeps for a moment: for what cannot be polled. False if `until` is over.
    pub(super) fn pause(&self, moment: Duration, until: Instant) -> Result<bool, Error> {
        let slice = self.slice(until)?;
        slice.inspect(|slice| std::thread::sleep(moment.min(*slice)));
        Ok(slice.is_some())
    }

    /// How long to wait before looking again; none if `until` is over.
    fn slice(&self, until: Instant) -> Result<Option<Duration>, Error> {
        let now = Instant::now();
        let left = until.saturating_duration_since(now);
        if left.is_zero() {
            return Ok(None);
        }
        if self.line.lock().answers() > 0 {
            return Ok(Some(left));
        }
        let mut judge = self.line.site.judge();
        if judge.starving(self.id, self.opened, self.mark, now) {
            drop(judge);
            return Err(self.line.fail(Trouble::Starved));
        }
        judge.free_idle(now);
        Ok(Some(if judge.watchful() { left.min(GLANCE) } else { left }))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.line.site.judge().closed(self.id);
        self.line.lock().lost(self.id);
    }
}
