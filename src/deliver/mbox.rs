//! Appending to an mbox so that what was in it stays, and the new message is there whole or not at all.
//!
//! Under the locks the length is noted, in the dotlock too; whatever fails, the mailbox is cut back to it. Of somebody
//! who was killed while he wrote, the note in his dotlock tells how far to cut back; without one, his half message is
//! closed with an empty line, so that the next one is not glued to it. If he had written all, see `untold`.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::untold::{Fingerprint, Records, Stretch};
use super::{DeliverError, How, Mail};
use crate::lock::Locked;
use crate::mbox::is_dated;
use crate::message::{Eol, ends_in_empty_line};
use crate::output::sync_folder_of;

/// As much of the end of a mailbox is looked at to learn how its lines end.
const TAIL: u64 = 4096;
/// Written in one call; between two of them it can be stopped.
const PIECE: usize = 1 << 20;
/// Half messages longer than this are not looked through, and stay.
const LONGEST_TORN: u64 = 256 << 20;

/// Appends the message to the mbox, which is made if it is not there; says whether it was in it already. The mailbox is
/// left locked.
pub(super) fn deliver(
    path: &Path,
    mail: &Mail,
    how: &How,
    warn: &mut dyn FnMut(String),
) -> Result<(Locked, bool), DeliverError> {
    let text = mail.in_mbox().map_err(DeliverError::file("compose the message for", path))?;
    let mut locked = Locked::take(path, &how.lock(), warn)?;
    mend(&mut locked, path, warn).map_err(DeliverError::file("mend", path))?;
    let records = Records::of(path);
    let failed = DeliverError::file("read", path);
    if let Some(stretch) = records.find(mail.fingerprint(), locked.file()).map_err(&failed)? {
        if how.sync {
            locked.file().sync_data().map_err(DeliverError::file("write to", path))?;
        }
        // We may be killed as well before it is told.
        locked.leave_note(&note(&stretch, "-")).map_err(&failed)?;
        records.forget(&stretch).map_err(DeliverError::file("mend", path))?;
        warn(format!("{}: the message is there already, from a delivery that was killed", path.display()));
        return Ok((locked, true));
    }
    match append(&mut locked, path, &text, mail.fingerprint(), how) {
        Ok(()) => Ok((locked, false)),
        Err(error) => {
            locked.unmake();
            Err(error)
        }
    }
}

/// Clears up behind a delivery that was killed, in a mailbox that has just been locked: what it has written in part is
/// cut off, what it has written in full is remembered for when it comes again.
pub fn mend(locked: &mut Locked, path: &Path, warn: &mut dyn FnMut(String)) -> io::Result<()> {
    let Some(note) = locked.abandoned_note().map(str::to_owned) else { return Ok(()) };
    let Some(note) = Note::parse(&note) else { return Ok(()) };
    if let Some(Torn { at, length }) = torn(locked.file(), &note)? {
        locked.file().set_len(at)?;
        warn(format!("{}: cut off {length} bytes of a message whose delivery was killed", path.display()));
    } else if note.stretch.is_in(locked.file())?
        && let Err(error) = Records::of(path).add(note.stretch)
    {
        warn(format!("{}: a message that a killed delivery has stored may come twice: {error}", path.display()));
    }
    // What has been seen to must not be seen to again, by the heirs of this lock.
    locked.leave_note("mended")
}

/// Appends `text`, which begins with a From_ line and ends in an empty line, to a mailbox locked for delivery. `came` is
/// the fingerprint of the message as it was handed in.
fn append(locked: &mut Locked, path: &Path, text: &[u8], came: &Fingerprint, how: &How) -> Result<(), DeliverError> {
    let failed = DeliverError::file("read", path);
    let length = locked.file().metadata().map_err(&failed)?.len();
    let missing = missing_end(locked.file(), length).map_err(&failed)?;
    let stored = Fingerprint::of(text);
    let text = if missing.is_empty() { text } else { &[missing.as_slice(), text].concat() };
    let stretch = Stretch { at: length, length: text.len() as u64, stored, came: came.clone() };
    let from_line = String::from_utf8_lossy(first_line(text.trim_ascii_start()));
    let note = note(&stretch, &from_line);
    let write = || -> io::Result<bool> {
        locked.leave_note(&note)?;
        for piece in text.chunks(PIECE) {
            if (how.stop)() {
                return Ok(false);
            }
            locked.file().write_all(piece)?;
        }
        if how.sync {
            locked.file().sync_data()?;
            if length == 0 {
                sync_folder_of(path)?;
            }
        }
        Ok(true)
    };
    let written = { write }();
    let error = match written {
        Ok(true) => return Ok(()),
        Ok(false) => DeliverError::Stopped,
        Err(error) => DeliverError::file("write to", path)(error),
    };
    match locked.file().set_len(length).and_then(|()| locked.file().sync_all()) {
        Ok(()) => Err(error),
        Err(undo) => {
            Err(DeliverError::NotUndone { path: path.display().to_string(), error: error.to_string(), length, undo })
        }
    }
}

fn first_line(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'\n').next().unwrap_or(text).trim_ascii_end()
}

/// The line ends that the mailbox lacks so that a From_ line can follow.
fn missing_end(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let start = length.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(length - start).unwrap_or(0)];
    file.read_exact_at(&mut tail, start)?;
    let eol = memchr::memrchr(b'\n', &tail).and_then(|lf| Eol::at_end_of(&tail[..=lf])).unwrap_or(Eol::Lf);
    let mut missing = Vec::new();
    while !ends_in_empty_line(&tail) {
        tail.extend_from_slice(eol.bytes());
        missing.extend_from_slice(eol.bytes());
    }
    Ok(missing)
}

/// A half message at the end of a mailbox.
#[derive(Debug, PartialEq, Eq)]
struct Torn {
    at: u64,
    length: u64,
}

/// What a killed delivery has left, if it is certain that it is nothing else: it begins where and as he noted, it is
/// shorter than he meant it to be, and nobody else's message can have been put behind it.
fn torn(mailbox: &File, note: &Note) -> io::Result<Option<Torn>> {
    let Stretch { at, length: whole, .. } = note.stretch;
    let end = mailbox.metadata()?.len();
    if end <= at || end - at >= whole || end - at > LONGEST_TORN {
        return Ok(None);
    }
    let length = end - at;
    let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
    mailbox.read_exact_at(&mut text, at)?;
    let from_line = text.trim_ascii_start();
    let line = String::from_utf8_lossy(first_line(from_line)).into_owned();
    let ours = if from_line.contains(&b'\n') { line == note.from_line } else { note.from_line.starts_with(&line) };
    let line_of = |at: usize| text[at..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    let first = text.len() - from_line.len();
    let others = memchr::memmem::find_iter(&text, b"From ").any(|at| at > first && is_dated(line_of(at)));
    Ok((ours && !others).then_some(Torn { at, length }))
}

fn note(stretch: &Stretch, from_line: &str) -> String {
    format!("append {} {from_line}", stretch.in_words())
}

/// What stands in the dotlock of somebody who appends.
struct Note<'a> {
    stretch: Stretch,
    from_line: &'a str,
}

impl Note<'_> {
    fn parse(text: &str) -> Option<Note<'_>> {
        let mut words = text.strip_prefix("append ")?.splitn(5, ' ');
        Some(Note { stretch: Stretch::parse(&mut words)?, from_line: words.next()? })
    }
}

#[cfg(test)]
#[path = "mbox_tests.rs"]
mod tests;
