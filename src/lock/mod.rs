//! Mailbox locks: the kernel's (fcntl, flock) and a dotlock, all that are asked for or none.
//!
//! Postfix and Dovecot take the kernel lock first, procmail and maildrop the dotlock, so neither is ever waited for
//! while the other is held. Holding the kernel lock also keeps two of us from breaking the same stale dotlock.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | how a mailbox is opened, locked and looked at again |
//! | `dotlock` | the file beside it: made whole, known to be stale, broken |

mod dotlock;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock, flock};
use rustix::io::Errno;

use crate::output::{same_file, with_suffix};
use dotlock::Dotlock;

/// A dotlock older than this belongs to nobody.
pub const STALE: Duration = Duration::from_secs(600);
/// The first pause between tries, and the longest one: each is a little longer or shorter than reckoned, so that two
/// that wait do not meet for ever.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Why a mailbox is not locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another program holds it.
    #[error("{path} is locked by another program{owner}; gave up after {} s", .waited.as_secs())]
    Held {
        /// The mailbox, or its dotlock.
        path: String,
        /// What the dotlock says of its owner.
        owner: String,
        /// How long was waited.
        waited: Duration,
    },
    /// It is no regular file, or another one took its place again and again.
    #[error("{0} is no regular file")]
    NotRegular(String),
    /// It is a file, but perhaps not the mailbox it seems to be.
    #[error("{path} {why}")]
    Untrusted {
        /// The mailbox.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The caller does not want it any more.
    #[error("stopped while waiting for the lock of {0}")]
    Stopped(String),
    /// Opening or locking failed.
    #[error("cannot lock {path}: {error}")]
    Failed {
        /// The file that it failed on.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// Which locks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// `MAILBOX.lock`.
    pub dot: bool,
    /// The kernel's POSIX lock, over the whole file.
    pub fcntl: bool,
    /// The kernel's BSD lock.
    pub flock: bool,
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds { dot: true, fcntl: true, flock: false }
    }
}

/// How a mailbox is locked.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// With which locks.
    pub kinds: Kinds,
    /// The longest time to wait.
    pub wait: Duration,
    /// The age from which on a dotlock belongs to nobody.
    pub stale: Duration,
    /// Somebody puts mail into it: it is made (mode 0600) where it is not there, a symbolic link in its place is not
    /// followed, and a file with more names than one, or of another owner in a folder everybody may write to, is not
    /// taken for a mailbox. Where no dotlock can be made, a kernel lock will do.
    pub delivers: bool,
    /// Asked between tries whether to give up.
    pub stop: &'a dyn Fn() -> bool,
}

impl Default for How<'_> {
    fn default() -> Self {
        How { kinds: Kinds::default(), wait: Duration::from_secs(60), stale: STALE, delivers: false, stop: &|| false }
    }
}

/// A locked mailbox. The locks go when it is dropped.
///
/// The kernel lock would go when *any* descriptor of this file in this process is closed: while it is held, the file
/// must be used through [`Locked::file`] alone.
#[derive(Debug)]
pub struct Locked {
    // Goes first: whoever gets the kernel lock then finds no dotlock in his way.
    dotlock: Option<Dotlock>,
    file: File,
    path: PathBuf,
    dot_path: PathBuf,
    made: bool,
    abandoned: Option<String>,
}

impl Locked {
    /// Opens and locks a mailbox that is there, waiting at most `wait`. What was found of stale locks is told to `warn`.
    pub fn open(path: &Path, wait: Duration, warn: &mut dyn FnMut(String)) -> Result<Locked, LockError> {
        Locked::take(path, &How { wait, ..How::default() }, warn)
    }

    /// Opens and locks a mailbox.
    pub fn take(path: &Path, how: &How, warn: &mut dyn FnMut(String)) -> Result<Locked, LockError> {
        let failed = |path: &Path, error| LockError::Failed { path: path.display().to_string(), error };
        let (started, dot_path) = (Instant::now(), with_suffix(path, ".lock"));
        let (mut pause, mut tries, mut made, mut abandoned) = (PAUSES.0, 0u32, false, None);
        loop {
            let (file, new) = open(path, how.delivers).map_err(|error| failed(path, error))?;
            made |= new;
            let metadata = file.metadata().map_err(|error| failed(path, error))?;
            if !metadata.is_file() {
                return Err(LockError::NotRegular(path.display().to_string()));
            }
            let free = kernel_locks(&file, how.kinds).map_err(|error| failed(path, error.into()))?;
            let dotlock = if free { dotlock_of(&dot_path, how, &mut abandoned, warn) } else { Ok(None) };
            let over = (how.stop)() || started.elapsed() >= how.wait;
            match dotlock {
                Err(error) => {
                    if free && made {
                        remove_if_empty(path, &file);
                    }
                    return Err(failed(&dot_path, error));
                }
                // Look again: the file may have been replaced between opening and locking.
                Ok(Some(dotlock)) if is_still(path, &file, how) => {
                    return match untrusted(path, &file, how) {
                        Some(why) => Err(LockError::Untrusted { path: path.display().to_string(), why }),
                        None => Ok(Locked { dotlock, file, path: path.to_owned(), dot_path, made, abandoned }),
                    };
                }
                _ if free && made && over => remove_if_empty(path, &file),
                _ => {}
            }
            drop(file);
            if over && (how.stop)() {
                return Err(LockError::Stopped(path.display().to_string()));
            }
            if over {
                let owner = dotlock::owner(&dot_path).map_or(String::new(), |owner| format!(" ({owner})"));
                return Err(LockError::Held { path: path.display().to_string(), owner, waited: how.wait });
            }
            tries += 1;
            let jitter = (std::process::id() ^ tries).wrapping_mul(2_654_435_761) >> 16;
            thread::sleep(pause + pause * (jitter % 64) / 64);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// The mailbox, open for reading and writing; one that is delivered to writes at its end only.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Takes the mailbox away again if it was made here and got no mail.
    pub fn unmake(&self) {
        if self.made {
            remove_if_empty(&self.path, &self.file);
        }
    }

    /// The dotlock's path.
    pub fn dotlock(&self) -> &Path {
        &self.dot_path
    }

    /// Leaves a line for whoever finds the dotlock without its owner. Without a dotlock there is nowhere to leave it.
    pub fn leave_note(&self, note: &str) -> io::Result<()> {
        self.dotlock.as_ref().map_or(Ok(()), |dotlock| dotlock.add(note))
    }

    /// The last note of an owner who died while he held the dotlock, if one was found.
    pub fn abandoned_note(&self) -> Option<&str> {
        self.abandoned.as_deref()
    }
}

/// Opens the mailbox; says whether it was made.
fn open(path: &Path, delivers: bool) -> io::Result<(File, bool)> {
    if !delivers {
        return File::options().read(true).write(true).open(path).map(|file| (file, false));
    }
    // A FIFO must not make us wait for its reader.
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            other => return Ok((other?.into(), false)),
        }
        match rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR) {
            // Somebody was quicker, or it is a link that leads nowhere: the next look will tell.
            Err(Errno::EXIST) if !path.is_symlink() => {}
            other => return Ok((other?.into(), true)),
        }
    }
}

/// Takes the kernel's locks without waiting; says whether it got them. Closing the file gives them back.
fn kernel_locks(file: &File, kinds: Kinds) -> Result<bool, Errno> {
    let taken = |result| match result {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    };
    let operation = FlockOperation::NonBlockingLockExclusive;
    Ok((!kinds.fcntl || taken(fcntl_lock(file, operation))?) && (!kinds.flock || taken(flock(file, operation))?))
}

/// The dotlock, if there is to be one: `None` where it is held, `Some(None)` where there is none to be had and a kernel
/// lock will do.
fn dotlock_of(
    path: &Path,
    how: &How,
    abandoned: &mut Option<String>,
    warn: &mut dyn FnMut(String),
) -> io::Result<Option<Option<Dotlock>>> {
    if !how.kinds.dot {
        return Ok(Some(None));
    }
    match dotlock::take(path, how.stale, abandoned, warn) {
        Ok(dotlock) => Ok(dotlock.map(Some)),
        Err(error) if how.delivers && (how.kinds.fcntl || how.kinds.flock) && cannot_be(&error) => {
            warn(format!("no lock file {} ({error}): the kernel's lock alone protects the mailbox", path.display()));
            Ok(Some(None))
        }
        Err(error) => Err(error),
    }
}

/// Whether no program can make a file of this name here, rather than just now.
fn cannot_be(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | InvalidFilename)
}

fn is_still(path: &Path, file: &File, how: &How) -> bool {
    let named = if how.delivers { fs::symlink_metadata(path) } else { fs::metadata(path) };
    match (file.metadata(), named) {
        (Ok(open), Ok(named)) => same_file(&open, &named) && open.nlink() > 0,
        _ => false,
    }
}

fn untrusted(path: &Path, file: &File, how: &How) -> Option<&'static str> {
    let metadata = file.metadata().ok().filter(|_| how.delivers)?;
    if metadata.nlink() != 1 {
        return Some("has another name too (a hard link)");
    }
    let us = rustix::process::geteuid().as_raw();
    (metadata.uid() != us && is_open_to_all(path)).then_some("belongs to somebody else")
}

/// Whether everybody may put files into the folder of `path`.
pub fn is_open_to_all(path: &Path) -> bool {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o002 != 0)
}

/// Takes away a mailbox that was made here and got no mail. Only under the kernel's lock: all who wait for it look
/// again once they have it.
fn remove_if_empty(path: &Path, file: &File) {
    if file.metadata().is_ok_and(|open| open.len() == 0) {
        let _ = fs::remove_file(path);
    }
}
