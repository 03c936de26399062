//! The commands: each turns its arguments into a plan, in which nothing invalid is left, and runs it.

mod classifier;
mod database;
mod db;
mod deliver;
mod eval;
mod filter;
mod pipe;
mod score;
mod serve;
mod signals;
mod train;
mod tune;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::CommandFactory;

use crate::cli::{Cli, Command, OneMessage};
use crate::config;
use crate::exit::{self, Exit};
use crate::report::{Teller, Volume, When};

/// What has to be so before anything is read or written.
pub fn prepare() {
    signals::survive_file_limits();
}

/// Runs a command and tells how it ended.
pub fn run(cli: Cli) -> Exit {
    let result = match cli.command {
        Command::Filter(args) => filter::run(*args),
        Command::OneMessage(OneMessage::Pipe(args)) => pipe::run(*args),
        Command::OneMessage(OneMessage::Deliver(args)) => deliver::run(*args),
        Command::Serve(args) => serve::run(*args),
        Command::Train(args) => train::run(*args),
        Command::Score(args) => score::run(*args),
        Command::Db(args) => db::run(*args),
        Command::Eval(args) => eval::run(*args),
        Command::Tune(args) => tune::run(*args, cli.config),
        Command::Completions { shell } => {
            // Not straight to standard output: there it panics when that fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hamsift", &mut script);
            match io::stdout().write_all(&script).and_then(|()| io::stdout().flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
                _ => Ok(Exit::Ok),
            }
        }
    };
    result.unwrap_or_else(|error| {
        Teller::new(Volume::Quiet, When::Auto, None).error(&format!("{error:#}"));
        exit::status(&error)
    })
}

/// Prints what is configured, if that is what is asked for.
pub fn dump_configuration(arguments: &[OsString]) -> Option<Exit> {
    if !arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--config-dump") {
        return None;
    }
    let rest: Vec<_> = arguments.iter().filter(|argument| *argument != "--config-dump").cloned().collect();
    Some(match config::dump(&rest) {
        Ok(text) => match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
            // Nobody who closes the pipe misses the rest.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Teller::new(Volume::Quiet, When::Auto, None)
                    .error(&format!("cannot write to standard output: {error}"));
                Exit::Io
            }
            _ => Exit::Ok,
        },
        Err(error) => configuration_error(None, &rest, &error),
    })
}

/// Tells what is wrong with the configuration of a command. For a message in a mail pipeline that is trouble like any
/// other.
pub fn configuration_error(command: Option<&str>, arguments: &[OsString], error: &config::ConfigError) -> Exit {
    Teller::new(Volume::Quiet, When::Auto, None).error(&error.to_string());
    match command {
        Some("pipe") => pipe::fail_open(arguments),
        Some("deliver") => deliver::put_off(),
        _ => Exit::Config,
    }
}

/// What happens to the command whose arguments are wrong: neither a filter in a mail pipeline nor a delivery agent may
/// lose the message.
pub fn usage_error(command: Option<&str>) -> Exit {
    match command {
        Some("pipe") => pipe::copy_through(),
        Some("deliver") => deliver::put_off(),
        _ => Exit::Usage,
    }
}

/// What happens after a panic that nobody else has caught. Never the status of a panic: an MTA takes that for a reason to
/// send the message back.
pub fn internal_error(command: Option<&str>) -> Exit {
    Teller::new(Volume::Quiet, When::Auto, None).error("internal error in hamsift (please report this)");
    match command {
        Some("deliver") => deliver::put_off(),
        Some("pipe") => Exit::TempFail,
        _ => Exit::Io,
    }
}
