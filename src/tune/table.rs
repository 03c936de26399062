//! The rows as text for a terminal of 80 columns.

use std::fmt::Write as _;

use super::Row;

/// The longest bar, in characters.
const LONGEST: usize = 50;

/// A table as that of 2004, in which the first row is 100 % of the time, and bars of the throughput. `messages` are those
/// of one pass over the mail, whose time is told.
pub fn table(rows: &[Row], messages: u64) -> String {
    let mut text = String::new();
    let Some(first) = rows.first() else { return text };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:>4} {:>11} {:>12} {:>13} {:>9} {:>9} {:>15}",
        "N", "wall time", "messages/s", "of the first", "p50 ms", "p99 ms", "CPU ms/message"
    );
    for row in rows {
        let seconds = messages as f64 / row.rate;
        let percent = 100.0 * first.rate / row.rate;
        let Row { parallel, rate, p50, p99, cpu, .. } = row;
        let _ = writeln!(
            text,
            "{parallel:>4} {seconds:>9.3} s {rate:>12.1} {percent:>11.1} % {p50:>9.2} {p99:>9.2} {cpu:>15.3}"
        );
    }
    let highest = rows.iter().map(|row| row.rate).fold(0.0, f64::max);
    let _ = writeln!(text, "\n{:>4}  messages/s", "N");
    for Row { parallel, rate, .. } in rows {
        let bar = "#".repeat((LONGEST as f64 * rate / highest).round() as usize);
        let _ = writeln!(text, "{parallel:>4}  {bar:<LONGEST$} {rate:>12.1}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::row_for_tests as row;
    use super::*;

    #[test]
    fn the_first_row_is_all_of_it_and_lines_fit() {
        let text = table(&[row(1, 100.0), row(256, 400.0)], 1000);
        let lines: Vec<_> = text.lines().collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[1])[..6], ["1", "10.000", "s", "100.0", "100.0", "%"]);
        assert_eq!(words(lines[2])[..6], ["256", "2.500", "s", "400.0", "25.0", "%"]);
        assert_eq!(lines[6].matches('#').count(), 4 * lines[5].matches('#').count() - 2, "{text}");
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert_eq!(table(&[], 0), "");
    }
}
