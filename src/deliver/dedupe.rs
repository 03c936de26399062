//! Which messages have come already: a file with the Message-IDs of the latest ones, each with the place it went to.
//! A copy that goes to another place is none.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// When the file is longer than this, its older half goes.
const LONGEST: usize = 256 << 10;
/// No more is kept of one line.
const LONGEST_LINE: usize = 512;
/// Pause between tries to lock it.
const PAUSE: Duration = Duration::from_millis(20);

/// The file, locked: until this is dropped no other delivery can take the same message for new.
#[derive(Debug)]
pub struct Seen {
    file: File,
    lines: HashSet<Vec<u8>>,
    length: usize,
}

impl Seen {
    /// Opens and locks the file, which is made if it is not there, its folder too.
    pub fn open(path: &Path, wait: Duration, stop: &dyn Fn() -> bool) -> io::Result<Seen> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(no_link)
            .open(path)?;
        let started = Instant::now();
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::AGAIN || stop() || started.elapsed() >= wait {
                return Err(error.into());
            }
            thread::sleep(PAUSE);
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        if !is_ours(&content) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it holds something else than Message-IDs"));
        }
        let lines = content.split_inclusive(|&byte| byte == b'\n');
        // A line that was not finished is none.
        let lines = lines.filter_map(|line| line.strip_suffix(b"\n")).map(<[u8]>::to_vec).collect();
        Ok(Seen { file, lines, length: content.len() })
    }

    /// Whether this message has come to this place.
    pub fn has(&self, place: &str, id: &str) -> bool {
        self.lines.contains(&line(place, id))
    }

    /// Remembers it. To be called once it is stored: better twice than not at all.
    pub fn add(&mut self, place: &str, id: &str) -> io::Result<()> {
        let line = line(place, id);
        let mut text = [line.as_slice(), b"\n"].concat();
        if self.length + text.len() > LONGEST {
            self.file.rewind()?;
            let mut content = Vec::new();
            self.file.read_to_end(&mut content)?;
            let half = content.len() / 2;
            let start = memchr::memchr(b'\n', &content[half..]).map_or(content.len(), |lf| half + lf + 1);
            text = [&content[start..], &text].concat();
            self.file.set_len(0)?;
            self.length = 0;
        }
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.write_all(&text)?;
        self.length += text.len();
        self.lines.insert(line);
        Ok(())
    }
}

/// Whether this can be what was remembered. Another file, such as a mailbox, must not lose its older half.
fn is_ours(content: &[u8]) -> bool {
    match memchr::memchr(b'\n', content) {
        // Of the only line so far, not all may have been written.
        None => content.len() <= LONGEST_LINE,
        Some(end) => end == LONGEST_LINE || content[..end].contains(&b'\t'),
    }
}

fn line(place: &str, id: &str) -> Vec<u8> {
    let clean = |text: &str| text.chars().map(|char| if char.is_control() { '?' } else { char }).collect::<String>();
    let mut line = format!("{}\t{}", clean(id), clean(place)).into_bytes();
    line.truncate(LONGEST_LINE);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> io::Result<Seen> {
        Seen::open(path, Duration::from_millis(40), &|| false)
    }

    #[test]
    fn what_has_come_is_known_by_place_and_id() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("cache/seen");
        let mut seen = open(&path).expect("made");
        assert!(!seen.has("inbox", "<1@a>"));
        seen.add("inbox", "<1@a>").expect("written");
        assert!(seen.has("inbox", "<1@a>") && !seen.has("spam", "<1@a>") && !seen.has("inbox", "<2@a>"));
        assert!(open(&path).is_err(), "locked");
        drop(seen);
        let mut seen = open(&path).expect("free");
        assert!(seen.has("inbox", "<1@a>"));
        seen.add("in\nbox", "<3\n4@a>").expect("written");
        assert!(seen.has("in\nbox", "<3\n4@a>"));
        drop(seen);
        assert_eq!(std::fs::read_to_string(&path).expect("there").lines().count(), 2);
    }

    #[test]
    fn another_file_is_left_alone() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("mbox");
        for other in ["From a@b Mon Jan  5 10:00:01 2004\nA: 1\n\nb\n\n".repeat(9000), "x".repeat(9000)] {
            std::fs::write(&path, &other).expect("written");
            assert!(open(&path).is_err());
            assert!(std::fs::read_to_string(&path).expect("there") == other);
        }
        for ours in
            [String::new(), "<1@a>\tin\n".to_owned(), "<1@".to_owned(), format!("{}\n", "x".repeat(LONGEST_LINE))]
        {
            std::fs::write(&path, ours).expect("written");
            assert!(open(&path).is_ok());
        }
    }

    #[test]
    fn the_file_stays_small_and_keeps_the_newest() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("seen");
        let mut seen = open(&path).expect("made");
        let long = "x".repeat(1000);
        for number in 0..2000 {
            seen.add("inbox", &format!("<{number}@{long}>")).expect("written");
        }
        drop(seen);
        assert!(std::fs::metadata(&path).expect("there").len() <= LONGEST as u64);
        let seen = open(&path).expect("free");
        assert!(seen.has("inbox", &format!("<1999@{long}>")) && !seen.has("inbox", &format!("<0@{long}>")));
    }
}
