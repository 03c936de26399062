//! Writing an mbox: messages, the joint between two mailboxes, and From_ lines for text that has none.

use std::io::{self, Write};

use crate::message::Eol;

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
    /// A message without From_ line is under way.
    enclosed: Option<Enclosed>,
    written: u64,
}

/// What there is to know between the parts of a message that gets a From_ line.
#[derive(Debug)]
struct Enclosed {
    quoter: Quoter,
    /// Its line ending.
    eol: Eol,
}

/// As many bytes as `\r\n\r\n` has.
const TAIL: usize = 4;

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Writer { out, tail: Vec::with_capacity(2 * TAIL), eol: Eol::Lf, joint: false, enclosed: None, written: 0 }
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

    /// Writes a message that has no From_ line of its own as an mbox message: a From_ line, the text with mboxrd
    /// quoting (`^>*From ` gets one more `>`), and an empty line.
    pub fn enclose(&mut self, message: &[u8]) -> io::Result<()> {
        self.enclose_part(message)?;
        self.end_enclosed()
    }

    /// Writes some of such a message. The line ending of the first part that is not empty is that of what is added.
    pub fn enclose_part(&mut self, part: &[u8]) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let mut enclosed = match self.enclosed.take() {
            Some(enclosed) => enclosed,
            None => self.begin_enclosed(part)?,
        };
        enclosed.quoter.feed(part, self)?;
        self.enclosed = Some(enclosed);
        Ok(())
    }

    /// Such a message ends here.
    pub fn end_enclosed(&mut self) -> io::Result<()> {
        let Enclosed { quoter, eol } = match self.enclosed.take() {
            Some(enclosed) => enclosed,
            None => self.begin_enclosed(b"")?,
        };
        quoter.finish(self)?;
        self.eol = eol;
        self.end_in_empty_line()
    }

    fn begin_enclosed(&mut self, text: &[u8]) -> io::Result<Enclosed> {
        let eol = memchr::memchr(b'\n', text).and_then(|lf| Eol::at_end_of(&text[..=lf])).unwrap_or(Eol::Lf);
        self.write_all(b"From MAILER-DAEMON Thu Jan  1 00:00:00 1970")?;
        self.write_all(eol.bytes())?;
        Ok(Enclosed { quoter: Quoter::default(), eol })
    }

    /// Ends the text in an empty line where it does not yet. Nothing at all counts as one.
    pub fn end_in_empty_line(&mut self) -> io::Result<()> {
        while self.written > 0 && !crate::message::ends_in_empty_line(&self.tail) {
            self.write_all(self.eol.bytes())?;
        }
        Ok(())
    }

    /// Where the text ends in the middle of a line, ends that and adds an empty one.
    pub fn end_line(&mut self) -> io::Result<()> {
        if Eol::at_end_of(&self.tail).is_none() { self.end_in_empty_line() } else { Ok(()) }
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

const FROM: &[u8] = b"From ";

/// Writes text that comes in pieces with one more `>` before every line that matches `^>*From ` (mboxrd). Which of the
/// `>` is the new one cannot be told, so it may be the last, and of a line only as much is held as might be `From `.
#[derive(Debug)]
pub struct Quoter {
    /// How much of `From ` has been seen and not written, in a line of which nothing but `>` stands before it; `None`
    /// further in the line.
    matched: Option<usize>,
}

impl Default for Quoter {
    fn default() -> Self {
        Quoter { matched: Some(0) }
    }
}

impl Quoter {
    /// Writes the next bytes of the text, but what is held back of them.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        while let Some(&first) = bytes.first() {
            let length = match self.matched {
                None => {
                    let lf = memchr::memchr(b'\n', bytes);
                    self.matched = lf.map(|_| 0);
                    let length = lf.map_or(bytes.len(), |lf| lf + 1);
                    out.write_all(&bytes[..length])?;
                    length
                }
                Some(0) if first == b'>' => {
                    let quotes = bytes.iter().take_while(|&&byte| byte == b'>').count();
                    out.write_all(&bytes[..quotes])?;
                    quotes
                }
                Some(matched) if first == FROM[matched] => {
                    self.matched = Some(matched + 1).filter(|&length| length < FROM.len());
                    if self.matched.is_none() {
                        out.write_all(b">")?;
                        out.write_all(FROM)?;
                    }
                    1
                }
                Some(matched) => {
                    self.matched = None;
                    out.write_all(&FROM[..matched])?;
                    0
                }
            };
            bytes = &bytes[length..];
        }
        Ok(())
    }

    /// Writes what is held back: the text ends here.
    pub fn finish(self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&FROM[..self.matched.unwrap_or(0)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule, told of a whole text.
    fn quote_from(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let quotes = line.iter().take_while(|&&byte| byte == b'>').count();
            out.extend_from_slice(if line[quotes..].starts_with(b"From ") { b">" } else { b"" });
            out.extend_from_slice(line);
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn pieces_are_quoted_as_the_whole_is(
            text in "((>{0,3}(F|Fr|From|From |From x|FFrom | From )?(\r?\n)?){0,8}|[>From \n]{0,40})",
            sizes in prop::collection::vec(1..12usize, 1..6),
        ) {
            let (mut quoter, mut out, mut rest) = (Quoter::default(), Vec::new(), text.as_bytes());
            for &size in sizes.iter().cycle().take(text.len()) {
                let (piece, more) = rest.split_at(size.min(rest.len()));
                quoter.feed(piece, &mut out).expect("a Vec");
                rest = more;
            }
            quoter.finish(&mut out).expect("a Vec");
            prop_assert_eq!(out, quote_from(text.as_bytes()));
        }
    }

    #[test]
    fn an_empty_message_is_enclosed_too() {
        for parts in [&[][..], &[""]] {
            let mut writer = Writer::new(Vec::new());
            parts.iter().try_for_each(|part: &&str| writer.enclose_part(part.as_bytes())).expect("a Vec");
            writer.end_enclosed().expect("a Vec");
            assert_eq!(writer.out, b"From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n\n");
        }
    }

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
    fn an_open_line_is_ended_and_no_other() {
        let mut writer = Writer::new(Vec::new());
        for text in ["", "From a\n\nx\n", "From b\n\ny"] {
            writer.end_line().expect("a Vec");
            writer.text(text.as_bytes()).expect("a Vec");
        }
        writer.end_line().expect("a Vec");
        assert_eq!(String::from_utf8_lossy(&writer.out), "From a\n\nx\nFrom b\n\ny\n\n");
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
