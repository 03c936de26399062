//! The set of a message's tokens.

use super::options::Options;
use super::tokenizer::Tokenizer;
use super::words::{WordHash, Words};

/// The distinct tokens of a message, which is all that training and scoring look at. Used for one message after the
/// other it stops allocating: tokens lie in one arena.
#[derive(Debug)]
pub struct TokenSet {
    words: Words,
    tokenizer: Tokenizer,
}

/// A token of a [`TokenSet`].
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    /// The token.
    pub word: &'a [u8],
    /// Its hash, worked out already.
    pub hash: WordHash,
}

impl TokenSet {
    /// An empty set.
    pub fn new() -> Self {
        TokenSet { words: Words::new(), tokenizer: Tokenizer::new() }
    }

    /// Replaces the tokens by those of `message`, see [`Tokenizer::run`].
    pub fn fill(&mut self, message: &[u8], options: &Options) -> &mut Self {
        let TokenSet { words, tokenizer } = self;
        words.clear();
        tokenizer.run(message, options, &mut |token| {
            words.insert(token);
        });
        self
    }

    /// Adds one token.
    pub fn insert(&mut self, word: &[u8]) {
        self.words.insert(word);
    }

    /// Takes all tokens out.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens in the order they first came.
    pub fn iter(&self) -> impl Iterator<Item = Token<'_>> {
        (0..self.len()).map(|number| Token { word: self.words.get(number), hash: self.words.hash_at(number) })
    }
}

impl Default for TokenSet {
    fn default() -> Self {
        Self::new()
    }
}
