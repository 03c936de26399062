//! `hamsift deliver`: one message from standard input to the place for its class. Ends with 0 once it is safely stored,
//! and with 75 for everything else: an MTA takes that for "later", and any other code for "never".

mod trust;
mod user;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Mode;

use super::{classifier, pipe, signals};
use crate::classify::Answer;
use crate::classify::annotate::{Annotate, Graft};
use crate::cli::{DeliverArgs, FsyncArg, OnErrorArg, SampleArgs};
use crate::deliver::{Destination, Entry, How, Log, Mail, Seen};
use crate::exit::{self, Exit, Failure};
use crate::message;
use crate::report::Teller;
use crate::verdict::Class;

/// Runs the command.
pub(super) fn run(args: DeliverArgs) -> anyhow::Result<Exit> {
    let teller = Teller::new(args.tell.volume(), args.tell.color.into(), None);
    let text = match catch_unwind(AssertUnwindSafe(|| deliver(&args, &teller))) {
        Ok(Ok(exit)) => return Ok(exit),
        Ok(Err(error)) if exit::status(&error) == Exit::NoUser => {
            teller.error(&format!("{error:#}"));
            read_to_the_end();
            return Ok(Exit::NoUser);
        }
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => "internal error in hamsift (please report this)".to_owned(),
    };
    teller.error(&text);
    read_to_the_end();
    Ok(Exit::TempFail)
}

/// What happens when the command line makes no sense.
pub(super) fn put_off() -> Exit {
    read_to_the_end();
    Exit::TempFail
}

/// Whoever hands over a message must not get a broken pipe: some MTAs take that for a failure of their own.
fn read_to_the_end() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

/// Where mail of each class goes.
struct Destinations {
    ham: Vec<Destination>,
    unsure: Vec<Destination>,
    spam: Vec<Destination>,
}

impl Destinations {
    fn read(args: &DeliverArgs) -> anyhow::Result<Destinations> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let read = |option: &str, texts: &[std::ffi::OsString]| -> anyhow::Result<Vec<Destination>> {
            if texts.is_empty() {
                return Ok(vec![Destination::parse(user::inbox()?.as_os_str(), None)?]);
            }
            let parse = |text: &std::ffi::OsString| {
                let bad = |error| anyhow::anyhow!("{option} {}: {error}", text.to_string_lossy());
                Destination::parse(text, home.as_deref()).map_err(bad)
            };
            texts.iter().map(parse).collect()
        };
        Ok(Destinations {
            ham: read("--ham", &args.ham)?,
            unsure: read("--unsure", &args.unsure)?,
            spam: read("--spam", &args.spam)?,
        })
    }

    fn of(&self, class: Option<Class>) -> &[Destination] {
        match class {
            Some(Class::Ham) => &self.ham,
            Some(Class::Unsure) | None => &self.unsure,
            Some(Class::Spam) => &self.spam,
        }
    }
}

fn deliver(args: &DeliverArgs, teller: &Teller) -> anyhow::Result<Exit> {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    if let Some(name) = &args.user {
        user::become_user(name, args.ham.is_empty() || args.unsure.is_empty() || args.spam.is_empty())?;
    }
    let gate = signals::Gate::new(Exit::TempFail)?;
    let input = pipe::read_all()
        .map_err(|(part, error)| anyhow::anyhow!("cannot read the message, after {} bytes: {error}", part.len()))?;
    if input.is_empty() {
        anyhow::bail!("no message on standard input");
    }
    trust::check_configuration()?;
    let destinations = Destinations::read(args)?;
    let annotate = Annotate { in_mailbox: false, ..classifier::annotate(&args.classifier) };
    let message = annotate.parse(&input);
    let judged = judge(args, &message, teller);
    if let (Judged::Failed(text), OnErrorArg::Tempfail) = (&judged, args.on_error) {
        anyhow::bail!("not classified: {text}");
    }
    let mut graft = Graft::default();
    match &judged {
        Judged::Answered(answer) => annotate.classified(&message, answer, &mut graft),
        _ => annotate.unclassified(&message, &mut graft),
    }
    let text = graft.applied(&input);
    let mut mail =
        Mail::new(&text, args.sender.as_deref().map(std::os::unix::ffi::OsStrExt::as_bytes), SystemTime::now());
    let destinations = destinations.of(judged.class());
    if args.explain {
        return explain(&mail, &judged, destinations);
    }
    mail.environment = judged.environment();
    // From here on a signal is no reason to go, but one to hurry.
    gate.close();
    store(args, &mail, &judged, destinations, teller, &gate)
}

/// What became of the question to the classifier.
enum Judged {
    Answered(Answer),
    Failed(String),
    NotAsked(&'static str),
}

impl Judged {
    fn class(&self) -> Option<Class> {
        match self {
            Judged::Answered(answer) => Some(answer.verdict.class),
            _ => None,
        }
    }

    fn score(&self) -> Option<f64> {
        match self {
            Judged::Answered(answer) => answer.verdict.score,
            _ => None,
        }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let class = self.class().map_or("unclassified", Class::word);
        let score = self.score().map_or(String::new(), |score| format!("{score:.2}"));
        vec![("MAIL_CLASS", class.to_owned()), ("MAIL_SCORE", score)]
    }
}

fn judge(args: &DeliverArgs, message: &message::Message, teller: &Teller) -> Judged {
    if args.no_classify {
        return Judged::NotAsked("--no-classify");
    }
    if message.is_bare() {
        return Judged::NotAsked("nothing in it");
    }
    // What is too large now will be too large at the next try.
    if message.length_without_ours() > args.classifier.max_size {
        return Judged::NotAsked("larger than --max-size");
    }
    match classifier::one_verdict(&args.classifier, &SampleArgs::default(), message, teller) {
        Ok(answer) => Judged::Answered(answer),
        Err(text) => {
            // On tempfail it is told as the reason for that.
            if args.on_error == OnErrorArg::Pass {
                teller.error(&format!("not classified: {text}"));
            }
            Judged::Failed(text)
        }
    }
}

/// Brings the message to all its places. The first failure is the end of it: whoever tries again tries all of them.
fn store(
    args: &DeliverArgs,
    mail: &Mail,
    judged: &Judged,
    destinations: &[Destination],
    teller: &Teller,
    gate: &signals::Gate,
) -> anyhow::Result<Exit> {
    let how = How {
        locks: args.locks(),
        lock_wait: args.lock_timeout,
        stale: args.stale_lock,
        sync: args.fsync == FsyncArg::Always,
        command_wait: args.command_timeout,
        sendmail: args.sendmail.clone(),
        stop: &|| gate.caught(),
    };
    let log = args.log.as_ref().map(|path| Log { path: path.clone(), format: args.log_format.into() });
    let id = mail.field("Message-ID").filter(|id| !id.is_empty());
    let mut seen = match (&args.dedupe, &id) {
        (Some(file), Some(_)) => open_seen(file.clone(), &how, teller),
        _ => None,
    };
    for destination in destinations {
        let place = destination.to_string();
        let is_known = seen.as_ref().zip(id.as_ref()).is_some_and(|(seen, id)| seen.has(&place, id));
        let result = match is_known {
            true => Ok("duplicate"),
            false => destination.deliver(mail, &how, &mut |text| teller.error(&text)).map(|()| "stored"),
        };
        if let (Ok("stored"), Some(seen), Some(id)) = (&result, &mut seen, &id)
            && let Err(error) = seen.add(&place, id)
        {
            teller.error(&format!("cannot remember the Message-ID: {error}"));
        }
        if let Some(log) = &log
            && let Err(error) = log.add(&entry(mail, judged, &id, &place, &result))
        {
            teller.error(&format!("cannot write to {}: {error}", log.path.display()));
        }
        let result =
            result.map_err(|error| Failure::error(Exit::TempFail, format!("not delivered to {place}: {error}")))?;
        let verdict = judged.class().map_or("unclassified", Class::word);
        teller.detail(&format!("{result}, {verdict}: {place}, {} bytes", mail.whole().len()));
    }
    Ok(Exit::Ok)
}

/// Where nothing can be remembered, everything is new.
fn open_seen(file: Option<PathBuf>, how: &How, teller: &Teller) -> Option<Seen> {
    let Some(path) = file.or_else(user::default_seen) else {
        teller.error("no --dedupe: no home folder is known; name the file with --dedupe=FILE");
        return None;
    };
    match Seen::open(&path, how.lock_wait, how.stop) {
        Ok(seen) => Some(seen),
        Err(error) => {
            teller.error(&format!("no --dedupe: cannot open or lock {}: {error}", path.display()));
            None
        }
    }
}

fn entry(
    mail: &Mail,
    judged: &Judged,
    id: &Option<String>,
    place: &str,
    result: &Result<&'static str, crate::deliver::DeliverError>,
) -> Entry {
    Entry {
        time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        sender: mail.sender().address().to_owned(),
        subject: mail.field("Subject"),
        message_id: id.clone(),
        class: judged.class().map(Class::word),
        score: judged.score(),
        destination: place.to_owned(),
        bytes: mail.whole().len(),
        result: result.as_ref().map_or("failed", |&result| result),
        error: match (result, judged) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), Judged::Failed(text)) => Some(text.clone()),
            _ => None,
        },
        from_line: String::from_utf8_lossy(mail.from_line()).into_owned(),
    }
}

/// Says where the message would go, and why.
fn explain(mail: &Mail, judged: &Judged, destinations: &[Destination]) -> anyhow::Result<Exit> {
    let from_line = String::from_utf8_lossy(mail.from_line()).into_owned();
    let mut lines = vec![format!("sender: {} ({from_line})", mail.sender().word())];
    lines.push(match judged {
        Judged::Answered(answer) => {
            let by = answer.server.as_deref().unwrap_or("the token database");
            format!("verdict: {}, from {by} in {:.1} ms", answer.verdict.text, answer.took.as_secs_f64() * 1000.0)
        }
        Judged::Failed(text) => format!("verdict: none ({text}), so it goes where unsure mail goes"),
        Judged::NotAsked(why) => format!("verdict: none ({why}), so it goes where unsure mail goes"),
    });
    let mut exit = Exit::Ok;
    for destination in destinations {
        let what = destination.describe().unwrap_or_else(|error| {
            exit = Exit::TempFail;
            format!("it would be put off (75): {error}")
        });
        lines.push(format!("destination: {destination}: {what}"));
    }
    let lines: String = lines.iter().map(|line| crate::report::printable(line) + "\n").collect();
    io::stdout().write_all(lines.as_bytes())?;
    Ok(exit)
}
