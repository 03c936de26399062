//! Address lists of header fields, read the way Python 2's email package reads them, mistakes included.

/// Display name and address; either may be empty.
pub(super) type Address = (Vec<u8>, Vec<u8>);

/// Reads a list of addresses. Every address, and every stretch of text that is none, gives one entry.
pub(super) fn parse(field: &[u8]) -> Vec<Address> {
    let mut reader = Reader { field, at: 0, comments: Vec::new() };
    let mut list = Vec::new();
    while reader.at < field.len() {
        let before = list.len();
        reader.address(&mut list);
        if list.len() == before {
            list.push(Address::default());
        }
    }
    list
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

const fn is_folding(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'@' | b',' | b':' | b';' | b'.' | b'"' | b'[' | b']')
}

const fn ends_atom(byte: u8) -> bool {
    is_special(byte) || is_folding(byte)
}

const fn ends_phrase_atom(byte: u8) -> bool {
    ends_atom(byte) && byte != b'.'
}

struct Reader<'a> {
    field: &'a [u8],
    at: usize,
    /// The comments of the address that is being read.
    comments: Vec<Vec<u8>>,
}

impl Reader<'_> {
    fn here(&self) -> Option<u8> {
        self.field.get(self.at).copied()
    }

    /// Reads one address, or one group with all its addresses. Groups inside groups are counted, not recursed into.
    fn address(&mut self, list: &mut Vec<Address>) {
        let mut groups = 0_usize;
        loop {
            if self.simple_address(list) {
                groups += 1;
            } else {
                self.separator();
            }
            loop {
                if groups == 0 {
                    return;
                }
                if self.at < self.field.len() {
                    self.skip();
                    if self.here() != Some(b';') {
                        // At the end of the input the original reads one more address, which is none.
                        break;
                    }
                    self.at += 1;
                }
                groups -= 1;
                self.separator();
            }
        }
    }

    /// Reads one address up to the separator behind it. True if it turned out to be the head of a group.
    fn simple_address(&mut self, list: &mut Vec<Address>) -> bool {
        self.comments.clear();
        self.skip();
        let start = self.at;
        let phrase = self.phrase();
        self.skip();
        match self.here() {
            Some(b'.' | b'@') => {
                // Not a phrase after all. Comments on the way are taken a second time.
                self.at = start;
                let spec = self.addr_spec();
                list.push((self.comments.join(&b' '), spec));
            }
            Some(b':') => {
                self.at += 1;
                return true;
            }
            Some(b'<') => {
                let spec = self.route_address();
                let mut name = phrase.join(&b' ');
                if !self.comments.is_empty() {
                    name.extend_from_slice(b" (");
                    name.extend_from_slice(&self.comments.join(&b' '));
                    name.push(b')');
                }
                list.push((name, spec));
            }
            other => match phrase.into_iter().next() {
                Some(word) => list.push((self.comments.join(&b' '), word)),
                None if other.is_some_and(is_special) => self.at += 1,
                None => {}
            },
        }
        false
    }

    fn separator(&mut self) {
        self.skip();
        if self.here() == Some(b',') {
            self.at += 1;
        }
    }

    /// Goes past white space and comments.
    fn skip(&mut self) {
        while let Some(byte) = self.here() {
            if is_folding(byte) {
                self.at += 1;
            } else if byte == b'(' {
                self.comment();
            } else {
                break;
            }
        }
    }

    fn comment(&mut self) {
        let comment = self.delimited(b')', true);
        self.comments.push(comment);
    }

    /// Reads from an opening delimiter to the closing one or a carriage return. Comments nest; the text of an inner
    /// one is a part of the outer one's.
    fn delimited(&mut self, close: u8, nests: bool) -> Vec<u8> {
        let mut text = Vec::new();
        let mut depth = 1_usize;
        self.at += 1;
        while let Some(byte) = self.here() {
            self.at += 1;
            if byte == close || byte == b'\r' {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            } else if nests && byte == b'(' {
                depth += 1;
            } else if byte == b'\\' {
                text.extend(self.here());
                self.at += 1;
            } else {
                text.push(byte);
            }
        }
        self.at = self.at.min(self.field.len());
        text
    }

    fn atom(&mut self, ends: fn(u8) -> bool) -> Vec<u8> {
        let rest = self.field.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&byte| ends(byte)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_vec()
    }

    fn phrase(&mut self) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        while let Some(byte) = self.here() {
            if is_folding(byte) {
                self.at += 1;
            } else if byte == b'"' {
                words.push(self.delimited(b'"', false));
            } else if byte == b'(' {
                self.comment();
            } else if ends_phrase_atom(byte) {
                break;
            } else {
                words.push(self.atom(ends_phrase_atom));
            }
        }
        words
    }

    /// `<...>`: a route, which is dropped, and an addr-spec.
    fn route_address(&mut self) -> Vec<u8> {
        let mut route = false;
        self.at += 1;
        self.skip();
        while let Some(byte) = self.here() {
            if route {
                self.domain();
                route = false;
            } else if byte == b'>' {
                self.at += 1;
                break;
            } else if byte == b'@' {
                self.at += 1;
                route = true;
            } else if byte == b':' {
                self.at += 1;
            } else {
                let spec = self.addr_spec();
                self.at = (self.at + 1).min(self.field.len());
                return spec;
            }
            self.skip();
        }
        Vec::new()
    }

    fn addr_spec(&mut self) -> Vec<u8> {
        let mut spec = Vec::new();
        self.skip();
        while let Some(byte) = self.here() {
            if byte == b'.' {
                spec.push(b'.');
                self.at += 1;
            } else if byte == b'"' {
                spec.push(b'"');
                for byte in self.delimited(b'"', false) {
                    if matches!(byte, b'"' | b'\\') {
                        spec.push(b'\\');
                    }
                    spec.push(byte);
                }
                spec.push(b'"');
            } else if ends_atom(byte) {
                break;
            } else {
                spec.extend(self.atom(ends_atom));
            }
            self.skip();
        }
        if self.here() != Some(b'@') {
            return spec;
        }
        spec.push(b'@');
        self.at += 1;
        self.skip();
        let domain = self.domain();
        if domain.is_empty() {
            return domain;
        }
        spec.extend(domain);
        spec
    }

    fn domain(&mut self) -> Vec<u8> {
        let mut domain = Vec::new();
        while let Some(byte) = self.here() {
            if is_blank(byte) {
                self.at += 1;
            } else if byte == b'(' {
                self.comment();
            } else if byte == b'[' {
                domain.push(b'[');
                domain.extend(self.delimited(b']', false));
                domain.push(b']');
            } else if byte == b'.' {
                self.at += 1;
                domain.push(b'.');
            } else if byte == b'@' {
                return Vec::new();
            } else if ends_atom(byte) {
                break;
            } else {
                domain.extend(self.atom(ends_atom));
            }
        }
        domain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(field: &str) -> Vec<(String, String)> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        parse(field.as_bytes()).into_iter().map(|(name, spec)| (text(name), text(spec))).collect()
    }

    fn one(name: &str, spec: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), spec.to_owned())]
    }

    #[test]
    fn usual_forms() {
        assert_eq!(list("Bob B. <bob@example.org>"), one("Bob B.", "bob@example.org"));
        assert_eq!(list("bob@example.org (Bob)"), one("Bob", "bob@example.org"));
        assert_eq!(list("\"a, b\" <c@d>"), one("a, b", "c@d"));
        let pieces = ["", "@b", "c@d"].map(|spec| (if spec.is_empty() { "x" } else { "" }.to_owned(), spec.to_owned()));
        assert_eq!(list("x <@a,@b:c@d>"), pieces, "a comma ends a route");
        assert_eq!(list("x <@a:c@d>"), one("x", "c@d"));
        assert_eq!(list("a: b@c, d@e;, f@g").len(), 3);
    }

    #[test]
    fn odd_forms() {
        assert_eq!(list("undisclosed recipients"), one("", "undisclosed"));
        assert_eq!(list("a@b@c").first(), one("", "").first());
        assert_eq!(list(";"), one("", ""));
        assert_eq!(list("a (x(y)z) <b@c> "), one("a (xyz)", "b@c"));
        assert_eq!(list("(c)a@b"), one("c", "a@b"));
        assert_eq!(list("a(c).b@d"), one("c c", "a.b@d"));
    }
}
