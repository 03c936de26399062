//! Replacing a mailbox's content in its own inode, so that being killed at any moment loses nothing.
//!
//! The complete new content lies beside the mailbox, synced, before the first byte changes. Behind it are digests of the
//! old content, block by block, and its name tells both lengths. So the next run can tell for each block of the mailbox
//! whether it is old or new. Only if every one is, the replacement is completed or undone; what another program has made
//! of the mailbox since then is that program's business, and nothing of it is touched.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use tempfile::{NamedTempFile, TempPath};

use crate::output::{beside, sync_folder_of, with_suffix};

/// What is written wholly or not at all, bytes: a sector, of which pages and [`CHUNK`] are multiples.
const BLOCK: u64 = 512;
/// How much is written at once. Always from a multiple of it, so that a kill leaves no block half written.
const CHUNK: usize = 64 << 10;

/// FNV-1a, 64 bits: against accidents, not against forgers, who would have to be able to write the mailbox anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn and(self, bytes: &[u8]) -> Digest {
        Digest(bytes.iter().fold(self.0, |digest, &byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// The digest of all that can be read.
    pub(super) fn of(mut from: impl Read) -> io::Result<Digest> {
        let (mut digest, mut buffer) = (Digest::default(), vec![0; 256 << 10]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(digest),
                Ok(length) => digest = digest.and(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The lengths of both contents, and the size of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lengths {
    new: u64,
    old: u64,
    block: u64,
}

impl Lengths {
    /// Start and end of the blocks of the longer content. They are cut where the shorter one ends.
    fn blocks(self) -> impl Iterator<Item = (u64, u64)> {
        let (shorter, longer) = (self.new.min(self.old), self.new.max(self.old));
        let after = move |start: u64| {
            let end = (start / self.block + 1).saturating_mul(self.block).min(longer);
            (start, if start < shorter { end.min(shorter) } else { end })
        };
        std::iter::successors(Some(after(0)), move |&(_, end)| Some(after(end))).take_while(|(start, end)| start < end)
    }
}

/// A recovery copy: the new content, and the digests of the blocks of the old one.
#[derive(Debug)]
struct Copy {
    path: PathBuf,
    /// Greater than that of all copies that were there when it was made.
    number: u64,
    lengths: Lengths,
}

impl Copy {
    /// Makes a copy last: from now on the mailbox may be changed.
    fn keep(mailbox: &mut File, new: NamedTempFile, path: &Path, block: u64) -> io::Result<Copy> {
        let lengths = Lengths { new: new.as_file().metadata()?.len(), old: mailbox.metadata()?.len(), block };
        mailbox.rewind()?;
        let mut old = BufReader::with_capacity(CHUNK, mailbox);
        let mut file = new.reopen()?;
        file.seek(SeekFrom::End(0))?;
        let mut digests = io::BufWriter::with_capacity(CHUNK, file);
        let mut bytes = Vec::new();
        for (start, end) in lengths.blocks().take_while(|(start, _)| *start < lengths.old) {
            read(&mut old, start, end, &mut bytes)?;
            digests.write_all(&Digest::default().and(&bytes).0.to_le_bytes())?;
        }
        digests.flush()?;
        new.as_file().sync_all()?;
        let number = copies(path, block)?.first().map_or(0, |copy| copy.number + 1);
        let mut name = prefix(path);
        name.push(format!("{number}-{}-{}", lengths.new, lengths.old));
        let copy = Copy { path: path.with_file_name(name), number, lengths };
        new.persist_noclobber(&copy.path).map_err(|error| error.error)?;
        sync_folder_of(path)?;
        Ok(copy)
    }

    fn parse(path: PathBuf, text: &str, block: u64) -> Option<Copy> {
        let numbers: Option<Vec<u64>> = text.split('-').map(|number| number.parse().ok()).collect();
        let [number, new, old] = numbers?[..] else { return None };
        Some(Copy { path, number, lengths: Lengths { new, old, block } })
    }

    /// What the mailbox is, as far as this copy can tell.
    fn judge(&self, mailbox: &mut File) -> io::Result<State> {
        let Lengths { new, old, .. } = self.lengths;
        let digests = self.lengths.blocks().filter(|(start, _)| *start < old).count() as u64;
        if fs::metadata(&self.path)?.len() != new.saturating_add(digests * 8) {
            return Ok(State::Foreign);
        }
        let length = mailbox.metadata()?.len();
        let open = || File::open(&self.path).map(|file| BufReader::with_capacity(CHUNK, file));
        let (mut new_content, mut digests) = (open()?, open()?);
        digests.seek(SeekFrom::Start(new))?;
        mailbox.rewind()?;
        let mut mailbox = BufReader::with_capacity(CHUNK, mailbox);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        // All new; all old; all old behind the new content; each block either old or new.
        let (mut whole, mut untouched, mut uncut, mut ours) = (true, true, true, true);
        for (start, end) in self.lengths.blocks() {
            let is_there = end <= length;
            if is_there {
                read(&mut mailbox, start, end, &mut here)?;
            }
            let is_new = end <= new && {
                read(&mut new_content, start, end, &mut there)?;
                is_there && here == there
            };
            let is_old = if start < old {
                let mut digest = [0; 8];
                digests.read_exact(&mut digest)?;
                is_there && Digest::default().and(&here).0.to_le_bytes() == digest
            } else {
                // Made by lengthening the file, and not written yet.
                is_there && here.iter().all(|byte| *byte == 0)
            };
            whole &= is_new || end > new;
            untouched &= is_old || start >= old;
            uncut &= is_old || start < new;
            ours &= is_new || is_old;
        }
        Ok(match () {
            () if whole && new < old && uncut => State::Begun,
            () if whole => State::Over,
            // Where the file has been lengthened, there is no going back: mail may have been delivered behind that.
            () if ours && !(untouched && new <= old) => State::Begun,
            () if untouched => State::Over,
            () => State::Foreign,
        })
    }

    /// Ends the replacement. What follows the longer of both contents was delivered after it had begun.
    fn complete(&self, mailbox: &mut File, path: &Path) -> io::Result<()> {
        let Lengths { new, old, block } = self.lengths;
        let content = File::open(&self.path)?;
        if new >= old || mailbox.metadata()?.len() == old {
            return overwrite(mailbox, &content, self.lengths);
        }
        let mut complete = beside(path, 0o600)?;
        io::copy(&mut content.take(new), &mut complete)?;
        mailbox.seek(SeekFrom::Start(old))?;
        io::copy(mailbox, &mut complete)?;
        replace_by(mailbox, complete, path, block)
    }

    /// Gives the new content a name that is seen, and returns it.
    fn set_aside(&self, mailbox: &Path) -> io::Result<PathBuf> {
        let file = File::options().write(true).open(&self.path)?;
        if file.metadata()?.len() > self.lengths.new {
            file.set_len(self.lengths.new)?;
            file.sync_all()?;
        }
        let mut copy = TempPath::try_from_path(&self.path)?;
        for number in 1u64.. {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let saved = with_suffix(mailbox, &format!(".hamsift-saved{suffix}"));
            match copy.persist_noclobber(&saved) {
                Ok(()) => {
                    sync_folder_of(mailbox)?;
                    return Ok(saved);
                }
                Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => copy = failed.path,
                Err(failed) => {
                    // Or it would be removed.
                    let _ = failed.path.keep();
                    return Err(failed.error);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// What a mailbox can be that has a recovery copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Old, or new: the copy is not needed.
    Over,
    /// Partly new, or not yet cut to its length.
    Begun,
    /// Neither: another program has rewritten it.
    Foreign,
}

/// Reads a block.
fn read(from: &mut impl Read, start: u64, end: u64, into: &mut Vec<u8>) -> io::Result<()> {
    into.resize(usize::try_from(end - start).map_err(io::Error::other)?, 0);
    from.read_exact(into)
}

fn prefix(mailbox: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(mailbox.file_name().unwrap_or_default());
    name.push(".hamsift-recovery-");
    name
}

/// Replaces the content of a locked mailbox by that of `new`, which lies in the same folder.
pub(super) fn replace(mailbox: &mut File, new: NamedTempFile, path: &Path) -> io::Result<()> {
    replace_by(mailbox, new, path, BLOCK)
}

fn replace_by(mailbox: &mut File, new: NamedTempFile, path: &Path, block: u64) -> io::Result<()> {
    let content = new.reopen()?;
    // Better to find no room now than half way. File systems that cannot tell are believed to have it.
    if let Err(error @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT | rustix::io::Errno::FBIG)) =
        fallocate(&*mailbox, FallocateFlags::KEEP_SIZE, 0, content.metadata()?.len().max(1))
    {
        return Err(error.into());
    }
    let copy = Copy::keep(mailbox, new, path, block)?;
    overwrite(mailbox, &content, copy.lengths).map_err(|error| {
        let text =
            format!("{error}; the complete new mailbox is {}, and the next run puts it in place", copy.path.display());
        io::Error::new(error.kind(), text)
    })?;
    fs::remove_file(&copy.path)?;
    sync_folder_of(path)
}

/// The order matters to [`Copy::judge`]: longer first, then the content, and shorter only when that is on disk.
fn overwrite(mailbox: &File, content: &File, lengths: Lengths) -> io::Result<()> {
    let Lengths { new, old, .. } = lengths;
    if mailbox.metadata()?.len() < new {
        // By writing its last block: if we are killed, whoever delivers finds it to end as a mailbox should.
        let start = ((new - 1) / lengths.block * lengths.block).max(old);
        let mut end = vec![0; usize::try_from(new - start).map_err(io::Error::other)?];
        content.read_exact_at(&mut end, start)?;
        mailbox.write_all_at(&end, start)?;
        mailbox.sync_all()?;
    }
    let (mut buffer, mut done) = (vec![0; CHUNK], 0);
    while done < new {
        let length = usize::try_from(new - done).map_or(CHUNK, |left| left.min(CHUNK));
        content.read_exact_at(&mut buffer[..length], done)?;
        mailbox.write_all_at(&buffer[..length], done)?;
        done += length as u64;
    }
    mailbox.sync_all()?;
    if new < old {
        mailbox.set_len(new)?;
        mailbox.sync_all()?;
    }
    Ok(())
}

/// Whether a run was killed, or failed, while it replaced this mailbox.
pub(super) fn is_pending(path: &Path) -> io::Result<bool> {
    Ok(!copies(path, BLOCK)?.is_empty())
}

/// Ends what a killed run has begun, on the locked mailbox; says what was done.
pub(super) fn recover(path: &Path, mailbox: &mut File) -> io::Result<Vec<String>> {
    recover_by(path, mailbox, BLOCK)
}

fn recover_by(path: &Path, mailbox: &mut File, block: u64) -> io::Result<Vec<String>> {
    let mut told = Vec::new();
    for copy in copies(path, block)? {
        let state = copy.judge(mailbox)?;
        if state == State::Foreign {
            let saved = copy.set_aside(path)?;
            told.push(format!(
                "{}: a rewrite was broken off, and another program has changed the mailbox since; it is left as it is, \
                 and what it was to become is in {}",
                path.display(),
                saved.display()
            ));
            continue;
        }
        if state == State::Begun {
            copy.complete(mailbox, path)?;
        }
        fs::remove_file(&copy.path)?;
        sync_folder_of(path)?;
        told.push(format!("{}: a rewrite that was broken off has been completed or undone", path.display()));
    }
    Ok(told)
}

/// The recovery copies beside a mailbox, the last one first: where recovery was broken off as well, it is what the
/// mailbox was last written from.
fn copies(path: &Path, block: u64) -> io::Result<Vec<Copy>> {
    let prefix = prefix(path);
    let mut found = Vec::new();
    let Some(folder) = path.parent() else { return Ok(found) };
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let rest = name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
        found.extend(rest.and_then(|rest| Copy::parse(path.with_file_name(&name), rest, block)));
    }
    found.sort_by_key(|copy| std::cmp::Reverse(copy.number));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &[u8] = b"From a\nA: 1\n\none\n\nFrom b\nA: 2\n\ntwo\n\n";
    const LONGER: &[u8] = b"From a\nA: 1\nX: ham\n\none\n\nFrom b\nA: 2\nX: spam\n\ntwo\n\n";
    const SHORTER: &[u8] = b"From a\n\none\n\nFrom b\n\ntwo\n\n";
    const EQUAL: &[u8] = b"From a\nB: 3\n\none\n\nFrom b\nB: 4\n\ntwo\n\n";
    const NEW: [&[u8]; 4] = [LONGER, SHORTER, EQUAL, OLD];
    const LATER: &[u8] = b"From c\nA: 3\n\nthree\n\n";

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).expect("open")
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().expect("text")).collect();
        names.sort();
        names
    }

    fn temporary(path: &Path, content: &[u8]) -> NamedTempFile {
        let mut temporary = beside(path, 0o600).expect("room");
        temporary.write_all(content).expect("written");
        temporary
    }

    /// As replacing leaves it just before the mailbox changes.
    fn begin(path: &Path, old: &[u8], new: &[u8], block: u64) {
        fs::write(path, old).expect("written");
        Copy::keep(&mut open(path), temporary(path, new), path, block).expect("kept");
    }

    /// The old content made as long as the new one, with the first bytes written.
    fn half(old: &[u8], new: &[u8], written: usize) -> Vec<u8> {
        let mut half = old.to_vec();
        half.resize(old.len().max(new.len()), 0);
        half[..written].copy_from_slice(&new[..written]);
        half
    }

    /// All that a crash can leave. What is written reaches the disk block by block, in any order.
    fn states(old: &[u8], new: &[u8], block: usize) -> Vec<Vec<u8>> {
        let mut states = vec![old.to_vec(), new.to_vec()];
        states.extend((0..=new.len()).filter(|k| k % block == 0 || *k == new.len()).map(|k| half(old, new, k)));
        for number in 1..20usize {
            let mut state = half(old, new, 0);
            for (index, bytes) in new.chunks(block).enumerate() {
                if (index * 7 + number * number) % 5 < number % 4 {
                    state[index * block..][..bytes.len()].copy_from_slice(bytes);
                }
            }
            states.push(state);
        }
        states
    }

    #[test]
    fn the_content_changes_and_the_inode_stays() {
        use std::os::unix::fs::MetadataExt;
        for new in [LONGER, SHORTER, EQUAL, b"", OLD, &LONGER.repeat(9000)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("inbox");
            fs::write(&path, OLD).expect("written");
            let inode = fs::metadata(&path).expect("there").ino();
            replace(&mut open(&path), temporary(&path, new), &path).expect("replaced");
            assert!(fs::read(&path).expect("there") == new);
            assert_eq!(fs::metadata(&path).expect("there").ino(), inode);
            assert_eq!(names(folder.path()), ["inbox"]);
        }
    }

    /// Every state that a crash can leave, each with and without mail delivered after it.
    #[test]
    fn every_broken_off_state_is_completed_or_undone() {
        for block in [1, 3, 8, 512] {
            for (new, later) in NEW.into_iter().flat_map(|new| [(new, &b""[..]), (new, LATER)]) {
                for (number, state) in states(OLD, new, block).into_iter().enumerate() {
                    let folder = tempfile::tempdir().expect("a folder");
                    let path = folder.path().join("inbox");
                    begin(&path, OLD, new, block as u64);
                    fs::write(&path, [&state[..], later].concat()).expect("written");
                    assert_eq!(recover_by(&path, &mut open(&path), block as u64).expect("recovered").len(), 1);
                    let content = fs::read(&path).expect("there");
                    let (undone, done) = ([OLD, later].concat(), [new, later].concat());
                    assert!(content == done || content == undone, "{:?}", String::from_utf8_lossy(&content));
                    assert!(number > 0 || content == undone);
                    assert_eq!(names(folder.path()), ["inbox"]);
                }
            }
        }
    }

    #[test]
    fn recovery_may_be_broken_off_as_well() {
        let (block, written) = (8, 16);
        let once = [&half(OLD, SHORTER, written)[..], LATER].concat();
        let new = [SHORTER, LATER].concat();
        for state in states(&once, &new, block) {
            for later in [&b""[..], LATER] {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("inbox");
                begin(&path, OLD, SHORTER, block as u64);
                begin(&path, &once, &new, block as u64);
                fs::write(&path, [&state[..], later].concat()).expect("written");
                recover_by(&path, &mut open(&path), block as u64).expect("recovered");
                assert_eq!(fs::read(&path).expect("there"), [&new[..], later].concat());
                assert_eq!(names(folder.path()), ["inbox"]);
            }
        }
    }

    /// What other programs can have made of the mailbox before they or we came back to it.
    #[test]
    fn what_another_program_has_rewritten_is_not_touched() {
        let second = |content: &[u8]| content.windows(6).position(|bytes| bytes == b"From b").unwrap_or(0);
        for block in [1, 3, 8, 512] {
            for new in NEW {
                let mut foreign = vec![Vec::new(), LATER.to_vec(), LATER.repeat(9)];
                for state in states(OLD, new, block) {
                    let at = second(&state);
                    // The first message deleted, or one between others, and much or little delivered then.
                    for times in [0, 1, 9] {
                        let later = LATER.repeat(times);
                        foreign.push([&state[at..], &later[..]].concat());
                        foreign.push([&state[..at], &later[..]].concat());
                        foreign.push([&state[..at], LATER, &state[at..], &later[..]].concat());
                    }
                }
                for content in foreign {
                    let folder = tempfile::tempdir().expect("a folder");
                    let path = folder.path().join("inbox");
                    begin(&path, OLD, new, block as u64);
                    fs::write(&path, &content).expect("written");
                    // Some are what we could have left, after all.
                    let longer = content.get(..OLD.len().max(new.len())).unwrap_or_default();
                    if states(OLD, new, block).iter().any(|state| state == longer) {
                        continue;
                    }
                    let told = recover_by(&path, &mut open(&path), block as u64).expect("recovered");
                    assert!(fs::read(&path).expect("there") == content, "{:?}", String::from_utf8_lossy(&content));
                    if content.starts_with(OLD) || content.starts_with(new) {
                        assert_eq!(names(folder.path()), ["inbox"]);
                        continue;
                    }
                    assert_eq!(names(folder.path()), ["inbox", "inbox.hamsift-saved"]);
                    let saved = folder.path().join("inbox.hamsift-saved");
                    assert_eq!(fs::read(&saved).expect("there"), new);
                    assert!(told[0].contains(&format!("{}", saved.display())), "{told:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_saved_replaces_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("inbox");
        for (number, saved) in [(1, "inbox.hamsift-saved"), (2, "inbox.hamsift-saved-2"), (3, "inbox.hamsift-saved-3")]
        {
            let new = [SHORTER, format!("{number}").as_bytes()].concat();
            begin(&path, OLD, &new, BLOCK);
            fs::write(&path, LATER).expect("written");
            assert_eq!(recover(&path, &mut open(&path)).expect("recovered").len(), 1);
            assert_eq!(fs::read(folder.path().join(saved)).expect("there"), new);
            assert_eq!(names(folder.path()).len(), 1 + number);
        }
    }

    #[test]
    fn without_a_copy_there_is_nothing_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("inbox");
        fs::write(&path, OLD).expect("written");
        fs::write(folder.path().join(".inbox.hamsift-recovery-nonsense"), "x").expect("written");
        assert!(recover(&path, &mut open(&path)).expect("read").is_empty());
        assert!(!is_pending(&path).expect("read"));
    }
}
