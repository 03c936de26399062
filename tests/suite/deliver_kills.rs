//! Deliveries killed at random moments: what an MTA delivers again until it is taken arrives, and arrives whole.

use std::time::Duration;

use rustix::process::Signal;

use super::deliver::{MAIL, Spool, messages};
use super::harness::*;

/// Kills deliveries at random moments, eight at a time, and delivers each message again until it is told to be stored,
/// as an MTA does.
fn kill(place: &'static str, kills: usize, more: &'static [&'static str]) {
    let spool = Spool::new();
    let killed = std::sync::atomic::AtomicUsize::new(0);
    let stored = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..8usize {
            let (spool, killed, stored) = (&spool, &killed, &stored);
            scope.spawn(move || {
                let mut random = 88_172_645_463_325_252u64.wrapping_mul(worker as u64 * 2 + 1);
                let mut next = |below: u64| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random % below
                };
                for number in 0.. {
                    if killed.load(std::sync::atomic::Ordering::Relaxed) >= kills {
                        break;
                    }
                    let lines = if next(4) == 0 { 20_000 } else { 20 };
                    let id = format!("{worker}.{number}@k.example");
                    let line = format!("{id} is not to be torn, glued or lost\n");
                    let text = format!("Message-ID: <{id}>\nSubject: x\n\n{}end of {id}\n", line.repeat(lines));
                    loop {
                        let running =
                            spool.to(place, &[&["--lock-timeout=30"], more].concat()).stdin(text.clone()).start();
                        if next(3) > 0 {
                            std::thread::sleep(Duration::from_micros(next(9000)));
                            running.signal(if next(4) == 0 { Signal::TERM } else { Signal::KILL });
                        }
                        let ended = running.end();
                        match (ended.code, ended.signal) {
                            (Some(0), _) => break,
                            (Some(75), _) | (None, Some(9 | 15)) => {
                                killed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            }
                            _ => panic!("{ended:?}"),
                        }
                    }
                    stored.lock().expect("no panic").push(text);
                }
            });
        }
    });
    let (stored, killed) = (stored.into_inner().expect("no panic"), killed.into_inner());
    // The next one clears whatever lock is left.
    let ended = spool.to(place, &["--lock-timeout=5"]).ends_with(0);
    assert!(!spool.at("inbox.lock").exists(), "{}", ended.err);
    let whole: Vec<String> = if place.ends_with('/') {
        assert!(names(&spool.at("md/tmp")).is_empty());
        let file = |name: &String| spool.read(&format!("md/new/{name}"));
        names(&spool.at("md/new")).iter().map(file).collect()
    } else {
        let content = spool.read(place);
        messages(&content).iter().map(|text| text.strip_suffix('\n').expect("an empty line").to_owned()).collect()
    };
    let mut count = std::collections::HashMap::<&str, usize>::new();
    let known: std::collections::HashSet<&str> = stored.iter().map(String::as_str).collect();
    for text in &whole {
        let is_last = text.replace(">From", "From") == MAIL;
        assert!(is_last || known.contains(text.as_str()), "torn or glued: {:?}", &text[..text.len().min(200)]);
        *count.entry(text).or_default() += 1;
    }
    assert!(stored.iter().all(|text| count.contains_key(text.as_str())), "lost");
    let twice = whole.len() - 1 - stored.len();
    println!("{place} {more:?}: {killed} killed, {} stored, {twice} of them twice", stored.len());
    if more.contains(&"--dedupe") {
        assert_eq!(twice, 0);
    }
    // The last moment, between giving the mailbox free and the end of the process, cannot be covered.
    assert!(twice <= 1 + killed / 50, "{twice}");
}

#[test]
fn kills_tear_nothing_and_lose_nothing() {
    kill("inbox", 60, &[]);
    kill("md/", 40, &["--dedupe"]);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_kills_tear_nothing_and_lose_nothing() {
    for more in [&[][..], &["--dedupe"]] {
        kill("inbox", 1000, more);
        kill("md/", 1000, more);
    }
}
