//! `hamsift filter`: reader → workers → writer, in order, over one or several mailboxes.

mod count;
mod in_place;
mod item;
pub(super) mod measure;
mod read;
mod recovery;
mod select;
mod tally;
mod write;

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use self::item::Worker;
use self::read::{Reading, Stopped, input_error, read_all};
use self::select::Selection;
use self::tally::{Report, Tally};
use self::write::{Destination, Sink, SinkError};
use super::classifier::{self, Asked};
use super::signals;
use crate::classify::Usage;
use crate::cli::{FilterArgs, FromRuleArg, Shard};
use crate::exit::{self, Exit, Failure};
use crate::input::Source;
use crate::mbox::{FromRule, Rules};
use crate::output::{self, Output};
use crate::pipeline::{self, End, Limits, Stop, Threads};
use crate::report::{Progress, Teller};

/// Messages under way at once: enough that one slow message does not stop the others soon.
const WINDOW_ITEMS: usize = 4096;
/// Bytes of messages under way at once.
const WINDOW_BYTES: usize = 12 << 20;
/// Output waits no longer than this for more to go with it.
const QUIET: Duration = Duration::from_millis(50);

/// What is to be done: nothing invalid is left in it.
struct Plan {
    inputs: Vec<Source>,
    threads: Threads,
    range: Option<Range<u64>>,
    /// Length of all inputs, where it is known.
    length: Option<u64>,
    args: FilterArgs,
}

impl Plan {
    fn selection(&self) -> Selection {
        Selection::new(self.args.skip, self.args.total, self.range.clone())
    }
}

/// Runs the command.
pub(super) fn run(mut args: FilterArgs) -> anyhow::Result<Exit> {
    let (threads, asked) = if args.dry_run {
        (classifier::threads(&args.classifier, &args.samples, args.parallel).0, None)
    } else {
        let asked = classifier::open_with(&args.classifier, &args.samples, args.parallel)?;
        (asked.threads.clone(), Some(asked))
    };
    let inputs = inputs(std::mem::take(&mut args.mailboxes));
    let length = check_inputs(&inputs)?;
    let range = args.shard.map(|shard| range(shard, length)).transpose()?;
    let plan = Plan { inputs, threads, range, length, args };
    check_outputs(&plan)?;
    let tell = &plan.args.tell;
    let progress = Progress::new(plan.args.progress.into(), plan.length).filter(|_| !tell.quiet);
    let teller = Arc::new(Teller::new(tell.volume(), tell.color.into(), progress));
    match asked {
        None => count::run(&plan, &teller),
        Some(asked) => {
            asked.tell_before(&teller);
            classifier::tell(&plan.args.classifier, &plan.args.samples, &teller);
            annotate(&plan, &teller, &asked)
        }
    }
}

fn inputs(mailboxes: Vec<PathBuf>) -> Vec<Source> {
    if mailboxes.is_empty() {
        return vec![Source::Stdin];
    }
    mailboxes.into_iter().map(Source::from_argument).collect()
}

/// Opens each input once, so that a missing one is known before anything is done; returns their length in all, where
/// it is known. Standard input is left alone: reading its beginning would take it away.
fn check_inputs(inputs: &[Source]) -> anyhow::Result<Option<u64>> {
    let mut sum = Some(0);
    for source in inputs {
        let length = match source {
            Source::Stdin => output::metadata_of(std::io::stdin()).ok().filter(|m| m.is_file()).map(|m| m.len()),
            Source::Path(path) | Source::Beginning { path, .. } => {
                let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir());
                // Opening a FIFO would wait for its writer, and closing it again would lose him.
                if is_file { source.open().map_err(|error| input_error(&error))?.length } else { exists(source, path)? }
            }
        };
        sum = sum.zip(length).map(|(sum, length)| sum + length);
    }
    Ok(sum)
}

fn exists(source: &Source, path: &Path) -> anyhow::Result<Option<u64>> {
    match path.metadata() {
        Ok(_) => Ok(None),
        Err(error) => Err(Failure::error(Exit::NoInput, format!("{}: {error}", source.name()))),
    }
}

fn range(shard: Shard, length: Option<u64>) -> anyhow::Result<Range<u64>> {
    let length = length.ok_or_else(|| {
        Failure::error(Exit::Usage, "--shard needs mailboxes whose length is known: files that are not packed")
    })?;
    let bound = |number: u64| (u128::from(length) * u128::from(number) / u128::from(shard.of)) as u64;
    // The last one reaches beyond the end, for mail that arrives meanwhile.
    let end = if shard.number == shard.of { u64::MAX } else { bound(shard.number) };
    Ok(bound(shard.number - 1)..end)
}

/// No output may be one of the inputs, what the verdicts come from, or another output.
fn check_outputs(plan: &Plan) -> anyhow::Result<()> {
    let args = &plan.args;
    let mut known: Vec<_> = Vec::new();
    for source in &plan.inputs {
        let metadata = match source {
            Source::Stdin => output::metadata_of(std::io::stdin()).ok(),
            Source::Path(path) | Source::Beginning { path, .. } => path.metadata().ok(),
        };
        known.extend(metadata.map(|metadata| (metadata, source.name())));
    }
    // What is learned from in a Maildir has names that nobody would think of.
    let used = if args.dry_run { Vec::new() } else { classifier::files(&args.classifier, &args.samples)? };
    known.extend(used.iter().filter_map(|path| Some((path.metadata().ok()?, path.display().to_string()))));
    let files = [("--output", &args.output), ("--report", &args.report), ("--stats", &args.stats)];
    let named: Vec<_> =
        files.iter().filter_map(|(option, path)| Some((*option, output::place_of(path.as_deref()?)))).collect();
    for (number, (option, place)) in named.iter().enumerate() {
        if let Some((other, _)) = named[..number].iter().find(|(_, other)| other == place) {
            return Err(Failure::error(Exit::Usage, format!("{option} is the same file as {other}")));
        }
    }
    let to_stdout = args.output.is_none() && args.sort.is_none() && !args.in_place && !args.dry_run;
    let stdout = to_stdout.then(|| output::metadata_of(std::io::stdout()).ok()).flatten();
    let outputs = files.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?.metadata().ok()?)));
    for (option, metadata) in stdout.map(|metadata| ("standard output", metadata)).into_iter().chain(outputs) {
        if let Some((_, name)) = known.iter().find(|(other, _)| output::same_file(&metadata, other)) {
            return Err(Failure::error(Exit::Usage, format!("{option} is the same file as {name}")));
        }
        known.push((metadata, option.to_owned()));
    }
    Ok(())
}

fn rules(args: &FilterArgs) -> Rules {
    let from_rule = match args.from_rule {
        FromRuleArg::Auto => FromRule::Auto,
        FromRuleArg::Strict => FromRule::Strict,
        FromRuleArg::Formail => FromRule::Formail,
        FromRuleArg::Any => FromRule::Any,
    };
    Rules {
        from_rule,
        anywhere: args.anywhere,
        ignore_content_length: args.ignore_content_length,
        min_fields: args.min_fields,
    }
}

/// Adds what was being done to an error that ends in this status.
fn cannot(exit: Exit, what: &str, path: &Path, error: &std::io::Error) -> anyhow::Error {
    Failure::error(exit, format!("cannot {what} {}: {error}", path.display()))
}

fn create_report(args: &FilterArgs) -> anyhow::Result<Option<Report>> {
    let create =
        |path: &PathBuf| Report::create(path).map_err(|error| cannot(Exit::CannotCreate, "create", path, &error));
    args.report.as_ref().map(create).transpose()
}

/// Created before the run, so that a bad path is known in time.
fn create_stats(args: &FilterArgs) -> anyhow::Result<Option<File>> {
    let create =
        |path: &PathBuf| File::create(path).map_err(|error| cannot(Exit::CannotCreate, "create", path, &error));
    args.stats.as_ref().map(create).transpose()
}

fn open_destination(args: &FilterArgs) -> anyhow::Result<Destination> {
    match (&args.sort, &args.output) {
        (Some(folder), _) => {
            Destination::sorted(folder).map_err(|error| cannot(Exit::CannotCreate, "sort into", folder, &error))
        }
        (None, Some(path)) if path.as_os_str() != "-" => {
            let output = Output::file(path).map_err(|error| cannot(Exit::CannotCreate, "create", path, &error))?;
            Ok(Destination::one(output))
        }
        (None, _) => Ok(Destination::one(Output::stdout().context("standard output")?)),
    }
}

fn annotate(plan: &Plan, teller: &Arc<Teller>, asked: &Asked) -> anyhow::Result<Exit> {
    let (args, classifier) = (&plan.args, &asked.classifier);
    let (report, stats) = (create_report(args)?, create_stats(args)?);
    let stop = Stop::default();
    let caught = signals::pull(stop.clone())?;
    let worker = Arc::new(Worker {
        annotate: classifier::annotate(&args.classifier),
        classifier: classifier.clone(),
        wants_id: report.is_some(),
    });
    let mut run =
        Run { plan, teller, worker, stop, tally: Tally::default(), report, written: 0, stopped: false, file: 0 };
    let ended = if args.in_place { in_place::run(&mut run)? } else { run.filter(plan.inputs.clone())? };
    let Run { tally, report, written, stopped, .. } = run;
    teller.end_progress();
    let usage = classifier.usage();
    let Ended::With(mut exit) = ended else {
        // As for any filter in front of `head`: no complaint, and no summary of what nobody wanted.
        return Ok(finish_reports(plan, teller, &tally, report, stats, &usage, written));
    };
    classifier.notes().iter().for_each(|note| teller.note(note));
    asked.settle(teller);
    teller.trouble_counts();
    exit = exit.and(finish_reports(plan, teller, &tally, report, stats, &usage, written));
    if tally.unclassified > 0 {
        exit = exit.and(Exit::TempFail);
    }
    if let Some(signal) = caught.exit().filter(|_| stopped) {
        teller.error(&interrupted(args, &tally));
        exit = signal;
    }
    teller.note(&tally.summary(&usage));
    Ok(exit)
}

fn interrupted(args: &FilterArgs, tally: &Tally) -> String {
    let go_on = if args.in_place {
        "the mailbox at work is as it was".to_owned()
    } else if args.unordered {
        "in no order, so there is no number to go on with".to_owned()
    } else {
        format!("to go on: --skip {}", tally.last.max(args.skip))
    };
    format!("interrupted after {} messages; {go_on}", tally.messages())
}

/// How writing ended.
enum Ended {
    /// With this status.
    With(Exit),
    /// Nobody reads the output any more: a quiet end.
    Closed,
}

/// A run over one or several destinations, and what it has counted so far.
struct Run<'a> {
    plan: &'a Plan,
    teller: &'a Arc<Teller>,
    worker: Arc<Worker>,
    stop: Stop,
    tally: Tally,
    report: Option<Report>,
    written: u64,
    /// A signal has ended it before its end.
    stopped: bool,
    /// Number of the first of the inputs that are filtered next.
    file: usize,
}

/// What a destination holds, and whether that is all there was to write.
struct Filled {
    destination: Destination,
    complete: bool,
    ended: Ended,
}

impl Run<'_> {
    /// Filters all inputs to where the plan says.
    fn filter(&mut self, inputs: Vec<Source>) -> anyhow::Result<Ended> {
        let Filled { destination, complete, ended } = self.fill(inputs, open_destination(&self.plan.args)?)?;
        for output in destination.into_outputs() {
            let partial = match output.finish(complete) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Ended::Closed),
                result => {
                    result.map_err(|error| Failure::error(Exit::Io, format!("cannot write the output: {error}")))?
                }
            };
            if let Some(path) = partial {
                self.teller.error(&format!("what was done so far is in {}", path.display()));
            }
        }
        Ok(ended)
    }

    /// Filters all inputs into a destination, which is left to be finished.
    fn fill(&mut self, inputs: Vec<Source>, destination: Destination) -> anyhow::Result<Filled> {
        let args = &self.plan.args;
        let names = self.plan.inputs.iter().map(Source::name).collect();
        let sink = Sink {
            only: args.only.clone(),
            enclose: self.plan.inputs.len() > 1 && !args.in_place,
            report: self.report.take(),
            tally: std::mem::take(&mut self.tally),
            unordered: args.unordered,
            ..Sink::new(destination, names, self.teller.clone(), self.worker.classifier.clone())
        };
        let reading = Reading {
            inputs,
            file: self.file,
            rules: rules(args),
            max_size: args.classifier.max_size,
            selection: self.plan.selection().numbered_from(sink.tally.messages()),
            batches: sink.report.is_none() && !self.teller.is_verbose(),
            spares: sink.spares.clone(),
            worker: self.worker.clone(),
        };
        let (mut sink, end) = stream(reading, sink, &self.plan.threads, &self.stop)?;
        let (complete, ended) = match end {
            End::Complete(Ok(())) => (true, Ended::With(Exit::Ok)),
            End::Complete(Err(Stopped::Closed)) | End::Stopped => {
                self.stopped = true;
                let cut = if sink.mailboxes < self.plan.inputs.len() { sink.cut() } else { Ok(()) };
                cut.map_err(|error| Failure::error(Exit::Io, format!("cannot write the output: {error}")))?;
                (false, Ended::With(Exit::Ok))
            }
            End::Complete(Err(Stopped::Failed(error))) => {
                self.teller.error(&format!("{error:#}"));
                (false, Ended::With(exit::status(&error)))
            }
            End::Panicked => {
                self.teller.error("internal error in hamsift; the output ends early (please report this)");
                (false, Ended::With(Exit::Io))
            }
            End::Failed(SinkError::Closed) => (false, Ended::Closed),
            End::Failed(SinkError::Output(error)) => {
                self.teller.error(&format!("cannot write the output: {error}"));
                (false, Ended::With(Exit::Io))
            }
            End::Failed(SinkError::Report(error)) => {
                self.teller.error(&format!("cannot write the report: {error}"));
                (false, Ended::With(Exit::Io))
            }
        };
        self.written += sink.destination.written();
        self.tally = sink.tally;
        self.report = sink.report;
        Ok(Filled { destination: sink.destination, complete, ended })
    }
}

/// How a stream of mail ended.
type Streamed = End<Result<(), Stopped>, SinkError>;

/// Lets all that is read pass so many workers into the sink.
fn stream(reading: Reading, sink: Sink, threads: &Threads, stop: &Stop) -> std::io::Result<(Sink, Streamed)> {
    let (threads, ordered) = (threads.clone(), !sink.unordered);
    let limits = Limits { threads, items: WINDOW_ITEMS, bytes: WINDOW_BYTES, ordered };
    let worker = reading.worker.clone();
    pipeline::run(
        limits,
        stop,
        QUIET,
        move |feed| read_all(&reading, feed),
        move |job| worker.classify(job),
        item::finish,
        sink,
    )
}

/// Writes the statistics and ends the report; trouble with them is told, and is what the status says.
fn finish_reports(
    plan: &Plan,
    teller: &Teller,
    tally: &Tally,
    report: Option<Report>,
    stats: Option<File>,
    usage: &Usage,
    written: u64,
) -> Exit {
    let stats = stats.map_or(Ok(()), |file| {
        let mut out = BufWriter::new(file);
        tally.write_stats(&mut out, usage, plan.threads.get(), written).and_then(|()| out.flush())
    });
    let report = report.map_or(Ok(()), Report::finish);
    let mut exit = Exit::Ok;
    for (what, result) in [("statistics", stats), ("report", report)] {
        if let Err(error) = result {
            teller.error(&format!("cannot write the {what}: {error}"));
            exit = Exit::Io;
        }
    }
    exit
}
