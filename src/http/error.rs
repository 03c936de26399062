//! What can go wrong with one call, told apart by the one question a caller has: may it be repeated?

use std::time::Duration;

use thiserror::Error;

/// Why a call got no answer.
///
/// The connection it happened on is closed in every case; no byte of it can reach a later call.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No connection: refused, unreachable, name not found. Says which.
    #[error("cannot connect: {reason}")]
    Connect {
        /// In words, such as `connection refused`.
        reason: String,
    },
    /// Nothing answered the attempt to connect within the time set for it.
    #[error("cannot connect: no connection within {} s", seconds(.within))]
    ConnectTimeout {
        /// The time set for connecting.
        within: Duration,
    },
    /// The deadline of the call passed.
    #[error("no complete answer in time")]
    Timeout {
        /// Whether a part of the answer had come.
        answer_began: bool,
    },
    /// The server closed the connection before any byte of an answer.
    #[error("the server closed the connection without an answer")]
    Closed,
    /// The answer began and ended early.
    #[error("the answer was cut off")]
    Cut,
    /// The answer is larger than the caller allows (after unpacking, if it was packed).
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit that was set.
        limit: usize,
    },
    /// What came is no HTTP answer.
    #[error("the answer is not HTTP: {0}")]
    Protocol(String),
    /// The answer says it is gzip and does not unpack.
    #[error("the answer is damaged gzip")]
    BadGzip,
    /// No trustworthy TLS connection.
    #[error("TLS: {0}")]
    Tls(String),
}

impl HttpError {
    /// Whether a byte of an answer had come. If so, the call must not be repeated: the server may have done its work,
    /// and a second answer could differ from the first.
    #[must_use]
    pub fn answer_began(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::ConnectTimeout { .. } | Self::Closed | Self::Tls(_) => false,
            Self::Timeout { answer_began } => *answer_began,
            Self::Cut | Self::TooLarge { .. } | Self::Protocol(_) | Self::BadGzip => true,
        }
    }
}

fn seconds(time: &Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Why a pool could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The file with private CA certificates cannot be used.
    #[error("certificates in {path}: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A pool of no connections was asked for.
    #[error("a pool needs at least one connection")]
    NoConnections,
}
