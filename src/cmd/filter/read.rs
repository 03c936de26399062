//! The source of the pipeline: splits the inputs and decides what has to be classified.

use std::sync::Arc;

use super::item::{Batch, Fate, Item, Job, Outcome, Place, Spares, Worker, message_id};
use super::select::{Choice, Selection};
use crate::classify::annotate::Graft;
use crate::exit::{Exit, Failure};
use crate::input::{Damage, Input, InputError, Source};
use crate::mbox::{Part, Piece, Rules, SplitError, Splitter};
use crate::message::{self, Stripper};
use crate::pipeline::{Closed, Feed};

/// What is read, and what of it.
pub(super) struct Reading {
    /// The mailboxes.
    pub inputs: Vec<Source>,
    /// Number of the first of them.
    pub file: usize,
    /// Where messages begin.
    pub rules: Rules,
    /// Larger messages are passed through, bytes.
    pub max_size: u64,
    /// Which messages are taken.
    pub selection: Selection,
    /// Whether messages that are only passed through may go in batches, unnamed.
    pub batches: bool,
    /// Where jobs and texts come from.
    pub spares: Spares,
    /// What each worker does.
    pub worker: Arc<Worker>,
}

/// Why reading stopped before the end.
pub(super) enum Stopped {
    /// The sink wants no more.
    Closed,
    /// An input cannot be read.
    Failed(anyhow::Error),
}

impl From<Closed> for Stopped {
    fn from(Closed: Closed) -> Self {
        Stopped::Closed
    }
}

/// An input's error with its name and exit status.
pub(super) fn input_error(error: &InputError) -> anyhow::Error {
    Failure::error(Exit::NoInput, error.to_string())
}

/// A splitter's error with the place and its exit status.
pub(super) fn split_error(name: &str, offset: u64, error: &SplitError) -> anyhow::Error {
    match error {
        SplitError::NotMbox(format) => Failure::error(Exit::Data, format!("{name} is {format}")),
        SplitError::Read(error) => {
            let damage = error.get_ref().and_then(|inner| inner.downcast_ref::<Damage>());
            let exit = if let Some(Damage::Packed { .. }) = damage { Exit::Data } else { Exit::Io };
            Failure::error(exit, format!("reading {name}, after byte {offset}: {error}"))
        }
    }
}

/// How much of a batch is gathered before it is sent on, bytes: more than the output's buffer, which it passes by.
const BATCH: usize = 256 << 10;

/// Room for fields of ours in a message, bytes.
const OURS: u64 = 64 << 10;

struct Reader<'a> {
    plan: &'a Reading,
    feed: &'a Feed<Box<Job>, Item>,
    batch: Batch,
    /// What is done to the message that goes into it.
    graft: Graft,
    selection: Selection,
    /// What stands before the first message of the input.
    preamble: Vec<u8>,
    /// A large message is under way, and whether it is taken.
    large: Option<(Place, Outcome, Stripper)>,
    /// Whether the last piece was taken.
    taking: bool,
}

/// Reads all inputs into the pipeline.
pub(super) fn read_all(plan: &Reading, feed: &Feed<Box<Job>, Item>) -> Result<(), Stopped> {
    let selection = plan.selection.clone();
    let mut reader = Reader {
        plan,
        feed,
        batch: Batch::default(),
        graft: Graft::default(),
        selection,
        preamble: Vec::new(),
        large: None,
        taking: false,
    };
    for (file, source) in plan.inputs.iter().enumerate() {
        let result = reader.read(plan.file + file, source);
        // What has been read is whole and goes out, whatever comes then.
        reader.flush()?;
        if !result? {
            feed.ready(Item::Cut, 0)?;
            break;
        }
    }
    Ok(())
}

impl Reader<'_> {
    /// Reads one input; returns whether the next one is wanted.
    fn read(&mut self, file: usize, source: &Source) -> Result<bool, Stopped> {
        let input = source.open().map_err(|error| Stopped::Failed(input_error(&error)))?;
        let length = input.length;
        let header = self.plan.worker.annotate.header.as_str();
        let failed = |offset, error| Stopped::Failed(split_error(&source.name(), offset, &error));
        let splitter = splitter(input, self.plan.rules, self.plan.max_size);
        let mut splitter = splitter.watching(&[message::OUR_PREFIX, header]);
        let mut is_first = true;
        self.preamble.clear();
        self.taking = false;
        loop {
            if splitter.needs_input() {
                self.flush()?;
            }
            let offset = splitter.offset();
            let piece = splitter.next_piece().map_err(|error| failed(offset, error))?;
            let Some(piece) = piece else { break };
            if !self.piece(file, piece, is_first)? {
                return Ok(false);
            }
            is_first &= piece.part == Part::Preamble;
        }
        self.flush()?;
        // No message has come for it to go with.
        self.taking |= !self.preamble.is_empty() && self.selection.takes_preamble(splitter.offset());
        if self.taking {
            self.pass_preamble()?;
        }
        let beyond = self.selection.end_of_input(length.unwrap_or(0));
        let more = beyond && self.plan.inputs[file + 1 - self.plan.file..].iter().any(is_not_empty);
        self.feed.ready(Item::End { closed: more && self.taking }, 0)?;
        // Where nothing follows, no other run goes on behind this one: the end stays as it is.
        Ok(!more)
    }

    /// Sends a piece on its way, if it is wanted; returns whether anything further is.
    fn piece(&mut self, file: usize, piece: Piece<'_>, is_first: bool) -> Result<bool, Closed> {
        let plan = self.plan;
        match piece.part {
            Part::Middle | Part::Last => return self.rest_of_large(piece).map(|()| true),
            Part::Preamble => {
                self.preamble.extend_from_slice(piece.bytes);
                return Ok(true);
            }
            Part::Message | Part::First => {}
        }
        let choice = self.selection.choose(file, &piece, is_first);
        self.taking = matches!(choice, Choice::Take(_));
        let place = match choice {
            Choice::Take(place) => place,
            Choice::Leave => {
                self.preamble.clear();
                return Ok(true);
            }
            Choice::Stop => return Ok(false),
        };
        self.pass_preamble()?;
        if piece.part == Part::First {
            return self.begin_large(place, piece.bytes).map(|()| true);
        }
        if place.length <= plan.max_size || (piece.watched && self.size_without_ours(piece.bytes) <= plan.max_size) {
            self.flush()?;
            self.feed.work(plan.spares.job(place, piece.bytes), piece.bytes.len())?;
        } else {
            self.pass(place, piece.bytes, piece.watched)?;
        }
        Ok(true)
    }

    /// Passes a message on that is not to be classified.
    fn pass(&mut self, place: Place, bytes: &[u8], watched: bool) -> Result<(), Closed> {
        if self.plan.batches && place.has_from_line {
            self.batch.messages += 1;
            self.batch.last = place.seq;
            self.batch.length += place.length;
            if watched {
                let annotate = &self.plan.worker.annotate;
                annotate.unclassified(&annotate.parse(bytes), &mut self.graft);
                self.graft.apply(bytes, &mut self.batch.text);
            } else {
                self.batch.text.bytes(bytes);
            }
            if place.doubt.is_some() {
                self.batch.doubts.push(place);
            }
            return if self.batch.text.as_slice().len() >= BATCH { self.flush() } else { Ok(()) };
        }
        let mut job = self.plan.spares.job(place, bytes);
        let worker = &self.plan.worker;
        let message = worker.annotate.parse(bytes);
        worker.annotate.unclassified(&message, &mut job.graft);
        let outcome = Outcome { fate: Fate::Skipped, id: worker.id(&message) };
        self.feed.ready(Item::Message(job, outcome), bytes.len())
    }

    fn pass_preamble(&mut self) -> Result<(), Closed> {
        if self.preamble.is_empty() {
            return Ok(());
        }
        let (text, first) = (std::mem::take(&mut self.preamble), self.selection.is_at_beginning());
        let weight = text.len();
        self.feed.ready(Item::Preamble(text, first), weight)
    }

    fn size_without_ours(&self, bytes: &[u8]) -> u64 {
        self.plan.worker.annotate.parse(bytes).length_without_ours()
    }

    fn begin_large(&mut self, place: Place, bytes: &[u8]) -> Result<(), Closed> {
        self.flush()?;
        let Worker { annotate, wants_id, .. } = &*self.plan.worker;
        let id = if *wants_id { message_id(&annotate.parse(bytes)) } else { None };
        let mut stripper = Stripper::new(&annotate.header, annotate.keep_forged);
        let mut text = Vec::with_capacity(bytes.len());
        stripper.feed(bytes, &mut text);
        let has_from_line = place.has_from_line;
        self.large = Some((place, Outcome { fate: Fate::Skipped, id }, stripper));
        self.feed.ready(Item::Piece { text, has_from_line, known: None }, bytes.len())
    }

    fn rest_of_large(&mut self, piece: Piece<'_>) -> Result<(), Closed> {
        let Some((place, _, stripper)) = &mut self.large else { return Ok(()) };
        place.length += piece.bytes.len() as u64;
        let has_from_line = place.has_from_line;
        let mut text = Vec::with_capacity(piece.bytes.len());
        stripper.feed(piece.bytes, &mut text);
        let ended = self.large.take_if(|_| piece.part == Part::Last);
        let known = ended.map(|(place, outcome, stripper)| {
            stripper.finish(&mut text);
            Box::new((place, outcome))
        });
        self.feed.ready(Item::Piece { text, has_from_line, known }, piece.bytes.len())
    }

    fn flush(&mut self) -> Result<(), Closed> {
        if self.batch.messages == 0 {
            return Ok(());
        }
        let next = Batch { text: self.plan.spares.text(), ..Batch::default() };
        let batch = std::mem::replace(&mut self.batch, next);
        let weight = batch.text.as_slice().len();
        self.feed.ready(Item::Batch(batch), weight)
    }
}

/// Whether there is anything in an input, as far as its length is known.
fn is_not_empty(source: &Source) -> bool {
    match source {
        Source::Path(path) => path.metadata().is_ok_and(|metadata| metadata.len() > 0),
        Source::Stdin | Source::Beginning { .. } => true,
    }
}

/// A splitter that holds messages up to `max_size` whole, and some more: what counts is the size without fields of ours,
/// which only a whole message tells.
pub(super) fn splitter(input: Input, rules: Rules, max_size: u64) -> Splitter<Box<dyn std::io::Read + Send>> {
    let whole = max_size.saturating_add(OURS);
    Splitter::new(input.reader, rules, usize::try_from(whole).unwrap_or(usize::MAX))
}
