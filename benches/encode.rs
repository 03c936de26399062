//! What encoding costs: a message as the request that asks about it, and as it is written with its verdict, in the way
//! made for it and in the general one of std's streams and formatting. Repeats each `-r N` times (2,000), in memory and
//! into a file, with the messages of the benchmark of 2004, or with the file that is named.
//!
//! cargo bench --bench encode -- [-r N] [FILE]

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use std::fs::File;
use std::hint::black_box;
use std::io::{Seek as _, Write as _};
use std::time::{Duration, Instant};

use hamsift::classify::Answer;
use hamsift::classify::annotate::{Annotate, Graft};
use hamsift::encode::{Encoding, Fast, General, Way};
use hamsift::verdict::Verdict;
use hamsift::xmlrpc;

/// Rounds in turns; the best one counts, because whatever else the machine does only takes time away.
const ROUNDS: usize = 15;

struct Plan {
    repeats: u32,
    messages: Vec<(String, Vec<u8>)>,
}

fn plan() -> Plan {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut plan = Plan { repeats: 2000, messages: Vec::new() };
    while let Some(argument) = arguments.next() {
        if argument == "-r" {
            let repeats = arguments.next().and_then(|number| number.parse().ok());
            plan.repeats = repeats.filter(|&repeats| repeats > 0).expect("-r needs a number");
        } else {
            let bytes = std::fs::read(&argument).unwrap_or_else(|error| panic!("{argument}: {error}"));
            plan.messages.push((argument, bytes));
        }
    }
    if plan.messages.is_empty() {
        plan.messages = [524, 5600, 43_920].map(|size| (format!("{size} bytes"), common::message(size))).into();
    }
    plan
}

/// What is encoded, and the rooms that are used again.
struct Work {
    message: Vec<u8>,
    annotate: Annotate,
    answer: Answer,
    graft: Graft,
}

impl Work {
    fn request<W: Way>(&mut self, out: &mut Encoding<W>) {
        xmlrpc::call_message("filter", black_box(&self.message), out);
    }

    fn annotated<W: Way>(&mut self, out: &mut Encoding<W>) {
        let parts = self.annotate.parse(black_box(&self.message));
        self.annotate.classified(&parts, &self.answer, &mut self.graft);
        out.clear();
        self.graft.apply(&self.message, out);
    }
}

/// One of the things that are measured.
type Step<'a, W> = &'a dyn Fn(&mut Work, &mut Encoding<W>);

/// Time per message of one round.
fn timed<W: Way>(
    repeats: u32,
    work: &mut Work,
    step: Step<W>,
    file: Option<&mut File>,
    out: &mut Encoding<W>,
) -> Duration {
    let started = Instant::now();
    match file {
        None => (0..repeats).for_each(|_| {
            step(work, out);
            black_box(out.as_slice());
        }),
        Some(file) => (0..repeats).for_each(|_| {
            step(work, out);
            file.rewind().and_then(|()| file.write_all(out.as_slice())).expect("a temporary file");
        }),
    }
    started.elapsed() / repeats
}

fn compare(name: &str, plan: &Plan, work: &mut Work, fast: Step<Fast>, general: Step<General>) {
    let (mut fast_out, mut general_out) = (Encoding::default(), Encoding::default());
    fast(work, &mut fast_out);
    general(work, &mut general_out);
    assert_eq!(fast_out.as_slice(), general_out.as_slice(), "both ways give the same bytes");
    let counted = allocation_counter::measure(|| (0..100).for_each(|_| fast(work, &mut fast_out)));
    assert_eq!(counted.count_total, 0, "nothing is allocated once there is room");
    let mut file = tempfile::tempfile().expect("a temporary file");
    for to_file in [false, true] {
        let mut best = [Duration::MAX; 2];
        for _ in 0..ROUNDS {
            let mut file = to_file.then_some(&mut file);
            best[0] = best[0].min(timed(plan.repeats, work, fast, file.as_deref_mut(), &mut fast_out));
            best[1] = best[1].min(timed(plan.repeats, work, general, file, &mut general_out));
        }
        let [fast, general] = best.map(|best| best.as_nanos());
        let ratio = general as f64 / fast.max(1) as f64;
        let to = if to_file { "file" } else { "memory" };
        println!("| {name} | {to} | {general} ns | {fast} ns | {ratio:.1}× | {} |", counted.count_total);
    }
}

fn main() {
    let plan = plan();
    println!("| what | to | general | made for it | speed-up | allocations |\n|---|---|---:|---:|---:|---:|");
    for (name, message) in &plan.messages {
        let message = message.clone();
        let answer = Answer {
            verdict: Verdict::parse("ham; 0.02").expect("a verdict"),
            fields: Vec::new(),
            message: None,
            method: "filter",
            server: None,
            took: Duration::ZERO,
        };
        let mut work = Work { message, annotate: Annotate::default(), answer, graft: Graft::default() };
        compare(&format!("request, {name}"), &plan, &mut work, &Work::request::<Fast>, &Work::request::<General>);
        compare(&format!("annotated, {name}"), &plan, &mut work, &Work::annotated::<Fast>, &Work::annotated::<General>);
    }
}
