//! Does a From_ line stand inside a part of a multipart message that is still open?

use memchr::memmem;

/// Whether the message's outermost multipart has been closed.
#[derive(Debug, Default)]
pub(super) struct Mime {
    /// Line end and closing delimiter; empty if the message is not multipart. Kept from message to message for its memory.
    needle: Vec<u8>,
    /// Where the line end before the body is; 0 in later parts.
    from: usize,
    closed: bool,
    /// The last bytes cut off, one fewer than the needle has.
    carry: Vec<u8>,
}

impl Mime {
    pub(super) fn reset(&mut self) {
        self.needle.clear();
        self.carry.clear();
        (self.from, self.closed) = (0, false);
    }

    pub(super) fn open(&mut self, boundary: &[u8], body: usize) {
        self.needle.extend_from_slice(b"\n--");
        self.needle.extend_from_slice(boundary);
        self.needle.extend_from_slice(b"--");
        self.from = body.saturating_sub(1);
    }

    /// `text` is the message up to where the question is asked, from its start or that of its last part.
    pub(super) fn is_open(&self, text: &[u8]) -> bool {
        !self.needle.is_empty() && !self.closed && !self.is_in(text)
    }

    fn is_in(&self, text: &[u8]) -> bool {
        let text = text.get(self.from..).unwrap_or_default();
        // From the end, where the closing delimiter nearly always is.
        memmem::rfind(text, &self.needle).is_some()
            || (!self.carry.is_empty() && {
                let mut joint = self.carry.clone();
                joint.extend_from_slice(&text[..text.len().min(self.needle.len())]);
                memmem::find(&joint, &self.needle).is_some()
            })
    }

    pub(super) fn cut_off(&mut self, text: &[u8]) {
        if self.needle.is_empty() || self.closed {
            return;
        }
        self.closed = self.is_in(text);
        let text = text.get(self.from..).unwrap_or_default();
        let keep = self.needle.len() - 1;
        self.carry.extend_from_slice(&text[text.len().saturating_sub(keep)..]);
        self.carry.drain(..self.carry.len().saturating_sub(keep));
        self.from = 0;
    }
}
