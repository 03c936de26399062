//! What walks through the pipeline of `filter`: messages to be classified, and all there is to write, in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::classify::annotate::{Annotate, Edits};
use crate::classify::{Answer, Classifier, Refusal};
use crate::mbox::Doubt;
use crate::message::{self, Message};
use crate::pipeline::Done;

/// Buffers that go round between reader and writer, so that none is allocated per message.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// More buffers, or larger ones, are not kept.
const KEPT: (usize, usize) = (64, 1 << 20);

impl Buffers {
    /// An empty buffer.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT.0 && buffer.capacity() <= KEPT.1 {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

/// Where a message stands in the input.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Number of the message, from 1, over all inputs.
    pub seq: u64,
    /// Number of the input, from 0.
    pub file: usize,
    /// Where it begins in the (unpacked) input.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Why the line that begins it may be none that begins a message.
    pub doubt: Option<Doubt>,
    /// Whether it begins with a From_ line.
    pub has_from_line: bool,
    /// Whether it is the first of its mailbox.
    pub is_first: bool,
}

/// A message to be classified.
#[derive(Debug)]
pub(super) struct Job {
    /// Where it stands.
    pub place: Place,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum Fate {
    /// It has a verdict.
    Classified(Answer),
    /// It should have had one.
    Unclassified(Refusal),
    /// There was nothing to classify.
    Skipped,
}

/// What a worker made of a message.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What became of it.
    pub fate: Fate,
    /// How it is written.
    pub edits: Edits,
    /// Its Message-ID, where a report wants it.
    pub id: Option<String>,
}

/// What there is to write, in order.
#[derive(Debug)]
pub(super) enum Item {
    /// A mailbox ends. `closed`: it has to end in an empty line, because another process writes what follows.
    End {
        /// See above.
        closed: bool,
    },
    /// Reading ends here although there is more.
    Cut,
    /// Text before the first message, and whether it stands at the beginning of all.
    Preamble(Vec<u8>, bool),
    /// Messages that are only passed through, as they are to be written.
    Batch(Batch),
    /// A message.
    Message(Box<Job>, Outcome),
    /// A piece of a message too large to be held, as it is to be written. With the last one comes what is known of
    /// the message.
    Piece {
        /// Its bytes.
        text: Vec<u8>,
        /// Whether the message begins with a From_ line.
        has_from_line: bool,
        /// See above.
        known: Option<Box<(Place, Outcome)>>,
    },
}

/// Messages one after the other that no worker has to see.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// The length they had.
    pub length: u64,
    /// How many they are.
    pub messages: u64,
    /// The number of the last one.
    pub(super) last: u64,
    /// Where those stand whose beginning is doubtful.
    pub doubts: Vec<Place>,
}

/// What each worker does with a message.
pub(super) struct Worker {
    /// How messages are annotated.
    pub annotate: Annotate,
    /// Who gives verdicts.
    pub classifier: Arc<dyn Classifier>,
    /// Whether the Message-ID is wanted.
    pub wants_id: bool,
}

impl Worker {
    /// Classifies one message.
    pub(super) fn classify(&self, job: &Job) -> Outcome {
        let message = self.annotate.parse(&job.bytes);
        let id = self.id(&message);
        if message.is_bare() || (job.place.is_first && message.is_store_record()) {
            return Outcome { fate: Fate::Skipped, edits: self.annotate.unclassified(&message), id };
        }
        let cleaned = message.has_ours().then(|| message::edited(&job.bytes, &message.without_ours()));
        let text = cleaned.as_deref().unwrap_or(&job.bytes);
        let result = catch_unwind(AssertUnwindSafe(|| self.classifier.classify(text)));
        match result.unwrap_or_else(|_| Err(internal())) {
            Ok(answer) => {
                let edits = self.annotate.classified(&message, &answer);
                Outcome { fate: Fate::Classified(answer), edits, id }
            }
            Err(refusal) => {
                Outcome { fate: Fate::Unclassified(refusal), edits: self.annotate.unclassified(&message), id }
            }
        }
    }

    /// The Message-ID, where it is wanted.
    pub(super) fn id(&self, message: &Message) -> Option<String> {
        if self.wants_id { message_id(message) } else { None }
    }
}

/// The Message-ID of a message, as it stands in the field.
pub(super) fn message_id(message: &Message) -> Option<String> {
    let value = message::clean_value(message.field("Message-ID")?.value);
    let text = String::from_utf8_lossy(value.trim_ascii()).into_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// A worker's result in its place. Where even taking the message apart panicked, it goes out as it came.
pub(super) fn finish(done: Done<Job, Outcome>) -> Item {
    let outcome = done.outcome.unwrap_or_else(|| Outcome {
        fate: Fate::Unclassified(internal()),
        edits: Edits::default(),
        id: None,
    });
    Item::Message(Box::new(done.job), outcome)
}

fn internal() -> Refusal {
    let text = "internal error in hamsift; the message is kept as it is (please report this)";
    Refusal { kind: "internal error", text: text.to_owned(), server: None }
}
