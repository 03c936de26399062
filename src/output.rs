//! Where a mailbox goes: standard output, or a file that appears under its name only once it is complete.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tempfile::NamedTempFile;

/// Bytes gathered before they are written.
const BUFFER: usize = 128 << 10;
/// The size a pipe is asked to have, so that reader and writer take turns less often.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// An open output.
#[derive(Debug)]
pub struct Output {
    to: BufWriter<File>,
    /// The file it will become.
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    temporary: NamedTempFile,
    path: PathBuf,
    /// Whether a file of this name is replaced.
    replace: bool,
}

impl Output {
    /// Standard output.
    pub fn stdout() -> io::Result<Output> {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        // A larger pipe is a favour; without it all works the same.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE);
        Ok(Output { to: BufWriter::with_capacity(BUFFER, out.into()), pending: None })
    }

    /// A file: a temporary one beside it, renamed by [`Output::finish`]. What exists already and is no regular file (a
    /// device, a FIFO) is written to directly.
    pub fn file(path: &Path) -> io::Result<Output> {
        // The file behind a link is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let old = fs::metadata(&path).ok();
        if let Some(old) = &old {
            if old.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if old.file_type().is_char_device() || old.file_type().is_fifo() || old.file_type().is_block_device() {
                let file = File::options().write(true).open(&path)?;
                return Ok(Output { to: BufWriter::with_capacity(BUFFER, file), pending: None });
            }
        }
        let mode = old.map_or(0o666, |old| old.mode() & 0o777);
        let temporary = beside(&path, mode)?;
        let to = BufWriter::with_capacity(BUFFER, temporary.reopen()?);
        Ok(Output { to, pending: Some(Pending { temporary, path, replace: true }) })
    }

    /// A file that must not exist yet, neither now nor when it is finished.
    pub fn new_file(path: &Path) -> io::Result<Output> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut output = Output::file(path)?;
        if let Some(pending) = &mut output.pending {
            pending.replace = false;
        }
        Ok(output)
    }

    /// A temporary file, to be taken back with [`Output::into_temporary`].
    pub fn temporary(temporary: NamedTempFile) -> io::Result<Output> {
        let to = BufWriter::with_capacity(BUFFER, temporary.reopen()?);
        let path = temporary.path().to_owned();
        Ok(Output { to, pending: Some(Pending { temporary, path, replace: false }) })
    }

    /// The temporary file, with all written to it.
    pub fn into_temporary(mut self) -> io::Result<NamedTempFile> {
        self.to.flush()?;
        self.pending.map(|pending| pending.temporary).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Whether nobody reads any more from the pipe this writes to.
    pub fn is_closed(&self) -> bool {
        let mut fds = [PollFd::new(self.to.get_ref(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0) && fds[0].revents().contains(PollFlags::ERR)
    }

    /// Writes what is left. A file is synced and gets its name; one that is not `complete` becomes `NAME.partial` instead
    /// (or `NAME.partial.1`, … if there is one already), whose path is returned, or goes if it is empty.
    pub fn finish(mut self, complete: bool) -> io::Result<Option<PathBuf>> {
        self.to.flush()?;
        let Some(Pending { temporary, path, replace }) = self.pending else { return Ok(None) };
        if complete && replace {
            publish(temporary, &path)?;
            return Ok(None);
        }
        if !complete && temporary.as_file().metadata()?.len() == 0 {
            return Ok(None);
        }
        temporary.as_file().sync_all()?;
        let first = if complete { path.clone() } else { with_suffix(&path, ".partial") };
        let others = (1..).map(|number| with_suffix(&path, &format!(".partial.{number}")));
        let mut temporary = temporary;
        for name in std::iter::once(first).chain(others) {
            match temporary.persist_noclobber(&name) {
                Ok(_) => {
                    sync_folder_of(&name)?;
                    return Ok((name != path).then_some(name));
                }
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => temporary = error.file,
                Err(error) => return Err(error.error),
            }
        }
        Ok(None)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A temporary file in the folder of `path`, with this mode (less the umask, as for any new file).
///
/// Its name tells whose it is, so that [`sweep`] can remove what a killed process has left.
pub fn beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut prefix = temporary_prefix(path);
    prefix.push(format!("{}-", std::process::id()));
    tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(folder_of(path))
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

fn temporary_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".hamsift-new-");
    prefix
}

/// Removes temporary files beside `path` whose process has been killed. What cannot be removed stays.
pub fn sweep(path: &Path) {
    let prefix = temporary_prefix(path);
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
        let pid = rest.and_then(|rest| rest.split('-').next()?.parse().ok()).and_then(Pid::from_raw);
        if pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs a temporary file, gives it its name, and syncs the folder.
fn publish(temporary: NamedTempFile, path: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// Makes a new name in the folder of `path` last.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path with something added to its last name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Where a file that perhaps does not exist yet will be: two paths with the same place are the same file.
pub fn place_of(path: &Path) -> PathBuf {
    let folder = fs::canonicalize(folder_of(path)).unwrap_or_else(|_| folder_of(path).to_owned());
    fs::canonicalize(path).unwrap_or_else(|_| folder.join(path.file_name().unwrap_or_default()))
}

/// Whether both are the same regular file.
pub fn same_file(a: &Metadata, b: &Metadata) -> bool {
    a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// What an open descriptor refers to.
pub fn metadata_of(fd: impl AsFd) -> io::Result<Metadata> {
    let fd: OwnedFd = fd.as_fd().try_clone_to_owned()?;
    File::from(fd).metadata()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_complete_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("out");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        let mut output = Output::file(&path).expect("open");
        output.write_all(b"new").expect("written");
        output.flush().expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"old");
        assert_eq!(output.finish(true).expect("finished"), None);
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn what_is_not_complete_gets_another_name_or_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("out");
        let mut output = Output::file(&path).expect("open");
        output.write_all(b"half").expect("written");
        assert_eq!(output.finish(false).expect("finished"), Some(folder.path().join("out.partial")));
        assert_eq!(Output::file(&path).expect("open").finish(false).expect("finished"), None);
        drop(Output::file(&path));
        assert_eq!(names(folder.path()), ["out.partial"]);
        let mut output = Output::file(&path).expect("open");
        output.write_all(b"more").expect("written");
        assert_eq!(output.finish(false).expect("finished"), Some(folder.path().join("out.partial.1")));
        assert_eq!(fs::read(folder.path().join("out.partial")).expect("there"), b"half");
    }

    #[test]
    fn a_file_that_must_be_new_never_replaces_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("out");
        let mut output = Output::new_file(&path).expect("open");
        output.write_all(b"ours").expect("written");
        fs::write(&path, "theirs").expect("written");
        assert_eq!(output.finish(true).expect("finished"), Some(folder.path().join("out.partial.1")));
        assert_eq!(fs::read(&path).expect("there"), b"theirs");
        assert!(Output::new_file(&path).is_err());
    }

    #[test]
    fn the_file_behind_a_link_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "old").expect("written");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let mut output = Output::file(&link).expect("open");
        output.write_all(b"new").expect("written");
        output.finish(true).expect("finished");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    }

    #[test]
    fn devices_are_written_to_as_they_are() {
        let mut output = Output::file(Path::new("/dev/full")).expect("open");
        output.write_all(b"x").expect("buffered");
        assert_eq!(output.finish(true).map_err(|e| e.kind()).err(), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn what_the_dead_have_left_is_swept_away() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("inbox");
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let dead = child.id();
        child.wait().expect("ended");
        for owner in [dead, std::process::id()] {
            fs::write(folder.path().join(format!(".inbox.hamsift-new-{owner}-x")), "mail").expect("written");
        }
        sweep(&path);
        assert_eq!(names(folder.path()), [format!(".inbox.hamsift-new-{}-x", std::process::id())]);
    }

    #[test]
    fn a_closed_pipe_is_seen() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let output = Output { to: BufWriter::new(File::from(OwnedFd::from(writer))), pending: None };
        assert!(!output.is_closed());
        drop(reader);
        assert!(output.is_closed());
    }
}
