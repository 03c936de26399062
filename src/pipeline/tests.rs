use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits { threads: Threads::new(4), items: 8, bytes: 1000, ordered: true }
}

const QUIET: Duration = Duration::from_millis(20);

fn same<T>(done: Done<T, ()>) -> T {
    done.job
}

/// A sink that is a closure.
struct Call<F>(F);

impl<T, E: Send, F: FnMut(Event<T>) -> Result<(), E> + Send + 'static> Sink<T> for Call<F> {
    type Error = E;

    fn take(&mut self, event: Event<T>) -> Result<(), E> {
        (self.0)(event)
    }
}

/// A sink that keeps what it gets.
struct Keep<T>(Vec<T>);

impl<T: Send + 'static> Sink<T> for Keep<T> {
    type Error = ();

    fn take(&mut self, event: Event<T>) -> Result<(), ()> {
        if let Event::Item(item) = event {
            self.0.push(item);
        }
        Ok(())
    }
}

/// Runs numbers through; `work` sees each, and those in `ready` take the short way.
fn numbers(
    limits: Limits,
    count: u32,
    ready: impl Fn(u32) -> bool + Send + 'static,
    work: impl Fn(u32) + Send + Sync + 'static,
) -> Vec<u32> {
    let (sink, end) = run(
        limits,
        &Stop::default(),
        QUIET,
        move |feed| {
            for number in 0..count {
                let put = if ready(number) { feed.ready(number, 10) } else { feed.work(number, 10) };
                put.expect("nobody stops it");
            }
            "the end"
        },
        move |number: &mut u32| work(*number),
        same,
        Keep(Vec::new()),
    )
    .expect("threads");
    assert_eq!(end, End::Complete("the end"));
    sink.0
}

#[test]
fn nothing_in_nothing_out() {
    assert!(numbers(limits(), 0, |_| false, |_| ()).is_empty());
}

#[test]
fn a_late_first_item_keeps_the_order_and_the_window_full_but_not_fuller() {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let gate = Arc::new(Barrier::new(2));
    let (first, last) = (gate.clone(), gate);
    let out = numbers(
        limits(),
        100,
        |_| false,
        move |number| {
            STARTED.fetch_add(1, Ordering::SeqCst);
            match number {
                0 => {
                    first.wait();
                    // All that fits behind the first one has begun, and nothing more could.
                    assert!(STARTED.load(Ordering::SeqCst) <= limits().items);
                }
                7 => drop(last.wait()),
                _ => {}
            }
        },
    );
    assert_eq!(out, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_panic_costs_one_outcome() {
    let (sink, end) = run(
        limits(),
        &Stop::default(),
        QUIET,
        |feed| (0..20u32).try_for_each(|number| feed.work(number, 1)),
        |number: &mut u32| if *number == 7 { std::panic::resume_unwind(Box::new("seven")) } else { *number * 2 },
        |done| (done.job, done.outcome),
        Keep(Vec::new()),
    )
    .expect("threads");
    assert_eq!(end, End::Complete(Ok(())));
    let want: Vec<_> = (0..20).map(|number| (number, (number != 7).then_some(number * 2))).collect();
    assert_eq!(sink.0, want);
}

#[test]
fn a_failing_sink_ends_the_source() {
    let (told, closed) = std::sync::mpsc::channel();
    let (_, end) = run(
        limits(),
        &Stop::default(),
        QUIET,
        move |feed| {
            let result = (0..).try_for_each(|number: u32| feed.work(number, 1));
            told.send(result).expect("the test waits");
        },
        |_: &mut u32| (),
        same,
        Call(|event| match event {
            Event::Item(5) => Err("full"),
            _ => Ok(()),
        }),
    )
    .expect("threads");
    assert_eq!(end, End::Failed("full"));
    assert_eq!(closed.recv_timeout(Duration::from_secs(10)), Ok(Err(Closed)));
}

#[test]
fn a_panicking_source_or_sink_is_told() {
    let (sink, end) = run(
        limits(),
        &Stop::default(),
        QUIET,
        |feed| {
            feed.ready(1u32, 1).expect("nobody stops it");
            std::panic::resume_unwind(Box::new("source"));
        },
        |_: &mut u32| (),
        same,
        Keep(Vec::new()),
    )
    .expect("threads");
    assert_eq!((sink.0, end), (vec![1], End::<(), ()>::Panicked));
    let (_, end) = run(
        limits(),
        &Stop::default(),
        QUIET,
        |feed| (0..100u32).try_for_each(|number| feed.work(number, 1)),
        |_: &mut u32| (),
        same,
        Call(|event| match event {
            Event::Item(5) => std::panic::resume_unwind(Box::new("sink")),
            _ => Ok::<_, ()>(()),
        }),
    )
    .expect("threads");
    assert_eq!(end, End::Panicked);
}

#[test]
fn a_stop_waits_neither_for_the_source_nor_for_workers() {
    let stop = Stop::default();
    let hang = Arc::new(Barrier::new(3));
    let (in_source, in_work, in_sink) = (hang.clone(), hang, stop.clone());
    let (told, out) = std::sync::mpsc::channel();
    let (_, end) = run(
        limits(),
        &stop,
        QUIET,
        move |feed| {
            for number in 0..4u32 {
                feed.work(number, 1).expect("not yet");
            }
            in_source.wait();
        },
        move |number: &mut u32| {
            if *number == 2 {
                in_work.wait();
            }
        },
        same,
        Call(move |event| {
            match event {
                Event::Item(number) => told.send(number).expect("the test waits"),
                // Quiet: all that can come has come.
                Event::Idle => in_sink.now(),
            }
            Ok::<_, ()>(())
        }),
    )
    .expect("threads");
    assert_eq!(end, End::Stopped);
    assert!(stop.pulled());
    assert_eq!(out.try_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn unordered_gives_the_same_items() {
    let out = numbers(Limits { ordered: false, ..limits() }, 500, |n| n % 3 == 0, |_| ());
    assert_eq!(out.len(), 500);
    assert_eq!(out.into_iter().collect::<HashSet<_>>(), (0..500).collect());
}

#[test]
fn a_heavy_item_passes_alone() {
    let out = numbers(Limits { bytes: 5, ..limits() }, 20, |_| false, |_| ());
    assert_eq!(out, (0..20).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_delays_any_limits_same_order(
        delays in prop::collection::vec(0..300u64, 0..60),
        ready in prop::collection::vec(any::<bool>(), 60),
        threads in 1..6usize, items in 1..10usize, bytes in 1..100usize,
    ) {
        let count = delays.len() as u32;
        let work = move |number: u32| std::thread::sleep(Duration::from_micros(delays[number as usize]));
        let out = numbers(Limits { threads: Threads::new(threads), items, bytes, ordered: true }, count, move |n| ready[n as usize], work);
        prop_assert_eq!(out, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn as_many_work_at_once_as_are_wanted_at_the_moment() {
    // Jobs tell how many of them are at work; the wanted number goes up, and down again.
    let threads = Threads::new(1);
    let (busy, most) = (AtomicUsize::new(0), std::sync::Mutex::new(HashMap::new()));
    let most = Arc::new(most);
    let (wanted, seen) = (threads.clone(), most.clone());
    let together = Barrier::new(3);
    let work = move |number: u32| {
        let now = busy.fetch_add(1, Ordering::SeqCst) + 1;
        let phase = number / 300;
        let mut seen = seen.lock().expect("no panic");
        let most = seen.entry(phase).or_insert(0);
        *most = now.max(*most);
        drop(seen);
        match number {
            299 => wanted.set(3),
            // Three have to be here at once, or nobody gets on.
            400..403 => drop(together.wait()),
            599 => wanted.set(1),
            _ => {}
        }
        busy.fetch_sub(1, Ordering::SeqCst);
    };
    assert_eq!(numbers(Limits { threads, ..limits() }, 900, |_| false, work), (0..900).collect::<Vec<_>>());
    let most = most.lock().expect("no panic");
    assert_eq!((most[&0], most[&1]), (1, 3));
}

#[test]
fn threads_are_started_when_none_is_idle() {
    let ids = Arc::new(std::sync::Mutex::new(HashSet::new()));
    let seen = ids.clone();
    let work = move |_| {
        seen.lock().expect("no panic").insert(thread::current().id());
    };
    // One job at a time: a second thread is only started where the first is not back in its place yet.
    numbers(Limits { threads: Threads::new(1000), items: 1, ..limits() }, 400, |_| false, work);
    let count = ids.lock().expect("no panic").len();
    assert!((1..100).contains(&count), "{count}");
}
