//! The dotlock: a file beside the mailbox that names its owner. It appears whole, so that one found without a living
//! owner can be known for what it is.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::output::{beside, same_file, sweep};

/// More than this is not read of a dotlock: those of other programs may hold anything.
const LONGEST: u64 = 4096;
/// More than this is not told of an owner, characters.
const LONGEST_OWNER: usize = 100;

/// A dotlock that is held. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Dotlock {
    path: PathBuf,
    file: File,
}

impl Dotlock {
    /// Adds a line.
    pub(super) fn add(&self, line: &str) -> io::Result<()> {
        (&self.file).write_all(format!("{line}\n").as_bytes())
    }
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

/// Makes the dotlock, after removing a stale one; `None` where somebody holds it. The last note of a dead owner goes to
/// `abandoned`, and from there into the new lock: we may die too before we have acted upon it.
pub(super) fn take(
    path: &Path,
    stale_age: Duration,
    abandoned: &mut Option<String>,
    warn: &mut dyn FnMut(String),
) -> io::Result<Option<Dotlock>> {
    for _ in 0..2 {
        match make(path, content(abandoned).as_bytes()) {
            Ok(file) => return Ok(Some(Dotlock { path: path.to_owned(), file })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let Some(stale) = Stale::find(path, stale_age) else { return Ok(None) };
        let note = stale.note.clone().or(abandoned.clone());
        if let Some(file) = stale.replace(path, content(&note).as_bytes())? {
            warn(format!("removed the stale lock {}: {}", path.display(), stale.why));
            *abandoned = note;
            return Ok(Some(Dotlock { path: path.to_owned(), file }));
        }
    }
    Ok(None)
}

/// What stands in a lock of ours.
fn content(note: &Option<String>) -> String {
    let note = note.as_ref().map_or(String::new(), |note| format!("{note}\n"));
    format!("{} {}\n{note}", std::process::id(), host_name())
}

/// What a dotlock says of its owner.
pub(super) fn owner(path: &Path) -> Option<String> {
    let content = read(&open(path)?);
    let line = content.lines().next().map(str::trim_end).filter(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST_OWNER).collect())
}

/// Opens a dotlock to look at it. Where everybody may put files, it may be a FIFO, to make us wait, or a link to what
/// nobody else is to read.
fn open(path: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

/// Makes the file with its content, all at once where the system can.
fn make(path: &Path, content: &[u8]) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if let Some(made) = make_whole(path, content) {
        return made;
    }
    let mut file = File::options().write(true).create_new(true).mode(0o444).open(path)?;
    match file.write_all(content) {
        Ok(()) => Ok(file),
        Err(error) => {
            drop(Dotlock { path: path.to_owned(), file });
            Err(error)
        }
    }
}

/// A file without a name is filled and then gets one, which fails if there is one of that name: nobody ever sees an
/// empty lock, and nothing is left of one that was not finished. `None` where the file system knows no such files.
#[cfg(target_os = "linux")]
fn make_whole(path: &Path, content: &[u8]) -> Option<io::Result<File>> {
    // The usual case, without the work: it is there.
    if path.symlink_metadata().is_ok() {
        return Some(Err(io::ErrorKind::AlreadyExists.into()));
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Mode::RUSR | Mode::RGRP | Mode::ROTH;
    let fd = rustix::fs::open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode).ok()?;
    let mut file = File::from(fd);
    file.write_all(content).ok()?;
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, name, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Some(Ok(file)),
        Err(Errno::EXIST) => Some(Err(io::ErrorKind::AlreadyExists.into())),
        Err(_) => None,
    }
}

/// A dotlock without an owner.
struct Stale {
    file: File,
    why: String,
    note: Option<String>,
}

impl Stale {
    /// Looks at a dotlock; `None` where it may have an owner.
    fn find(path: &Path, age: Duration) -> Option<Stale> {
        let file = open(path)?;
        let content = read(&file);
        let mut lines = content.lines();
        let mut words = lines.next().unwrap_or("").split_ascii_whitespace();
        let (pid, host) = (words.next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw), words.next());
        if let Some(pid) = pid.filter(|&pid| host == Some(host_name().as_str()) && is_dead(pid)) {
            // Where everybody may put files, a note must not come from anybody.
            let ours = file.metadata().is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
            let note = lines.next_back().filter(|_| ours).map(str::to_owned);
            return Some(Stale { file, why: format!("process {} is gone", pid.as_raw_nonzero()), note });
        }
        let old = SystemTime::now().duration_since(file.metadata().ok()?.modified().ok()?).ok()?;
        let why = format!("it is {} minutes old", old.as_secs() / 60);
        (old >= age).then_some(Stale { file, why, note: None })
    }

    /// Puts a new one in its place if it is still this one. Of several that want to, one does. There is no moment
    /// between the two at which a kill could take the note with it.
    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<Option<File>> {
        if rustix::fs::flock(self.file.as_fd(), FlockOperation::NonBlockingLockExclusive) == Err(Errno::AGAIN) {
            return Ok(None);
        }
        let same = self.file.metadata().ok().zip(fs::symlink_metadata(path).ok());
        if !same.is_some_and(|(ours, there)| same_file(&ours, &there)) {
            return Ok(None);
        }
        sweep(path);
        let mut new = beside(path, 0o444)?;
        new.write_all(content)?;
        new.persist(path).map(Some).map_err(|error| error.error)
    }
}

fn read(file: &File) -> String {
    let mut content = Vec::new();
    let _ = file.take(LONGEST).read_to_end(&mut content);
    String::from_utf8_lossy(&content).into_owned()
}

/// Whether there is no such process, or nothing but its exit status.
fn is_dead(pid: Pid) -> bool {
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

pub(super) fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
