//! Writing an mbox: messages with their edits, the joint between two mailboxes, and From_ lines for text that has none.

use std::io::{self, Write};

use crate::message::{Edit, Eol, write_edited};

/// Writes mailboxes one after the other and remembers how the text ends, so that the next From_ line can always be
/// found again.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The last bytes written: enough to tell an empty line.
    tail: Vec<u8>,
    /// The line ending seen last.
    eol: Eol,
    /// A mailbox has ended and another one begins with the next write.
    joint: bool,
    written: u64,
}

/// As many bytes as `\r\n\r\n` has.
const TAIL: usize = 4;

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Writer { out, tail: Vec::with_capacity(2 * TAIL), eol: Eol::Lf, joint: false, written: 0 }
    }

    /// Writes text as it is.
    pub fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    /// Writes what stands before the first message of a mailbox, which is the `first` of all or not. In the middle of the output a byte order mark is none,
    /// and would hide the From_ line behind it: there it is left out.
    pub fn preamble(&mut self, text: &[u8], first: bool) -> io::Result<()> {
        let stays = first && self.written == 0;
        let text = if stays { text } else { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) };
        self.write_all(text)
    }

    /// Writes `bytes` with `edits` applied.
    pub fn edited(&mut self, bytes: &[u8], edits: &[Edit]) -> io::Result<()> {
        write_edited(bytes, edits, self)
    }

    /// Writes a message that has no From_ line of its own as an mbox message: a From_ line, the text with mboxrd
    /// quoting (`^>*From ` gets one more `>`), and an empty line.
    pub fn enclose(&mut self, message: &[u8]) -> io::Result<()> {
        let eol = memchr::memchr(b'\n', message).and_then(|lf| Eol::at_end_of(&message[..=lf])).unwrap_or(Eol::Lf);
        self.write_all(b"From MAILER-DAEMON Thu Jan  1 00:00:00 1970")?;
        self.write_all(eol.bytes())?;
        quote_from(message, self)?;
        self.eol = eol;
        self.end_in_empty_line()
    }

    /// Ends the text in an empty line where it does not yet. Nothing at all counts as one.
    pub fn end_in_empty_line(&mut self) -> io::Result<()> {
        while self.written > 0 && !crate::message::ends_in_empty_line(&self.tail) {
            self.write_all(self.eol.bytes())?;
        }
        Ok(())
    }

    /// The output ends here, and another process may go on behind it.
    pub fn end_before_more(&mut self) -> io::Result<()> {
        // Taken first: what is written below would else complete the text as well.
        if std::mem::take(&mut self.joint) { self.end_in_empty_line() } else { Ok(()) }
    }

    /// The mailbox ends here; should anything follow, it will begin after an empty line.
    pub fn end_of_mailbox(&mut self) {
        self.joint = true;
    }

    /// Bytes written in all.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The writer below.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The writer below, for good.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        match memchr::memrchr(b'\n', bytes) {
            None => {}
            Some(0) => self.eol = if self.tail.ends_with(b"\r") { Eol::CrLf } else { Eol::Lf },
            Some(lf) => self.eol = Eol::at_end_of(&bytes[..=lf]).unwrap_or(Eol::Lf),
        }
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.joint) {
            self.end_in_empty_line()?;
        }
        self.out.write_all(bytes)?;
        self.remember(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes `text` with one more `>` before every line that matches `^>*From ` (mboxrd).
pub fn quote_from(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let quotes = line.iter().take_while(|&&byte| byte == b'>').count();
        if line[quotes..].starts_with(b"From ") {
            out.write_all(b">")?;
        }
        out.write_all(line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(parts: &[&str]) -> String {
        let mut writer = Writer::new(Vec::new());
        for part in parts {
            writer.text(part.as_bytes()).expect("a Vec");
            writer.end_of_mailbox();
        }
        assert_eq!(writer.written(), writer.get_mut().len() as u64);
        String::from_utf8(writer.out).expect("text")
    }

    #[test]
    fn a_joint_gets_what_it_lacks_and_no_more() {
        assert_eq!(joined(&["From a\n\nx\n\n", "From b\n"]), "From a\n\nx\n\nFrom b\n");
        assert_eq!(joined(&["From a\n\nx\n", "From b\n"]), "From a\n\nx\n\nFrom b\n");
        assert_eq!(joined(&["From a\n\nx", "", "From b\n"]), "From a\n\nx\n\nFrom b\n");
        assert_eq!(joined(&["From a\r\n\r\nx", "From b\n"]), "From a\r\n\r\nx\r\n\r\nFrom b\n");
        assert_eq!(joined(&["", "From b"]), "From b");
        assert_eq!(joined(&["x", "\n\ny"]), "x\n\n\n\ny");
    }

    #[test]
    fn an_end_before_more_is_completed_once() {
        let mut writer = Writer::new(Vec::new());
        writer.text(b"From a\n\nx").expect("a Vec");
        writer.end_before_more().expect("a Vec");
        assert_eq!(writer.out, b"From a\n\nx", "no mailbox has ended");
        writer.end_of_mailbox();
        writer.end_before_more().expect("a Vec");
        assert_eq!(writer.out, b"From a\n\nx\n\n");
    }

    #[test]
    fn a_byte_order_mark_stays_at_the_beginning_only() {
        let mut writer = Writer::new(Vec::new());
        for first in [true, false] {
            writer.preamble("\u{feff}\n".as_bytes(), first).expect("a Vec");
            writer.text(b"From a\n\n").expect("a Vec");
            writer.end_of_mailbox();
        }
        assert_eq!(String::from_utf8_lossy(&writer.out), "\u{feff}\nFrom a\n\n\nFrom a\n\n");
    }

    #[test]
    fn the_tail_is_known_however_the_text_came() {
        let mut writer = Writer::new(Vec::new());
        for byte in b"a\r\n\r\n" {
            writer.text(&[*byte]).expect("a Vec");
        }
        writer.end_in_empty_line().expect("a Vec");
        assert_eq!(writer.out, b"a\r\n\r\n");
    }

    #[test]
    fn a_message_without_from_line_is_enclosed() {
        let mut writer = Writer::new(Vec::new());
        writer.enclose(b"A: 1\r\n\r\nFrom me\r\n>From you\r\n From\r\nend").expect("a Vec");
        let want = "From MAILER-DAEMON Thu Jan  1 00:00:00 1970\r\n\
                    A: 1\r\n\r\n>From me\r\n>>From you\r\n From\r\nend\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&writer.out), want);
    }
}
