//! `hamsift tune`: how many messages in flight are enough, measured with one's own server and mail.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::classifier;
use super::filter::measure;
use crate::classify::Classifier;
use crate::cli::{MOST_PARALLEL, TuneArgs};
use crate::config;
use crate::exit::{Exit, Failure};
use crate::input::Source;
use crate::output::{self, Output};
use crate::report::{Teller, Volume};
use crate::tune::{self, Limit, Row, Run};

/// A run takes at least so long, or what is measured is the scheduler. Where the mail is over sooner, it is read again.
const LEAST: Duration = Duration::from_millis(150);
/// A run has at least so many messages for each in flight, or beginning and end, with fewer in flight, are most of it.
const EACH: u64 = 6;
/// Where runs are shorter than this, a round is several turns over all numbers: the shorter a turn, the more alike are the
/// machine's other doings during its runs.
const ROUND: Duration = Duration::from_millis(750);

/// What is to be done: nothing invalid is left in it.
struct Plan {
    inputs: Vec<Source>,
    /// In the order in which they are told.
    numbers: Vec<usize>,
    plot: Option<(PathBuf, Output)>,
    /// The engine, which is loaded once.
    engine: Option<Arc<dyn Classifier>>,
    args: TuneArgs,
    teller: Teller,
    /// Tells of single messages: trouble alone.
    troubles: Arc<Teller>,
}

/// Runs the command. `config` is the configuration file as it was named.
pub(super) fn run(args: TuneArgs, config: Option<PathBuf>) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    let (plot, saves) = (plan.plot.take(), plan.args.save);
    let (rows, messages) = measured(&plan)?;
    let chosen = tune::knee(&rows).ok_or_else(|| Failure::error(Exit::Usage, "there is no number to try"))?;
    let limit = tune::limit(&rows, chosen, classifier::cpus());
    plan.troubles.trouble_counts();
    let mut text = tune::table(&rows, messages);
    text.push_str(&recommendation(&rows, chosen, &limit));
    print(&text)?;
    if let Some((path, mut output)) = plot {
        let picture = tune::picture(&rows, chosen.parallel);
        let written = output.write_all(picture.as_bytes()).and_then(|()| output.finish(true));
        written.map_err(|error| Failure::error(Exit::Io, format!("cannot write {}: {error}", path.display())))?;
    }
    let is_complete = rows.iter().all(|row| row.unclassified == 0);
    if saves && chosen.unclassified > 0 {
        let text = format!("parallel = {} is not saved: with it, messages were not classified", chosen.parallel);
        plan.teller.error(&text);
    } else if saves {
        let path = config::save(config, "filter", "parallel", chosen.parallel as i64)
            .map_err(|error| Failure::error(Exit::Config, error.to_string()))?;
        plan.teller.note(&format!("parallel = {} is saved for `filter` in {}", chosen.parallel, path.display()));
    }
    Ok(if is_complete { Exit::Ok } else { Exit::TempFail })
}

fn plan(mut args: TuneArgs) -> anyhow::Result<Plan> {
    let teller = Teller::new(args.tell.volume(), args.tell.color.into(), None);
    let troubles = Teller::new(args.tell.volume().min(Volume::Normal), args.tell.color.into(), None);
    let mut numbers: Vec<usize> = Vec::new();
    for number in std::mem::take(&mut args.numbers) {
        if number > MOST_PARALLEL {
            teller.note_once(&format!("-n {MOST_PARALLEL} is the most; going on with that"));
        }
        let number = number.min(MOST_PARALLEL);
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    let inputs: Vec<_> = std::mem::take(&mut args.mailboxes).into_iter().map(Source::from_argument).collect();
    for source in &inputs {
        // It is read again and again.
        if !matches!(source, Source::Path(path) if path.metadata().map_or(true, |metadata| metadata.is_file() || metadata.is_dir()))
        {
            return Err(Failure::error(Exit::Usage, format!("{} cannot be read more than once", source.name())));
        }
    }
    // A missing classifier is told before a missing mailbox, as `filter` does.
    let first = classifier::open(&args.classifier, &args.samples, MOST_PARALLEL)?;
    let engine = Some(first).filter(|_| classifier::is_engine(&args.classifier, &args.samples));
    measure::check(&inputs)?;
    let used = classifier::files(&args.classifier, &args.samples)?;
    let plot = args.plot.take().map(|path| open_plot(path, &inputs, &used)).transpose()?;
    classifier::tell(&args.classifier, &args.samples, &teller);
    Ok(Plan { inputs, numbers, plot, engine, args, teller, troubles: Arc::new(troubles) })
}

/// Opens the plot before any work is done for it. It never takes the place of the mail, nor of what the verdicts come
/// from.
fn open_plot(path: PathBuf, inputs: &[Source], used: &[PathBuf]) -> anyhow::Result<(PathBuf, Output)> {
    let place = output::place_of(&path);
    let mail = inputs.iter().filter_map(|source| match source {
        Source::Path(mail) => Some(mail),
        _ => None,
    });
    if let Some(there) = mail.chain(used).find(|there| output::place_of(there) == place) {
        let text = format!("the plot {} would be written over {}", path.display(), there.display());
        return Err(Failure::error(Exit::Usage, text));
    }
    match Output::file(&path) {
        Ok(output) => Ok((path, output)),
        Err(error) => Err(Failure::error(Exit::CannotCreate, format!("cannot write {}: {error}", path.display()))),
    }
}

/// Warms up, and measures all numbers in turns, in each round beginning with another one: what changes with time, such as
/// what else the machine does, hits all alike. With the rows come the messages of one pass over the mail.
fn measured(plan: &Plan) -> anyhow::Result<(Vec<Row>, u64)> {
    let most = plan.numbers.iter().copied().max().unwrap_or(1);
    let warm = one_run(plan, 1, most)?;
    if warm.classified == 0 {
        plan.troubles.trouble_counts();
        return Err(if warm.unclassified > 0 {
            Failure::error(Exit::TempFail, "no message could be classified, so there is nothing to measure")
        } else {
            Failure::error(Exit::Data, "there is no message to classify, so there is nothing to measure")
        });
    }
    let for_time = (LEAST.as_secs_f64() / warm.took.as_secs_f64().max(1e-6)).ceil() as u64;
    let for_each = (EACH * most as u64).div_ceil(warm.messages);
    let times = usize::try_from(for_time.max(for_each)).unwrap_or(usize::MAX).max(1);
    let took = warm.took.as_secs_f64() * times as f64;
    let turns = plan.args.rounds as usize * (ROUND.as_secs_f64() / took).ceil().max(1.0) as usize;
    let mut runs = Vec::new();
    for turn in 0..turns {
        let mut row: Vec<Run> = vec![Run::default(); plan.numbers.len()];
        for step in 0..plan.numbers.len() {
            let number = (turn + step) % plan.numbers.len();
            let parallel = plan.numbers[number];
            row[number] = one_run(plan, times, parallel)?;
            let rate = row[number].rate();
            plan.teller.detail(&format!("turn {} of {turns}, -n {parallel}: {rate:.1} messages/s", turn + 1));
        }
        runs.push(row);
    }
    if runs.iter().flatten().all(|run| run.classified == 0) {
        plan.troubles.trouble_counts();
        return Err(Failure::error(Exit::TempFail, "no message could be classified any more, so nothing was measured"));
    }
    Ok((tune::rows(&plan.numbers, &runs), warm.messages))
}

/// A server gets fresh connections for each run, as from any run of `filter`. Kept ones would be in the way of the next
/// number: a server that answers one connection at a time would stay with the old ones. Opening them is measured too, but
/// a run is long enough for that not to be seen.
fn one_run(plan: &Plan, times: usize, parallel: usize) -> anyhow::Result<Run> {
    let args = &plan.args;
    let classifier = match &plan.engine {
        Some(engine) => engine.clone(),
        None => classifier::open(&args.classifier, &args.samples, parallel)?,
    };
    measure::measure(&args.classifier, &plan.inputs, times, parallel, &classifier, &plan.troubles)
}

fn recommendation(rows: &[Row], chosen: &Row, limit: &Limit) -> String {
    let best = rows.iter().map(|row| row.relative).fold(0.0, f64::max);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let share = 100.0 * chosen.relative / best;
    let noise = if share < 97.0 { "; less than that is noise here" } else { "" };
    let Row { parallel, .. } = chosen;
    let _ = writeln!(text, "\nuse -n {parallel}: the fewest in flight with {share:.0} % of the best throughput{noise}");
    let _ = writeln!(text, "limited by {limit}");
    let bad = rows.iter().filter(|row| row.unclassified > 0);
    for Row { parallel, unclassified, .. } in bad {
        let _ = writeln!(text, "with -n {parallel}, {unclassified} messages were not classified");
    }
    text
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::error(Exit::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
