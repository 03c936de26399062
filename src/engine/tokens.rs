//! The set of a message's tokens.

use super::options::Options;
use super::tokenizer::Tokenizer;
use super::words::{WordHash, Words};

/// The distinct tokens of a message, which is all that training and scoring look at. Used for one message after the
/// other it stops allocating: tokens lie in one arena.
#[derive(Debug)]
pub struct TokenSet {
    words: Words,
    /// The numbers, in order, of words that the original holds as Unicode strings.
    unicode: Vec<usize>,
    tokenizer: Tokenizer,
}

/// A token of a [`TokenSet`].
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    /// The token.
    pub word: &'a [u8],
    /// Its hash, worked out already.
    pub hash: WordHash,
    /// It is a Unicode string in the original, which only the evidence shows.
    pub unicode: bool,
}

impl TokenSet {
    /// An empty set.
    pub fn new() -> Self {
        TokenSet { words: Words::new(), unicode: Vec::new(), tokenizer: Tokenizer::new() }
    }

    /// Replaces the tokens by those of `message`, see [`Tokenizer::run`].
    pub fn fill(&mut self, message: &[u8], options: &Options) -> &mut Self {
        self.clear();
        let TokenSet { words, unicode, tokenizer } = self;
        tokenizer.run_marked(message, options, &mut |token, is_unicode| {
            let before = words.len();
            // Of two equal tokens the set keeps the first, in the original as well.
            if words.insert(token) == Some(before) && is_unicode {
                unicode.push(before);
            }
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
        self.unicode.clear();
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
        let mut unicode = self.unicode.iter().peekable();
        (0..self.len()).map(move |number| Token {
            word: self.words.get(number),
            hash: self.words.hash_at(number),
            unicode: unicode.next_if(|&&next| next == number).is_some(),
        })
    }
}

impl Default for TokenSet {
    fn default() -> Self {
        Self::new()
    }
}
