//! What walks through the pipeline of `filter`: messages to be classified, and all there is to write, in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::classify::annotate::{Annotate, Graft};
use crate::classify::{Answer, Classifier, Refusal};
use crate::encode::Encoder;
use crate::mbox::Doubt;
use crate::message::{self, Message};
use crate::pipeline::Done;

/// What goes round between reader and writer, so that nothing is allocated per message.
#[derive(Clone, Debug, Default)]
pub(super) struct Spares(Arc<(Shelf<Box<Job>>, Shelf<Encoder>)>);

#[derive(Debug)]
struct Shelf<T>(Mutex<Vec<T>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf(Mutex::default())
    }
}

impl<T> Shelf<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps a spare of this size, unless there are enough or it is large.
    fn give(&self, spare: T, size: usize) {
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < KEPT.0 && size <= KEPT.1 {
            spares.push(spare);
        }
    }
}

/// More spares, or larger ones, are not kept.
const KEPT: (usize, usize) = (64, 1 << 20);

impl Spares {
    /// A job for this message.
    pub(super) fn job(&self, place: Place, bytes: &[u8]) -> Box<Job> {
        let Some(mut job) = self.0.0.take() else {
            return Box::new(Job { place, bytes: bytes.to_vec(), graft: Graft::default() });
        };
        job.place = place;
        job.bytes.clear();
        job.bytes.extend_from_slice(bytes);
        job.graft.clear();
        job
    }

    /// Takes a job back.
    pub(super) fn spare_job(&self, job: Box<Job>) {
        let size = job.bytes.capacity();
        self.0.0.give(job, size);
    }

    /// An empty text.
    pub(super) fn text(&self) -> Encoder {
        self.0.1.take().unwrap_or_default()
    }

    /// Takes a text back.
    pub(super) fn spare_text(&self, mut text: Encoder) {
        text.clear();
        let size = text.capacity();
        self.0.1.give(text, size);
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
    /// How it is to be written.
    pub graft: Graft,
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
    /// Their bytes, as they are to be written.
    pub text: Encoder,
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
    pub(super) fn classify(&self, job: &mut Job) -> Outcome {
        let message = self.annotate.parse(&job.bytes);
        let id = self.id(&message);
        self.annotate.unclassified(&message, &mut job.graft);
        if message.is_bare() || (job.place.is_first && message.is_store_record()) {
            return Outcome { fate: Fate::Skipped, id };
        }
        let result = catch_unwind(AssertUnwindSafe(|| self.classifier.classify(&message.without_ours())));
        let fate = match result.unwrap_or_else(|_| Err(internal())) {
            Ok(answer) => {
                self.annotate.classified(&message, &answer, &mut job.graft);
                Fate::Classified(answer)
            }
            Err(refusal) => Fate::Unclassified(refusal),
        };
        Outcome { fate, id }
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
pub(super) fn finish(done: Done<Box<Job>, Outcome>) -> Item {
    let Done { mut job, outcome } = done;
    let outcome = outcome.unwrap_or_else(|| {
        job.graft.clear();
        Outcome { fate: Fate::Unclassified(internal()), id: None }
    });
    Item::Message(job, outcome)
}

fn internal() -> Refusal {
    let text = "internal error in hamsift; the message is kept as it is (please report this)";
    Refusal { kind: "internal error", text: text.to_owned(), server: None }
}
