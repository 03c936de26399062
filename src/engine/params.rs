//! Parameters of Content-Type and Content-Disposition, RFC 2231 continuations included, and the tokens of file names.

use std::cmp::Ordering;

use super::word::{Emit, is_word, strip, strip_end};

/// A parameter's value, quotes removed once.
pub(super) struct Value {
    pub(super) bytes: Vec<u8>,
    /// `Some` if it was written in the extended form of RFC 2231, with the charset it names, which may be empty.
    pub(super) extended: Option<Vec<u8>>,
}

/// The parameter `name` (lower case) of a field's value. The first piece, where the content type itself stands, is
/// looked at like the others.
pub(super) fn get(value: &[u8], name: &[u8]) -> Option<Value> {
    let mut continuations: Vec<Continuation<'_>> = Vec::new();
    for (index, piece) in (Pieces { rest: Some(value) }).enumerate() {
        let (key, text) = match memchr::memchr(b'=', piece) {
            Some(at) => (strip(&piece[..at]), strip(&piece[at + 1..])),
            None => (strip(piece), &b""[..]),
        };
        if key.eq_ignore_ascii_case(name) {
            // A plain parameter goes before continuations wherever it stands.
            return Some(Value { bytes: unquote(text), extended: None });
        }
        if index > 0
            && let Some((number, encoded)) = continuation(key, name)
        {
            continuations.push(Continuation { number, text: unquote(text), encoded });
        }
    }
    join(continuations)
}

struct Continuation<'a> {
    number: Option<&'a [u8]>,
    text: Vec<u8>,
    encoded: bool,
}

/// `NAME*`, `NAME*N` or `NAME*N*`: the number, and whether the value is percent-encoded.
fn continuation<'a>(key: &'a [u8], name: &[u8]) -> Option<(Option<&'a [u8]>, bool)> {
    let (head, tail) = key.split_at_checked(name.len())?;
    if !head.eq_ignore_ascii_case(name) || !head.iter().all(|&byte| is_word(byte)) {
        return None;
    }
    let tail = tail.strip_prefix(b"*")?;
    if tail.is_empty() {
        return Some((None, true));
    }
    let (digits, encoded) = match tail.strip_suffix(b"*") {
        Some(digits) => (digits, true),
        None => (tail, false),
    };
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some((Some(digits), encoded))
}

fn join(mut pieces: Vec<Continuation<'_>>) -> Option<Value> {
    if pieces.is_empty() {
        return None;
    }
    pieces.sort_by(|a, b| {
        by_number(a.number, b.number).then_with(|| a.text.cmp(&b.text)).then_with(|| a.encoded.cmp(&b.encoded))
    });
    let mut bytes = Vec::new();
    let mut encoded = false;
    for piece in &pieces {
        if piece.encoded {
            encoded = true;
            percent_decode(&piece.text, &mut bytes);
        } else {
            bytes.extend_from_slice(&piece.text);
        }
    }
    if !encoded {
        return Some(Value { bytes, extended: None });
    }
    let mut ticks = memchr::memchr_iter(b'\'', &bytes);
    let (charset, bytes) = match (ticks.next(), ticks.next()) {
        (Some(first), Some(second)) => (bytes[..first].to_vec(), bytes[second + 1..].to_vec()),
        _ => (Vec::new(), bytes),
    };
    Some(Value { bytes, extended: Some(charset) })
}

/// Numbers of any length; none goes before every number.
fn by_number(a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    let significant = |digits: &[u8]| digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    match (a, b) {
        (Some(a), Some(b)) => {
            let (a, b) = (&a[significant(a)..], &b[significant(b)..]);
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        }
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// The pieces between semicolons; one inside quotes does not count, as far as a parity of quotes tells.
struct Pieces<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest?;
        let mut quoted = false;
        for at in memchr::memchr2_iter(b';', b'"', text) {
            if text[at] == b'"' {
                if at == 0 || text[at - 1] != b'\\' {
                    quoted = !quoted;
                }
            } else if !quoted {
                self.rest = Some(&text[at + 1..]);
                return Some(&text[..at]);
            }
        }
        self.rest = None;
        Some(text)
    }
}

fn unquote(text: &[u8]) -> Vec<u8> {
    if text.len() > 1 {
        if let Some(inside) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) {
            return replace_pair(&replace_pair(inside, b'\\'), b'"');
        }
        if let Some(inside) = text.strip_prefix(b"<").and_then(|text| text.strip_suffix(b">")) {
            return inside.to_vec();
        }
    }
    text.to_vec()
}

/// Replaces a backslash followed by `second` with `second`.
fn replace_pair(text: &[u8], second: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && bytes.peek() == Some(&second) {
            bytes.next();
            out.push(second);
        } else {
            out.push(byte);
        }
    }
    out
}

fn percent_decode(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%'
            && let Some((&[high, low], after)) = tail.split_first_chunk::<2>()
            && let (Some(high), Some(low)) = (hex(high), hex(low))
        {
            out.push(high << 4 | low);
            rest = after;
        } else {
            out.push(byte);
        }
    }
}

/// The value of a hexadecimal digit.
pub(super) const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// The value as text: quotes removed a second time, which the original does too, and RFC 2231 text decoded to UTF-8.
fn collapse(value: Value) -> Vec<u8> {
    let bytes = unquote(&value.bytes);
    match value.extended {
        Some(charset) if !bytes.is_ascii() => decode(&bytes, &charset).into_bytes(),
        _ => bytes,
    }
}

fn decode(bytes: &[u8], charset: &[u8]) -> String {
    let ascii = |bytes: &[u8]| -> String {
        bytes.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { '\u{fffd}' }).collect()
    };
    // Python takes any run of punctuation in a charset's name for the same separator.
    let separates = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'.';
    let words: Vec<&[u8]> = charset.split(separates).filter(|word| !word.is_empty()).collect();
    let name = words.join(&b'-').to_ascii_lowercase();
    match &*name {
        b"" | b"us-ascii" | b"ascii" => ascii(bytes),
        // Not for encoding_rs, which reads this label as windows-1252.
        b"latin-1" | b"latin1" | b"iso-8859-1" | b"iso8859-1" | b"l1" => {
            bytes.iter().map(|&byte| char::from(byte)).collect()
        }
        b"utf" | b"u8" => String::from_utf8_lossy(bytes).into_owned(),
        _ => match encoding_rs::Encoding::for_label(&name) {
            Some(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
            None => ascii(bytes),
        },
    }
}

/// The parameter `boundary`.
pub(super) fn boundary(content_type: &[u8]) -> Option<Vec<u8>> {
    let mut boundary = collapse(get(content_type, b"boundary")?);
    boundary.truncate(strip_end(&boundary).len());
    Some(boundary)
}

/// The parameter `charset` in lower case, if it is ASCII.
pub(super) fn charset(content_type: &[u8]) -> Option<Vec<u8>> {
    let mut charset = get(content_type, b"charset")?.bytes;
    charset.make_ascii_lowercase();
    charset.is_ascii().then_some(charset)
}

/// A part's file name, from its disposition or else from its type, and whether the original would hold it as a Unicode
/// string.
pub(super) fn file_name(disposition: Option<&[u8]>, content_type: Option<&[u8]>) -> Option<(Vec<u8>, bool)> {
    let value = disposition
        .and_then(|field| get(field, b"filename"))
        .or_else(|| content_type.and_then(|field| get(field, b"name")))?;
    let extended = value.extended.is_some();
    let name = collapse(value);
    if extended && let Ok(text) = std::str::from_utf8(&name) {
        let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\x1c'..='\x1f'));
        return Some((text.as_bytes().to_vec(), true));
    }
    Some((strip(&name).to_vec(), extended))
}

/// The tokens of a file name, each after `prefix`.
pub(super) fn file_name_tokens(prefix: &[u8], name: &[u8], emit: &mut Emit<'_>) {
    emit.joined(&[prefix, b"fname:", name]);
    let separates = |byte: &u8| matches!(byte, b'/' | b'\\' | b':');
    let several = name.iter().any(separates);
    for component in name.split(separates) {
        if several {
            emit.joined(&[prefix, b"fname comp:", component]);
        }
        if component.iter().any(|&byte| separates_url(byte)) {
            for piece in component.split(|&byte| separates_url(byte)) {
                emit.joined(&[prefix, b"fname piece:", piece]);
            }
        }
    }
}

/// The bytes at which parts of URLs and of file names are split.
pub(super) const fn separates_url(byte: u8) -> bool {
    matches!(byte, b';' | b'?' | b':' | b'@' | b'&' | b'=' | b'+' | b',' | b'$' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(field: &str, name: &str) -> Option<String> {
        get(field.as_bytes(), name.as_bytes()).map(|value| String::from_utf8_lossy(&value.bytes).into_owned())
    }

    #[test]
    fn parameters() {
        assert_eq!(plain("text/plain; charset=X; charset=y", "charset").as_deref(), Some("X"));
        assert_eq!(plain("charset=x", "charset").as_deref(), Some("x"));
        assert_eq!(plain("a; B = \"c;d\\\"e\" ;f", "b").as_deref(), Some("c;d\"e"));
        assert_eq!(plain("a;;b=1", "b").as_deref(), Some("1"));
        assert_eq!(plain("a; f", "f").as_deref(), Some(""));
        assert_eq!(plain("a; b=<x>", "b").as_deref(), Some("x"));
        assert_eq!(plain("a; b=\"open; c=1", "c"), None);
    }

    #[test]
    fn continuations() {
        assert_eq!(plain("a; n*10=c; n*2=b; n*1=a", "n").as_deref(), Some("abc"));
        assert_eq!(plain("a; n*0*=utf-8'en'%41%zz; n*1=%41", "n").as_deref(), Some("A%zz%41"));
        assert_eq!(plain("a; n*=x; n=y", "n").as_deref(), Some("y"));
        let name = file_name(Some(b"a; filename*=iso-8859-1''caf%e9"), None);
        assert_eq!(name, Some(("café".as_bytes().to_vec(), true)));
        assert_eq!(file_name(None, Some(b"a; name=\" x \"")), Some((b"x".to_vec(), false)));
        assert_eq!(decode(b"caf\xc3\xa9", b"UTF?-8"), "café");
    }
}
