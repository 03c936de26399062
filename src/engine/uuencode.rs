//! Uuencoded text: as a transfer encoding, and as a section inside a body, which is removed.

use super::params::file_name_tokens;
use super::word::{Emit, is_space, strip};

/// Why a body could not be decoded.
pub(super) enum Failure {
    /// It has no first or no last line.
    NotUuencoded,
    /// A line of it makes no sense even when cut to the length it states.
    BadLine,
}

/// Decodes the first uuencoded file of `body` into `out`.
pub(super) fn decode(body: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
    let mut lines = Lines { rest: body, ended: false };
    loop {
        let line = lines.next().ok_or(Failure::NotUuencoded)?;
        let mut words = line.splitn(3, |&byte| byte == b' ');
        if let (Some(b"begin"), Some(mode), Some(_)) = (words.next(), words.next(), words.next())
            && is_octal(mode)
        {
            break;
        }
    }
    for line in lines {
        if strip(line) == b"end" {
            return Ok(());
        }
        let before = out.len();
        if decode_line(line, out).is_none() {
            out.truncate(before);
            // Some encoders wrote a checksum behind the line: try again with as much as its first byte tells.
            let first = line.first().copied().unwrap_or(b'\n');
            let stated = (usize::from(first.wrapping_sub(b' ') & 0x3f) * 4 + 5) / 3;
            // The line end is a part of the line here.
            let cut = &line[..stated.min(line.len())];
            decode_line(cut, out).ok_or(Failure::BadLine)?;
        }
    }
    Err(Failure::NotUuencoded)
}

/// The lines without their newline. The original puts a newline behind the body, so the last one always has its own.
struct Lines<'a> {
    rest: &'a [u8],
    ended: bool,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.ended {
            return None;
        }
        let (line, rest) = match memchr::memchr(b'\n', self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &self.rest[self.rest.len()..]),
        };
        self.ended = line.len() == self.rest.len();
        self.rest = rest;
        Some(line)
    }
}

/// What Python's `int(text, 8)` takes.
fn is_octal(text: &[u8]) -> bool {
    let text = strip(text);
    let text = match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    };
    let text = match text {
        [b'0', b'o' | b'O', rest @ ..] => rest,
        _ => text,
    };
    !text.is_empty() && text.iter().all(|digit| matches!(digit, b'0'..=b'7'))
}

/// Decodes one line, or tells that it is not one. A line that is too short is filled up with zero bits.
fn decode_line(line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (first, mut rest) = match line.split_first() {
        Some((&first, rest)) => (first, rest),
        // An empty line: its newline is read as a length.
        None => (b'\n', line),
    };
    let mut wanted = first.wrapping_sub(b' ') & 0x3f;
    let (mut bits, mut held) = (0_u32, 0);
    while wanted > 0 {
        let value = match rest.split_first() {
            None => 0,
            Some((b'\n' | b'\r', tail)) => {
                rest = tail;
                0
            }
            Some((&byte, tail)) => {
                // The grave accent stands for zero as well as the space.
                if !matches!(byte, b' '..=b'`') {
                    return None;
                }
                rest = tail;
                (byte - b' ') & 0x3f
            }
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
            wanted -= 1;
        }
    }
    rest.iter().all(|byte| matches!(byte, b' ' | b'`' | b'\r' | b'\n')).then_some(())
}

/// Removes uuencoded sections from `text`: what is left goes to `out`. False if there is none, and `out` is then empty.
pub(super) fn remove_sections(text: &[u8], out: &mut Vec<u8>, emit: &mut Emit<'_>) -> bool {
    let mut kept = 0;
    let mut from = 0;
    while let Some(section) = find_begin(text, from) {
        emit.joined(&[b"uuencode mode:", section.mode]);
        file_name_tokens(b"uuencode:", section.name, emit);
        let Some(end) = find_end(text, section.end) else { break };
        out.extend_from_slice(&text[kept..section.start]);
        kept = end;
        from = end;
    }
    if kept > 0 {
        out.extend_from_slice(&text[kept..]);
    }
    kept > 0
}

struct Begin<'a> {
    start: usize,
    mode: &'a [u8],
    name: &'a [u8],
    end: usize,
}

/// `begin MODE NAME` alone on a line, where white space may hold line ends too.
fn find_begin(text: &[u8], mut from: usize) -> Option<Begin<'_>> {
    loop {
        let start = from + memchr::memmem::find(text.get(from..)?, b"begin")?;
        from = start + 1;
        if start > 0 && text[start - 1] != b'\n' {
            continue;
        }
        let blank = |at: usize| at + run(&text[at..], is_space);
        let word = |at: usize| at + run(&text[at..], |byte| !is_space(byte));
        let mode = blank(start + 5);
        let mode_end = word(mode);
        let name = blank(mode_end);
        let name_end = word(name);
        if mode == start + 5 || mode_end == mode || name == mode_end || name_end == name {
            continue;
        }
        let after = blank(name_end);
        // Up to the end of the text, or before the last line end of the white space.
        let end = if after == text.len() {
            after
        } else if let Some(line_end) = memchr::memrchr(b'\n', &text[name_end..after]) {
            name_end + line_end
        } else {
            continue;
        };
        return Some(Begin { start, mode: &text[mode..mode_end], name: &text[name..name_end], end });
    }
}

/// The place after a line `end`, and after the line ends that follow it.
fn find_end(text: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let start = from + memchr::memmem::find(text.get(from..)?, b"end")?;
        from = start + 1;
        if start > 0 && text[start - 1] != b'\n' {
            continue;
        }
        let blank = &text[start + 3..];
        if let Some(line_end) = memchr::memrchr(b'\n', &blank[..run(blank, is_space)]) {
            return Some(start + 3 + line_end + 1);
        }
    }
}

/// How many bytes at the start are wanted.
fn run(text: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|&byte| !wanted(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(body, &mut out).ok().map(|()| out)
    }

    #[test]
    fn decodes() {
        assert_eq!(decoded(b"text\nbegin 644 x\n#0V%T\n`\nend\n").as_deref(), Some(&b"Cat"[..]));
        assert_eq!(decoded(b"begin 644 x\n#0V%T\n`\nend").as_deref(), Some(&b"Cat"[..]));
        assert_eq!(decoded(b"begin 644 x\n#0V%T\n`\n"), None);
        assert_eq!(decoded(b"begin 899 x\n#0V%T\n`\nend\n"), None);
        assert_eq!(decoded(b"begin 644 x\n#0V%Tabc\nend\n").as_deref(), Some(&b"Cat"[..]));
    }

    #[test]
    fn sections() {
        let mut tokens = Vec::new();
        let mut sink = |token: &[u8], _| tokens.push(String::from_utf8_lossy(token).into_owned());
        let mut out = Vec::new();
        let text = b"one\nbegin 644 a.txt\n#0V%T\nend\ntwo\nbegin 644\nbegin 1 2\nthree\n";
        assert!(remove_sections(text, &mut out, &mut Emit::new(&mut sink, Vec::new())));
        assert_eq!(out, b"one\ntwo\nbegin 644\nbegin 1 2\nthree\n");
        assert_eq!(
            tokens,
            [
                "uuencode mode:644",
                "uuencode:fname:a.txt",
                "uuencode:fname piece:a",
                "uuencode:fname piece:txt",
                "uuencode mode:1",
                "uuencode:fname:2",
            ]
        );
    }
}
