//! From a message to its tokens.

use super::body::{self, Room};
use super::headers;
use super::options::Options;
use super::parse::{Kind, Structure};
use super::word::Emit;

/// Makes tokens of messages. It holds nothing but working room, so that using one for many messages saves allocating
/// it for each; see [`tokenize`] for a single message.
#[derive(Debug, Default)]
pub struct Tokenizer {
    structure: Structure,
    room: Room,
    token: Vec<u8>,
}

impl Tokenizer {
    /// A tokenizer that has allocated nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands the tokens of `message` to `sink`, repeats included. The message starts at its From_ line if it has one;
    /// any bytes will do.
    ///
    /// The order is the original's, except where the original's own order is accidental: among the counted header
    /// fields and among text parts.
    pub fn run(&mut self, message: &[u8], options: &Options, sink: &mut dyn FnMut(&[u8])) {
        self.run_marked(message, options, &mut |token, _| sink(token));
    }

    /// Tells of each token besides whether the original holds it as a Unicode string.
    pub(super) fn run_marked(&mut self, message: &[u8], options: &Options, sink: &mut dyn FnMut(&[u8], bool)) {
        let mut emit = Emit::new(sink, std::mem::take(&mut self.token));
        self.structure.parse(message, options.max_parts);
        headers::metadata(message, &self.structure.parts, &mut emit);
        headers::fields(message, &self.structure.fields, options, &mut emit);
        for part in self.structure.parts.iter().filter(|part| part.kind == Kind::Text) {
            body::tokens(message, part, options, &mut self.room, &mut emit);
        }
        self.room.shrink();
        self.token = emit.into_buffer();
    }
}

/// Hands the tokens of one message to `sink`, see [`Tokenizer::run`].
pub fn tokenize(message: &[u8], options: &Options, sink: &mut dyn FnMut(&[u8])) {
    Tokenizer::new().run(message, options, sink);
}
