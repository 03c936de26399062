//! A table of distinct byte strings in one arena: the ground under a message's token set and under a token database
//! in memory.
//!
//! Words come from strangers, so the hash is keyed with a secret drawn once per process: nobody outside can write a
//! message whose words all collide. One key for all tables lets a word be hashed once and looked up anywhere.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// A word's hash under this process's key; worthless in any other process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordHash(u64);

impl WordHash {
    /// The hash of `word`.
    pub fn of(word: &[u8]) -> Self {
        hash(*KEY.get_or_init(new_key), word)
    }
}

static KEY: OnceLock<[u64; 2]> = OnceLock::new();

fn new_key() -> [u64; 2] {
    // RandomState is the standard library's only source of randomness; odd keys keep the multiplication invertible.
    let random = RandomState::new();
    [random.hash_one(1_u64) | 1, random.hash_one(2_u64) | 1]
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // Both halves: the low one alone does not depend on the high bits of the input.
    (product as u64) ^ ((product >> 64) as u64)
}

fn hash(key: [u64; 2], word: &[u8]) -> WordHash {
    let mut state = key[0] ^ (word.len() as u64);
    let mut rest = word;
    while rest.len() > 8 {
        let Some((head, tail)) = rest.split_first_chunk::<8>() else { break };
        state = fold(state ^ u64::from_le_bytes(*head), key[1]);
        rest = tail;
    }
    let last = if let Some(tail) = word.last_chunk::<8>() {
        u64::from_le_bytes(*tail)
    } else if let (Some(head), Some(tail)) = (word.first_chunk::<4>(), word.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*head)) << 32 | u64::from(u32::from_le_bytes(*tail))
    } else {
        word.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    };
    WordHash(fold(fold(state ^ last, key[1]), key[0]))
}

/// Distinct words, numbered from 0 in the order they came.
#[derive(Debug, Clone)]
pub(super) struct Words {
    key: [u64; 2],
    bytes: Vec<u8>,
    /// End of word N in `bytes`; it begins where the word before it ends.
    ends: Vec<u32>,
    hashes: Vec<WordHash>,
    /// Open addressing: high half of the hash, and the word's number plus one; 0 is an empty slot.
    slots: Vec<u64>,
}

const FEWEST_SLOTS: usize = 1024;

impl Words {
    pub(super) fn new() -> Self {
        Self::with_capacity(0)
    }

    /// A table that does not have to grow for so many words.
    pub(super) fn with_capacity(words: usize) -> Self {
        let slots = (words * 4 / 3 + 1).next_power_of_two().max(FEWEST_SLOTS);
        Words {
            key: *KEY.get_or_init(new_key),
            bytes: Vec::new(),
            ends: Vec::with_capacity(words),
            hashes: Vec::with_capacity(words),
            slots: vec![0; slots],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Forgets all words and keeps the room, unless one giant message had made it very large: then the next small ones
    /// would pay for wiping it.
    pub(super) fn clear(&mut self) {
        if self.slots.len() > FEWEST_SLOTS && self.slots.len() > 16 * self.ends.len() {
            self.slots = vec![0; FEWEST_SLOTS];
        } else {
            self.slots.fill(0);
        }
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.ends.clear();
        self.hashes.clear();
    }

    /// Word `number`; empty if there is none.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let start = match number.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or_default(),
            None => 0,
        };
        let end = self.ends.get(number).copied().unwrap_or_default();
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(super) fn hash_at(&self, number: usize) -> WordHash {
        self.hashes.get(number).copied().unwrap_or(WordHash(0))
    }

    pub(super) fn find(&self, word: &[u8], hash: WordHash) -> Option<usize> {
        self.probe(word, hash).ok()
    }

    /// The word's number, or the slot where it would go.
    fn probe(&self, word: &[u8], hash: WordHash) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash.0 as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            if slot >> 32 == hash.0 >> 32 {
                let number = (slot as u32 - 1) as usize;
                if self.get(number) == word {
                    return Ok(number);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of `word`, which is added if it is new. `None` if the table is full: numbers and offsets have 32
    /// bits, which is four gigabytes of words.
    pub(super) fn insert(&mut self, word: &[u8]) -> Option<usize> {
        self.insert_hashed(word, hash(self.key, word))
    }

    pub(super) fn insert_hashed(&mut self, word: &[u8], hash: WordHash) -> Option<usize> {
        let at = match self.probe(word, hash) {
            Ok(number) => return Some(number),
            Err(at) => at,
        };
        let number = self.ends.len();
        let end = u32::try_from(self.bytes.len() + word.len()).ok()?;
        let tag = u32::try_from(number + 1).ok()?;
        self.bytes.extend_from_slice(word);
        self.ends.push(end);
        self.hashes.push(hash);
        self.slots[at] = hash.0 >> 32 << 32 | u64::from(tag);
        if self.ends.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        Some(number)
    }

    fn grow(&mut self) {
        let mut slots = vec![0_u64; self.slots.len() * 2];
        let mask = slots.len() - 1;
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut at = hash.0 as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = hash.0 >> 32 << 32 | (number as u64 + 1);
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbered_once() {
        let mut words = Words::new();
        for round in 0..2 {
            for n in 0..5000_usize {
                let word = format!("word{n}{}", "x".repeat(n % 23));
                assert_eq!(words.insert(word.as_bytes()), Some(n), "round {round}");
            }
        }
        assert_eq!(words.get(4999), format!("word4999{}", "x".repeat(4999 % 23)).as_bytes());
        assert_eq!(words.find(b"word0", WordHash::of(b"word0")), Some(0));
        assert_eq!(words.find(b"word", WordHash::of(b"word")), None);
        words.clear();
        assert_eq!(words.len(), 0);
        assert_eq!(words.find(b"word0", WordHash::of(b"word0")), None);
    }

    #[test]
    fn words_of_every_length_are_kept_apart() {
        let mut words = Words::new();
        let all = [b'a'; 40];
        for n in 0..40 {
            assert_eq!(words.insert(&all[..n]), Some(n));
        }
        assert_eq!(words.len(), 40);
    }
}
