//! The beginning of the file: what stands before the first message, and whether there is one.

use super::{Cut, Cutter, FROM, Stage, Step};
use crate::mbox::look::{Context, Look, Verdict};
use crate::mbox::{Doubt, Format, Part, detect};

const MARK: &[u8] = b"\xef\xbb\xbf";

fn preamble(len: usize) -> Step {
    Step::Cut(Cut { len, part: Part::Preamble, has_from_line: false, doubt: None, watched: false })
}

impl Cutter {
    pub(super) fn blank(&mut self, buf: &[u8], eof: bool) -> Option<Step> {
        if self.pos == 0 && self.scan == 0 {
            if buf.len() < MARK.len() && MARK.starts_with(buf) && !eof {
                return Some(Step::More);
            }
            if buf.starts_with(MARK) {
                self.pos = MARK.len();
            }
        }
        loop {
            match &buf[self.pos..] {
                [b'\n', ..] => self.pos += 1,
                [b'\r', b'\n', ..] => self.pos += 2,
                [b'\r'] if !eof => return Some(Step::More),
                [] => break,
                _ => {
                    self.scan = self.pos;
                    self.stage = Stage::FirstLine;
                    return None;
                }
            }
        }
        if eof {
            self.stage = Stage::End;
            return if buf.is_empty() { None } else { Some(preamble(buf.len())) };
        }
        if self.pos < self.limits.whole {
            return Some(Step::More);
        }
        // Nothing but line ends in all that may be buffered: they belong to no message whatever comes.
        let cut = preamble(self.pos);
        (self.pos, self.scan) = (0, 1);
        Some(cut)
    }

    pub(super) fn first_line(&mut self, buf: &[u8], eof: bool) -> Option<Step> {
        let reach = buf.len().min(self.pos + self.limits.lookahead);
        let line = match memchr::memchr(b'\n', &buf[self.scan.min(reach)..reach]) {
            Some(n) => &buf[self.pos..=self.scan + n],
            None if eof || reach == self.pos + self.limits.lookahead => &buf[self.pos..reach],
            None => {
                self.scan = reach;
                return Some(Step::More);
            }
        };
        if let Some(format) = detect::foreign(line) {
            return Some(Step::Refuse(format));
        }
        self.stage = if line.starts_with(FROM) { Stage::FirstFrom } else { Stage::FirstHeader };
        None
    }

    pub(super) fn first_from(&mut self, buf: &[u8], eof: bool) -> Option<Step> {
        let context = Context { empty: true, start: true, first: true, from_line: false };
        match self.look_at(buf, self.pos, eof, context) {
            Verdict::Pending => Some(Step::More),
            Verdict::No => {
                self.look = None;
                self.stage = Stage::FirstHeader;
                None
            }
            Verdict::Yes { headed, line } => self.begin_after(self.pos, true, headed, line),
        }
    }

    pub(super) fn first_header(&mut self, buf: &[u8], eof: bool) -> Option<Step> {
        let look = self.look.get_or_insert_with(Look::at_header);
        match look.header_verdict(&buf[self.pos..], eof, self.limits.lookahead) {
            Verdict::Pending => Some(Step::More),
            Verdict::No => {
                self.look = None;
                self.scan = self.pos;
                self.stage = Stage::Text;
                None
            }
            Verdict::Yes { .. } => self.begin_after(self.pos, false, true, 0),
        }
    }

    pub(super) fn text(&mut self, buf: &[u8], eof: bool) -> Option<Step> {
        let limit = self.pos + self.limits.whole;
        loop {
            let found = self.look.is_some() || self.find(buf, eof);
            if self.scan >= limit || (!found && eof) {
                return Some(Step::Refuse(detect::shapeless(&buf[self.pos..buf.len().min(limit)])));
            }
            if !found {
                return Some(Step::More);
            }
            let at = self.scan + 1;
            let context = Context { empty: true, start: true, first: false, from_line: false };
            match self.look_at(buf, at, eof, context) {
                Verdict::Pending => return Some(Step::More),
                Verdict::No => {
                    self.look = None;
                    self.scan += 1;
                }
                Verdict::Yes { .. } if detect::is_binary(&buf[self.pos..at]) => {
                    return Some(Step::Refuse(Format::Binary));
                }
                Verdict::Yes { headed, line } => return self.begin_after(at, true, headed, line),
            }
        }
    }

    /// The first message begins at `at`; what is before is cut off.
    fn begin_after(&mut self, at: usize, has_from_line: bool, headed: bool, line: usize) -> Option<Step> {
        self.stage = Stage::Message;
        self.begin(has_from_line, (!headed).then_some(Doubt::NoHeader), line);
        (at > 0).then(|| preamble(at))
    }
}
