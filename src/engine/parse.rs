//! The MIME structure of a message, as Python 2's feed parser sees it.
//!
//! The parts come out as a flat list in walk order; a part is a few ranges of the message, nothing is copied. What the
//! original does by recursion is done with a stack of frames here, so that depth costs memory and nothing else. The
//! original asks every enclosing boundary about every line; here a line is looked up once in the set of them.
//!
//! This module decides where parts begin and end. It does not decode anything and gives no tokens.

use super::lines::{Boundary, Lines, boundary_of, without_line_end};
use super::params;
use super::word::strip;

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

    pub(super) fn is_empty(self) -> bool {
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
