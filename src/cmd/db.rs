//! `hamsift db`: what is in the token database, out of it and into it.

use std::io::{Read, Write};
use std::path::Path;

use super::database;
use crate::cli::{DbAction, DbArgs};
use crate::engine::store::{Stats, Store, read_csv, read_pickle};
use crate::engine::{Memory, Totals};
use crate::exit::{Exit, Failure};
use crate::input::Source;
use crate::output::{self, Output};

/// Runs the command.
pub(super) fn run(args: DbArgs) -> anyhow::Result<Exit> {
    let path = database::path(args.db.as_deref())?;
    match args.action {
        DbAction::Stats => stats(&path),
        DbAction::Export { file } => export(&path, &file),
        DbAction::Import { file, merge } => import(&path, &file, merge),
    }?;
    Ok(Exit::Ok)
}

fn open(path: &Path) -> anyhow::Result<Store> {
    Store::open(path, database::WAIT).map_err(|error| database::failure(error, Exit::Io))
}

fn stats(path: &Path) -> anyhow::Result<()> {
    let Stats { totals: Totals { nham, nspam }, words, messages } =
        open(path)?.stats().map_err(|error| database::failure(error, Exit::Io))?;
    let name = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let bytes = path.metadata()?.len();
    let text = format!(
        "database       {}\nbytes          {bytes}\nham messages   {nham}\nspam messages  {nspam}\nwords          \
         {words}\nknown again    {messages}\n",
        crate::report::printable(&name.display().to_string())
    );
    write_out(|out| out.write_all(text.as_bytes()))
}

/// Writes to standard output; nobody reading it is no trouble.
fn write_out(write: impl FnOnce(&mut Output) -> std::io::Result<()>) -> anyhow::Result<()> {
    let result = Output::stdout().and_then(|mut out| {
        write(&mut out)?;
        out.finish(true)
    });
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::error(Exit::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn export(path: &Path, file: &Path) -> anyhow::Result<()> {
    use crate::engine::store::StoreError;
    let store = open(path)?;
    if file.as_os_str() != "-" && output::place_of(file) == output::place_of(path) {
        return Err(Failure::error(Exit::Usage, format!("{} is the database itself", file.display())));
    }
    let mut trouble = None;
    let mut write = |out: &mut Output| match store.export(out) {
        Err(StoreError::Export(error)) => Err(error),
        Err(error) => {
            trouble = Some(error);
            Err(std::io::Error::other("the database cannot be read"))
        }
        Ok(()) => Ok(()),
    };
    let result = if file.as_os_str() == "-" {
        write_out(write)
    } else {
        let named = |exit| {
            move |error: std::io::Error| Failure::error(exit, format!("cannot write {}: {error}", file.display()))
        };
        let mut out = Output::file(file).map_err(named(Exit::CannotCreate))?;
        write(&mut out).and_then(|()| out.finish(true)).map(drop).map_err(named(Exit::Io))
    };
    match trouble {
        Some(error) => Err(database::failure(error, Exit::Io)),
        None => result,
    }
}

fn import(path: &Path, file: &Path, merge: bool) -> anyhow::Result<()> {
    let memory = read(&Source::from_argument(file.to_owned()))?;
    database::make_default_folder(path)?;
    let imported = Store::create(path, database::WAIT).and_then(|mut store| store.import(&memory, merge));
    imported.map_err(|error| database::failure(error, Exit::CannotCreate))
}

/// Reads an export or a pickle, whichever it is by its first bytes: an export begins with a number.
fn read(source: &Source) -> anyhow::Result<Memory> {
    let mut input = source.open().map_err(|error| Failure::error(Exit::NoInput, error.to_string()))?;
    let bad = |error: &dyn std::fmt::Display| Failure::error(Exit::Data, format!("{}: {error}", source.name()));
    let mut start = [0; 1];
    let length = input.reader.read(&mut start).map_err(|error| bad(&error))?;
    let whole = start[..length].chain(input.reader);
    let memory = if matches!(start[..length], [] | [b'0'..=b'9' | b'"']) {
        read_csv(whole).map_err(|error| bad(&error))?
    } else {
        let mut data = Vec::new();
        { whole }.read_to_end(&mut data).map_err(|error| bad(&error))?;
        read_pickle(&data).map_err(|error| bad(&error))?
    };
    Ok(memory)
}
