//! Verdicts from XML-RPC servers such as `sb_xmlrpcserver.py`: which server, which method, how often, and when to stop
//! trying.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::classify::health::{Health, Outlook};
use crate::classify::method::{Choice, Method, Turn};
use crate::classify::{Answer, Classifier, Refusal, ServerUsage, Strain, Usage, answer};
use crate::encode::Encoder;
use crate::http::{self, Endpoint, Pool, PoolConfig};
use crate::verdict::{Cutoffs, Verdict};
use crate::xmlrpc::{self, Response, Value};

/// A server that has failed gets no more of a message's time than this, while another one is well.
const PROBE: Duration = Duration::from_secs(2);
/// Pause before the first repeat of a call; each further one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// An answer holds the message once more, in base64 and perhaps re-encoded, and some evidence.
const ANSWER_ROOM: usize = 1 << 20;

/// How servers are asked.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Whom to ask; at least one.
    pub servers: Vec<Endpoint>,
    /// Calls at a time, and so connections per server.
    pub parallel: usize,
    /// One message's whole call, repeats and pauses included.
    pub timeout: Duration,
    /// One attempt to connect.
    pub connect_timeout: Duration,
    /// For `https`: trust these CA certificates (a PEM file) and no others.
    pub ca_file: Option<PathBuf>,
    /// How often a call is repeated that failed before an answer began.
    pub retries: u32,
    /// `None`: `filter`, unless it turns out to be broken.
    pub method: Option<Method>,
    /// What a bare score means.
    pub cutoffs: Cutoffs,
    /// What the field with the verdict may be called besides SpamBayes's own name.
    pub header: String,
    /// Keep the message as the server gives it back.
    pub keep_message: bool,
}

struct Server {
    name: Arc<str>,
    path: String,
    pool: Pool,
    health: Health,
    choice: Choice,
    classified: AtomicU64,
    failures: AtomicU64,
}

/// Asks XML-RPC servers.
pub struct Remote {
    config: RemoteConfig,
    servers: Vec<Server>,
    retries: AtomicU64,
    /// Attempts that brought no answer.
    unanswered: AtomicU64,
    notes: Mutex<Vec<String>>,
}

/// How a call ended that brought no verdict.
enum Trouble {
    /// No answer began: it may be tried again, here or elsewhere.
    NoAnswer(String),
    /// The server says that it could not do it.
    Fault(String),
    /// It is not set up to take calls, whatever the message: another server may be.
    NotServing(&'static str, String),
    /// There is an answer, and it is of no use.
    Useless(&'static str, String),
}

impl Remote {
    /// Prepares to ask; opens no connection.
    pub fn new(config: RemoteConfig) -> Result<Remote, http::SetupError> {
        let pool = PoolConfig {
            connections: config.parallel,
            connect_timeout: config.connect_timeout,
            ca_file: config.ca_file.clone(),
        };
        let server = |endpoint: &Endpoint| {
            Ok(Server {
                name: endpoint.to_string().into(),
                path: endpoint.path().to_owned(),
                pool: Pool::new(endpoint.clone(), &pool)?,
                health: Health::default(),
                choice: Choice::new(config.method),
                classified: AtomicU64::new(0),
                failures: AtomicU64::new(0),
            })
        };
        let servers = config.servers.iter().map(server).collect::<Result<_, _>>()?;
        Ok(Remote {
            config,
            servers,
            retries: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            notes: Mutex::default(),
        })
    }

    /// Has something told with the next notes.
    pub fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// The server to ask next, not one of `tried`: the one with the fewest calls in flight (then: in all) of those that
    /// are expected to answer, else one of which nobody knows. `None` where all others are gone.
    fn choose(&self, tried: &[bool]) -> Option<usize> {
        let now = Instant::now();
        let mut by_load: Vec<_> = (0..self.servers.len()).filter(|&number| !tried[number]).collect();
        by_load.sort_by_cached_key(|&number| {
            let server = &self.servers[number];
            (
                server.pool.in_flight(),
                server.classified.load(Ordering::Relaxed) + server.failures.load(Ordering::Relaxed),
            )
        });
        let mut doubtful = None;
        for number in by_load {
            match self.servers[number].health.outlook(now) {
                Outlook::Good => return Some(number),
                Outlook::Doubtful => doubtful = doubtful.or(Some(number)),
                Outlook::Gone => {}
            }
        }
        doubtful
    }

    /// How much of the time `left` for a message the server `number` may use: one that never answers must leave some for
    /// another. It gets the more, the more is known in its favour.
    fn share(&self, number: usize, tried: &[bool], left: Duration) -> Duration {
        let health = &self.servers[number].health;
        if !self.servers.iter().zip(tried).any(|(other, tried)| !tried && other.health.is_well()) {
            left
        } else if health.is_proven() {
            left * 3 / 4
        } else if health.is_well() {
            left / 2
        } else {
            PROBE.min(left / 2)
        }
    }

    /// Asks in rounds, each server once per round, until there is an answer or the tries or the time are used up.
    /// `asked` is left at the server that was asked last.
    fn ask(&self, message: &[u8], asked: &mut Option<usize>) -> Result<Answer, Trouble> {
        let deadline = Instant::now() + self.config.timeout;
        let mut why = "no server has answered lately; waiting for the next probe".to_owned();
        let mut tried = vec![false; self.servers.len()];
        for round in 0..=self.config.retries {
            if round > 0 {
                let pause = FIRST_PAUSE * 4u32.saturating_pow(round - 1);
                if Instant::now() + pause >= deadline {
                    break;
                }
                thread::sleep(pause);
                self.retries.fetch_add(1, Ordering::Relaxed);
                tried.fill(false);
            }
            let (mut not_serving, mut unanswered) = (None, false);
            // What is asked without any time left says nothing of the server.
            while Instant::now() < deadline
                && let Some(number) = self.choose(&tried)
            {
                *asked = Some(number);
                tried[number] = true;
                let (server, began) = (&self.servers[number], Instant::now());
                let until = began + self.share(number, &tried, deadline.saturating_duration_since(began));
                match self.call(server, message, until) {
                    Err(Trouble::NoAnswer(text)) => {
                        server.failures.fetch_add(1, Ordering::Relaxed);
                        self.unanswered.fetch_add(1, Ordering::Relaxed);
                        server.health.failed(began, Instant::now());
                        (why, unanswered) = (text, true);
                    }
                    Err(Trouble::NotServing(kind, text)) if self.servers.len() > 1 => {
                        if server.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                            self.note(format!("{}: {text}; asking the others", server.name));
                        }
                        // Its answers are quick: as the least busy it would get most of the messages.
                        server.health.failed(began, Instant::now());
                        not_serving = Some(Trouble::NotServing(kind, text));
                    }
                    result => {
                        server.health.answered(Instant::now());
                        let count = if result.is_ok() { &server.classified } else { &server.failures };
                        count.fetch_add(1, Ordering::Relaxed);
                        return result;
                    }
                }
            }
            if let Some(trouble) = not_serving.filter(|_| !unanswered) {
                return Err(trouble);
            }
            if !tried.contains(&true) {
                break;
            }
        }
        let tried = self.servers.iter().zip(&tried).filter(|(_, tried)| **tried);
        tried.for_each(|(server, _)| server.health.given_up());
        Err(Trouble::NoAnswer(why))
    }

    fn call(&self, server: &Server, message: &[u8], deadline: Instant) -> Result<Answer, Trouble> {
        let asking = match server.choice.turn(deadline) {
            Turn::Call(method) => return self.call_method(server, method, message, deadline),
            Turn::TooLate => return Err(Trouble::NoAnswer("no answer in time".to_owned())),
            Turn::FindOut(asking) => asking,
        };
        match self.call_method(server, Method::Filter, message, deadline) {
            Ok(answer) => {
                asking.found(Method::Filter);
                Ok(answer)
            }
            Err(Trouble::Fault(text)) => {
                let answer = self.call_method(server, Method::Score, message, deadline);
                let answer = answer.map_err(|_| Trouble::Fault(text.clone()))?;
                asking.found(Method::Score);
                let note = format!("{}: `filter` ends in {text}; going on with `score`", server.name);
                self.note(note);
                Ok(answer)
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn call_method(
        &self,
        server: &Server,
        method: Method,
        message: &[u8],
        deadline: Instant,
    ) -> Result<Answer, Trouble> {
        let started = Instant::now();
        let limit = ANSWER_ROOM + 2 * message.len();
        let reply = REQUEST.with_borrow_mut(|request| {
            xmlrpc::call_message(method.name(), message, request);
            let reply = server.pool.post(request.as_slice(), limit, deadline);
            if request.capacity() > KEPT_REQUEST {
                *request = Encoder::default();
            }
            reply
        });
        let reply = reply.map_err(|error| match error.answer_began() {
            false => Trouble::NoAnswer(error.to_string()),
            true => Trouble::Useless("HTTP", error.to_string()),
        })?;
        let value = value_of(&reply, &server.path, limit)?;
        let useless = |text: &str| Trouble::Useless("answer", text.to_owned());
        let mut answer = Answer {
            verdict: Verdict::from_score(0.5, &self.config.cutoffs),
            fields: Vec::new(),
            message: None,
            method: method.name(),
            server: Some(server.name.clone()),
            took: Duration::ZERO,
        };
        match method {
            Method::Score => {
                let score = value.as_score().filter(|score| (0.0..=1.0).contains(score));
                let score = score.ok_or_else(|| useless("the answer is no score from 0 to 1"))?;
                answer.verdict = Verdict::from_score(score, &self.config.cutoffs);
            }
            Method::Filter => {
                let theirs = value.into_message().filter(|message| !message.is_empty());
                let theirs = theirs.ok_or_else(|| useless("the answer is no message"))?;
                (answer.verdict, answer.fields) = answer::take(&theirs, &self.config.header)
                    .ok_or_else(|| useless("the message in the answer has no verdict"))?;
                answer.message = self.config.keep_message.then_some(theirs);
            }
        }
        answer.took = started.elapsed();
        Ok(answer)
    }
}

/// Request buffers above this are given back after use, bytes.
const KEPT_REQUEST: usize = 4 << 20;

thread_local! {
    static REQUEST: RefCell<Encoder> = RefCell::default();
}

/// The value that an HTTP answer holds.
fn value_of(reply: &http::Answer, path: &str, limit: usize) -> Result<Value, Trouble> {
    let decoded = xmlrpc::decode_response(&reply.body, &xmlrpc::Limits { bytes: limit, ..xmlrpc::Limits::default() });
    // Some servers send faults under status 500.
    if let Ok(Response::Fault { code, text }) = decoded {
        let code = if code.is_empty() { code } else { format!(" {code}") };
        return Err(Trouble::Fault(format!("fault{code}: {text}")));
    }
    let status = reply.status;
    match (status, decoded) {
        (200, Ok(Response::Value(value))) => Ok(value),
        (200, Err(error @ xmlrpc::DecodeError::Html)) => {
            Err(Trouble::NotServing("answer", format!("the server sent {error}")))
        }
        (200, Err(error)) => Err(Trouble::Useless("answer", format!("the server sent {error}"))),
        // A proxy without a living server behind it: nothing has seen the message.
        (502..=504, _) => Err(Trouble::NoAnswer(format!("HTTP status {status}: no server behind the proxy"))),
        (300..=399, _) => {
            let to = reply.location.as_deref().unwrap_or("nowhere");
            Err(Trouble::NotServing("HTTP", format!("HTTP status {status}: a redirect to {to}, which is not followed")))
        }
        (404, _) => Err(Trouble::NotServing("HTTP", format!("HTTP status 404: the server has no path {path}"))),
        (401 | 403, _) => {
            Err(Trouble::NotServing("HTTP", format!("HTTP status {status}: the server wants other credentials")))
        }
        (405 | 407 | 501, _) => Err(Trouble::NotServing("HTTP", format!("HTTP status {status} from {path}"))),
        _ => Err(Trouble::Useless("HTTP", format!("HTTP status {status} from {path}"))),
    }
}

impl Classifier for Remote {
    fn classify(&self, message: &[u8]) -> Result<Answer, Refusal> {
        let (started, mut asked) = (Instant::now(), None);
        let mut answer = self.ask(message, &mut asked).map_err(|trouble| {
            let (kind, text) = match trouble {
                Trouble::NoAnswer(text) => ("no answer", text),
                Trouble::Fault(text) => ("fault", text),
                Trouble::NotServing(kind, text) | Trouble::Useless(kind, text) => (kind, text),
            };
            Refusal { kind, text, server: asked.map(|number| self.servers[number].name.clone()) }
        })?;
        answer.took = started.elapsed();
        Ok(answer)
    }

    fn notes(&self) -> Vec<String> {
        let own = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        own.into_iter().chain(self.servers.iter().flat_map(|server| server.pool.take_notes())).collect()
    }

    fn at_most(&self, calls: usize) {
        self.servers.iter().for_each(|server| server.pool.want(calls));
    }

    fn strain(&self) -> Strain {
        let most = self.servers.iter().map(|server| server.pool.limit()).sum();
        let neglected = self.servers.iter().map(|server| server.pool.neglected()).sum();
        Strain { most, failures: self.unanswered.load(Ordering::Relaxed), neglected }
    }

    fn usage(&self) -> Usage {
        let usage = |server: &Server| {
            let counters = server.pool.counters();
            ServerUsage {
                url: server.name.to_string(),
                connections: counters.connections,
                requests: counters.requests,
                classified: server.classified.load(Ordering::Relaxed),
                failures: server.failures.load(Ordering::Relaxed),
            }
        };
        Usage { servers: self.servers.iter().map(usage).collect(), retries: self.retries.load(Ordering::Relaxed) }
    }
}
