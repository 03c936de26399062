//! Taking fields of ours out of a message that comes in pieces.

use memchr::{memchr2, memrchr};

use super::{LONGEST_NAME, Line, is_ours, line_end, line_kind, renamed_prefix};

/// Takes fields of ours out of a message, or renames them to `X-Old-…`, by the rules of [`Message::parse`] and with the
/// result of [`Message::cut_ours`] or [`Message::rename_ours`], but without holding it: no more than the
/// beginning of a line and one line end.
///
/// [`Message::parse`]: super::Message::parse
/// [`Message::cut_ours`]: super::Message::cut_ours
/// [`Message::rename_ours`]: super::Message::rename_ours
#[derive(Debug)]
pub struct Stripper {
    header: String,
    rename: bool,
    state: State,
    /// The line begun is the first.
    is_first: bool,
    /// The field that the line belongs to is ours.
    in_ours: bool,
    /// The beginning of a line, while it may yet become anything.
    held: Vec<u8>,
    /// What of a line end (or of one that may become one) was kept and not written: should the text end in a field of
    /// ours without a newline, it goes too.
    eol: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the beginning of a line of the header, or in what is held of it.
    Start,
    /// Further in a line of the header.
    Line,
    /// Below the header.
    Body,
}

impl Stripper {
    /// For one message. `header` is the name of the field that carries the verdict.
    pub fn new(header: &str, rename: bool) -> Stripper {
        Stripper {
            header: header.to_owned(),
            rename,
            state: State::Start,
            is_first: true,
            in_ours: false,
            held: Vec::new(),
            eol: Vec::new(),
        }
    }

    /// Takes the next bytes of the message, and appends what there is to write to `out`.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some(first) = bytes.first() {
            let length = match self.state {
                State::Body => {
                    out.extend_from_slice(bytes);
                    return;
                }
                State::Start if self.held.is_empty() && matches!(first, b' ' | b'\t') => {
                    (self.state, self.is_first) = (State::Line, false);
                    0
                }
                State::Start => {
                    let room = &bytes[..bytes.len().min(LONGEST_NAME - self.held.len())];
                    let length = memchr2(b':', b'\n', room).map_or(room.len(), |at| at + 1);
                    self.held.extend_from_slice(&room[..length]);
                    if self.held.len() == LONGEST_NAME || matches!(self.held.last(), Some(b':' | b'\n')) {
                        self.decide(out);
                    }
                    length
                }
                State::Line => {
                    let length = line_end(bytes, 0);
                    self.put(&bytes[..length], out);
                    length
                }
            };
            bytes = &bytes[length..];
        }
    }

    /// The message ends here.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            self.decide(out);
        }
        let cut_in_ours = self.state == State::Line && self.in_ours && !self.rename;
        if !cut_in_ours {
            out.append(&mut self.eol);
        }
    }

    /// The line held is known well enough.
    fn decide(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        let is_envelope = std::mem::take(&mut self.is_first) && held.starts_with(b"From ");
        self.in_ours = match line_kind(&held) {
            _ if is_envelope => false,
            Line::Field(length) | Line::Dubious(length) => is_ours(&held[..length], &self.header),
            Line::QuotedFrom => false,
            Line::Continuation => self.in_ours,
            Line::End => {
                self.state = State::Body;
                out.append(&mut self.eol);
                out.extend_from_slice(&held);
                return;
            }
        };
        if self.in_ours && self.rename {
            self.put(b"X-Old-", out);
            self.put(&held[renamed_prefix(&held)..], out);
        } else {
            self.put(&held, out);
        }
    }

    /// Writes some of a header line, which is not empty and ends with the line if not before, or drops it.
    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.state = if bytes.ends_with(b"\n") { State::Start } else { State::Line };
        if self.in_ours && !self.rename {
            return;
        }
        if self.eol == b"\r" && bytes == b"\n" {
            self.eol.push(b'\n');
            return;
        }
        out.append(&mut self.eol);
        let end = memrchr(b'\n', bytes).unwrap_or(bytes.len());
        let end = if bytes[..end].ends_with(b"\r") { end - 1 } else { end };
        out.extend_from_slice(&bytes[..end]);
        self.eol.extend_from_slice(&bytes[end..]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::lines;
    use super::super::{Edits, Message};
    use super::*;

    const HEADER: &str = "X-Spambayes-Classification";

    fn stripped(text: &[u8], sizes: &[usize], rename: bool) -> Vec<u8> {
        let (mut stripper, mut out, mut rest) = (Stripper::new(HEADER, rename), Vec::new(), text);
        for &size in sizes.iter().cycle().take(text.len() + 1) {
            let (piece, more) = rest.split_at(size.min(rest.len()));
            stripper.feed(piece, &mut out);
            rest = more;
        }
        stripper.feed(rest, &mut out);
        stripper.finish(&mut out);
        out
    }

    fn whole(text: &[u8], rename: bool) -> Vec<u8> {
        let message = Message::parse(text, HEADER);
        let mut edits = Edits::default();
        if rename {
            message.rename_ours(&mut edits)
        } else {
            message.cut_ours(&mut edits)
        }
        edits.applied(text)
    }

    #[test]
    fn a_long_line_without_a_colon_ends_the_header() {
        let ours = "X-Spambayes-Trained: x\n";
        for length in [LONGEST_NAME - 1, LONGEST_NAME, LONGEST_NAME + 1] {
            for fill in ["a", ">"] {
                for behind in [": b\n", "From x\n", "\n"] {
                    let text = format!("{ours}{}{behind}{ours}\n{ours}", fill.repeat(length));
                    for sizes in [&[1000][..], &[LONGEST_NAME], &[usize::MAX]] {
                        let same = stripped(text.as_bytes(), sizes, false) == whole(text.as_bytes(), false);
                        assert!(same, "{length} {fill} {behind:?} {sizes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn little_is_held_back() {
        let (mut stripper, mut out) = (Stripper::new(HEADER, false), Vec::new());
        stripper.feed(b"A: 1\n", &mut out);
        for _ in 0..100 {
            stripper.feed(&[b'\t'; LONGEST_NAME], &mut out);
            stripper.feed(&[b'a'; LONGEST_NAME], &mut out);
        }
        assert_eq!(out.len(), 5 + 200 * LONGEST_NAME);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn pieces_give_what_the_whole_gives(
            text in prop_oneof![lines(), prop::collection::vec(any::<u8>(), 0..200)],
            sizes in prop::collection::vec(1..30usize, 1..6),
        ) {
            for rename in [false, true] {
                prop_assert_eq!(stripped(&text, &sizes, rename), whole(&text, rename), "rename: {}", rename);
            }
        }
    }
}
