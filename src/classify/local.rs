//! Verdicts from the embedded engine: over words trained for this run, over a whole database in memory, or, for a single
//! message, over just its words looked up in the database.
//!
//! Scoring takes no lock: each thread holds the words it scores with and its own working room. That another process
//! has trained the database is noticed between messages; the first thread to see it loads the database anew while the
//! others go on with what they have.

mod serving;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Answer, Classifier, Field, Refusal, Usage};
use crate::engine::store::{Store, StoreError};
use crate::engine::{self, Memory, Options, TokenSet, Tokens, Totals};
use crate::verdict::{Cutoffs, Verdict};

/// Name of the field that tells why.
pub const EVIDENCE: &str = "X-Spambayes-Evidence";
/// A line may not be longer, by RFC 5322, section 2.1.1.
const LONGEST_LINE: usize = 998;
/// Where a line that has to be folded is folded, as the original does.
const FOLD_AT: usize = 78;
/// Whether the database has changed is looked at no more often than this.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How the verdicts are made.
#[derive(Clone, Debug, Default)]
pub struct LocalConfig {
    /// Tokens and arithmetic, with the cutoffs.
    pub options: Options,
    /// Whether the clues come along in a field of their own.
    pub evidence: bool,
}

/// The embedded engine as a classifier.
#[derive(Debug)]
pub struct Local {
    config: LocalConfig,
    cutoffs: Cutoffs,
    words: Words,
    notes: Mutex<Vec<String>>,
    /// Whether it has been said that the database cannot be read any more.
    told: AtomicBool,
}

#[derive(Debug)]
enum Words {
    Trained(Arc<Memory>),
    Loaded(Loaded),
    Looked(Mutex<Store>),
}

/// A word of a score and how it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Clue {
    /// The word as Python 2 shows it, with quotes.
    pub word: String,
    /// How likely a message with it is spam.
    pub probability: f64,
}

/// What a thread keeps from one message to the next.
#[derive(Default)]
struct Room {
    tokens: TokenSet,
    /// The words it scored with last, and which ones those are.
    words: Option<(u64, Arc<Memory>)>,
}

thread_local! {
    static ROOM: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

impl Local {
    /// Over words trained for this run.
    pub fn trained(memory: Memory, config: LocalConfig) -> Local {
        let totals = memory.totals();
        let local = Local::new(Words::Trained(Arc::new(memory)), config);
        local.warn("the mail given with --ham and --spam", totals);
        local
    }

    /// Over a database, all of it loaded: for many messages.
    ///
    /// # Errors
    /// If the database cannot be opened or read.
    pub fn loaded(path: &Path, wait: Duration, config: LocalConfig) -> Result<Local, StoreError> {
        let loaded = Loaded::new(Store::open(path, wait)?, path)?;
        let totals = loaded.totals;
        let local = Local::new(Words::Loaded(loaded), config);
        local.warn(&path.display().to_string(), totals);
        Ok(local)
    }

    /// Over a database in which each message's words are looked up: for few messages.
    ///
    /// # Errors
    /// If the database cannot be opened or read.
    pub fn looked_up(path: &Path, wait: Duration, config: LocalConfig) -> Result<Local, StoreError> {
        let store = Store::open(path, wait)?;
        let totals = store.lookup(&TokenSet::new())?.totals();
        let local = Local::new(Words::Looked(Mutex::new(store)), config);
        local.warn(&path.display().to_string(), totals);
        Ok(local)
    }

    fn new(words: Words, config: LocalConfig) -> Local {
        let cutoffs = Cutoffs { ham: config.options.ham_cutoff, spam: config.options.spam_cutoff };
        Local { config, cutoffs, words, notes: Mutex::default(), told: AtomicBool::new(false) }
    }

    /// Notes that verdicts mean little yet.
    fn warn(&self, name: &str, totals: Totals) {
        match totals {
            Totals { nham: 0, nspam: 0 } => {
                self.note(format!("warning: nothing has been trained in {name}, so every message is unsure"));
            }
            Totals { nham: 0, .. } => self.note(format!("warning: no ham has been trained in {name}")),
            Totals { nspam: 0, .. } => self.note(format!("warning: no spam has been trained in {name}")),
            _ => {}
        }
    }

    /// Adds something worth telling the user.
    pub fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// The verdict on a message with its clues, `*H*` and `*S*` first, then the most hammy ones.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn explain(&self, message: &[u8]) -> Result<(Verdict, Vec<Clue>), Refusal> {
        self.with_words(message, |tokens, words| {
            let (score, clues) = engine::clues(tokens, words, &self.config.options);
            let show = |clue: &engine::Clue<'_>| Clue {
                word: String::from_utf8_lossy(&engine::quoted(clue.word, clue.unicode)).into_owned(),
                probability: clue.probability,
            };
            (Verdict::from_score(score.probability, &self.cutoffs), clues.iter().map(show).collect())
        })
    }

    /// Tokens of a message and the words to score them with. The room of a message that panics is not used again.
    fn with_words<T>(&self, message: &[u8], score: impl FnOnce(&TokenSet, &Memory) -> T) -> Result<T, Refusal> {
        let mut room = ROOM.take().unwrap_or_default();
        let Room { tokens, words } = &mut *room;
        tokens.fill(message, &self.config.options);
        let result = match &self.words {
            Words::Trained(memory) => Ok(score(tokens, memory)),
            Words::Loaded(loaded) => {
                if let Err(error) = loaded.refresh()
                    && !self.told.swap(true, Ordering::Relaxed)
                {
                    self.note(format!("{error}; going on with the words as they were"));
                }
                Ok(score(tokens, loaded.words(words)))
            }
            Words::Looked(store) => {
                let memory = store.lock().unwrap_or_else(PoisonError::into_inner).lookup(tokens);
                memory.map(|memory| score(tokens, &memory)).map_err(|error| refusal(&error))
            }
        };
        ROOM.set(Some(room));
        result
    }
}

fn refusal(error: &StoreError) -> Refusal {
    Refusal { kind: "token database", text: error.to_string(), server: None }
}

impl Classifier for Local {
    fn classify(&self, message: &[u8]) -> Result<Answer, Refusal> {
        let started = Instant::now();
        let options = &self.config.options;
        let (score, evidence) = self.with_words(message, |tokens, words| {
            if self.config.evidence {
                let (score, clues) = engine::clues(tokens, words, options);
                (score, Some(evidence_field(EVIDENCE, &engine::evidence(&clues, options))))
            } else {
                (engine::score(tokens, words, options), None)
            }
        })?;
        Ok(Answer {
            verdict: Verdict::from_score(score.probability, &self.cutoffs),
            fields: evidence.into_iter().collect(),
            message: None,
            method: "engine",
            server: None,
            took: started.elapsed(),
        })
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// The field with the evidence: one line if that may be, else folded behind `;` as the original folds it. A clue longer
/// than a line stays whole.
pub fn evidence_field(name: &str, evidence: &[u8]) -> Field {
    let mut field = [name.as_bytes(), b": ", evidence].concat();
    let value = name.len() + 2;
    if field.len() <= LONGEST_LINE {
        return (name.into(), evidence.to_vec());
    }
    let (mut start, mut last) = (0, None);
    for at in memchr::memmem::find_iter(&field.clone(), b"; ") {
        let end = at + 1;
        if let Some(fold) = last
            && end - start > FOLD_AT
        {
            field[fold] = b'\n';
            start = fold;
        }
        last = Some(end);
    }
    if let Some(fold) = last
        && field.len() - start > FOLD_AT
    {
        field[fold] = b'\n';
    }
    // The blank that became a line end is followed by a tab, which `replace` cannot do for bytes.
    let lines: Vec<_> = field[value..].split(|&byte| byte == b'\n').collect();
    (name.into(), lines.join(&b"\n\t"[..]))
}

/// Numbers for sets of words, all different in this process.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

/// A database of which all words are in memory.
#[derive(Debug)]
struct Loaded {
    path: PathBuf,
    started: Instant,
    totals: Totals,
    /// When the database has to be looked at again, in milliseconds after `started`.
    due: AtomicU64,
    /// Which words are current.
    version: AtomicU64,
    current: Mutex<(u64, Arc<Memory>)>,
    store: Mutex<(Store, i64)>,
}

impl Loaded {
    fn new(store: Store, path: &Path) -> Result<Loaded, StoreError> {
        let snapshot = store.snapshot()?;
        let version = VERSIONS.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded {
            path: path.to_owned(),
            started: Instant::now(),
            totals: snapshot.memory.totals(),
            due: AtomicU64::new(LOOK_EVERY.as_millis() as u64),
            version: AtomicU64::new(version),
            current: Mutex::new((version, Arc::new(snapshot.memory))),
            store: Mutex::new((store, snapshot.generation)),
        })
    }

    /// The current words. `held` is what this thread used last; nothing but a number is compared where that still holds.
    fn words<'a>(&self, held: &'a mut Option<(u64, Arc<Memory>)>) -> &'a Memory {
        let version = self.version.load(Ordering::Acquire);
        if held.as_ref().is_some_and(|held| held.0 != version) {
            *held = None;
        }
        &held.get_or_insert_with(|| self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()).1
    }

    /// Loads the words anew if the database has changed. One thread does that at a time, and none waits for it.
    fn refresh(&self) -> Result<(), StoreError> {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.due.load(Ordering::Relaxed);
        let next = now + LOOK_EVERY.as_millis() as u64;
        if now < due || self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Ok(());
        }
        let Ok(mut store) = self.store.try_lock() else { return Ok(()) };
        self.reload(&mut store)
    }

    /// The same, but whoever calls this waits until it is done.
    fn catch_up(&self) -> Result<(), StoreError> {
        self.reload(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn current(&self) -> Arc<Memory> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn reload(&self, (store, generation): &mut (Store, i64)) -> Result<(), StoreError> {
        if store.is_replaced() {
            *store = Store::open(&self.path, Duration::ZERO)?;
        } else if store.generation()? == *generation {
            return Ok(());
        }
        let snapshot = store.snapshot()?;
        *generation = snapshot.generation;
        let version = VERSIONS.fetch_add(1, Ordering::Relaxed);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = (version, Arc::new(snapshot.memory));
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(1);

    fn learned(words: &[(&str, bool)]) -> Memory {
        let mut memory = Memory::new();
        let mut set = TokenSet::new();
        for (word, is_spam) in words {
            set.fill(format!("A: 1\n\n{word}\n").as_bytes(), &Options::default());
            memory.learn(&set, *is_spam);
        }
        memory
    }

    fn text(local: &Local, word: &str) -> String {
        local.classify(format!("A: 1\n\n{word}\n").as_bytes()).expect("a verdict").verdict.text
    }

    #[test]
    fn nothing_trained_is_unsure_and_said_once() {
        let local = Local::trained(Memory::new(), LocalConfig::default());
        assert_eq!((text(&local, "casino"), text(&local, "")), ("unsure; 0.50".into(), "unsure; 0.50".into()));
        assert!(matches!(&local.notes()[..], [note] if note.contains("nothing has been trained")));
        assert!(local.notes().is_empty());
    }

    #[test]
    fn both_ways_into_a_database_say_the_same_and_a_change_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.db");
        let mut store = Store::create(&path, WAIT).expect("made");
        store.import(&learned(&[("garden", false), ("casino", true)]), false).expect("imported");
        let open = |single| {
            let open = if single { Local::looked_up } else { Local::loaded };
            open(&path, WAIT, LocalConfig::default()).expect("opened")
        };
        let (single, many) = (open(true), open(false));
        assert_eq!((text(&single, "garden"), text(&many, "garden")), ("ham; 0.16".into(), "ham; 0.16".into()));
        assert_eq!(text(&single, "casino"), text(&many, "casino"));
        store.import(&learned(&[("garden", true), ("casino", false)]), false).expect("imported");
        assert_eq!(text(&single, "garden"), "unsure; 0.84");
        std::thread::sleep(LOOK_EVERY + Duration::from_millis(50));
        assert_eq!(text(&many, "garden"), "unsure; 0.84");
        std::fs::remove_file(&path).expect("removed");
        let mut store = Store::create(&path, WAIT).expect("made anew");
        store.import(&learned(&[("garden", false), ("casino", true)]), false).expect("imported");
        std::thread::sleep(LOOK_EVERY + Duration::from_millis(50));
        assert_eq!(text(&many, "garden"), "ham; 0.16");
    }

    #[test]
    fn evidence_is_folded_only_where_it_must_be() {
        let shown = |(name, value): &Field| String::from_utf8([name, &b": "[..], value].concat()).expect("text");
        let config = LocalConfig { evidence: true, ..LocalConfig::default() };
        let local = Local::trained(learned(&[("garden", false), ("casino", true)]), config);
        let answer = local.classify(b"A: 1\n\ngarden\n").expect("a verdict");
        let field = shown(&answer.fields[0]);
        assert_eq!(field, "X-Spambayes-Evidence: '*H*': 0.84; '*S*': 0.16; 'garden': 0.16");
        for (clues, length) in [(100, 5), (100, 70), (3, 1000), (200, 77)] {
            let evidence = vec!["x".repeat(length); clues].join("; ");
            let field = shown(&evidence_field(EVIDENCE, evidence.as_bytes()));
            assert_eq!(field.replace("\n\t", " "), format!("X-Spambayes-Evidence: {evidence}"));
            let folded = field.split('\n').count() > 1;
            assert_eq!(folded, 22 + evidence.len() > LONGEST_LINE);
            assert!(!folded || field.split('\n').all(|line| line.len() <= FOLD_AT + 1 || !line.contains("; ")));
        }
    }

    #[test]
    fn clues_explain_a_verdict() {
        let local = Local::trained(learned(&[("it's", false), ("casino", true)]), LocalConfig::default());
        let (verdict, clues) = local.explain(b"A: 1\n\ncasino\n").expect("a verdict");
        assert_eq!(verdict.text, text(&local, "casino"));
        let words: Vec<_> = clues.iter().map(|clue| clue.word.as_str()).collect();
        assert_eq!(words, ["'*H*'", "'*S*'", "'casino'"]);
    }
}
