//! Signals that end a run in order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::pipeline::Stop;

/// Signals that come so soon after the first one are the same.
const SAME: Duration = Duration::from_millis(500);

/// Which signal came, if any.
#[derive(Clone, Default)]
pub(super) struct Caught(Arc<AtomicI32>);

impl Caught {
    /// The exit status for it.
    pub(super) fn exit(&self) -> Option<Exit> {
        let number = self.0.load(Ordering::SeqCst);
        (number != 0).then_some(Exit::Signal(number))
    }
}

/// Whether the process was started with this signal ignored, as `nohup` and background jobs of a plain shell are: then it
/// stays so. Where nobody can be asked, it is not.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (number - 1) & 1 == 1
}

/// Pulls `stop` on the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once.
pub(super) fn pull(stop: Stop) -> io::Result<Caught> {
    let caught = Caught::default();
    let seen = caught.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&number| !is_ignored(number)))?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut first: Option<Instant> = None;
        for number in signals.forever() {
            // `timeout` and terminals send the same signal to the process and to its group.
            if first.is_some_and(|first| first.elapsed() < SAME) {
                continue;
            }
            first.get_or_insert_with(Instant::now);
            if seen.0.swap(number, Ordering::SeqCst) != 0 {
                std::process::exit(Exit::Signal(number).code().into());
            }
            stop.now();
        }
    })?;
    Ok(caught)
}
