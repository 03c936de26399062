//! Grafting a verdict onto a message: the one place where bytes of a message change.

use std::iter;

use crate::classify::{Answer, answer};
use crate::encode::{Encoding, Way};
use crate::message::{self, Edits, Eol, Message, NewField};

/// How much of a server's answer is taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Apply {
    /// The verdict and other fields of ours.
    #[default]
    Verdict,
    /// These, and a tag that the server put into the Subject.
    Subject,
    /// The server's whole message.
    Message,
}

/// How messages are annotated.
#[derive(Clone, Debug)]
pub struct Annotate {
    /// Name of the field that carries the verdict.
    pub header: String,
    /// Rename fields of ours that stand in a message already to `X-Old-…` rather than removing them.
    pub keep_forged: bool,
    /// How much of the answer is taken over.
    pub apply: Apply,
    /// The message stands among others in a mailbox, whose lines `From ` part them.
    pub in_mailbox: bool,
}

impl Default for Annotate {
    fn default() -> Self {
        Annotate {
            header: answer::CLASSIFICATION.to_owned(),
            keep_forged: false,
            apply: Apply::default(),
            in_mailbox: true,
        }
    }
}

/// What is grafted onto a message. Used again, it needs no new memory.
#[derive(Debug, Default)]
pub struct Graft {
    /// What replaces the message altogether (`--apply message`).
    instead: Option<Vec<u8>>,
    /// Changes to the message, or to what replaces it.
    edits: Edits,
}

impl Graft {
    /// Forgets all and keeps the room.
    pub fn clear(&mut self) {
        self.instead = None;
        self.edits.clear();
    }

    /// Writes the message with the graft.
    pub fn apply<W: Way>(&self, message: &[u8], out: &mut Encoding<W>) {
        self.edits.apply(self.instead.as_deref().unwrap_or(message), out);
    }

    /// The message with the graft.
    pub fn applied(&self, message: &[u8]) -> Vec<u8> {
        self.edits.applied(self.instead.as_deref().unwrap_or(message))
    }
}

impl Annotate {
    /// Finds the parts of a message.
    pub fn parse<'a>(&self, bytes: &'a [u8]) -> Message<'a> {
        Message::parse(bytes, &self.header)
    }

    /// What is done to a message that gets no verdict: forged fields go (or are renamed), all else stays. What `graft`
    /// held before is forgotten.
    pub fn unclassified(&self, message: &Message, graft: &mut Graft) {
        graft.clear();
        if self.keep_forged {
            message.rename_ours(&mut graft.edits);
        } else {
            message.cut_ours(&mut graft.edits);
        }
    }

    /// What is done to a message that gets a verdict. What `graft` held before is forgotten.
    pub fn classified(&self, message: &Message, answer: &Answer, graft: &mut Graft) {
        let verdict = NewField { name: self.header.as_bytes(), value: answer.verdict.text.as_bytes() };
        let others = answer.fields.iter().map(|(name, value)| NewField { name, value });
        let fields = iter::once(verdict).chain(others);
        if let (Apply::Message, Some(theirs)) = (self.apply, &answer.message) {
            graft.clear();
            let text = self.enclosed_like(message, theirs);
            let new = self.parse(&text);
            new.cut_ours(&mut graft.edits);
            new.insert_fields(&mut graft.edits, fields);
            graft.instead = Some(text);
            return;
        }
        self.unclassified(message, graft);
        if let (Apply::Subject, Some(theirs)) = (self.apply, &answer.message)
            && let Some((at, tag)) = subject_tag(message, theirs)
        {
            graft.edits.replace(at..at, &tag);
        }
        message.insert_fields(&mut graft.edits, fields);
    }

    /// The server's message in the place of the original: under the original's From_ line, with lines that would begin
    /// another message quoted, and ending in as much of an empty line as the original does.
    fn enclosed_like(&self, message: &Message, theirs: &[u8]) -> Vec<u8> {
        let new = Message::parse(theirs, answer::CLASSIFICATION);
        let mut text = message.envelope().to_vec();
        for line in theirs[new.envelope().len()..].split_inclusive(|&byte| byte == b'\n') {
            if line.starts_with(b"From ") && self.in_mailbox {
                text.push(b'>');
            }
            text.extend_from_slice(line);
        }
        if let Some(eol) = Eol::at_end_of(message.bytes()) {
            let empty_line = message::ends_in_empty_line(message.bytes());
            while Eol::at_end_of(&text).is_none() || (empty_line && !message::ends_in_empty_line(&text)) {
                text.extend_from_slice(eol.bytes());
            }
        }
        text
    }
}

/// A tag that the server has put before the Subject, if it has, and where it goes. A message without a Subject gets
/// none, and one that carries the tag already is left alone.
fn subject_tag(message: &Message, theirs: &[u8]) -> Option<(usize, Vec<u8>)> {
    let field = message.field("Subject")?;
    let old = message::clean_value(field.value);
    let (old, new) = (squeezed(&old), squeezed(&answer::subject(theirs)?));
    let tag = new.strip_suffix(old.as_slice())?;
    if tag.is_empty() || old.starts_with(tag) {
        return None;
    }
    let blanks = field.value.iter().take_while(|&&byte| matches!(byte, b' ' | b'\t')).count();
    let at = field.range.end - field.value.len() + blanks;
    Some((at, tag.to_vec()))
}

/// The text with each run of white space as one blank: what is left of a Subject after it was folded anew.
fn squeezed(text: &[u8]) -> Vec<u8> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(&b' ')
}

/// A field name by RFC 5322, section 3.6.8, that is not one of those that make a message what it is.
///
/// # Errors
/// What is wrong with it.
pub fn field_name(text: &str) -> Result<String, String> {
    const TAKEN: [&str; 12] = [
        "From",
        "To",
        "Cc",
        "Bcc",
        "Subject",
        "Date",
        "Message-ID",
        "Received",
        "Content-Type",
        "Return-Path",
        "Content-Length",
        "Content-Transfer-Encoding",
    ];
    if text.is_empty() || text.len() > 76 || !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
        return Err("not a field name".to_owned());
    }
    match TAKEN.iter().find(|taken| taken.eq_ignore_ascii_case(text)) {
        Some(taken) => Err(format!("all {taken} fields would be replaced")),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::verdict::Verdict;

    fn answer(message: &str) -> Answer {
        Answer {
            verdict: Verdict::parse("spam; 0.95").expect("a verdict"),
            fields: Vec::new(),
            message: Some(message.as_bytes().to_vec()),
            method: "filter",
            server: None,
            took: Duration::ZERO,
        }
    }

    fn applied(apply: Apply, ours: &str, theirs: &str) -> String {
        let annotate = Annotate { apply, ..Annotate::default() };
        let mut graft = Graft::default();
        annotate.classified(&annotate.parse(ours.as_bytes()), &answer(theirs), &mut graft);
        String::from_utf8(graft.applied(ours.as_bytes())).expect("text")
    }

    #[test]
    fn a_subject_tag_is_taken_over_once_and_keeps_the_folds() {
        let theirs = "Subject: spam, a long one\nX-Other: 1\n\n";
        let field = "X-Spambayes-Classification: spam; 0.95\n";
        for (ours, want) in [
            ("Subject: a\n\tlong one\n\nb", format!("Subject: spam, a\n\tlong one\n{field}\nb")),
            ("Subject: spam, a long one\n\nb", format!("Subject: spam, a long one\n{field}\nb")),
            ("Subject: another\n\nb", format!("Subject: another\n{field}\nb")),
            ("A: 1\n\nb", format!("A: 1\n{field}\nb")),
        ] {
            assert_eq!(applied(Apply::Subject, ours, theirs), want);
        }
        assert_eq!(
            applied(Apply::Subject, "Subject: \r\n x\r\n\r\nb", "Subject: spam,x\r\n\r\n"),
            "Subject: spam,\r\n x\r\nX-Spambayes-Classification: spam; 0.95\r\n\r\nb"
        );
    }

    #[test]
    fn a_whole_message_is_fitted_into_its_place() {
        let ours = "From a@b Mon\nA: 1\n\n>From x\n\n";
        let theirs = "From z\nA: 1\nX-Spambayes-Classification: spam; 0.95\nB: 2\n\nFrom x\n>From y\n";
        let want = "From a@b Mon\nA: 1\nB: 2\nX-Spambayes-Classification: spam; 0.95\n\n>From x\n>From y\n\n";
        assert_eq!(applied(Apply::Message, ours, theirs), want);
    }

    #[test]
    fn a_whole_message_never_becomes_two_nor_runs_into_the_next() {
        let theirs = "A: 1\n\none\nFrom me\nend";
        let field = "X-Spambayes-Classification: spam; 0.95\n";
        let body = ">From me\nend\n";
        assert_eq!(applied(Apply::Message, "A: 1\n\none\n", theirs), format!("A: 1\n{field}\none\n{body}"));
    }

    #[test]
    fn by_default_nothing_but_fields_is_taken() {
        let ours = "A: 1\n\nb\n";
        let want = "A: 1\nX-Spambayes-Classification: spam; 0.95\n\nb\n";
        assert_eq!(applied(Apply::Verdict, ours, "A: 2\nSubject: spam,x\n\nc\n"), want);
    }

    #[test]
    fn a_header_name_must_be_one_and_not_a_vital_one() {
        assert_eq!(field_name("X-Junk"), Ok("X-Junk".into()));
        assert!(["", "a b", "a:", "ä", "a\nb", "subject", "FROM"].iter().all(|text| field_name(text).is_err()));
    }
}
