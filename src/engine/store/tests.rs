//! Tests of the token database.

use std::time::Duration;

use super::super::{Counts, Memory, Options, TokenSet, Tokens, Totals, score};
use super::*;

const WAIT: Duration = Duration::from_secs(5);

fn set(message: &str) -> TokenSet {
    let mut set = TokenSet::new();
    set.fill(message.as_bytes(), &Options::default());
    set
}

fn rows(memory: &Memory) -> Vec<(Vec<u8>, Counts)> {
    let mut rows: Vec<_> = memory.iter().map(|(word, counts)| (word.to_vec(), counts)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

#[test]
fn trains_like_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.db");
    assert!(matches!(Store::open(&path, WAIT), Err(StoreError::Missing(_))));
    let mut store = Store::create(&path, WAIT).unwrap();
    let messages: Vec<(String, bool)> = (0..50)
        .map(|n| (format!("Subject: number {n}\n\nword{} word{} common\n", n % 7, n % 11), n % 3 == 0))
        .collect();
    let mut memory = Memory::new();
    let before = store.generation().unwrap();
    let mut trainer = store.train().unwrap();
    for (message, spam) in &messages {
        let (set, digest) = (set(message), digest(message.as_bytes()));
        memory.learn(&set, *spam);
        assert_eq!(trainer.learn(&digest, &set, *spam).unwrap(), Learned::New);
        assert_eq!(trainer.learn(&digest, &set, *spam).unwrap(), Learned::Already);
    }
    trainer.commit().unwrap();
    assert_ne!(store.generation().unwrap(), before);

    let reader = Store::open(&path, WAIT).unwrap();
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(rows(&snapshot.memory), rows(&memory));
    assert_eq!(snapshot.memory.totals(), memory.totals());
    let (asked, options) = (set("Subject: new\n\nword3 common strange\n"), Options::default());
    assert_eq!(score(&asked, &reader.lookup(&asked).unwrap(), &options), score(&asked, &memory, &options));
    assert_eq!(
        reader.stats().unwrap(),
        Stats { totals: memory.totals(), words: rows(&memory).len() as u64, messages: 50 }
    );

    // Move one, forget the rest: what remains is that one.
    let mut trainer = store.train().unwrap();
    for (n, (message, spam)) in messages.iter().enumerate() {
        let (set, digest) = (set(message), digest(message.as_bytes()));
        if n == 0 {
            assert_eq!(trainer.learn(&digest, &set, !*spam).unwrap(), Learned::Moved);
        } else {
            assert_eq!(trainer.forget(&digest, &set).unwrap(), Some(*spam));
            assert_eq!(trainer.forget(&digest, &set).unwrap(), None);
        }
    }
    trainer.commit().unwrap();
    let mut one = Memory::new();
    one.learn(&set(&messages[0].0), !messages[0].1);
    assert_eq!(rows(&reader.snapshot().unwrap().memory), rows(&one));
    assert_ne!(reader.generation().unwrap(), snapshot.generation);
}

#[test]
fn nothing_of_a_run_that_is_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.db");
    let mut store = Store::create(&path, WAIT).unwrap();
    let mut trainer = store.train().unwrap();
    trainer.learn(&[1; 32], &set("Subject: a\n\n"), true).unwrap();
    let mut second = Store::open(&path, Duration::from_millis(50)).unwrap();
    assert!(matches!(second.train(), Err(StoreError::Busy(_))), "a second trainer waits, but not for ever");
    assert_eq!(second.snapshot().unwrap().memory.totals(), Totals::default(), "a reader does not wait");
    drop(trainer);
    second.train().unwrap().commit().unwrap();
    assert_eq!(store.stats().unwrap(), Stats { totals: Totals::default(), words: 0, messages: 0 });
}

#[test]
fn other_files_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is no database\n").unwrap();
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    for path in [&text, &other] {
        let before = std::fs::read(path).unwrap();
        assert!(matches!(Store::open(path, WAIT), Err(StoreError::Foreign(_))));
        assert!(matches!(Store::create(path, WAIT), Err(StoreError::Foreign(_))));
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
    assert!(matches!(Store::open(folder.path(), WAIT), Err(StoreError::Other { .. })));
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(Store::open(&empty, WAIT), Err(StoreError::Missing(_))));

    let newer = folder.path().join("newer.db");
    Store::create(&newer, WAIT).unwrap().connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    assert!(matches!(Store::open(&newer, WAIT), Err(StoreError::Newer { format: 2, .. })));
}

#[test]
fn exports_and_imports() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(&folder.path().join("tokens.db"), WAIT).unwrap();
    let text = b"4,6\r\n\"a,b\",0,5\r\nplain,3,1\r\n\"say \"\"x\"\"\",1,1\r\n\"subject:\n\t\",1,0\r\n\xe9,2,2\r\n";
    let memory = read_csv(&text[..]).unwrap();
    store.import(&memory, false).unwrap();
    let export = |store: &Store| {
        let mut out = Vec::new();
        store.export(&mut out).unwrap();
        out
    };
    assert_eq!(String::from_utf8_lossy(&export(&store)), String::from_utf8_lossy(text));
    store.import(&memory, true).unwrap();
    assert!(export(&store).starts_with(b"8,12\r\n\"a,b\",0,10\r\n"));
    store.import(&memory, false).unwrap();
    assert_eq!(export(&store), text);

    assert!(matches!(read_csv(&b""[..]), Err(CsvError::Row { row: 1, .. })));
    assert!(matches!(read_csv(&b"1,2\nword,1\n"[..]), Err(CsvError::Row { row: 2, .. })));
    assert!(matches!(read_csv(&b"1,2\nword,1,-1\n"[..]), Err(CsvError::Row { row: 2, .. })));
}

/// The layout Python 2 writes, protocol 1, put together by hand.
fn pickle(version: u8) -> Vec<u8> {
    let mut text = b"(cspambayes.storage\nPickledClassifier\nq\x01oq\x02(K".to_vec();
    text.push(version);
    text.extend_from_slice(
        b"}q\x03(U\x04wordq\x04(cspambayes.classifier\nWordInfo\nq\x05oq\x06(K\x03K\x02tq\x07bU\x02\xe9!q\x08",
    );
    text.extend_from_slice(
        b"ccopy_reg\n_reconstructor\nq\x09(h\x05c__builtin__\nobject\nq\x0aNtRq\x0b(K\x01K\x00tbuK\x04M\x05\x00tb.",
    );
    text
}

#[test]
fn reads_pickles() {
    let memory = read_pickle(&pickle(5)).unwrap();
    assert_eq!(memory.totals(), Totals { nham: 5, nspam: 4 });
    assert_eq!(memory.counts(b"word"), Some(Counts { ham: 2, spam: 3 }));
    assert_eq!(memory.counts(b"\xe9!"), Some(Counts { ham: 0, spam: 1 }));
    assert_eq!(read_pickle(&pickle(4)).err(), Some(PickleError::Version(4)));
    assert_eq!(read_pickle(b"(I1\nI2\nt.").err(), Some(PickleError::Foreign));
    assert_eq!(read_pickle(b"cos\nsystem\n(S'true'\ntR.").err(), Some(PickleError::Foreign), "nothing is called");
    assert!(matches!(read_pickle(b"\x80\x04."), Err(PickleError::Unsupported { code: 0x80, at: 0 })));
    // Cut off anywhere, or with any byte changed: an error or a database, never a panic.
    let whole = pickle(5);
    for at in 0..whole.len() {
        assert!(read_pickle(&whole[..at]).is_err());
        for byte in [0, b'(', b'.', b't', b'u', 0xff] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let _ = read_pickle(&changed);
        }
    }
}
