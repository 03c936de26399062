//! The `hamsift` program: parses the command line, runs the command, and picks the exit code.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use hamsift::cli;
use hamsift::cmd;
use hamsift::config;
use hamsift::exit::Exit;

fn main() -> ExitCode {
    // A panic is told by whoever catches it, with the message it cost; never by its place in the source.
    std::panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
    let arguments = cli::with_formail_numbers(std::env::args_os());
    let exit = std::panic::catch_unwind(|| run(&arguments));
    ExitCode::from(exit.unwrap_or_else(|_| cmd::internal_error(cli::command_in(&arguments))).code())
}

fn run(arguments: &[OsString]) -> Exit {
    cmd::prepare();
    if let Some(exit) = cmd::dump_configuration(arguments) {
        return exit;
    }
    let arguments = match config::with_configuration(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return cmd::configuration_error(cli::command_in(arguments), arguments, &error),
    };
    match cli::parse(&arguments) {
        Ok(cli) => cmd::run(cli),
        Err(error) => {
            // Help and version go to standard output and are no error; a closed pipe there is none either.
            let _ = error.print();
            if error.use_stderr() { cmd::usage_error(cli::command_in(&arguments)) } else { Exit::Ok }
        }
    }
}
