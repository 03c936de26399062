//! From what was typed to a [`Classifier`].

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use super::database;
use crate::classify::annotate::{Annotate, Apply};
use crate::classify::local::{Local, LocalConfig};
use crate::classify::paced::Paced;
use crate::classify::remote::{Remote, RemoteConfig};
use crate::classify::{Answer, Classifier, Method};
use crate::cli::{ApplyArg, ClassifierArgs, EngineArgs, MOST_PARALLEL, MethodArg, Parallel, SampleArgs};
use crate::engine::Options;
use crate::exit::{Exit, Failure};
use crate::http::Endpoint;
use crate::message::Message;
use crate::pipeline::Threads;
use crate::report::Teller;
use crate::training::{self, Bad, Found, Learner, Sample, TrainingError};
use crate::verdict::Cutoffs;

/// The environment variable that names servers, separated by white space.
const SERVER_VARIABLE: &str = "HAMSIFT_SERVER";
/// Calls in flight if nothing else is said: SpamBayes's own server takes no more at a time.
const SERVER_PARALLEL: usize = 4;

/// How messages are annotated.
pub(super) fn annotate(args: &ClassifierArgs) -> Annotate {
    let apply = match args.apply {
        ApplyArg::Verdict => Apply::Verdict,
        ApplyArg::Subject => Apply::Subject,
        ApplyArg::Message => Apply::Message,
    };
    Annotate { header: args.header.clone(), keep_forged: args.keep_forged, apply, in_mailbox: true }
}

/// Who is to give the verdicts.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// Servers, by their URLs.
    Servers(Vec<String>),
    /// The engine, trained for this run.
    Samples(Vec<Sample>),
    /// The engine, over this database.
    Database(PathBuf),
}

impl Choice {
    /// The command line comes before the environment, and that before the default database.
    fn make(args: &ClassifierArgs, samples: &SampleArgs) -> anyhow::Result<Choice> {
        let servers = || {
            let variable = std::env::var(SERVER_VARIABLE).unwrap_or_default();
            Some(variable.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).filter(|urls| !urls.is_empty())
        };
        let samples = Sample::list(&samples.ham, &samples.spam);
        if !args.server.is_empty() {
            return Ok(Choice::Servers(args.server.clone()));
        }
        if !samples.is_empty() {
            return Ok(Choice::Samples(samples));
        }
        if let Some(path) = &args.db {
            return Ok(Choice::Database(path.clone()));
        }
        if let Some(urls) = servers() {
            return Ok(Choice::Servers(urls));
        }
        if let Some(path) = database::from_environment() {
            return Ok(Choice::Database(path));
        }
        let default = database::default_path();
        if let Some(path) = default.as_ref().filter(|path| path.exists()) {
            return Ok(Choice::Database(path.clone()));
        }
        let nowhere = default.map_or(String::new(), |path| format!(" ({} is not there)", path.display()));
        let text = format!(
            "no classifier{nowhere}: name a server with -s URL or in {SERVER_VARIABLE}; or train a database with \
             `hamsift train --ham PATH --spam PATH` and, if it is not the default one, name it with --db FILE or in \
             {}; or give mail to learn from for this run with --ham PATH --spam PATH",
            database::VARIABLE
        );
        Err(Failure::error(Exit::Config, text))
    }
}

/// Whether the engine gives the verdicts.
pub(super) fn is_engine(args: &ClassifierArgs, samples: &SampleArgs) -> bool {
    matches!(Choice::make(args, samples), Ok(Choice::Samples(_) | Choice::Database(_)))
}

/// The files that the engine takes its knowledge from, if it is the engine that is asked.
pub(super) fn files(args: &ClassifierArgs, samples: &SampleArgs) -> anyhow::Result<Vec<PathBuf>> {
    Ok(match Choice::make(args, samples)? {
        Choice::Servers(_) => Vec::new(),
        Choice::Samples(samples) => samples.into_iter().map(|sample| sample.path).collect(),
        Choice::Database(path) => vec![path],
    })
}

/// Threads that can run at once here.
pub(super) fn cpus() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The classifier that the arguments or the environment name. Asks no server yet; learns from the samples.
pub(super) fn open(
    args: &ClassifierArgs,
    samples: &SampleArgs,
    parallel: usize,
) -> anyhow::Result<Arc<dyn Classifier>> {
    match Choice::make(args, samples)? {
        Choice::Servers(urls) => remote(args, &urls, parallel),
        choice => Ok(Arc::new(local(args, choice, false)?)),
    }
}

/// A classifier, and how many messages it is asked about at once.
pub(super) struct Asked {
    pub(super) classifier: Arc<dyn Classifier>,
    /// Messages in flight; where that is found out meanwhile, the number changes.
    pub(super) threads: Threads,
    paced: Option<Arc<Paced>>,
    /// What is to be told before it begins.
    note: Option<String>,
}

/// The same, with as many messages in flight as is said, or as is good where nothing is said.
pub(super) fn open_with(
    args: &ClassifierArgs,
    samples: &SampleArgs,
    parallel: Option<Parallel>,
) -> anyhow::Result<Asked> {
    let (threads, note) = threads(args, samples, parallel);
    let is_paced = parallel == Some(Parallel::Auto) && !is_engine(args, samples);
    let classifier = open(args, samples, if is_paced { MOST_PARALLEL } else { threads.get() })?;
    let paced = is_paced.then(|| Arc::new(Paced::new(classifier.clone(), threads.clone(), MOST_PARALLEL)));
    let classifier = paced.clone().map_or(classifier, |paced| paced);
    Ok(Asked { classifier, threads, paced, note })
}

/// Messages in flight at the beginning, and what is to be told of that. The engine is done by the CPUs here, so there
/// is nothing to find out.
pub(super) fn threads(
    args: &ClassifierArgs,
    samples: &SampleArgs,
    parallel: Option<Parallel>,
) -> (Threads, Option<String>) {
    let number = match parallel {
        Some(Parallel::Number(number)) => number,
        _ if is_engine(args, samples) => cpus().min(MOST_PARALLEL),
        _ => SERVER_PARALLEL,
    };
    let note = match parallel {
        _ if number > MOST_PARALLEL => Some(format!("-n {MOST_PARALLEL} is the most; going on with that")),
        Some(Parallel::Auto) if is_engine(args, samples) => Some(format!("-n auto: {number}, one per CPU")),
        _ => None,
    };
    (Threads::new(number.min(MOST_PARALLEL)), note)
}

impl Asked {
    /// Tells what is to be known before it begins.
    pub(super) fn tell_before(&self, teller: &Teller) {
        self.note.iter().for_each(|note| teller.note(note));
    }

    /// Where the best number of messages in flight was looked for, tells what was found, and leaves it in `threads`.
    pub(super) fn settle(&self, teller: &Teller) {
        if let Some(paced) = &self.paced {
            self.threads.set(paced.settled());
            teller.detail(&format!("-n auto: {}", paced.path()));
            teller.note(&format!("-n auto: ended with {}", paced.settled()));
        }
    }
}

/// The same for a command that classifies a single message.
fn open_for_one(args: &ClassifierArgs, samples: &SampleArgs) -> anyhow::Result<Arc<dyn Classifier>> {
    match Choice::make(args, samples)? {
        Choice::Servers(urls) => remote(args, &urls, 1),
        choice => Ok(Arc::new(local(args, choice, true)?)),
    }
}

/// The verdict on a single message, or why there is none. No panic gets out.
pub(super) fn one_verdict(
    args: &ClassifierArgs,
    samples: &SampleArgs,
    message: &Message,
    teller: &Teller,
) -> Result<Answer, String> {
    let classify = || {
        let classifier = open_for_one(args, samples).map_err(|error| format!("{error:#}"))?;
        tell(args, samples, teller);
        let answer = classifier.classify(&message.without_ours());
        // A mail log has no use for the same note with every message.
        classifier.notes().iter().for_each(|note| teller.detail(note));
        answer.map_err(|refusal| match refusal.server {
            Some(server) => format!("{server}: {}", refusal.text),
            None => refusal.text,
        })
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(classify))
        .unwrap_or_else(|_| Err("internal error in hamsift (please report this)".to_owned()))
}

/// The engine; a server will not do.
pub(super) fn open_engine(args: &ClassifierArgs, samples: &SampleArgs, why: &str) -> anyhow::Result<Arc<Local>> {
    match Choice::make(args, samples)? {
        Choice::Servers(_) => Err(Failure::error(Exit::Usage, format!("{why} needs a token database, not a server"))),
        choice => Ok(Arc::new(local(args, choice, false)?)),
    }
}

/// Tells which database is used, if one is, where details are wanted.
pub(super) fn tell(args: &ClassifierArgs, samples: &SampleArgs, teller: &Teller) {
    if let (true, Ok(Choice::Database(path))) = (teller.is_verbose(), Choice::make(args, samples)) {
        database::tell(&path, teller);
    }
}

fn local(args: &ClassifierArgs, choice: Choice, single: bool) -> anyhow::Result<Local> {
    let (options, notes) = engine_options(&args.engine)?;
    let config = LocalConfig { options, evidence: args.evidence };
    let open = if single { Local::looked_up } else { Local::loaded };
    let local = match choice {
        Choice::Database(path) => {
            open(&path, args.timeout.min(database::WAIT), config).map_err(|error| database::failure(error, Exit::Io))
        }
        Choice::Samples(samples) => learn(&samples, config),
        Choice::Servers(_) => Err(Failure::error(Exit::Usage, "a server is no token database")),
    }?;
    notes.into_iter().for_each(|note| local.note(note));
    Ok(local)
}

/// The engine's options: SpamBayes's defaults, then an options file of its, then what is set one by one. With them come
/// notes on what in that file is not honoured.
pub(super) fn engine_options(args: &EngineArgs) -> anyhow::Result<(Options, Vec<String>)> {
    let (mut options, mut notes) = (Options::default(), Vec::new());
    if let Some(path) = &args.spambayesrc {
        let text = std::fs::read(path)
            .map_err(|error| Failure::error(Exit::Config, format!("{}: {error}", path.display())))?;
        let refused = options.apply_file(&String::from_utf8_lossy(&text));
        if !refused.is_empty() {
            notes.push(format!("{}: not honoured here: {}", path.display(), refused.join(", ")));
        }
    }
    for (name, value) in &args.option {
        options.set(name, value).map_err(|error| Failure::error(Exit::Usage, error.to_string()))?;
    }
    Ok((options, notes))
}

fn learn(samples: &[Sample], config: LocalConfig) -> anyhow::Result<Local> {
    let mut learner = Learner::default();
    let mut bad: Vec<Bad> = Vec::new();
    training::read(samples, cpus(), &config.options, |found, _| {
        match found {
            Found::Lesson(lesson) => drop(learner.learn(lesson)),
            Found::Bad(one) => bad.push(one.clone()),
        }
        Ok::<_, std::convert::Infallible>(())
    })
    .map_err(training_failure)?;
    let local = Local::trained(learner.into_memory(), config);
    if let [Bad { file, offset, reason }, more @ ..] = &bad[..] {
        let (file, more) = (file.display(), more.len());
        local.note(format!("not learned from: {file}, message at byte {offset}: {reason}; and {more} more"));
    }
    Ok(local)
}

/// A failed training with its exit status.
pub(super) fn training_failure<E>(error: TrainingError<E>) -> anyhow::Error
where
    anyhow::Error: From<E>,
{
    match error {
        TrainingError::Mailbox(error) => Failure::error(error.exit(), error.to_string()),
        TrainingError::Internal(text) => Failure::error(Exit::Io, text),
        TrainingError::Taker(error) => error.into(),
    }
}

fn remote(args: &ClassifierArgs, urls: &[String], parallel: usize) -> anyhow::Result<Arc<dyn Classifier>> {
    let (options, notes) = engine_options(&args.engine)?;
    let parse = |url: &String| Endpoint::parse(url).map_err(|error| Failure::error(Exit::Usage, error.to_string()));
    let config = RemoteConfig {
        servers: urls.iter().map(parse).collect::<Result<_, _>>()?,
        parallel,
        timeout: args.timeout,
        connect_timeout: args.connect_timeout,
        // As OpenSSL and curl take it.
        ca_file: std::env::var_os("SSL_CERT_FILE").map(Into::into),
        retries: args.retries,
        method: match args.method {
            MethodArg::Auto => None,
            MethodArg::Filter => Some(Method::Filter),
            MethodArg::Score => Some(Method::Score),
        },
        cutoffs: Cutoffs { ham: options.ham_cutoff, spam: options.spam_cutoff },
        header: args.header.clone(),
        keep_message: args.apply as u8 != ApplyArg::Verdict as u8,
    };
    let remote = Remote::new(config).map_err(|error| Failure::error(Exit::Config, error.to_string()))?;
    notes.into_iter().for_each(|note| remote.note(note));
    Ok(Arc::new(remote))
}
