//! What makes two messages the same one for training.

use sha2::{Digest as _, Sha256};

/// SHA-256 of a message without its From_ line and without our fields.
pub type Digest = [u8; 32];

/// The digest of a message. Left out are the From_ line it may start with, and the header fields `X-Spambayes-...`
/// with their continuation lines: a message keeps its digest when it is classified, or moved to another mailbox.
pub fn digest(message: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    let mut rest = message;
    if rest.starts_with(b"From ") {
        rest = &rest[line(rest)..];
    }
    let mut ours = false;
    // A field counts as ours wherever our own header insertion would look for one: before the first empty line.
    while !rest.is_empty() && !matches!(rest[0], b'\r' | b'\n') {
        let (head, tail) = rest.split_at(line(rest));
        if !matches!(head[0], b' ' | b'\t') {
            let name = b"X-Spambayes-";
            ours = head.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        }
        if !ours {
            hash.update(head);
        }
        rest = tail;
    }
    hash.update(rest);
    hash.finalize().into()
}

/// The length of the first line with its end.
fn line(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_fields_do_not_count() {
        let plain = digest(b"Subject: x\n\nbody\nX-Spambayes-Classification: in the body\n");
        let marked = b"From a@b Mon Jan  5 10:00:01 2004\nx-spambayes-Evidence: a;\n\tb\nSubject: x\n\nbody\nX-Spambayes-Classification: in the body\n";
        assert_eq!(digest(marked), plain);
        assert_ne!(digest(b"Subject: x\n\nbody\n"), plain);
        assert_ne!(digest(b"X-Spambayes: x\n\n"), digest(b"\n"));
    }
}
