//! Who may come in: everything that is decided from the header lines alone, before a byte of the body is read.
//!
//! A web page can make the browser of someone on this machine send requests here, and a name of its own can be made to
//! lead here (DNS rebinding). It cannot make the browser leave out `Origin` on a POST, send XML as the content type
//! without asking first, or call our address by our name. No answer ever allows a page to read it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{self, HeaderMap};
use hyper::{StatusCode, Uri, Version};
use sha2::{Digest as _, Sha256};

/// Which names this server answers to.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Any address, and this machine's name: it listens on more than loopback addresses.
    pub(super) remote: bool,
    /// More names, in lower case.
    pub(super) more: Vec<String>,
}

impl Names {
    fn has(&self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else { return false };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            // A page's own name can be made to lead here, but an address cannot.
            return self.remote || address.is_loopback();
        }
        host == "localhost" || self.more.contains(&host) || self.remote && is_this_machine(&host)
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    !name.is_empty() && (host == name || host == short(&name) || !name.contains('.') && short(host) == name)
}

/// The host of `host:port`; `None` if it is neither that nor a host alone.
fn host_of(authority: &str) -> Option<&str> {
    let port_starts = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(port_starts)?;
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (!host.is_empty() && (port.is_empty() || port.strip_prefix(':').is_some_and(digits))).then_some(host)
}

/// Passwords, one of which has to come with each call.
#[derive(Debug)]
pub(super) struct Tokens {
    path: PathBuf,
    /// As digests, so that the time a comparison takes says nothing.
    digests: RwLock<Vec<[u8; 32]>>,
}

impl Tokens {
    /// Reads the file: a token a line, `#` begins a comment.
    pub(super) fn read(path: &Path) -> io::Result<Tokens> {
        let tokens = Tokens { path: path.to_owned(), digests: RwLock::default() };
        tokens.reload()?;
        Ok(tokens)
    }

    /// Reads it again. Nothing changes if that fails.
    pub(super) fn reload(&self) -> io::Result<()> {
        let text = fs::read_to_string(&self.path)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let digests: Vec<_> = lines.map(|token| Sha256::digest(token).into()).collect();
        if digests.is_empty() {
            return Err(io::Error::other("there is no token in it"));
        }
        *self.digests.write().unwrap_or_else(PoisonError::into_inner) = digests;
        Ok(())
    }

    fn has(&self, token: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.digests.read().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    /// `Bearer TOKEN`, or `Basic` with the token as the password of whatever user.
    fn allow(&self, authorization: &[u8]) -> bool {
        let text = authorization.trim_ascii();
        let Some(space) = text.iter().position(|&byte| byte == b' ') else { return false };
        let (scheme, credentials) = (&text[..space], text[space..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return self.has(credentials);
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return false;
        }
        let Ok(pair) = STANDARD.decode(credentials) else { return false };
        let colon = pair.iter().position(|&byte| byte == b':');
        colon.is_some_and(|colon| self.has(&pair[colon + 1..]))
    }
}

/// Why a request is sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) StatusCode, pub(super) &'static str);

/// Whether the request came under a name of ours and from no web page.
pub(super) fn is_addressed(names: &Names, uri: &Uri, version: Version, headers: &HeaderMap) -> Result<(), Refused> {
    let foreign = |what| Err(Refused(StatusCode::FORBIDDEN, what));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() || host.is_none() && version != Version::HTTP_10 {
        return Err(Refused(StatusCode::BAD_REQUEST, "exactly one Host is needed"));
    }
    let ours = |value: &header::HeaderValue| value.to_str().is_ok_and(|host| names.has(host));
    if host.is_some_and(|host| !ours(host)) || uri.authority().is_some_and(|host| !names.has(host.as_str())) {
        return foreign("this server is not called so (see --allow-host)");
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let text = origin.to_str().unwrap_or_default();
        let same = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if same.is_none() || same.map(str::as_bytes) != host.map(header::HeaderValue::as_bytes) {
            return foreign("requests of web pages are refused");
        }
    }
    match headers.get("sec-fetch-site").map(header::HeaderValue::as_bytes) {
        None | Some(b"none" | b"same-origin") => Ok(()),
        Some(_) => foreign("requests of web pages are refused"),
    }
}

/// Whether it came with a token, if one is needed.
pub(super) fn is_known(tokens: Option<&Tokens>, headers: &HeaderMap) -> Result<(), Refused> {
    let Some(tokens) = tokens else { return Ok(()) };
    match headers.get(header::AUTHORIZATION) {
        Some(value) if tokens.allow(value.as_bytes()) => Ok(()),
        _ => Err(Refused(StatusCode::UNAUTHORIZED, "a token is needed")),
    }
}

/// Whether the body is XML: what a form or a script can send without being asked is not called so.
pub(super) fn is_xml(headers: &HeaderMap) -> Result<(), Refused> {
    let refused = Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type has to be text/xml"));
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else { return refused };
    let Ok(text) = value.to_str() else { return refused };
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "text/xml" | "application/xml" | "application/xml-rpc" | "application/rpc+xml" => Ok(()),
        _ => refused,
    }
}

#[cfg(test)]
mod tests;
