//! Changes to a message, and the message with them applied.

use std::borrow::Cow;
use std::ops::Range;

use crate::encode::{Encoder, Encoding, Way};

/// Places of a message that are replaced, in their order and without touching each other. Used again after
/// [`clear`](Edits::clear), they need no new memory.
#[derive(Debug, Default)]
pub struct Edits {
    edits: Vec<Edit>,
    /// What comes, of all edits.
    text: Vec<u8>,
}

#[derive(Debug)]
struct Edit {
    /// What goes of the message; empty for an insertion.
    range: Range<usize>,
    /// Where in `text` that stands which comes; empty for a cut.
    text: Range<usize>,
}

impl Edits {
    /// Forgets all and keeps the room.
    pub fn clear(&mut self) {
        self.edits.clear();
        self.text.clear();
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Puts `text` in the place of `range`.
    pub fn replace(&mut self, range: Range<usize>, text: &[u8]) {
        self.put(range, |all| all.extend_from_slice(text));
    }

    /// Puts in at `at` what `write` appends.
    pub fn insert(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.put(at..at, write);
    }

    fn put(&mut self, range: Range<usize>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(&mut self.text);
        let place = self.edits.partition_point(|edit| edit.range.start < range.start);
        self.edits.insert(place, Edit { range, text: start..self.text.len() });
    }

    fn cuts(&self) -> impl Iterator<Item = &Range<usize>> {
        self.edits.iter().filter(|edit| edit.text.is_empty()).map(|edit| &edit.range)
    }

    /// What `bytes` has before `at` once the cuts are made.
    pub(super) fn applied_before<'a>(&self, at: usize, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let bytes = &bytes[..at];
        if self.cuts().next().is_none_or(|cut| cut.start >= at) {
            return bytes.into();
        }
        let mut before = Edits::default();
        let cuts = self.cuts().filter(|cut| cut.start < at);
        cuts.for_each(|cut| before.replace(cut.start..cut.end.min(at), &[]));
        before.applied(bytes).into()
    }

    /// Where the first cut at or behind `at` begins.
    pub(super) fn next_cut(&self, at: usize) -> Option<usize> {
        self.cuts().map(|cut| cut.start).find(|&start| start >= at)
    }

    /// Writes `bytes` with the changes made.
    pub fn apply<W: Way>(&self, bytes: &[u8], out: &mut Encoding<W>) {
        out.reserve(bytes.len() + self.text.len());
        let mut at = 0;
        for edit in &self.edits {
            // An insertion inside a removed range, where a removed field reaches over the end of the header block.
            if edit.range.start > at {
                out.bytes(&bytes[at..edit.range.start]);
            }
            out.bytes(&self.text[edit.text.clone()]);
            at = at.max(edit.range.end);
        }
        out.bytes(&bytes[at..]);
    }

    /// `bytes` with the changes made.
    pub fn applied(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Encoder::default();
        self.apply(bytes, &mut out);
        out.into_vec()
    }
}
