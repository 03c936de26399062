//! Mailboxes on their way into a token database: messages are read one after the other, made into tokens on several
//! threads, and handed over in the order they stand in the mail.
//!
//! The order matters where a message stands in both classes: the last one wins, as it would with one thread.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use rayon::iter::{IntoParallelRefMutIterator as _, ParallelIterator as _};

use crate::engine::store::{Digest, Learned, digest};
use crate::engine::{Memory, Options, TokenSet};
use crate::mailbox::{Mail, Mailbox, MailboxError};

/// A batch is full with so many messages, or so many bytes of them.
const BATCH: (usize, usize) = (256, 2 << 20);

/// A mailbox and what its messages are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// An mbox, a Maildir, or a file with one message.
    pub path: PathBuf,
    /// Whether its messages are spam.
    pub is_spam: bool,
}

impl Sample {
    /// Samples of both classes, ham first.
    pub fn list(ham: &[PathBuf], spam: &[PathBuf]) -> Vec<Sample> {
        let of = |paths: &[PathBuf], is_spam| paths.iter().map(move |path| (path.clone(), is_spam)).collect::<Vec<_>>();
        let all = of(ham, false).into_iter().chain(of(spam, true));
        all.map(|(path, is_spam)| Sample { path, is_spam }).collect()
    }
}

/// A message made into tokens.
#[derive(Debug, Default)]
pub struct Lesson {
    /// What makes it the same as another one.
    pub digest: Digest,
    /// Its tokens.
    pub tokens: TokenSet,
    /// The class its mailbox was given for.
    pub is_spam: bool,
}

/// A message that cannot be learned from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The file it stands in.
    pub file: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
}

/// What comes out of the mail.
#[derive(Debug)]
pub enum Found<'a> {
    /// A message.
    Lesson(&'a Lesson),
    /// One that is left out.
    Bad(&'a Bad),
}

/// Why not all of the mail was learned.
#[derive(Debug)]
pub enum TrainingError<E> {
    /// A mailbox cannot be read.
    Mailbox(MailboxError),
    /// What was found is not wanted.
    Taker(E),
    /// The threads could not be had, or the program itself failed.
    Internal(String),
}

/// A message on its way, and room for the next one.
#[derive(Default)]
struct Seat {
    bytes: Vec<u8>,
    file: Option<Arc<Path>>,
    offset: u64,
    lesson: Lesson,
    /// What is wrong with it.
    bad: Option<String>,
}

impl Seat {
    fn fill(&mut self, mail: &Mail<'_>, file: &Arc<Path>, is_spam: bool) {
        self.bytes.clear();
        self.file = Some(file.clone());
        (self.offset, self.lesson.is_spam, self.bad) = (mail.offset, is_spam, None);
        match &mail.bytes {
            Ok(text) => self.bytes.extend_from_slice(text),
            Err(reason) => self.bad = Some(reason.clone()),
        }
    }

    /// Makes tokens of the message. If that panics, it costs this message only.
    fn work(&mut self, options: &Options) {
        if self.bad.is_some() {
            return;
        }
        let Seat { bytes, lesson, .. } = self;
        let made = catch_unwind(AssertUnwindSafe(|| {
            lesson.tokens.fill(bytes, options);
            lesson.digest = digest(bytes);
        }));
        if made.is_err() {
            self.lesson.tokens = TokenSet::new();
            self.bad = Some("internal error in hamsift (please report this)".to_owned());
        }
    }
}

/// Messages that go together.
#[derive(Default)]
struct Batch {
    seats: Vec<Seat>,
    taken: usize,
    bytes: usize,
}

impl Batch {
    fn seat(&mut self) -> &mut Seat {
        if self.taken == self.seats.len() {
            self.seats.push(Seat::default());
        }
        self.taken += 1;
        &mut self.seats[self.taken - 1]
    }

    /// Makes room again, and gives back what a large message took.
    fn empty(&mut self) {
        if self.bytes > 2 * BATCH.1 {
            self.seats.clear();
        }
        (self.taken, self.bytes) = (0, 0);
    }
}

/// Reads all samples and hands what is in them to `taker`, in order, with the number of bytes read for it.
///
/// # Errors
/// At the first mailbox that cannot be read to its end, or when `taker` fails.
pub fn read<E>(
    samples: &[Sample],
    threads: usize,
    options: &Options,
    mut taker: impl FnMut(Found<'_>, usize) -> Result<(), E>,
) -> Result<(), TrainingError<E>> {
    let internal = |error: &dyn std::fmt::Display| TrainingError::Internal(error.to_string());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| internal(&error))?;
    // One batch is learned while the next one is made and a third one waits.
    let (full, batches) = mpsc::sync_channel::<Batch>(1);
    let (empty, used) = mpsc::channel::<Batch>();
    thread::scope(|scope| {
        let reader = scope.spawn(move || read_batches(samples, &pool, options, full, &used));
        for mut batch in batches {
            for seat in &mut batch.seats[..batch.taken] {
                let taken = match seat.bad.take() {
                    None => taker(Found::Lesson(&seat.lesson), seat.bytes.len()),
                    Some(reason) => {
                        let file = seat.file.as_deref().unwrap_or(Path::new("")).to_owned();
                        taker(Found::Bad(&Bad { file, offset: seat.offset, reason }), seat.bytes.len())
                    }
                };
                // The reader ends when nobody takes its batches any more.
                taken.map_err(TrainingError::Taker)?;
            }
            batch.empty();
            let _ = empty.send(batch);
        }
        match reader.join() {
            Ok(result) => result.map_err(TrainingError::Mailbox),
            Err(_) => Err(internal(&"internal error in hamsift while reading mail (please report this)")),
        }
    })
}

fn read_batches(
    samples: &[Sample],
    pool: &rayon::ThreadPool,
    options: &Options,
    full: mpsc::SyncSender<Batch>,
    used: &mpsc::Receiver<Batch>,
) -> Result<(), MailboxError> {
    // False: nobody wants any more.
    let send = |mut batch: Batch| {
        let Batch { seats, taken, .. } = &mut batch;
        pool.install(|| seats[..*taken].par_iter_mut().for_each(|seat| seat.work(options)));
        full.send(batch).is_ok()
    };
    let mut batch = Batch::default();
    for Sample { path, is_spam } in samples {
        let mut mailbox = Mailbox::open(path)?;
        let mut file: Arc<Path> = path.as_path().into();
        while let Some(mail) = mailbox.next()? {
            if *mail.file != *file {
                file = mail.file.into();
            }
            batch.seat().fill(&mail, &file, *is_spam);
            batch.bytes += mail.bytes.map_or(0, <[u8]>::len);
            if batch.taken == BATCH.0 || batch.bytes >= BATCH.1 {
                if !send(std::mem::take(&mut batch)) {
                    return Ok(());
                }
                batch = used.try_recv().unwrap_or_default();
            }
        }
    }
    send(batch);
    Ok(())
}

/// Learns in memory by the rules of a stored database: a message is learned once, in the class it was seen in last.
#[derive(Debug, Default)]
pub struct Learner {
    memory: Memory,
    known: HashMap<Digest, bool>,
}

impl Learner {
    /// Learns one message.
    pub fn learn(&mut self, lesson: &Lesson) -> Learned {
        match self.known.insert(lesson.digest, lesson.is_spam) {
            Some(class) if class == lesson.is_spam => return Learned::Already,
            Some(class) => {
                // It was learned here, so it can be unlearned.
                let _ = self.memory.unlearn(&lesson.tokens, class);
                self.memory.learn(&lesson.tokens, lesson.is_spam);
                return Learned::Moved;
            }
            None => self.memory.learn(&lesson.tokens, lesson.is_spam),
        }
        Learned::New
    }

    /// What was learned.
    pub fn into_memory(self) -> Memory {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Counts, Tokens, Totals};

    fn sample(folder: &Path, name: &str, is_spam: bool, words: &[&str]) -> Sample {
        let path = folder.join(name);
        let text: String =
            words.iter().map(|word| format!("From a@b Mon Jan  5 10:00:01 2004\nA: 1\n\n{word}\n\n")).collect();
        std::fs::write(&path, text).expect("written");
        Sample { path, is_spam }
    }

    #[test]
    fn a_message_in_both_classes_belongs_to_the_last_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let samples = vec![
            sample(folder.path(), "ham", false, &["garden", "kernel", "garden"]),
            sample(folder.path(), "spam", true, &["kernel", "casino"]),
        ];
        for threads in [1, 3] {
            let mut learner = Learner::default();
            let mut learned = Vec::new();
            let result = read(&samples, threads, &Options::default(), |found, _| match found {
                Found::Lesson(lesson) => {
                    learned.push(learner.learn(lesson));
                    Ok(())
                }
                Found::Bad(bad) => Err(bad.clone()),
            });
            assert!(result.is_ok(), "{result:?}");
            assert_eq!(learned, [Learned::New, Learned::New, Learned::Already, Learned::Moved, Learned::New]);
            let memory = learner.into_memory();
            assert_eq!(memory.totals(), Totals { nham: 1, nspam: 2 });
            assert_eq!(memory.counts(b"kernel"), Some(Counts { ham: 0, spam: 1 }));
            assert_eq!(memory.counts(b"garden"), Some(Counts { ham: 1, spam: 0 }));
        }
    }

    #[test]
    fn a_taker_that_fails_and_a_mailbox_that_is_none_end_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = sample(folder.path(), "ham", false, &["garden"; 2000]);
        let result = read(std::slice::from_ref(&good), 2, &Options::default(), |_, _| Err("full"));
        assert!(matches!(result, Err(TrainingError::Taker("full"))), "{result:?}");
        let missing = Sample { path: folder.path().join("none"), is_spam: true };
        let result = read(&[good, missing], 2, &Options::default(), |_, _| Ok::<_, ()>(()));
        assert!(matches!(result, Err(TrainingError::Mailbox(MailboxError::Open(_)))), "{result:?}");
    }
}
