//! Parity with vectors made by running the original, if the environment variable `HAMSIFT_GOLDEN` names a folder of
//! them, unpacked. They are real mail and not a part of this repository.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::*;

fn folder() -> Option<PathBuf> {
    std::env::var_os("HAMSIFT_GOLDEN").map(PathBuf::from)
}

/// Splits an mbox of the vectors: a From_ line is first or follows an empty line.
pub(super) fn split(mbox: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> =
        memchr::memmem::find_iter(mbox, b"\n\nFrom ").map(|at| at + 2).filter(|&at| at > 0).collect();
    starts.insert(0, 0);
    starts.push(mbox.len());
    starts.windows(2).map(|pair| &mbox[pair[0]..pair[1]]).collect()
}

fn read(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(folder()?.join(name)).unwrap())
}

fn original() -> Option<Memory> {
    let csv = read("tokens.csv")?;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&*csv).into_byte_records();
    let number = |field: &[u8]| std::str::from_utf8(field).unwrap().parse::<u32>().unwrap();
    let first = reader.next().unwrap().unwrap();
    let mut memory = Memory::new();
    memory.add_totals(Totals { nham: number(&first[0]), nspam: number(&first[1]) });
    for row in reader {
        let row = row.unwrap();
        memory.add(&row[0], Counts { ham: number(&row[1]), spam: number(&row[2]) });
    }
    Some(memory)
}

fn trained() -> Option<Memory> {
    let mut memory = Memory::new();
    let mut set = TokenSet::new();
    for (name, spam) in [("train-ham.mbox", false), ("train-spam.mbox", true)] {
        for message in split(&read(name)?) {
            memory.learn(set.fill(message, &Options::default()), spam);
        }
    }
    Some(memory)
}

#[test]
fn training_gives_the_originals_database() {
    let (Some(original), Some(trained)) = (original(), trained()) else { return };
    assert_eq!(trained.totals(), original.totals());
    let sorted =
        |memory: &Memory| memory.iter().map(|(word, counts)| (word.to_vec(), counts)).collect::<BTreeMap<_, _>>();
    let (ours, theirs) = (sorted(&trained), sorted(&original));
    let mut wrong = 0;
    let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    for word in keys.into_iter().filter(|word| ours.get(*word) != theirs.get(*word)) {
        wrong += 1;
        println!("{:?}: original {:?}, here {:?}", String::from_utf8_lossy(word), theirs.get(word), ours.get(word));
    }
    assert_eq!((wrong, ours.len()), (0, theirs.len()));
}

#[test]
fn tokens_and_scores_are_the_originals() {
    let Some(db) = original() else { return };
    let options = Options::default();
    let mut wrong = 0;
    for name in ["real", "weird", "fuzz"] {
        let (mbox, lines) = (read(&format!("{name}.mbox")).unwrap(), read(&format!("{name}.jsonl")).unwrap());
        let messages = split(&mbox);
        let vectors: Vec<serde_json::Value> =
            String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(messages.len(), vectors.len(), "{name}");
        let (mut in_order, mut sets, mut scores, mut headers, mut evidences) = (0, 0, 0, 0, 0);
        let mut set = TokenSet::new();
        for (n, (message, vector)) in messages.iter().zip(&vectors).enumerate() {
            let theirs: Vec<Vec<u8>> = vector["tokens"].as_array().unwrap().iter().map(token).collect();
            let mut ours: Vec<Vec<u8>> = Vec::new();
            tokenize(message, &options, &mut |token| ours.push(token.to_vec()));
            in_order += usize::from(ours == theirs);
            let (mut a, mut b) = (ours.clone(), theirs.clone());
            a.sort();
            b.sort();
            if a == b {
                sets += 1;
            } else {
                wrong += 1;
                println!("{name} {n}:");
                for (sign, from, other) in [("original", &b, &a), ("here", &a, &b)] {
                    for word in from.iter().filter(|word| !other.contains(word)).take(12) {
                        println!("  only {sign}: {:?}", String::from_utf8_lossy(word));
                    }
                }
                println!("  {} tokens, here {}", b.len(), a.len());
            }
            set.fill(message, &options);
            let (score, clues) = clues(&set, &db, &options);
            let expected: f64 = vector["score"].as_str().unwrap().parse().unwrap();
            let exact = score.probability.to_bits() == expected.to_bits()
                && hex(score.probability) == vector["score_hex"].as_str().unwrap();
            scores += usize::from(exact);
            if !exact {
                wrong += 1;
                println!("{name} {n}: score {} not {expected}", score.probability);
            }
            assert_eq!(score, super::super::score(&set, &db, &options));
            let class = if score.probability < options.ham_cutoff {
                "ham"
            } else if score.probability > options.spam_cutoff {
                "spam"
            } else {
                "unsure"
            };
            let header = format!("X-Spambayes-Classification: {class}; {:.2}", score.probability);
            headers += usize::from(header == vector["header"].as_str().unwrap());
            let evidence = String::from_utf8(evidence(&clues, &options)).unwrap();
            if evidence == vector["evidence"].as_str().unwrap() {
                evidences += 1;
            } else {
                wrong += 1;
                println!("{name} {n}: evidence\n{evidence}\n{}", vector["evidence"]);
            }
        }
        println!(
            "{name}: {} messages; tokens equal {sets}, in the same order {in_order}; scores {scores}, headers {headers}, \
             evidence {evidences}",
            messages.len()
        );
        wrong += messages.len() - headers;
    }
    assert_eq!(wrong, 0);
}

fn token(value: &serde_json::Value) -> Vec<u8> {
    if let Some(text) = value.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(text) = value["u"].as_str() {
        // A Unicode string in the original; UTF-8 stands for it here.
        return text.as_bytes().to_vec();
    }
    let digits = value["hex"].as_str().unwrap();
    (0..digits.len() / 2).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()).collect()
}

/// A number from 0 to 1 as C's `%a` prints it.
fn hex(value: f64) -> String {
    if value == 0.0 {
        return "0x0.0p+0".to_owned();
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let digits = format!("{:013x}", bits & ((1 << 52) - 1));
    format!("0x1.{digits}p{exponent:+}")
}
