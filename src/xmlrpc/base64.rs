//! Base64 as XML-RPC servers really write it.
//!
//! The specification says no more than `<base64>`. Python breaks the lines at 76 columns, puts line ends around, and
//! other servers leave the padding away or set the unused last bits; all this is read. What is no base64 at all is an
//! error, although Python's own decoder skips it: a damaged message must not come back as a shorter one.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The last characters: padding may be there or not, and odd bits in the last character are ignored.
const LAST: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// All characters before them: padding in the middle of the data is an error.
const INNER: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Characters decoded at a time. A multiple of four; small enough to stay in the first-level cache, so that taking the
/// line ends out costs one short copy and no second buffer as large as the message.
const CHUNK: usize = 4096;
/// Bytes encoded at a time: what fills one chunk.
const BYTES: usize = CHUNK / 4 * 3;

/// Appends `bytes` to `out`, in one line with padding. Allocates only where `out` lacks the capacity.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(encoded_len(bytes.len()));
    let mut buffer = [0; CHUNK];
    for chunk in bytes.chunks(BYTES) {
        // BYTES bytes fill the buffer exactly, so it is never too small; were it, a panic beats half a message sent.
        #[allow(clippy::expect_used)]
        let used = LAST.encode_slice(chunk, &mut buffer).expect("BYTES bytes become CHUNK characters");
        out.extend_from_slice(&buffer[..used]);
    }
}

/// How many characters `len` bytes become.
pub(super) fn encoded_len(len: usize) -> usize {
    len.div_ceil(3).saturating_mul(4)
}

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
    chunk: [u8; CHUNK],
    used: usize,
    out: Vec<u8>,
}

impl Decoder {
    fn new(characters: usize) -> Self {
        Decoder { chunk: [0; CHUNK], used: 0, out: Vec::with_capacity(characters / 4 * 3 + 3) }
    }

    fn feed(&mut self, mut run: &[u8]) -> Option<()> {
        while !run.is_empty() {
            // Only now is it known that a full chunk was not the last one.
            if self.used == CHUNK {
                self.flush(&INNER)?;
            }
            let (now, later) = run.split_at(run.len().min(CHUNK - self.used));
            self.chunk[self.used..][..now.len()].copy_from_slice(now);
            self.used += now.len();
            run = later;
        }
        Some(())
    }

    fn flush(&mut self, engine: &GeneralPurpose) -> Option<()> {
        engine.decode_vec(&self.chunk[..self.used], &mut self.out).ok()?;
        self.used = 0;
        Some(())
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        self.flush(&LAST)?;
        Some(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        assert_eq!(out.len(), encoded_len(bytes.len()));
        String::from_utf8(out).unwrap()
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
        for len in (BYTES - 4..BYTES + 4).chain(2 * BYTES - 4..2 * BYTES + 4) {
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

    #[test]
    fn encoding_into_capacity_does_not_allocate() {
        let bytes = [7; 5000];
        let mut out = Vec::with_capacity(encoded_len(bytes.len()));
        let before = out.as_ptr();
        encode(&bytes, &mut out);
        assert_eq!((out.as_ptr(), out.capacity()), (before, out.len()));
    }
}
