//! The sample and its generator.

use std::process::Command;

use super::harness::*;

fn generate(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("python3").arg(file("testdata/sample/generate.py")).args(arguments).output();
    let output = output.expect("Python 3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn count(mailbox: Vec<u8>) -> String {
    let err = hamsift(["filter", "--dry-run"]).stdin(mailbox).ends_with(0).err;
    err.split_whitespace().nth(1).expect("a summary").to_owned()
}

#[test]
fn the_generator_still_makes_the_committed_sample() {
    assert_same(&sample(), &generate(&["--messages", "25", "--seed", "7", "--median", "1500"]));
}

#[test]
fn the_large_sample_is_as_large_as_real_mail() {
    let mail = generate(&[]);
    assert!((1_400_000..1_700_000).contains(&mail.len()), "{}", mail.len());
    assert_eq!(count(mail), "289");
    let repeated = generate(&["--messages", "50", "--bytes", "1M"]);
    assert!((900_000..=1 << 20).contains(&repeated.len()), "{}", repeated.len());
}

#[test]
fn the_mail_to_train_with_is_whole() {
    for name in ["testdata/sample/ham.mbox", "testdata/sample/spam.mbox"] {
        assert_eq!(count(std::fs::read(file(name)).expect("committed")), "20", "{name}");
    }
}
