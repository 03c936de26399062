//! Methods that train. Each call is one transaction, on disk before it is answered. The words in memory are loaded anew
//! for the next message to be scored, not for each message trained.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::filter::TRAINED;
use super::{Outcome, Service};
use crate::classify::local::Local;
use crate::engine::TokenSet;
use crate::engine::store::{Learned, Store, StoreError, digest};
use crate::message::{self, Message};
use crate::server::fault::Fault;
use crate::server::params::Params;
use crate::xmlrpc::Value;

/// How long a call waits for another process that trains.
const WAIT: Duration = Duration::from_secs(10);

/// A database that calls may change.
#[derive(Debug)]
pub(super) struct Trained {
    path: PathBuf,
    /// Trainings so far, and those that the words in memory hold.
    done: AtomicU64,
    seen: AtomicU64,
}

impl Trained {
    pub(super) fn new(path: PathBuf) -> Trained {
        Trained { path, done: AtomicU64::new(0), seen: AtomicU64::new(0) }
    }

    /// Opened for each call: it may have been replaced, and a connection cannot be shared by threads.
    fn open(&self) -> Result<Store, StoreError> {
        Store::open(&self.path, WAIT)
    }

    pub(super) fn catch_up(&self, local: &Local) -> Result<(), Fault> {
        let done = self.done.load(Ordering::Acquire);
        if self.seen.load(Ordering::Acquire) < done {
            local.catch_up()?;
            self.seen.fetch_max(done, Ordering::AcqRel);
        }
        Ok(())
    }

    fn has_changed(&self) {
        self.done.fetch_add(1, Ordering::AcqRel);
    }
}

impl Service {
    pub(super) fn train_call(&self, name: &str, mut params: Params, outcome: &mut Outcome) -> Result<Value, Fault> {
        if matches!(name, "store" | "close") {
            return Ok(Value::Bool(true));
        }
        let message = params.message()?.bytes;
        outcome.bytes = message.len();
        let done = match name {
            "train" => self.learn(&message, params.needed_flag("is_spam")?)?,
            "train_ham" => self.learn(&message, false)?,
            "train_spam" => self.learn(&message, true)?,
            "untrain" => self.forget(&message, params.needed_flag("is_spam")?)?,
            "untrain_ham" => self.forget(&message, false)?,
            "untrain_spam" => self.forget(&message, true)?,
            "untrain_from_header" => match trained_as(&message)? {
                Some(is_spam) => self.forget(&message, is_spam)?,
                None => false,
            },
            other => return Err(Fault::unknown(other)),
        };
        Ok(Value::Bool(done))
    }

    /// Whether anything has changed.
    pub(super) fn learn(&self, message: &[u8], is_spam: bool) -> Result<bool, Fault> {
        let trained = self.trained.as_ref().ok_or_else(|| Fault::other("training is not allowed here"))?;
        let (digest, tokens) = (digest(message), self.tokens(message));
        let mut store = trained.open()?;
        let mut trainer = store.train()?;
        if trainer.learn(&digest, &tokens, is_spam)? == Learned::Already {
            return Ok(false);
        }
        trainer.commit()?;
        trained.has_changed();
        Ok(true)
    }

    /// Whether the message was known in this class.
    fn forget(&self, message: &[u8], is_spam: bool) -> Result<bool, Fault> {
        let trained = self.trained.as_ref().ok_or_else(|| Fault::other("training is not allowed here"))?;
        let (digest, tokens) = (digest(message), self.tokens(message));
        let mut store = trained.open()?;
        let mut trainer = store.train()?;
        if trainer.class_of(&digest)? != Some(is_spam) {
            return Ok(false);
        }
        trainer.forget(&digest, &tokens)?;
        trainer.commit()?;
        trained.has_changed();
        Ok(true)
    }

    /// As `hamsift train` takes them.
    fn tokens(&self, message: &[u8]) -> TokenSet {
        let mut tokens = TokenSet::new();
        tokens.fill(message, self.options());
        tokens
    }
}

fn trained_as(text: &[u8]) -> Result<Option<bool>, Fault> {
    let Some(field) = Message::parse(text, TRAINED).field(TRAINED) else { return Ok(None) };
    match message::clean_value(field.value).trim_ascii() {
        b"spam" => Ok(Some(true)),
        b"ham" => Ok(Some(false)),
        _ => Err(Fault::of_value(format!("{TRAINED} value unrecognized"))),
    }
}
