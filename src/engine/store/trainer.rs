//! Learning and forgetting messages, all in one transaction.

use std::path::Path;

use rusqlite::{OptionalExtension as _, Transaction};

use super::super::bayes::Counts;
use super::super::memory::Memory;
use super::super::tokens::TokenSet;
use super::super::words::{WordHash, Words};
use super::{Digest, StoreError, error};

/// What became of a message that was to be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It was not known.
    New,
    /// It was known in the other class and is taken out there.
    Moved,
    /// It was known in this class already.
    Already,
}

/// A training run. Nothing of it is seen by others, and nothing remains, unless it is committed.
#[derive(Debug)]
pub struct Trainer<'s> {
    transaction: Transaction<'s>,
    path: &'s Path,
    /// Words that change, and by how much in ham and spam: a word of many messages is written once.
    words: Words,
    changes: Vec<[i64; 2]>,
    totals: [i64; 2],
}

/// So many changed words are written out to bound memory; the transaction goes on.
const MOST_CHANGES: usize = 500_000;

impl<'s> Trainer<'s> {
    pub(super) fn new(transaction: Transaction<'s>, path: &'s Path) -> Self {
        Trainer { transaction, path, words: Words::new(), changes: Vec::new(), totals: [0; 2] }
    }

    /// Learns a message, unless it is known in this class.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn learn(&mut self, digest: &Digest, set: &TokenSet, is_spam: bool) -> Result<Learned, StoreError> {
        let learned = match self.class_of(digest)? {
            Some(class) if class == is_spam => return Ok(Learned::Already),
            Some(class) => {
                self.change(set, class, -1)?;
                Learned::Moved
            }
            None => Learned::New,
        };
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO message VALUES (?1, ?2)")
            .and_then(|mut statement| statement.execute((digest.as_slice(), is_spam)))
            .map_err(|source| error(self.path, source))?;
        self.change(set, is_spam, 1)?;
        Ok(learned)
    }

    /// Forgets a message; tells in which class it was known, if it was.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    pub fn forget(&mut self, digest: &Digest, set: &TokenSet) -> Result<Option<bool>, StoreError> {
        let class = self.class_of(digest)?;
        if let Some(is_spam) = class {
            self.transaction
                .prepare_cached("DELETE FROM message WHERE digest = ?1")
                .and_then(|mut statement| statement.execute([digest.as_slice()]))
                .map_err(|source| error(self.path, source))?;
            self.change(set, is_spam, -1)?;
        }
        Ok(class)
    }

    /// The class a message is known in; true is spam.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn class_of(&self, digest: &Digest) -> Result<Option<bool>, StoreError> {
        self.transaction
            .prepare_cached("SELECT spam FROM message WHERE digest = ?1")
            .and_then(|mut statement| statement.query_row([digest.as_slice()], |row| row.get(0)).optional())
            .map_err(|source| error(self.path, source))
    }

    /// Adds what a database in memory has learned.
    pub(super) fn add(&mut self, memory: &Memory) -> Result<(), StoreError> {
        let totals = super::super::bayes::Tokens::totals(memory);
        self.totals[0] += i64::from(totals.nham);
        self.totals[1] += i64::from(totals.nspam);
        for (word, Counts { ham, spam }) in memory.iter() {
            self.change_word(word, WordHash::of(word), [i64::from(ham), i64::from(spam)])?;
        }
        Ok(())
    }

    /// Removes everything.
    pub(super) fn wipe(&mut self) -> Result<(), StoreError> {
        let sql = "DELETE FROM word; DELETE FROM message; UPDATE total SET nham = 0, nspam = 0;";
        self.transaction.execute_batch(sql).map_err(|source| error(self.path, source))
    }

    fn change(&mut self, set: &TokenSet, is_spam: bool, by: i64) -> Result<(), StoreError> {
        let change = if is_spam { [0, by] } else { [by, 0] };
        self.totals[usize::from(is_spam)] += by;
        for token in set.iter() {
            self.change_word(token.word, token.hash, change)?;
        }
        Ok(())
    }

    fn change_word(&mut self, word: &[u8], hash: WordHash, by: [i64; 2]) -> Result<(), StoreError> {
        if self.words.len() >= MOST_CHANGES {
            self.write().map_err(|source| error(self.path, source))?;
        }
        let Some(number) = self.words.insert_hashed(word, hash) else { return Ok(()) };
        if number == self.changes.len() {
            self.changes.push([0; 2]);
        }
        if let Some(change) = self.changes.get_mut(number) {
            change[0] += by[0];
            change[1] += by[1];
        }
        Ok(())
    }

    /// Writes the changed words, in the order of the table, which is much faster than in any other.
    fn write(&mut self) -> rusqlite::Result<()> {
        let mut order: Vec<usize> = (0..self.changes.len()).filter(|&n| self.changes[n] != [0; 2]).collect();
        order.sort_unstable_by(|&a, &b| self.words.get(a).cmp(self.words.get(b)));
        let mut add = self.transaction.prepare_cached(
            "INSERT INTO word VALUES (?1, max(?2, 0), max(?3, 0))
             ON CONFLICT (word) DO UPDATE SET ham = max(ham + ?2, 0), spam = max(spam + ?3, 0)",
        )?;
        let mut remove =
            self.transaction.prepare_cached("DELETE FROM word WHERE word = ?1 AND ham = 0 AND spam = 0")?;
        for number in order {
            let (word, [ham, spam]) = (self.words.get(number), self.changes[number]);
            add.execute((word, ham, spam))?;
            if ham < 0 || spam < 0 {
                remove.execute([word])?;
            }
        }
        self.words.clear();
        self.changes.clear();
        Ok(())
    }

    /// Makes the run lasting and visible, all at once.
    ///
    /// # Errors
    /// If the database cannot be written; nothing of the run remains then.
    pub fn commit(mut self) -> Result<(), StoreError> {
        let path = self.path;
        self.write()
            .and_then(|()| {
                self.transaction.execute(
                    "UPDATE total SET nham = max(nham + ?1, 0), nspam = max(nspam + ?2, 0), generation = generation + 1",
                    self.totals,
                )
            })
            .and_then(|_| self.transaction.commit())
            .map_err(|source| error(path, source))
    }
}
