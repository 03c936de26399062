//! Which mail stores and other files are *not* an mbox, so that they can be refused by name instead of being mangled.
//!
//! Source: man hamsift(7). Only the beginning of the input is judged: a mailbox that begins with a From_ line may hold any
//! byte whatever after it.

use super::Format;
use super::fields;

const UTF16_SAMPLE: usize = 64;
const MMDF: &[u8] = b"\x01\x01\x01\x01";
const BABYL: &[u8] = b"BABYL OPTIONS:";
const MBX: &[u8] = b"*mbx*\r\n";
/// Archives that mail comes in: what stands where, and what it is.
const PACKED: [(usize, &[u8], &str); 4] = [
    (0, b"PK\x03\x04", "a zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
];
const BYTE_ORDER_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Judges the first line that is not empty, `line` (with its line end), or as much of it as may be looked at.
pub(super) fn foreign(line: &[u8]) -> Option<Format> {
    if BYTE_ORDER_MARKS.iter().any(|mark| line.starts_with(mark)) || is_utf16(&line[..line.len().min(UTF16_SAMPLE)]) {
        Some(Format::Utf16)
    } else if line.starts_with(MMDF) {
        Some(Format::Mmdf)
    } else if line.starts_with(BABYL) {
        Some(Format::Babyl)
    } else if line.starts_with(MBX) {
        Some(Format::Mbx)
    } else if let Some(what) = packed(line) {
        Some(Format::Packed(what))
    } else if has_bare_cr_line(line) {
        Some(Format::CrOnly)
    } else {
        None
    }
}

/// An archive, by its mark and a byte that no text has.
fn packed(line: &[u8]) -> Option<&'static str> {
    let found = PACKED.iter().find(|(at, mark, _)| line.get(*at..).is_some_and(|rest| rest.starts_with(mark)));
    found.map(|(.., what)| *what).filter(|_| is_binary(line) || !line.is_ascii())
}

/// What text is that holds no From_ line and does not begin with header fields.
pub(super) fn shapeless(text: &[u8]) -> Format {
    if is_binary(text) { Format::Binary } else { Format::Text }
}

/// Whether `text` holds bytes that no text before a mailbox holds. Escape, backspace and the end mark of CP/M are left to
/// old exports and terminal logs.
pub(super) fn is_binary(text: &[u8]) -> bool {
    text.iter().any(|b| *b < 0x20 && !matches!(b, 0x08..=0x0d | 0x1a | 0x1b))
}

/// Text of which every other byte is NUL.
fn is_utf16(sample: &[u8]) -> bool {
    // An odd last byte is half a character: the line end of UTF-16 is where the sample was cut.
    let pairs = sample.chunks_exact(2);
    let (mut big, mut little, mut count) = (0, 0, 0);
    for pair in pairs {
        count += 1;
        big += usize::from(pair[0] == 0 && pair[1] != 0);
        little += usize::from(pair[0] != 0 && pair[1] == 0);
    }
    count >= 2 && (big == count || little == count)
}

/// Old Macintosh text: the first "line" goes on after a CR with what could only be the next line of a header.
fn has_bare_cr_line(line: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'\r', line) else { return false };
    let (first, next) = (&line[..at], &line[at + 1..]);
    (first.starts_with(b"From ") || fields::name(first).is_some())
        && fields::name(next).is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_stores_are_named() {
        let utf16 = |text: &str, big: bool| -> Vec<u8> {
            text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
        };
        let cases: Vec<(Vec<u8>, Option<Format>)> = vec![
            (b"From a@b Mon Jan  5 10:00:01 2004\n".to_vec(), None),
            (b"From a@b Mon Jan  5 10:00:01 2004\r\n".to_vec(), None),
            (b"From a@b Mon Jan  5 10:00:01 2004\r\r\n".to_vec(), None),
            (b"From a\0b\n".to_vec(), None),
            (b"Subject: a\rb\n".to_vec(), None),
            (b"Subject: a\rTo: b\n".to_vec(), Some(Format::CrOnly)),
            (b"From a@b Mon Jan  5 10:00:01 2004\rFrom: a\r\rbody\r".to_vec(), Some(Format::CrOnly)),
            (b"\x01\x01\x01\x01\n".to_vec(), Some(Format::Mmdf)),
            (b"BABYL OPTIONS:\n".to_vec(), Some(Format::Babyl)),
            (b"*mbx*\r\n".to_vec(), Some(Format::Mbx)),
            (b"PK\x03\x04\x14\0".to_vec(), Some(Format::Packed("a zip archive"))),
            (b"BZh91AY&SY\xd9\x32".to_vec(), Some(Format::Packed("a bzip2 file"))),
            (b"BZh9 is how it begins\n".to_vec(), None),
            ([&[b'a'; 100][..], &[0; 157], b"ustar  \0"].concat(), Some(Format::Packed("a tar archive"))),
            (b"\xff\xfeF\0\n".to_vec(), Some(Format::Utf16)),
            (utf16("From a@b\n", false)[..17].to_vec(), Some(Format::Utf16)),
            (utf16("From a@b\n", true), Some(Format::Utf16)),
            (b"".to_vec(), None),
            (b"\0".to_vec(), None),
        ];
        for (line, format) in cases {
            assert_eq!(foreign(&line), format, "{line:?}");
        }
    }

    #[test]
    fn control_characters_make_text_binary() {
        assert_eq!(shapeless(b"hello\tworld\x0c\r\n\x1b[1m"), Format::Text);
        assert_eq!(shapeless(b"hello\0"), Format::Binary);
        assert_eq!(shapeless(b"\x7fELF\x02\x01"), Format::Binary);
    }
}
