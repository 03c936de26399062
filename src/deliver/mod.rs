//! Bringing one message to a place, so that it is there whole or not at all.
//!
//! Nothing here knows why a message goes where it goes: whoever has decided hands over a [`Destination`]. Nothing here
//! classifies, and no byte of the text changes but as the format of the place demands.
//!
//! | file | owns |
//! |---|---|
//! | `destination` | what a destination is, as written and as found on disk |
//! | `mail` | the message, its sender, and what it looks like in an mbox |
//! | `sender` | a sender's address that may come from anybody; dates as asctime(3) writes them |
//! | `mbox` | appending under lock, repairing the tail, undoing |
//! | `maildir` | a file of its own for each message |
//! | `untold` | messages stored by a delivery that was killed before it could tell |
//! | `command` | programs that take the message: `|command`, and sendmail for `!address` |
//! | `dedupe` | which Message-IDs have come already |
//! | `log` | what procmail's LOGABSTRACT says, and the same as JSON |

mod command;
mod dedupe;
mod destination;
mod log;
mod mail;
mod maildir;
pub mod mbox;
mod sender;
mod untold;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::lock::{self, Kinds, LockError, Locked};

pub use dedupe::Seen;
pub use destination::{BadDestination, Destination};
pub use log::{Entry, Log, LogFormat};
pub use mail::Mail;
pub use sender::Sender;
pub use untold::Fingerprint;

/// How messages are delivered.
pub struct How<'a> {
    /// Which locks an mbox gets.
    pub locks: Kinds,
    /// The longest time to wait for them.
    pub lock_wait: Duration,
    /// The age from which on a dotlock belongs to nobody.
    pub stale: Duration,
    /// Whether a message is on disk before it counts as stored.
    pub sync: bool,
    /// The longest time a program may take.
    pub command_wait: Duration,
    /// The program that sends mail.
    pub sendmail: PathBuf,
    /// Asked wherever something may take its time: whether to stop and undo.
    pub stop: &'a dyn Fn() -> bool,
}

impl How<'_> {
    fn lock(&self) -> lock::How<'_> {
        let How { locks, lock_wait, stale, stop, .. } = *self;
        lock::How { kinds: locks, wait: lock_wait, stale, delivers: true, stop }
    }
}

/// Why a message was not delivered. Nothing of it is left in the place, unless the text says so.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The mailbox could not be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something could not be done with a file.
    #[error("cannot {what} {path}: {error}")]
    File {
        /// What.
        what: &'static str,
        /// Which file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The place is none for mail.
    #[error("{path} {why}")]
    Refused {
        /// The place.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A program did not take the message.
    #[error("{0}")]
    Command(String),
    /// It was told to stop.
    #[error("stopped before the message was stored")]
    Stopped,
    /// Writing failed, and so did taking back what was written.
    #[error("cannot write to {path}: {error}; nor cut it back to its {length} bytes: {undo}")]
    NotUndone {
        /// The mailbox.
        path: String,
        /// Why it could not be written.
        error: String,
        /// The length it had.
        length: u64,
        /// Why it still has more.
        undo: io::Error,
    },
}

impl DeliverError {
    fn file<'a>(what: &'static str, path: &'a Path) -> impl Fn(io::Error) -> DeliverError + use<'a> {
        move |error| DeliverError::File { what, path: path.display().to_string(), error }
    }

    fn refused(path: &Path, why: &'static str) -> DeliverError {
        DeliverError::Refused { path: path.display().to_string(), why }
    }
}

/// A message in its place. As long as this is kept, whoever is killed can try again and the message is there once: what
/// else has to be remembered of it is to be remembered now.
#[derive(Debug)]
pub struct Stored {
    /// Whether it was there already, from a delivery that was killed before it could tell.
    pub already: bool,
    /// An mbox stays locked.
    _mbox: Option<Locked>,
    /// A file in a Maildir keeps its mark.
    _maildir: Option<maildir::Mark>,
}

impl Destination {
    /// Brings the message there. What is worth knowing besides is told to `warn`.
    pub fn deliver(&self, mail: &Mail, how: &How, warn: &mut dyn FnMut(String)) -> Result<Stored, DeliverError> {
        if (how.stop)() {
            return Err(DeliverError::Stopped);
        }
        let mut stored = Stored { already: false, _mbox: None, _maildir: None };
        match self.place()? {
            destination::Place::Nowhere => {}
            destination::Place::Mbox(path) => {
                let (locked, already) = mbox::deliver(&path, mail, how, warn)?;
                stored = Stored { already, _mbox: Some(locked), ..stored };
            }
            destination::Place::Maildir { path, .. } => {
                let (mark, already) = maildir::deliver(&path, mail, how, warn)?;
                stored = Stored { already, _maildir: mark, ..stored };
            }
            destination::Place::Command(line) => command::run(line, mail, how)?,
            destination::Place::Addresses(addresses) => command::send(addresses, mail, how)?,
        }
        Ok(stored)
    }
}
