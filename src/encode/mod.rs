//! Where made bytes go: requests, answers, and annotated messages. All are written to an [`Encoder`], in one of two
//! ways: [`Fast`], or, with the feature `std-encode`, [`General`] for comparison. What writes does not know which.

mod fast;
mod general;

use std::fmt::Display;
use std::io::Write as _;
use std::marker::PhantomData;

pub use fast::Fast;
pub use general::General;

/// What everything is written to.
#[cfg(not(feature = "std-encode"))]
pub type Encoder = Encoding<Fast>;
/// What everything is written to.
#[cfg(feature = "std-encode")]
pub type Encoder = Encoding<General>;

/// How bytes get into memory.
pub trait Way {
    /// Appends bytes.
    fn bytes(out: &mut Vec<u8>, bytes: &[u8]);

    /// Appends base64 of the bytes, in one line with padding (RFC 4648, section 4).
    fn base64(out: &mut Vec<u8>, bytes: &[u8]);
}

/// Bytes being made in memory, in an order of steps none of which can fail. Used again after [`clear`](Encoder::clear),
/// it allocates only for what is larger than all before.
#[derive(Debug)]
pub struct Encoding<W> {
    out: Vec<u8>,
    way: PhantomData<W>,
}

impl<W> Default for Encoding<W> {
    fn default() -> Self {
        Encoding { out: Vec::new(), way: PhantomData }
    }
}

impl<W: Way> Encoding<W> {
    /// Forgets what is there and keeps the room.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Makes room for so many more bytes, where that is known beforehand.
    pub fn reserve(&mut self, more: usize) {
        self.out.reserve(more);
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        W::bytes(&mut self.out, bytes);
    }

    /// Base64 of the bytes, in one line with padding (RFC 4648, section 4).
    pub fn base64(&mut self, bytes: &[u8]) {
        W::base64(&mut self.out, bytes);
    }

    /// A number as Rust shows it: the shortest text that reads back as the same one, never with an exponent. Numbers
    /// are rare, so that both ways show them alike.
    pub fn number(&mut self, number: impl Display) {
        // Writing to memory cannot fail.
        let _ = write!(self.out, "{number}");
    }

    /// What is there so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.out
    }

    /// What is there, for good.
    pub fn into_vec(self) -> Vec<u8> {
        self.out
    }

    /// How many bytes have room.
    pub fn capacity(&self) -> usize {
        self.out.capacity()
    }
}

/// How many characters of base64 `len` bytes become.
pub fn base64_len(len: usize) -> usize {
    len.div_ceil(3).saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written<W: Way>(pieces: &[(bool, Vec<u8>)]) -> Vec<u8> {
        let mut out = Encoding::<W>::default();
        for (base64, piece) in pieces {
            if *base64 {
                out.base64(piece)
            } else {
                out.bytes(piece)
            }
            out.number(piece.len());
        }
        out.into_vec()
    }

    proptest! {
        #[test]
        fn both_ways_give_the_same_bytes(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..8),
        ) {
            prop_assert_eq!(written::<Fast>(&pieces), written::<General>(&pieces));
        }
    }

    #[test]
    fn what_fits_does_not_allocate() {
        let mut out = Encoding::<Fast>::default();
        out.reserve(base64_len(5000) + 100);
        let before = (out.as_slice().as_ptr(), out.capacity());
        for size in [5000, 10, 4999] {
            out.clear();
            out.base64(&vec![7; size]);
            out.bytes(&[b' '; 80]);
            out.number(-1);
            assert_eq!((out.as_slice().as_ptr(), out.capacity()), before);
        }
    }
}
