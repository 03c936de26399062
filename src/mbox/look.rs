//! Is a line that starts `From ` the beginning of a message? (spec: mbox, section 1)
//!
//! A [`Look`] walks over the candidate line and the header fields below it, line by line, and stops as soon as the rule is
//! decided. It remembers how far it got, so that input which comes byte by byte is still looked at once only.

use super::{FromRule, LOOKAHEAD, Rules, fields, from_line};

/// What stands before the candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// An empty line, or what counts as one: the start of the file, the end of a believed Content-Length, `-e`.
    pub(super) empty: bool,
    /// The From_ line of the message before, which would be empty then.
    pub(super) from_line: bool,
    /// No message yet.
    pub(super) start: bool,
    /// Nothing but a byte order mark and empty lines.
    pub(super) first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More bytes are needed.
    Pending,
    /// Text.
    No,
    /// A message begins here; whether a header field follows the line, and how long the line is, with its end.
    Yes { headed: bool, line: usize },
}

/// A look at one candidate; see the module's text.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Start of the line being read, from the candidate.
    at: usize,
    /// Bytes of that line known to hold no line end.
    searched: usize,
    /// Length of the candidate line, once read; 0 for a look at a header without one.
    line: Option<usize>,
    dated: bool,
    fields: u32,
    usual: bool,
    /// The last field was one that counts for nothing.
    in_verdict: bool,
    known: u32,
    headed: bool,
    /// Nothing that comes can add to what is known.
    over: bool,
}

impl Look {
    /// A look at header fields that have no From_ line before them.
    pub(super) fn at_header() -> Self {
        Self { line: Some(0), ..Self::default() }
    }

    /// Goes on looking. `text` starts at the candidate; `eof` says that no more will come.
    pub(super) fn verdict(
        &mut self,
        text: &[u8],
        eof: bool,
        rules: &Rules,
        context: Context,
        lookahead: usize,
    ) -> Verdict {
        debug_assert!(lookahead <= LOOKAHEAD);
        let ended = eof || text.len() >= lookahead;
        let text = &text[..text.len().min(lookahead)];
        let line = match self.line {
            Some(line) => line,
            None => {
                let Some((line, whole)) = self.next_line(text, ended) else { return Verdict::Pending };
                if !whole && text.len() >= lookahead {
                    return Verdict::No;
                }
                if matches!(rules.from_rule, FromRule::Auto | FromRule::Strict) {
                    if fields::name(line).is_some() {
                        return Verdict::No; // `From : alice`, a field of old
                    }
                    self.dated = from_line::is_dated(line);
                } else if rules.from_rule == FromRule::Formail && !context.first && !has_two_words(line) {
                    return Verdict::No;
                }
                let length = line.len();
                self.at = length;
                *self.line.insert(length)
            }
        };
        let need = Need::new(rules, context, self.dated);
        if !need.possible {
            return Verdict::No;
        }
        if !self.walk(text, ended, need.usual, need.known > 0, |look| need.decided(look)) {
            return Verdict::Pending;
        }
        if need.met(self) { Verdict::Yes { headed: self.headed, line } } else { Verdict::No }
    }

    /// The verdict on a header without From_ line: does it hold fields, and a usual one?
    pub(super) fn header_verdict(&mut self, text: &[u8], eof: bool, lookahead: usize) -> Verdict {
        let ended = eof || text.len() >= lookahead;
        let text = &text[..text.len().min(lookahead)];
        if !self.walk(text, ended, true, false, |look| look.usual) {
            return Verdict::Pending;
        }
        if self.usual { Verdict::Yes { headed: true, line: 0 } } else { Verdict::No }
    }

    /// Reads header lines until they end or `decided` says so; false if more bytes are needed for that.
    fn walk(&mut self, text: &[u8], ended: bool, usual: bool, known: bool, decided: impl Fn(&Self) -> bool) -> bool {
        while !self.over && !decided(self) {
            match self.next_line(text, ended) {
                Some(([], _)) => self.over = true,
                Some((line, _)) => {
                    self.at += line.len();
                    self.read(line, usual, known);
                }
                None => return false,
            }
        }
        true
    }

    /// The line at `self.at` with its end, and whether it has one; none if that is not known yet.
    fn next_line<'t>(&mut self, text: &'t [u8], ended: bool) -> Option<(&'t [u8], bool)> {
        let rest = &text[self.at..];
        if let Some(n) = memchr::memchr(b'\n', &rest[self.searched..]) {
            let end = self.searched + n + 1;
            self.searched = 0;
            return Some((&rest[..end], true));
        }
        self.searched = rest.len();
        ended.then(|| {
            self.searched = 0;
            (rest, false)
        })
    }

    fn read(&mut self, line: &[u8], usual: bool, known: bool) {
        let name = fields::name(line);
        if name.is_some_and(fields::is_verdict) {
            self.in_verdict = true;
            return;
        }
        let continues = fields::is_continuation(line) && (self.fields > 0 || self.in_verdict);
        if let Some(name) = name {
            self.in_verdict = false;
            self.fields = self.fields.saturating_add(1);
            self.usual |= usual && fields::is_usual(name);
            if known {
                // A field younger than formail ends its count.
                self.over = !fields::is_known_to_formail(name);
                self.known = self.known.saturating_add(u32::from(!self.over));
            }
            self.headed = true;
        } else if !(fields::is_envelope(line) || continues) {
            self.over = true;
        }
    }
}

/// formail wants a sender and at least one word more, whatever they are.
fn has_two_words(line: &[u8]) -> bool {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(2).is_some()
}

/// What must be found below the candidate line.
struct Need {
    possible: bool,
    fields: u32,
    usual: bool,
    known: u32,
}

impl Need {
    fn new(rules: &Rules, context: Context, dated: bool) -> Self {
        let asked = rules.min_fields.filter(|n| *n > 0);
        // What `-m` is for is telling text from messages; before the first message there is no text to be torn.
        let least = if context.start { 0 } else { asked.map_or(0, |n| n - 1) };
        let mut need = Self { possible: true, fields: least, usual: false, known: 0 };
        match rules.from_rule {
            FromRule::Any => {}
            FromRule::Strict => need.possible = dated && context.empty,
            FromRule::Formail => {
                need.possible = context.empty;
                need.fields = 0;
                need.known = if context.first { 0 } else { asked.unwrap_or(2) - 1 };
            }
            FromRule::Auto if dated => {
                if !context.empty && !context.from_line {
                    need.fields = need.fields.max(1);
                }
            }
            FromRule::Auto => {
                need.possible = context.empty;
                need.fields = need.fields.max(2);
                need.usual = true;
            }
        }
        need
    }

    fn met(&self, look: &Look) -> bool {
        look.fields >= self.fields && look.known >= self.known && (look.usual || !self.usual)
    }

    /// At least one line is always read, because its absence is a doubt.
    fn decided(&self, look: &Look) -> bool {
        look.headed && self.met(look)
    }
}
