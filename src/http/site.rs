//! What all lines of a pool share: where they go, and what is known and counted of the server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ureq::tls::TlsConfig;

use super::endpoint::Endpoint;
use super::judge::Judge;
use super::names::Names;

/// See the module.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) endpoint: Endpoint,
    pub(super) connect_timeout: Duration,
    pub(super) tls: TlsConfig,
    pub(super) names: Names,
    judge: Mutex<Judge>,
    ids: AtomicU64,
    connections: AtomicU64,
    requests: AtomicU64,
    repeats: AtomicU64,
}

/// What a pool has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Connections opened in all.
    pub connections: u64,
    /// Requests sent, repeated ones included.
    pub requests: u64,
    /// Requests the pool repeated by itself: on a kept-alive connection that had been closed, or a starved one.
    pub repeats: u64,
}

impl Site {
    pub(super) fn new(endpoint: Endpoint, connections: usize, connect_timeout: Duration, tls: TlsConfig) -> Self {
        Self {
            names: Names::new(&endpoint),
            endpoint,
            connect_timeout,
            tls,
            judge: Mutex::new(Judge::new(connections)),
            ids: AtomicU64::new(1),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            repeats: AtomicU64::new(0),
        }
    }

    pub(super) fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Relaxed)
    }

    pub(super) fn count_connection(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub(super) fn count_repeat(&self) {
        self.repeats.fetch_add(1, Relaxed);
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            connections: self.connections.load(Relaxed),
            requests: self.requests.load(Relaxed),
            repeats: self.repeats.load(Relaxed),
        }
    }
}
