use super::*;
use crate::classify::local::LocalConfig;
use crate::engine::store::Store;
use crate::engine::{Memory, TokenSet};

const MESSAGE: &str =
    "From a@b Mon Jan  5 10:00:00 2004\nSubject: x\nx-spambayes-classification: ham; 0.00\n\ncasino\n";

fn memory() -> Memory {
    let (mut memory, mut set) = (Memory::new(), TokenSet::new());
    for (word, is_spam) in [("garden", false), ("casino", true)] {
        memory.learn(set.fill(format!("A: 1\n\n{word}\n").as_bytes(), &Options::default()), is_spam);
    }
    memory
}

fn service() -> Service {
    Service::new(Local::trained(memory(), LocalConfig::default()), None)
}

fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn call(service: &Service, name: &str, params: &[Value]) -> Result<Value, String> {
    service.call(name, params.to_vec(), &mut Outcome::default()).map_err(|fault| fault.to_string())
}

/// The message that `filter` gives back.
fn filtered(params: &[Value]) -> String {
    match call(&service(), "filter", params) {
        Ok(Value::Base64(bytes)) => String::from_utf8(bytes).expect("ASCII"),
        other => panic!("{other:?}"),
    }
}

fn with(fields: &str) -> String {
    format!("From a@b Mon Jan  5 10:00:00 2004\nSubject: x\n{fields}\n\ncasino\n")
}

#[test]
fn filter_takes_the_originals_arguments() {
    let message = || text(MESSAGE);
    assert_eq!(filtered(&[message()]), with("X-Spambayes-Classification: unsure; 0.84"));
    assert_eq!(filtered(&[Value::Base64(MESSAGE.into())]), filtered(&[message()]));
    assert_eq!(filtered(&[message(), text("X-Junk"), Value::Double(0.8)]), with("X-Junk: spam; 0.84"));
    let (nil, zero) = (Value::Nil, Value::Int(0));
    assert_eq!(
        filtered(&[message(), text(""), Value::Int(1), Value::Double(0.9), nil.clone(), zero]),
        with("X-Spambayes-Classification: ham; 0.84")
    );
    let evidence = "X-Spambayes-Classification: unsure; 0.84\nX-Why: '*H*': 0.16; '*S*': 0.84; 'casino': 0.84";
    let debug = [message(), nil.clone(), nil.clone(), nil.clone(), text("X-Why"), Value::Bool(true)];
    assert_eq!(filtered(&debug), with(evidence));
    let forged = text(&MESSAGE.replace("Subject: x\n", "Subject: x\nx-why: not\n so\n"));
    assert_eq!(filtered(&[&[forged], &debug[1..]].concat()), with(evidence), "a forged field of that name goes");
}

#[test]
fn bad_arguments_are_faults() {
    let message = || text("A: 1\n\nb\n");
    for (params, class) in [
        (vec![], "TypeError"),
        (vec![Value::Nil], "TypeError"),
        (vec![Value::Int(1)], "TypeError"),
        (vec![message(), Value::Int(1)], "TypeError"),
        (vec![message(), text("X"), text("0.9")], "TypeError"),
        (vec![message(), text("Subject")], "ValueError"),
        (vec![message(), text("a: b\r\nX-Evil")], "ValueError"),
        (vec![message(), Value::Nil, Value::Nil, Value::Nil, text("a b")], "ValueError"),
        (vec![Value::Nil; 8], "TypeError"),
    ] {
        let fault = call(&service(), "filter", &params).expect_err("a fault");
        assert!(fault.starts_with(&format!("<class '{class}'>:")), "{params:?}: {fault}");
    }
}

#[test]
fn score_tells_why() {
    let message = text("A: 1\n\ncasino\n");
    let Ok(Value::Double(score)) = call(&service(), "score", std::slice::from_ref(&message)) else {
        panic!("no score")
    };
    let clue = |word, probability| Value::Array(vec![text(word), Value::Double(probability)]);
    let Ok(Value::Array(both)) = call(&service(), "score", &[message.clone(), Value::Bool(true)]) else {
        panic!("no evidence")
    };
    assert_eq!(both[0], Value::Double(score));
    let Value::Array(clues) = &both[1] else { panic!("no clues") };
    assert!((0.84..0.85).contains(&score) && clues[1] == clue("*S*", score) && clues[2] == clue("casino", score));
    let Ok(Value::Array(pair)) = call(&service(), "score_and_filter", std::slice::from_ref(&message)) else {
        panic!("no pair")
    };
    let want = "A: 1\nX-Spambayes-Classification: unsure; 0.84\n\ncasino\n";
    assert_eq!(pair, [Value::Double(score), text(want)]);
    let base64 = Value::Base64(b"A: 1\n\ncasino\n".to_vec());
    let Ok(Value::Array(pair)) = call(&service(), "score_and_filter", &[base64]) else { panic!("no pair") };
    assert_eq!(pair[1], Value::Base64(want.into()));
}

#[test]
fn clues_are_formatted_as_the_original_does() {
    let clue = |word: &str, probability| Value::Array(vec![text(word), Value::Double(probability)]);
    let clues = Value::Array(vec![
        clue("*H*", 0.5),
        clue("it's", 0.001),
        clue("little", 0.5),
        clue("\u{e9}", 0.99),
        Value::Array(vec![Value::Base64(b"\xe9".to_vec()), Value::Int(1)]),
    ]);
    let options = Options { clue_mailheader_cutoff: 0.1, ..Options::default() };
    let config = LocalConfig { options, ..LocalConfig::default() };
    let service = Service::new(Local::trained(memory(), config), None);
    let format = |params: &[Value]| call(&service, "formatclues", params);
    // The last one came as bytes, but of which kind it was does not matter to what is shown of it.
    assert_eq!(
        format(std::slice::from_ref(&clues)),
        Ok(text(r#"'*H*': 0.50; "it's": 0.00; u'\xe9': 0.99; u'\xe9': 1.00"#))
    );
    assert_eq!(
        format(&[clues, text(" | ")]),
        Ok(text(r#"'*H*': 0.50 | "it's": 0.00 | u'\xe9': 0.99 | u'\xe9': 1.00"#))
    );
    assert_eq!(format(&[Value::Array(Vec::new())]), Ok(text("")));
    for bad in [Value::Int(1), Value::Array(vec![text("a")]), Value::Array(vec![Value::Array(vec![text("a")])])] {
        assert!(format(&[bad]).expect_err("a fault").starts_with("<class 'TypeError'>:formatclues()"));
    }
    assert!(format(&[]).is_err());
}

#[test]
fn odd_messages_are_answered() {
    for message in ["", "\n", "From a@b Mon Jan  5 10:00:00 2004\n", "no header", "A: 1", "\r\n\r\n", "From "] {
        let out = filtered(&[text(message)]);
        assert_eq!(out.matches("X-Spambayes-Classification: unsure; 0.50").count(), 1, "{message:?}: {out:?}");
    }
}

#[test]
fn what_trains_is_not_there_unless_it_may() {
    for name in ["train", "train_ham", "untrain_spam", "untrain_from_header", "store", "close", "bayes.store", "_x", ""]
    {
        let want = format!("<class 'Exception'>:method \"{name}\" is not supported");
        assert_eq!(call(&service(), name, &[text("A: 1\n\n")]), Err(want));
    }
    let train =
        [&[text("A: 1\n\n")][..], &[Value::Nil, Value::Nil, Value::Nil, Value::Nil, Value::Nil], &[Value::Int(1)]];
    assert!(call(&service(), "filter", &train.concat()).is_err());
    let Ok(Value::Array(names)) = call(&service(), "system.listMethods", &[]) else { panic!("no list") };
    assert!(names.contains(&text("filter")) && !names.contains(&text("train")));
    assert!(
        matches!(call(&service(), "system.methodHelp", &[text("filter")]), Ok(Value::Str(help)) if help.contains("msg"))
    );
    assert!(call(&service(), "system.methodHelp", &[text("train")]).is_err());
}

#[test]
fn training_is_seen_by_the_next_score() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.db");
    let wait = std::time::Duration::from_secs(1);
    Store::create(&path, wait).expect("made").import(&memory(), false).expect("imported");
    let local = Local::loaded(&path, wait, LocalConfig::default()).expect("loaded");
    let service = Service::new(local, Some(path));
    let message = text("A: 1\n\nteapot\n");
    let score = || match call(&service, "score", std::slice::from_ref(&message)) {
        Ok(Value::Double(score)) => score,
        other => panic!("{other:?}"),
    };
    let did = |name, more: &[Value]| call(&service, name, &[std::slice::from_ref(&message), more].concat());
    let (yes, no) = (Ok(Value::Bool(true)), Ok(Value::Bool(false)));
    assert_eq!(score(), 0.5);
    assert_eq!(did("untrain_ham", &[]), no);
    assert_eq!(did("train_spam", &[]), yes);
    assert_eq!(did("train", &[Value::Int(1)]), no, "known already");
    assert!(score() > 0.8);
    assert_eq!(did("untrain_ham", &[]), no, "it is known as spam");
    assert_eq!(did("train", &[Value::Bool(false), Value::Bool(true)]), yes, "moved");
    assert!(score() < 0.2);
    assert_eq!(did("untrain", &[Value::Bool(false)]), yes);
    assert_eq!(score(), 0.5);
    assert_eq!(call(&service, "store", &[]), yes);
    // Unsure is trained as ham, as the original does, and the field tells so.
    let train = [&[message.clone()][..], &vec![Value::Nil; 5][..], &[Value::Bool(true)]].concat();
    let Ok(Value::Base64(out)) = call(&service, "filter", &train) else { panic!("no message") };
    let out = String::from_utf8(out).expect("text");
    assert!(out.contains("X-Spambayes-Trained: ham\n"), "{out}");
    assert!(score() < 0.2);
    assert_eq!(call(&service, "untrain_from_header", &[text(&out)]), yes);
    assert_eq!(score(), 0.5);
    assert!(call(&service, "untrain_from_header", &[text("X-Spambayes-Trained: x\n\n")]).is_err());
    assert_eq!(did("untrain_from_header", &[]), no);
}
