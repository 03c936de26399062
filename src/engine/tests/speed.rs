//! Messages per second, on demand: `cargo test --release --lib engine::tests::speed -- --ignored --nocapture` with
//! `HAMSIFT_CORPUS` naming a folder that holds `ham.mbox` and `spam.mbox`.

use std::time::Instant;

use super::super::*;
use super::golden::split;

#[test]
#[ignore = "measures, and needs a corpus"]
fn speed() {
    let Some(folder) = std::env::var_os("HAMSIFT_CORPUS").map(std::path::PathBuf::from) else { return };
    let options = Options::default();
    let mut memory = Memory::new();
    let mut set = TokenSet::new();
    let mailboxes = [("ham.mbox", false), ("spam.mbox", true)].map(|(name, spam)| {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let start = Instant::now();
        let messages = split(&bytes);
        for message in &messages {
            memory.learn(set.fill(message, &options), spam);
        }
        println!("{name}: {} messages trained in {:?}", messages.len(), start.elapsed());
        (name, bytes)
    });
    for (name, bytes) in &mailboxes {
        let messages = split(bytes);
        for round in 0..3 {
            let start = Instant::now();
            let mut classes = [0; 3];
            for message in &messages {
                set.fill(message, &options);
                let score = score(&set, &memory, &options).probability;
                assert!((0.0..=1.0).contains(&score));
                classes[if score < 0.2 { 0 } else { 1 + usize::from(score > 0.9) }] += 1;
            }
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{name} round {round}: {classes:?} in {seconds:.3} s, {:.0} messages/s",
                messages.len() as f64 / seconds
            );
        }
    }
}
