//! What a server needs of the engine besides verdicts.

use super::{Local, Words, refusal};
use crate::classify::Refusal;
use crate::engine::{Memory, Options, TokenSet, Tokens, Totals};

impl Local {
    /// The settings of tokens and arithmetic.
    pub fn options(&self) -> &Options {
        &self.config.options
    }

    /// Hands the tokens of a message, and words to score them with, to `use_them`.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn weigh<T>(&self, message: &[u8], use_them: impl FnOnce(&TokenSet, &Memory) -> T) -> Result<T, Refusal> {
        self.with_words(message, use_them)
    }

    /// Loads the database anew if it has changed, and returns only then: messages that come after a training are scored
    /// with it.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn catch_up(&self) -> Result<(), Refusal> {
        match &self.words {
            Words::Loaded(loaded) => loaded.catch_up().map_err(|error| refusal(&error)),
            Words::Trained(_) | Words::Looked(_) => Ok(()),
        }
    }

    /// How many messages were learned, and how many words are known; `None` where words are looked up one by one.
    pub fn size(&self) -> Option<(Totals, usize)> {
        match &self.words {
            Words::Trained(memory) => Some((memory.totals(), memory.len())),
            Words::Loaded(loaded) => {
                let memory = loaded.current();
                Some((memory.totals(), memory.len()))
            }
            Words::Looked(_) => None,
        }
    }
}
