//! Mailbox locks: the kernel's (fcntl, whole file) and a dotlock, both or none.
//!
//! Postfix and Dovecot take the kernel lock first, procmail and maildrop the dotlock, so neither is ever waited for
//! while the other is held. Holding the kernel lock also keeps two of us from breaking the same stale dotlock.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::output::{same_file, with_suffix};

/// A dotlock older than this belongs to nobody, if its owner cannot be asked.
const STALE: Duration = Duration::from_secs(600);
/// Pause between tries; each is a little longer or shorter, so that two that wait do not meet for ever.
const PAUSE: Duration = Duration::from_millis(20);

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
    /// Opening or locking failed.
    #[error("cannot lock {path}: {error}")]
    Failed {
        /// The file that it failed on.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// A locked mailbox. The locks go when it is dropped.
///
/// The kernel lock would go when *any* descriptor of this file in this process is closed: while it is held, the file
/// must be used through [`Locked::file`] alone.
#[derive(Debug)]
pub struct Locked {
    file: File,
    dotlock: Dotlock,
}

#[derive(Debug)]
struct Dotlock {
    path: PathBuf,
    file: File,
}

impl Drop for Dotlock {
    fn drop(&mut self) {
        // Only if it is still ours: somebody may have taken it for stale.
        let ours = self.file.metadata().ok();
        if ours.zip(fs::symlink_metadata(&self.path).ok()).is_some_and(|(ours, there)| same_file(&ours, &there)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Locked {
    /// Opens and locks the mailbox, waiting at most `wait`. What was found of stale locks is told to `warn`.
    pub fn open(path: &Path, wait: Duration, warn: &mut dyn FnMut(String)) -> Result<Locked, LockError> {
        let failed = |path: &Path, error| LockError::Failed { path: path.display().to_string(), error };
        let (started, dot) = (Instant::now(), with_suffix(path, ".lock"));
        let mut tries = 0u32;
        loop {
            let file = File::options().read(true).write(true).open(path).map_err(|error| failed(path, error))?;
            if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                return Err(LockError::NotRegular(path.display().to_string()));
            }
            match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => match take_dotlock(&dot, warn).map_err(|error| failed(&dot, error))? {
                    // Look again: the file may have been replaced between opening and locking.
                    Some(dotlock) if is_still(path, &file) => return Ok(Locked { file, dotlock }),
                    _ => {}
                },
                Err(Errno::AGAIN | Errno::ACCESS) => {}
                Err(error) => return Err(failed(path, error.into())),
            }
            drop(file);
            if started.elapsed() >= wait {
                let owner = fs::read_to_string(&dot).map_or(String::new(), |owner| format!(" ({})", owner.trim_end()));
                return Err(LockError::Held { path: path.display().to_string(), owner, waited: wait });
            }
            tries += 1;
            let jitter = (std::process::id() ^ tries.wrapping_mul(2_654_435_761)) % 16;
            thread::sleep(PAUSE + Duration::from_millis(jitter.into()));
        }
    }

    /// The mailbox, open for reading and writing.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The dotlock's path.
    pub fn dotlock(&self) -> &Path {
        &self.dotlock.path
    }
}

fn is_still(path: &Path, file: &File) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => same_file(&open, &named) && open.nlink() > 0,
        _ => false,
    }
}

/// Makes the dotlock, after removing a stale one; `None` where somebody holds it.
fn take_dotlock(path: &Path, warn: &mut dyn FnMut(String)) -> io::Result<Option<Dotlock>> {
    for _ in 0..2 {
        match File::options().write(true).create_new(true).mode(0o444).open(path) {
            Ok(mut file) => {
                let owner = format!("{} {}\n", std::process::id(), host_name());
                if let Err(error) = file.write_all(owner.as_bytes()) {
                    drop(Dotlock { path: path.to_owned(), file });
                    return Err(error);
                }
                return Ok(Some(Dotlock { path: path.to_owned(), file }));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let Some(why) = stale(path) else { return Ok(None) };
        warn(format!("removed the stale lock {}: {why}", path.display()));
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

/// Why a dotlock belongs to nobody, if it does.
fn stale(path: &Path) -> Option<String> {
    let content = fs::read_to_string(path).unwrap_or_default();
    let mut words = content.split_ascii_whitespace();
    let (pid, host) = (words.next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw), words.next());
    if let Some(pid) = pid.filter(|_| host == Some(host_name().as_str())) {
        return match test_kill_process(pid) {
            Err(Errno::SRCH) => Some(format!("process {} is gone", pid.as_raw_nonzero())),
            _ => None,
        };
    }
    let age = SystemTime::now().duration_since(fs::symlink_metadata(path).ok()?.modified().ok()?).ok()?;
    (age >= STALE).then(|| format!("it is {} minutes old", age.as_secs() / 60))
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("inbox");
        fs::write(&path, "From a\n\n").expect("written");
        let dot = folder.path().join("inbox.lock");
        (folder, path, dot)
    }

    fn open(path: &Path) -> (Result<Locked, LockError>, Vec<String>) {
        let mut warnings = Vec::new();
        let lock = Locked::open(path, Duration::from_millis(50), &mut |text| warnings.push(text));
        (lock, warnings)
    }

    #[test]
    fn the_dotlock_comes_and_goes() {
        let (_folder, path, dot) = mailbox();
        let (lock, warnings) = open(&path);
        let lock = lock.expect("free");
        assert!(dot.exists() && warnings.is_empty());
        assert!(matches!(open(&path).0, Err(LockError::Held { .. })));
        drop(lock);
        assert!(!dot.exists());
        assert!(open(&path).0.is_ok());
    }

    #[test]
    fn a_lock_of_the_living_or_the_unknown_is_waited_for() {
        let (_folder, path, dot) = mailbox();
        for owner in ["0", "", "1 elsewhere", &format!("{} {}\n", std::process::id(), host_name())] {
            fs::write(&dot, owner).expect("written");
            assert!(matches!(open(&path).0, Err(LockError::Held { .. })), "{owner}");
            assert!(dot.exists());
        }
    }

    #[test]
    fn a_lock_of_the_dead_or_the_old_goes_with_a_warning() {
        let (_folder, path, dot) = mailbox();
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = child.id();
        child.wait().expect("ended");
        fs::write(&dot, format!("{pid} {}", host_name())).expect("written");
        let (lock, warnings) = open(&path);
        assert!(lock.is_ok() && warnings.len() == 1, "{warnings:?}");
        drop(lock);
        fs::write(&dot, "0").expect("written");
        let old = SystemTime::now() - STALE - Duration::from_secs(60);
        File::options().write(true).open(&dot).and_then(|file| file.set_modified(old)).expect("set");
        assert!(matches!(open(&path), (Ok(_), warnings) if warnings.len() == 1));
    }

    #[test]
    fn folders_and_missing_files_are_errors() {
        let (folder, ..) = mailbox();
        assert!(matches!(open(folder.path()).0, Err(LockError::Failed { .. } | LockError::NotRegular(_))));
        assert!(matches!(open(&folder.path().join("none")).0, Err(LockError::Failed { .. })));
    }
}
