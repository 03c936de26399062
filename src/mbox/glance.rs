//! A quick look over a header: does any of its lines matter to anybody? Nearly all headers can be told from here to hold
//! no Content-Length, no multipart type and nothing the caller watches for, and need not be read line by line.

use memchr::memchr_iter;

/// What is looked for besides what the splitter itself has to know.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Vec<Vec<u8>>);

/// What a glance told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Glance {
    /// A line may hold Content-Length or a multipart type: the header has to be read.
    pub(super) matters: bool,
    /// A line begins with a watched name.
    pub(super) watched: bool,
}

impl Watch {
    pub(super) fn new(names: &[&str]) -> Watch {
        Watch(names.iter().map(|name| name.to_ascii_lowercase().into_bytes()).collect())
    }

    /// Looks over the message that `text` starts with; `first` is the length of its From_ line. Lines down to the first
    /// empty one are taken for the header, which may be more than belongs to it, but never less.
    pub(super) fn glance(&self, text: &[u8], first: usize) -> Glance {
        // Where there is no header, the From_ line's own line end is the first half of the empty line.
        let start = first.saturating_sub(1);
        let mut glance = Glance::default();
        if first == 0 {
            self.line(text, &mut glance);
        }
        for at in memchr_iter(b'\n', &text[start..]) {
            let rest = &text[start + at + 1..];
            if let [b'\n', ..] | [b'\r', b'\n', ..] = rest {
                break;
            }
            self.line(rest, &mut glance);
        }
        glance
    }

    fn line(&self, rest: &[u8], glance: &mut Glance) {
        if let Some(b'c' | b'C') = rest.first()
            && let Some(rest) = without(rest, b"content-")
        {
            glance.matters |=
                without(rest, b"length").is_some() || without(rest, b"type").is_some_and(may_be_multipart);
        }
        glance.watched |= self.0.iter().any(|name| without(rest, name).is_some());
    }
}

/// What follows `name`, which is in lower case, if `text` begins with it in any case.
fn without<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(name.len())?;
    // The first letter alone decides nearly always.
    (start.first().map(u8::to_ascii_lowercase) == name.first().copied() && start.eq_ignore_ascii_case(name))
        .then_some(rest)
}

/// Whether the rest of a Content-Type line may name a multipart type. Only what is plainly a text is known not to.
fn may_be_multipart(rest: &[u8]) -> bool {
    let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    value.is_none_or(|value| without(value, b"text/").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (bool, bool) {
        let watch = Watch::new(&["X-Mine-", "Junk"]);
        let first = if text.starts_with("From ") { text.find('\n').map_or(text.len(), |lf| lf + 1) } else { 0 };
        let Glance { matters, watched } = watch.glance(text.as_bytes(), first);
        (matters, watched)
    }

    #[test]
    fn what_matters_is_seen_down_to_the_first_empty_line() {
        for (text, want) in [
            ("From a\nA: 1\n\nContent-Length: 1\nx-mine-a: 1\n", (false, false)),
            ("From a\n\nContent-Length: 1\n", (false, false)),
            ("From a\r\n\r\nContent-Length: 1\r\n", (false, false)),
            ("From a\nA: 1\r\n\r\nContent-Length: 1\n", (false, false)),
            ("From a\ncontent-LENGTH : 1\n\n", (true, false)),
            ("Content-Length: 1", (true, false)),
            ("From a\nContent-Type: text/plain\n\n", (false, false)),
            ("From a\nContent-Type: TEXT/html\nX-MINE-x: 1\n\n", (false, true)),
            ("From a\nContent-type:multipart/mixed\n\n", (true, false)),
            ("From a\nContent-Type:\n multipart/mixed\n\n", (true, false)),
            ("From a\nContent-Type : multipart/mixed\n\n", (true, false)),
            ("From a\nnot a field\njunk: 1\n\n", (false, true)),
            ("X-Mine-: 1", (false, true)),
            ("", (false, false)),
            ("From a", (false, false)),
            ("From a\n", (false, false)),
        ] {
            assert_eq!(told(text), want, "{text:?}");
        }
    }
}
