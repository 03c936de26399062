//! Which messages of the inputs are taken: `--skip`, `--total`, `--shard`.

use std::ops::Range;

use super::item::Place;
use crate::mbox::Piece;

/// Goes through all messages of all inputs in order, and says which are taken.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Messages left out at the beginning.
    skip: u64,
    /// Messages that may still be taken.
    left: u64,
    /// The bytes that messages have to begin in, over all inputs.
    range: Option<Range<u64>>,
    /// Messages seen so far.
    seen: u64,
    /// Where the current input begins, over all inputs.
    base: u64,
}

/// What happens to a message.
pub(super) enum Choice {
    /// It is taken; this is where it stands.
    Take(Place),
    /// It is left out.
    Leave,
    /// It is left out, and so are all that follow.
    Stop,
}

impl Selection {
    /// Leaves out `skip` messages, takes `total` after that, of those that begin in `range`.
    pub(super) fn new(skip: u64, total: Option<u64>, range: Option<Range<u64>>) -> Selection {
        Selection { skip, left: total.unwrap_or(u64::MAX), range, seen: 0, base: 0 }
    }

    /// The same, with this many messages numbered already: mailboxes that are rewritten in place are selected from one
    /// by one, and numbered through.
    pub(super) fn numbered_from(self, seen: u64) -> Selection {
        Selection { seen, ..self }
    }

    /// Whether the text before the first message of an input is taken: it goes with that message, which would begin at
    /// `offset`.
    pub(super) fn takes_preamble(&self, offset: u64) -> bool {
        self.seen >= self.skip && self.left > 0 && self.is_in_range(offset)
    }

    /// Whether nothing of any input has been passed yet.
    pub(super) fn is_at_beginning(&self) -> bool {
        self.base == 0
    }

    /// What happens to the message that `piece`, of input number `file`, is or begins.
    pub(super) fn choose(&mut self, file: usize, piece: &Piece, is_first: bool) -> Choice {
        if self.is_beyond(piece.offset) {
            return Choice::Stop;
        }
        self.seen += 1;
        if self.seen <= self.skip || !self.is_in_range(piece.offset) {
            return Choice::Leave;
        }
        let Some(left) = self.left.checked_sub(1) else { return Choice::Stop };
        self.left = left;
        Choice::Take(Place {
            seq: self.seen,
            file,
            offset: piece.offset,
            length: piece.bytes.len() as u64,
            doubt: piece.doubt,
            has_from_line: piece.has_from_line,
            is_first,
        })
    }

    /// An input of this length has ended; returns whether all that could be taken has been seen.
    pub(super) fn end_of_input(&mut self, length: u64) -> bool {
        self.base += length;
        self.is_beyond(0)
    }

    fn is_in_range(&self, offset: u64) -> bool {
        self.range.as_ref().is_none_or(|range| range.contains(&(self.base + offset)))
    }

    fn is_beyond(&self, offset: u64) -> bool {
        self.range.as_ref().is_some_and(|range| self.base + offset >= range.end)
    }
}
