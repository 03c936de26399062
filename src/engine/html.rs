//! What the body rules call HTML: a few patterns looked for in every text part, whatever its type.
//!
//! All text here is in lower case already. Each pass works on the output of the one before it.

use super::word::{Emit, is_space, is_word};

/// Gives `virus:` tokens for scripts, frames, attached sources and zero sizes.
pub(super) fn virus_clues(text: &[u8], emit: &mut Emit<'_>) {
    for at in memchr::memchr2_iter(b'<', b'=', text) {
        let found = if text[at] == b'<' { active_tag(text, at) } else { attribute(text, at) };
        if let Some(clue) = found {
            emit.joined(&[b"virus:", clue]);
        }
    }
}

/// `<script` or `<iframe`, with a slash and blanks allowed.
fn active_tag(text: &[u8], start: usize) -> Option<&[u8]> {
    let mut at = start + 1;
    if text.get(at) == Some(&b'/') {
        at += 1;
    }
    at = skip_space(text, at);
    let rest = &text[at..];
    if !rest.starts_with(b"script") && !rest.starts_with(b"iframe") || rest.get(6).is_some_and(|&byte| is_word(byte)) {
        return None;
    }
    text.get(start..at + 6)
}

/// `src="cid:`, `height="0` or `width="0`, with either quote or none.
fn attribute(text: &[u8], equals: usize) -> Option<&[u8]> {
    let before = &text[..equals];
    let (name, value) = [(&b"src"[..], &b"cid:"[..]), (b"height", b"0"), (b"width", b"0")]
        .into_iter()
        .find(|(name, _)| before.ends_with(name))?;
    let start = equals - name.len();
    if start > 0 && is_word(text[start - 1]) {
        return None;
    }
    let quote = usize::from(matches!(text.get(equals + 1), Some(b'"' | b'\'')));
    let at = equals + 1 + quote;
    text[at..].starts_with(value).then(|| &text[start..at + value.len()])
}

/// A pass that removes regions: finds where one begins, first and behind, and where it ends.
pub(super) struct Region {
    /// Given the place of a `<`, the end of the opening that begins there.
    open: fn(&[u8], usize) -> Opening,
    /// The place behind the closing that follows.
    close: fn(&[u8], usize) -> Option<usize>,
}

enum Opening {
    No,
    Ends(usize),
    /// There is none here and cannot be one behind either.
    Never,
}

/// Style sheets, comments, and what is for browsers without frames.
pub(super) const REGIONS: [Region; 3] = [
    Region { open: open_style, close: close_style },
    Region { open: open_comment, close: close_comment },
    Region { open: open_noframes, close: close_noframes },
];

impl Region {
    /// Removes the regions: what is left goes to `out`. False if there is none, and `out` is then empty.
    pub(super) fn remove(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let mut kept = 0;
        let mut from = 0;
        while let Some(found) = memchr::memchr(b'<', &text[from..]) {
            let start = from + found;
            match (self.open)(text, start) {
                Opening::No => from = start + 1,
                Opening::Never => break,
                Opening::Ends(end) => {
                    // Without an end the region stays, and so does every later one.
                    let Some(end) = (self.close)(text, end) else { break };
                    out.extend_from_slice(&text[kept..start]);
                    kept = end;
                    from = end;
                }
            }
        }
        if kept > 0 {
            out.extend_from_slice(&text[kept..]);
        }
        kept > 0
    }
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|&byte| is_space(byte)) {
        at += 1;
    }
    at
}

/// The place behind `name` if it follows the `<` at `start`, blanks between them allowed.
fn tag(text: &[u8], start: usize, name: &[u8]) -> Option<usize> {
    let at = skip_space(text, start + 1);
    text[at..].starts_with(name).then_some(at + name.len())
}

fn to_bracket(text: &[u8], at: usize) -> Opening {
    match memchr::memchr(b'>', &text[at..]) {
        Some(end) => Opening::Ends(at + end + 1),
        None => Opening::Never,
    }
}

fn find(text: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    memchr::memmem::find(&text[from..], what).map(|at| from + at)
}

fn open_style(text: &[u8], start: usize) -> Opening {
    match tag(text, start, b"style") {
        Some(at) if !text.get(at).is_some_and(|&byte| is_word(byte)) => to_bracket(text, at),
        _ => Opening::No,
    }
}

fn close_style(text: &[u8], from: usize) -> Option<usize> {
    find(text, from, b"</style>").map(|at| at + 8)
}

fn open_comment(text: &[u8], start: usize) -> Opening {
    if text[start..].starts_with(b"<!--") {
        return Opening::Ends(start + 4);
    }
    match tag(text, start, b"comment") {
        // `Never` is right although one of the other kind needs no bracket to begin: it needs one to end.
        Some(at) => to_bracket(text, at),
        None => Opening::No,
    }
}

fn close_comment(text: &[u8], from: usize) -> Option<usize> {
    let rest = &text[from..];
    memchr::memchr_iter(b'>', rest)
        .find(|&at| rest[..at].ends_with(b"--") || rest[..at].ends_with(b"</comment"))
        .map(|at| from + at + 1)
}

fn open_noframes(text: &[u8], start: usize) -> Opening {
    match tag(text, start, b"noframes").map(|at| skip_space(text, at)) {
        Some(at) if text.get(at) == Some(&b'>') => Opening::Ends(at + 1),
        _ => Opening::No,
    }
}

fn close_noframes(text: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = skip_space(text, find(text, from, b"</noframes")? + 10);
        if text.get(at) == Some(&b'>') {
            return Some(at + 1);
        }
        from = at;
    }
}

/// Puts a space for `&nbsp;`, `<p>` and `<br>`: the result goes to `out`. False if there is none of them.
pub(super) fn break_words(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut kept = 0;
    for at in memchr::memchr2_iter(b'<', b'&', text) {
        let rest = &text[at..];
        if let Some(entity) = [&b"&nbsp;"[..], b"<p>", b"<br>"].into_iter().find(|entity| rest.starts_with(entity)) {
            out.extend_from_slice(&text[kept..at]);
            out.push(b' ');
            kept = at + entity.len();
        }
    }
    if kept > 0 {
        out.extend_from_slice(&text[kept..]);
    }
    kept > 0
}

/// The longest tag that is removed has so many bytes between its brackets.
const LONGEST_TAG: usize = 256;

/// Removes tags, so that the words around one join: what is left goes to `out`. False if there is none.
pub(super) fn remove_tags(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut kept = 0;
    let mut from = 0;
    // The first closing bracket at or behind the last place where one was looked for.
    let mut bracket = 0;
    while let Some(found) = memchr::memchr(b'<', &text[from..]) {
        let start = from + found;
        from = start + 1;
        match text.get(from) {
            None => break,
            Some(&byte) if is_space(byte) || matches!(byte, b'<' | b'>') => continue,
            Some(_) => {}
        }
        if bracket < from {
            match memchr::memchr(b'>', &text[from..]) {
                Some(at) => bracket = from + at,
                None => break,
            }
        }
        if bracket - from <= LONGEST_TAG {
            out.extend_from_slice(&text[kept..start]);
            kept = bracket + 1;
            from = kept;
        }
    }
    if kept > 0 {
        out.extend_from_slice(&text[kept..]);
    }
    kept > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virus(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        let mut sink = |token: &[u8], _| all.push(String::from_utf8_lossy(&token[6..]).into_owned());
        virus_clues(text.as_bytes(), &mut Emit::new(&mut sink, Vec::new()));
        all
    }

    fn removed(region: usize, text: &str) -> String {
        let mut out = Vec::new();
        if REGIONS[region].remove(text.as_bytes(), &mut out) {
            String::from_utf8(out).unwrap()
        } else {
            text.to_owned()
        }
    }

    fn untagged(text: &str) -> String {
        let mut out = Vec::new();
        if remove_tags(text.as_bytes(), &mut out) { String::from_utf8(out).unwrap() } else { text.to_owned() }
    }

    #[test]
    fn clues() {
        assert_eq!(virus("<script> </ script x <scripts </iframe"), ["<script", "</ script", "</iframe"]);
        assert_eq!(
            virus("src=cid:1 src='cid:2 xsrc=cid: width=\"0 height=01"),
            ["src=cid:", "src='cid:", "width=\"0", "height=0"]
        );
    }

    #[test]
    fn regions() {
        assert_eq!(removed(0, "a< style x>b</style>c<style>d"), "ac<style>d");
        assert_eq!(removed(0, "a<styles>b</style>c"), "a<styles>b</style>c");
        assert_eq!(removed(1, "fr<!--x-->ee<commentary>y</comment>!"), "free!");
        assert_eq!(removed(1, "a<comment<!--x-->b"), "a<comment<!--x-->b", "the tag takes the bracket of the end mark");
        assert_eq!(removed(1, "a<comment<!--x--b"), "a<comment<!--x--b");
        assert_eq!(removed(1, "a<!-->b-->c"), "ac");
        assert_eq!(removed(2, "a<noframes >b</noframes x</noframes\n>c"), "ac");
    }

    #[test]
    fn tags() {
        assert_eq!(untagged("a<b>c</b>d < e> <> <<f>"), "acd < e> <> <");
        let long = format!("a<{}>b", "x".repeat(256));
        assert_eq!(untagged(&long), "ab");
        let longer = format!("a<{}>b", "x".repeat(257));
        assert_eq!(untagged(&longer), longer);
        assert_eq!(untagged("a<b"), "a<b");
    }
}
