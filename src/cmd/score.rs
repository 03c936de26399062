//! `hamsift score`: a line per message, `CLASS`, `SCORE` and `MESSAGE-ID` with tabs between.

use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::classifier;
use crate::classify::local::{Clue, Local};
use crate::classify::{Classifier, Refusal};
use crate::cli::ScoreArgs;
use crate::exit::{Exit, Failure};
use crate::mailbox::{Mailbox, MailboxError};
use crate::message::{self, Message};
use crate::pipeline::{self, Done, End, Event, Feed, Limits, Sink, Stop};
use crate::report::{Teller, printable};
use crate::verdict::Verdict;

/// Messages under way at once, and their bytes.
const WINDOW: (usize, usize) = (1024, 8 << 20);
/// Lines wait no longer than this for more to go with them.
const QUIET: Duration = Duration::from_millis(50);

/// Who scores.
enum Scorer {
    /// Anyone.
    Any(Arc<dyn Classifier>),
    /// The engine, which can tell why.
    Engine(Arc<Local>),
}

impl Scorer {
    fn classifier(&self) -> &dyn Classifier {
        match self {
            Scorer::Any(any) => &**any,
            Scorer::Engine(local) => &**local,
        }
    }

    fn score(&self, text: &[u8]) -> Result<(Verdict, Vec<Clue>), Refusal> {
        match self {
            Scorer::Any(any) => any.classify(text).map(|answer| (answer.verdict, Vec::new())),
            Scorer::Engine(local) => local.explain(text),
        }
    }
}

struct Job {
    bytes: Vec<u8>,
    place: Place,
}

#[derive(Clone)]
struct Place {
    file: Arc<str>,
    offset: u64,
}

enum Fate {
    Scored(Verdict, Vec<Clue>),
    Unclassified(Refusal),
    Skipped,
}

struct Line {
    place: Place,
    id: Option<String>,
    fate: Fate,
}

/// Runs the command.
pub(super) fn run(args: ScoreArgs) -> anyhow::Result<Exit> {
    let teller = Teller::new(args.tell.volume(), args.tell.color.into(), None);
    let (threads, asked, scorer) = if args.clues {
        let local = classifier::open_engine(&args.classifier, &args.samples, "--clues")?;
        (classifier::threads(&args.classifier, &args.samples, args.parallel).0, None, Scorer::Engine(local))
    } else {
        let asked = classifier::open_with(&args.classifier, &args.samples, args.parallel)?;
        let scorer = Scorer::Any(asked.classifier.clone());
        (asked.threads.clone(), Some(asked), scorer)
    };
    asked.iter().for_each(|asked| asked.tell_before(&teller));
    classifier::tell(&args.classifier, &args.samples, &teller);
    let files = if args.files.is_empty() { vec![PathBuf::from("-")] } else { args.files };
    for file in &files {
        Mailbox::check(file).map_err(|error| mailbox_failure(&error))?;
    }
    let (scorer, header, max_size) = (Arc::new(scorer), args.classifier.header, args.classifier.max_size);
    let limits = Limits { threads, items: WINDOW.0, bytes: WINDOW.1, ordered: true };
    let sink = Printer { out: BufWriter::new(io::stdout()), teller, scorer: scorer.clone(), unclassified: 0 };
    let (mut printer, end) = pipeline::run(
        limits,
        &Stop::default(),
        QUIET,
        move |feed| read(&files, max_size, feed),
        move |job: &mut Job| score(&scorer, &header, &job.bytes),
        finish,
        sink,
    )?;
    printer.tell_notes();
    asked.iter().for_each(|asked| asked.settle(&printer.teller));
    printer.teller.trouble_counts();
    let exit = if printer.unclassified > 0 { Exit::TempFail } else { Exit::Ok };
    match end {
        End::Complete(read) => read.map_err(|error| mailbox_failure(&error))?,
        End::Failed(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(exit),
        End::Failed(error) => return Err(cannot_write(&error)),
        End::Stopped | End::Panicked => {
            return Err(Failure::error(Exit::Io, "internal error in hamsift while reading mail (please report this)"));
        }
    }
    match printer.out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_write(&error)),
        _ => Ok(exit),
    }
}

fn mailbox_failure(error: &MailboxError) -> anyhow::Error {
    Failure::error(error.exit(), error.to_string())
}

fn cannot_write(error: &io::Error) -> anyhow::Error {
    Failure::error(Exit::Io, format!("cannot write the scores: {error}"))
}

type Outcome = (Option<String>, Fate);

fn read(files: &[PathBuf], max_size: u64, feed: &Feed<Job, Line>) -> Result<(), MailboxError> {
    for path in files {
        let mut mailbox = Mailbox::open(path)?;
        while let Some(mail) = mailbox.next()? {
            let place = Place { file: mail.file.to_string_lossy().into(), offset: mail.offset };
            let sent = match mail.bytes {
                Ok(text) if text.len() as u64 <= max_size => feed.work(Job { bytes: text.to_vec(), place }, text.len()),
                Ok(_) => feed.ready(Line { place, id: None, fate: Fate::Skipped }, 0),
                Err(text) => {
                    let refusal = Refusal { kind: "message that cannot be read", text, server: None };
                    feed.ready(Line { place, id: None, fate: Fate::Unclassified(refusal) }, 0)
                }
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn score(scorer: &Scorer, header: &str, bytes: &[u8]) -> Outcome {
    let message = Message::parse(bytes, header);
    let id = message
        .field("Message-ID")
        .map(|field| String::from_utf8_lossy(message::clean_value(field.value).trim_ascii()).into_owned());
    if message.is_bare() {
        return (id, Fate::Skipped);
    }
    let fate = match scorer.score(&message.without_ours()) {
        Ok((verdict, clues)) => Fate::Scored(verdict, clues),
        Err(refusal) => Fate::Unclassified(refusal),
    };
    (id, fate)
}

fn finish(done: Done<Job, Outcome>) -> Line {
    let (id, fate) = done.outcome.unwrap_or_else(|| {
        let text = "internal error in hamsift (please report this)".to_owned();
        (None, Fate::Unclassified(Refusal { kind: "internal error", text, server: None }))
    });
    Line { place: done.job.place, id, fate }
}

struct Printer {
    out: BufWriter<Stdout>,
    teller: Teller,
    scorer: Arc<Scorer>,
    unclassified: u64,
}

impl Printer {
    fn tell_notes(&self) {
        self.scorer.classifier().notes().iter().for_each(|note| self.teller.note(note));
    }

    fn line(&mut self, Line { place, id, fate }: Line) -> io::Result<()> {
        // A field is never empty, and never holds a tab.
        let id = id.map(|id| printable(&id)).filter(|id| !id.is_empty());
        let id = id.as_deref().unwrap_or("-");
        match fate {
            Fate::Skipped => writeln!(self.out, "skipped\t-\t{id}"),
            Fate::Unclassified(refusal) => {
                self.unclassified += 1;
                let from = refusal.server.map_or(String::new(), |server| format!("{server}: "));
                let place = format!("{}, message at byte {}", place.file, place.offset);
                self.teller.trouble(refusal.kind, &place, &format!("not classified: {from}{}", refusal.text));
                writeln!(self.out, "unclassified\t-\t{id}")
            }
            Fate::Scored(verdict, clues) => {
                match verdict.score {
                    Some(score) => writeln!(self.out, "{}\t{score:.6}\t{id}", verdict.class),
                    None => writeln!(self.out, "{}\t-\t{id}", verdict.class),
                }?;
                clues.iter().try_for_each(|Clue { word, probability }| writeln!(self.out, "\t{probability:.6}\t{word}"))
            }
        }
    }
}

impl Sink<Line> for Printer {
    type Error = io::Error;

    fn take(&mut self, event: Event<Line>) -> io::Result<()> {
        self.tell_notes();
        match event {
            Event::Idle => self.out.flush(),
            Event::Item(line) => self.line(line),
        }
    }
}
