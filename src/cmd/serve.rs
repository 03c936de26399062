//! `hamsift serve`: the embedded engine as an XML-RPC server.

use std::io::{self, Write};

use clap::Parser as _;

use super::{classifier, database};
use crate::classify::local::{Local, LocalConfig};
use crate::cli::{Cli, Command, MOST_PARALLEL, ServeArgs, UnitArg};
use crate::config;
use crate::engine::store::Store;
use crate::exit::{Exit, Failure};
use crate::report::Teller;
use crate::server::{self, Config, Engine, unit};

/// Where it listens if nothing is said: as `sb_xmlrpcserver.py` is started by most, and never open to others.
const DEFAULT_ADDRESS: &str = "127.0.0.1:65000";

/// Runs the command.
pub(super) fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    if let Some(kind) = args.print_unit {
        return print(match kind {
            UnitArg::Service => unit::SERVICE,
            UnitArg::Socket => unit::SOCKET,
        });
    }
    let teller = Teller::new(args.tell.volume(), args.tell.color.into(), None);
    let engine = engine(&args)?;
    database::tell(&database::path(args.db.as_deref())?, &teller);
    let mut listen = args.listen;
    if listen.is_empty() && args.socket.is_none() {
        listen.push(DEFAULT_ADDRESS.to_owned());
    }
    let config = Config {
        listen,
        socket: args.socket,
        allow_remote: args.allow_remote,
        hosts: args.allow_host,
        token_file: args.token_file,
        workers: args.workers.unwrap_or_else(classifier::cpus).min(MOST_PARALLEL),
        max_body: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        max_connections: args.max_connections,
        idle_timeout: args.idle_timeout,
        header_timeout: args.header_timeout,
        grace: args.grace,
    };
    server::run(config, engine, Box::new(open_again), teller)
        .map_err(|error| Failure::error(error.exit(), error.to_string()))
}

fn engine(args: &ServeArgs) -> anyhow::Result<Engine> {
    let path = database::path(args.db.as_deref())?;
    let (options, notes) = classifier::engine_options(&args.engine)?;
    if args.allow_train {
        database::make_default_folder(&path)?;
        Store::create(&path, database::WAIT).map_err(|error| database::failure(error, Exit::CannotCreate))?;
    }
    let config = LocalConfig { options, evidence: false };
    let local = Local::loaded(&path, database::WAIT, config).map_err(|error| database::failure(error, Exit::Io))?;
    notes.into_iter().for_each(|note| local.note(note));
    Ok(Engine { local, train: args.allow_train.then_some(path) })
}

/// The engine as the command line and the configuration of now have it. What is listened on stays.
fn open_again() -> Result<Engine, String> {
    let typed: Vec<_> = std::env::args_os().collect();
    let arguments = config::with_configuration(&typed).map_err(|error| error.to_string())?;
    match Cli::try_parse_from(arguments).map_err(|error| error.to_string())?.command {
        Command::Serve(args) => engine(&args).map_err(|error| format!("{error:#}")),
        other => Err(format!("not the arguments of serve: {other:?}")),
    }
}

fn print(text: &str) -> anyhow::Result<Exit> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Ok),
    }
}
