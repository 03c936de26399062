//! Carries out calls. Short ones are carried out where they came in, which saves two changes of threads for each; what
//! may take long goes to threads of its own. There are as many of either as were asked for, whatever the number of
//! connections, and a connection that waits holds none.

use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::sync::oneshot;

use super::Current;
use super::body::{BodyError, Held, unpack};
use super::fault::{self, Fault};
use super::methods::{Outcome, Service};
use super::metrics::Metrics;
use crate::classify::Classifier as _;
use crate::encode::{Encoder, base64_len};
use crate::report::Teller;
use crate::xmlrpc::{self, Limits, Value};

/// Answers above this size are packed for clients that take gzip; so does the original.
const PACK_ABOVE: usize = 1400;
/// How deep parameters may be and how many values there may be: those of all methods are simple, except some hundred
/// pairs for `formatclues`.
const SHAPE: (usize, usize) = (8, 1000);

/// A body up to this size is scored in less time than it takes to come.
const SHORT: usize = 128 << 10;

/// The tags around a message in an answer take less.
const ENVELOPE: usize = 256;

/// A call to be carried out.
pub(super) struct Job {
    pub(super) body: Bytes,
    /// The body is packed with gzip.
    pub(super) packed: bool,
    /// The client takes gzip.
    pub(super) takes_gzip: bool,
    /// The room that the body takes.
    pub(super) held: Held,
    /// Who asks.
    pub(super) peer: Arc<str>,
}

/// A call that somebody waits for.
pub(super) type Ordered = (Job, oneshot::Sender<Reply>);

/// What the client is to get.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    pub(super) packed: bool,
    pub(super) held: Held,
}

/// What all workers use.
pub(super) struct Kit {
    pub(super) service: Arc<Current>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) teller: Arc<Teller>,
    pub(super) max_body: usize,
}

/// Starts workers; they end when the sender is dropped.
pub(super) fn start(count: usize, kit: &Arc<Kit>) -> io::Result<Sender<Ordered>> {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 1..=count {
        let (receiver, kit) = (receiver.clone(), kit.clone());
        thread::Builder::new().name(format!("worker {number}")).spawn(move || work(&receiver, &kit))?;
    }
    Ok(sender)
}

fn work(jobs: &Mutex<Receiver<Ordered>>, kit: &Kit) {
    loop {
        // In a statement of its own: the lock is not held during the work.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((job, reply)) = job else { return };
        // Maybe nobody waits for it any more.
        if !reply.is_closed() {
            drop(reply.send(carry_out(kit, job)));
        }
    }
}

/// Whether a call is sure to be a short one. One that trains waits for the disk, and maybe for another process.
pub(super) fn is_short(kit: &Kit, job: &Job) -> bool {
    job.body.len() <= SHORT && !job.packed && !kit.service.get().may_train()
}

/// Carries out a call.
pub(super) fn carry_out(kit: &Kit, job: Job) -> Reply {
    let started = Instant::now();
    let service = kit.service.get();
    let Job { mut body, packed, takes_gzip, mut held, peer } = job;
    if packed {
        body = match unpack(&body, kit.max_body, &mut held) {
            Ok(body) => body.into(),
            Err(error) => {
                return Reply { status: status_of(error), body: Vec::new(), packed: false, held };
            }
        };
    }
    let mut outcome = Outcome::default();
    let called = catch_unwind(AssertUnwindSafe(|| call(&service, kit.max_body, &body, &mut outcome)));
    let result = called.unwrap_or_else(|_| Err(Fault::other("internal error in hamsift (please report this)")));
    drop(body);
    let mut answer = Encoder::default();
    if let Ok(Value::Base64(bytes)) = &result {
        answer.reserve(base64_len(bytes.len()) + ENVELOPE);
    }
    match &result {
        Ok(value) => xmlrpc::response(value, &mut answer),
        Err(fault) => xmlrpc::fault(fault::CODE, &fault.to_string(), &mut answer),
    }
    let mut answer = answer.into_vec();
    let packed = takes_gzip && answer.len() > PACK_ABOVE;
    if packed {
        answer = pack(&answer);
    }
    let took = started.elapsed();
    // Before the answer is out: whoever has it finds the call counted.
    kit.metrics.call(&outcome, result.is_err(), took);
    if kit.teller.is_verbose() {
        let method = outcome.method.and_then(|number| super::methods::METHODS.get(number)).map_or("?", |m| m.name);
        let end = match (&result, outcome.class) {
            (Err(fault), _) => fault.to_string(),
            (Ok(_), Some(class)) => class.to_string(),
            (Ok(_), None) => "done".to_owned(),
        };
        let millis = took.as_secs_f64() * 1000.0;
        kit.teller.detail(&format!("{peer} {method} {} bytes, {end}, {millis:.1} ms", outcome.bytes));
    }
    for note in service.local().notes() {
        kit.teller.note(&note);
    }
    Reply { status: StatusCode::OK, body: answer, packed, held }
}

fn call(service: &Service, max_body: usize, body: &[u8], outcome: &mut Outcome) -> Result<Value, Fault> {
    let limits = Limits { depth: SHAPE.0, values: SHAPE.1, bytes: max_body };
    let (method, params) = xmlrpc::decode_call(body, &limits)?;
    service.call(&method, params, outcome)
}

/// The HTTP status for a body that cannot be read.
pub(super) fn status_of(error: BodyError) -> StatusCode {
    match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::Broken => StatusCode::BAD_REQUEST,
    }
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
