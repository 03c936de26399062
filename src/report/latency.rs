//! Latency percentiles in constant memory.

use std::time::Duration;

/// Steps per doubling: percentiles are right to about 1 %.
const STEPS: f64 = 64.0;
/// Doublings from one microsecond: up to some 36 years.
const DOUBLINGS: usize = 50;

/// A histogram of latencies with logarithmic buckets.
#[derive(Clone, Debug)]
pub struct Latency {
    buckets: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Default for Latency {
    fn default() -> Self {
        Latency { buckets: vec![0; STEPS as usize * DOUBLINGS], count: 0, max: Duration::ZERO }
    }
}

impl Latency {
    /// Counts one.
    pub fn add(&mut self, took: Duration) {
        let micros = (took.as_nanos() as f64 / 1000.0).max(1.0);
        let bucket = (micros.log2() * STEPS) as usize;
        let last = self.buckets.len() - 1;
        self.buckets[bucket.min(last)] += 1;
        self.count += 1;
        self.max = self.max.max(took);
    }

    /// The latency that this share (0 to 1) of all stay at or below, in milliseconds; `None` where there is none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let upper = ((bucket + 1) as f64 / STEPS).exp2() / 1000.0;
        Some(upper.min(self.max()?))
    }

    /// The greatest, in milliseconds.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max.as_secs_f64() * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_percent() {
        let mut latency = Latency::default();
        assert_eq!((latency.quantile(0.5), latency.max()), (None, None));
        (1..=1000u64).for_each(|millis| latency.add(Duration::from_millis(millis)));
        for (share, want) in [(0.0, 1.0), (0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = latency.quantile(share).expect("not empty");
            assert!((got / want - 1.0f64).abs() < 0.02, "{share}: {got}");
        }
        assert_eq!(latency.max(), Some(1000.0));
    }

    #[test]
    fn extremes_fit() {
        let mut latency = Latency::default();
        latency.add(Duration::ZERO);
        latency.add(Duration::MAX);
        assert_eq!(latency.max(), Some(Duration::MAX.as_secs_f64() * 1000.0));
    }
}
