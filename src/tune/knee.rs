//! Which number of messages in flight is enough.

use super::Row;

/// What may be lost against the best, as a part of it.
const LOSS: f64 = 0.03;
/// Differences that are not larger than noise count as none, but only up to this.
const NOISE: f64 = 0.15;

/// The row with the fewest messages in flight whose throughput is within 3 % of the best: each message more in flight
/// costs the server a connection, and here it buys nothing. Where the rounds differ among themselves too much to tell 3 %,
/// what is within their noise is as good as the best. A row with messages that got no verdict is not chosen if another
/// can be.
pub fn knee(rows: &[Row]) -> Option<&Row> {
    let is_good = |row: &&Row| row.unclassified == 0;
    let rows: Vec<&Row> = if rows.iter().any(|row| is_good(&row)) {
        rows.iter().filter(is_good).collect()
    } else {
        rows.iter().collect()
    };
    let best = rows.iter().max_by(|a, b| a.relative.total_cmp(&b.relative))?;
    let enough = |row: &&&Row| {
        // The difference of two that stray, strays by the sum.
        let loss = (row.noise + best.noise).clamp(LOSS, NOISE);
        row.relative >= best.relative * (1.0 - loss)
    };
    rows.iter().filter(enough).min_by_key(|row| row.parallel).copied()
}

#[cfg(test)]
mod tests {
    use super::super::row_for_tests as row;
    use super::*;

    fn chosen(rows: &[Row]) -> Option<usize> {
        knee(rows).map(|row| row.parallel)
    }

    #[test]
    fn the_fewest_within_three_percent() {
        let rows = [row(1, 500.0), row(2, 965.0), row(4, 971.0), row(8, 1000.0), row(16, 990.0)];
        assert_eq!(chosen(&rows), Some(4));
        assert_eq!(chosen(&rows[..2]), Some(2));
        assert_eq!(chosen(&[]), None);
        let backwards: Vec<_> = rows.iter().rev().cloned().collect();
        assert_eq!(chosen(&backwards), Some(4));
    }

    #[test]
    fn noise_hides_small_differences_but_no_large_ones() {
        let noisy = |parallel, rate| Row { noise: 0.2, ..row(parallel, rate) };
        let rows = [noisy(1, 840.0), noisy(2, 860.0), noisy(4, 1000.0)];
        assert_eq!(chosen(&rows), Some(2));
    }

    #[test]
    fn a_number_at_which_messages_go_without_verdict_is_none() {
        let bad = Row { unclassified: 1, ..row(8, 2000.0) };
        assert_eq!(chosen(&[row(1, 500.0), row(4, 990.0), bad.clone()]), Some(4));
        assert_eq!(chosen(&[bad]), Some(8));
    }
}
