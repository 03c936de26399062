//! A run whose output is thrown away: what `tune` measures.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};

use super::item::Worker;
use super::read::{Reading, Stopped};
use super::select::Selection;
use super::write::{Destination, Sink};
use super::{classifier, input_error, stream};
use crate::classify::Classifier;
use crate::cli::ClassifierArgs;
use crate::exit::{Exit, Failure};
use crate::input::Source;
use crate::mbox::{FromRule, Rules};
use crate::output::Output;
use crate::pipeline::{End, Stop, Threads};
use crate::report::Teller;
use crate::tune::Run;

/// Where the output goes: unlike a sink that drops what it gets, this has the messages put together and written.
const NOWHERE: &str = "/dev/null";

/// Reads each of the inputs `times` times and has their messages classified, `parallel` at once.
///
/// # Errors
/// If an input cannot be read or is no mailbox.
pub(in crate::cmd) fn measure(
    args: &ClassifierArgs,
    inputs: &[Source],
    times: usize,
    parallel: usize,
    classifier: &Arc<dyn Classifier>,
    teller: &Arc<Teller>,
) -> anyhow::Result<Run> {
    let inputs: Vec<_> = std::iter::repeat_n(inputs, times).flatten().cloned().collect();
    let names = inputs.iter().map(Source::name).collect();
    let output = Output::file(Path::new(NOWHERE)).context(NOWHERE)?;
    let sink = Sink::new(Destination::one(output), names, teller.clone(), classifier.clone());
    let worker = Worker { annotate: classifier::annotate(args), classifier: classifier.clone(), wants_id: false };
    let reading = Reading {
        inputs,
        file: 0,
        rules: Rules { from_rule: FromRule::Auto, anywhere: false, ignore_content_length: false, min_fields: None },
        max_size: args.max_size,
        selection: Selection::new(0, None, None),
        batches: true,
        spares: sink.spares.clone(),
        worker: Arc::new(worker),
    };
    let before = classifier.strain();
    let (cpu, clock) = (cpu_time()?, Instant::now());
    let (sink, end) = stream(reading, sink, &Threads::new(parallel), &Stop::default())?;
    let (took, cpu) = (clock.elapsed(), cpu_time()?.saturating_sub(cpu));
    match end {
        End::Complete(Ok(())) => {}
        End::Complete(Err(Stopped::Failed(error))) => return Err(error),
        _ => return Err(Failure::error(Exit::Io, "internal error in hamsift while measuring (please report this)")),
    }
    let strain = classifier.strain();
    Ok(Run {
        took,
        cpu,
        messages: sink.tally.messages(),
        classified: sink.tally.classified(),
        unclassified: sink.tally.unclassified,
        latency: sink.tally.latency,
        most: strain.most,
        failures: strain.failures - before.failures,
        neglected: strain.neglected - before.neglected,
    })
}

/// Opens each input once, so that a missing one is known before anything is measured.
pub(in crate::cmd) fn check(inputs: &[Source]) -> anyhow::Result<()> {
    inputs.iter().try_for_each(|source| source.open().map(drop).map_err(|error| input_error(&error)))
}

/// What all threads of this process have used so far.
fn cpu_time() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let duration = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs()) + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}
