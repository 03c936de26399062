//! The text of the evidence header.

use std::fmt::Write as _;

use super::bayes::Clue;
use super::options::Options;

/// The value of `X-Spambayes-Evidence` for these clues, on one line: each word as Python 2's `repr` shows it, and its
/// probability with two digits. Printable ASCII whatever the words are.
pub fn evidence(clues: &[Clue<'_>], options: &Options) -> Vec<u8> {
    evidence_joined(clues, "; ", options).into_bytes()
}

/// The same with something else between the clues.
pub fn evidence_joined(clues: &[Clue<'_>], separator: &str, options: &Options) -> String {
    let mut text = String::new();
    let cutoff = options.clue_mailheader_cutoff;
    for clue in clues {
        let belief = matches!(clue.word, b"*H*" | b"*S*");
        if !belief && clue.probability > cutoff && clue.probability < 1.0 - cutoff {
            continue;
        }
        if !text.is_empty() {
            text.push_str(separator);
        }
        quote(clue.word, clue.unicode, &mut text);
        // Writing to a string cannot fail.
        let _ = write!(text, ": {:.2}", clue.probability);
    }
    text
}

/// A word as Python 2's `repr` shows it, quotes and all. Printable ASCII whatever the word is.
pub fn quoted(word: &[u8], unicode: bool) -> Vec<u8> {
    let mut text = String::new();
    quote(word, unicode, &mut text);
    text.into_bytes()
}

/// Python 2's `repr` of a byte string or, with a `u` before it, of a Unicode string.
fn quote(word: &[u8], unicode: bool, text: &mut String) {
    let quote = if word.contains(&b'\'') && !word.contains(&b'"') { '"' } else { '\'' };
    if unicode {
        text.push('u');
    }
    text.push(quote);
    match std::str::from_utf8(word) {
        Ok(word) if unicode => word.chars().for_each(|c| push(u32::from(c), quote, text)),
        _ => word.iter().for_each(|&byte| push(u32::from(byte), quote, text)),
    }
    text.push(quote);
}

fn push(code: u32, quote: char, text: &mut String) {
    let _ = match (code, char::from_u32(code)) {
        (_, Some('\t')) => write!(text, "\\t"),
        (_, Some('\n')) => write!(text, "\\n"),
        (_, Some('\r')) => write!(text, "\\r"),
        (_, Some(c)) if c == quote || c == '\\' => write!(text, "\\{c}"),
        (_, Some(c @ ' '..='~')) => write!(text, "{c}"),
        (..=0xff, _) => write!(text, "\\x{code:02x}"),
        (..=0xffff, _) => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_quoting() {
        let mut text = String::new();
        for word in [&b"a"[..], b"it's", b"it's \"x\"", b"\t\\\xe9\x00\x7f"] {
            quote(word, false, &mut text);
        }
        quote("é€".as_bytes(), true, &mut text);
        assert_eq!(text, r#"'a'"it's"'it\'s "x"''\t\\\xe9\x00\x7f'u'\xe9\u20ac'"#);
    }
}
