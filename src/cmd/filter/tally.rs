//! What is counted and reported about messages: the statistics, the summary, and a row per message.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::item::{Fate, Outcome, Place};
use crate::classify::{ServerUsage, Usage};
use crate::report::Latency;
use crate::verdict::Class;

/// The totals of a run.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    started: Instant,
    /// Messages written or left out on purpose, of each class in the order of [`Class::ALL`].
    pub classes: [u64; 3],
    /// Messages that should have got a verdict and have none.
    pub unclassified: u64,
    /// Messages with nothing to classify.
    pub skipped: u64,
    /// Bytes before the first message of each mailbox.
    pub preamble_bytes: u64,
    /// Messages that begin with a doubtful From_ line.
    pub suspicious: u64,
    /// Bytes taken from the inputs.
    pub bytes_in: u64,
    /// Number of the last message written: as many as there are to leave out to go on behind it.
    pub last: u64,
    /// How long calls took.
    pub latency: Latency,
}

/// The object written by `--stats`.
#[derive(Debug, Serialize)]
struct Stats<'a> {
    messages: u64,
    classified: u64,
    ham: u64,
    unsure: u64,
    spam: u64,
    unclassified: u64,
    skipped: u64,
    preamble_bytes: u64,
    suspicious: u64,
    bytes_in: u64,
    bytes_out: u64,
    seconds: f64,
    messages_per_second: f64,
    parallel: usize,
    connections: u64,
    requests: u64,
    retries: u64,
    latency_ms: Quantiles,
    servers: &'a [ServerUsage],
}

#[derive(Debug, Serialize)]
struct Quantiles {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Default for Tally {
    /// Starts the clock.
    fn default() -> Tally {
        Tally {
            started: Instant::now(),
            classes: [0; 3],
            unclassified: 0,
            skipped: 0,
            preamble_bytes: 0,
            suspicious: 0,
            bytes_in: 0,
            last: 0,
            latency: Latency::default(),
        }
    }
}

impl Tally {
    /// Counts a message.
    pub(super) fn count(&mut self, place: &Place, fate: &Fate) {
        self.bytes_in += place.length;
        self.last = place.seq;
        self.suspicious += u64::from(place.doubt.is_some());
        match fate {
            Fate::Skipped => self.skipped += 1,
            Fate::Unclassified(_) => self.unclassified += 1,
            Fate::Classified(answer) => {
                self.classes[answer.verdict.class as usize] += 1;
                self.latency.add(answer.took);
            }
        }
    }

    /// Messages with a verdict.
    pub(super) fn classified(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// All messages.
    pub(super) fn messages(&self) -> u64 {
        self.classified() + self.unclassified + self.skipped
    }

    /// The summary, in a line.
    pub(super) fn summary(&self, usage: &Usage) -> String {
        let [ham, unsure, spam] = self.classes;
        let (elapsed, connections) = (self.elapsed(), connections(usage));
        format!(
            "{} messages: {ham} ham, {unsure} unsure, {spam} spam, {} unclassified, {} skipped; {:.1} messages/s; \
             {connections} connection{}",
            self.messages(),
            self.unclassified,
            self.skipped,
            self.messages() as f64 / elapsed,
            if connections == 1 { "" } else { "s" },
        )
    }

    /// Writes the statistics as JSON.
    pub(super) fn write_stats(
        &self,
        out: &mut impl Write,
        usage: &Usage,
        parallel: usize,
        written: u64,
    ) -> io::Result<()> {
        let [ham, unsure, spam] = self.classes;
        let quantile = |share| self.latency.quantile(share).map(thousandths);
        let stats = Stats {
            messages: self.messages(),
            classified: self.classified(),
            ham,
            unsure,
            spam,
            unclassified: self.unclassified,
            skipped: self.skipped,
            preamble_bytes: self.preamble_bytes,
            suspicious: self.suspicious,
            bytes_in: self.bytes_in,
            bytes_out: written,
            seconds: thousandths(self.elapsed()),
            messages_per_second: thousandths(self.messages() as f64 / self.elapsed()),
            parallel,
            connections: connections(usage),
            requests: usage.servers.iter().map(|server| server.requests).sum(),
            retries: usage.retries,
            latency_ms: Quantiles {
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                max: self.latency.max().map(thousandths),
            },
            servers: &usage.servers,
        };
        serde_json::to_writer(&mut *out, &stats)?;
        out.write_all(b"\n")
    }

    fn elapsed(&self) -> f64 {
        self.started.elapsed().max(Duration::from_micros(1)).as_secs_f64()
    }
}

fn connections(usage: &Usage) -> u64 {
    usage.servers.iter().map(|server| server.connections).sum()
}

fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// A row of `--report`.
#[derive(Debug, Serialize)]
struct Row<'a> {
    seq: u64,
    file: &'a str,
    offset: u64,
    length: u64,
    message_id: Option<String>,
    class: Option<&'static str>,
    score: Option<f64>,
    method: Option<&'static str>,
    server: Option<&'a str>,
    ms: Option<f64>,
    error: Option<String>,
}

/// The fields of [`Row`], in order.
const COLUMNS: [&str; 11] =
    ["seq", "file", "offset", "length", "message_id", "class", "score", "method", "server", "ms", "error"];

/// Writes a row per message, as JSON lines or CSV.
#[derive(Debug)]
pub(super) enum Report {
    /// JSON, an object per line.
    Json(BufWriter<File>),
    /// CSV by RFC 4180, with a header row.
    Csv(Box<csv::Writer<File>>),
}

impl Report {
    /// Creates the file; the ending of its name tells the format.
    pub(super) fn create(path: &Path) -> io::Result<Report> {
        let file = File::create(path)?;
        let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        if !is_csv {
            return Ok(Report::Json(BufWriter::new(file)));
        }
        // The header row is there even if no message comes, and rows that are taken back do not take it along.
        let mut out = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        out.write_record(COLUMNS)?;
        Ok(Report::Csv(Box::new(out)))
    }

    /// Writes the row of a message of the input named `file`.
    pub(super) fn row(&mut self, file: &str, place: &Place, outcome: &Outcome) -> io::Result<()> {
        let plain =
            |text: &str| text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect::<String>();
        let mut row = Row {
            seq: place.seq,
            file,
            offset: place.offset,
            length: place.length,
            message_id: outcome.id.as_deref().map(plain),
            class: None,
            score: None,
            method: None,
            server: None,
            ms: None,
            error: None,
        };
        match &outcome.fate {
            Fate::Skipped => {}
            Fate::Unclassified(refusal) => {
                row.server = refusal.server.as_deref();
                row.error = Some(plain(&refusal.text));
            }
            Fate::Classified(answer) => {
                row.class = Some(answer.verdict.class.word());
                row.score = answer.verdict.score;
                row.method = Some(answer.method);
                row.server = answer.server.as_deref();
                row.ms = Some(thousandths(answer.took.as_secs_f64() * 1000.0));
            }
        }
        match self {
            Report::Json(out) => {
                serde_json::to_writer(&mut *out, &row)?;
                out.write_all(b"\n")
            }
            Report::Csv(out) => out.serialize(row).map_err(io::Error::other),
        }
    }

    /// Where the next row will begin. In a pipe there is no such place.
    pub(super) fn mark(&mut self) -> io::Result<u64> {
        let mut file = self.file()?;
        if file.metadata()?.is_file() { file.stream_position() } else { Ok(0) }
    }

    /// Takes back all rows from there on; what has gone into a pipe or device stays there.
    pub(super) fn back_to(&mut self, mark: u64) -> io::Result<()> {
        let mut file = self.file()?;
        if !file.metadata()?.is_file() {
            return Ok(());
        }
        file.set_len(mark)?;
        file.seek(SeekFrom::Start(mark)).map(drop)
    }

    /// The file, with all rows written to it.
    fn file(&mut self) -> io::Result<&File> {
        match self {
            Report::Json(out) => {
                out.flush()?;
                Ok(out.get_ref())
            }
            Report::Csv(out) => {
                out.flush()?;
                Ok(out.get_ref())
            }
        }
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Report::Json(mut out) => out.flush(),
            Report::Csv(mut out) => out.flush(),
        }
    }
}

/// The index of a class in [`Tally::classes`] is its place in [`Class::ALL`].
const _: () = assert!(Class::Ham as usize == 0 && Class::Unsure as usize == 1 && Class::Spam as usize == 2);
