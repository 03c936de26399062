//! The text of the evidence header.

use std::fmt::Write as _;

use super::bayes::Clue;
use super::options::Options;

/// The value of `X-Spambayes-Evidence` for these clues, on one line: each word as Python 2 prints a byte string, and
/// its probability with two digits. Printable ASCII whatever the words are.
pub fn evidence(clues: &[Clue<'_>], options: &Options) -> Vec<u8> {
    let mut text = String::new();
    let cutoff = options.clue_mailheader_cutoff;
    for clue in clues {
        let belief = matches!(clue.word, b"*H*" | b"*S*");
        if !belief && clue.probability > cutoff && clue.probability < 1.0 - cutoff {
            continue;
        }
        if !text.is_empty() {
            text.push_str("; ");
        }
        quote(clue.word, &mut text);
        // Writing to a string cannot fail.
        let _ = write!(text, ": {:.2}", clue.probability);
    }
    text.into_bytes()
}

/// Python 2's `repr` of a byte string.
fn quote(word: &[u8], text: &mut String) {
    let quote = if word.contains(&b'\'') && !word.contains(&b'"') { '"' } else { '\'' };
    text.push(quote);
    for &byte in word {
        match byte {
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\\' => text.push_str("\\\\"),
            b'\'' if quote == '\'' => text.push_str("\\'"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_quoting() {
        let mut text = String::new();
        for word in [&b"a"[..], b"it's", b"it's \"x\"", b"\t\\\xe9\x00\x7f"] {
            quote(word, &mut text);
        }
        assert_eq!(text, r#"'a'"it's"'it\'s "x"''\t\\\xe9\x00\x7f'"#);
    }
}
