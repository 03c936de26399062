//! Which token database is meant, and how trouble with it ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::store::StoreError;
use crate::exit::{Exit, Failure};
use crate::report::Teller;

/// The environment variable that names the database.
pub(super) const VARIABLE: &str = "HAMSIFT_DB";
/// How long one process waits for another that trains.
pub(super) const WAIT: Duration = Duration::from_secs(30);

/// The database the environment names.
pub(super) fn from_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where the database is if nothing is said, by the XDG base directory specification: a relative path there is none.
pub(super) fn default_path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("hamsift/tokens.db"))
}

/// The database that is meant: the one given, or the one of the environment, or the default one.
pub(super) fn path(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    given
        .map(Path::to_owned)
        .or_else(from_environment)
        .or_else(default_path)
        .ok_or_else(|| Failure::error(Exit::Config, "no home folder is known; name the database with --db FILE"))
}

/// Makes the folder of the default database. A folder that was named has to be there: its name may be mistyped.
pub(super) fn make_default_folder(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|_| default_path().as_deref() == Some(path));
    let made = folder.map_or(Ok(()), |folder| {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
    });
    made.map_err(|error| Failure::error(Exit::CannotCreate, format!("{}: {error}", path.display())))
}

/// Tells which file is used.
pub(super) fn tell(path: &Path, teller: &Teller) {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    teller.detail(&format!("token database: {}", absolute.display()));
}

/// Trouble with the database and the status it ends in; `other` where nothing better is known.
pub(super) fn failure(error: StoreError, other: Exit) -> anyhow::Error {
    let exit = match &error {
        StoreError::Missing(_) | StoreError::Newer { .. } => Exit::Config,
        StoreError::Foreign(_) => Exit::Data,
        StoreError::Busy(_) => Exit::TempFail,
        StoreError::Export(_) => Exit::Io,
        StoreError::Other { .. } => other,
    };
    let hint = if let StoreError::Missing(_) = error { " (`hamsift train --db FILE` makes one)" } else { "" };
    Failure::error(exit, format!("{error}{hint}"))
}
