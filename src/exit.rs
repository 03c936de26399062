//! The exit status and its merge rule. Codes are those of `sysexits(3)`, which MTAs and scripts know.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Ok,
    /// At least one message went through unclassified (`EX_TEMPFAIL`).
    TempFail,
    /// The command line is wrong (`EX_USAGE`).
    Usage,
    /// The input is no mailbox, or is damaged (`EX_DATAERR`).
    Data,
    /// An input cannot be opened (`EX_NOINPUT`).
    NoInput,
    /// There is no such user (`EX_NOUSER`).
    NoUser,
    /// An output cannot be created (`EX_CANTCREAT`).
    CannotCreate,
    /// Reading or writing failed (`EX_IOERR`).
    Io,
    /// The configuration is wrong or lacks a classifier (`EX_CONFIG`).
    Config,
    /// Ended by this signal; the shell's code for it is 128 + the number.
    Signal(i32),
    /// A verdict told as an exit code (`pipe --exit-code`), as bogofilter does.
    Verdict(u8),
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Usage => 64,
            Exit::Data => 65,
            Exit::NoInput => 66,
            Exit::NoUser => 67,
            Exit::CannotCreate => 73,
            Exit::Io => 74,
            Exit::TempFail => 75,
            Exit::Config => 78,
            Exit::Signal(number) => 128u8.saturating_add(u8::try_from(number).unwrap_or(0)),
            Exit::Verdict(code) => code,
        }
    }

    /// The status of a run of which one part ended with `self` and another with `other`: a failure outweighs success,
    /// anything outweighs [`Exit::TempFail`] (a lost output matters more than a missing verdict), else the first stays.
    pub fn and(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Ok, other) => other,
            (Exit::TempFail, other) if other != Exit::Ok => other,
            (first, _) => first,
        }
    }
}

/// An error that knows its exit status; the command level downcasts to it.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The status the process ends with.
    pub exit: Exit,
    /// What to tell the user.
    pub text: String,
}

impl Failure {
    /// A failure with this status and text, ready for `?`.
    pub fn error(exit: Exit, text: impl Into<String>) -> anyhow::Error {
        Failure { exit, text: text.into() }.into()
    }
}

/// The status of an error: that of the [`Failure`] in its chain, else [`Exit::Io`].
pub fn status(error: &anyhow::Error) -> Exit {
    error.chain().find_map(|cause| cause.downcast_ref::<Failure>()).map_or(Exit::Io, |failure| failure.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_status_wins_and_the_first_of_equals() {
        for (a, b, want) in [
            (Exit::Ok, Exit::Ok, Exit::Ok),
            (Exit::Ok, Exit::TempFail, Exit::TempFail),
            (Exit::TempFail, Exit::Ok, Exit::TempFail),
            (Exit::TempFail, Exit::Io, Exit::Io),
            (Exit::Io, Exit::TempFail, Exit::Io),
            (Exit::NoInput, Exit::Io, Exit::NoInput),
        ] {
            assert_eq!(a.and(b), want, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn signals_are_told_as_the_shell_does() {
        assert_eq!((Exit::Signal(2).code(), Exit::Signal(15).code()), (130, 143));
    }

    #[test]
    fn an_error_keeps_its_status_under_context() {
        let error = Failure::error(Exit::NoInput, "no such file").context("reading x");
        assert_eq!(status(&error), Exit::NoInput);
        assert_eq!(status(&anyhow::anyhow!("other")), Exit::Io);
    }
}
