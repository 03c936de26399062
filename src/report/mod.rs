//! How trouble and progress are told on standard error: one prefix, no control characters, each kind of trouble once.

mod latency;
mod progress;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::{Mutex, PoisonError};

pub use latency::Latency;
pub use progress::Progress;

/// When to use a thing that suits terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Where standard error is a terminal.
    #[default]
    Auto,
    /// Whatever standard error is.
    Always,
    /// Not at all.
    Never,
}

impl When {
    /// Whether it is used here. `NO_COLOR` is honoured by the caller.
    pub fn here(self) -> bool {
        match self {
            When::Auto => io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        }
    }
}

/// How much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// Trouble only.
    Quiet,
    /// Notes and the summary too.
    #[default]
    Normal,
    /// Each message too.
    Verbose,
}

/// More texts of one kind than this are counted, not told.
const TOLD_PER_KIND: usize = 3;

/// Tells things on standard error.
#[derive(Debug)]
pub struct Teller {
    /// How much is told.
    pub volume: Volume,
    color: bool,
    progress: Option<Progress>,
    troubles: Mutex<BTreeMap<&'static str, Kind>>,
    noted: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Kind {
    count: u64,
    texts: Vec<String>,
}

impl Teller {
    /// A teller with colours as asked for, and a progress line if there is one.
    pub fn new(volume: Volume, color: When, progress: Option<Progress>) -> Teller {
        let color = match color {
            When::Auto => color.here() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            other => other.here(),
        };
        Teller { volume, color, progress, troubles: Mutex::default(), noted: Mutex::default() }
    }

    /// Whether details are told.
    pub fn is_verbose(&self) -> bool {
        self.volume >= Volume::Verbose
    }

    /// Tells of trouble, whatever the volume.
    pub fn error(&self, text: &str) {
        self.line("1;31", text);
    }

    /// Tells something worth knowing.
    pub fn note(&self, text: &str) {
        if self.volume >= Volume::Normal {
            self.line("1", text);
        }
    }

    /// Tells something worth knowing, unless it has been told so.
    pub fn note_once(&self, text: &str) {
        if self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
            self.note(text);
        }
    }

    /// Tells a detail.
    pub fn detail(&self, text: &str) {
        if self.is_verbose() {
            self.line("2", text);
        }
    }

    /// Counts trouble of a kind, and tells it if the text is new and not many of the kind have been told.
    pub fn trouble(&self, kind: &'static str, place: &str, text: &str) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = troubles.entry(kind).or_default();
        kind.count += 1;
        if kind.texts.len() < TOLD_PER_KIND && !kind.texts.iter().any(|told| told == text) {
            kind.texts.push(text.to_owned());
            drop(troubles);
            self.error(&format!("{place}: {text}"));
        }
    }

    /// Tells how often each kind of trouble came that was not told each time.
    pub fn trouble_counts(&self) {
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, Kind { count, texts }) in &*troubles {
            if *count > texts.len() as u64 {
                self.error(&format!("trouble of this kind ({kind}): {count} messages in all"));
            }
        }
    }

    /// Shows how far the work is.
    pub fn at(&self, messages: u64, bytes: u64) {
        if let Some(progress) = &self.progress {
            progress.at(messages, bytes);
        }
    }

    /// Takes the progress line away.
    pub fn end_progress(&self) {
        if let Some(progress) = &self.progress {
            progress.end();
        }
    }

    fn line(&self, style: &str, text: &str) {
        let text = printable(text);
        let line =
            if self.color { format!("\x1b[{style}mhamsift:\x1b[0m {text}\n") } else { format!("hamsift: {text}\n") };
        // Nobody is left to be told that standard error is gone.
        let write = || drop(io::stderr().write_all(line.as_bytes()));
        match &self.progress {
            Some(progress) => progress.aside(write),
            None => write(),
        }
    }
}

/// The text with control characters (C0, DEL, C1) escaped, so that a message cannot command the terminal it is told
/// on. Line ends become blanks.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' | '\t' => out.push(' '),
            // Besides controls: marks that turn the direction of a line around.
            char if char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\x{:02x}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(printable("a\x1b[31mred\x07\u{9b}\x7f\nb\u{202e}ä\n"), "a\\x1b[31mred\\x07\\x9b\\x7f b\\x202eä");
    }
}
