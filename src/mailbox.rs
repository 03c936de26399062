//! One path full of mail, read message by message: an mbox (packed or not), a Maildir, or a file with one message.
//!
//! This is what training and scoring read. Unlike `filter` they need no byte of what stands between messages, so
//! [`Mailbox`] leaves out what belongs to the mailbox format and not to the message: text before the first message,
//! the empty line that an mbox has after each message, and a mail store's own record. Nothing is ever written, and no
//! file but a regular one is opened in a Maildir.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::vec;

use crate::exit::Exit;
use crate::input::{Damage, InputError, Source};
use crate::mbox::{Part, Rules, SplitError, Splitter};
use crate::message::{self, Message, OUR_PREFIX};

/// Larger messages are told of instead of read, in bytes.
pub const MOST: usize = 64 << 20;

/// Why a mailbox cannot be read (any further).
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] InputError),
    /// It is a folder, but not of mail.
    #[error("{name}: a folder without cur/ and new/, so no Maildir")]
    Folder {
        /// The folder.
        name: String,
    },
    /// It is no mailbox.
    #[error("{name} is {format}")]
    Foreign {
        /// The file.
        name: String,
        /// What it is.
        format: crate::mbox::Format,
    },
    /// Reading failed.
    #[error("reading {name}, after byte {offset}: {error}")]
    Read {
        /// The file.
        name: String,
        /// How far it could be read.
        offset: u64,
        /// Why no further.
        error: io::Error,
    },
}

impl MailboxError {
    /// The status of a command that ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            MailboxError::Open(_) | MailboxError::Folder { .. } => Exit::NoInput,
            MailboxError::Foreign { .. } => Exit::Data,
            MailboxError::Read { error, .. } => {
                let damage = error.get_ref().and_then(|inner| inner.downcast_ref::<Damage>());
                if let Some(Damage::Packed { .. }) = damage { Exit::Data } else { Exit::Io }
            }
        }
    }
}

/// A message of a mailbox, or the place of one that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail<'a> {
    /// The file it stands in.
    pub file: &'a Path,
    /// Where it begins in the (unpacked) file, in bytes.
    pub offset: u64,
    /// Its bytes, From_ line included, without the empty line that the mbox has after it. Otherwise why there are none,
    /// which is no reason to stop: the mailbox goes on behind it.
    pub bytes: Result<&'a [u8], String>,
    /// Whether it begins with a From_ line.
    pub has_from_line: bool,
}

/// An open mailbox.
pub struct Mailbox {
    kind: Kind,
    /// The file of the current message.
    file: PathBuf,
    /// The current message.
    bytes: Vec<u8>,
}

enum Kind {
    Mbox(Box<Mbox>),
    Files(vec::IntoIter<PathBuf>),
}

struct Mbox {
    name: String,
    splitter: Splitter<Box<dyn Read + Send>>,
    is_first: bool,
    /// Where the message begins that is too large and being skipped.
    large: (u64, bool),
}

/// Where a message begins, whether it has a From_ line, and why its bytes are not there.
type Place = (u64, bool, Option<String>);

impl Mailbox {
    /// Opens what an argument names: a file, a Maildir, or with `-` standard input.
    ///
    /// # Errors
    /// If it cannot be opened. What is in a file is looked at by [`next`](Mailbox::next) only.
    pub fn open(argument: &Path) -> Result<Mailbox, MailboxError> {
        let source = Source::from_argument(argument.to_owned());
        let kind = match &source {
            Source::Path(path) if path.is_dir() => Kind::Files(maildir(path)?.into_iter()),
            Source::Path(path) if holds_one(path) => {
                // Opened here too, so that a missing one is known at once.
                source.open()?;
                Kind::Files(vec![path.clone()].into_iter())
            }
            _ => {
                let splitter = Splitter::new(source.open()?.reader, Rules::default(), MOST);
                Kind::Mbox(Box::new(Mbox { name: source.name(), splitter, is_first: true, large: (0, false) }))
            }
        };
        Ok(Mailbox { kind, file: argument.to_owned(), bytes: Vec::new() })
    }

    /// Whether a mailbox is there and is one, as far as that can be known without taking anything from a pipe.
    ///
    /// # Errors
    /// Those of [`open`](Mailbox::open) and of the first [`next`](Mailbox::next).
    pub fn check(argument: &Path) -> Result<(), MailboxError> {
        if argument.as_os_str() == "-" {
            return Ok(());
        }
        match argument.metadata() {
            Ok(metadata) if metadata.is_file() || metadata.is_dir() => Mailbox::open(argument)?.next().map(drop),
            Ok(_) => Ok(()),
            Err(error) => Err(InputError::Open { name: argument.display().to_string(), error }.into()),
        }
    }

    /// The next message; none at the end.
    ///
    /// # Errors
    /// If the mailbox is none, or cannot be read to its end.
    #[expect(clippy::should_implement_trait, reason = "what it returns borrows from the mailbox")]
    pub fn next(&mut self) -> Result<Option<Mail<'_>>, MailboxError> {
        let Mailbox { kind, file, bytes } = self;
        bytes.clear();
        let place = match kind {
            Kind::Mbox(mbox) => mbox.next(bytes)?,
            Kind::Files(files) => files.next().map(|next| {
                *file = next;
                let missing = read_file(file, bytes).err();
                (0, bytes.starts_with(b"From "), missing)
            }),
        };
        Ok(place.map(|(offset, has_from_line, missing)| Mail {
            file,
            offset,
            bytes: missing.map_or(Ok(bytes.as_slice()), Err),
            has_from_line,
        }))
    }
}

impl Mbox {
    /// Puts the next message into `out`.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Place>, MailboxError> {
        loop {
            let offset = self.splitter.offset();
            let piece = self.splitter.next_piece().map_err(|error| match error {
                SplitError::NotMbox(format) => MailboxError::Foreign { name: self.name.clone(), format },
                SplitError::Read(error) => MailboxError::Read { name: self.name.clone(), offset, error },
            })?;
            let Some(piece) = piece else { return Ok(None) };
            match piece.part {
                Part::Preamble | Part::Middle => {}
                Part::First => {
                    self.large = (piece.offset, piece.has_from_line);
                    self.is_first = false;
                }
                Part::Last => return Ok(Some((self.large.0, self.large.1, Some(too_large())))),
                Part::Message => {
                    let is_first = std::mem::replace(&mut self.is_first, false);
                    if is_first && Message::parse(piece.bytes, OUR_PREFIX).is_store_record() {
                        continue;
                    }
                    out.extend_from_slice(if piece.has_from_line {
                        without_separator(piece.bytes)
                    } else {
                        piece.bytes
                    });
                    return Ok(Some((piece.offset, piece.has_from_line, None)));
                }
            }
        }
    }
}

fn too_large() -> String {
    format!("larger than {} MiB", MOST >> 20)
}

/// A message in an mbox without the empty line after it. With only one empty line in all, that one may end the header
/// as well as the message; nothing is lost then either.
fn without_separator(bytes: &[u8]) -> &[u8] {
    if !message::ends_in_empty_line(bytes) {
        return bytes;
    }
    bytes.strip_suffix(b"\r\n").or_else(|| bytes.strip_suffix(b"\n")).unwrap_or(bytes)
}

/// Whether a file holds one message by its name: what looks like a From_ line in its text is text.
fn holds_one(path: &Path) -> bool {
    let has = |path: &Path, wanted: &[&str]| {
        path.extension().is_some_and(|extension| wanted.iter().any(|wanted| extension.eq_ignore_ascii_case(wanted)))
    };
    has(path, &["eml"])
        || has(path, &["gz", "xz", "zst"]) && path.file_stem().is_some_and(|stem| has(Path::new(stem), &["eml"]))
}

/// The messages of a Maildir, sorted: the regular files of `cur` and `new`. What is in `tmp` is still being written,
/// and what begins with a dot is not mail.
fn maildir(path: &Path) -> Result<Vec<PathBuf>, MailboxError> {
    let parts = ["cur", "new"].map(|part| path.join(part));
    if !parts.iter().any(|part| part.is_dir()) {
        return Err(MailboxError::Folder { name: path.display().to_string() });
    }
    let mut files = Vec::new();
    for part in parts.iter().filter(|part| part.is_dir()) {
        let failed = |error| InputError::Open { name: part.display().to_string(), error };
        for entry in fs::read_dir(part).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // The type of a link is a link here.
            if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Reads a file that holds one message; the error is for that message only.
fn read_file(path: &Path, out: &mut Vec<u8>) -> Result<(), String> {
    let input = Source::Path(path.to_owned()).open().map_err(|error| match error {
        InputError::Open { error, .. } => error.to_string(),
        other => other.to_string(),
    })?;
    input.reader.take(MOST as u64 + 1).read_to_end(out).map_err(|error| error.to_string())?;
    if out.len() > MOST { Err(too_large()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(path: &Path) -> Vec<(String, u64, String)> {
        let mut mailbox = Mailbox::open(path).expect("it opens");
        let mut out = Vec::new();
        while let Some(mail) = mailbox.next().expect("it reads") {
            let name = mail.file.file_name().expect("a name").to_string_lossy().into_owned();
            let text = mail.bytes.map_or_else(|error| error, |bytes| String::from_utf8_lossy(bytes).into_owned());
            out.push((name, mail.offset, text));
        }
        out
    }

    fn texts(mails: &[(String, u64, String)]) -> Vec<&str> {
        mails.iter().map(|mail| mail.2.as_str()).collect()
    }

    const ONE: &str = "From a@b Mon Jan  5 10:00:01 2004\nA: 1\n\nx\n";
    const TWO: &str = "From a@b Mon Jan  5 10:00:02 2004\r\nA: 2\r\n\r\nx\r\n";
    const RECORD: &str = "From MAILER-DAEMON Mon Jan  5 10:00:00 2004\nX-IMAP: 1 2\n\nrecord\n\n";

    #[test]
    fn an_mbox_gives_its_messages_without_what_is_the_mailboxes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("box");
        fs::write(&path, format!("{RECORD}{ONE}\n{TWO}\r\n{ONE}")).expect("written");
        let mails = read(&path);
        assert_eq!(texts(&mails), [ONE, TWO, ONE]);
        assert_eq!(mails[0].1, RECORD.len() as u64);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(format!("{ONE}\n{ONE}").as_bytes()).expect("a Vec");
        fs::write(&path, gzip.finish().expect("a Vec")).expect("written");
        assert_eq!(texts(&read(&path)), [ONE, ONE]);
        fs::write(&path, "").expect("written");
        assert!(read(&path).is_empty());
    }

    #[test]
    fn a_message_too_large_is_told_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("box");
        let large = format!("{ONE}{}\n", "0123456789abcdef\n".repeat(MOST / 16));
        fs::write(&path, format!("{ONE}\n{large}{ONE}")).expect("written");
        let mails = read(&path);
        assert_eq!(texts(&mails), [ONE, "larger than 64 MiB", ONE]);
        assert_eq!(mails[1].1, ONE.len() as u64 + 1);
    }

    #[test]
    fn a_maildir_is_its_regular_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for part in ["cur", "new", "tmp", "cur/sub"] {
            fs::create_dir(at(part)).expect("made");
        }
        for file in ["new/1", "cur/2:2,S", "tmp/3", "cur/.hidden", "top"] {
            fs::write(at(file), format!("A: {file}\n\n{ONE}\n{ONE}")).expect("written");
        }
        std::os::unix::fs::symlink(at("top"), at("new/link")).expect("linked");
        let mails = read(folder.path());
        let names: Vec<_> = mails.iter().map(|mail| mail.0.as_str()).collect();
        assert_eq!(names, ["2:2,S", "1"]);
        assert!(mails[0].2.ends_with(&format!("{ONE}\n{ONE}")), "one message, however it looks");
        assert!(matches!(Mailbox::open(&at("tmp")), Err(MailboxError::Folder { .. })));
    }

    #[test]
    fn an_eml_file_is_one_message() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.EML");
        fs::write(&path, format!("A: 1\n\n{ONE}\n{ONE}\n")).expect("written");
        assert_eq!(read(&path).len(), 1);
        assert!(holds_one(Path::new("x/a.eml.gz")) && !holds_one(Path::new("eml")) && !holds_one(Path::new("a.gz")));
    }

    #[test]
    fn what_is_no_mailbox_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        assert_eq!(Mailbox::open(&path).err().map(|error| error.exit()), Some(Exit::NoInput));
        assert_eq!(Mailbox::check(&path).err().map(|error| error.exit()), Some(Exit::NoInput));
        fs::write(&path, b"\0\x01\x02 binary\n").expect("written");
        assert_eq!(Mailbox::check(&path).err().map(|error| error.exit()), Some(Exit::Data));
        let error = Mailbox::open(&path).expect("it opens").next().map(drop).expect_err("no mailbox");
        assert_eq!(error.exit(), Exit::Data);
    }
}
