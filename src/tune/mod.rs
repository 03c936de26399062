//! How many messages to have in flight: what was measured, which number is enough, and what stood in the way of more.
//!
//! Everything here is pure: runs come in, a table, a picture and a recommendation come out.

mod climb;
mod knee;
mod limit;
mod picture;
mod table;

use std::time::Duration;

use crate::report::Latency;

pub use climb::{Climb, News, Stage};
pub use knee::knee;
pub use limit::{Limit, limit};
pub use picture::picture;
pub use table::table;

/// One run over the mail with a number of messages in flight.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// How long it took.
    pub took: Duration,
    /// CPU time of this process meanwhile.
    pub cpu: Duration,
    /// Messages in all.
    pub messages: u64,
    /// Messages with a verdict.
    pub classified: u64,
    /// Messages that should have got one and have none.
    pub unclassified: u64,
    /// How long calls took.
    pub latency: Latency,
    /// Calls at once that the classifier has any use for, as far as it knows.
    pub most: usize,
    /// Attempts that brought no answer.
    pub failures: u64,
    /// Calls that a server left in its backlog until another connection was closed.
    pub neglected: usize,
}

impl Run {
    /// Messages per second. Those that should have got a verdict and have none do not count: nothing is as quick as a
    /// server that is not there.
    pub fn rate(&self) -> f64 {
        self.messages.saturating_sub(self.unclassified) as f64 / self.took.max(Duration::from_micros(1)).as_secs_f64()
    }
}

/// What the runs with one number of messages in flight come to: medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Messages in flight.
    pub parallel: usize,
    /// Messages per second.
    pub rate: f64,
    /// Messages per second as a part of the average of all rows in the same round: what a busy machine does to a whole
    /// round is not in it.
    pub relative: f64,
    /// The standard error of that, as a part of it: what its straying from round to round leaves unsure.
    pub noise: f64,
    /// Latencies that half of the calls, and 99 of 100, stay below, in milliseconds.
    pub p50: f64,
    /// See above.
    pub p99: f64,
    /// CPU time of this process per message, in milliseconds.
    pub cpu: f64,
    /// CPUs that this process kept busy.
    pub cores: f64,
    /// Only so many calls were at work at once, whatever was asked for.
    pub most: usize,
    /// Attempts that brought no answer.
    pub failures: u64,
    /// Calls that a server left in its backlog until another connection was closed.
    pub neglected: usize,
    /// Messages without a verdict.
    pub unclassified: u64,
}

/// From the median distance to the median, to the standard error of the median of a single value (normal distribution):
/// 1.4826 times the square root of π/2.
const ERROR: f64 = 1.858;

/// A row for each number: the runs of `rounds[r][i]` are those with `numbers[i]`.
pub fn rows(numbers: &[usize], rounds: &[Vec<Run>]) -> Vec<Row> {
    let averages: Vec<f64> =
        rounds.iter().map(|runs| runs.iter().map(Run::rate).sum::<f64>() / runs.len() as f64).collect();
    let row = |(number, &parallel): (usize, &usize)| {
        let runs: Vec<&Run> = rounds.iter().map(|runs| &runs[number]).collect();
        let of = |value: &dyn Fn(&Run) -> f64| median(runs.iter().map(|run| value(run)));
        let relatives = runs.iter().zip(&averages).map(|(run, average)| run.rate() / average.max(f64::MIN_POSITIVE));
        let relative = median(relatives.clone());
        let strays = relatives.map(|value| (value / relative.max(f64::MIN_POSITIVE) - 1.0).abs());
        Row {
            parallel,
            rate: of(&Run::rate),
            relative,
            noise: ERROR * median(strays) / (runs.len() as f64).sqrt(),
            p50: of(&|run| run.latency.quantile(0.5).unwrap_or(0.0)),
            p99: of(&|run| run.latency.quantile(0.99).unwrap_or(0.0)),
            cpu: of(&|run| run.cpu.as_secs_f64() * 1000.0 / run.messages.max(1) as f64),
            cores: of(&|run| run.cpu.as_secs_f64() / run.took.max(Duration::from_micros(1)).as_secs_f64()),
            most: runs.iter().map(|run| run.most).min().unwrap_or(usize::MAX),
            failures: runs.iter().map(|run| run.failures).sum(),
            neglected: runs.iter().map(|run| run.neglected).sum(),
            unclassified: runs.iter().map(|run| run.unclassified).sum(),
        }
    };
    numbers.iter().enumerate().map(row).collect()
}

/// The middle one, or the average of the two in the middle; 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.len() / 2;
    match (values.get(upper), values.get(upper.wrapping_sub(1))) {
        (Some(upper), Some(lower)) if values.len().is_multiple_of(2) => (upper + lower) / 2.0,
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

/// A row with nothing but a throughput, and calls that take all the time there is.
#[cfg(test)]
fn row_for_tests(parallel: usize, rate: f64) -> Row {
    Row {
        parallel,
        rate,
        relative: rate / 1000.0,
        noise: 0.0,
        p50: parallel as f64 / rate * 1000.0,
        p99: 0.0,
        cpu: 0.0,
        cores: 0.0,
        most: usize::MAX,
        failures: 0,
        neglected: 0,
        unclassified: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 1000 messages.
    fn run(millis: u64, call: u64) -> Run {
        let mut latency = Latency::default();
        (0..1000).for_each(|_| latency.add(Duration::from_millis(call)));
        let (took, cpu) = (Duration::from_millis(millis), Duration::from_millis(millis / 2));
        Run { took, cpu, messages: 1000, classified: 1000, latency, most: usize::MAX, ..Run::default() }
    }

    #[test]
    fn a_round_on_a_busy_machine_does_not_count() {
        // The second round takes three times as long, for all alike.
        let rounds = [(1000, 500), (3000, 1500), (1000, 500)];
        let rounds: Vec<_> = rounds.iter().map(|(one, two)| vec![run(*one, 1), run(*two, 2)]).collect();
        let rows = rows(&[1, 2], &rounds);
        assert_eq!((rows[0].rate, rows[1].rate), (1000.0, 2000.0));
        assert!((rows[1].relative / rows[0].relative - 2.0).abs() < 1e-9, "{rows:?}");
        assert!(rows.iter().all(|row| row.noise < 1e-9), "{rows:?}");
        assert!((rows[1].cpu - 0.25).abs() < 1e-9 && (rows[1].cores - 0.5).abs() < 1e-9, "{rows:?}");
        assert!((rows[1].p50 - 2.0).abs() < 0.05, "{rows:?}");
    }

    #[test]
    fn a_server_that_is_gone_is_not_a_quick_one() {
        let gone = |millis| Run { classified: 0, unclassified: 1000, latency: Latency::default(), ..run(millis, 1) };
        let rows = rows(&[1, 2, 4], &[vec![run(1000, 1), gone(1), gone(2)], vec![gone(1), gone(1), gone(1)]]);
        assert_eq!((rows[1].rate, rows[1].relative), (0.0, 0.0));
        assert!(rows[0].rate > 0.0 && rows.iter().all(|row| !row.relative.is_nan() && !row.noise.is_nan()), "{rows:?}");
        assert_eq!(knee(&rows).map(|row| row.parallel), Some(1));
        assert!(!table(&rows, 1000).contains("NaN") && !picture(&rows, 1).contains("NaN"));
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median([].into_iter()), 0.0);
        assert_eq!(median([7.0].into_iter()), 7.0);
    }
}
