//! Messages that are stored, by a delivery that was killed before it could tell. The MTA brings them again; whoever
//! finds such a message in its place need only tell.
//!
//! A record is made of the note in a dead one's dotlock, by the next who gets the lock, in a file beside the mailbox.
//! Without a record, or where the mailbox has been rewritten since, a message is stored again: better twice than not at
//! all.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::engine::store::digest;
use crate::output::{beside, sweep};

/// MTAs give up after five days.
const LONGEST_KEPT: u64 = 7 * 86_400;
/// No more are kept; the oldest ones go.
const MOST: usize = 100;
/// No more is read of the records, bytes.
const LONGEST: u64 = 64 << 10;
/// A longer message is not looked for.
const LONGEST_MESSAGE: u64 = 256 << 20;

/// What two deliveries of one message have in common: the text without its From_ line, which may get the time of each
/// try, and without verdicts, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of a message as it came, or as it stands in an mbox: these are two.
    pub fn of(message: &[u8]) -> Fingerprint {
        Fingerprint(digest(message).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// For a name.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

/// Where a message stands in an mbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) at: u64,
    pub(super) length: u64,
    /// Of what stands there.
    pub(super) stored: Fingerprint,
    /// Of what was delivered.
    pub(super) came: Fingerprint,
}

impl Stretch {
    /// Whether the message is there, whole.
    pub(super) fn is_in(&self, mailbox: &File) -> io::Result<bool> {
        let end = self.at.checked_add(self.length);
        if self.length > LONGEST_MESSAGE || end.is_none_or(|end| mailbox.metadata().is_ok_and(|now| now.len() < end)) {
            return Ok(false);
        }
        let mut text = vec![0; usize::try_from(self.length).unwrap_or(0)];
        mailbox.read_exact_at(&mut text, self.at)?;
        Ok(Fingerprint::of(text.trim_ascii_start()) == self.stored)
    }

    /// On one line, in words.
    pub(super) fn in_words(&self) -> String {
        format!("{} {} {} {}", self.at, self.length, self.stored.0, self.came.0)
    }

    pub(super) fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Stretch> {
        let (at, length) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let mut fingerprint = || words.next().map(|word| Fingerprint(word.to_owned()));
        Some(Stretch { at, length, stored: fingerprint()?, came: fingerprint()? })
    }
}

/// The records of one mailbox. To be used under its lock.
#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    records: Vec<(u64, Stretch)>,
}

impl Records {
    /// Reads them. There mostly are none; where they cannot be read, or may be somebody else's, there are none either.
    pub(super) fn of(mailbox: &Path) -> Records {
        let mut name = std::ffi::OsString::from(".");
        name.push(mailbox.file_name().unwrap_or_default());
        name.push(".hamsift-untold");
        let path = mailbox.with_file_name(name);
        let records = read(&path).unwrap_or_default();
        let records = records.lines().filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.parse().ok()?, Stretch::parse(&mut words)?))
        });
        Records { records: records.collect(), path }
    }

    /// Remembers one.
    pub(super) fn add(mut self, stretch: Stretch) -> io::Result<()> {
        self.records.push((now(), stretch));
        self.write()
    }

    /// Where this message is already, if it is.
    pub(super) fn find(&self, came: &Fingerprint, mailbox: &File) -> io::Result<Option<Stretch>> {
        for (_, stretch) in self.records.iter().filter(|(_, stretch)| stretch.came == *came) {
            if stretch.is_in(mailbox)? {
                return Ok(Some(stretch.clone()));
            }
        }
        Ok(None)
    }

    /// Forgets one that is told now.
    pub(super) fn forget(mut self, stretch: &Stretch) -> io::Result<()> {
        self.records.retain(|(_, record)| record != stretch);
        self.write()
    }

    /// In place of the old file, so that a kill takes no record with it.
    fn write(&self) -> io::Result<()> {
        let oldest = now().saturating_sub(LONGEST_KEPT);
        let kept: Vec<_> = self.records.iter().filter(|(time, _)| *time >= oldest).collect();
        if kept.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let lines = kept[kept.len().saturating_sub(MOST)..].iter();
        let text: String = lines.map(|(time, stretch)| format!("{time} {}\n", stretch.in_words())).collect();
        sweep(&self.path);
        let mut file = beside(&self.path, 0o600)?;
        file.write_all(text.as_bytes())?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    let mut text = String::new();
    if metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw() {
        file.take(LONGEST).read_to_string(&mut text)?;
    }
    Ok(text)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "From a@b Mon Jan  5 10:00:00 2004\nA: 1\n\nold\n\n";
    const MAIL: &str = "From c@d Tue Jan  6 10:00:00 2004\nB: 2\n\nnew\n\n";

    fn stretch() -> Stretch {
        let (at, length) = (BEFORE.len() as u64, MAIL.len() as u64);
        Stretch { at, length, stored: Fingerprint::of(MAIL.as_bytes()), came: Fingerprint::of(b"B: 2\n\nnew\n") }
    }

    #[test]
    fn a_record_is_good_for_one_delivery_of_the_same_message() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("inbox");
        fs::write(&path, format!("{BEFORE}{MAIL}")).expect("written");
        let mailbox = File::open(&path).expect("there");
        Records::of(&path).add(stretch()).expect("written");
        let find = |came: &Fingerprint| Records::of(&path).find(came, &mailbox).expect("read");
        assert_eq!(find(&Fingerprint::of(b"B: 3\n\nnew\n")), None);
        // The time in the From_ line and a verdict make no difference.
        let again =
            Fingerprint::of(b"From c@d Wed Jan  7 10:00:00 2004\nX-Spambayes-Classification: ham; 0.01\nB: 2\n\nnew\n");
        assert_eq!(find(&again), Some(stretch()));
        Records::of(&path).forget(&stretch()).expect("written");
        assert_eq!(find(&again), None);
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1, "the last record takes the file with it");
    }

    #[test]
    fn what_is_not_there_any_more_counts_for_nothing() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("inbox");
        for content in [MAIL.to_owned(), BEFORE.to_owned(), format!("{BEFORE}{}x\n\n", &MAIL[..MAIL.len() - 3])] {
            fs::write(&path, content).expect("written");
            Records::of(&path).add(stretch()).expect("written");
            let found = Records::of(&path).find(&stretch().came, &File::open(&path).expect("there"));
            assert_eq!(found.expect("read"), None);
        }
    }

    #[test]
    fn records_do_not_pile_up_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("inbox");
        for _ in 0..MOST + 10 {
            Records::of(&path).add(stretch()).expect("written");
        }
        assert_eq!(Records::of(&path).records.len(), MOST);
        let records = Records::of(&path).path;
        let old = format!("1 {}\nnonsense\n", stretch().in_words());
        fs::write(&records, old).expect("written");
        Records::of(&path).add(stretch()).expect("written");
        assert_eq!(Records::of(&path).records.len(), 1);
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&records, &elsewhere).expect("there");
        std::os::unix::fs::symlink(&elsewhere, &records).expect("linked");
        assert!(Records::of(&path).records.is_empty());
    }
}
