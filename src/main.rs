//! The `hamsift` program: parses the command line, runs the command, and picks the exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use hamsift::cli::{self, Cli};
use hamsift::cmd;
use hamsift::config;
use hamsift::exit::Exit;

fn main() -> ExitCode {
    // A panic is told by whoever catches it, with the message it cost; never by its place in the source.
    std::panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
    let arguments = cli::with_formail_numbers(std::env::args_os());
    if let Some(exit) = cmd::dump_configuration(&arguments) {
        return ExitCode::from(exit.code());
    }
    let arguments = match config::with_configuration(&arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let command = cli::command_in(&arguments);
            return ExitCode::from(cmd::configuration_error(command, &arguments, &error).code());
        }
    };
    let exit = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cmd::run(cli),
        Err(error) => {
            // Help and version go to standard output and are no error; a closed pipe there is none either.
            let _ = error.print();
            if error.use_stderr() { cmd::usage_error(cli::command_in(&arguments)) } else { Exit::Ok }
        }
    };
    ExitCode::from(exit.code())
}
