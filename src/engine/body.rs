//! The tokens of text parts.

use super::html;
use super::options::Options;
use super::parse::Part;
use super::transfer::{self, Decoded};
use super::url;
use super::uuencode;
use super::word::{self, Emit, is_space};

/// The text of the part as one pass leaves it, and the room for the next pass; kept from message to message.
#[derive(Debug, Default)]
pub(super) struct Room {
    text: Vec<u8>,
    next: Vec<u8>,
}

/// A buffer larger than this is given back after the message that needed it.
const KEEP: usize = 1 << 20;

impl Room {
    /// Frees what an unusually large message has taken.
    pub(super) fn shrink(&mut self) {
        for buffer in [&mut self.text, &mut self.next] {
            buffer.clear();
            buffer.shrink_to(KEEP);
        }
    }

    /// Runs a pass that says whether it changed the text.
    fn pass(&mut self, run: impl FnOnce(&[u8], &mut Vec<u8>) -> bool) {
        self.next.clear();
        if run(&self.text, &mut self.next) {
            std::mem::swap(&mut self.text, &mut self.next);
        }
    }
}

/// The tokens of one text part of the message `data`.
pub(super) fn tokens(data: &[u8], part: &Part, options: &Options, room: &mut Room, emit: &mut Emit<'_>) {
    fill(data, part, room, emit);
    room.pass(replace_entities);
    room.text.make_ascii_lowercase();
    html::virus_clues(&room.text, emit);
    room.pass(|text, out| uuencode::remove_sections(text, out, emit));
    room.pass(|text, out| url::remove_urls(text, out, emit));
    for region in &html::REGIONS {
        room.pass(|text, out| region.remove(text, out));
    }
    room.pass(html::break_words);
    room.pass(html::remove_tags);
    split(&room.text, options, emit);
}

/// Puts the decoded body into `room.text`.
fn fill(data: &[u8], part: &Part, room: &mut Room, emit: &mut Emit<'_>) {
    let lead = part.lead.of(data);
    let joined;
    let body = if lead.is_empty() {
        part.body.of(data)
    } else {
        joined = [lead, part.body.of(data)].concat();
        &joined
    };
    let encoding = part.encoding.map_or(&b""[..], |span| span.of(data));
    let mut buffer = std::mem::take(&mut room.next);
    buffer.clear();
    room.text.clear();
    match transfer::decode(encoding, body, buffer) {
        Decoded::Text(std::borrow::Cow::Borrowed(text)) => room.text.extend_from_slice(text),
        Decoded::Text(std::borrow::Cow::Owned(text)) => {
            room.next = std::mem::replace(&mut room.text, text);
        }
        Decoded::Damaged(text) => {
            emit.whole(b"control: couldn't decode");
            room.text.extend_from_slice(&text);
        }
    }
}

/// Replaces decimal character references: one below 256 by that byte, any other by a question mark.
fn replace_entities(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut kept = 0;
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&text[from..], b"&#") {
        let start = from + found;
        from = start + 2;
        let digits = &text[from..];
        let digits = &digits[..digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len())];
        let end = from + digits.len();
        if digits.is_empty() || text.get(end) != Some(&b';') {
            continue;
        }
        let value = digits.iter().fold(0_u32, |sum, digit| (sum * 10 + u32::from(digit - b'0')).min(256));
        out.extend_from_slice(&text[kept..start]);
        out.push(u8::try_from(value).unwrap_or(b'?'));
        kept = end + 1;
        from = kept;
    }
    if kept > 0 {
        out.extend_from_slice(&text[kept..]);
    }
    kept > 0
}

fn split(text: &[u8], options: &Options, emit: &mut Emit<'_>) {
    for part in text.split(|&byte| is_space(byte)) {
        word::word(b"", part, options, emit);
    }
}
