//! The two buffers of a connection, made so that a request leaves in one write.
//!
//! ureq writes the head of a request, asks for it to be sent, writes the body, asks again. Here "sent" bytes stay in the
//! buffer and the next ones go behind them, until the answer is awaited or the buffer is nearly full. ureq's own
//! `LazyBuffers` has no place to keep them.

use ureq::unversioned::transport::Buffers;

/// Size of each buffer; a request of common size fits in one, so that it is one write.
pub(super) const BUFFER: usize = 64 * 1024;

/// Less room than this for the next bytes, and the pending ones must be written first: ureq needs room for a whole
/// header line, and an offer of no room at all would look to it like the end of the body.
const MIN_ROOM: usize = 8 * 1024;

/// Input and output buffer of one connection. Nothing is allocated before first use.
#[derive(Debug, Default)]
pub(super) struct Wire {
    input: Vec<u8>,
    start: usize,
    end: usize,
    progress: bool,
    output: Vec<u8>,
    pending: usize,
}

impl Wire {
    fn allocate(&mut self) {
        if self.output.is_empty() {
            self.output.resize(BUFFER, 0);
            self.input.resize(BUFFER, 0);
        }
    }

    /// Keeps `amount` more bytes for sending. True if they must be sent now.
    pub(super) fn keep(&mut self, amount: usize) -> bool {
        self.pending += amount;
        self.output.len() - self.pending < MIN_ROOM
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.output[..self.pending]
    }

    pub(super) fn sent_all(&mut self) {
        self.pending = 0;
    }
}

impl Buffers for Wire {
    fn output(&mut self) -> &mut [u8] {
        self.allocate();
        &mut self.output[self.pending..]
    }

    fn input(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    fn input_append_buf(&mut self) -> &mut [u8] {
        self.allocate();
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.input.len() - self.end < MIN_ROOM {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.input[self.end..]
    }

    fn input_appended(&mut self, amount: usize) {
        self.end += amount;
    }

    fn input_consume(&mut self, amount: usize) {
        self.progress = amount > 0;
        self.start += amount;
    }

    fn tmp_and_output(&mut self) -> (&mut [u8], &mut [u8]) {
        self.allocate();
        (&mut self.input[self.end..], &mut self.output[self.pending..])
    }

    fn can_use_input(&self) -> bool {
        self.start < self.end && self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_waits_behind_what_was_sent_before() {
        let mut wire = Wire::default();
        wire.output()[..4].copy_from_slice(b"head");
        assert!(!wire.keep(4));
        wire.output()[..4].copy_from_slice(b"body");
        assert!(!wire.keep(4));
        assert_eq!(wire.pending(), b"headbody");
        wire.sent_all();
        assert_eq!(wire.pending(), b"");
        assert_eq!(wire.output().len(), BUFFER);
    }

    #[test]
    fn room_is_never_offered_in_slivers() {
        let mut wire = Wire::default();
        assert_eq!(wire.output().len(), BUFFER);
        assert!(!wire.keep(BUFFER - MIN_ROOM));
        assert!(wire.keep(1), "must be written now");
    }

    #[test]
    fn input_is_moved_to_the_front_when_room_runs_out() {
        let mut wire = Wire::default();
        let room = wire.input_append_buf();
        room.fill(b'a');
        let all = room.len();
        wire.input_appended(all);
        wire.input_consume(all - 3);
        assert_eq!(wire.input(), b"aaa");
        assert!(wire.can_use_input());
        assert_eq!(wire.input_append_buf().len(), BUFFER - 3);
        assert_eq!(wire.input(), b"aaa");
        wire.input_consume(0);
        assert!(!wire.can_use_input(), "the last look at it was of no use");
    }
}
