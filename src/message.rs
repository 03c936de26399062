//! One message as raw bytes: where its header block ends, which fields it has, and how lines are added to or taken
//! from it. Nothing is ever re-serialised; a change is a list of [`Edits`] over the original bytes.
//!
//! Two readings of "header block" are kept apart on purpose. The *strict* one (names of printable ASCII, RFC 5322
//! section 3.6.8) says where an added field goes: there every reader still sees it. The *generous* one (anything with a
//! colon, as many mail readers take it) says how far fields of ours are searched for: a forged one must not survive
//! because a broken line stands above it.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memmem, memrchr};

mod edits;
mod strip;

pub use edits::Edits;
pub use strip::Stripper;

/// The prefix of the names of all fields that are ours, in any case of letters.
pub const OUR_PREFIX: &str = "X-Spambayes-";

/// How far a line is searched for the colon behind a field's name, bytes: there is no field in a longer one, so that a
/// message can be read in pieces.
const LONGEST_NAME: usize = 64 << 10;

/// A line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eol {
    /// LF alone.
    Lf,
    /// CR LF.
    CrLf,
}

impl Eol {
    /// Its bytes.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Eol::Lf => b"\n",
            Eol::CrLf => b"\r\n",
        }
    }

    /// How `text`, which ends at the end of a line, ends that line. `None` where it does not end a line.
    pub fn at_end_of(text: &[u8]) -> Option<Eol> {
        match text {
            [.., b'\r', b'\n'] => Some(Eol::CrLf),
            [.., b'\n'] => Some(Eol::Lf),
            _ => None,
        }
    }
}

/// A message seen as its parts. Borrowed and cheap: one pass over the header lines.
#[derive(Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    /// End of the From_ line and the `>From ` lines right under it; 0 where there is none.
    envelope: usize,
    /// End of the strict header block: where an added field goes.
    header_end: usize,
    /// Fields of ours that stand in the message already, with their continuation lines; sorted, not touching.
    ours: Vec<Range<usize>>,
}

/// A header field of a message.
#[derive(Debug)]
pub struct Field<'a> {
    /// The name as written, without blanks before the colon.
    pub name: &'a [u8],
    /// All after the colon, folds included, up to and with the last line end.
    pub value: &'a [u8],
    /// Where the field lies in the message, with continuation lines and line end.
    pub range: Range<usize>,
}

/// A field to be added.
#[derive(Clone, Copy, Debug)]
pub struct NewField<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// What stands behind the name, with each fold as an LF and the blanks after it.
    pub value: &'a [u8],
}

/// What a header line is.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    /// A field; the name's length.
    Field(usize),
    /// A field for generous readers only.
    Dubious(usize),
    Continuation,
    /// A `>From ` line, which old mail programs leave between the fields.
    QuotedFrom,
    /// An empty line, or text.
    End,
}

fn line_kind(line: &[u8]) -> Line {
    match line.first() {
        None | Some(b'\n') => return Line::End,
        Some(b' ' | b'\t') => return Line::Continuation,
        Some(b'>') if is_quoted_from(line) => return Line::QuotedFrom,
        _ => {}
    }
    let Some(colon) = memchr(b':', &line[..line.len().min(LONGEST_NAME)]) else { return Line::End };
    let name = &line[..colon];
    let strict = name.trim_ascii_end();
    if !strict.is_empty() && strict.iter().all(u8::is_ascii_graphic) {
        return Line::Field(strict.len());
    }
    // `name` cannot hold a line end: the colon lies in this line, whose only LF is its last byte.
    if name.first().is_some_and(|&byte| byte > b' ') && !name.starts_with(b"From ") {
        return Line::Dubious(name.trim_ascii_end().len());
    }
    Line::End
}

fn is_quoted_from(line: &[u8]) -> bool {
    let line = &line[..line.len().min(LONGEST_NAME)];
    line.starts_with(b">") && line[line.iter().take_while(|&&byte| byte == b'>').count()..].starts_with(b"From ")
}

/// The end of the line that starts at `at`, its LF included.
fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1)
}

fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"\n" | b"\r\n")
}

/// Whether a field of this name is ours to set, and so nobody else's: `X-Spambayes-*`, and `header`.
pub fn is_ours(name: &[u8], header: &str) -> bool {
    is_prefixed(name) || name.eq_ignore_ascii_case(header.as_bytes())
}

fn is_prefixed(name: &[u8]) -> bool {
    name.get(..OUR_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(OUR_PREFIX.as_bytes()))
}

/// How much of a field of ours `X-Old-` takes the place of.
fn renamed_prefix(line: &[u8]) -> usize {
    if line.len() > 2 && line[..2].eq_ignore_ascii_case(b"X-") { 2 } else { 0 }
}

impl<'a> Message<'a> {
    /// Finds the parts of a message that may begin with its From_ line. `header` is the name of the field that carries
    /// the verdict. Any bytes are a message.
    pub fn parse(bytes: &'a [u8], header: &str) -> Message<'a> {
        let envelope = envelope_end(bytes);
        let (mut at, mut header_end, mut ours) = (envelope, None, Vec::<Range<usize>>::new());
        let mut in_ours = false;
        while at < bytes.len() {
            let end = line_end(bytes, at);
            let name = match line_kind(&bytes[at..end]) {
                Line::Continuation => {
                    if let (true, Some(last)) = (in_ours, ours.last_mut()) {
                        last.end = end;
                    }
                    at = end;
                    continue;
                }
                Line::QuotedFrom => None,
                Line::Field(length) => Some(length),
                Line::Dubious(length) => {
                    if !is_ours(&bytes[at..at + length], header) {
                        header_end.get_or_insert(at);
                    }
                    Some(length)
                }
                Line::End => break,
            };
            in_ours = name.is_some_and(|length| is_ours(&bytes[at..at + length], header));
            match ours.last_mut() {
                Some(last) if in_ours && last.end == at => last.end = end,
                _ if in_ours => ours.push(at..end),
                _ => {}
            }
            at = end;
        }
        // A field at the very end without a newline was added behind a newline of its own, which goes with it.
        if let Some(last) = ours.last_mut()
            && last.end == bytes.len()
            && Eol::at_end_of(bytes).is_none()
        {
            last.start -= Eol::at_end_of(&bytes[..last.start]).map_or(0, |eol| eol.bytes().len());
        }
        Message { bytes, envelope, header_end: header_end.unwrap_or(at), ours }
    }

    /// The bytes, From_ line included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The From_ line and the `>From ` lines right under it; empty where there are none.
    pub fn envelope(&self) -> &'a [u8] {
        &self.bytes[..self.envelope]
    }

    /// The fields of the strict header block, in order.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        self.fields_of(self.envelope..self.header_end)
    }

    /// Those of them that are ours, without a look at the others.
    pub fn our_fields(&self) -> impl Iterator<Item = Field<'a>> {
        let end = self.header_end;
        let ours = self.ours.iter().take_while(move |range| range.start < end);
        ours.flat_map(move |range| self.fields_of(range.start..range.end.min(end)))
    }

    /// The fields in these lines.
    fn fields_of(&self, lines: Range<usize>) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let bytes = &self.bytes[..lines.end];
        let mut at = lines.start;
        std::iter::from_fn(move || {
            while at < bytes.len() {
                let (start, mut end) = (at, line_end(bytes, at));
                let kind = line_kind(&bytes[start..end]);
                while end < bytes.len() && matches!(bytes[end], b' ' | b'\t') {
                    end = line_end(bytes, end);
                }
                at = end;
                if let Line::Field(length) = kind {
                    let colon = memchr(b':', &bytes[start..end])?;
                    let (name, value) = (&bytes[start..start + length], &bytes[start + colon + 1..end]);
                    return Some(Field { name, value, range: start..end });
                }
            }
            None
        })
    }

    /// The first field of this name, in any case of letters.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        self.fields().find(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Whether fields of ours stand in it already.
    pub fn has_ours(&self) -> bool {
        !self.ours.is_empty()
    }

    /// Its length without fields of ours, in bytes: what limits are compared with, so that a verdict makes no message too
    /// large for the next one.
    pub fn length_without_ours(&self) -> u64 {
        (self.bytes.len() - self.ours.iter().map(Range::len).sum::<usize>()) as u64
    }

    /// Whether nothing but line ends and fields of ours stands under its From_ line.
    pub fn is_bare(&self) -> bool {
        let all = self.bytes.len();
        let mut at = self.envelope;
        self.ours.iter().cloned().chain(std::iter::once(all..all)).all(|range| {
            let kept = &self.bytes[at.min(range.start)..range.start];
            at = range.end;
            kept.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
        })
    }

    /// Whether it is a mail store's own record ("folder internal data" of UW-IMAP, Pine, Dovecot): only the first
    /// message of a mailbox may be one, which the caller has to check.
    pub fn is_store_record(&self) -> bool {
        let names_daemon = |text: &[u8]| memmem::find(text, b"MAILER-DAEMON").is_some();
        (self.field("X-IMAP").is_some() || self.field("X-IMAPbase").is_some())
            && (names_daemon(self.envelope()) || self.field("From").is_some_and(|field| names_daemon(field.value)))
    }

    /// The message without fields of ours.
    pub fn without_ours(&self) -> Cow<'a, [u8]> {
        if !self.has_ours() {
            return self.bytes.into();
        }
        let mut edits = Edits::default();
        self.cut_ours(&mut edits);
        edits.applied(self.bytes).into()
    }

    /// Takes all fields of ours out. `edits` is empty before.
    pub fn cut_ours(&self, edits: &mut Edits) {
        self.ours.iter().for_each(|range| edits.replace(range.clone(), &[]));
    }

    /// Renames all fields of ours to `X-Old-…`. `edits` is empty before.
    pub fn rename_ours(&self, edits: &mut Edits) {
        for range in &self.ours {
            let mut at = range.start;
            while at < range.end {
                // The first range may begin with the newline before its field.
                let line = &self.bytes[at..line_end(self.bytes, at)];
                if !matches!(line.first(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                    edits.replace(at..at + renamed_prefix(line), b"X-Old-");
                }
                at += line.len();
            }
        }
    }

    /// Puts `fields` at the end of the header block, in the line ending of the line before. Where the header block ends
    /// at the end of the message without a newline, one goes before the added line and none after it.
    pub fn insert_fields<'t>(&self, edits: &mut Edits, fields: impl IntoIterator<Item = NewField<'t>>) {
        let at = self.header_end;
        // The lines around as they will be written: a removed field's line end is not the one to follow.
        let before = edits.applied_before(at, self.bytes);
        let next_cut = edits.next_cut(at).unwrap_or(self.bytes.len());
        let open = !before.is_empty() && Eol::at_end_of(&before).is_none();
        let eol = Eol::at_end_of(&before)
            .or_else(|| memrchr(b'\n', &before).and_then(|lf| Eol::at_end_of(&before[..=lf])))
            .or_else(|| Eol::at_end_of(&self.bytes[at..line_end(self.bytes, at).min(next_cut)]))
            .unwrap_or(Eol::Lf);
        // After a line that was cut behind its CR a lone LF would complete that line end, and taking the field out
        // again would take the CR with it.
        let eol = if open && before.ends_with(b"\r") { Eol::CrLf } else { eol };
        edits.insert(at, |text| {
            for field in fields {
                if open {
                    text.extend_from_slice(eol.bytes());
                }
                text.extend_from_slice(field.name);
                text.extend_from_slice(b": ");
                push_with_folds(text, field.value, eol);
                if !open {
                    text.extend_from_slice(eol.bytes());
                }
            }
        });
    }
}

/// Appends a field whose folds are written with LF, with each fold in the message's own line ending.
fn push_with_folds(out: &mut Vec<u8>, field: &[u8], eol: Eol) {
    for (number, line) in field.split(|&byte| byte == b'\n').enumerate() {
        if number > 0 {
            out.extend_from_slice(eol.bytes());
        }
        out.extend_from_slice(line);
    }
}

fn envelope_end(bytes: &[u8]) -> usize {
    if !bytes.starts_with(b"From ") {
        return 0;
    }
    let mut at = line_end(bytes, 0);
    while is_quoted_from(&bytes[at..]) {
        at = line_end(bytes, at);
    }
    at
}

/// Cuts `value` (of a [`Field`]) at its first control character; folds (line end, then blank) are kept, each as one
/// LF, and a trailing line end goes. Tab is no control character here. This is what keeps a server's answer from
/// adding lines of its own.
pub fn clean_value(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let rest = &value[at..];
        let eol = [&b"\r\n"[..], b"\n"].into_iter().find(|eol| rest.starts_with(eol)).map_or(0, <[u8]>::len);
        match rest.get(eol) {
            Some(b' ' | b'\t') if eol > 0 => out.push(b'\n'),
            Some(&byte) if eol == 0 && (byte == b'\t' || !byte.is_ascii_control()) => out.push(byte),
            _ => break,
        }
        at += eol.max(1);
    }
    out
}

/// Whether `bytes` is empty or ends in an empty line, as the message before a From_ line must.
pub fn ends_in_empty_line(bytes: &[u8]) -> bool {
    let line_start = |end: usize| memrchr(b'\n', &bytes[..end]).map_or(0, |lf| lf + 1);
    bytes.is_empty() || (bytes.ends_with(b"\n") && is_empty_line(&bytes[line_start(bytes.len() - 1)..]))
}

#[cfg(test)]
#[path = "message/tests.rs"]
mod tests;
