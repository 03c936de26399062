//! From a message's tokens to its score.

use std::cmp::Ordering;

use super::chi2::{chi2q, frexp};
use super::options::Options;
use super::tokens::{Token, TokenSet};
use super::words::WordHash;

/// In how many messages a word was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Ham messages.
    pub ham: u32,
    /// Spam messages.
    pub spam: u32,
}

/// How many messages were learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Ham messages.
    pub nham: u32,
    /// Spam messages.
    pub nspam: u32,
}

/// A trained database of words, as scoring sees it. It does not change under a score.
pub trait Tokens {
    /// How many messages were learned.
    fn totals(&self) -> Totals;

    /// What is known of a word; `None` if nothing is.
    fn counts(&self, word: &[u8]) -> Option<Counts>;

    /// The same, for a word whose hash is known already.
    fn counts_hashed(&self, word: &[u8], hash: WordHash) -> Option<Counts> {
        let _ = hash;
        self.counts(word)
    }
}

/// A score and the two beliefs it was made from, all from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// How spammy the message is. 0.5 if nothing is known.
    pub probability: f64,
    /// The belief in ham, `*H*`; 0 if nothing is known.
    pub ham: f64,
    /// The belief in spam, `*S*`; 0 if nothing is known.
    pub spam: f64,
}

/// A word that took part in a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clue<'a> {
    /// The word; `*H*` and `*S*` are the two beliefs.
    pub word: &'a [u8],
    /// How likely a message with it is spam.
    pub probability: f64,
    /// See [`Token::unicode`](super::Token::unicode).
    pub unicode: bool,
}

/// Scores a message.
pub fn score(set: &TokenSet, db: &impl Tokens, options: &Options) -> Score {
    // Words of one probability are alike here, so that the words themselves need not be compared.
    let mut words: Vec<f64> = telling(set, db, options).map(|clue| clue.probability).collect();
    let weak = words.len().saturating_sub(options.max_discriminators);
    if weak > 0 {
        words.select_nth_unstable_by(weak, |a, b| by_strength(*a, *b));
    }
    let words = &mut words[weak..];
    words.sort_unstable_by(|a, b| by_strength(*a, *b));
    combine(words.iter().copied())
}

/// Scores a message and tells why: `*H*`, `*S*`, then the words that took part, most hammy first.
pub fn clues<'a>(set: &'a TokenSet, db: &impl Tokens, options: &Options) -> (Score, Vec<Clue<'a>>) {
    let mut words: Vec<_> = telling(set, db, options).collect();
    words.sort_unstable_by(|a, b| by_strength(a.probability, b.probability).then_with(|| a.word.cmp(b.word)));
    words.drain(..words.len().saturating_sub(options.max_discriminators));
    let score = combine(words.iter().map(|clue| clue.probability));
    // Stable: words of one probability stay in the order they were combined in.
    words.sort_by(|a, b| a.probability.total_cmp(&b.probability));
    let beliefs = [(&b"*H*"[..], score.ham), (b"*S*", score.spam)];
    let beliefs = beliefs.map(|(word, probability)| Clue { word, probability, unicode: false });
    (score, beliefs.into_iter().chain(words).collect())
}

/// How far a probability is from telling nothing.
fn strength(probability: f64) -> f64 {
    (probability - 0.5).abs()
}

/// The order in which words are combined: the weakest first.
fn by_strength(a: f64, b: f64) -> Ordering {
    strength(a).total_cmp(&strength(b)).then_with(|| a.total_cmp(&b))
}

/// The words that tell anything.
fn telling<'a>(set: &'a TokenSet, db: &impl Tokens, options: &Options) -> impl Iterator<Item = Clue<'a>> {
    let Totals { nham, nspam } = db.totals();
    let (nham, nspam) = (f64::from(nham.max(1)), f64::from(nspam.max(1)));
    let clue = move |token: Token<'a>| {
        let probability = match db.counts_hashed(token.word, token.hash) {
            Some(counts) => probability(counts, nham, nspam, options),
            None => options.unknown_word_prob,
        };
        Clue { word: token.word, probability, unicode: token.unicode }
    };
    set.iter().map(clue).filter(|clue| strength(clue.probability) >= options.minimum_prob_strength)
}

/// How likely a message with this word is spam, leaning to the belief about unknown words while sightings are few.
fn probability(counts: Counts, nham: f64, nspam: f64, options: &Options) -> f64 {
    let ham = f64::from(counts.ham) / nham;
    let spam = f64::from(counts.spam) / nspam;
    let sightings = f64::from(counts.ham) + f64::from(counts.spam);
    if sightings == 0.0 {
        return options.unknown_word_prob;
    }
    let raw = spam / (ham + spam);
    let strength = options.unknown_word_strength;
    (strength * options.unknown_word_prob + sightings * raw) / (strength + sightings)
}

/// Products are kept above this by moving powers of two into a counter.
const SMALL: f64 = 1e-200;

/// Combines probabilities in their order.
fn combine(words: impl ExactSizeIterator<Item = f64>) -> Score {
    let count = words.len();
    if count == 0 {
        return Score { probability: 0.5, ham: 0.0, spam: 0.0 };
    }
    let (mut spam, mut ham) = (1.0_f64, 1.0_f64);
    let (mut spam_power, mut ham_power) = (0_i32, 0_i32);
    for probability in words {
        spam *= 1.0 - probability;
        ham *= probability;
        if spam < SMALL {
            let power;
            (spam, power) = frexp(spam);
            spam_power += power;
        }
        if ham < SMALL {
            let power;
            (ham, power) = frexp(ham);
            ham_power += power;
        }
    }
    let ln2 = 2.0_f64.ln();
    let spam = spam.ln() + f64::from(spam_power) * ln2;
    let ham = ham.ln() + f64::from(ham_power) * ln2;
    // Halving what was doubled is exact: the original passes -2 times the logarithm and halves it again.
    let spam = 1.0 - chi2q(-spam, count);
    let ham = 1.0 - chi2q(-ham, count);
    Score { probability: (spam - ham + 1.0) / 2.0, ham, spam }
}
