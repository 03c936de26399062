//! A message on its way to a mailbox.

use std::io;
use std::time::SystemTime;

use super::sender::Sender;
use crate::mbox::is_dated;
use crate::mbox::write::Quoter;
use crate::message::{self, Edits, Eol, Message, clean_value};

/// A message, as it came and with what is known of its sender.
#[derive(Debug)]
pub struct Mail<'a> {
    whole: &'a [u8],
    /// The From_ line it came with; empty where it has none.
    old_from_line: &'a [u8],
    /// What stands under it.
    text: &'a [u8],
    sender: Sender,
    from_line: Vec<u8>,
    /// Told to commands.
    pub environment: Vec<(&'static str, String)>,
}

impl<'a> Mail<'a> {
    /// Takes a message. The sender is the one given (`-`: as without, but with a new date); else that of the message's
    /// own From_ line, which then stays; else that of its Return-Path; else it is a bounce.
    pub fn new(whole: &'a [u8], sender: Option<&[u8]>, time: SystemTime) -> Mail<'a> {
        let first_end = memchr::memchr(b'\n', whole).map_or(whole.len(), |lf| lf + 1);
        let length = if is_dated(&whole[..first_end]) { first_end } else { 0 };
        let (old_from_line, text) = whole.split_at(length);
        let given = sender.filter(|&sender| sender != b"-").map(Sender::from_bytes);
        let own = || {
            let word = old_from_line.split(u8::is_ascii_whitespace).nth(1);
            word.map(Sender::from_bytes).or_else(|| return_path(text))
        };
        let keep = sender.is_none() && !old_from_line.is_empty();
        let sender = given.or_else(own).unwrap_or_else(|| Sender::from_bytes(b""));
        let from_line = match keep {
            true => old_from_line.trim_ascii_end().to_vec(),
            false => sender.separator(time).into_bytes(),
        };
        Mail { whole, old_from_line, text, sender, from_line, environment: Vec::new() }
    }

    /// As it came.
    pub fn whole(&self) -> &'a [u8] {
        self.whole
    }

    /// Without its From_ line.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Who sent it.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The From_ line it gets in an mbox, without its line end.
    pub fn from_line(&self) -> &[u8] {
        &self.from_line
    }

    /// A field's value on one line, cut at the first control character.
    pub fn field(&self, name: &str) -> Option<String> {
        let field = Message::parse(self.text, "").field(name)?;
        let value = clean_value(field.value);
        let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        Some(String::from_utf8_lossy(&words.collect::<Vec<_>>().join(&b' ')).into_owned())
    }

    /// As it stands in an mbox: under its From_ line, quoted (mboxrd), without a Content-Length, which quoting makes
    /// untrue, and with an empty line behind it. A message that came with a From_ line comes from a mailbox and may
    /// have that empty line already.
    pub(super) fn in_mbox(&self) -> io::Result<Vec<u8>> {
        let eol = memchr::memchr(b'\n', self.text).and_then(|lf| Eol::at_end_of(&self.text[..=lf])).unwrap_or(Eol::Lf);
        let lengths = Message::parse(self.text, "").fields();
        let lengths = lengths.filter(|field| field.name.eq_ignore_ascii_case(b"Content-Length"));
        let mut edits = Edits::default();
        lengths.for_each(|field| edits.replace(field.range, &[]));
        let cut = (!edits.is_empty()).then(|| edits.applied(self.text));
        let mut out = Vec::with_capacity(self.text.len() + self.from_line.len() + 256);
        out.extend_from_slice(&self.from_line);
        out.extend_from_slice(eol.bytes());
        let start = out.len();
        let mut quoter = Quoter::default();
        quoter.feed(cut.as_deref().unwrap_or(self.text), &mut out)?;
        quoter.finish(&mut out)?;
        if out.len() > start && Eol::at_end_of(&out).is_none() {
            out.extend_from_slice(eol.bytes());
        }
        if self.old_from_line.is_empty() || out.len() == start || !message::ends_in_empty_line(&out) {
            out.extend_from_slice(eol.bytes());
        }
        Ok(out)
    }
}

fn return_path(text: &[u8]) -> Option<Sender> {
    let field = Message::parse(text, "").field("Return-Path")?;
    Some(Sender::from_bytes(clean_value(field.value).trim_ascii()))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn in_mbox(text: &str, sender: Option<&str>) -> String {
        let mail = Mail::new(text.as_bytes(), sender.map(str::as_bytes), UNIX_EPOCH);
        String::from_utf8(mail.in_mbox().expect("a Vec")).expect("text")
    }

    const DATE: &str = "Thu Jan  1 00:00:00 1970";

    #[test]
    fn the_sender_is_the_given_or_the_old_or_that_of_the_return_path() {
        let own = "From b@x Mon Jan  5 10:00:00 2004\nReturn-Path: <c@x>\n\nt\n\n";
        let rest = &own[own.find("Return").expect("there")..];
        assert_eq!(in_mbox(own, Some("a@x")), format!("From a@x {DATE}\n{rest}"));
        assert_eq!(in_mbox(own, Some("-")), format!("From b@x {DATE}\n{rest}"));
        assert_eq!(in_mbox(own, None), own);
        assert_eq!(in_mbox(rest, None), format!("From c@x {DATE}\n{rest}\n"));
        assert_eq!(in_mbox("A: 1\n\nt\n", None), format!("From MAILER-DAEMON {DATE}\nA: 1\n\nt\n\n"));
        assert_eq!(in_mbox(rest, Some("")), format!("From MAILER-DAEMON {DATE}\n{rest}\n"));
    }

    #[test]
    fn the_text_is_quoted_and_closed() {
        for (text, want) in [
            ("A: 1\n\nFrom x\n>From y\n From z", "A: 1\n\n>From x\n>>From y\n From z\n\n"),
            ("A: 1\r\n\r\nFrom x\r\n", "A: 1\r\n\r\n>From x\r\n\r\n"),
            ("A: 1\nContent-Length: 3\nB: 2\ncontent-length:\n 4\n\nt\n", "A: 1\nB: 2\n\nt\n\n"),
            ("From here on it rains\n", ">From here on it rains\n\n"),
            ("A: 1\n\nt\n\n", "A: 1\n\nt\n\n\n"),
            ("A: 1\n", "A: 1\n\n"),
            ("", "\n"),
        ] {
            let got = in_mbox(text, None);
            let line = got.find('\n').expect("a From_ line") + 1;
            let eol = if text.contains('\r') { "\r\n" } else { "\n" };
            assert_eq!(got[..line], format!("From MAILER-DAEMON {DATE}{eol}"));
            assert_eq!(&got[line..], want, "{text:?}");
        }
    }

    #[test]
    fn a_field_is_told_on_one_line_without_control_characters() {
        let mail = Mail::new(b"Subject: a\n\tb  c\x1b[0m\nX: y\n\n", None, UNIX_EPOCH);
        assert_eq!(mail.field("subject").as_deref(), Some("a b c"));
        assert_eq!(mail.field("none"), None);
    }
}
