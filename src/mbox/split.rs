//! The buffer, the reader, and the public splitter around the cutter.

use std::io::{self, Read};

use super::cutter::{Cut, Cutter, Limits, Step};
use super::glance::Watch;
use super::{LOOKAHEAD, Piece, Rules, SplitError};

/// How much is asked of the reader at once, in bytes: enough to make system calls cheap, little enough to stay in the cache
/// until it is cut.
const CHUNK: usize = 256 << 10;
/// Least limit for a whole message, in bytes, so that its header is in one piece.
const LEAST_WHOLE: usize = 1 << 20;

/// Cuts a mailbox into messages while reading it.
///
/// The bytes of all pieces, in order, are the input. Memory is bounded by one and a quarter of `whole` plus a few MiB,
/// however large the mailbox and its messages are. The reader is read once, front to back, in large chunks; any size of
/// chunk it answers with gives the same pieces (but the cuts between middle parts of one message).
///
/// ```
/// use hamsift::mbox::{Part, Rules, Splitter};
///
/// let mbox = b"From a@b Mon Jan  5 10:00:01 2004\nSubject: x\n\nHello\n\nFrom c@d Mon Jan  5 10:00:02 2004\nSubject: y\n";
/// let mut splitter = Splitter::new(&mbox[..], Rules::default(), 64 << 20);
/// let mut count = 0;
/// while let Some(piece) = splitter.next_piece()? {
///     count += usize::from(piece.part == Part::Message);
/// }
/// assert_eq!(count, 2);
/// # Ok::<(), hamsift::mbox::SplitError>(())
/// ```
#[derive(Debug)]
pub struct Splitter<R> {
    reader: R,
    buffer: Buffer,
    cutter: Cutter,
    /// What the cutter said last, while that still stands.
    known: Option<Step>,
}

impl<R: Read> Splitter<R> {
    /// A splitter that hands out messages of up to `whole` bytes in one piece and larger ones in several. Less than 1 MiB
    /// is taken as 1 MiB.
    pub fn new(reader: R, rules: Rules, whole: usize) -> Self {
        let limits = Limits { whole: whole.max(LEAST_WHOLE), lookahead: LOOKAHEAD, middle: CHUNK };
        Self::with_limits(reader, rules, limits)
    }

    /// Has the splitter tell, by [`Piece::watched`], where a header line begins with one of these names, in any case.
    #[must_use]
    pub fn watching(mut self, names: &[&str]) -> Self {
        self.cutter.watch = Watch::new(names);
        self
    }

    pub(super) fn with_limits(reader: R, rules: Rules, limits: Limits) -> Self {
        Self { reader, buffer: Buffer::default(), cutter: Cutter::new(rules, limits), known: None }
    }

    /// The next piece; none at the end of the input. The piece borrows the splitter's buffer.
    ///
    /// # Errors
    /// [`SplitError::Read`] when the reader fails (but not when interrupted: that is tried again). What was read before is
    /// kept: the next call reads again, and [`Splitter::remainder`] has the bytes of the unfinished message.
    /// [`SplitError::NotMbox`] when the input is something else, again at every further call.
    pub fn next_piece(&mut self) -> Result<Option<Piece<'_>>, SplitError> {
        let cut = loop {
            match self.poll() {
                Step::Cut(cut) => break cut,
                Step::End => return Ok(None),
                Step::Refuse(format) => return Err(SplitError::NotMbox(format)),
                Step::More => {
                    self.buffer.fill(&mut self.reader).map_err(SplitError::Read)?;
                    self.known = None;
                }
            }
        };
        self.known = None;
        let Cut { len, part, has_from_line, doubt, watched } = cut;
        let (offset, bytes) = self.buffer.take(len);
        Ok(Some(Piece { part, offset, bytes, has_from_line, doubt, watched }))
    }

    /// Whether the next call of [`Splitter::next_piece`] will read, and so may block: the moment to flush what is on its
    /// way. The work done to find out is not done again.
    pub fn needs_input(&mut self) -> bool {
        matches!(self.poll(), Step::More)
    }

    fn poll(&mut self) -> Step {
        match self.known {
            Some(step) => step,
            None => *self.known.insert(self.cutter.poll(self.buffer.bytes(), self.buffer.eof)),
        }
    }
}

impl<R> Splitter<R> {
    /// Bytes that have been read and not been handed out: after [`SplitError::Read`], what there is of the message in which
    /// the input broke off.
    #[must_use]
    pub fn remainder(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// The number of bytes handed out so far: where the next piece starts.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.buffer.offset
    }

    #[cfg(test)]
    pub(super) fn buffer_size(&self) -> usize {
        self.buffer.bytes.len()
    }

    /// The reader, which may have been read beyond [`Splitter::offset`].
    #[must_use]
    pub fn get_ref(&self) -> &R {
        &self.reader
    }
}

/// Bytes read and not yet handed out.
#[derive(Debug, Default)]
struct Buffer {
    /// All of it initialised, for there is no reading into other memory without `unsafe`.
    bytes: Vec<u8>,
    head: usize,
    tail: usize,
    /// Where `head` is in the input.
    offset: u64,
    eof: bool,
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.head..self.tail]
    }

    fn take(&mut self, len: usize) -> (u64, &[u8]) {
        let (at, offset) = (self.head, self.offset);
        self.head += len;
        self.offset += len as u64;
        (offset, &self.bytes[at..self.head])
    }

    /// Reads once.
    fn fill(&mut self, reader: &mut impl Read) -> io::Result<()> {
        self.make_room();
        let room = &mut self.bytes[self.tail..][..CHUNK];
        loop {
            match reader.read(room) {
                Ok(0) => self.eof = true,
                Ok(n) => self.tail += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Makes room for one chunk. Bytes are only moved down when that frees a quarter of what is moved, or else a forged
    /// Content-Length on every message could have all of a large buffer moved for each of them.
    fn make_room(&mut self) {
        if self.bytes.len() - self.tail >= CHUNK {
            return;
        }
        if self.bytes.is_empty() {
            // Fresh zeroes from the system cost nothing until they are touched; a mailbox of one note touches few.
            self.bytes = vec![0; 2 * CHUNK];
            return;
        }
        let live = self.tail - self.head;
        let grow = self.head < live / 4 || self.bytes.len() - live < CHUNK;
        self.bytes.copy_within(self.head..self.tail, 0);
        if grow {
            // In place, and to no more than needed: a second buffer beside the first would be what the memory is measured by.
            let size = (live + live / 4 + 2 * CHUNK).max(live.min(4 << 20) * 2).max(self.bytes.len());
            self.bytes.reserve_exact(size - self.bytes.len());
            self.bytes.resize(size, 0);
        }
        (self.head, self.tail) = (0, live);
    }
}
