//! Base64 as XML-RPC servers really write it.
//!
//! The specification says no more than `<base64>`. Python breaks the lines at 76 columns, puts line ends around, and
//! other servers leave the padding away or set the unused last bits; all this is read. What is no base64 at all is an
//! error, although Python's own decoder skips it: a damaged message must not come back as a shorter one.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// For the last characters: padding may be there or not, and odd bits in the last character are ignored.
const LAST: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Characters decoded at a time. A multiple of four; small enough to stay in the first-level cache, so that taking the
/// line ends out costs one short copy and no second buffer as large as the message.
const CHUNK: usize = 4096;
/// Decodes `text`, which may have white space (of XML) anywhere. Nothing but `None` is said of what is wrong: the caller
/// knows the place of the element.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_matches(is_blank).as_bytes();
    let mut decoder = Decoder::new(text.len());
    if memchr::memchr3(b' ', b'\t', b'\r', text).is_none() {
        // Plain lines, the usual case: the search for the next line end is much faster than looking at each byte.
        let mut rest = text;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            decoder.feed(&rest[..end])?;
            rest = &rest[end + 1..];
        }
        decoder.feed(rest)?;
    } else {
        for run in text.split(|&byte| is_blank(char::from(byte))) {
            decoder.feed(run)?;
        }
    }
    decoder.finish()
}

/// White space in XML is these four and no more.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Gathers runs without white space into chunks, and decodes each full one.
struct Decoder {
    chunk: Vec<u8>,
    out: Vec<u8>,
}

impl Decoder {
    fn new(characters: usize) -> Self {
        Decoder { chunk: Vec::with_capacity(characters.min(CHUNK)), out: Vec::with_capacity(characters / 4 * 3 + 3) }
    }

    fn feed(&mut self, mut run: &[u8]) -> Option<()> {
        while !run.is_empty() {
            // Only now is it known that a full chunk was not the last one.
            if self.chunk.len() == CHUNK {
                inner(&self.chunk, &mut self.out)?;
                self.chunk.clear();
            }
            let (now, later) = run.split_at(run.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            run = later;
        }
        Some(())
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        let (head, tail) = self.chunk.split_at(self.chunk.len().saturating_sub(4) / 4 * 4);
        inner(head, &mut self.out)?;
        LAST.decode_vec(tail, &mut self.out).ok()?;
        Some(self.out)
    }
}

/// Decodes characters behind which there are more: whole groups of four, in which padding is an error.
fn inner(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    base64_simd::STANDARD_NO_PAD.decode_append(text, out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, base64_len};

    /// What fills one chunk.
    const BYTES: usize = CHUNK / 4 * 3;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Encoder::default();
        out.base64(bytes);
        String::from_utf8(out.into_vec()).unwrap()
    }

    #[test]
    fn rfc_4648_vectors() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encoded(plain.as_bytes()), text);
            assert_eq!(base64_len(plain.len()), text.len());
            assert_eq!(decode(text).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn sloppy_forms() {
        for text in ["Zm9vYg", "Zm9vYg=", "Zm9vYh==", "\n Zm 9v\r\n\tYg==\n", "Z\nm\n9\nv\nY\ng\n=\n="] {
            assert_eq!(decode(text).as_deref(), Some(&b"foob"[..]), "{text:?}");
        }
        assert_eq!(decode(" \r\n\t"), Some(vec![]));
    }

    #[test]
    fn strict_forms() {
        for text in [
            "Zm9vY",
            "Zm9v!",
            "Zm9v-_",
            "Zg==Zg==",
            "Zg==Zg",
            "=",
            "Zg===",
            "Zm9v\u{b}",
            "Zm9vä",
            "Zm9v\0",
            "....",
            "Z====",
        ] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_around_a_chunk() {
        for len in (BYTES - 4..BYTES + 4).chain(2 * BYTES - 4..2 * BYTES + 4).chain(0..20) {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let text = encoded(&bytes);
            assert_eq!(decode(&text).unwrap(), bytes);
            assert_eq!(decode(text.trim_end_matches('=')).unwrap(), bytes);
            let lines: Vec<&str> = text.as_bytes().chunks(76).map(|l| std::str::from_utf8(l).unwrap()).collect();
            assert_eq!(decode(&lines.join("\n")).unwrap(), bytes);
            assert_eq!(decode(&lines.join("\r\n  ")).unwrap(), bytes);
        }
    }

    #[test]
    fn padding_between_chunks_is_an_error() {
        let mut text = "A".repeat(CHUNK - 2);
        text.push_str("==");
        assert!(decode(&text).is_some());
        text.push_str("AAAA");
        assert_eq!(decode(&text), None);
    }
}
