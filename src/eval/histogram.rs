//! How scores are spread.

use std::fmt::Write as _;

use super::cutoffs::Scores;

/// The number of bars of each class.
const BARS: usize = 20;
/// The longest bar on the terminal, in characters.
const LONGEST: usize = 24;

/// How many messages of each class have a score in each of 20 equal ranges; the last one holds 1 too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Messages of ham.
    pub ham: [usize; BARS],
    /// Messages of spam.
    pub spam: [usize; BARS],
}

impl Histogram {
    /// Counts the scores.
    pub fn new(scores: &Scores) -> Histogram {
        let count = |scores: &[f64]| {
            let mut bars = [0; BARS];
            for score in scores {
                // What is no number counts as 0; there is none.
                bars[((score * BARS as f64) as usize).min(BARS - 1)] += 1;
            }
            bars
        };
        Histogram { ham: count(scores.ham()), spam: count(scores.spam()) }
    }

    /// The highest bar.
    pub fn highest(&self) -> usize {
        self.ham.iter().chain(&self.spam).copied().max().unwrap_or(0)
    }

    /// As text for a terminal of 80 columns. Bars are logarithmic: what matters are the few messages between the two
    /// heaps.
    pub fn text(&self) -> String {
        let highest = self.highest();
        let mut text = format!("{:>5}  {:<LONGEST$} {:>7}  spam\n", "from", "ham", "");
        for (number, (&ham, &spam)) in self.ham.iter().zip(&self.spam).enumerate() {
            let [left, right] = [ham, spam].map(|count| "#".repeat(bar(count, highest)));
            let from = number as f64 / BARS as f64;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{from:>5.2}  {left:<LONGEST$} {ham:>7}  {right:<LONGEST$} {spam:>7}");
        }
        text
    }
}

fn bar(count: usize, highest: usize) -> usize {
    let log = |count: usize| (count as f64 + 1.0).ln();
    let length = if highest == 0 { 0.0 } else { LONGEST as f64 * log(count) / log(highest) };
    // One message is to be seen whatever the others are.
    (length.round() as usize).max(usize::from(count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_has_a_bar() {
        let histogram = Histogram::new(&Scores::new(vec![0.0, 0.0499, 0.05], vec![1.0, 0.95, 0.9499]));
        assert_eq!((histogram.ham[0], histogram.ham[1]), (2, 1));
        assert_eq!((histogram.spam[19], histogram.spam[18]), (2, 1));
        assert_eq!(histogram.highest(), 2);
    }

    #[test]
    fn bars_fit_and_the_smallest_is_seen() {
        let mut histogram = Histogram::new(&Scores::new(Vec::new(), Vec::new()));
        assert_eq!(histogram.text().matches('#').count(), 0);
        (histogram.ham[0], histogram.spam[3], histogram.spam[19]) = (5_000_000, 1, 5_000_000);
        let text = histogram.text();
        assert_eq!(text.lines().count(), 21);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains(&format!(" 0.00  {}", "#".repeat(LONGEST))), "{text}");
        assert_eq!(text.lines().nth(4).map(|line| line.matches('#').count()), Some(1), "{text}");
    }
}
