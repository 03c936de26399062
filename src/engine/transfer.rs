//! Content-Transfer-Encoding, undone the way Python 2 undoes it.

use std::borrow::Cow;

use super::params::hex;
use super::uuencode;

/// A decoded body, or what is left of one that made the original's decoder fail.
pub(super) enum Decoded<'a> {
    Text(Cow<'a, [u8]>),
    /// Decoding raised an exception; the text is the repaired raw body.
    Damaged(Vec<u8>),
}

/// Decodes `body` by the whole value of its Content-Transfer-Encoding field, which is not trimmed: `base64 ` decodes
/// nothing. `room` is an empty buffer to use.
pub(super) fn decode<'a>(encoding: &[u8], body: &'a [u8], mut room: Vec<u8>) -> Decoded<'a> {
    let is = |name: &str| encoding.eq_ignore_ascii_case(name.as_bytes());
    if is("quoted-printable") {
        quoted_printable(body, &mut room);
        return Decoded::Text(Cow::Owned(room));
    }
    if is("base64") {
        // A body that does not end on a whole byte is tokenised raw.
        return Decoded::Text(if base64(body, &mut room) { Cow::Owned(room) } else { Cow::Borrowed(body) });
    }
    if is("x-uuencode") || is("uuencode") || is("uue") || is("x-uue") {
        return match uuencode::decode(body, &mut room) {
            Ok(()) => Decoded::Text(Cow::Owned(room)),
            Err(uuencode::Failure::NotUuencoded) => Decoded::Text(Cow::Borrowed(body)),
            Err(uuencode::Failure::BadLine) => Decoded::Damaged(repair_base64(body)),
        };
    }
    Decoded::Text(Cow::Borrowed(body))
}

/// Decodes quoted-printable into `out`. Nothing is an error.
fn quoted_printable(body: &[u8], out: &mut Vec<u8>) {
    let mut rest = body;
    while let Some(at) = memchr::memchr(b'=', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest {
            [] => return,
            [b'\r' | b'\n', ..] => {
                let skip = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                rest = &rest[skip..];
            }
            [b'=', ..] => {
                out.push(b'=');
                rest = &rest[1..];
            }
            [high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = &rest[2..];
                }
                _ => out.push(b'='),
            },
            _ => out.push(b'='),
        }
    }
    out.extend_from_slice(rest);
}

const OTHER: u8 = 0xff;
const PAD: u8 = 0xfe;

/// The value of each byte in base64, [`PAD`] or [`OTHER`].
const BASE64: [u8; 256] = {
    let mut table = [OTHER; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < alphabet.len() {
        table[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    table[b'=' as usize] = PAD;
    table
};

/// Decodes base64 into `out`, skipping what is outside the alphabet. False if bits are left over; `out` is then of no
/// use.
pub(super) fn base64(text: &[u8], out: &mut Vec<u8>) -> bool {
    out.reserve(text.len() / 4 * 3 + 3);
    let mut rest = text;
    let mut bits = 0_u32;
    let mut held = 0;
    loop {
        // Whole quads of alphabet bytes are nearly everything.
        while held == 0
            && let Some((&[a, b, c, d], tail)) = rest.split_first_chunk::<4>()
        {
            let [a, b, c, d] = [a, b, c, d].map(|byte| BASE64[usize::from(byte)]);
            if (a | b | c | d) >= 64 {
                break;
            }
            let word = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
            out.extend_from_slice(&word.to_be_bytes()[1..]);
            rest = tail;
        }
        let Some((&byte, tail)) = rest.split_first() else { return held == 0 };
        rest = tail;
        match BASE64[usize::from(byte)] {
            OTHER => {}
            // A pad ends the text in the last place of a quad, and in the one before it if another pad is next.
            PAD if held == 3 || held == 2 && next_is_pad(rest) => return true,
            PAD => {}
            value => {
                bits = bits << 6 | u32::from(value);
                held = (held + 1) % 4;
                if held != 1 {
                    let left = if held == 0 { 0 } else { 6 - 2 * (held - 1) };
                    out.push((bits >> left) as u8);
                }
            }
        }
    }
}

fn next_is_pad(rest: &[u8]) -> bool {
    rest.iter().map(|&byte| BASE64[usize::from(byte)]).find(|&value| value != OTHER) == Some(PAD)
}

/// What the original makes of a body it could not decode: leading lines that look like base64 are decoded, and
/// dropped if they cannot be; the rest stays.
fn repair_base64(text: &[u8]) -> Vec<u8> {
    let mut end = 0;
    while let Some(length) = base64_line(&text[end..]) {
        end += length;
    }
    let (start, rest) = text.split_at(end);
    let mut out = Vec::new();
    if !base64(start, &mut out) {
        out.clear();
    }
    out.extend_from_slice(rest);
    out
}

/// The length of the first line if it is blanks, base64, pads, blanks and a line end.
fn base64_line(text: &[u8]) -> Option<usize> {
    let skip = |at: usize, wanted: fn(u8) -> bool| {
        at + text[at..].iter().position(|&byte| !wanted(byte)).unwrap_or(text.len() - at)
    };
    let at = skip(0, |byte| matches!(byte, b' ' | b'\t'));
    let at = skip(at, |byte| BASE64[usize::from(byte)] < 64);
    let at = skip(at, |byte| byte == b'=');
    let at = skip(at, |byte| matches!(byte, b' ' | b'\t'));
    match text.get(at..)? {
        [b'\r', b'\n', ..] => Some(at + 2),
        [b'\n', ..] => Some(at + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64_text(text: &str) -> Option<String> {
        let mut out = Vec::new();
        base64(text.as_bytes(), &mut out).then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn base64_is_forgiving() {
        assert_eq!(base64_text("SGFt").as_deref(), Some("Ham"));
        assert_eq!(base64_text("S\nG!E=t").as_deref(), Some("Ha"), "the pad in the last place ends it");
        assert_eq!(base64_text("SGE=SGE=").as_deref(), Some("Ha"));
        assert_eq!(base64_text("SG=FtSGE=").as_deref(), Some("HamHa"));
        assert_eq!(base64_text("=S=GFt").as_deref(), Some("Ham"));
        assert_eq!(base64_text("SA=?=x").as_deref(), Some("H"));
        assert_eq!(base64_text("SA").as_deref(), None);
        assert_eq!(base64_text("SGE").as_deref(), None);
        assert_eq!(base64_text("S").as_deref(), None);
        assert_eq!(base64_text("").as_deref(), Some(""));
    }

    #[test]
    fn quoted_printable_is_forgiving() {
        let mut out = Vec::new();
        quoted_printable(b"a=41=\nb=\rx\nc==d=zz =4", &mut out);
        assert_eq!(out, b"aAbc=d=zz =4");
        out.clear();
        quoted_printable(b"a=", &mut out);
        assert_eq!(out, b"a");
    }

    #[test]
    fn repair() {
        assert_eq!(repair_base64(b"SGFt\nSGE=\nnot base64\n"), b"HamHanot base64\n");
        assert_eq!(repair_base64(b"SGF\nnot base64\n"), b"not base64\n");
    }
}
