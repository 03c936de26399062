//! A token database in memory.

use super::bayes::{Counts, Tokens, Totals};
use super::tokens::TokenSet;
use super::words::{WordHash, Words};

/// A token database in memory: what `--ham` and `--spam` train for one run, and the form a stored one is loaded into
/// for many messages. A word costs its bytes, 20 bytes of tables, and the slack of tables that grow by doubling.
#[derive(Debug, Clone)]
pub struct Memory {
    words: Words,
    counts: Vec<Counts>,
    totals: Totals,
}

/// A message was to be unlearned from a class in which none is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no message of this class is left to unlearn")]
pub struct Underflow;

impl Memory {
    /// An untrained database.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An untrained database with room for so many words.
    pub fn with_capacity(words: usize) -> Self {
        Memory { words: Words::with_capacity(words), counts: Vec::with_capacity(words), totals: Totals::default() }
    }

    /// Learns one message.
    pub fn learn(&mut self, set: &TokenSet, is_spam: bool) {
        let total = if is_spam { &mut self.totals.nspam } else { &mut self.totals.nham };
        *total = total.saturating_add(1);
        let add = if is_spam { Counts { ham: 0, spam: 1 } } else { Counts { ham: 1, spam: 0 } };
        for token in set.iter() {
            self.add_hashed(token.word, token.hash, add);
        }
    }

    /// Takes back what [`learn`](Memory::learn) did. Only the caller knows whether the message was ever learned.
    ///
    /// # Errors
    /// [`Underflow`] if no message of that class is left; nothing is changed then.
    pub fn unlearn(&mut self, set: &TokenSet, is_spam: bool) -> Result<(), Underflow> {
        let total = if is_spam { &mut self.totals.nspam } else { &mut self.totals.nham };
        *total = total.checked_sub(1).ok_or(Underflow)?;
        for token in set.iter() {
            if let Some(counts) = self.words.find(token.word, token.hash).and_then(|number| self.counts.get_mut(number))
            {
                let count = if is_spam { &mut counts.spam } else { &mut counts.ham };
                *count = count.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// The numbers of those words of a message that are known here. A word keeps its number as long as the database
    /// lives, and [`word`](Memory::word) gives it back: a message can be kept as four bytes per word.
    pub fn numbers(&self, set: &TokenSet) -> impl Iterator<Item = u32> {
        // Numbers have 32 bits, see Words.
        set.iter().filter_map(|token| u32::try_from(self.words.find(token.word, token.hash)?).ok())
    }

    /// The word of this number; empty if there is none.
    pub fn word(&self, number: u32) -> &[u8] {
        self.words.get(number as usize)
    }

    /// Adds counts to a word.
    pub fn add(&mut self, word: &[u8], add: Counts) {
        self.add_hashed(word, WordHash::of(word), add);
    }

    fn add_hashed(&mut self, word: &[u8], hash: WordHash, add: Counts) {
        let Some(number) = self.words.insert_hashed(word, hash) else { return };
        if number == self.counts.len() {
            self.counts.push(Counts::default());
        }
        if let Some(counts) = self.counts.get_mut(number) {
            counts.ham = counts.ham.saturating_add(add.ham);
            counts.spam = counts.spam.saturating_add(add.spam);
        }
    }

    /// Adds to the numbers of messages learned.
    pub fn add_totals(&mut self, add: Totals) {
        self.totals.nham = self.totals.nham.saturating_add(add.nham);
        self.totals.nspam = self.totals.nspam.saturating_add(add.nspam);
    }

    /// Adds all that `other` has learned, as if its messages had been learned here.
    pub fn merge(&mut self, other: &Memory) {
        self.add_totals(other.totals);
        for number in 0..other.words.len() {
            let counts = other.counts.get(number).copied().unwrap_or_default();
            self.add_hashed(other.words.get(number), other.words.hash_at(number), counts);
        }
    }

    /// How many words there are, those of which nothing is left included.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The words and their counts, without those of which nothing is left.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Counts)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, counts)| **counts != Counts::default())
            .map(|(number, counts)| (self.words.get(number), *counts))
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokens for Memory {
    fn totals(&self) -> Totals {
        self.totals
    }

    fn counts(&self, word: &[u8]) -> Option<Counts> {
        self.counts_hashed(word, WordHash::of(word))
    }

    fn counts_hashed(&self, word: &[u8], hash: WordHash) -> Option<Counts> {
        let counts = *self.counts.get(self.words.find(word, hash)?)?;
        (counts != Counts::default()).then_some(counts)
    }
}
