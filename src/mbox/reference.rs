//! The rule again, the slow and plain way, over a whole file in memory: what the tests hold the splitter against.
//!
//! Nothing is shared with the splitter but the From_ line grammar, the name tables and the names of foreign formats, which
//! have tests of their own.

use super::{Doubt, Format, FromRule, Rules, detect, fields, from_line};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) has_from_line: bool,
    pub(super) doubt: Option<Doubt>,
}

pub(super) struct Reference<'a> {
    pub(super) data: &'a [u8],
    pub(super) rules: Rules,
    pub(super) whole: usize,
    pub(super) lookahead: usize,
}

/// Where a candidate stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the start of the file, but for a byte order mark and empty lines.
    First,
    /// In text before the first message.
    InPreamble,
    AfterEmptyLine,
    UnderFromLine,
    InText,
}

struct Header {
    body: usize,
    fields: Vec<(String, String)>,
}

impl Reference<'_> {
    /// The length of the preamble and the messages.
    pub(super) fn split(&self) -> Result<(usize, Vec<Found>), Format> {
        let data = self.data;
        let mut at = if data.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        while fields::is_empty(self.line(at)) {
            at += self.line(at).len();
        }
        if at == data.len() {
            return Ok((at, vec![]));
        }
        let first = self.line(at);
        if let Some(format) = detect::foreign(&first[..first.len().min(self.lookahead)]) {
            return Err(format);
        }
        let mut begin = None;
        if let Some(headed) = self.begins(at, Place::First) {
            begin = Some((at, true, headed));
        } else if self.names(at, (at + self.lookahead).min(data.len())).iter().any(|n| fields::is_usual(n)) {
            begin = Some((at, false, true));
        } else {
            for start in self.line_starts(at) {
                if start > at && start - 1 < at + self.whole && begin.is_none() {
                    begin = self.begins(start, Place::InPreamble).map(|headed| (start, true, headed));
                }
            }
            let end = begin.map_or(data.len().min(at + self.whole), |b| b.0);
            if begin.is_none() || detect::is_binary(&data[at..end]) {
                return Err(detect::shapeless(&data[at..end]));
            }
        }
        let (start, has_from_line, headed) = begin.unwrap();
        let doubt = if headed { None } else { Some(Doubt::NoHeader) };
        Ok((start, self.messages(Found { start, end: start, has_from_line, doubt })))
    }

    fn messages(&self, mut current: Found) -> Vec<Found> {
        let mut all = vec![];
        for at in self.line_starts(current.start) {
            if at > current.start
                && let Some(doubt) = self.separates(&current, at)
            {
                current.end = at;
                all.push(current);
                current = Found { start: at, end: at, has_from_line: true, doubt };
            }
        }
        current.end = self.data.len();
        all.push(current);
        all
    }

    /// Whether the line at `at` ends the current message, and with what doubt the next one begins.
    fn separates(&self, current: &Found, at: usize) -> Option<Option<Doubt>> {
        if !self.data[at..].starts_with(b"From ") {
            return None;
        }
        let header = self.header(current);
        let claim = self.claimed_end(current, &header);
        let formail = self.rules.from_rule == FromRule::Formail;
        if let Some(end) = claim
            && at < end
            && (formail || self.proved(end))
        {
            return None;
        }
        let before = &self.data[..at];
        let place = if self.rules.anywhere
            || before.ends_with(b"\n\n")
            || (before.ends_with(b"\n\r\n") && !formail)
            || (!formail && claim.is_some_and(|end| self.after_line_ends(end) == Some(at)))
        {
            Place::AfterEmptyLine
        } else if current.has_from_line && current.start + self.line(current.start).len() == at {
            Place::UnderFromLine
        } else {
            Place::InText
        };
        let headed = self.begins(at, place)?;
        let closing = |boundary: String| {
            let body = &self.data[header.body.saturating_sub(1)..at];
            let delimiter = format!("\n--{boundary}--");
            body.windows(delimiter.len()).any(|w| w == delimiter.as_bytes())
        };
        let open = self.boundary(&header).is_some_and(|boundary| !closing(boundary));
        Some(if open {
            Some(Doubt::OpenMimePart)
        } else if headed {
            None
        } else {
            Some(Doubt::NoHeader)
        })
    }

    /// Whether a message begins at `at`, and if so whether a header field follows its From_ line.
    fn begins(&self, at: usize, place: Place) -> Option<bool> {
        let end = (at + self.lookahead).min(self.data.len());
        let line = self.line(at);
        if !line.starts_with(b"From ") || line.len() > self.lookahead {
            return None;
        }
        if line.len() == self.lookahead && !line.ends_with(b"\n") {
            return None;
        }
        let names = self.names(at + line.len(), end);
        let known = names.iter().take_while(|n| fields::is_known_to_formail(n)).count() + 1;
        let usual = names.iter().any(|n| fields::is_usual(n));
        let dated = from_line::is_dated(line);
        let at_start = matches!(place, Place::First | Place::InPreamble);
        let after_empty = at_start || place == Place::AfterEmptyLine;
        let asked = self.rules.min_fields.unwrap_or(0) as usize;
        let enough = at_start || names.len() + 1 >= asked;
        let yes = match self.rules.from_rule {
            FromRule::Any => enough,
            FromRule::Formail => {
                let words = String::from_utf8_lossy(line).split_ascii_whitespace().count();
                let least = if asked == 0 { 2 } else { asked };
                after_empty && (place == Place::First || (words >= 3 && known >= least))
            }
            FromRule::Auto | FromRule::Strict if fields::name(line).is_some() => false,
            FromRule::Strict => enough && dated && after_empty,
            FromRule::Auto if dated => enough && (after_empty || place == Place::UnderFromLine || !names.is_empty()),
            FromRule::Auto => enough && after_empty && names.len() >= 2 && usual,
        };
        yes.then_some(!names.is_empty())
    }

    /// The names of the header fields in lines from `at` on, no further than `end`.
    fn names(&self, at: usize, end: usize) -> Vec<&[u8]> {
        let mut names = vec![];
        for line in self.data[at..end].split_inclusive(|b| *b == b'\n') {
            if let Some(name) = fields::name(line) {
                names.push(name);
            } else if !(fields::is_envelope(line) || (!names.is_empty() && fields::is_continuation(line))) {
                break;
            }
        }
        names.retain(|name| !fields::is_verdict(name));
        names
    }

    fn header(&self, message: &Found) -> Header {
        let end = self.data.len().min(message.start + self.whole);
        let mut at = message.start;
        if message.has_from_line {
            at += self.line(at).len();
        }
        let mut header = Header { body: end, fields: vec![] };
        for line in self.data[at..end].split_inclusive(|b| *b == b'\n') {
            let text = String::from_utf8_lossy(line).into_owned();
            if fields::is_continuation(line) {
                if let Some(last) = header.fields.last_mut() {
                    last.1 += &text;
                }
            } else if let Some(name) = fields::name(line).filter(|_| !line.starts_with(b"From ")) {
                let name = String::from_utf8_lossy(name).to_lowercase();
                header.fields.push((name, text.split_once(':').unwrap().1.to_owned()));
            } else if fields::is_envelope(line) {
                header.fields.push((String::new(), String::new()));
            } else {
                header.body = if fields::is_empty(line) { at + line.len() } else { at };
                break;
            }
            at += line.len();
        }
        header
    }

    /// Where the body ends according to Content-Length, if it is worth a look.
    fn claimed_end(&self, message: &Found, header: &Header) -> Option<usize> {
        let values: Vec<&str> =
            header.fields.iter().filter(|f| f.0 == "content-length").map(|f| f.1.as_str()).collect();
        if self.rules.ignore_content_length {
            return None;
        }
        match self.rules.from_rule {
            FromRule::Any => None,
            FromRule::Formail => {
                let digits = values.first()?.lines().next()?.trim_ascii_start();
                let digits = digits.split(|c: char| !c.is_ascii_digit()).next().filter(|d| !d.is_empty())?;
                Some(header.body.saturating_add(digits.parse().unwrap_or(usize::MAX)))
            }
            FromRule::Auto | FromRule::Strict => {
                let [value] = values[..] else { return None };
                let digits = value.strip_suffix('\n').unwrap_or(value).trim_ascii();
                if value.trim_end_matches('\n').contains('\n') || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                let end = header.body.checked_add(usize::try_from(digits.parse::<u64>().ok()?).ok()?)?;
                (end.checked_add(4)? <= message.start + self.whole).then_some(end)
            }
        }
    }

    fn after_line_ends(&self, mut at: usize) -> Option<usize> {
        for _ in 0..2 {
            let rest = self.data.get(at..)?;
            at += if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
        }
        Some(at)
    }

    fn proved(&self, end: usize) -> bool {
        match self.after_line_ends(end) {
            Some(at) if at == self.data.len() => true,
            Some(at) => self.data[at - 1] == b'\n' && self.begins(at, Place::AfterEmptyLine).is_some(),
            None => false,
        }
    }

    fn boundary(&self, header: &Header) -> Option<String> {
        let value = &header.fields.iter().find(|f| f.0 == "content-type")?.1;
        if !value.trim().to_lowercase().starts_with("multipart/") {
            return None;
        }
        let (_, parameters) = value.split_once(';')?;
        let parameter = parameters.split(';').find(|p| p.trim().to_lowercase().starts_with("boundary="))?;
        let value = parameter.trim()["boundary=".len()..].trim();
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?.0,
            None => value.split_ascii_whitespace().next().unwrap_or_default(),
        };
        (!value.is_empty()).then(|| value.to_owned())
    }

    fn line(&self, at: usize) -> &[u8] {
        self.data[at..].split_inclusive(|b| *b == b'\n').next().unwrap_or_default()
    }

    fn line_starts(&self, from: usize) -> impl Iterator<Item = usize> {
        let mut next = from;
        std::iter::from_fn(move || {
            let line = self.line(next);
            let start = next;
            next += line.len();
            (!line.is_empty()).then_some(start)
        })
    }
}
