//! What has been delivered: three lines as procmail's LOGABSTRACT writes them, which mailstat(1) counts, or a line of
//! JSON.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::report::printable;

/// How it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// As procmail.
    #[default]
    Abstract,
    /// One JSON object per line.
    Json,
}

/// One message in one place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// Seconds since 1970.
    pub time: u64,
    /// Envelope sender; empty for a bounce.
    pub sender: String,
    /// Subject on one line.
    pub subject: Option<String>,
    /// Message-ID with its angle brackets.
    pub message_id: Option<String>,
    /// ham, unsure or spam.
    pub class: Option<&'static str>,
    /// The score.
    pub score: Option<f64>,
    /// The place.
    pub destination: String,
    /// Size of the message as it was delivered.
    pub bytes: usize,
    /// stored, duplicate or failed.
    pub result: &'static str,
    /// Why it failed, or was not classified.
    pub error: Option<String>,
    /// The From_ line.
    #[serde(skip)]
    pub from_line: String,
}

/// A log that is only ever added to. Each entry is one write, so that those of several deliveries do not mix.
#[derive(Clone, Debug)]
pub struct Log {
    /// The file.
    pub path: PathBuf,
    /// How it is written.
    pub format: LogFormat,
}

impl Log {
    /// Adds an entry.
    pub fn add(&self, entry: &Entry) -> io::Result<()> {
        let text = match self.format {
            LogFormat::Json => serde_json::to_string(entry)? + "\n",
            // procmail logs what it has delivered.
            LogFormat::Abstract if entry.result == "failed" => return Ok(()),
            LogFormat::Abstract => in_three_lines(entry),
        };
        open(&self.path)?.write_all(text.as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).open(path)
}

/// The columns of procmail: the size stands behind the ninth tab stop.
const SIZE_COLUMN: usize = 72;
const TAB: usize = 8;
const FOLDER: &str = "  Folder: ";
const LONGEST_SUBJECT: usize = 78;

fn in_three_lines(entry: &Entry) -> String {
    let mut text = format!("{}\n", printable(&entry.from_line));
    if let Some(subject) = &entry.subject {
        let subject: String = format!("Subject: {}", printable(subject)).chars().take(LONGEST_SUBJECT).collect();
        text += &format!(" {subject}\n");
    }
    // A duplicate goes where procmail's recipe for them lets it go.
    let place = if entry.result == "duplicate" { "/dev/null" } else { &entry.destination };
    let place = printable(place).replace('\t', " ");
    let place: String = place.chars().take(SIZE_COLUMN - FOLDER.len() - 1).collect();
    let mut column = FOLDER.len() + place.chars().count();
    text += FOLDER;
    text += &place;
    while column < SIZE_COLUMN {
        column = (column / TAB + 1) * TAB;
        text.push('\t');
    }
    text + &format!("{:7}\n", entry.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            from_line: "From a@b.example Mon Jan  5 10:00:00 2004".into(),
            subject: Some("hello".into()),
            destination: "/var/mail/a".into(),
            bytes: 1234,
            result: "stored",
            ..Entry::default()
        }
    }

    #[test]
    fn an_abstract_is_laid_out_as_procmails() {
        let want =
            "From a@b.example Mon Jan  5 10:00:00 2004\n Subject: hello\n  Folder: /var/mail/a\t\t\t\t\t\t\t   1234\n";
        assert_eq!(in_three_lines(&entry()), want);
        let long = Entry { destination: "x".repeat(200), subject: None, ..entry() };
        let text = in_three_lines(&long);
        assert_eq!(text.lines().nth(1), Some(&*format!("  Folder: {}\t   1234", "x".repeat(61))));
    }

    #[test]
    fn entries_are_added_and_no_line_is_forged() {
        let folder = tempfile::tempdir().expect("room");
        let mut log = Log { path: folder.path().join("log"), format: LogFormat::Abstract };
        let nasty = Entry { subject: Some("a\n  Folder: x\t\t 1\x1b[0m".into()), ..entry() };
        log.add(&nasty).expect("written");
        log.add(&Entry { result: "failed", ..entry() }).expect("nothing");
        log.format = LogFormat::Json;
        log.add(&nasty).expect("written");
        let text = std::fs::read_to_string(&log.path).expect("there");
        assert_eq!(text.lines().count(), 4, "{text}");
        let json: serde_json::Value = serde_json::from_str(text.lines().last().expect("one")).expect("JSON");
        assert_eq!((&json["bytes"], &json["class"]), (&1234.into(), &serde_json::Value::Null));
    }
}
