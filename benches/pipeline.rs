//! What does keeping order cost? Items that take no work and items that take some, through one to four workers, in order
//! and in none.

#![allow(clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hamsift::pipeline::{Done, End, Event, Limits, Sink, Stop, Threads, run};

const ITEMS: u64 = 20_000;

struct Count(u64);

impl Sink<u64> for Count {
    type Error = ();

    fn take(&mut self, event: Event<u64>) -> Result<(), ()> {
        if let Event::Item(item) = event {
            self.0 += black_box(item) & 1;
        }
        Ok(())
    }
}

/// Sends all items through; `spin` is the work on each, in rounds of a hash.
fn through(threads: usize, ordered: bool, spin: u32) {
    let limits = Limits { threads: Threads::new(threads), items: 4096, bytes: 12 << 20, ordered };
    let (_, end) = run(
        limits,
        &Stop::default(),
        Duration::from_millis(50),
        |feed| (0..ITEMS).try_for_each(|item| feed.work(item, 5000)),
        move |item: &mut u64| (0..spin).for_each(|_| *item = black_box(item.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
        |done: Done<u64, ()>| done.job,
        Count(0),
    )
    .expect("threads");
    assert_eq!(end, End::Complete(Ok(())));
}

fn pipeline(criterion: &mut Criterion) {
    for (work, spin) in [("no work", 0), ("some work", 20_000)] {
        let mut group = criterion.benchmark_group(work);
        group.throughput(Throughput::Elements(ITEMS)).sample_size(10);
        for threads in [1, 2, 4] {
            for (name, ordered) in [("in order", true), ("in none", false)] {
                group.bench_function(BenchmarkId::new(name, threads), |b| b.iter(|| through(threads, ordered, spin)));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
