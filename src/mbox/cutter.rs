//! From buffered bytes to cuts: the state machine of the splitter, without any input of its own.
//!
//! [`Cutter::poll`] is given the bytes from the start of the next piece on, again and again with more of them, and answers
//! where that piece ends or that it needs more. All positions count from the start of those bytes. Whatever was looked at
//! is remembered, so that the work is linear in the input however it comes.

mod start;

use memchr::memmem;

use super::glance::Watch;
use super::look::{Context, Look, Verdict};
use super::mime::Mime;
use super::{Doubt, Format, FromRule, Part, Rules, fields};

const FROM: &[u8] = b"From ";
/// After a body there may be two line ends, of up to two bytes each, and still its Content-Length is right.
const LINE_ENDS: usize = 4;

/// Sizes in bytes, which the tests make small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Largest message that comes whole.
    pub(super) whole: usize,
    /// How far one candidate is looked at.
    pub(super) lookahead: usize,
    /// Least size of a middle part.
    pub(super) middle: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) len: usize,
    pub(super) part: Part,
    pub(super) has_from_line: bool,
    pub(super) doubt: Option<Doubt>,
    pub(super) watched: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// More input is needed, or its end.
    More,
    Cut(Cut),
    /// Everything has been cut.
    End,
    Refuse(Format),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Byte order mark and empty lines; `pos` is where they end so far.
    Blank,
    /// The first line that holds something.
    FirstLine,
    /// It starts `From `.
    FirstFrom,
    /// Does the file start with a header?
    FirstHeader,
    /// Text before the first From_ line.
    Text,
    Message,
    End,
}

/// What Content-Length claims about where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    None,
    /// Nobody has looked whether a message begins there.
    Unproved(usize),
    Proved(usize),
    /// formail's way.
    Blind(usize),
}

#[derive(Debug)]
pub(super) struct Cutter {
    rules: Rules,
    limits: Limits,
    finder: memmem::Finder<'static>,
    pub(super) watch: Watch,
    stage: Stage,
    pos: usize,
    /// The next line end to look behind.
    scan: usize,
    look: Option<Look>,
    proof: Option<Look>,
    message: Message,
}

/// The message being cut.
#[derive(Debug)]
struct Message {
    has_from_line: bool,
    doubt: Option<Doubt>,
    /// Length of its From_ line.
    line: usize,
    /// Its first part has been cut off.
    large: bool,
    /// The last bytes cut off: they tell what line a candidate at the start of the next part follows.
    before: [u8; 3],
    header_read: bool,
    /// A line of the header begins with a watched name, or nobody has looked.
    watched: bool,
    claim: Claim,
    mime: Mime,
}

impl Cutter {
    pub(super) fn new(rules: Rules, limits: Limits) -> Self {
        Self {
            rules,
            limits,
            finder: memmem::Finder::new(b"\nFrom "),
            watch: Watch::default(),
            stage: Stage::Blank,
            pos: 0,
            scan: 0,
            look: None,
            proof: None,
            message: Message {
                has_from_line: false,
                doubt: None,
                line: 0,
                large: false,
                before: [0; 3],
                header_read: false,
                watched: true,
                claim: Claim::None,
                mime: Mime::default(),
            },
        }
    }

    /// Where does the next piece end? `buf` starts where the last one ended; `eof` says that nothing comes after it.
    pub(super) fn poll(&mut self, buf: &[u8], eof: bool) -> Step {
        loop {
            let step = match self.stage {
                Stage::Blank => self.blank(buf, eof),
                Stage::FirstLine => self.first_line(buf, eof),
                Stage::FirstFrom => self.first_from(buf, eof),
                Stage::FirstHeader => self.first_header(buf, eof),
                Stage::Text => self.text(buf, eof),
                Stage::Message => Some(self.message(buf, eof)),
                Stage::End => Some(Step::End),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn begin(&mut self, has_from_line: bool, doubt: Option<Doubt>, line: usize) {
        self.look = None;
        self.proof = None;
        // The line end of the From_ line may be the one before the next From_ line.
        self.scan = line.saturating_sub(1);
        let message = &mut self.message;
        (message.has_from_line, message.doubt, message.line) = (has_from_line, doubt, line);
        (message.large, message.before, message.header_read, message.watched) = (false, [0; 3], false, true);
        message.claim = Claim::None;
        message.mime.reset();
    }

    fn message(&mut self, buf: &[u8], eof: bool) -> Step {
        let whole = self.limits.whole;
        loop {
            let found = self.look.is_some() || self.find(buf, eof);
            if !self.message.large && self.scan >= whole && buf.len() > whole {
                self.read_header(&buf[..whole]);
                return self.cut_off(buf, whole, Part::First);
            }
            if !found {
                return self.without_candidate(buf, eof);
            }
            let at = self.scan + 1;
            self.read_header(&buf[..at]);
            if let Claim::Proved(end) | Claim::Blind(end) = self.message.claim
                && at < end
            {
                self.look = None;
                self.scan = end - 1;
                continue;
            }
            let context = self.context(buf, at);
            let (headed, line) = match self.look_at(buf, at, eof, context) {
                Verdict::Pending => return Step::More,
                Verdict::No => {
                    self.look = None;
                    self.scan += 1;
                    continue;
                }
                Verdict::Yes { headed, line } => (headed, line),
            };
            if let Claim::Unproved(end) = self.message.claim
                && at < end
            {
                self.message.claim = match self.prove(buf, end, eof) {
                    None => return Step::More,
                    Some(true) => Claim::Proved(end),
                    Some(false) => Claim::None,
                };
                continue;
            }
            let doubt = if self.message.mime.is_open(&buf[..at]) {
                Some(Doubt::OpenMimePart)
            } else {
                (!headed).then_some(Doubt::NoHeader)
            };
            let cut = self.cut(at, if self.message.large { Part::Last } else { Part::Message });
            self.begin(true, doubt, line);
            return cut;
        }
    }

    fn without_candidate(&mut self, buf: &[u8], eof: bool) -> Step {
        if eof {
            self.stage = Stage::End;
            return self.cut(buf.len(), if self.message.large { Part::Last } else { Part::Message });
        }
        // At least one byte is kept back, so that there is a last part.
        let free = self.scan.min(buf.len().saturating_sub(1));
        if self.message.large && free >= self.limits.middle {
            return self.cut_off(buf, free, Part::Middle);
        }
        Step::More
    }

    fn cut(&self, len: usize, part: Part) -> Step {
        let doubt = self.message.doubt.filter(|_| matches!(part, Part::Message | Part::First));
        let Message { has_from_line, watched, .. } = self.message;
        Step::Cut(Cut { len, part, has_from_line, doubt, watched })
    }

    /// Cuts a part off a large message that goes on.
    fn cut_off(&mut self, buf: &[u8], len: usize, part: Part) -> Step {
        let message = &mut self.message;
        message.mime.cut_off(&buf[..len]);
        message.large = true;
        for byte in &buf[len.saturating_sub(3)..len] {
            message.before.rotate_left(1);
            message.before[2] = *byte;
        }
        message.claim = match message.claim {
            Claim::Blind(end) if end > len => Claim::Blind(end - len),
            _ => Claim::None,
        };
        self.scan -= len;
        self.cut(len, part)
    }

    /// Finds the next line that starts `From ` from `self.scan` on, and leaves the line end before it there.
    fn find(&mut self, buf: &[u8], eof: bool) -> bool {
        if let Some(n) = buf.get(self.scan..).and_then(|rest| self.finder.find(rest)) {
            self.scan += n;
            return true;
        }
        let undecided = if eof { 0 } else { FROM.len() };
        self.scan = self.scan.max(buf.len().saturating_sub(undecided));
        false
    }

    fn look_at(&mut self, buf: &[u8], at: usize, eof: bool, context: Context) -> Verdict {
        let look = self.look.get_or_insert_default();
        look.verdict(&buf[at..], eof, &self.rules, context, self.limits.lookahead)
    }

    /// Reads the header, once per message; `text` ends at a line that starts `From ` or at the most that may be looked at.
    fn read_header(&mut self, text: &[u8]) {
        let message = &mut self.message;
        if message.header_read {
            return;
        }
        message.header_read = true;
        let glance = self.watch.glance(text, message.line);
        message.watched = glance.watched;
        if !glance.matters {
            return;
        }
        let blindly = self.rules.from_rule == FromRule::Formail;
        let header = fields::header(text, message.line, blindly);
        if let Some(range) = header.boundary {
            message.mime.open(&text[range], header.body);
        }
        let end = header.length.map(|n| usize::try_from(n).unwrap_or(usize::MAX).saturating_add(header.body));
        message.claim = match (end, self.rules.from_rule) {
            (Some(_), _) if self.rules.ignore_content_length => Claim::None,
            (Some(end), FromRule::Formail) => Claim::Blind(end),
            (Some(end), FromRule::Auto | FromRule::Strict) if end.saturating_add(LINE_ENDS) <= self.limits.whole => {
                Claim::Unproved(end)
            }
            _ => Claim::None,
        };
    }

    fn context(&self, buf: &[u8], at: usize) -> Context {
        let message = &self.message;
        let before = |back: usize| at.checked_sub(back).map_or_else(|| message.before[3 + at - back], |n| buf[n]);
        let crlf = before(2) == b'\r' && before(3) == b'\n' && self.rules.from_rule != FromRule::Formail;
        let at_claimed_end = match message.claim {
            Claim::Unproved(end) | Claim::Proved(end) => end <= at && after_line_ends(buf, end) == at,
            Claim::None | Claim::Blind(_) => false,
        };
        Context {
            empty: self.rules.anywhere || before(2) == b'\n' || crlf || at_claimed_end,
            from_line: !message.large && message.has_from_line && at == message.line,
            ..Context::default()
        }
    }

    /// Whether a message, or nothing, begins where Content-Length says that the body ends.
    fn prove(&mut self, buf: &[u8], end: usize, eof: bool) -> Option<bool> {
        if !eof && buf.len() < end + LINE_ENDS + FROM.len() {
            return None;
        }
        if end > buf.len() {
            return Some(false);
        }
        let at = after_line_ends(buf, end);
        if at == buf.len() {
            return Some(true);
        }
        if !buf[at..].starts_with(FROM) || buf[at - 1] != b'\n' {
            return Some(false);
        }
        let context = Context { empty: true, ..Context::default() };
        let look = self.proof.get_or_insert_default();
        match look.verdict(&buf[at..], eof, &self.rules, context, self.limits.lookahead) {
            Verdict::Pending => None,
            verdict => Some(verdict != Verdict::No),
        }
    }
}

/// Skips up to two line ends from `at` on.
fn after_line_ends(buf: &[u8], mut at: usize) -> usize {
    for _ in 0..2 {
        at += match &buf[at..] {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
    }
    at
}
