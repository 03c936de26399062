//! The embedded classifier: SpamBayes's tokens and SpamBayes's arithmetic, to the last bit.
//!
//! ```text
//! message ─► parse (MIME structure) ─► headers ┐
//!                                  └─► body ───┴─► tokens ─► TokenSet ─► score ─► Score
//! ```
//!
//! Everything here but [`store`] is pure: bytes in, numbers out. No file is opened, no clock is read, no lock is taken; a [`score`]
//! takes `&self` over a table nobody changes. The rules are those of SpamBayes 1.1 under Python 2 with its default
//! options, where a token is a byte string and only ASCII has case and white space. They are odd in many places, and
//! every oddity is kept: a database trained by the original must give the original's verdicts.
//!
//! No crate for mail parsing is used. mailparse ends headers elsewhere, takes other lines for boundaries and refuses
//! damaged base64, and each of those changes tokens.
//!
//! Any bytes are accepted. Time is linear in the size of the message, nothing recurses, and the only limit that can
//! be noticed is [`Options::max_parts`].

mod address;
mod bayes;
mod body;
mod chi2;
mod encoded;
mod evidence;
mod headers;
mod html;
mod lines;
mod memory;
mod options;
mod params;
mod parse;
pub mod store;
mod tokenizer;
mod tokens;
mod transfer;
mod url;
mod uuencode;
mod word;
mod words;

#[cfg(test)]
mod tests;

pub use bayes::{Clue, Counts, Score, Tokens, Totals, clues, score};
pub use evidence::{evidence, evidence_joined, quoted};
pub use memory::{Memory, Underflow};
pub use options::{OptionError, Options};
pub use tokenizer::{Tokenizer, tokenize};
pub use tokens::{Token, TokenSet};
pub use words::WordHash;
