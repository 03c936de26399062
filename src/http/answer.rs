//! Reads the body of an answer, unpacked if need be, never more of it than the caller allows.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use ureq::http::{HeaderMap, Response, header};
use ureq::{Body, Error};

/// What a server answered, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The status code. Faults come with 200 or with 500; redirects (3xx) are not followed.
    pub status: u16,
    /// The `Content-Type`, as it came.
    pub content_type: Option<String>,
    /// The `Location` of a redirect, for the message about it.
    pub location: Option<String>,
    /// The body, unpacked.
    pub body: Vec<u8>,
}

/// Why there is no answer; [`Line`](super::line::Line) makes an error for the caller of it.
#[derive(Debug)]
pub(super) enum Unread {
    Http(Error),
    TooLarge,
    BadGzip,
    /// A content coding nobody asked for.
    Coding(String),
    /// Two `Content-Length` headers that differ: there is no telling where the answer ends.
    Lengths,
}

/// Reads an answer to its end. Its connection is used again only if that end was reached, so every error closes it.
pub(super) fn read(response: Response<Body>, limit: usize) -> Result<Answer, Unread> {
    let (parts, body) = response.into_parts();
    let headers = &parts.headers;
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    if let Some(first) = lengths.next()
        && lengths.any(|other| other != first)
    {
        return Err(Unread::Lengths);
    }
    let length = body.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if length.is_some_and(|length| length > limit) {
        return Err(Unread::TooLarge);
    }
    let mut source = Noted { inner: body.into_with_config().limit(u64::MAX).reader(), error: None };
    let mut content = Vec::new();
    // One byte more than allowed tells too large from just allowed.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let coding = text(headers, header::CONTENT_ENCODING).unwrap_or_default();
    let result = match coding.to_ascii_lowercase().as_str() {
        "" | "identity" => {
            // The claimed length is believed up to a point only: it costs the sender nothing to claim much.
            content.reserve_exact(length.unwrap_or(0).min(1 << 20));
            (&mut source).take(most).read_to_end(&mut content)
        }
        "gzip" | "x-gzip" => MultiGzDecoder::new(&mut source).take(most).read_to_end(&mut content),
        _ => return Err(Unread::Coding(coding)),
    };
    if let Some(error) = source.error {
        return Err(Unread::Http(error));
    }
    if content.len() > limit {
        return Err(Unread::TooLarge);
    }
    result.map_err(|_| Unread::BadGzip)?;
    Ok(Answer {
        status: parts.status.as_u16(),
        content_type: text(headers, header::CONTENT_TYPE),
        location: text(headers, header::LOCATION),
        body: content,
    })
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

/// Keeps the error of the connection apart from those of the unpacker, which look the same.
struct Noted<R> {
    inner: R,
    error: Option<Error>,
}

impl<R: Read> Read for Noted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let kind = error.kind();
            self.error = Some(Error::from(error));
            io::Error::from(if kind == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { kind })
        })
    }
}
