//! `hamsift pipe`: one message from standard input to standard output, with its verdict. Fails open: whatever goes
//! wrong, the message goes out as it came.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use super::classifier;
use crate::classify::annotate::{Annotate, Graft};
use crate::cli::{OnErrorArg, PipeArgs};
use crate::exit::Exit;
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
    let mut graft = Graft::default();
    annotate.unclassified(&message, &mut graft);
    let class = if message.is_bare() || too_large {
        None
    } else {
        match classifier::one_verdict(&args.classifier, &args.samples, &message, &teller) {
            Ok(answer) => {
                teller.detail(&format!("{}, {:.1} ms", answer.verdict.text, answer.took.as_secs_f64() * 1000.0));
                annotate.classified(&message, &answer, &mut graft);
                Some(answer.verdict.class)
            }
            Err(text) => {
                teller.error(&format!("not classified: {text}"));
                if args.on_error == OnErrorArg::Tempfail {
                    return Ok(Exit::TempFail);
                }
                None
            }
        }
    };
    if let Err(error) = write_out(&graft.applied(&input)) {
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

/// The whole of standard input; or as much as there was, and why not more.
pub(super) fn read_all() -> Result<Vec<u8>, (Vec<u8>, io::Error)> {
    // Most messages are read in one call.
    let mut input = Vec::with_capacity(64 << 10);
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
