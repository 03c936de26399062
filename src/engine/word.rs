//! Where tokens leave the tokenizer, and the rule that makes a word of the text a token.

use super::options::Options;

/// The way out for tokens: puts prefix and word together in one reused buffer.
pub(super) struct Emit<'a> {
    sink: &'a mut dyn FnMut(&[u8], bool),
    buffer: Vec<u8>,
    /// The tokens that come now are Unicode strings in the original. It shows in the evidence and nowhere else.
    pub(super) unicode: bool,
}

impl<'a> Emit<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(&[u8], bool), buffer: Vec<u8>) -> Self {
        Emit { sink, buffer, unicode: false }
    }

    /// Gives the buffer back, so that the next message need not allocate it.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    pub(super) fn whole(&mut self, token: &[u8]) {
        (self.sink)(token, self.unicode);
    }

    /// A token made of several pieces.
    pub(super) fn joined(&mut self, pieces: &[&[u8]]) {
        self.buffer.clear();
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
        }
        (self.sink)(&self.buffer, self.unicode);
    }

    /// A token made of several pieces, the last of which is put into lower case.
    pub(super) fn lowered(&mut self, pieces: &[&[u8]], last: &[u8]) {
        self.buffer.clear();
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(last);
        if let Some(tail) = self.buffer.get_mut(start..) {
            tail.make_ascii_lowercase();
        }
        (self.sink)(&self.buffer, self.unicode);
    }
}

/// The token or tokens of one word; `prefix` goes before each.
pub(super) fn word(prefix: &[u8], word: &[u8], options: &Options, emit: &mut Emit<'_>) {
    let n = word.len();
    if n < 3 {
        return;
    }
    if n <= options.skip_max_word_size {
        if prefix.is_empty() {
            emit.whole(word);
        } else {
            emit.joined(&[prefix, word]);
        }
        return;
    }
    if n < 40 && memchr::memchr(b'.', word).is_some() {
        let mut signs = memchr::memchr_iter(b'@', word);
        if let (Some(at), None) = (signs.next(), signs.next()) {
            emit.joined(&[prefix, b"email name:", &word[..at]]);
            emit.joined(&[prefix, b"email addr:", &word[at + 1..]]);
            return;
        }
    }
    if options.generate_long_skips {
        emit.joined(&[prefix, b"skip:", &word[..1], b" ", (n / 10 * 10).to_string().as_bytes()]);
    }
    let high = word.iter().filter(|byte| !byte.is_ascii()).count();
    if high > 0 {
        // 100 * high / n to the nearest whole number, halves up.
        let percent = (200 * high as u128 + n as u128) / (2 * n as u128);
        emit.joined(&[prefix, b"8bit%:", percent.to_string().as_bytes()]);
    }
}

/// White space as the rules know it: ASCII only, with vertical tab.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

/// A word character as the rules know it: ASCII letters, digits and the underscore.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `text` without white space at both ends.
pub(super) fn strip(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len());
    strip_end(&text[start..])
}

/// `text` without white space at its end.
pub(super) fn strip_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
    &text[..end]
}

/// The logarithm of `n` to base 2, rounded to the nearest whole number. Never a tie: the square root of 2 is irrational.
pub(super) fn rounded_log2(n: usize) -> u32 {
    let n = n.max(1) as u128;
    let floor = n.ilog2();
    if n * n > 1 << (2 * floor + 1) { floor + 1 } else { floor }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        let mut sink = |token: &[u8], _| all.push(String::from_utf8_lossy(token).into_owned());
        word(b"", text, &Options::default(), &mut Emit::new(&mut sink, Vec::new()));
        all
    }

    #[test]
    fn word_rule() {
        assert!(tokens(b"ab").is_empty());
        assert_eq!(tokens(b"abc"), ["abc"]);
        assert_eq!(tokens(b"abcdefghijkl"), ["abcdefghijkl"]);
        assert_eq!(tokens(b"abcdefghijklm"), ["skip:a 10"]);
        assert_eq!(tokens(b"bob@example.org"), ["email name:bob", "email addr:example.org"]);
        assert_eq!(tokens(b"bob@ex@mple.org"), ["skip:b 10"]);
        assert_eq!(tokens(b"bob@exampledotorg"), ["skip:b 10"]);
        assert_eq!(tokens("ééééééééb".as_bytes())[1], "8bit%:94");
        assert_eq!(tokens(b"\xe9aaaaaaaaaaaaaaa")[1], "8bit%:6");
        assert_eq!(tokens(b"\xe9aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")[1], "8bit%:3");
    }

    #[test]
    fn logarithm() {
        let all: Vec<u32> = [1, 2, 3, 5, 6, 11, 12, 22, 23].into_iter().map(rounded_log2).collect();
        assert_eq!(all, [0, 1, 2, 2, 3, 3, 4, 4, 5]);
        assert_eq!(rounded_log2(usize::MAX), 64);
    }
}
