//! Where verdicts come from, and how they get into a message.
//!
//! [`annotate`] is the only place that grafts a verdict onto a message; [`remote`] asks XML-RPC
//! servers, [`local`] the embedded engine.

pub mod annotate;
mod answer;
mod health;
pub mod local;
mod method;
pub mod paced;
pub mod remote;

use std::sync::Arc;
use std::time::Duration;

use crate::verdict::Verdict;

pub use method::Method;

/// Gives verdicts. Called from many threads at once.
pub trait Classifier: Send + Sync {
    /// The verdict on a message that holds no fields of ours.
    fn classify(&self, message: &[u8]) -> Result<Answer, Refusal>;

    /// What is worth telling the user since the last call, each thing once.
    fn notes(&self) -> Vec<String>;

    /// What was done so far.
    fn usage(&self) -> Usage;

    /// Asks for at most so many verdicts at once from now on, however many callers there are: those of calls that are
    /// repeated after a pause would come on top of the others otherwise.
    fn at_most(&self, _calls: usize) {}

    /// What is known of how much may be asked at once.
    fn strain(&self) -> Strain {
        Strain::default()
    }
}

/// How a classifier bears what is asked of it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strain {
    /// More calls at once than this only wait for each other.
    pub most: usize,
    /// Attempts so far that brought no answer.
    pub failures: u64,
    /// Calls so far that a server left in its backlog until another connection was closed.
    pub neglected: usize,
}

impl Default for Strain {
    /// Nothing is known to be too much.
    fn default() -> Strain {
        Strain { most: usize::MAX, failures: 0, neglected: 0 }
    }
}

/// A verdict and what came with it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// More fields of ours from the answer, names and values, each fold of a value written as an LF and blanks.
    pub fields: Vec<Field>,
    /// The whole message as the server gave it back, where it gave one and it was asked for.
    pub message: Option<Vec<u8>>,
    /// How it was asked for.
    pub method: &'static str,
    /// Who gave it: a server's URL without its password.
    pub server: Option<Arc<str>>,
    /// How long the whole call took, repeats included.
    pub took: Duration,
}

/// Name and value of a field.
pub type Field = (Vec<u8>, Vec<u8>);

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What sort of trouble: those of one kind are told once, with a count.
    pub kind: &'static str,
    /// What to tell the user.
    pub text: String,
    /// Who was asked last.
    pub server: Option<Arc<str>>,
}

/// Counts of what a classifier did.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Per server; empty for the engine.
    pub servers: Vec<ServerUsage>,
    /// Calls that were repeated after a failure.
    pub retries: u64,
}

/// Counts of what was asked of one server.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ServerUsage {
    /// Its URL without the password.
    pub url: String,
    /// Connections opened.
    pub connections: u64,
    /// Requests sent.
    pub requests: u64,
    /// Messages classified.
    pub classified: u64,
    /// Calls that failed.
    pub failures: u64,
}
