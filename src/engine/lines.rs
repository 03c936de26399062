//! The lines of a message as a parser of nested parts sees them: headers, boundaries, and ends of input that are none.

use std::collections::HashMap;

use super::parse::{Field, Part, Span};
use super::word::is_space;

/// Reads lines, and sees an end of input where an enclosing container says so.
pub(super) struct Lines<'d> {
    pub(super) data: &'d [u8],
    pub(super) at: usize,
    /// A `From ` line put back before a line that is gone.
    pending: Option<Span>,
    /// How many enclosing containers end a part at an empty line.
    pub(super) blanks: usize,
    /// The enclosing boundaries, and how many containers use each.
    boundaries: HashMap<Vec<u8>, usize>,
    /// No enclosing boundary is longer, which spares looking up long lines.
    longest: usize,
}

impl<'d> Lines<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Lines { data, at: 0, pending: None, blanks: 0, boundaries: HashMap::new(), longest: 0 }
    }

    pub(super) fn add(&mut self, boundary: &[u8]) {
        self.longest = self.longest.max(boundary.len());
        *self.boundaries.entry(boundary.to_vec()).or_default() += 1;
    }

    pub(super) fn remove(&mut self, boundary: &[u8]) {
        if let Some(count) = self.boundaries.get_mut(boundary) {
            *count -= 1;
            if *count == 0 {
                self.boundaries.remove(boundary);
            }
        }
        if self.boundaries.is_empty() {
            self.longest = 0;
        }
    }

    pub(super) fn take_pending(&mut self) -> Span {
        self.pending.take().unwrap_or_default()
    }

    /// The line that begins at `start`, with its end.
    fn line_at(&self, start: usize) -> Span {
        let rest = self.data.get(start..).unwrap_or_default();
        let end = match memchr::memchr2(b'\r', b'\n', rest) {
            Some(at) if rest[at] == b'\r' && rest.get(at + 1) == Some(&b'\n') => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        Span { start, end: start + end }
    }

    /// Whether an enclosing container ends the input before this line.
    fn is_end(&self, line: &[u8]) -> bool {
        if line.is_empty() || self.blanks > 0 && matches!(line[0], b'\r' | b'\n') {
            return true;
        }
        if self.boundaries.is_empty() || !line.starts_with(b"--") {
            return false;
        }
        let text = &boundary_text(line)[2..];
        if text.len() > self.longest + 2 {
            return false;
        }
        self.boundaries.contains_key(text)
            || text.strip_suffix(b"--").is_some_and(|text| self.boundaries.contains_key(text))
    }

    pub(super) fn peek(&self) -> Option<Span> {
        if let Some(pending) = self.pending {
            return Some(pending);
        }
        let line = self.line_at(self.at);
        (!self.is_end(line.of(self.data))).then_some(line)
    }

    pub(super) fn next(&mut self) -> Option<Span> {
        let line = self.peek()?;
        if self.pending.take().is_none() {
            self.at = line.end;
        }
        Some(line)
    }

    /// Everything up to the end as the enclosing containers see it.
    pub(super) fn rest(&mut self) -> Span {
        let start = self.at;
        if self.blanks == 0 && self.boundaries.is_empty() {
            self.at = self.data.len();
        } else {
            self.skip_to(|_| false);
        }
        Span { start, end: self.at }
    }

    /// Stops at the first line of this boundary.
    pub(super) fn find_boundary(&mut self, boundary: &[u8]) -> Boundary {
        self.skip_to(|line| boundary_of(line, boundary) != Boundary::None);
        self.peek().map_or(Boundary::None, |line| boundary_of(line.of(self.data), boundary))
    }

    /// Stops at the end, or at the first line that begins with two dashes and is wanted.
    fn skip_to(&mut self, wanted: impl Fn(&[u8]) -> bool) {
        if self.blanks > 0 {
            while let Some(line) = self.peek() {
                if wanted(line.of(self.data)) {
                    return;
                }
                self.at = line.end;
            }
            return;
        }
        // With no empty lines to watch, only lines that begin with dashes matter.
        let mut from = self.at;
        while let Some(found) = memchr::memmem::find(self.data.get(from..).unwrap_or_default(), b"--") {
            let dashes = from + found;
            if dashes == self.at || matches!(self.data[dashes - 1], b'\r' | b'\n') {
                let line = self.line_at(dashes);
                if self.is_end(line.of(self.data)) || wanted(line.of(self.data)) {
                    self.at = dashes;
                    return;
                }
                from = line.end;
            } else {
                let run = self.data[dashes..].iter().position(|&byte| byte != b'-');
                from = run.map_or(self.data.len(), |run| dashes + run);
            }
        }
        self.at = self.data.len();
    }

    /// Reads a header: the lines that look like one, and the empty line after them if there is one.
    pub(super) fn header(&mut self, part: &mut Part, mut root: Option<&mut Vec<Field>>) {
        let mut open: Option<Field> = None;
        let mut first = true;
        // A `From ` line, as long as nothing follows it in the header.
        let mut envelope: Option<Span> = None;
        let mut close = |field: Option<Field>, data: &[u8]| {
            let Some(mut field) = field else { return };
            let value = field.value.of(data);
            let end = value.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
            field.value.end = field.value.start + end;
            let name = field.name.of(data);
            for (wanted, slot) in [
                ("content-type", &mut part.content_type),
                ("content-disposition", &mut part.disposition),
                ("content-transfer-encoding", &mut part.encoding),
            ] {
                if slot.is_none() && name.eq_ignore_ascii_case(wanted.as_bytes()) {
                    *slot = Some(field.value);
                }
            }
            if let Some(fields) = root.as_deref_mut() {
                fields.push(field);
            }
        };
        let mut at_blank = false;
        while let Some(line) = self.peek() {
            let text = line.of(self.data);
            match header_line(text) {
                HeaderLine::Continuation => {
                    if let Some(field) = &mut open {
                        field.value.end = line.end;
                    }
                    envelope = None;
                }
                HeaderLine::Envelope => {
                    close(open.take(), self.data);
                    envelope = (!first).then_some(line);
                }
                HeaderLine::Field(colon) => {
                    close(open.take(), self.data);
                    let value = &text[colon + 1..];
                    let blank = value.iter().position(|&byte| !is_space(byte)).unwrap_or(value.len());
                    open = Some(Field {
                        name: Span { start: line.start, end: line.start + colon },
                        value: Span { start: line.start + colon + 1 + blank, end: line.end },
                    });
                    envelope = None;
                }
                HeaderLine::No => {
                    if matches!(text.first(), Some(b'\r' | b'\n')) {
                        self.at = line.end;
                        at_blank = true;
                    }
                    break;
                }
            }
            first = false;
            self.next();
        }
        close(open, self.data);
        if let Some(line) = envelope {
            // It is the first line of the body rather than a part of the header.
            if at_blank {
                self.pending = Some(line);
            } else {
                self.at = line.start;
            }
        }
    }
}

enum HeaderLine {
    Continuation,
    Envelope,
    /// A field, with the place of its colon.
    Field(usize),
    No,
}

fn header_line(line: &[u8]) -> HeaderLine {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return HeaderLine::Continuation;
    }
    if line.starts_with(b"From ") {
        return HeaderLine::Envelope;
    }
    match line.iter().position(|&byte| !matches!(byte, b'!'..=b'9' | b';'..=b'~')) {
        Some(colon) if colon > 0 && line[colon] == b':' => HeaderLine::Field(colon),
        _ => HeaderLine::No,
    }
}

pub(super) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = match line.strip_suffix(b"\n") {
        Some(rest) => rest,
        None => return line.strip_suffix(b"\r").unwrap_or(line),
    };
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line without its end and the blanks before it.
fn boundary_text(line: &[u8]) -> &[u8] {
    let line = without_line_end(line);
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    &line[..end]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    None,
    Open,
    Close,
}

pub(super) fn boundary_of(line: &[u8], boundary: &[u8]) -> Boundary {
    match boundary_text(line).strip_prefix(b"--").and_then(|text| text.strip_prefix(boundary)) {
        Some(b"") => Boundary::Open,
        Some(b"--") => Boundary::Close,
        _ => Boundary::None,
    }
}
