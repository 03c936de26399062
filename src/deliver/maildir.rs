//! Maildir: a file of its own for each message, which appears under its name when it is whole. No lock, no line changed.
//!
//! Before it appears in `new/` it gets a name in `tmp/` that is made of its fingerprint, and keeps that until all is
//! told. If another try at the same message finds that name, and its file has a second one, the message is there.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock};

use super::untold::Fingerprint;
use super::{DeliverError, How, Mail};
use crate::output::{same_file, sync_folder_of};

/// Written in one call; between two of them it can be stopped.
const PIECE: usize = 1 << 20;
/// A name that is taken already is a marvel; after this many there is something else wrong.
const TRIES: usize = 10;

/// Puts the message into the Maildir, which is made if it is not there; says whether it was there already.
pub(super) fn deliver(
    path: &Path,
    mail: &Mail,
    how: &How,
    warn: &mut dyn FnMut(String),
) -> Result<(Option<Mark>, bool), DeliverError> {
    make(path, how.sync).map_err(DeliverError::file("make the Maildir", path))?;
    let failed = DeliverError::file("write to the Maildir", path);
    let pending = Pending::new(path).map_err(&failed)?;
    for piece in mail.text().chunks(PIECE) {
        if (how.stop)() {
            return Err(DeliverError::Stopped);
        }
        (&pending.file).write_all(piece).map_err(&failed)?;
    }
    if how.sync {
        pending.file.sync_all().map_err(&failed)?;
    }
    if (how.stop)() {
        return Err(DeliverError::Stopped);
    }
    let mark = match pending.mark(path, mail.fingerprint()).map_err(&failed)? {
        Marked::Already(mark) => {
            if how.sync {
                File::open(path.join("new")).and_then(|new| new.sync_all()).map_err(&failed)?;
            }
            warn(format!("{}: the message is there already, from a delivery that was killed", path.display()));
            return Ok((Some(mark), true));
        }
        Marked::Now(mark) => Some(mark),
        Marked::Not => None,
    };
    let new = pending.publish(path).map_err(&failed)?;
    if how.sync
        && let Err(error) = sync_folder_of(&new)
    {
        let _ = fs::remove_file(&new);
        return Err(failed(error));
    }
    Ok((mark, false))
}

/// Makes what is missing of a Maildir; a Maildir++ subfolder (`.NAME`) is marked as one, and its Maildir made too.
fn make(path: &Path, sync: bool) -> io::Result<()> {
    let is_sub = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    if let Some(parent) = path.parent().filter(|parent| is_sub && !parent.as_os_str().is_empty() && !parent.exists()) {
        make(parent, sync)?;
    }
    let mut made = make_folder(path)?;
    for name in ["tmp", "new", "cur"] {
        made |= make_folder(&path.join(name))?;
    }
    if made && is_sub {
        File::options().write(true).create(true).truncate(false).mode(0o600).open(path.join("maildirfolder"))?;
    }
    if made && sync {
        File::open(path)?.sync_all()?;
        sync_folder_of(path)?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        // A Maildir in a place that cannot be written to may still be one.
        Err(_) if path.is_dir() => Ok(false),
        Err(error) => Err(error),
    }
}

/// A message that is being written. Nothing is left of it unless it is published.
struct Pending {
    file: File,
    /// Its name in `tmp/`, where the system has no files without one.
    path: Option<PathBuf>,
}

impl Pending {
    fn new(maildir: &Path) -> io::Result<Pending> {
        let folder = maildir.join("tmp");
        // A file without a name goes by itself when we are killed.
        #[cfg(target_os = "linux")]
        if Path::new("/proc/self/fd").exists()
            && let Ok(fd) =
                rustix::fs::open(&folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
        {
            return Ok(Pending { file: fd.into(), path: None });
        }
        let path = folder.join(unique_name());
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Pending { file, path: Some(path) })
    }

    /// Marks it as one that is being delivered. Others know by the lock whether we are still there.
    #[cfg(target_os = "linux")]
    fn mark(&self, maildir: &Path, fingerprint: &Fingerprint) -> io::Result<Marked> {
        let path = maildir.join("tmp").join(format!("hamsift-{}", fingerprint.text()));
        // A second name would not tell anything of a file that has two from the beginning.
        if self.path.is_some() || flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(Marked::Not);
        }
        for _ in 0..TRIES {
            match self.link(&path) {
                Ok(()) => return Ok(Marked::Now(Mark { path, _locked: self.file.try_clone()? })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => return Ok(Marked::Not),
            }
            let no_link = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
            let Ok(left) = File::options().read(true).custom_flags(no_link).open(&path) else { continue };
            if flock(&left, FlockOperation::NonBlockingLockExclusive).is_err() {
                // The same message is being delivered a second time, which is somebody's wish.
                return Ok(Marked::Not);
            }
            let found = left.metadata()?;
            if fs::symlink_metadata(&path).is_ok_and(|there| same_file(&found, &there)) {
                if found.nlink() > 1 {
                    return Ok(Marked::Already(Mark { path, _locked: left }));
                }
                fs::remove_file(&path)?;
            }
        }
        Ok(Marked::Not)
    }

    #[cfg(not(target_os = "linux"))]
    fn mark(&self, _: &Path, _: &Fingerprint) -> io::Result<Marked> {
        Ok(Marked::Not)
    }

    /// Gives it a name in `new/` that nothing had before.
    fn publish(self, maildir: &Path) -> io::Result<PathBuf> {
        let mut result = Err(io::ErrorKind::AlreadyExists.into());
        for _ in 0..TRIES {
            let new = maildir.join("new").join(unique_name());
            result = self.link(&new).map(|()| new);
            if !matches!(&result, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        result
    }

    fn link(&self, new: &Path) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.path.is_none() {
            let name = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            return Ok(rustix::fs::linkat(CWD, name, CWD, new, AtFlags::SYMLINK_FOLLOW)?);
        }
        let Some(old) = &self.path else { return Err(io::ErrorKind::Unsupported.into()) };
        match fs::hard_link(old, new) {
            // No hard links here: the name is new to the best of our knowledge.
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                fs::rename(old, new)
            }
            other => other,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// What became of marking a message.
enum Marked {
    Now(Mark),
    /// Without a mark it is delivered all the same.
    Not,
    /// It has been delivered, by somebody who was killed.
    Already(Mark),
}

/// The name in `tmp/` of a message that is being delivered. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    _locked: File,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A name as the Maildir specification wants it: time, what is unique in it on this host, host.
fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{}.M{}P{pid}Q{count}.{}", now.as_secs(), now.subsec_micros(), escaped(&host))
}

/// The host's name without what has a meaning in names of Maildir files.
fn escaped(host: &str) -> String {
    let mut name = String::new();
    for char in host.chars() {
        match char {
            '/' => name.push_str("\\057"),
            ':' => name.push_str("\\072"),
            char if char.is_whitespace() || char.is_control() => name.push('_'),
            char => name.push(char),
        }
    }
    if name.is_empty() { "localhost".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_clean() {
        let names: std::collections::BTreeSet<_> = (0..100).map(|_| unique_name()).collect();
        assert_eq!(names.len(), 100);
        assert_eq!(escaped("a/b:c d"), "a\\057b\\072c_d");
        assert_eq!(escaped(""), "localhost");
    }

    #[test]
    fn a_name_that_is_there_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("room");
        make(folder.path(), false).expect("made");
        let old = folder.path().join("new/x");
        fs::write(&old, "old").expect("written");
        for path in [None, Some(folder.path().join("tmp/y"))] {
            let mut pending = Pending::new(folder.path()).expect("made");
            if let Some(path) = path {
                fs::write(&path, "").expect("written");
                pending = Pending { file: File::create(&path).expect("made"), path: Some(path) };
            }
            assert_eq!(pending.link(&old).map_err(|error| error.kind()), Err(io::ErrorKind::AlreadyExists));
            pending.link(&folder.path().join("new").join(unique_name())).expect("free");
        }
        assert_eq!(fs::read(&old).expect("there"), b"old");
        assert_eq!(fs::read_dir(folder.path().join("tmp")).expect("there").count(), 0);
        assert_eq!(fs::read_dir(folder.path().join("new")).expect("there").count(), 3);
    }

    #[test]
    fn a_subfolder_is_marked_and_brings_its_maildir() {
        let folder = tempfile::tempdir().expect("room");
        let sub = folder.path().join("md/.Spam");
        make(&sub, true).expect("made");
        make(&sub, true).expect("there");
        assert!(sub.join("maildirfolder").is_file() && folder.path().join("md/new").is_dir());
        assert!(make(&folder.path().join("none/md"), false).is_err());
    }
}
