//! `hamsift pipe`: one message from standard input to standard output, with its verdict. Fails open: whatever goes
//! wrong, the message goes out as it came.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use super::classifier;
use crate::classify::Answer;
use crate::classify::annotate::{Annotate, Edits};
use crate::cli::{OnErrorArg, PipeArgs};
use crate::exit::Exit;
use crate::message;
use crate::report::Teller;
use crate::verdict::Class;

/// Runs the command.
pub(super) fn run(args: PipeArgs) -> anyhow::Result<Exit> {
    let teller = Teller::new(args.tell.volume(), args.tell.color.into(), None);
    let input = match read_all() {
        Ok(input) => input,
        Err((part, error)) => {
            // Half a message must not look like a whole one: the caller keeps what he has.
            teller.error(&format!("cannot read the message, after {} bytes: {error}", part.len()));
            return Ok(Exit::TempFail);
        }
    };
    let annotate = Annotate { in_mailbox: false, ..classifier::annotate(&args.classifier) };
    let message = annotate.parse(&input);
    // What is too large now will be too large at the next try: that is no reason to ask for one.
    let too_large = message.length_without_ours() > args.classifier.max_size;
    if too_large {
        teller.note(&format!("not classified: larger than --max-size {}", args.classifier.max_size));
    }
    let (class, Edits { instead, edits }) = if message.is_bare() || too_large {
        (None, annotate.unclassified(&message))
    } else {
        match verdict(&args, &input, &message, &teller) {
            Ok(answer) => {
                teller.detail(&format!("{}, {:.1} ms", answer.verdict.text, answer.took.as_secs_f64() * 1000.0));
                (Some(answer.verdict.class), annotate.classified(&message, &answer))
            }
            Err(text) => {
                teller.error(&format!("not classified: {text}"));
                if args.on_error == OnErrorArg::Tempfail {
                    return Ok(Exit::TempFail);
                }
                (None, annotate.unclassified(&message))
            }
        }
    };
    let text = instead.as_deref().unwrap_or(&input);
    if let Err(error) = write_out(&message::edited(text, &edits)) {
        teller.error(&format!("cannot write the message: {error}"));
        return Ok(if error.kind() == io::ErrorKind::BrokenPipe { Exit::TempFail } else { Exit::Io });
    }
    Ok(match class {
        _ if !args.exit_code => Exit::Ok,
        Some(Class::Spam) => Exit::Verdict(0),
        Some(Class::Ham) => Exit::Verdict(1),
        Some(Class::Unsure) => Exit::Verdict(2),
        None => Exit::Verdict(3),
    })
}

fn verdict(args: &PipeArgs, input: &[u8], message: &message::Message, teller: &Teller) -> Result<Answer, String> {
    let classify = || {
        let classifier =
            classifier::open_for_one(&args.classifier, &args.samples).map_err(|error| format!("{error:#}"))?;
        classifier::tell(&args.classifier, &args.samples, teller);
        let cleaned = message.has_ours().then(|| message::edited(input, &message.without_ours()));
        let answer = classifier.classify(cleaned.as_deref().unwrap_or(input));
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

/// What happens to the message when the configuration cannot be used.
pub(super) fn fail_open(arguments: &[OsString]) -> Exit {
    let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let tempfail =
        words.contains(&"--on-error=tempfail") || words.windows(2).any(|two| two == ["--on-error", "tempfail"]);
    if tempfail {
        // Read all the same: the sender must not be told that nobody listened.
        let _ = read_all();
        return Exit::TempFail;
    }
    copy_through();
    if words.contains(&"--exit-code") { Exit::Verdict(3) } else { Exit::Ok }
}

/// Copies the message through when the command line makes no sense.
pub(super) fn copy_through() -> Exit {
    if let Ok(input) = read_all() {
        // The status tells of the usage error already.
        let _ = write_out(&input);
    }
    Exit::Usage
}

fn read_all() -> Result<Vec<u8>, (Vec<u8>, io::Error)> {
    let mut input = Vec::new();
    match io::stdin().lock().read_to_end(&mut input) {
        Ok(_) => Ok(input),
        Err(error) => Err((input, error)),
    }
}

/// Writes to standard output without the line buffer in between.
fn write_out(text: &[u8]) -> io::Result<()> {
    let out = io::stdout().as_fd().try_clone_to_owned()?;
    std::fs::File::from(out).write_all(text)
}
