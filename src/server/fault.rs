//! Faults as the original words them: code 1, and the name of a Python exception before the text, for clients look at it.

use std::fmt;

use crate::classify::Refusal;
use crate::engine::store::StoreError;
use crate::xmlrpc::DecodeError;

/// The one code that the original uses.
pub(super) const CODE: i32 = 1;

/// Why a call was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    class: &'static str,
    text: String,
}

impl Fault {
    /// An argument that is missing, is one too many, or is of the wrong kind.
    pub(super) fn of_type(text: impl Into<String>) -> Fault {
        Fault { class: "TypeError", text: text.into() }
    }

    /// An argument of the right kind with a value that will not do.
    pub(super) fn of_value(text: impl Into<String>) -> Fault {
        Fault { class: "ValueError", text: text.into() }
    }

    /// Anything else.
    pub(super) fn other(text: impl Into<String>) -> Fault {
        Fault { class: "Exception", text: text.into() }
    }

    /// No such method, or none that may be called.
    pub(super) fn unknown(method: &str) -> Fault {
        let shown: String = method.chars().take(80).collect();
        Fault::other(format!("method \"{shown}\" is not supported"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<class '{}'>:{}", self.class, self.text)
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Fault { class: "xml.parsers.expat.ExpatError", text: error.to_string() }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::other(format!("{}: {}", refusal.kind, refusal.text))
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::other(format!("token database: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wording_is_the_originals() {
        assert_eq!(Fault::unknown("foo").to_string(), "<class 'Exception'>:method \"foo\" is not supported");
        assert_eq!(
            Fault::from(DecodeError::Truncated).to_string(),
            "<class 'xml.parsers.expat.ExpatError'>:a document that is cut off"
        );
        assert!(Fault::unknown(&"x".repeat(1000)).to_string().len() < 150);
    }
}
