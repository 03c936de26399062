//! Programs that take the message on standard input. They have taken it when they end with 0; every other end, and an
//! end that does not come in time, means that it has to be tried again.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{DeliverError, How, Mail};

/// The first pause between looks at the program, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// How long a program has for its end once it is told to come to one.
const GRACE: Duration = Duration::from_secs(2);

/// Hands the message, as it came, to a line for the shell.
pub(super) fn run(line: &str, mail: &Mail, how: &How) -> Result<(), DeliverError> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).env("SENDER", mail.sender().address()).envs(mail.environment.iter().cloned());
    feed(command, line, mail.whole(), how)
}

/// Sends the message on.
pub(super) fn send(addresses: &[String], mail: &Mail, how: &How) -> Result<(), DeliverError> {
    let mut command = Command::new(&how.sendmail);
    let sender = mail.sender().address();
    // A line with a dot does not end it; the sender sticks to its option, whatever it begins with.
    command.arg("-oi").arg(format!("-f{}", if sender.is_empty() { "<>" } else { sender })).arg("--").args(addresses);
    feed(command, &how.sendmail.display().to_string(), mail.text(), how)
}

fn feed(mut command: Command, name: &str, text: &[u8], how: &How) -> Result<(), DeliverError> {
    let cannot = |what: &str, error: io::Error| DeliverError::Command(format!("cannot {what} {name}: {error}"));
    // What it prints belongs into the mail log, with what it says on standard error.
    let err = io::stderr().as_fd().try_clone_to_owned().map_err(|error| cannot("run", error))?;
    // A group of its own, so that all of it can be ended.
    command.stdin(Stdio::piped()).stdout(err).process_group(0);
    let mut child = command.spawn().map_err(|error| cannot("run", error))?;
    if let Some(mut stdin) = child.stdin.take() {
        let text = text.to_vec();
        // It need not read all, or anything: its exit status counts. Nobody waits for this thread: it hangs as long as
        // somebody holds the other end without reading.
        let write = move || drop(stdin.write_all(&text));
        thread::Builder::new().name("stdin".into()).spawn(write).map_err(|error| {
            end(&mut child);
            cannot("write to", error)
        })?;
    }
    let started = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(DeliverError::Command(format!("{name} {}", ended(status)))),
            Ok(None) => {}
            Err(error) => return Err(cannot("wait for", error)),
        }
        if (how.stop)() {
            end(&mut child);
            return Err(DeliverError::Stopped);
        }
        if started.elapsed() >= how.command_wait {
            end(&mut child);
            let seconds = how.command_wait.as_secs_f64();
            return Err(DeliverError::Command(format!("{name} did not end within {seconds} s and was ended")));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(127), _) => "ended with 127: there is no such program".to_owned(),
        (Some(code), _) => format!("ended with {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    }
}

/// Ends the program and all it has started, asking first.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let started = Instant::now();
    while started.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(PAUSES.1);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}
