//! One line to the server: a ureq agent of its own, so at most one connection, and what is known of the call on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::config::{AutoHeaderValue, Config};
use ureq::http::{HeaderValue, Request, header};
use ureq::unversioned::transport::{Connector, RustlsConnector};
use ureq::{Agent, Error};

use super::answer::{self, Answer};
use super::buffers::BUFFER;
use super::connect::SocketConnector;
use super::error::HttpError;
use super::names::CachingResolver;
use super::site::Site;
use super::watch::WatchConnector;

/// A head longer than this is no XML-RPC server's. It must fit into the input buffer.
const HEAD_LIMIT: usize = BUFFER / 2;

/// What only the transport can know of why a call failed.
#[derive(Debug)]
pub(super) enum Trouble {
    Connect(String),
    Timeout,
    Reset,
    Starved,
    Protocol(&'static str),
}

/// The call in progress, shared by the line and its transport.
#[derive(Debug)]
pub(super) struct Call {
    deadline: Instant,
    pub(super) connect_by: Instant,
    pub(super) connecting: bool,
    /// Reads give up at once.
    pub(super) no_wait: bool,
    /// The request began to leave.
    pub(super) sent: bool,
    /// A byte of the answer has come.
    pub(super) began: bool,
    /// How many answers the connection had given when the request began to leave on it.
    answers_before: u64,
    trouble: Option<Trouble>,
    /// The open connection and the answers it has given.
    connection: Option<(u64, u64)>,
}

impl Call {
    fn begin(&mut self, deadline: Instant, connect_timeout: Duration) {
        let connection = self.connection;
        *self = Self { connection, ..Self::new(deadline, deadline.min(Instant::now() + connect_timeout)) };
    }

    fn new(deadline: Instant, connect_by: Instant) -> Self {
        Self {
            deadline,
            connect_by,
            connecting: false,
            no_wait: false,
            sent: false,
            began: false,
            answers_before: 0,
            trouble: None,
            connection: None,
        }
    }

    pub(super) fn begin_connecting(&mut self) -> Instant {
        self.connecting = true;
        // What was wrong with the connection before does not matter now.
        self.trouble = None;
        self.connect_by
    }

    pub(super) fn wait_until(&self) -> Instant {
        if self.connecting { self.connect_by } else { self.deadline }
    }

    pub(super) fn opened(&mut self, id: u64) {
        self.connection = Some((id, 0));
    }

    pub(super) fn lost(&mut self, id: u64) {
        self.connection.take_if(|connection| connection.0 == id);
    }

    /// How many answers the open connection has given.
    pub(super) fn answers(&self) -> u64 {
        self.connection.map_or(0, |(_, answers)| answers)
    }
}

/// What a line shares with its transport.
#[derive(Debug)]
pub(super) struct LineState {
    pub(super) site: Arc<Site>,
    call: Mutex<Call>,
}

impl LineState {
    pub(super) fn lock(&self) -> MutexGuard<'_, Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why the call fails. The error given back is only there to end it; nothing is read from it.
    pub(super) fn fail(&self, trouble: Trouble) -> Error {
        self.lock().trouble = Some(trouble);
        Error::ConnectionFailed
    }

    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.lock().wait_until()
    }

    /// A part of the request leaves.
    pub(super) fn sending(&self) {
        let mut call = self.lock();
        if !std::mem::replace(&mut call.sent, true)
            && let Some((id, answers)) = call.connection
        {
            call.answers_before = answers;
            drop(call);
            self.site.count_request();
            self.site.judge().sent(id, Instant::now());
        }
    }
}

/// Why a call on a line gave nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server answers on another connection only; here it never will.
    Starved,
    /// A connection that had answered before was closed under the request: a race nobody is to blame for.
    Stale,
    /// To be told to the caller.
    Told(HttpError),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Line {
    agent: Agent,
    state: Arc<LineState>,
}

impl Line {
    pub(super) fn new(site: &Arc<Site>) -> Self {
        let now = Instant::now();
        let state = Arc::new(LineState { site: Arc::clone(site), call: Mutex::new(Call::new(now, now)) });
        let config = Config::builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("hamsift/", env!("CARGO_PKG_VERSION")))
            .accept(AutoHeaderValue::None)
            .accept_encoding(AutoHeaderValue::None)
            .max_response_header_size(HEAD_LIMIT)
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            // A connection is asked before it is used again; its age says nothing.
            .max_idle_age(Duration::from_secs(365 * 24 * 3600))
            .tls_config(site.tls.clone())
            .build();
        let connector = SocketConnector(Arc::clone(&state))
            .chain(RustlsConnector::default())
            .chain(WatchConnector(Arc::clone(&state)));
        let agent = Agent::with_parts(config, connector, CachingResolver(Arc::clone(&state)));
        Self { agent, state }
    }

    /// Whether the line has an open connection, as far as is known.
    pub(super) fn is_connected(&self) -> bool {
        self.state.lock().connection.is_some()
    }

    /// Sends one request and reads its answer.
    pub(super) fn post(&self, body: &[u8], answer_limit: usize, deadline: Instant) -> Result<Answer, Failure> {
        let site = &self.state.site;
        self.state.lock().begin(deadline, site.connect_timeout);
        let mut request = Request::post(site.endpoint.uri.clone())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("text/xml"))
            .body(body)
            .map_err(|error| Failure::Told(HttpError::Protocol(error.to_string())))?;
        if let Some(authorization) = &site.endpoint.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        let result = match self.agent.run(request) {
            Ok(response) => answer::read(response, answer_limit),
            Err(error) => Err(answer::Unread::Http(error)),
        };
        match result {
            Ok(answer) => {
                let mut call = self.state.lock();
                if let Some((id, answers)) = &mut call.connection {
                    *answers += 1;
                    let id = *id;
                    drop(call);
                    site.judge().answered(id, Instant::now());
                }
                Ok(answer)
            }
            Err(error) => Err(self.explain(error, answer_limit)),
        }
    }

    fn explain(&self, error: answer::Unread, limit: usize) -> Failure {
        let site = &self.state.site;
        let mut call = self.state.lock();
        let began = call.began;
        let closed = if began { HttpError::Cut } else { HttpError::Closed };
        let told = match (call.trouble.take(), error) {
            (Some(Trouble::Starved), _) => return Failure::Starved,
            (Some(Trouble::Timeout), _) if call.connecting && call.connect_by < call.deadline => {
                HttpError::ConnectTimeout { within: site.connect_timeout }
            }
            (Some(Trouble::Timeout), _) => HttpError::Timeout { answer_began: began },
            (Some(Trouble::Connect(reason)), _) => HttpError::Connect { reason },
            (Some(Trouble::Reset), _) if call.connecting => {
                HttpError::Tls("the server closed the connection during the handshake".to_owned())
            }
            (Some(Trouble::Reset), _) => closed,
            (Some(Trouble::Protocol(what)), _) => HttpError::Protocol(what.to_owned()),
            (None, answer::Unread::TooLarge) => HttpError::TooLarge { limit },
            (None, answer::Unread::BadGzip) => HttpError::BadGzip,
            (None, answer::Unread::Coding(coding)) => {
                HttpError::Protocol(format!("content coding {coding:?} was not asked for"))
            }
            (None, answer::Unread::Lengths) => HttpError::Protocol("it has two different lengths".to_owned()),
            (None, answer::Unread::Http(error)) => match error {
                Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    HttpError::Tls(error.to_string())
                }
                Error::Rustls(error) => HttpError::Tls(error.to_string()),
                Error::Tls(reason) => HttpError::Tls(reason.to_owned()),
                Error::Io(_) if call.connecting => {
                    HttpError::Tls("the server closed the connection during the handshake".to_owned())
                }
                Error::Io(_) => closed,
                Error::LargeResponseHeader(..) => HttpError::Protocol("its head is too long".to_owned()),
                Error::Protocol(error) => HttpError::Protocol(error.to_string()),
                other => HttpError::Protocol(other.to_string()),
            },
        };
        match told {
            // TLS that breaks in the middle of an answer must not look as if the call could be repeated.
            HttpError::Tls(_) if began => Failure::Told(HttpError::Cut),
            HttpError::Closed if call.answers_before > 0 => Failure::Stale,
            told => Failure::Told(told),
        }
    }
}
