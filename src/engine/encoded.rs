//! Encoded words of header fields (RFC 2047), read the way Python 2 reads them.

use std::borrow::Cow;

use super::params::hex;
use super::transfer::base64;
use super::word::strip;

/// A stretch of a header value, and the charset it was said to be in, in lower case.
pub(super) struct Chunk<'a> {
    pub(super) text: Cow<'a, [u8]>,
    pub(super) charset: Option<Cow<'a, [u8]>>,
}

/// Splits a header value into decoded chunks. A value with damaged base64 comes back whole, in the charset `invalid`.
pub(super) fn decode(value: &[u8]) -> Vec<Chunk<'_>> {
    // Nearly every value is of this kind.
    if memchr::memmem::find(value, b"=?").is_none() || EncodedWords::new(value).next().is_none() {
        return vec![Chunk { text: Cow::Borrowed(value), charset: None }];
    }
    decode_lines(value)
        .unwrap_or_else(|| vec![Chunk { text: Cow::Borrowed(value), charset: Some(Cow::Borrowed(b"invalid")) }])
}

fn decode_lines(value: &[u8]) -> Option<Vec<Chunk<'_>>> {
    let mut chunks: Vec<Chunk<'_>> = Vec::new();
    for line in lines(value) {
        let mut at = 0;
        for word in EncodedWords::new(line) {
            push_plain(&mut chunks, &line[at..word.start]);
            at = word.end;
            let charset = line[word.start + 2..word.charset_end].to_ascii_lowercase();
            let text = decode_word(&line[word.text_start..word.end - 2], line[word.charset_end + 1])?;
            match chunks.last_mut() {
                Some(Chunk { text: before, charset: Some(same) }) if **same == *charset => {
                    before.to_mut().extend_from_slice(&text);
                }
                _ => chunks.push(Chunk { text: Cow::Owned(text), charset: Some(Cow::Owned(charset)) }),
            }
        }
        if at == 0 {
            chunks.push(Chunk { text: Cow::Borrowed(line), charset: None });
        } else {
            push_plain(&mut chunks, &line[at..]);
        }
    }
    Some(chunks)
}

/// Text beside encoded words joins the plain text before it.
fn push_plain<'a>(chunks: &mut Vec<Chunk<'a>>, text: &'a [u8]) {
    let text = strip(text);
    if text.is_empty() {
        return;
    }
    match chunks.last_mut() {
        Some(Chunk { text: before, charset: None }) => {
            let before = before.to_mut();
            before.push(b' ');
            before.extend_from_slice(text);
        }
        _ => chunks.push(Chunk { text: Cow::Borrowed(text), charset: None }),
    }
}

fn decode_word(text: &[u8], encoding: u8) -> Option<Vec<u8>> {
    if encoding.eq_ignore_ascii_case(&b'q') {
        return Some(decode_q(text));
    }
    let mut padded = text.to_vec();
    while !padded.len().is_multiple_of(4) {
        padded.push(b'=');
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    base64(&padded, &mut out).then_some(out)
}

fn decode_q(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match (byte, tail.split_first_chunk::<2>()) {
            (b'=', Some((&[high, low], after))) => {
                if let (Some(high), Some(low)) = (hex(high), hex(low)) {
                    out.push(high << 4 | low);
                    rest = after;
                } else {
                    out.push(b'=');
                }
            }
            (b'_', _) => out.push(b' '),
            _ => out.push(byte),
        }
    }
    out
}

/// The lines of a value, without their ends.
fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let skip = match rest.get(end..end + 2) {
            Some(b"\r\n") => end + 2,
            _ => (end + 1).min(rest.len()),
        };
        rest = &rest[skip..];
        Some(line)
    })
}

#[derive(Debug, Clone, Copy)]
struct EncodedWord {
    start: usize,
    charset_end: usize,
    text_start: usize,
    end: usize,
}

/// Finds `=?CHARSET?q|b?TEXT?=` followed by a blank or the end of a line.
struct EncodedWords<'a> {
    value: &'a [u8],
    at: usize,
    /// The line that is being searched for end marks ends here.
    line_end: Option<usize>,
    /// A place on that line and the first end mark at or after it, so that many unfinished words share one search.
    known: Option<(usize, Option<usize>)>,
}

impl<'a> EncodedWords<'a> {
    fn new(value: &'a [u8]) -> Self {
        EncodedWords { value, at: 0, line_end: None, known: None }
    }

    /// The first end mark at or after `from`, on the same line.
    fn end_mark(&mut self, from: usize) -> Option<usize> {
        let line_end = match self.line_end {
            Some(end) if from <= end => end,
            _ => {
                self.known = None;
                let rest = self.value.get(from..).unwrap_or_default();
                from + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
            }
        };
        self.line_end = Some(line_end);
        if let Some((place, mark)) = self.known
            && place <= from
            && mark.is_none_or(|mark| from <= mark)
        {
            return mark;
        }
        let mut at = from;
        let mark = loop {
            let Some(found) = memchr::memmem::find(self.value.get(at..line_end).unwrap_or_default(), b"?=") else {
                break None;
            };
            at += found;
            if matches!(self.value.get(at + 2), None | Some(b' ' | b'\t' | b'\n')) {
                break Some(at);
            }
            at += 1;
        };
        self.known = Some((from, mark));
        mark
    }
}

impl Iterator for EncodedWords<'_> {
    type Item = EncodedWord;

    fn next(&mut self) -> Option<EncodedWord> {
        loop {
            let start = self.at + memchr::memmem::find(self.value.get(self.at..)?, b"=?")?;
            // The charset may go on over a line end, the text may not.
            let charset_end = start + 2 + memchr::memchr(b'?', self.value.get(start + 2..)?)?;
            let text_start = charset_end + 3;
            self.at = start + 1;
            let encoding = self.value.get(charset_end + 1..text_start);
            if matches!(encoding, Some([b'q' | b'Q' | b'b' | b'B', b'?']))
                && let Some(mark) = self.end_mark(text_start)
            {
                self.at = mark + 2;
                return Some(EncodedWord { start, charset_end, text_start, end: mark + 2 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(value: &str) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decode(value.as_bytes())
            .iter()
            .map(|chunk| (text(&chunk.text), chunk.charset.as_ref().map(|charset| text(charset))))
            .collect()
    }

    fn one(text: &str, charset: Option<&str>) -> (String, Option<String>) {
        (text.to_owned(), charset.map(str::to_owned))
    }

    #[test]
    fn words() {
        assert_eq!(chunks("plain"), [one("plain", None)]);
        assert_eq!(chunks(""), [one("", None)]);
        assert_eq!(chunks("a =?UTF-8?q?b_=41?= c"), [one("a", None), one("b A", Some("utf-8")), one("c", None)]);
        assert_eq!(chunks("=?x?b?YQ?= =?x?B?Yg==?="), [one("ab", Some("x"))]);
        assert_eq!(chunks("=?x?q?a?=b"), [one("=?x?q?a?=b", None)]);
        assert_eq!(chunks("=?x?q?a?=b?="), [one("a?=b", Some("x"))]);
        assert_eq!(chunks("=?x?b?a?="), [one("=?x?b?a?=", Some("invalid"))]);
        assert_eq!(chunks("a\n =?x?q?b?=\n c"), [one("a", None), one("b", Some("x")), one(" c", None)]);
    }
}
