//! The sink of the pipeline: writes messages where they belong, counts and reports them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::item::{Batch, Fate, Item, Job, Outcome, Place, Spares};
use super::tally::{Report, Tally};
use crate::classify::Classifier;
use crate::cli::Only;
use crate::encode::Encoder;
use crate::mbox::Doubt;
use crate::mbox::write::Writer;
use crate::output::Output;
use crate::pipeline::{self, Event};
use crate::report::Teller;
use crate::verdict::Class;

/// Which side of the work failed.
#[derive(Debug)]
pub(super) enum SinkError {
    /// Nobody reads the output any more.
    Closed,
    /// The mailbox cannot be written.
    Output(io::Error),
    /// The report cannot be written.
    Report(io::Error),
}

impl From<io::Error> for SinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => SinkError::Closed,
            _ => SinkError::Output(error),
        }
    }
}

/// Where messages go.
#[derive(Debug)]
pub(super) enum Destination {
    /// All to one place.
    One(Box<Writer<Output>>),
    /// A mailbox per class, in the order of [`Class::ALL`], and one for the rest.
    Sorted(Box<[Writer<Output>; 4]>),
}

/// The names of the mailboxes that `--sort` writes.
const SORTED: [&str; 4] = ["ham.mbox", "unsure.mbox", "spam.mbox", "unclassified.mbox"];

impl Destination {
    /// One output.
    pub(super) fn one(output: Output) -> Destination {
        Destination::One(Box::new(Writer::new(output)))
    }

    /// Mailboxes in this folder, which is made if need be. None of them may exist.
    pub(super) fn sorted(folder: &Path) -> io::Result<Destination> {
        std::fs::create_dir_all(folder)?;
        let taken = SORTED.map(|name| folder.join(name)).into_iter().find(|path| path.symlink_metadata().is_ok());
        if let Some(path) = taken {
            let text = format!("{} exists already; --sort overwrites no mailbox", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let open = |name: &str| Output::new_file(&folder.join(name)).map(Writer::new);
        let [ham, unsure, spam, rest] = SORTED.map(open);
        Ok(Destination::Sorted(Box::new([ham?, unsure?, spam?, rest?])))
    }

    fn writers(&mut self) -> &mut [Writer<Output>] {
        match self {
            Destination::One(writer) => std::slice::from_mut(writer),
            Destination::Sorted(writers) => &mut writers[..],
        }
    }

    /// Bytes written.
    pub(super) fn written(&mut self) -> u64 {
        self.writers().iter().map(Writer::written).sum()
    }

    /// The outputs, to be finished.
    pub(super) fn into_outputs(self) -> Vec<Output> {
        match self {
            Destination::One(writer) => vec![writer.into_inner()],
            Destination::Sorted(writers) => writers.map(Writer::into_inner).into(),
        }
    }
}

/// A larger room for a message is not kept, bytes.
const KEPT: usize = 1 << 20;

/// The sink and all it knows.
pub(super) struct Sink {
    /// Where messages go.
    pub destination: Destination,
    /// Only these classes are written; all if there are none.
    pub only: Vec<Only>,
    /// The inputs' names.
    pub names: Vec<String>,
    /// The rows, if they are wanted.
    pub report: Option<Report>,
    /// The totals.
    pub tally: Tally,
    /// How trouble is told.
    pub teller: Arc<Teller>,
    /// Messages come in no order, so that the one that lacks its last newline may not be the last.
    pub(super) unordered: bool,
    /// The last piece of a large message is still to come.
    pub(super) in_large: bool,
    /// Messages that wait for it.
    pub(super) held: Vec<Item>,
    /// Mailboxes that have come to their end.
    pub(super) mailboxes: usize,
    /// Text before the first message of a mailbox, until that comes.
    pub(super) preamble: Option<(Vec<u8>, bool)>,
    /// Where jobs and texts go.
    pub spares: Spares,
    /// The message that is written.
    pub(super) encoder: Encoder,
    /// Asked for notes.
    pub classifier: Arc<dyn Classifier>,
    /// Whether a message without a From_ line gets one even in a single output: others stand beside it.
    pub enclose: bool,
}

impl pipeline::Sink<Item> for Sink {
    type Error = SinkError;

    fn take(&mut self, event: Event<Item>) -> Result<(), SinkError> {
        match event {
            Event::Idle => {
                self.tell_notes();
                for writer in self.destination.writers() {
                    io::Write::flush(writer)?;
                    if writer.get_mut().is_closed() {
                        return Err(SinkError::Closed);
                    }
                }
                Ok(())
            }
            Event::Item(item) => self.item(item),
        }
    }
}

impl Sink {
    /// A sink that writes everything to one destination, in order, and reports nothing.
    pub(super) fn new(
        destination: Destination,
        names: Vec<String>,
        teller: Arc<Teller>,
        classifier: Arc<dyn Classifier>,
    ) -> Sink {
        Sink {
            destination,
            only: Vec::new(),
            names,
            report: None,
            tally: Tally::default(),
            teller,
            unordered: false,
            in_large: false,
            held: Vec::new(),
            mailboxes: 0,
            preamble: None,
            spares: Spares::default(),
            encoder: Encoder::default(),
            classifier,
            enclose: false,
        }
    }

    fn item(&mut self, item: Item) -> Result<(), SinkError> {
        if !matches!(item, Item::Preamble(..) | Item::Cut) {
            self.write_preamble()?;
        }
        let is_text = matches!(item, Item::Message(..) | Item::Batch(_) | Item::Piece { .. });
        if is_text && self.unordered && !self.in_large {
            self.destination.writers().iter_mut().try_for_each(Writer::end_line)?;
        }
        match item {
            // Without an order a message may be done while a large one is still being written.
            Item::Message(..) if self.in_large => self.held.push(item),
            Item::End { closed } => {
                self.mailboxes += 1;
                for writer in self.destination.writers() {
                    if closed {
                        writer.end_in_empty_line()?;
                    } else {
                        writer.end_of_mailbox();
                    }
                }
            }
            // It is written with the message behind it, or else a run that goes on there would write it once more.
            Item::Preamble(text, first) => self.preamble = Some((text, first)),
            Item::Cut => self.cut()?,
            Item::Batch(batch) => self.batch(batch)?,
            Item::Message(job, outcome) => {
                self.message(&job, &outcome)?;
                self.spares.spare_job(job);
            }
            Item::Piece { text, has_from_line, known } => {
                let enclose = self.encloses(has_from_line);
                match self.writer(None) {
                    Some(writer) if enclose => {
                        writer.enclose_part(&text)?;
                        known.as_ref().map_or(Ok(()), |_| writer.end_enclosed())?;
                    }
                    Some(writer) => writer.text(&text)?,
                    None => {}
                }
                self.in_large = known.is_none();
                if let Some(known) = known {
                    let (place, outcome) = *known;
                    self.done(&place, &outcome)?;
                    std::mem::take(&mut self.held).into_iter().try_for_each(|item| self.item(item))?;
                }
            }
        }
        self.teller.at(self.tally.messages(), self.tally.bytes_in);
        Ok(())
    }

    /// Ends where there is more to come, from another run.
    pub(super) fn cut(&mut self) -> io::Result<()> {
        self.preamble = None;
        self.destination.writers().iter_mut().try_for_each(Writer::end_before_more)
    }

    fn write_preamble(&mut self) -> Result<(), SinkError> {
        let Some((text, first)) = self.preamble.take() else { return Ok(()) };
        self.tally.preamble_bytes += text.len() as u64;
        self.tally.bytes_in += text.len() as u64;
        if self.only.is_empty() {
            self.writer(None).map_or(Ok(()), |writer| writer.preamble(&text, first))?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: Batch) -> Result<(), SinkError> {
        self.writer(None).map_or(Ok(()), |writer| writer.text(batch.text.as_slice()))?;
        self.tally.skipped += batch.messages;
        self.tally.last = batch.last;
        self.tally.bytes_in += batch.length;
        self.tally.suspicious += batch.doubts.len() as u64;
        batch.doubts.iter().for_each(|place| tell_doubt(&self.teller, &self.names[place.file], place));
        self.spares.spare_text(batch.text);
        Ok(())
    }

    fn message(&mut self, job: &Job, outcome: &Outcome) -> Result<(), SinkError> {
        let class = match &outcome.fate {
            Fate::Classified(answer) => Some(answer.verdict.class),
            _ => None,
        };
        let enclose = self.encloses(job.place.has_from_line);
        let mut encoder = std::mem::take(&mut self.encoder);
        if let Some(writer) = self.writer(class) {
            job.graft.apply(&job.bytes, &mut encoder);
            if enclose {
                writer.enclose(encoder.as_slice())?;
            } else {
                writer.text(encoder.as_slice())?;
            }
        }
        encoder.clear();
        if encoder.capacity() <= KEPT {
            self.encoder = encoder;
        }
        self.done(&job.place, outcome)
    }

    /// Whether a message has to be given a From_ line: it has none, and stands beside others.
    fn encloses(&self, has_from_line: bool) -> bool {
        !has_from_line && (self.enclose || matches!(self.destination, Destination::Sorted(_)))
    }

    /// Counts, reports and tells of a message that is written.
    fn done(&mut self, place: &Place, outcome: &Outcome) -> Result<(), SinkError> {
        self.tally.count(place, &outcome.fate);
        let name = &self.names[place.file];
        tell_doubt(&self.teller, name, place);
        let at = || format!("{name}, message {} at byte {}", place.seq, place.offset);
        match &outcome.fate {
            Fate::Unclassified(refusal) => {
                let from = refusal.server.as_ref().map_or(String::new(), |server| format!("{server}: "));
                self.teller.trouble(refusal.kind, &at(), &format!("not classified: {from}{}", refusal.text));
            }
            Fate::Classified(answer) if self.teller.is_verbose() => {
                let took = answer.took.as_secs_f64() * 1000.0;
                self.teller.detail(&format!("{}: {}, {took:.1} ms", at(), answer.verdict.text));
            }
            Fate::Skipped if self.teller.is_verbose() => self.teller.detail(&format!("{}: skipped", at())),
            _ => {}
        }
        let report = self.report.as_mut();
        report.map_or(Ok(()), |report| report.row(name, place, outcome)).map_err(SinkError::Report)?;
        self.tell_notes();
        Ok(())
    }

    /// The writer for a class; none where it is not wanted.
    fn writer(&mut self, class: Option<Class>) -> Option<&mut Writer<Output>> {
        if !self.only.is_empty() && !self.only.contains(&Only(class)) {
            return None;
        }
        Some(match &mut self.destination {
            Destination::One(writer) => writer,
            Destination::Sorted(writers) => &mut writers[class.map_or(Class::ALL.len(), |class| class as usize)],
        })
    }

    fn tell_notes(&self) {
        self.classifier.notes().iter().for_each(|note| self.teller.note_once(note));
    }
}

/// Tells where a message begins doubtfully, if it does.
pub(super) fn tell_doubt(teller: &Teller, name: &str, place: &Place) {
    let why = match place.doubt {
        None => return,
        Some(Doubt::OpenMimePart) => "it stands inside an open MIME part",
        Some(Doubt::NoHeader) => "no header field follows it",
    };
    teller
        .detail(&format!("{name}, message {} at byte {}: its From_ line is doubtful: {why}", place.seq, place.offset));
}
