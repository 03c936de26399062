//! Replacing a mailbox's content in its own inode, so that being killed at any moment loses nothing.
//!
//! The complete new content lies beside the mailbox, synced, before the first byte changes. Its name tells how long the
//! old content was and digests of it, which is what the next run needs to see how far the replacement got and which
//! bytes were delivered after the crash.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use tempfile::NamedTempFile;

use crate::output::{beside, sync_folder_of};

/// FNV-1a, 64 bits: against accidents, not against forgers, who would have to be able to write the mailbox anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Digest {
    /// The digest of all that can be read.
    pub(super) fn of(mut from: impl Read) -> io::Result<Digest> {
        let (mut digest, mut buffer) = (0xcbf2_9ce4_8422_2325u64, vec![0; 256 << 10]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(Digest(digest)),
                Ok(length) => {
                    for &byte in &buffer[..length] {
                        digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn of_range(file: &mut File, start: u64, end: u64) -> io::Result<Digest> {
        file.seek(SeekFrom::Start(start))?;
        Digest::of(file.take(end.saturating_sub(start)))
    }
}

/// What a recovery copy's name tells of the old content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Old {
    length: u64,
    all: Digest,
    /// Of the part behind the length of the new content; of nothing where that is longer.
    tail: Digest,
}

impl Old {
    fn of(mailbox: &mut File, new_length: u64) -> io::Result<Old> {
        let length = mailbox.metadata()?.len();
        let all = Digest::of_range(mailbox, 0, length)?;
        Ok(Old { length, all, tail: Digest::of_range(mailbox, new_length.min(length), length)? })
    }

    fn name(&self, mailbox: &Path) -> OsString {
        let mut name = prefix(mailbox);
        name.push(format!("{}-{:016x}-{:016x}", self.length, self.all.0, self.tail.0));
        name
    }

    fn parse(text: &str) -> Option<Old> {
        let mut parts = text.split('-');
        let length = parts.next()?.parse().ok()?;
        let mut digest = || u64::from_str_radix(parts.next()?, 16).ok().map(Digest);
        Some(Old { length, all: digest()?, tail: digest()? })
    }
}

fn prefix(mailbox: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(mailbox.file_name().unwrap_or_default());
    name.push(".hamsift-recovery-");
    name
}

/// Replaces the content of a locked mailbox by that of `new`, which lies in the same folder.
pub(super) fn replace(mailbox: &mut File, new: NamedTempFile, path: &Path) -> io::Result<()> {
    let mut new_file = new.reopen()?;
    let new_length = new_file.metadata()?.len();
    let old = Old::of(mailbox, new_length)?;
    // Better to find no room now than half way. File systems that cannot tell are believed to have it.
    if let Err(error @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG)) =
        fallocate(&*mailbox, FallocateFlags::KEEP_SIZE, 0, new_length.max(1))
    {
        return Err(error.into());
    }
    new.as_file().sync_all()?;
    let copy = path.with_file_name(old.name(path));
    let kept = new.persist_noclobber(&copy).map_err(|error| error.error)?;
    drop(kept);
    sync_folder_of(path)?;
    overwrite(mailbox, &mut new_file, old.length).map_err(|error| {
        let text =
            format!("{error}; the complete new mailbox is {}, and the next run puts it in place", copy.display());
        io::Error::new(error.kind(), text)
    })?;
    fs::remove_file(&copy)?;
    sync_folder_of(path)
}

/// The order matters to [`recover`]: longer first, then the content, and shorter only when that is on disk.
fn overwrite(mailbox: &mut File, new: &mut File, old_length: u64) -> io::Result<()> {
    let new_length = new.metadata()?.len();
    if new_length > old_length {
        mailbox.set_len(new_length)?;
    }
    mailbox.rewind()?;
    new.rewind()?;
    io::copy(new, mailbox)?;
    mailbox.flush()?;
    mailbox.sync_all()?;
    if new_length < old_length {
        mailbox.set_len(new_length)?;
        mailbox.sync_all()?;
    }
    Ok(())
}

/// Ends what a killed run has begun, on the locked mailbox; says what was done.
pub(super) fn recover(path: &Path, mailbox: &mut File) -> io::Result<Option<String>> {
    let mut told = None;
    for (copy, old) in copies(path)? {
        let mut new = File::open(&copy)?;
        let new_length = new.metadata()?.len();
        let length = mailbox.metadata()?.len();
        let longer = new_length > old.length && length >= new_length && is_zero(mailbox, old.length, new_length)?;
        let untouched = !longer && length >= old.length && Digest::of_range(mailbox, 0, old.length)? == old.all;
        let whole = length >= new_length
            && Digest::of_range(mailbox, 0, new_length)? == Digest::of_range(&mut new, 0, new_length)?;
        let mut uncut = || Ok::<_, io::Error>(Digest::of_range(mailbox, new_length, old.length)? == old.tail);
        if !untouched && (!whole || (old.length > new_length && length >= old.length && uncut()?)) {
            // Half overwritten, or not yet cut to its length. What follows the longer of both contents was delivered
            // after that.
            let mut complete = beside(path, 0o600)?;
            new.rewind()?;
            io::copy(&mut new, &mut complete)?;
            mailbox.seek(SeekFrom::Start(new_length.max(old.length)))?;
            io::copy(mailbox, &mut complete)?;
            replace(mailbox, complete, path)?;
        }
        fs::remove_file(&copy)?;
        sync_folder_of(path)?;
        told = Some(format!("{}: a rewrite that was broken off has been completed or undone", path.display()));
    }
    Ok(told)
}

/// Whether this part of the mailbox was only made, not written: no mail is made of NULs.
fn is_zero(mailbox: &mut File, start: u64, end: u64) -> io::Result<bool> {
    mailbox.seek(SeekFrom::Start(start))?;
    let mut bytes = io::BufReader::new(mailbox.take(end - start)).bytes();
    bytes.try_fold(true, |zero, byte| Ok(zero && byte? == 0))
}

/// The recovery copies beside a mailbox.
fn copies(path: &Path) -> io::Result<Vec<(PathBuf, Old)>> {
    let prefix = prefix(path);
    let mut found = Vec::new();
    let Some(folder) = path.parent() else { return Ok(found) };
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let rest = name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
        if let Some(old) = rest.and_then(Old::parse) {
            found.push((path.with_file_name(&name), old));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &[u8] = b"From a\nA: 1\n\none\n\nFrom b\nA: 2\n\ntwo\n\n";
    const LONGER: &[u8] = b"From a\nA: 1\nX: ham\n\none\n\nFrom b\nA: 2\nX: spam\n\ntwo\n\n";
    const SHORTER: &[u8] = b"From a\n\none\n\nFrom b\n\ntwo\n\n";
    const LATER: &[u8] = b"From c\nA: 3\n\nthree\n\n";

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).expect("open")
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect()
    }

    #[test]
    fn the_content_changes_and_the_inode_stays() {
        use std::os::unix::fs::MetadataExt;
        for new in [LONGER, SHORTER, b"", OLD] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("inbox");
            fs::write(&path, OLD).expect("written");
            let inode = fs::metadata(&path).expect("there").ino();
            let mut temporary = beside(&path, 0o600).expect("room");
            temporary.write_all(new).expect("written");
            replace(&mut open(&path), temporary, &path).expect("replaced");
            assert_eq!(fs::read(&path).expect("there"), new);
            assert_eq!(fs::metadata(&path).expect("there").ino(), inode);
            assert_eq!(names(folder.path()), ["inbox"]);
        }
    }

    /// Every state that a crash can leave, each with and without mail delivered after it.
    #[test]
    fn every_broken_off_state_is_completed_or_undone() {
        for new in [LONGER, SHORTER, OLD] {
            let grown = OLD.len().max(new.len());
            let mut states = vec![(OLD.to_vec(), true)];
            for written in 0..=new.len() {
                let mut half = OLD.to_vec();
                half.resize(grown, 0);
                half[..written].copy_from_slice(&new[..written]);
                states.push((half, false));
            }
            states.push((new.to_vec(), false));
            for (state, untouched) in states {
                for later in [&b""[..], LATER] {
                    let folder = tempfile::tempdir().expect("a folder");
                    let path = folder.path().join("inbox");
                    fs::write(&path, OLD).expect("written");
                    let old = Old::of(&mut open(&path), new.len() as u64).expect("read");
                    fs::write(path.with_file_name(old.name(&path)), new).expect("written");
                    fs::write(&path, [&state[..], later].concat()).expect("written");
                    assert!(recover(&path, &mut open(&path)).expect("recovered").is_some());
                    let content = fs::read(&path).expect("there");
                    let undone = [OLD, later].concat();
                    let done = [new, later].concat();
                    assert!(content == done || (content == undone), "{:?}", String::from_utf8_lossy(&content));
                    assert!(!untouched || content == undone);
                    assert_eq!(names(folder.path()), ["inbox"]);
                }
            }
        }
    }

    #[test]
    fn without_a_copy_there_is_nothing_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("inbox");
        fs::write(&path, OLD).expect("written");
        fs::write(folder.path().join(".inbox.hamsift-recovery-nonsense"), "x").expect("written");
        assert_eq!(recover(&path, &mut open(&path)).expect("read"), None);
    }
}
