//! Signals that end a run in order.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::pipeline::Stop;

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
        for number in signals.forever() {
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
    caught: Arc<AtomicBool>,
    busy: Arc<Mutex<()>>,
}

impl Gate {
    /// An open gate: SIGINT, SIGTERM and SIGHUP end the process with this status. SIGXFSZ becomes an error of the write
    /// that caused it.
    pub(super) fn new(exit: Exit) -> io::Result<Gate> {
        let gate = Gate { caught: Arc::default(), busy: Arc::default() };
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&number| !is_ignored(number)))?;
        let (caught, busy) = (gate.caught.clone(), gate.busy.clone());
        thread::Builder::new().name("signals".into()).spawn(move || {
            if signals.forever().next().is_some() {
                caught.store(true, Ordering::SeqCst);
                let _open = busy.lock().unwrap_or_else(PoisonError::into_inner);
                std::process::exit(exit.code().into());
            }
        })?;
        Ok(gate)
    }

    /// Closes it for good: it would be wrong to end with the status of a failure after the work is done.
    pub(super) fn close(&self) {
        std::mem::forget(self.busy.lock());
    }

    /// Whether a signal has come.
    pub(super) fn caught(&self) -> bool {
        self.caught.load(Ordering::SeqCst)
    }
}
