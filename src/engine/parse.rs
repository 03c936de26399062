//! The MIME structure of a message, as Python 2's feed parser sees it.
//!
//! The parts come out as a flat list in walk order; a part is a few ranges of the message, nothing is copied. What the
//! original does by recursion is done with a stack of frames here, so that depth costs memory and nothing else. The
//! original asks every enclosing boundary about every line; here a line is looked up once in the set of them.
//!
//! This module decides where parts begin and end. It does not decode anything and gives no tokens.

use std::collections::HashMap;

use super::params;
use super::word::{is_space, strip};

/// A range of the message, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) fn of(self, data: &[u8]) -> &[u8] {
        data.get(self.start..self.end).unwrap_or_default()
    }

    fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// A header field: its name as spelled, and its value without leading white space and line end, still folded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: Span,
    pub(super) value: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Multipart,
    Digest,
    Message,
    Status,
    Other,
}

/// One part of a message; the message itself is the first one.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// First fields of these names.
    pub(super) content_type: Option<Span>,
    pub(super) disposition: Option<Span>,
    pub(super) encoding: Option<Span>,
    /// A part with no type of its own is a message, as in a digest.
    pub(super) default_message: bool,
    /// The number of the first part that is not inside this one.
    pub(super) end: usize,
    /// A `From ` line that stood last in the header and goes before `body`.
    pub(super) lead: Span,
    pub(super) body: Span,
}

/// The structure, and the room to work it out in; both are used again for the next message.
#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) parts: Vec<Part>,
    /// The header fields of the message itself.
    pub(super) fields: Vec<Field>,
    frames: Vec<Frame>,
}

/// A container that waits for the end of the part inside it.
#[derive(Debug)]
struct Frame {
    part: usize,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    Message,
    Status,
    Multipart(Vec<u8>),
}

enum Step {
    Enter,
    Leave,
}

impl Structure {
    /// Parses `data`, at most `max_parts` parts of it.
    pub(super) fn parse(&mut self, data: &[u8], max_parts: usize) {
        self.parts.clear();
        self.parts.shrink_to(1024);
        self.fields.clear();
        self.fields.shrink_to(1024);
        self.frames.clear();
        Parser { structure: self, lines: Lines::new(data), last: 0 }.run(max_parts.max(1));
        let count = self.parts.len();
        // Containers that were cut off by the limit never saw their end.
        for part in &mut self.parts {
            if part.end == 0 {
                part.end = count;
            }
        }
    }
}

struct Parser<'s, 'd> {
    structure: &'s mut Structure,
    lines: Lines<'d>,
    /// The part whose body loses the line end before the next boundary.
    last: usize,
}

impl Parser<'_, '_> {
    fn run(&mut self, max_parts: usize) {
        let mut step = Step::Enter;
        loop {
            step = match step {
                Step::Enter if self.structure.parts.len() >= max_parts => return,
                Step::Enter => self.enter(),
                Step::Leave => match self.structure.frames.pop() {
                    Some(frame) => self.resume(frame),
                    None => return,
                },
            };
        }
    }

    /// Reads one part's header, and its body unless that holds parts.
    fn enter(&mut self) -> Step {
        let number = self.structure.parts.len();
        let within = self.structure.frames.last().and_then(|frame| self.structure.parts.get(frame.part));
        let default_message = within.is_some_and(|part| part.kind == Kind::Digest);
        let mut part = Part {
            kind: Kind::Text,
            content_type: None,
            disposition: None,
            encoding: None,
            default_message,
            end: 0,
            lead: Span::default(),
            body: Span::default(),
        };
        let root = (number == 0).then_some(&mut self.structure.fields);
        self.lines.header(&mut part, root);
        let data = self.lines.data;
        part.kind = kind(mime_type(part.content_type.map(|span| span.of(data)), default_message));
        self.last = number;
        let step = match part.kind {
            Kind::Text | Kind::Other => {
                part.lead = self.lines.take_pending();
                part.body = self.lines.rest();
                Step::Leave
            }
            Kind::Message => self.push(number, Inside::Message),
            Kind::Status => {
                self.lines.blanks += 1;
                self.push(number, Inside::Status)
            }
            Kind::Multipart | Kind::Digest => {
                self.lines.take_pending();
                let boundary = part.content_type.and_then(|span| params::boundary(span.of(data)));
                match boundary {
                    Some(boundary) if self.lines.find_boundary(&boundary) == Boundary::Open => {
                        self.open(number, boundary)
                    }
                    // Without a boundary, or without its line, there are no parts and the text is not looked at.
                    _ => {
                        self.lines.rest();
                        Step::Leave
                    }
                }
            }
        };
        if matches!(step, Step::Leave) {
            part.end = number + 1;
        }
        self.structure.parts.push(part);
        step
    }

    fn push(&mut self, part: usize, inside: Inside) -> Step {
        self.structure.frames.push(Frame { part, inside });
        Step::Enter
    }

    /// Goes past boundary lines that follow each other, even a closing one among them, to the part after them.
    fn open(&mut self, part: usize, boundary: Vec<u8>) -> Step {
        while let Some(line) = self.lines.peek() {
            if boundary_of(line.of(self.lines.data), &boundary) == Boundary::None {
                break;
            }
            self.lines.at = line.end;
        }
        self.lines.add(&boundary);
        self.push(part, Inside::Multipart(boundary))
    }

    /// Goes on with a container after a part inside it has ended.
    fn resume(&mut self, frame: Frame) -> Step {
        let Frame { part, inside } = frame;
        match inside {
            Inside::Message => {}
            Inside::Status => {
                self.lines.blanks -= 1;
                self.lines.next();
                if self.lines.peek().is_some() {
                    self.lines.blanks += 1;
                    return self.push(part, Inside::Status);
                }
            }
            Inside::Multipart(boundary) => {
                self.trim_last();
                self.lines.remove(&boundary);
                self.last = part;
                let line = self.lines.peek();
                match line.map(|line| boundary_of(line.of(self.lines.data), &boundary)) {
                    Some(Boundary::Open) => return self.open(part, boundary),
                    _ => {
                        self.lines.rest();
                    }
                }
            }
        }
        let end = self.structure.parts.len();
        if let Some(part) = self.structure.parts.get_mut(part) {
            part.end = end;
        }
        Step::Leave
    }

    /// The line end before a boundary belongs to the boundary.
    fn trim_last(&mut self) {
        let data = self.lines.data;
        if let Some(part) = self.structure.parts.get_mut(self.last) {
            let span = if part.body.is_empty() { &mut part.lead } else { &mut part.body };
            span.end = span.start + without_line_end(span.of(data)).len();
        }
    }
}

/// Reads lines, and sees an end of input where an enclosing container says so.
struct Lines<'d> {
    data: &'d [u8],
    at: usize,
    /// A `From ` line put back before a line that is gone.
    pending: Option<Span>,
    /// How many enclosing containers end a part at an empty line.
    blanks: usize,
    /// The enclosing boundaries, and how many containers use each.
    boundaries: HashMap<Vec<u8>, usize>,
    /// No enclosing boundary is longer, which spares looking up long lines.
    longest: usize,
}

impl<'d> Lines<'d> {
    fn new(data: &'d [u8]) -> Self {
        Lines { data, at: 0, pending: None, blanks: 0, boundaries: HashMap::new(), longest: 0 }
    }

    fn add(&mut self, boundary: &[u8]) {
        self.longest = self.longest.max(boundary.len());
        *self.boundaries.entry(boundary.to_vec()).or_default() += 1;
    }

    fn remove(&mut self, boundary: &[u8]) {
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

    fn take_pending(&mut self) -> Span {
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

    fn peek(&self) -> Option<Span> {
        if let Some(pending) = self.pending {
            return Some(pending);
        }
        let line = self.line_at(self.at);
        (!self.is_end(line.of(self.data))).then_some(line)
    }

    fn next(&mut self) -> Option<Span> {
        let line = self.peek()?;
        if self.pending.take().is_none() {
            self.at = line.end;
        }
        Some(line)
    }

    /// Everything up to the end as the enclosing containers see it.
    fn rest(&mut self) -> Span {
        let start = self.at;
        if self.blanks == 0 && self.boundaries.is_empty() {
            self.at = self.data.len();
        } else {
            self.skip_to(|_| false);
        }
        Span { start, end: self.at }
    }

    /// Stops at the first line of this boundary.
    fn find_boundary(&mut self, boundary: &[u8]) -> Boundary {
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
    fn header(&mut self, part: &mut Part, mut root: Option<&mut Vec<Field>>) {
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

fn without_line_end(line: &[u8]) -> &[u8] {
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
enum Boundary {
    None,
    Open,
    Close,
}

fn boundary_of(line: &[u8], boundary: &[u8]) -> Boundary {
    match boundary_text(line).strip_prefix(b"--").and_then(|text| text.strip_prefix(boundary)) {
        Some(b"") => Boundary::Open,
        Some(b"--") => Boundary::Close,
        _ => Boundary::None,
    }
}

/// The content type that counts: without parameters, in the case it was written in.
pub(super) fn mime_type(content_type: Option<&[u8]>, default_message: bool) -> &[u8] {
    let Some(value) = content_type else {
        return if default_message { b"message/rfc822" } else { b"text/plain" };
    };
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let value = strip(&value[..end]);
    if memchr::memchr_iter(b'/', value).count() == 1 { value } else { b"text/plain" }
}

fn kind(mime_type: &[u8]) -> Kind {
    let slash = memchr::memchr(b'/', mime_type).unwrap_or(mime_type.len());
    let main = &mime_type[..slash];
    if main.eq_ignore_ascii_case(b"text") {
        Kind::Text
    } else if main.eq_ignore_ascii_case(b"multipart") {
        if mime_type.eq_ignore_ascii_case(b"multipart/digest") { Kind::Digest } else { Kind::Multipart }
    } else if mime_type.eq_ignore_ascii_case(b"message/delivery-status") {
        Kind::Status
    } else if main.eq_ignore_ascii_case(b"message") {
        Kind::Message
    } else {
        Kind::Other
    }
}
