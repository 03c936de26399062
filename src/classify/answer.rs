//! What is taken from a server's answer: its verdict and its other fields of ours. Nothing else of the message that
//! comes back is trusted.

use crate::message::{self, Field, Message};
use crate::verdict::Verdict;

/// SpamBayes's own name for the field that carries the verdict.
pub(super) const CLASSIFICATION: &str = "X-Spambayes-Classification";

/// The verdict and the other fields of ours in a message as a server gave it back. `header` is what
/// the field with the verdict may be called besides [`CLASSIFICATION`]. `None` where there is no verdict.
pub(super) fn take(answer: &[u8], header: &str) -> Option<(Verdict, Vec<super::Field>)> {
    let is_verdict = |name: &[u8]| {
        name.eq_ignore_ascii_case(CLASSIFICATION.as_bytes()) || name.eq_ignore_ascii_case(header.as_bytes())
    };
    let message = Message::parse(answer, header);
    let read = |value: &[u8]| Verdict::parse(&String::from_utf8_lossy(&unfolded(&message::clean_value(value))));
    // The last one: the server adds its own behind whatever its parser made of the sender's.
    let ours: Vec<Field> = message.our_fields().collect();
    let Some(found) = ours.iter().rfind(|field| is_verdict(field.name)) else {
        return misplaced(answer, is_verdict).and_then(read).map(|verdict| (verdict, Vec::new()));
    };
    let others = ours.iter().filter(|field| !is_verdict(field.name));
    let owned = |field: &Field| {
        let value = message::clean_value(field.value);
        (field.name.to_vec(), value.trim_ascii_start().to_vec())
    };
    Some((read(found.value)?, others.map(owned).collect()))
}

/// The last verdict above the first empty line: where a line that is no field ends the header block for us, some
/// servers have put theirs below it.
fn misplaced(answer: &[u8], is_verdict: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    let lines = answer.split_inclusive(|&byte| byte == b'\n');
    lines
        .take_while(|line| !matches!(*line, b"\n" | b"\r\n"))
        .filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            is_verdict(&line[..colon]).then_some(&line[colon + 1..])
        })
        .last()
}

/// The value on one line: a fold is worth one blank.
fn unfolded(value: &[u8]) -> Vec<u8> {
    value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).collect::<Vec<_>>().join(&b' ')
}

/// The Subject of a message as a server gave it back, if it has one: the value, cut at the first control character.
pub(super) fn subject(answer: &[u8]) -> Option<Vec<u8>> {
    let field = Message::parse(answer, CLASSIFICATION).field("Subject")?;
    Some(message::clean_value(field.value).trim_ascii_start().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(answer: &str) -> Option<(String, Vec<String>)> {
        let lossy = String::from_utf8_lossy;
        let (verdict, fields) = take(answer.as_bytes(), "X-Junk")?;
        Some((verdict.text, fields.iter().map(|(name, value)| format!("{}: {}", lossy(name), lossy(value))).collect()))
    }

    #[test]
    fn the_last_verdict_in_the_header_counts() {
        for (about, answer, want) in [
            ("plain", "From a\nA: 1\nX-Spambayes-Classification: ham; 0.02\n\nb\n", Some("ham; 0.02")),
            ("other case, CRLF", "x-spambayes-classification:spam; 1.00\r\n\r\n", Some("spam; 1.00")),
            ("renamed", "X-Junk: unsure; 0.50\n\n", Some("unsure; 0.50")),
            ("two", "X-Spambayes-Classification: ham; 0.00\nX-Spambayes-Classification: spam; 0.99\n\n", {
                Some("spam; 0.99")
            }),
            ("bare CR and VT", "X-Spambayes-Classification: ham; 0.02\rX-Evil: 1\x0bb\n\n", Some("ham; 0.02")),
            ("folded", "X-Spambayes-Classification: ham;\n 0.02\n\n", Some("ham; 0.02")),
            ("folded wide", "X-Spambayes-Classification:\n\tham; \r\n\t  0.02\n\n", Some("ham; 0.02")),
            ("below a broken line", "A: 1\nbroken\nX-Spambayes-Classification: ham; 0.02\n\n", Some("ham; 0.02")),
            ("in the body", "A: 1\n\nX-Spambayes-Classification: ham; 0.02\n", None),
            ("no class", "X-Spambayes-Classification: 0.02\n\n", None),
            ("none", "A: 1\n\nb", None),
            ("nothing", "", None),
        ] {
            assert_eq!(taken(answer).map(|(text, _)| text).as_deref(), want, "{about}");
        }
    }

    #[test]
    fn only_fields_of_ours_come_along() {
        let answer =
            "A: 1\nX-Spambayes-Evidence: '*H*': 1;\r\n\t'x': 0\nX-Evil: 1\nX-Spambayes-Classification: ham\n\n";
        assert_eq!(taken(answer), Some(("ham".into(), vec!["X-Spambayes-Evidence: '*H*': 1;\n\t'x': 0".into()])));
    }
}
