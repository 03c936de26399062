//! `train`, `score`, `db`, and the engine in `filter` and `pipe`.

use std::fs;
use std::path::Path;

use super::harness::*;

/// A folder with a database trained on the committed ham and spam.
struct Trained {
    folder: tempfile::TempDir,
    db: String,
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).into_os_string().into_string().expect("UTF-8")
}

fn mail(class: &str) -> String {
    let path = file(&format!("testdata/sample/{class}.mbox"));
    path.into_os_string().into_string().expect("UTF-8")
}

fn trained() -> Trained {
    let folder = tempfile::tempdir().expect("room");
    let db = at(folder.path(), "t.db");
    hamsift(["train", "--db", &db, "--ham", &mail("ham"), "--spam", &mail("spam")]).ends_with(0);
    Trained { folder, db }
}

/// The rows of a database.
fn export(db: &str) -> Vec<u8> {
    hamsift(["db", "export", "-", "--db", db]).ends_with(0).out
}

#[test]
fn a_database_and_the_same_mail_in_memory_say_the_same_for_every_n() {
    let Trained { folder: _folder, db } = trained();
    let (ham, spam) = (mail("ham"), mail("spam"));
    let one = hamsift(["filter", "--db", &db, "-n", "1"]).stdin(sample()).ends_with(0).out;
    assert_only_verdicts_added(&sample(), &one, 25);
    for n in ["2", "7"] {
        assert_same(&one, &hamsift(["filter", "--db", &db, "-n", n]).stdin(sample()).ends_with(0).out);
    }
    let memory = hamsift(["filter", "--ham", &ham, "--spam", &spam]).stdin(sample()).ends_with(0).out;
    assert_same(&one, &memory);
    assert_same(&one, &hamsift(["filter", "--db", &db]).stdin(one.clone()).ends_with(0).out);
}

#[test]
fn pipe_looks_up_what_filter_has_loaded() {
    let Trained { folder: _folder, db } = trained();
    for class in ["ham", "spam"] {
        let message = fs::read(mail(class)).expect("committed");
        let end = message.windows(7).position(|text| text == b"\n\nFrom ").expect("several");
        let message = &message[..end + 1];
        let many = hamsift(["filter", "--evidence", "--db", &db]).stdin(message).ends_with(0).out;
        let one = hamsift(["pipe", "--evidence", "--db", &db]).stdin(message).ends_with(0).out;
        assert_same(&many, &one);
        let text = String::from_utf8_lossy(&one);
        assert!(text.contains(&format!("\nX-Spambayes-Classification: {class}; ")), "{text}");
        assert!(text.contains("\nX-Spambayes-Evidence: '*H*': "), "{text}");
        let without = hamsift(["pipe", "--db", &db]).stdin(one.clone()).ends_with(0).out;
        assert!(!String::from_utf8_lossy(&without).contains("Evidence"));
    }
}

#[test]
fn what_was_learned_can_be_forgotten_and_nothing_counts_twice() {
    let Trained { folder, db } = trained();
    let before = export(&db);
    let again = hamsift(["train", "--db", &db, "--ham", &mail("ham"), "--spam", &mail("spam")]).ends_with(0);
    assert!(again.err.contains("0 learned, 0 moved, 40 known already"), "{}", again.err);
    assert_same(&before, &export(&db));
    // Annotated mail in a Maildir is the same mail.
    let marked = hamsift(["filter", "--db", &db]).stdin(fs::read(mail("spam")).expect("committed")).ends_with(0).out;
    let marked_path = at(folder.path(), "marked");
    fs::write(&marked_path, marked).expect("room");
    let moved = hamsift(["train", "--db", &db, "--ham", &marked_path]).ends_with(0);
    assert!(moved.err.contains("0 learned, 20 moved"), "{}", moved.err);
    assert!(export(&db).starts_with(b"40,0\r\n"));
    let gone = hamsift(["train", "--forget", "--db", &db, "--ham", &mail("ham"), "--spam", &mail("spam")]);
    assert!(gone.ends_with(0).err.contains("40 forgotten, 0 not known"));
    assert_same(b"0,0\r\n", &export(&db));
}

#[test]
fn a_maildir_is_the_same_mail_as_an_mbox() {
    let folder = tempfile::tempdir().expect("room");
    let (md, db) = (at(folder.path(), "md"), at(folder.path(), "t.db"));
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.path().join("md").join(part)).expect("room");
    }
    let mbox = at(folder.path(), "mbox");
    fs::write(&mbox, mailbox(1, 3)).expect("room");
    let text = String::from_utf8(mailbox(1, 3)).expect("text");
    for (number, message) in text.split_inclusive("here.\n\n").enumerate() {
        let (_, message) = message.split_once('\n').expect("a From_ line");
        let name = format!("md/{}/{number}", ["cur", "new", "tmp"][number]);
        fs::write(folder.path().join(name), message.strip_suffix('\n').expect("an empty line")).expect("room");
    }
    hamsift(["train", "--db", &db, "--ham", &mbox]).ends_with(0);
    let ended = hamsift(["train", "--db", &db, "--ham", &md]).ends_with(0);
    assert!(ended.err.contains("2 messages: 0 learned, 0 moved, 2 known already"), "{}", ended.err);
}

#[test]
fn what_cannot_be_read_is_known_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("room");
    let (db, foreign) = (at(folder.path(), "t.db"), at(folder.path(), "foreign"));
    let ended = hamsift(["train", "--db", &db, "--ham", &mail("ham"), "--spam", "/nowhere/x"]).ends_with(66);
    assert!(ended.err.contains("/nowhere/x"), "{}", ended.err);
    fs::write(&foreign, b"\xff\xfeF\0r\0o\0m\0").expect("room");
    hamsift(["train", "--db", &db, "--ham", &mail("ham"), "--spam", &foreign]).ends_with(65);
    assert!(!Path::new(&db).exists());
    hamsift(["train", "--db", &at(folder.path(), "none/t.db"), "--ham", &mail("ham")]).ends_with(73);
    hamsift(["train", "--db", &db]).ends_with(64);
    hamsift(["train", "--db", &db, "--forget", "--ham", &mail("ham")]).ends_with(78);
    hamsift(["train", "--db", &foreign, "--ham", &mail("ham")]).ends_with(65);
    assert_eq!(fs::read(&foreign).expect("still there"), b"\xff\xfeF\0r\0o\0m\0");
}

#[test]
fn the_nearest_name_of_a_classifier_counts() {
    let Trained { folder, db } = trained();
    let none = hamsift(["filter"]).stdin(mailbox(1, 1)).ends_with(78);
    assert!(none.out.is_empty());
    for way in ["-s URL", "--db FILE", "--ham PATH"] {
        assert!(none.err.contains(way), "{}", none.err);
    }
    for wrong in [["-s", "http://h", "--db", &db], ["--db", &db, "--ham", &db], ["-s", "http://h", "--spam", &db]] {
        hamsift(std::iter::once("filter").chain(wrong)).stdin(mailbox(1, 1)).ends_with(64);
    }
    // The environment's server is dead; asking it would end in 75.
    let dead = "http://127.0.0.1:1";
    hamsift(["filter", "--db", &db]).env("HAMSIFT_SERVER", dead).stdin(mailbox(1, 1)).ends_with(0);
    hamsift(["filter"]).env("HAMSIFT_DB", &db).stdin(mailbox(1, 1)).ends_with(0);
    hamsift(["filter"]).env("HAMSIFT_DB", "/nowhere/t.db").stdin(mailbox(1, 1)).ends_with(78);
    let data = at(folder.path(), "data");
    hamsift(["train", "-q", "--ham", &mail("ham")]).env("XDG_DATA_HOME", &data).ends_with(0);
    let ended = hamsift(["filter", "-v"]).env("XDG_DATA_HOME", &data).stdin(mailbox(1, 1)).ends_with(0);
    assert!(ended.err.contains(&format!("{data}/hamsift/tokens.db")), "{}", ended.err);
    assert!(ended.err.contains("no spam has been trained"), "{}", ended.err);
}

#[test]
fn pipe_passes_a_message_on_whatever_is_wrong_with_the_database() {
    let folder = tempfile::tempdir().expect("room");
    let foreign = at(folder.path(), "t.db");
    fs::write(&foreign, "not a database, but long enough to be looked at as if it were one\n".repeat(100))
        .expect("room");
    for db in [&foreign, "/nowhere/t.db"] {
        let ended = hamsift(["pipe", "--db", db]).stdin(mailbox(1, 1)).ends_with(0);
        assert_same(&mailbox(1, 1), &ended.out);
        assert!(ended.err.contains(db) && ended.err.lines().count() == 1, "{}", ended.err);
    }
}

#[test]
fn scores_are_lines_and_clues_stand_below_them() {
    let Trained { folder: _folder, db } = trained();
    let ended = hamsift(["score", "--db", &db, &mail("ham"), &mail("spam")]).ends_with(0);
    let text = String::from_utf8(ended.out).expect("text");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 40);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row[0], if number < 20 { "ham" } else { "spam" }, "{row:?}");
        assert!(row.len() == 3 && row[1].parse::<f64>().is_ok() && row[2].starts_with('<'), "{row:?}");
    }
    let ended = hamsift(["score", "--clues", "--db", &db]).stdin(mailbox(1, 1)).ends_with(0);
    let text = String::from_utf8(ended.out).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("\t<1@b.example>") && lines[1].ends_with("\t'*H*'"), "{text}");
    assert!(lines[1..].iter().all(|line| line.starts_with('\t')), "{text}");
    hamsift(["score", "--clues", "-s", "http://h"]).stdin(mailbox(1, 1)).ends_with(64);
    let server = Server::scoring(0.5);
    let ended = hamsift(["score", "-s", server.url()]).stdin(mailbox(1, 2)).ends_with(0);
    assert_eq!(
        String::from_utf8_lossy(&ended.out),
        "unsure\t0.500000\t<1@b.example>\nunsure\t0.500000\t<2@b.example>\n"
    );
}

#[test]
fn what_is_exported_can_be_imported() {
    let Trained { folder, db } = trained();
    let (csv, other) = (at(folder.path(), "a.csv"), at(folder.path(), "u.db"));
    hamsift(["db", "export", &csv, "--db", &db]).ends_with(0);
    hamsift(["db", "import", &csv, "--db", &other]).ends_with(0);
    assert_same(&export(&db), &export(&other));
    hamsift(["db", "import", "--merge", "-", "--db", &other]).stdin("1,2\r\nnever seen,1,2\r\n").ends_with(0);
    let rows = export(&other);
    assert!(rows.starts_with(b"21,22\r\n") && rows.windows(16).any(|text| text == b"\nnever seen,1,2\r"));
    // protocol 0: {} is no database, and the text says what it is
    for nonsense in ["(dp0\n.", "hello", "1;2\n", "1,2\nword\n"] {
        let ended = hamsift(["db", "import", "-", "--db", &other]).stdin(nonsense).ends_with(65);
        assert!(ended.err.contains("standard input"), "{}", ended.err);
    }
    assert_same(&rows, &export(&other));
    let stats = String::from_utf8(hamsift(["db", "stats", "--db", &db]).ends_with(0).out).expect("text");
    assert!(stats.contains("ham messages   20\n") && stats.contains(&db), "{stats}");
    hamsift(["db", "stats", "--db", "/nowhere/t.db"]).ends_with(78);
    hamsift(["db", "export", "/nowhere/a.csv", "--db", &db]).ends_with(73);
}

#[test]
fn a_killed_training_leaves_one_of_the_two_states() {
    let Trained { folder, db } = trained();
    let more = at(folder.path(), "more");
    fs::write(&more, mailbox(1, 3000)).expect("room");
    let before = export(&db);
    for _ in 0..5 {
        let running = hamsift(["train", "--db", &db, "--spam", &more]).start();
        running.signal(rustix::process::Signal::KILL);
        let ended = running.end();
        let now = export(&db);
        if ended.code == Some(0) || now != before {
            assert!(now.starts_with(b"20,3020\r\n"));
            hamsift(["train", "--forget", "--db", &db, "--spam", &more]).ends_with(0);
            assert_same(&before, &export(&db));
        }
    }
}
