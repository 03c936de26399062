//! The body of a request: read up to a limit, and out of room that all connections share, so that no number of clients
//! can make the memory grow further.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Bytes, Incoming};

/// Room for bodies.
#[derive(Debug)]
pub(super) struct Budget {
    all: usize,
    left: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Arc<Budget> {
        Arc::new(Budget { all: bytes, left: AtomicUsize::new(bytes) })
    }

    /// How much of it is taken, bytes.
    pub(super) fn taken(&self) -> u64 {
        self.all.saturating_sub(self.left.load(Ordering::Acquire)) as u64
    }

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// Room that is taken; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub(super) fn nothing(budget: &Arc<Budget>) -> Held {
        Held { budget: budget.clone(), bytes: 0 }
    }

    fn more(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is larger than is allowed.
    TooLarge,
    /// Other bodies take all the room.
    NoRoom,
    /// It ends early, or its chunks are broken.
    Broken,
}

/// So much room is made at once for a body of known length: more only as it really comes.
const FIRST_ROOM: usize = 1 << 20;

/// Reads the whole body.
pub(super) async fn read(body: &mut Incoming, most: usize, held: &mut Held) -> Result<Bytes, BodyError> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if expected > most {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        if data.len() > most - bytes.len() {
            return Err(BodyError::TooLarge);
        }
        if !held.more(data.len()) {
            return Err(BodyError::NoRoom);
        }
        if bytes.is_empty() && body.is_end_stream() {
            // All of it in one piece, as most are: it stays where it was read to.
            return Ok(data);
        }
        if bytes.is_empty() {
            bytes.reserve_exact(expected.min(FIRST_ROOM));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.into())
}

/// Unpacks a body that came with gzip.
pub(super) fn unpack(packed: &[u8], most: usize, held: &mut Held) -> Result<Vec<u8>, BodyError> {
    let mut decoder = MultiGzDecoder::new(packed);
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let count = decoder.read(&mut chunk).map_err(|_| BodyError::Broken)?;
        if count == 0 {
            return Ok(bytes);
        }
        if count > most - bytes.len() {
            return Err(BodyError::TooLarge);
        }
        if !held.more(count) {
            return Err(BodyError::NoRoom);
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn a_small_packed_body_cannot_become_a_large_one() {
        let budget = Budget::new(5 << 20);
        let bomb = packed(&vec![0; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(unpack(&bomb, 1 << 20, &mut Held::nothing(&budget)), Err(BodyError::TooLarge));
        assert_eq!(unpack(&bomb, 20 << 20, &mut Held::nothing(&budget)), Err(BodyError::NoRoom));
        assert_eq!(budget.left.load(Ordering::Relaxed), 5 << 20, "all is given back");
        assert_eq!(unpack(&packed(b"abc"), 3, &mut Held::nothing(&budget)), Ok(b"abc".to_vec()));
    }

    #[test]
    fn a_damaged_or_cut_packed_body_is_none() {
        let budget = Budget::new(1000);
        let good = packed(b"some text");
        for bad in [&good[..good.len() - 1], b"no gzip", b""] {
            assert_eq!(unpack(bad, 100, &mut Held::nothing(&budget)), Err(BodyError::Broken), "{bad:?}");
        }
    }
}
