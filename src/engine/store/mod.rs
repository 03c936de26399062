//! The token database on disk: one SQLite file, read by deliveries while a trainer writes.
//!
//! The file is in WAL mode, so that readers never wait and see one committed state from begin to end; a second trainer
//! waits for the first, up to a limit. A training run is one transaction: a process killed at any moment leaves the
//! state before it or the state after it.
//!
//! This room does not read mail and makes no tokens, and the rest of the engine does not know it: scoring takes a
//! [`Memory`], loaded whole by [`Store::snapshot`] for many messages or filled with one message's words by
//! [`Store::lookup`].

mod batch;
mod csv;
mod digest;
mod pickle;
mod trainer;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior};

use super::bayes::{Counts, Totals};
use super::memory::Memory;
use super::tokens::TokenSet;
use batch::Batch;

pub use csv::{CsvError, read_csv};
pub use digest::{Digest, digest};
pub use pickle::{PickleError, read_pickle};
pub use trainer::{Learned, Trainer};

/// Says in the file's header that it is one of ours: "hsft".
const APPLICATION: i32 = 0x6873_6674;
/// The layout of the tables. A program that finds a higher one leaves the file alone.
const FORMAT: i32 = 1;

const SCHEMA: &str = "
    CREATE TABLE word (word BLOB PRIMARY KEY, ham INTEGER NOT NULL, spam INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE message (digest BLOB PRIMARY KEY, spam INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE total (
        one INTEGER PRIMARY KEY CHECK (one = 1), nham INTEGER NOT NULL, nspam INTEGER NOT NULL, generation INTEGER NOT NULL
    ) STRICT;
    INSERT INTO total VALUES (1, 0, 0, 0);
";

/// Why the token database could not be used. Every text names the file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file, or it is empty.
    #[error("{0}: no token database there")]
    Missing(PathBuf),
    /// The file is something else.
    #[error("{0}: not a token database")]
    Foreign(PathBuf),
    /// A later version of this program wrote the file.
    #[error("{path}: token database of format {format}, this program knows up to {FORMAT}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format it is in.
        format: i32,
    },
    /// Another process was writing all the time that one was ready to wait.
    #[error("{0}: another process is training it")]
    Busy(PathBuf),
    /// Anything else: no permission, disk full, a damaged file.
    #[error("{path}: {source}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Writing an export failed; the database is not to blame.
    #[error("writing the export: {0}")]
    Export(io::Error),
}

/// What a database holds, for showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Messages learned, imported ones included.
    pub totals: Totals,
    /// Distinct words.
    pub words: u64,
    /// Messages that would be known again.
    pub messages: u64,
}

/// A whole database in memory, as of one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its words.
    pub memory: Memory,
    /// The moment: compare with [`Store::generation`].
    pub generation: i64,
}

/// An open token database.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    /// Which file it is.
    identity: Option<(u64, u64)>,
}

fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

impl Store {
    /// Opens an existing database. Writers wait up to `wait` for each other.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is nothing to open; the others if it cannot be used. Nothing is written.
    pub fn open(path: &Path, wait: Duration) -> Result<Self, StoreError> {
        // SQLite has one code for all files that it cannot open.
        if std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Err(StoreError::Missing(path.to_owned()));
        }
        let store = Self::connect(path, wait)?;
        if store.check()? { Ok(store) } else { Err(StoreError::Missing(path.to_owned())) }
    }

    /// Opens a database and makes it first if it is not there, readable for its owner only: words tell about mail.
    ///
    /// # Errors
    /// Any but [`StoreError::Missing`]. A file that is something else stays as it is.
    pub fn create(path: &Path, wait: Duration) -> Result<Self, StoreError> {
        let mut private = std::fs::OpenOptions::new();
        private.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut private, 0o600);
        // That it exists is fine, and SQLite tells any other trouble.
        let _ = private.open(path);
        let mut store = Self::connect(path, wait)?;
        if !store.check()? {
            store.make().map_err(|source| store.error(source))?;
            store.check()?;
        }
        Ok(store)
    }

    fn connect(path: &Path, wait: Duration) -> Result<Self, StoreError> {
        let error = |source| error(path, source);
        // SQLite opens a file read-only by itself if writing is not allowed. Without its URI flag it reads nothing into
        // the name.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(error)?;
        connection.busy_timeout(wait).map_err(error)?;
        // A committed training run survives a power cut too.
        connection.pragma_update(None, "synchronous", "FULL").map_err(error)?;
        let identity = std::fs::metadata(path).ok().map(|metadata| identity(&metadata));
        Ok(Store { path: path.to_owned(), connection, identity })
    }

    /// Whether the tables are there. An error if the file is not ours.
    fn check(&self) -> Result<bool, StoreError> {
        let number = |sql| self.connection.query_row(sql, [], |row| row.get::<_, i32>(0)).map_err(|e| self.error(e));
        let (application, format) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
        if (application, format) == (0, 0) && number("SELECT count(*) FROM sqlite_schema")? == 0 {
            return Ok(false);
        }
        if application != APPLICATION {
            return Err(StoreError::Foreign(self.path.clone()));
        }
        if format > FORMAT {
            return Err(StoreError::Newer { path: self.path.clone(), format });
        }
        Ok(true)
    }

    fn make(&mut self) -> rusqlite::Result<()> {
        // Where WAL is not possible, as on some network file systems, SQLite stays with a rollback journal: safe too,
        // only that readers wait for writers.
        self.connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        if transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i32>(0))? == 0 {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        transaction.commit()
    }

    fn error(&self, source: rusqlite::Error) -> StoreError {
        error(&self.path, source)
    }

    /// Whether the name stands for another file by now, or for none: this one is then read in vain.
    pub fn is_replaced(&self) -> bool {
        let now = std::fs::metadata(&self.path).ok().map(|metadata| identity(&metadata));
        now != self.identity
    }

    /// A number that is another one after every change of the database.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn generation(&self) -> Result<i64, StoreError> {
        self.connection
            .prepare_cached("SELECT generation FROM total")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|source| self.error(source))
    }

    /// Loads everything, for scoring many messages.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        self.load().map_err(|source| self.error(source))
    }

    fn load(&self) -> rusqlite::Result<Snapshot> {
        let reading = self.connection.unchecked_transaction()?;
        let words = reading.query_row("SELECT count(*) FROM word", [], |row| row.get::<_, i64>(0))?;
        let mut memory = Memory::with_capacity(usize::try_from(words).unwrap_or(0));
        memory.add_totals(totals(&reading)?);
        let mut statement = reading.prepare_cached("SELECT word, ham, spam FROM word")?;
        let mut rows = statement.query([])?;
        let read = |batch: &mut Batch| -> rusqlite::Result<bool> {
            batch.clear();
            while !batch.is_full() {
                let Some(row) = rows.next()? else { return Ok(false) };
                let counts = Counts { ham: count(row.get(1)?), spam: count(row.get(2)?) };
                batch.push(row.get_ref(0)?.as_blob()?, counts);
            }
            Ok(true)
        };
        batch::fill(&mut memory, read)?;
        let generation = reading.query_row("SELECT generation FROM total", [], |row| row.get(0))?;
        Ok(Snapshot { memory, generation })
    }

    /// Looks up the words of one message only, which is all that scoring it needs.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn lookup(&self, set: &TokenSet) -> Result<Memory, StoreError> {
        self.look_up(set).map_err(|source| self.error(source))
    }

    fn look_up(&self, set: &TokenSet) -> rusqlite::Result<Memory> {
        let reading = self.connection.unchecked_transaction()?;
        let mut memory = Memory::new();
        memory.add_totals(totals(&reading)?);
        let mut statement = reading.prepare_cached("SELECT ham, spam FROM word WHERE word = ?1")?;
        for token in set.iter() {
            let counts = statement
                .query_row([token.word], |row| Ok(Counts { ham: count(row.get(0)?), spam: count(row.get(1)?) }));
            if let Some(counts) = counts.optional()? {
                memory.add(token.word, counts);
            }
        }
        Ok(memory)
    }

    /// Begins to train; waits for another trainer first.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if that one goes on for too long; others if the database cannot be written.
    pub fn train(&mut self) -> Result<Trainer<'_>, StoreError> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|source| error(&self.path, source))?;
        Ok(Trainer::new(transaction, &self.path))
    }

    /// Puts `memory` in the place of everything, or adds it. In the first case no message is known again, for what
    /// was learned from them is gone.
    ///
    /// # Errors
    /// As for [`train`](Store::train); nothing is changed then.
    pub fn import(&mut self, memory: &Memory, merge: bool) -> Result<(), StoreError> {
        let mut trainer = self.train()?;
        if !merge {
            trainer.wipe()?;
        }
        trainer.add(memory)?;
        trainer.commit()
    }

    /// Writes all words as `sb_dbexpimp` does, sorted.
    ///
    /// # Errors
    /// [`StoreError::Export`] if `out` fails; others if the database cannot be read.
    pub fn export(&self, out: &mut dyn Write) -> Result<(), StoreError> {
        let error = |source| self.error(source);
        let reading = self.connection.unchecked_transaction().map_err(error)?;
        csv::write_totals(out, totals(&reading).map_err(error)?).map_err(StoreError::Export)?;
        let mut statement = reading.prepare_cached("SELECT word, ham, spam FROM word ORDER BY word").map_err(error)?;
        let mut rows = statement.query([]).map_err(error)?;
        while let Some(row) = rows.next().map_err(error)? {
            let word = row.get_ref(0).and_then(|word| Ok(word.as_blob()?)).map_err(error)?;
            let counts = Counts { ham: count(row.get(1).map_err(error)?), spam: count(row.get(2).map_err(error)?) };
            csv::write_row(out, word, counts).map_err(StoreError::Export)?;
        }
        out.flush().map_err(StoreError::Export)
    }

    /// Counts what is there.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let error = |source| self.error(source);
        let reading = self.connection.unchecked_transaction().map_err(error)?;
        let rows = |sql| reading.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs).map_err(error);
        Ok(Stats {
            totals: totals(&reading).map_err(error)?,
            words: rows("SELECT count(*) FROM word")?,
            messages: rows("SELECT count(*) FROM message")?,
        })
    }
}

fn error(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(path),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(path),
        _ => StoreError::Other { path, source },
    }
}

fn totals(connection: &Connection) -> rusqlite::Result<Totals> {
    connection.query_row("SELECT nham, nspam FROM total", [], |row| {
        Ok(Totals { nham: count(row.get(0)?), nspam: count(row.get(1)?) })
    })
}

/// A stored number as a count, should somebody have edited it.
fn count(stored: i64) -> u32 {
    u32::try_from(stored.max(0)).unwrap_or(u32::MAX)
}
