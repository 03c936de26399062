//! From a request to its answer: what is looked at, in which order, and the HTTP statuses.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::oneshot;

use super::Shared;
use super::body::{self, BodyError, Held};
use super::gate::{self, Refused};
use super::wire::{Phase, Watch};
use super::workers::{self, Job, status_of};

/// A connection as calls know it.
pub(super) struct Client {
    pub(super) peer: Arc<str>,
    pub(super) watch: Arc<Watch>,
}

type Answer = Response<Full<Bytes>>;

/// Answers a request.
pub(super) async fn answer(
    shared: Arc<Shared>,
    client: Arc<Client>,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    client.watch.enter(Phase::Body);
    let (parts, mut body) = request.into_parts();
    let result = route(&shared, &client, &parts, &mut body).await;
    // What is left of the request is not worth reading. A refused one may not even end where it seems to.
    let unread = !body.is_end_stream() || result.is_err();
    let mut answer = match result {
        Ok(answer) => answer,
        Err(refused) => {
            shared.teller.detail(&format!("{} {} {}", client.peer, refused.0.as_u16(), refused.1));
            refusal(refused)
        }
    };
    if unread || parts.headers.contains_key(header::TRANSFER_ENCODING) {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    shared.metrics.status(answer.status().as_u16());
    let mut seen = client.watch.seen();
    seen.unread = unread;
    seen.enter(Phase::Reply);
    Ok(answer)
}

async fn route(shared: &Shared, client: &Client, parts: &Parts, body: &mut Incoming) -> Result<Answer, Refused> {
    // First of all, for the rest of such a request may be another one in disguise.
    let chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
    if chunked && !client.watch.has_only_chunks() {
        return Err(Refused(StatusCode::BAD_REQUEST, "either Content-Length or Transfer-Encoding"));
    }
    gate::is_addressed(&shared.names, &parts.uri, parts.version, &parts.headers)?;
    let get = parts.method == Method::GET || parts.method == Method::HEAD;
    if parts.uri.path() == "/healthz" && get {
        return Ok(plain(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"));
    }
    gate::is_known(shared.tokens.as_ref(), &parts.headers)?;
    match parts.uri.path() {
        "/" | "/RPC2" if parts.method == Method::POST => call(shared, client, parts, body, chunked).await,
        "/metrics" if get => {
            let page = shared.metrics.text(&shared.service.get(), shared.budget.taken());
            Ok(plain(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page))
        }
        "/" | "/RPC2" | "/healthz" | "/metrics" => {
            Err(Refused(StatusCode::METHOD_NOT_ALLOWED, "XML-RPC calls are POST requests"))
        }
        _ => Err(Refused(StatusCode::NOT_FOUND, "No such page")),
    }
}

async fn call(
    shared: &Shared,
    client: &Client,
    parts: &Parts,
    body: &mut Incoming,
    chunked: bool,
) -> Result<Answer, Refused> {
    gate::is_xml(&parts.headers)?;
    let packed = match parts.headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None => false,
        Some(coding) if coding.eq_ignore_ascii_case(b"identity") => false,
        Some(coding) if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => true,
        Some(_) => return Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the only content encoding is gzip")),
    };
    if !chunked && !parts.headers.contains_key(header::CONTENT_LENGTH) {
        return Err(Refused(StatusCode::LENGTH_REQUIRED, "a Content-Length is needed"));
    }
    let mut held = Held::nothing(&shared.budget);
    let bytes = body::read(body, shared.max_body, &mut held).await.map_err(refused)?;
    client.watch.enter(Phase::Work);
    let takes_gzip = takes_gzip(&parts.headers);
    let job = Job { body: bytes, packed, takes_gzip, held, peer: client.peer.clone() };
    let reply = if workers::is_short(&shared.kit, &job) {
        workers::carry_out(&shared.kit, job)
    } else {
        let (reply, answer) = oneshot::channel();
        let broken = || Refused(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
        shared.queue.send((job, reply)).map_err(|_| broken())?;
        answer.await.map_err(|_| broken())?
    };
    client.watch.holds(reply.held);
    if reply.status != StatusCode::OK {
        return Err(Refused(reply.status, "the body cannot be unpacked"));
    }
    let mut answer = plain(StatusCode::OK, "text/xml", reply.body);
    if reply.packed {
        answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(answer)
}

fn refused(error: BodyError) -> Refused {
    match error {
        BodyError::TooLarge => Refused(status_of(error), "the body is larger than --max-body"),
        BodyError::NoRoom => Refused(status_of(error), "too many large bodies at once"),
        BodyError::Broken => Refused(status_of(error), "the body is broken"),
    }
}

/// Whether the client takes gzip, by RFC 9110, section 12.5.3; as the original, only if it says so by name.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let is_gzip = |item: &str| {
        let (coding, quality) = item.split_once(';').unwrap_or((item, ""));
        let quality = quality.trim().strip_prefix("q=").map_or(Ok(1.0), |q| q.trim().parse::<f32>());
        matches!(coding.trim().to_ascii_lowercase().as_str(), "gzip" | "x-gzip") && quality.is_ok_and(|q| q > 0.0)
    };
    values.flat_map(|value| value.split(',')).any(is_gzip)
}

fn plain(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::SERVER, HeaderValue::from_static(concat!("hamsift/", env!("CARGO_PKG_VERSION"))));
    answer
}

fn refusal(Refused(status, text): Refused) -> Answer {
    let mut answer = plain(status, "text/plain; charset=utf-8", format!("{text}\n"));
    let headers = answer.headers_mut();
    match status {
        StatusCode::UNAUTHORIZED => {
            for scheme in ["Bearer", "Basic realm=\"hamsift\""] {
                headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
            }
        }
        StatusCode::METHOD_NOT_ALLOWED => drop(headers.insert(header::ALLOW, HeaderValue::from_static("POST"))),
        StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"))),
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_has_to_be_named() {
        for (value, takes) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("x-gzip", true),
            ("gzip; q=0", false),
            ("gzip;q=0.000", false),
            ("*", false),
            ("identity", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(takes_gzip(&headers), takes, "{value}");
        }
    }
}
