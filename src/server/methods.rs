//! The methods: from the parameters of a call to its value. Knows nothing of HTTP.
//!
//! Semantics are those of `sb_xmlrpcserver.py`, with these differences: `filter` grafts the verdict onto the message
//! rather than writing it anew, a message may be a string or base64 everywhere, and methods that train return a value.

mod filter;
mod train;

use self::train::Trained;
use super::fault::Fault;
use super::params::Params;
use crate::classify::local::Local;
use crate::engine::{self, Options};
use crate::verdict::{Class, Cutoffs, Verdict};
use crate::xmlrpc::Value;

/// A method and what it is.
pub(super) struct Method {
    /// Its name.
    pub(super) name: &'static str,
    help: &'static str,
    /// Whether it changes the database.
    trains: bool,
}

const fn method(name: &'static str, help: &'static str) -> Method {
    Method { name, help, trains: false }
}

const fn training(name: &'static str, help: &'static str) -> Method {
    Method { name, help, trains: true }
}

/// All methods.
pub(super) const METHODS: [Method; 16] = [
    method(
        "filter",
        "filter(msg[, header, spam_cutoff, ham_cutoff, debugheader, debug, train]): the message with its verdict in a header field",
    ),
    method("score", "score(msg[, evidence]): how likely the message is spam, 0 to 1; with evidence, [score, clues]"),
    method("score_and_filter", "score_and_filter(msg, ...): [score, message], the parameters are those of filter"),
    training("train", "train(msg, is_spam): learn a message; false if it was known in this class"),
    training("train_ham", "train_ham(msg): learn a message as ham; false if it was known as ham"),
    training("train_spam", "train_spam(msg): learn a message as spam; false if it was known as spam"),
    training("untrain", "untrain(msg, is_spam): forget a message; false if it was not known in this class"),
    training("untrain_ham", "untrain_ham(msg): forget a message; false if it was not known as ham"),
    training("untrain_spam", "untrain_spam(msg): forget a message; false if it was not known as spam"),
    training("untrain_from_header", "untrain_from_header(msg): forget a message as its X-Spambayes-Trained field says"),
    training("store", "store(): true; each training is on disk before it is answered"),
    method("formatclues", "formatclues(clues[, sep]): the clues that score gives with evidence, as text"),
    method("system.listMethods", "system.listMethods(): the names of all methods"),
    method("system.methodHelp", "system.methodHelp(name): what a method does"),
    method("system.methodSignature", "system.methodSignature(name): signatures are not supported"),
    training("close", "close(): the same as store()"),
];

/// What became of a call, for the log and the counters.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Which of [`METHODS`] it was; `None` if it was none of them.
    pub(super) method: Option<usize>,
    /// Size of the message.
    pub(super) bytes: usize,
    /// Verdict on the message.
    pub(super) class: Option<Class>,
}

/// Carries out calls. Used by all workers at once.
#[derive(Debug)]
pub(super) struct Service {
    local: Local,
    trained: Option<Trained>,
}

impl Service {
    /// A service that trains the database at `trained`, if that is given.
    pub(super) fn new(local: Local, trained: Option<std::path::PathBuf>) -> Service {
        Service { local, trained: trained.map(Trained::new) }
    }

    /// The engine behind it.
    pub(super) fn local(&self) -> &Local {
        &self.local
    }

    /// Whether calls may train.
    pub(super) fn may_train(&self) -> bool {
        self.trained.is_some()
    }

    /// Carries out a call.
    pub(super) fn call(&self, name: &str, values: Vec<Value>, outcome: &mut Outcome) -> Result<Value, Fault> {
        let (number, method) = self.find(name).ok_or_else(|| Fault::unknown(name))?;
        outcome.method = Some(number);
        let params = |most| Params::new(method.name, values, most);
        match method.name {
            "filter" => self.filter(params(7)?, outcome),
            "score_and_filter" => self.score_and_filter(params(7)?, outcome),
            "score" => self.score(params(2)?, outcome),
            "formatclues" => self.format_clues(params(2)?),
            "system.listMethods" => {
                params(0)?;
                let mut names: Vec<_> = self.methods().map(|method| method.name).collect();
                names.sort_unstable();
                Ok(Value::Array(names.into_iter().map(|name| Value::Str(name.to_owned())).collect()))
            }
            "system.methodHelp" => {
                let name = params(1)?.string("name")?.unwrap_or_default();
                let (_, method) = self.find(&name).ok_or_else(|| Fault::unknown(&name))?;
                Ok(Value::Str(method.help.to_owned()))
            }
            // As Python's own server says it.
            "system.methodSignature" => Ok(Value::Str("signatures not supported".to_owned())),
            name => self.train_call(name, params(3)?, outcome),
        }
    }

    fn methods(&self) -> impl Iterator<Item = &'static Method> {
        METHODS.iter().filter(|method| !method.trains || self.trained.is_some())
    }

    fn find(&self, name: &str) -> Option<(usize, &'static Method)> {
        let number = METHODS.iter().position(|method| method.name == name)?;
        let method = METHODS.get(number)?;
        (!method.trains || self.trained.is_some()).then_some((number, method))
    }

    fn options(&self) -> &Options {
        self.local.options()
    }

    fn cutoffs(&self) -> Cutoffs {
        Cutoffs { ham: self.options().ham_cutoff, spam: self.options().spam_cutoff }
    }

    /// Words of before a training that was answered are never used.
    fn catch_up(&self) -> Result<(), Fault> {
        self.trained.as_ref().map_or(Ok(()), |trained| trained.catch_up(&self.local))
    }

    fn format_clues(&self, mut params: Params) -> Result<Value, Fault> {
        let pairs = params.clues("clues")?;
        let separator = params.string("sep")?;
        // A word that came as text of more than ASCII is what Python calls a Unicode string.
        let clues: Vec<_> = pairs
            .iter()
            .map(|(word, probability)| engine::Clue { word, probability: *probability, unicode: !word.is_ascii() })
            .collect();
        let text = engine::evidence_joined(&clues, separator.as_deref().unwrap_or("; "), self.options());
        Ok(Value::Str(text))
    }

    fn score(&self, mut params: Params, outcome: &mut Outcome) -> Result<Value, Fault> {
        let message = params.message()?.bytes;
        let evidence = params.flag("evidence")?.unwrap_or(false);
        outcome.bytes = message.len();
        self.catch_up()?;
        let (score, value) = self.local.weigh(&message, |tokens, words| {
            if !evidence {
                let score = engine::score(tokens, words, self.options()).probability;
                return (score, Value::Double(score));
            }
            let (score, clues) = engine::clues(tokens, words, self.options());
            let pair = |clue: &engine::Clue<'_>| {
                let word = String::from_utf8_lossy(clue.word).into_owned();
                Value::Array(vec![Value::Str(word), Value::Double(clue.probability)])
            };
            let clues = Value::Array(clues.iter().map(pair).collect());
            (score.probability, Value::Array(vec![Value::Double(score.probability), clues]))
        })?;
        outcome.class = Some(Verdict::from_score(score, &self.cutoffs()).class);
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
