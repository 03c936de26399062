//! What is counted, and how Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::methods::{METHODS, Outcome, Service};
use crate::verdict::Class;

/// Upper ends of the latency classes, in microseconds.
const BUCKETS: [u64; 12] =
    [250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 10_000_000];

/// Counters. A client cannot make them grow in number: methods that do not exist are one.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    calls: [AtomicU64; METHODS.len()],
    unknown: AtomicU64,
    faults: AtomicU64,
    classes: [AtomicU64; 3],
    bytes: AtomicU64,
    /// By latency class, then those above all.
    latency: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
    statuses: Mutex<BTreeMap<u16, u64>>,
    /// Connections so far and now.
    pub(super) accepted: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) timed_out: AtomicU64,
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Metrics {
    pub(super) fn call(&self, outcome: &Outcome, is_fault: bool, took: Duration) {
        match outcome.method.and_then(|number| self.calls.get(number)) {
            Some(counter) => add(counter, 1),
            None => add(&self.unknown, 1),
        }
        add(&self.faults, u64::from(is_fault));
        add(&self.bytes, outcome.bytes as u64);
        if let Some(class) = outcome.class
            && let Some(number) = Class::ALL.iter().position(|&one| one == class)
        {
            add(&self.classes[number], 1);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(&self.latency[BUCKETS.partition_point(|&end| end < micros)], 1);
        add(&self.micros, micros);
    }

    pub(super) fn status(&self, status: u16) {
        *self.statuses.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }

    /// All of it, in the text format of Prometheus. `held` is what the bodies of requests take, bytes.
    pub(super) fn text(&self, service: &Service, held: u64) -> String {
        let mut out = Page(String::with_capacity(4096));
        out.head("calls_total", "counter", "XML-RPC calls, by method");
        for (method, count) in METHODS.iter().zip(&self.calls) {
            out.line("calls_total", &format!("method=\"{}\"", method.name), get(count));
        }
        out.line("calls_total", "method=\"\"", get(&self.unknown));
        out.one("faults_total", "counter", "Calls answered with a fault", get(&self.faults));
        out.head("messages_total", "counter", "Messages classified, by class");
        for (class, count) in Class::ALL.iter().zip(&self.classes) {
            out.line("messages_total", &format!("class=\"{class}\""), get(count));
        }
        out.one("message_bytes_total", "counter", "Bytes of messages that came with calls", get(&self.bytes));
        out.head("call_seconds", "histogram", "Time from the end of a request to its answer");
        let mut below = 0;
        for (end, count) in BUCKETS.iter().zip(&self.latency) {
            below += get(count);
            out.line("call_seconds_bucket", &format!("le=\"{}\"", seconds(*end)), below);
        }
        let all = below + get(&self.latency[BUCKETS.len()]);
        out.line("call_seconds_bucket", "le=\"+Inf\"", all);
        out.line("call_seconds_sum", "", seconds(get(&self.micros)));
        out.line("call_seconds_count", "", all);
        out.head("http_responses_total", "counter", "HTTP answers, by status");
        for (status, count) in &*self.statuses.lock().unwrap_or_else(PoisonError::into_inner) {
            out.line("http_responses_total", &format!("status=\"{status}\""), *count);
        }
        out.one("connections", "gauge", "Open connections", get(&self.open));
        out.one("connections_total", "counter", "Connections accepted", get(&self.accepted));
        out.one("connections_timed_out_total", "counter", "Connections closed for being slow", get(&self.timed_out));
        out.one("body_bytes", "gauge", "Memory that the bodies of requests take, up to a limit", held);
        if let Some((totals, words)) = service.local().size() {
            out.head("trained_messages", "gauge", "Messages in the token database, by class");
            out.line("trained_messages", "class=\"ham\"", u64::from(totals.nham));
            out.line("trained_messages", "class=\"spam\"", u64::from(totals.nspam));
            out.one("words", "gauge", "Words in the token database", words as u64);
        }
        out.0
    }
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A page of metrics being written. Writing to a string cannot fail.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP hamsift_{name} {help}.\n# TYPE hamsift_{name} {kind}\n");
    }

    fn line(&mut self, name: &str, label: &str, value: impl std::fmt::Display) {
        let _ = match label {
            "" => writeln!(self.0, "hamsift_{name} {value}"),
            label => writeln!(self.0, "hamsift_{name}{{{label}}} {value}"),
        };
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::local::{Local, LocalConfig};
    use crate::engine::Memory;

    #[test]
    fn the_page_adds_up() {
        let metrics = Metrics::default();
        let outcome = Outcome { method: Some(0), bytes: 10, class: Some(Class::Spam) };
        metrics.call(&outcome, false, Duration::from_micros(250));
        metrics.call(&Outcome::default(), true, Duration::from_secs(60));
        metrics.status(200);
        let service = Service::new(Local::trained(Memory::new(), LocalConfig::default()), None);
        let page = metrics.text(&service, 17);
        for line in [
            "hamsift_calls_total{method=\"filter\"} 1",
            "hamsift_calls_total{method=\"\"} 1",
            "hamsift_faults_total 1",
            "hamsift_messages_total{class=\"spam\"} 1",
            "hamsift_call_seconds_bucket{le=\"0.000250\"} 1",
            "hamsift_call_seconds_bucket{le=\"10.000000\"} 1",
            "hamsift_call_seconds_bucket{le=\"+Inf\"} 2",
            "hamsift_call_seconds_sum 60.000250",
            "hamsift_http_responses_total{status=\"200\"} 1",
            "hamsift_body_bytes 17",
            "hamsift_words 0",
        ] {
            assert!(page.lines().any(|have| have == line), "{line} is not in\n{page}");
        }
    }
}
