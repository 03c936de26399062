//! `hamsift train`: learns from mail, or forgets it. All of a run is one transaction, and the mail is only read.

use std::path::PathBuf;

use super::{classifier, database};
use crate::cli::TrainArgs;
use crate::engine::Options;
use crate::engine::store::{Learned, Store, StoreError};
use crate::exit::{Exit, Failure};
use crate::mailbox::Mailbox;
use crate::report::{Progress, Teller};
use crate::training::{self, Bad, Found, Sample};

/// What is to be done: every mailbox in it was there a moment ago.
struct Plan {
    samples: Vec<Sample>,
    database: PathBuf,
    forget: bool,
    options: Options,
    teller: Teller,
}

/// What has become of the messages.
#[derive(Default)]
struct Counts {
    new: u64,
    moved: u64,
    known: u64,
    forgotten: u64,
    unknown: u64,
    bad: u64,
    bytes: u64,
}

/// Runs the command.
pub(super) fn run(args: TrainArgs) -> anyhow::Result<Exit> {
    let progress = Progress::new(args.progress.into(), None).filter(|_| !args.tell.quiet);
    let (options, notes) = classifier::engine_options(&args.engine)?;
    let plan = Plan {
        samples: Sample::list(&args.ham, &args.spam),
        database: database::path(args.db.as_deref())?,
        forget: args.forget,
        options,
        teller: Teller::new(args.tell.volume(), args.tell.color.into(), progress),
    };
    let from_stdin = plan.samples.iter().filter(|sample| sample.path.as_os_str() == "-").count();
    if from_stdin > 1 {
        return Err(Failure::error(Exit::Usage, "standard input can be read once only"));
    }
    for sample in &plan.samples {
        Mailbox::check(&sample.path).map_err(|error| Failure::error(error.exit(), error.to_string()))?;
    }
    notes.iter().for_each(|note| plan.teller.note(note));
    database::tell(&plan.database, &plan.teller);
    let result = train(&plan);
    plan.teller.end_progress();
    let counts = result?;
    plan.teller.trouble_counts();
    plan.teller.note(&counts.summary(plan.forget));
    Ok(if counts.bad > 0 { Exit::Data } else { Exit::Ok })
}

fn train(plan: &Plan) -> anyhow::Result<Counts> {
    let failure = |error| database::failure(error, Exit::CannotCreate);
    let mut store = if plan.forget {
        Store::open(&plan.database, database::WAIT).map_err(failure)?
    } else {
        database::make_default_folder(&plan.database)?;
        Store::create(&plan.database, database::WAIT).map_err(failure)?
    };
    let mut trainer = store.train().map_err(failure)?;
    let mut counts = Counts::default();
    let learned = training::read(&plan.samples, classifier::cpus(), &plan.options, |found, bytes| {
        counts.bytes += bytes as u64;
        match found {
            Found::Bad(Bad { file, offset, reason }) => {
                counts.bad += 1;
                let place = format!("{}, message at byte {offset}", file.display());
                plan.teller.trouble("left out", &place, &format!("left out: {reason}"));
            }
            Found::Lesson(lesson) if plan.forget => match trainer.forget(&lesson.digest, &lesson.tokens)? {
                Some(_) => counts.forgotten += 1,
                None => counts.unknown += 1,
            },
            Found::Lesson(lesson) => match trainer.learn(&lesson.digest, &lesson.tokens, lesson.is_spam)? {
                Learned::New => counts.new += 1,
                Learned::Moved => counts.moved += 1,
                Learned::Already => counts.known += 1,
            },
        }
        plan.teller.at(counts.messages(), counts.bytes);
        Ok::<_, Problem>(())
    });
    learned.map_err(classifier::training_failure)?;
    trainer.commit().map_err(|error| database::failure(error, Exit::Io))?;
    Ok(counts)
}

/// The database's trouble on its way through the reading of the mail.
struct Problem(StoreError);

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Problem(error)
    }
}

impl From<Problem> for anyhow::Error {
    fn from(Problem(error): Problem) -> Self {
        database::failure(error, Exit::Io)
    }
}

impl Counts {
    fn messages(&self) -> u64 {
        self.new + self.moved + self.known + self.forgotten + self.unknown + self.bad
    }

    fn summary(&self, forget: bool) -> String {
        let Counts { new, moved, known, forgotten, unknown, bad, .. } = self;
        let messages = self.messages();
        if forget {
            format!("{messages} messages: {forgotten} forgotten, {unknown} not known, {bad} left out")
        } else {
            format!("{messages} messages: {new} learned, {moved} moved, {known} known already, {bad} left out")
        }
    }
}
