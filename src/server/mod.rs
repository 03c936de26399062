//! The XML-RPC server that stands in for `sb_xmlrpcserver.py`.
//!
//! ```text
//! listen ─► connection (hyper, deadlines) ─► http (gate, body) ─► workers ─► methods (engine)
//! ```
//!
//! A fixed number of threads speaks HTTP, each with connections of its own, and carries out short calls; as many workers
//! carry out what may take long. What a client can make this take of memory, threads and time is bounded in `body`,
//! `workers` and `connection`. HTTP itself is hyper's.

mod accept;
mod body;
mod connection;
mod fault;
mod gate;
mod http;
mod listen;
mod methods;
mod metrics;
mod params;
mod threads;
pub mod unit;
mod wire;
mod workers;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use self::body::Budget;
use self::gate::{Names, Tokens};
use self::metrics::Metrics;
use self::threads::Threads;
use crate::classify::Classifier as _;
use crate::classify::local::Local;
use crate::exit::Exit;
use crate::report::Teller;

/// Room for bodies is this many of the largest.
const LARGEST_BODIES: usize = 2;

/// Opens the engine anew, as the configuration has it by then; tells in words why it cannot.
pub type Open = Box<dyn Fn() -> Result<Engine, String> + Send + Sync>;

/// An engine to serve with.
#[derive(Debug)]
pub struct Engine {
    /// Who scores.
    pub local: Local,
    /// The database that calls may train, if they may.
    pub train: Option<PathBuf>,
}

/// What a server is to be.
#[derive(Debug)]
pub struct Config {
    /// Addresses to listen on.
    pub listen: Vec<String>,
    /// A Unix socket to listen on.
    pub socket: Option<PathBuf>,
    /// Whether other machines may reach it.
    pub allow_remote: bool,
    /// More names that it may be called by.
    pub hosts: Vec<String>,
    /// The file with the tokens of which each call has to bring one.
    pub token_file: Option<PathBuf>,
    /// Calls carried out at once.
    pub workers: usize,
    /// The largest body of a request.
    pub max_body: usize,
    /// Connections at once.
    pub max_connections: u64,
    /// How long a connection may be silent.
    pub idle_timeout: Duration,
    /// How long the header lines of a request may take.
    pub header_timeout: Duration,
    /// How long calls may take to end once the server is to stop.
    pub grace: Duration,
}

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It is no address.
    #[error("{0:?} is not an address to listen on (HOST:PORT)")]
    Address(String),
    /// Others could reach it.
    #[error(
        "{0} is not a loopback address: other machines could reach it, and mail would pass in the clear; \
         --allow-remote allows that"
    )]
    Remote(String),
    /// The address is taken, or not ours.
    #[error("cannot listen on {place}: {source}")]
    Listen {
        /// Where.
        place: String,
        /// Why not.
        source: io::Error,
    },
    /// The tokens cannot be read.
    #[error("{path}: {source}")]
    Tokens {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Threads, signals: the system is short of something.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl ServeError {
    /// The exit status for it.
    pub fn exit(&self) -> Exit {
        match self {
            ServeError::Address(_) | ServeError::Remote(_) => Exit::Usage,
            ServeError::Listen { .. } => Exit::CannotCreate,
            ServeError::Tokens { .. } => Exit::Config,
            ServeError::System(_) => Exit::Io,
        }
    }
}

/// The service calls are given to: another one after a reload.
struct Current(RwLock<Arc<methods::Service>>);

impl Current {
    fn service(Engine { local, train }: Engine, teller: &Teller) -> Arc<methods::Service> {
        local.notes().iter().for_each(|note| teller.note(note));
        Arc::new(methods::Service::new(local, train))
    }

    fn get(&self) -> Arc<methods::Service> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, service: Arc<methods::Service>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = service;
    }
}

/// What all connections use.
struct Shared {
    service: Arc<Current>,
    open: Open,
    kit: Arc<workers::Kit>,
    queue: Sender<workers::Ordered>,
    metrics: Arc<Metrics>,
    teller: Arc<Teller>,
    names: Names,
    tokens: Option<Tokens>,
    budget: Arc<Budget>,
    /// Has connections go to make room for others.
    crowd: accept::Crowd,
    max_body: usize,
    max_connections: u64,
    idle_timeout: Duration,
    header_timeout: Duration,
}

/// Runs a server until it is told to stop.
///
/// # Errors
/// If it cannot start. Once it runs, nothing ends it but a signal.
pub fn run(config: Config, engine: Engine, open: Open, teller: Teller) -> Result<Exit, ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(config, engine, open, Arc::new(teller)))
}

async fn serve(config: Config, engine: Engine, open: Open, teller: Arc<Teller>) -> Result<Exit, ServeError> {
    let listeners = listen::open(&config.listen, config.socket.as_deref(), config.allow_remote)?;
    let tokens = config
        .token_file
        .as_deref()
        .map(|path| Tokens::read(path).map_err(|source| ServeError::Tokens { path: path.to_owned(), source }));
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hangup: signal(SignalKind::hangup())?,
    };
    let service = Arc::new(Current(RwLock::new(Current::service(engine, &teller))));
    let metrics = Arc::new(Metrics::default());
    let kit = Arc::new(workers::Kit {
        service: service.clone(),
        metrics: metrics.clone(),
        teller: teller.clone(),
        max_body: config.max_body,
    });
    let shared = Arc::new(Shared {
        service,
        open,
        queue: workers::start(config.workers, &kit)?,
        kit,
        metrics,
        teller: teller.clone(),
        names: Names { remote: config.allow_remote, more: config.hosts },
        tokens: tokens.transpose()?,
        budget: Budget::new(config.max_body.saturating_mul(LARGEST_BODIES)),
        crowd: accept::Crowd::default(),
        max_body: config.max_body,
        max_connections: accept::room_for(config.max_connections, &teller),
        idle_timeout: config.idle_timeout,
        header_timeout: config.header_timeout,
    });
    let threads = Arc::new(Threads::start(config.workers)?);
    let (stop, stopped) = watch::channel(false);
    // Every task holds a sender; when all are gone, all is done.
    let (alive, mut done) = mpsc::channel::<()>(1);
    for listener in listeners {
        teller.note(&format!("listening on {}", listener.url()));
        tokio::spawn(accept::run(shared.clone(), threads.clone(), listener, stopped.clone(), alive.clone()));
    }
    drop((alive, stopped));
    unit::notify("READY=1");
    while let Told::Reload = signals.next().await {
        reload(&shared);
    }
    unit::notify("STOPPING=1");
    let _ = stop.send(true);
    tokio::select! {
        ended = timeout(config.grace, done.recv()) => if ended.is_err() {
            let open = shared.metrics.open.load(std::sync::atomic::Ordering::Relaxed);
            teller.note(&format!("stopped with {open} connections open: --grace is over"));
        },
        // Somebody is impatient.
        () = signals.stop() => {}
    }
    Ok(Exit::Ok)
}

enum Told {
    Reload,
    Stop,
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.hangup.recv() => Told::Reload,
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
        }
    }

    async fn stop(&mut self) {
        while let Told::Reload = self.next().await {}
    }
}

/// Reads again what may have changed. Whatever cannot be read stays as it was.
fn reload(shared: &Arc<Shared>) {
    unit::notify(&format!("RELOADING=1\nMONOTONIC_USEC={}", unit::monotonic_micros()));
    match shared.tokens.as_ref().map_or(Ok(()), Tokens::reload) {
        Ok(()) => {}
        Err(error) => shared.teller.error(&format!("the tokens stay as they were: {error}")),
    }
    let worker = shared.clone();
    // The database may be large, and calls go on meanwhile.
    let started = std::thread::Builder::new().name("reload".into()).spawn(move || {
        match (worker.open)() {
            Ok(engine) => {
                worker.service.set(Current::service(engine, &worker.teller));
                worker.teller.note("reloaded");
            }
            Err(text) => worker.teller.error(&format!("all stays as it was: {text}")),
        }
        unit::notify("READY=1");
    });
    if let Err(error) = started {
        shared.teller.error(&format!("cannot reload: {error}"));
    }
}
