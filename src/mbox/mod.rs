//! Mailboxes of the mbox kind: where a message begins.
//!
//! [`Splitter`] cuts a stream into [`Piece`]s whose bytes, joined, are the input: nothing is added, dropped, unquoted or
//! repaired here. It reads through [`std::io::Read`] once from front to back, so pipes and files of any size will do.
//!
//! | file | owns |
//! |---|---|
//! | `from_line` | is this one line a sender and a date? |
//! | `fields` | what a header field looks like; what of a header the splitter must know |
//! | `glance` | a quick look over a header for anything that matters |
//! | `look` | is this From_ line, with what stands around it, the beginning of a message? |
//! | `mime` | is a multipart message still open there? |
//! | `detect` | files that are no mbox, by name |
//! | `cutter` | the state machine from buffered bytes to cuts; does no input. `cutter::start` is its beginning |
//! | `split` | the buffer, the reader, the public [`Splitter`] |
//!
//! Sources: RFC 4155, and man hamsift(7) for the rule in full ("spec: mbox" in these comments).

#[cfg(test)]
mod cases;
mod cutter;
mod detect;
mod fields;
mod from_line;
mod glance;
mod look;
mod mime;
#[cfg(test)]
mod reference;
mod split;
#[cfg(test)]
mod tests;
pub mod write;

pub use from_line::is_dated;
pub use split::Splitter;

use std::io;

/// How much may be looked at, in bytes, to decide about one From_ line: the line itself and the header fields after it.
const LOOKAHEAD: usize = 1 << 20;

/// Which lines beginning `From ` begin a message (spec: mbox, section 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FromRule {
    /// A dated line after an empty one; an undated one if a mail header follows; a dated one in mid text if a field follows.
    #[default]
    Auto,
    /// Only a dated line after an empty one.
    Strict,
    /// As formail of procmail 3.22: `From ` and two words after an empty line (LF alone), and under it, without any other
    /// between them, enough fields that formail knows. Content-Length is believed blindly.
    Formail,
    /// Every line that starts `From `.
    Any,
}

/// The rule and its modifiers, named after the options of formail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Which lines begin a message.
    pub from_rule: FromRule,
    /// `-e`: no empty line is needed before a From_ line.
    pub anywhere: bool,
    /// `-Y`: Content-Length is not looked at.
    pub ignore_content_length: bool,
    /// `-m N`: a From_ line inside the mailbox needs N - 1 header fields after it. `None` and 0 mean formail's 2 under
    /// [`FromRule::Formail`] and no such demand under the other rules.
    pub min_fields: Option<u32>,
}

/// Which part of the mailbox a [`Piece`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What stands before the first message: a byte order mark, empty lines, text. Belongs to no message.
    Preamble,
    /// A message, whole.
    Message,
    /// The beginning of a message too large to come whole, as many bytes as a whole one may have.
    First,
    /// More of it; the cut may be anywhere, even inside a line end.
    Middle,
    /// The end of it; never empty.
    Last,
}

/// Why the From_ line that begins a message may be none ("suspicious" in man hamsift(1)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The message before it is multipart and its closing delimiter has not been seen.
    OpenMimePart,
    /// No header field follows it.
    NoHeader,
}

/// Some bytes of the mailbox, as they stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What these bytes are.
    pub part: Part,
    /// Where they start, in bytes from the beginning of the (decompressed) input.
    pub offset: u64,
    /// The bytes. Never empty.
    pub bytes: &'a [u8],
    /// Whether the message begins with a From_ line; told alike on all of its parts.
    pub has_from_line: bool,
    /// Why the beginning of this message is doubtful; told on [`Part::Message`] and [`Part::First`].
    pub doubt: Option<Doubt>,
    /// Whether a header line may begin with a name given to [`Splitter::watching`]; told on [`Part::Message`] and
    /// [`Part::First`]. Where nobody has looked it is true, and lines below a broken header may count as well.
    pub watched: bool,
}

/// What an input is that is no mbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Format {
    /// Text in 16-bit units.
    #[error("UTF-16 text, not an mbox (convert it to UTF-8 first)")]
    Utf16,
    /// Control characters before anything that could be mail.
    #[error("a binary file, not an mbox")]
    Binary,
    /// Messages between lines of four ^A.
    #[error("an MMDF mailbox, which is not supported")]
    Mmdf,
    /// The format of Emacs Rmail before version 23.
    #[error("a BABYL (Emacs Rmail) file, which is not supported")]
    Babyl,
    /// The format of UW IMAP and Pine.
    #[error("an mbx mailbox (UW IMAP), which is not supported")]
    Mbx,
    /// Mailboxes may be in it.
    #[error("{0}, not an mbox (unpack it first)")]
    Packed(&'static str),
    /// Lines that end in CR alone.
    #[error("a mailbox with bare CR line ends (old Macintosh); convert them to LF first")]
    CrOnly,
    /// Text with neither a From_ line nor a header at its beginning.
    #[error("text with neither a From_ line nor a mail header, not an mbox")]
    Text,
}

/// Why no (further) piece can be had.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// The reader failed. Pieces handed out before are good; see [`Splitter::remainder`] for the rest.
    #[error("cannot read the mailbox: {0}")]
    Read(#[source] io::Error),
    /// The input is no mbox. Comes before any piece of text.
    #[error("the input is {0}")]
    NotMbox(Format),
}
