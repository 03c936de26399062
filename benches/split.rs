//! How fast is a mailbox split? Beside it: counting lines, which reads the same bytes and does nothing with them, and the
//! crate mbox-reader, which maps the file and does not look what follows a `From `.

#![allow(clippy::expect_used)]

mod common;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
/// The mailbox is written again and again until it is so large, bytes.
const SIZE: u64 = 300 << 20;

fn main() {
    let (path, size) = big();
    let mut wc = || common::time(Command::new("wc").arg("-l").arg(&path));
    let mut dry = || common::time(common::hamsift().args(["filter", "-q", "--dry-run"]).arg(&path));
    let mut split = || {
        let start = Instant::now();
        let file = std::fs::File::open(&path).expect("just made");
        let mut splitter = hamsift::mbox::Splitter::new(file, hamsift::mbox::Rules::default(), 64 << 20);
        while splitter.next_piece().expect("an mbox").is_some() {}
        start.elapsed()
    };
    let mut mbox_reader = || {
        let start = Instant::now();
        let file = mbox_reader::MboxFile::from_file(&path).expect("just made");
        assert!(file.iter().count() > 0);
        start.elapsed()
    };
    let names = ["wc -l", "hamsift filter --dry-run", "mbox::Splitter", "mbox-reader"];
    let times = common::medians(ROUNDS, &mut [&mut wc, &mut dry, &mut split, &mut mbox_reader]);
    println!("{size} bytes, {ROUNDS} rounds, medians");
    for (name, time) in names.into_iter().zip(times.iter().copied()) {
        let share = 100.0 * times[0].as_secs_f64() / time.as_secs_f64();
        println!("{name:26} {:6.2} GB/s  {share:6.1} % of wc", rate(size, time));
    }
    let _ = std::fs::remove_file(path);
}

fn rate(size: u64, time: Duration) -> f64 {
    size as f64 / time.as_secs_f64() / 1e9
}

fn big() -> (PathBuf, u64) {
    let text = std::fs::read(common::mailbox()).expect("the sample");
    let path = std::env::temp_dir().join(format!("hamsift-bench-{}.mbox", std::process::id()));
    let times = SIZE as usize / text.len() + 1;
    let mut file = std::fs::File::create(&path).expect("room in the temporary folder");
    for _ in 0..times {
        std::io::Write::write_all(&mut file, &text).expect("room in the temporary folder");
    }
    (path, (times * text.len()) as u64)
}
