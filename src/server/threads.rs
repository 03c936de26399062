//! The threads that speak HTTP. A connection stays with the thread it was given to, so that nothing has to be passed
//! between threads for a call: waking another one costs more than most of what there is to do besides scoring.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// After so many short calls at the latest, a thread looks who else wants something.
const CALLS_BETWEEN: u32 = 8;

/// Threads with a runtime each. They end when this is dropped; nobody waits for one that is still at work on a call.
#[derive(Debug)]
pub(super) struct Threads(Vec<(Handle, oneshot::Sender<()>)>);

impl Threads {
    /// Starts so many.
    pub(super) fn start(count: usize) -> io::Result<Threads> {
        let start = |number| {
            let runtime = Builder::new_current_thread().event_interval(CALLS_BETWEEN).enable_all().build()?;
            let handle = runtime.handle().clone();
            let (stop, stopped) = oneshot::channel::<()>();
            let run = move || drop(runtime.block_on(stopped));
            thread::Builder::new().name(format!("http {number}")).spawn(run)?;
            Ok((handle, stop))
        };
        (1..=count.max(1)).map(start).collect::<io::Result<_>>().map(Threads)
    }

    /// Has the task carried out by the thread that has the fewest.
    pub(super) fn give(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handles = self.0.iter().map(|(handle, _)| handle);
        if let Some(handle) = handles.min_by_key(|handle| handle.metrics().num_alive_tasks()) {
            handle.spawn(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_are_spread_and_dropped_at_the_end() {
        struct Held(mpsc::Sender<thread::ThreadId>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.0.send(thread::current().id());
            }
        }
        let threads = Threads::start(3).expect("started");
        let (began, beginnings) = mpsc::channel();
        let (ended, ends) = mpsc::channel();
        for _ in 0..6 {
            let (began, held) = (began.clone(), Held(ended.clone()));
            threads.give(async move {
                let _held = held;
                let _ = began.send(thread::current().id());
                std::future::pending::<()>().await;
            });
        }
        drop((began, ended));
        let ids: Vec<_> = beginnings.iter().take(6).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3, "{ids:?}");
        assert!(ids.iter().all(|id| ids.iter().filter(|other| *other == id).count() == 2), "{ids:?}");
        drop(threads);
        assert_eq!(ends.iter().count(), 6);
    }
}
