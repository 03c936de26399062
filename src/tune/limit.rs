//! What stood in the way of more throughput, told from what was measured.

use super::Row;

/// What the throughput was limited by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A server answers one connection at a time; calls beyond that wait.
    Connections {
        /// How many calls are at work at once, over all servers.
        most: usize,
    },
    /// The server refuses connections, or closes them without an answer, beyond a number of messages in flight.
    Refusal {
        /// The smallest number at which that happened.
        parallel: usize,
    },
    /// The server stays with its connections, and has a thread for fewer than there are.
    Backlog {
        /// The smallest number of messages in flight at which some had to wait for a thread.
        parallel: usize,
    },
    /// This process keeps this machine's CPUs busy.
    Client {
        /// How many of them.
        cores: f64,
    },
    /// The time that an answer takes: throughput still grows with the number of messages in flight.
    Latency {
        /// What half of the calls stay below, in milliseconds.
        p50: f64,
    },
    /// The server: with more messages in flight each waits longer, and no more are done.
    Server {
        /// Median latencies in milliseconds, with fewer and with more messages in flight.
        from: (usize, f64),
        /// See above.
        to: (usize, f64),
    },
    /// Calls take a part of the time only: reading, taking apart and writing mail is the rest.
    Mail,
    /// Nothing of all that can be told.
    Unknown,
}

/// This part of the CPUs is as much as can be had: other programs, and the kernel on behalf of them, take some.
const BUSY: f64 = 0.85;
/// Growth above this part of what is in proportion to the messages in flight counts as in proportion.
const PROPORTION: f64 = 0.5;
/// Calls that take less than this part of the time that there is are not what is waited for.
const CALLS: f64 = 0.6;

/// What limits the chosen row, on a machine with so many CPUs. The surest evidence counts first.
pub fn limit(rows: &[Row], chosen: &Row, cpus: usize) -> Limit {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.parallel);
    if let Some(row) = rows.iter().find(|row| row.most < row.parallel) {
        return Limit::Connections { most: row.most };
    }
    if let Some(row) = rows.iter().find(|row| row.failures > 0 || row.unclassified > 0) {
        return Limit::Refusal { parallel: row.parallel };
    }
    if let Some(row) = rows.iter().find(|row| row.neglected > 0) {
        return Limit::Backlog { parallel: row.parallel };
    }
    let fewer = rows.iter().copied().rfind(|row| row.parallel < chosen.parallel);
    let more = rows.last().copied().filter(|row| row.parallel > chosen.parallel);
    let busiest = more.map_or(chosen.cores, |more| more.cores.max(chosen.cores));
    if busiest >= BUSY * cpus as f64 {
        return Limit::Client { cores: busiest };
    }
    // Messages in flight = messages per second × seconds per call (Little), if all of them are in calls.
    let in_calls = chosen.rate * chosen.p50 / 1000.0;
    if in_calls < CALLS * chosen.parallel as f64 {
        return Limit::Mail;
    }
    let grows = |value: &dyn Fn(&Row) -> f64, from: &Row, to: &Row| {
        let proportion = to.parallel as f64 / from.parallel as f64 - 1.0;
        value(to) / value(from).max(f64::MIN_POSITIVE) - 1.0 >= PROPORTION * proportion
    };
    if let (None, Some(fewer)) = (more, fewer)
        && grows(&|row| row.relative, fewer, chosen)
    {
        return Limit::Latency { p50: chosen.p50 };
    }
    match more.map(|more| (chosen, more)).or(fewer.map(|fewer| (fewer, chosen))) {
        Some((from, to)) if grows(&|row| row.p50, from, to) => {
            Limit::Server { from: (from.parallel, from.p50), to: (to.parallel, to.p50) }
        }
        _ => Limit::Unknown,
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::Connections { most: 1 } => f.write_str("connections: the server answers one at a time"),
            Limit::Connections { .. } => f.write_str("connections: a server answers one at a time"),
            Limit::Refusal { parallel } => {
                write!(f, "connections: with -n {parallel} the server refused some, or closed them without an answer")
            }
            Limit::Backlog { parallel } => {
                write!(f, "connections: with -n {parallel} some wait until the server has a thread for them")
            }
            Limit::Client { cores } => write!(f, "the CPU here: hamsift keeps {cores:.1} CPUs busy"),
            Limit::Latency { p50 } => {
                write!(f, "latency: a call takes {p50:.2} ms, and throughput grows with N; a larger one may be better")
            }
            Limit::Server { from: (few, fast), to: (many, slow) } => write!(
                f,
                "the server: from -n {few} to -n {many} a call goes from {fast:.2} to {slow:.2} ms, so calls wait in line \
                 there (its CPU is full, or it does one at a time)"
            ),
            Limit::Mail => f.write_str("reading and writing mail: calls are under way for a part of the time only"),
            Limit::Unknown => f.write_str("nothing that can be told from these figures"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_for_tests as row;
    use super::*;

    /// A server that takes `wait` milliseconds per call and does at most `most` of them per second.
    fn served(parallel: usize, wait: f64, most: f64) -> Row {
        let rate = (parallel as f64 / wait * 1000.0).min(most);
        Row { p50: parallel as f64 / rate * 1000.0, ..row(parallel, rate) }
    }

    fn limit_of(rows: &[Row], chosen: usize) -> Limit {
        limit(rows, &rows[chosen], 2)
    }

    #[test]
    fn latency_that_does_not_grow_is_the_limit_while_throughput_does() {
        let rows: Vec<_> = [1, 2, 4, 8].map(|n| served(n, 20.0, 1e9)).into();
        assert_eq!(limit_of(&rows, 3), Limit::Latency { p50: 20.0 });
    }

    #[test]
    fn latency_in_proportion_is_a_line_at_the_server() {
        let rows: Vec<_> = [1, 2, 4, 8].map(|n| served(n, 2.0, 500.0)).into();
        assert_eq!(limit_of(&rows, 0), Limit::Server { from: (1, 2.0), to: (8, 16.0) });
        // Four at once, and the largest number is just what it can do.
        let rows: Vec<_> = [2, 4, 8].map(|n| served(n, 2.0, 2100.0)).into();
        assert_eq!(limit_of(&rows, 1), Limit::Server { from: (4, 2.0), to: (8, 8000.0 / 2100.0) });
        assert!(matches!(limit_of(&rows[..2], 1), Limit::Latency { .. }));
    }

    #[test]
    fn what_is_known_for_sure_goes_first() {
        let mut rows: Vec<_> = [1, 2, 4].map(|n| served(n, 2.0, 500.0)).into();
        rows[0].cores = 1.8;
        assert_eq!(limit_of(&rows, 0), Limit::Client { cores: 1.8 });
        rows[1].neglected = 1;
        assert_eq!(limit_of(&rows, 1), Limit::Backlog { parallel: rows[1].parallel });
        rows[2].failures = 3;
        assert_eq!(limit_of(&rows, 0), Limit::Refusal { parallel: 4 });
        (rows[1].most, rows[2].most) = (1, 1);
        assert_eq!(limit_of(&rows, 0), Limit::Connections { most: 1 });
    }

    #[test]
    fn calls_that_are_no_part_of_it_are_not_blamed() {
        let rows = [Row { p50: 0.1, ..row(1, 1000.0) }, Row { p50: 0.2, ..row(2, 1000.0) }];
        assert_eq!(limit_of(&rows, 0), Limit::Mail);
        assert_eq!(limit_of(&[Row { p50: 1.0, ..row(1, 1000.0) }], 0), Limit::Unknown);
    }
}
