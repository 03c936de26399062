//! `hamsift eval`: how the engine would do on mail whose class is known.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::classifier;
use crate::cli::EvalArgs;
use crate::engine::{Options, Totals};
use crate::eval::{Best, Corpus, Costs, Errors, Histogram, Scores, svg};
use crate::exit::{Exit, Failure};
use crate::mailbox::Mailbox;
use crate::output::Output;
use crate::report::{Progress, Teller};
use crate::training::{self, Bad, Found, Sample};
use crate::verdict::Cutoffs;

/// The cutoffs in the table, besides those in force.
const HAM_CUTOFFS: [f64; 4] = [0.05, 0.10, 0.20, 0.40];
const SPAM_CUTOFFS: [f64; 4] = [0.80, 0.90, 0.95, 0.99];

/// What is to be done: the mail is there, and the plot can be made.
struct Plan {
    samples: Vec<Sample>,
    folds: usize,
    costs: Costs,
    options: Options,
    plot: Option<(PathBuf, Output)>,
    teller: Teller,
}

/// Mail that was read, and what was left out of it.
#[derive(Default)]
struct Mail {
    corpus: Corpus,
    repeated: u64,
    in_both: u64,
    bad: u64,
}

/// Runs the command.
pub(super) fn run(args: EvalArgs) -> anyhow::Result<Exit> {
    let progress = Progress::new(args.progress.into(), None).filter(|_| !args.tell.quiet);
    let teller = Teller::new(args.tell.volume(), args.tell.color.into(), progress);
    let (options, notes) = classifier::engine_options(&args.engine)?;
    let samples = Sample::list(&args.ham, &args.spam);
    if samples.iter().filter(|sample| sample.path.as_os_str() == "-").count() > 1 {
        return Err(Failure::error(Exit::Usage, "standard input can be read once only"));
    }
    for sample in &samples {
        Mailbox::check(&sample.path).map_err(|error| Failure::error(error.exit(), error.to_string()))?;
    }
    let plot = args.plot.map(|path| open_plot(path, &samples)).transpose()?;
    notes.iter().for_each(|note| teller.note(note));
    let costs = Costs { false_positive: args.cost_fp, false_negative: args.cost_fn, unsure: args.cost_unsure };
    let plan = Plan { samples, folds: args.folds as usize, costs, options, plot, teller };
    let result = evaluate(&plan);
    plan.teller.end_progress();
    plan.teller.trouble_counts();
    let (mail, scores) = result?;
    finish(plan, &mail, &scores)
}

/// Opens the plot before any work is done for it. It never takes the place of the mail.
fn open_plot(path: PathBuf, samples: &[Sample]) -> anyhow::Result<(PathBuf, Output)> {
    // It may be there or not, its folder has to be.
    let folder =
        |path: &Path| path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")).to_owned();
    let whole = path.canonicalize().or_else(|_| folder(&path).canonicalize().map(|folder| folder.join("new")));
    let mail = |whole: &PathBuf| {
        samples.iter().find(|sample| sample.path.canonicalize().is_ok_and(|mail| whole.starts_with(mail)))
    };
    if let Some(sample) = whole.as_ref().ok().and_then(mail) {
        let text = format!("the plot {} would be written over or into {}", path.display(), sample.path.display());
        return Err(Failure::error(Exit::Usage, text));
    }
    match Output::file(&path) {
        Ok(output) => Ok((path, output)),
        Err(error) => Err(Failure::error(Exit::CannotCreate, format!("cannot write {}: {error}", path.display()))),
    }
}

fn evaluate(plan: &Plan) -> anyhow::Result<(Mail, Scores)> {
    let mail = read(plan)?;
    let Totals { nham, nspam } = mail.corpus.totals();
    let folds = plan.folds;
    if (nham.min(nspam) as usize) < folds {
        let text = format!(
            "{folds} folds need at least {folds} messages of ham and of spam, and there are {nham} and {nspam}; give \
             more mail, or fewer folds with --folds"
        );
        return Err(Failure::error(Exit::Usage, text));
    }
    let done = AtomicU64::new(0);
    let messages = u64::from(nham) + u64::from(nspam);
    let tell = || {
        let folds_done = done.fetch_add(1, Ordering::Relaxed) + 1;
        plan.teller.at(messages * folds_done / folds as u64, 0);
    };
    let internal = || Failure::error(Exit::Io, "internal error in hamsift while scoring (please report this)");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(classifier::cpus()).build();
    let pool = pool.map_err(|error| Failure::error(Exit::Io, error.to_string()))?;
    let validate = || pool.install(|| mail.corpus.cross_validate(folds, &plan.options, tell));
    let scores = catch_unwind(AssertUnwindSafe(validate)).map_err(|_| internal())?.map_err(|_| internal())?;
    Ok((mail, scores))
}

fn read(plan: &Plan) -> anyhow::Result<Mail> {
    let mut mail = Mail::default();
    let mut known = HashMap::new();
    let (mut messages, mut total) = (0, 0);
    training::read(&plan.samples, classifier::cpus(), &plan.options, |found, bytes| {
        (messages, total) = (messages + 1, total + bytes as u64);
        match found {
            Found::Bad(Bad { file, offset, reason }) => {
                mail.bad += 1;
                let place = format!("{}, message at byte {offset}", file.display());
                plan.teller.trouble("left out", &place, &format!("left out: {reason}"));
            }
            // A second copy, in another fold, would be scored by a database that knows it.
            Found::Lesson(lesson) => match known.get(&lesson.digest) {
                Some(class) if *class == lesson.is_spam => mail.repeated += 1,
                Some(_) => mail.in_both += 1,
                None => {
                    known.insert(lesson.digest, lesson.is_spam);
                    mail.corpus.add(&lesson.tokens, lesson.is_spam);
                }
            },
        }
        plan.teller.at(messages, total);
        Ok::<_, std::convert::Infallible>(())
    })
    .map_err(classifier::training_failure)?;
    Ok(mail)
}

fn finish(plan: Plan, mail: &Mail, scores: &Scores) -> anyhow::Result<Exit> {
    let Mail { repeated, in_both, bad, .. } = mail;
    if *repeated > 0 {
        plan.teller.note(&format!("{repeated} messages left out that came before"));
    }
    if *in_both > 0 {
        plan.teller
            .note(&format!("{in_both} messages of spam left out that are in the ham too: one of the two is wrong"));
    }
    let in_force = Cutoffs { ham: plan.options.ham_cutoff, spam: plan.options.spam_cutoff };
    let histogram = Histogram::new(scores);
    let text = text(scores, plan.folds, &in_force, &plan.costs, &histogram);
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(Failure::error(Exit::Io, format!("cannot write to standard output: {error}")));
        }
        _ => {}
    }
    if let Some((path, mut output)) = plan.plot {
        let written = output.write_all(svg(&histogram, &in_force).as_bytes()).and_then(|()| output.finish(true));
        written.map_err(|error| Failure::error(Exit::Io, format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(if *bad > 0 { Exit::Data } else { Exit::Ok })
}

fn text(scores: &Scores, folds: usize, in_force: &Cutoffs, costs: &Costs, histogram: &Histogram) -> String {
    let (ham, spam) = (scores.ham().len(), scores.spam().len());
    let errors = scores.errors(in_force);
    let Errors { false_positives, false_negatives, unsure_ham, unsure_spam } = errors;
    let percent = |part: usize, of: usize| format!("{:.2} %", 100.0 * part as f64 / of.max(1) as f64);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{ham} ham and {spam} spam in {folds} folds, ham below {}, spam above {}",
        in_force.ham, in_force.spam
    );
    let rows = [
        ("false positives", false_positives, ham, "ham taken for spam".to_owned()),
        ("false negatives", false_negatives, spam, "spam taken for ham".to_owned()),
        ("unsure", errors.unsure(), ham + spam, format!("{unsure_ham} ham, {unsure_spam} spam")),
    ];
    for (name, part, of, what) in rows {
        let _ = writeln!(out, "{name:<16} {part:>7} of {of:>7} {:>9}  {what}", percent(part, of));
    }

    let (mut hams, mut spams) = (HAM_CUTOFFS.to_vec(), SPAM_CUTOFFS.to_vec());
    for (list, value) in [(&mut hams, in_force.ham), (&mut spams, in_force.spam)] {
        if !list.contains(&value) {
            list.push(value);
            list.sort_unstable_by(f64::total_cmp);
        }
    }
    let _ = write!(out, "\n  ham <  spam >  false pos.         false neg.         unsure                  cost\n");
    let row = |cutoffs: &Cutoffs, errors: &Errors| {
        let cell = |part, of| format!("{part:>7} {:>9}", percent(part, of));
        format!(
            "{:>7.3} {:>7.3}  {}  {}  {} {:>10.1}",
            cutoffs.ham,
            cutoffs.spam,
            cell(errors.false_positives, ham),
            cell(errors.false_negatives, spam),
            cell(errors.unsure(), ham + spam),
            costs.of(errors)
        )
    };
    for &ham in &hams {
        for &spam in spams.iter().filter(|spam| **spam >= ham) {
            let cutoffs = Cutoffs { ham, spam };
            let mark = if cutoffs == *in_force { " *" } else { "" };
            let _ = writeln!(out, "{}{mark}", row(&cutoffs, &scores.errors(&cutoffs)));
        }
    }

    let best = scores.best(costs, in_force);
    let Costs { false_positive, false_negative, unsure } = costs;
    let _ = writeln!(
        out,
        "\nbest cutoffs if a false positive costs {false_positive}, a false negative {false_negative}, an unsure one {unsure}:"
    );
    let Best { cutoffs, errors, equal, .. } = &best;
    let _ = writeln!(out, "{}", row(cutoffs, errors));
    let others = equal - 1;
    if others > 0 {
        let pairs = if others == 1 { "1 other pair costs" } else { &format!("{others} other pairs cost") };
        let _ = writeln!(out, "{pairs} the same; this one is the nearest to the cutoffs in force");
    }
    let _ = write!(out, "\nscores, bars logarithmic:\n{}", histogram.text());
    out
}
