//! A pool of persistent HTTP/1.1 connections to one server, for posting one document and getting one back.
//!
//! It knows nothing of what is posted. What it knows better than a general client:
//!
//! * **Whose bytes are whose.** A connection is used again only after a whole answer and with nothing left over on it;
//!   see `watch`. An answer that came in pieces, late, or too large costs the connection.
//! * **What may be repeated.** Every error says whether a byte of an answer had come.
//! * **One deadline.** It bounds all of a call: waiting for a connection, name look-up, connecting, sending, reading.
//! * **How many connections.** Each `line` is a ureq agent of its own with its own transport (`socket`), so that they
//!   are counted and not guessed; none is opened before a call needs it.
//! * **Servers of every age.** HTTP/1.0 with a connection per call, keep-alive, silent closing, one connection at a time
//!   (see `judge`), Unix-domain sockets, TLS.
//!
//! What it refuses to do: follow redirects, use a proxy (the environment is not looked at), keep cookies, ask for
//! compression (though it unpacks what comes), pipeline, resume.

mod answer;
mod buffers;
mod connect;
mod endpoint;
mod error;
mod judge;
mod line;
mod names;
mod pool;
mod seats;
mod site;
mod socket;
#[cfg(test)]
mod tests;
mod wait;
mod watch;

pub use answer::Answer;
pub use endpoint::{Endpoint, UrlError};
pub use error::{HttpError, SetupError};
pub use pool::{Pool, PoolConfig};
pub use site::Counters;
