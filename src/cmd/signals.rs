//! Signals that end a run in order.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
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

/// The signals that end a run in order. One that the process was started with ignored, as `nohup` and background jobs
/// of a plain shell are, stays so. Where nobody can be asked, none is.
fn ending() -> impl Iterator<Item = i32> {
    // In one call, for each delivery does this; it is never as long.
    let mut status = [0; 8192];
    let length = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status)).unwrap_or(0);
    let status = String::from_utf8_lossy(&status[..length]);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |&number| mask >> (number - 1) & 1 == 0)
}

/// Makes SIGXFSZ an error of the write that is beyond the limit, as a full disk is one. By itself it ends the process: a
/// message that is passed through would be lost, and temporary files would stay.
pub(super) fn survive_file_limits() {
    // Where there is no handler to be had, it is as it was.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Pulls `stop` on the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once.
pub(super) fn pull(stop: Stop) -> io::Result<Caught> {
    let caught = Caught::default();
    let seen = caught.clone();
    let mut signals = Signals::new(ending())?;
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

/// What stands between a signal and the end of the process: open, the signal ends it at once; closed, it is only told,
/// and whoever has closed it comes to an end of his own.
pub(super) struct Gate {
    open: Arc<AtomicBool>,
    caught: Arc<AtomicBool>,
}

impl Gate {
    /// An open gate: SIGINT, SIGTERM and SIGHUP end the process with this status.
    pub(super) fn new(exit: Exit) -> io::Result<Gate> {
        let gate = Gate { open: Arc::new(AtomicBool::new(true)), caught: Arc::default() };
        for number in ending() {
            flag::register_conditional_shutdown(number, exit.code().into(), gate.open.clone())?;
            flag::register(number, gate.caught.clone())?;
        }
        Ok(gate)
    }

    /// Closes it for good: it would be wrong to end with the status of a failure after the work is done.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Whether a signal has come.
    pub(super) fn caught(&self) -> bool {
        self.caught.load(Ordering::SeqCst)
    }
}
