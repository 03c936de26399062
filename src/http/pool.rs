//! The pool: one server, at most so many connections, any number of threads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::debug;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::answer::Answer;
use super::endpoint::Endpoint;
use super::error::{HttpError, SetupError};
use super::line::{Failure, Line};
use super::seats::Seats;
use super::site::{Counters, Site};

/// How a [`Pool`] behaves.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// So many connections at once, at most.
    pub connections: usize,
    /// For looking up the host, connecting and the TLS handshake together; over all addresses of the host.
    pub connect_timeout: Duration,
    /// For `https`: trust the CA certificates of this PEM file, and no others. Without it, those of Mozilla's list are
    /// trusted, as built into the program; the certificates of the operating system are not looked at.
    pub ca_file: Option<PathBuf>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { connections: 4, connect_timeout: Duration::from_secs(5), ca_file: None }
    }
}

/// Connections to one server, opened when first needed and kept.
#[derive(Debug)]
pub struct Pool {
    site: Arc<Site>,
    lines: Seats<Line>,
    /// So many connections in use at once, and no more, is what the caller wants for now.
    wanted: AtomicUsize,
    notes: Mutex<Vec<String>>,
}

impl Pool {
    /// A pool with no connection yet.
    ///
    /// # Errors
    /// If the certificates cannot be read, or no connection is allowed.
    pub fn new(endpoint: Endpoint, config: &PoolConfig) -> Result<Self, SetupError> {
        if config.connections == 0 {
            return Err(SetupError::NoConnections);
        }
        // Reading some hundred certificates takes longer than a call that needs none.
        let tls = match &config.ca_file {
            Some(path) if endpoint.is_https() => TlsConfig::builder().root_certs(certificates(path)?).build(),
            _ => TlsConfig::default(),
        };
        let site = Site::new(endpoint, config.connections, config.connect_timeout, tls);
        Ok(Self {
            site: Arc::new(site),
            lines: Seats::new(),
            wanted: AtomicUsize::new(usize::MAX),
            notes: Mutex::default(),
        })
    }

    /// Sends `body` and gives back the answer, whatever its status. May be called by many threads at once; those for
    /// which there is no connection wait for one. All waiting together ends with `deadline`.
    ///
    /// The one thing repeated here is a request on a connection that had answered before and was closed, or never was
    /// read from, before any byte of this answer came.
    ///
    /// # Errors
    /// If there is no whole answer of at most `answer_limit` bytes by the `deadline`.
    pub fn post(&self, body: &[u8], answer_limit: usize, deadline: Instant) -> Result<Answer, HttpError> {
        let late = || HttpError::Timeout { answer_began: false };
        let mut stale = false;
        loop {
            let limit = || self.limit().min(self.wanted.load(Ordering::Relaxed));
            let mut seat = self.lines.take(deadline, limit, || Line::new(&self.site)).ok_or_else(late)?;
            let result = seat.with(|line| {
                let result = line.post(body, answer_limit, deadline);
                (result, line.is_connected())
            });
            let (result, connected) = result.ok_or_else(late)?;
            // A line without a connection is no use to the next call as long as there is one with.
            seat.put_last(!connected);
            if self.site.judge().neglects_one(Instant::now()) {
                seat.discard();
            } else {
                drop(seat);
            }
            match result {
                Ok(answer) => return Ok(answer),
                Err(Failure::Told(error)) => return Err(error),
                Err(Failure::Stale) if stale => return Err(HttpError::Closed),
                Err(Failure::Stale) => stale = true,
                Err(Failure::Starved) => self.note_starvation(),
            }
            debug!("{}: sent again", self.site.endpoint);
            self.site.count_repeat();
        }
    }

    fn note_starvation(&self) {
        if self.site.judge().take_note() {
            let server = &self.site.endpoint;
            let note = format!("{server} answers one connection at a time; going on with one connection");
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        }
    }

    /// How many calls have a connection, or are opening one, right now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.lines.in_use()
    }

    /// From now on at most so many connections are in use at once, if not fewer for another reason. Calls under way go
    /// on.
    pub fn want(&self, connections: usize) {
        self.wanted.store(connections.max(1), Ordering::Relaxed);
    }

    /// How many connections can be in use at once, right now, as far as the server goes: fewer than were asked for where the server answers one at
    /// a time.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.site.judge().limit(Instant::now())
    }

    /// How many calls so far had to wait until another connection was closed: the server has a thread for each of so
    /// many, and fewer than there were calls.
    #[must_use]
    pub fn neglected(&self) -> usize {
        self.site.judge().neglected()
    }

    /// What the pool has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.site.counters()
    }

    /// What the user should be told about this server, each thing once.
    #[must_use]
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The server.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.site.endpoint
    }
}

#[cfg(test)]
impl Pool {
    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    /// What a panic in the middle of a call does to the pool.
    pub(super) fn seat_then_panic(&self) {
        let _seat = self.lines.take(Instant::now(), || 1, || Line::new(&self.site));
        panic!("on purpose");
    }
}

fn certificates(path: &Path) -> Result<RootCerts, SetupError> {
    let fail = |reason: String| SetupError::Certificates { path: path.display().to_string(), reason };
    let pem = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| fail(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(fail("no certificate in it".to_owned()));
    }
    Ok(RootCerts::from(found))
}
