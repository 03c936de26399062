//! Loading a database into memory: reading its rows takes about as long as putting the words into their table, so the
//! two are done at the same time, by a thread each.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::engine::bayes::Counts;
use crate::engine::memory::Memory;

/// Bytes of words in a batch: what fits into the second-level cache twice.
const FULL: usize = 64 << 10;
/// Batches between the two threads.
const WAITING: usize = 4;

/// Rows on their way into memory.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each word ends in `bytes`, and its counts.
    rows: Vec<(usize, Counts)>,
}

impl Batch {
    /// Forgets all rows and keeps the room.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Whether it is time to hand it on.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Adds a row.
    pub(super) fn push(&mut self, word: &[u8], counts: Counts) {
        self.bytes.extend_from_slice(word);
        self.rows.push((self.bytes.len(), counts));
    }

    fn add_to(&self, memory: &mut Memory) {
        let mut start = 0;
        for &(end, counts) in &self.rows {
            memory.add(&self.bytes[start..end], counts);
            start = end;
        }
    }
}

/// Adds to `memory` what `read` puts into batches, until it returns `false` or an error.
pub(super) fn fill<E>(memory: &mut Memory, mut read: impl FnMut(&mut Batch) -> Result<bool, E>) -> Result<(), E> {
    let memory = Mutex::new(memory);
    let add = |batch: &Batch| batch.add_to(&mut memory.lock().unwrap_or_else(PoisonError::into_inner));
    let (full, to_add) = sync_channel::<Batch>(WAITING);
    let (added, empty) = sync_channel(WAITING);
    thread::scope(|scope| {
        let adder = thread::Builder::new().name("loader".into()).spawn_scoped(scope, move || {
            for batch in to_add {
                add(&batch);
                // Where nobody needs it any more it goes.
                let _ = added.try_send(batch);
            }
        });
        loop {
            let mut batch = empty.try_recv().unwrap_or_default();
            let more = read(&mut batch)?;
            match &adder {
                // Should the thread have died, the scope ends in its panic.
                Ok(_) => drop(full.send(batch)),
                // No thread is to be had: it goes without.
                Err(_) => add(&batch),
            }
            if !more {
                // Else the thread would wait for more.
                drop(full);
                return Ok(());
            }
        }
    })
}
