//! Where a server is: the URL a user types, taken apart once, its secrets kept out of everything that is printed.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use thiserror::Error;
use ureq::http::{HeaderValue, Uri};

/// The path of a server whose URL has none, as XML-RPC servers have it.
const DEFAULT_PATH: &str = "/RPC2";

/// A server: `http://host:port/path`, `https://…`, or `unix:/path/of/socket`.
///
/// Neither `Display` nor `Debug` shows user or password.
#[derive(Clone)]
pub struct Endpoint {
    /// What ureq is given: never with user information in it, because ureq may log it.
    pub(super) uri: Uri,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) socket: Option<PathBuf>,
    shown: String,
}

/// Why a server URL is none.
///
/// The texts quote nothing of the URL but its scheme: anything else could be a part of a mistyped password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// There is no scheme at all, as in `localhost:8000`.
    #[error("the server URL must begin with http://, https:// or unix:")]
    NoScheme,
    /// A scheme this client does not speak.
    #[error("unknown scheme {0:?}: the server URL must begin with http://, https:// or unix:")]
    Scheme(String),
    /// Nothing where the host should be.
    #[error("the server URL has no host")]
    NoHost,
    /// Nothing where the path of the socket should be.
    #[error("unix: must be followed by the path of a socket")]
    NoSocket,
    /// The host has characters no host name has, or a broken IPv6 literal.
    #[error("the host in the server URL is not a host name, an IPv4 address or an IPv6 address in [ ]")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("the port in the server URL is not a number from 1 to 65535")]
    Port,
    /// `?query` or `#fragment`: they have no meaning here and are likely a mistake.
    #[error("the server URL must not have a query (?) or fragment (#)")]
    Query,
    /// The path has characters that must be percent-encoded.
    #[error("the path in the server URL has characters that must be percent-encoded")]
    Path,
    /// Basic authentication cannot carry a colon in the user name.
    #[error("the user name in the server URL has a colon, which Basic authentication cannot carry")]
    User,
}

impl Endpoint {
    /// Takes a URL apart. Port and path may be left out: 80 or 443, and `/RPC2`.
    ///
    /// # Errors
    /// Whatever is wrong with the URL, in words for its author.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        if let Some(path) = strip_prefix_ignore_case(url, "unix:") {
            return Self::unix(path);
        }
        let (scheme, rest) = split_scheme(url)?;
        if rest.contains(['?', '#']) {
            return Err(UrlError::Query);
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (user_info, host_port) =
            authority.rfind('@').map_or((None, authority), |at| (Some(&authority[..at]), &authority[at + 1..]));
        let host_port = check_host_port(host_port)?;
        let path = if path.is_empty() { DEFAULT_PATH } else { path };
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Path);
        }
        let shown = format!("{scheme}://{host_port}{path}");
        let uri = shown.parse().map_err(|_| UrlError::Path)?;
        let authorization = user_info.map(basic).transpose()?;
        Ok(Self { uri, authorization, socket: None, shown })
    }

    fn unix(path: &str) -> Result<Self, UrlError> {
        if path.is_empty() || path.contains('\0') {
            return Err(UrlError::NoSocket);
        }
        let uri = Uri::from_static("http://localhost/RPC2");
        Ok(Self { uri, authorization: None, socket: Some(PathBuf::from(path)), shown: format!("unix:{path}") })
    }

    /// The path requests are sent to, such as `/RPC2`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    pub(super) fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    pub(super) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.shown).finish()
    }
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

fn split_scheme(url: &str) -> Result<(&'static str, &str), UrlError> {
    let (scheme, rest) = url.split_once("://").ok_or(UrlError::NoScheme)?;
    let named = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) && !scheme.is_empty();
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok(("http", rest)),
        "https" => Ok(("https", rest)),
        other if named => Err(UrlError::Scheme(other.to_owned())),
        _ => Err(UrlError::NoScheme),
    }
}

/// Checks host and port; gives them back as they are to be sent.
fn check_host_port(host_port: &str) -> Result<&str, UrlError> {
    let (host, port) = if let Some(rest) = host_port.strip_prefix('[') {
        let (literal, port) = rest.split_once(']').ok_or(UrlError::Host)?;
        literal.parse::<Ipv6Addr>().map_err(|_| UrlError::Host)?;
        if !port.is_empty() && !port.starts_with(':') {
            return Err(UrlError::Host);
        }
        (literal, port.strip_prefix(':'))
    } else {
        let (host, port) = host_port.split_once(':').map_or((host_port, None), |(host, port)| (host, Some(port)));
        if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            return Err(UrlError::Host);
        }
        (host, port)
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    if let Some(port) = port {
        // `parse` alone would take "+80".
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(UrlError::Port);
        }
    }
    Ok(host_port)
}

/// The `Authorization` header. ureq would send user and password still percent-encoded.
fn basic(user_info: &str) -> Result<HeaderValue, UrlError> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let mut pair: Vec<u8> = percent_decode_str(user).collect();
    if pair.contains(&b':') {
        return Err(UrlError::User);
    }
    pair.push(b':');
    pair.extend(percent_decode_str(password));
    // Base64 holds nothing a header may not have, so the error cannot come up.
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).map_err(|_| UrlError::User)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Endpoint::parse(url).map_or_else(|error| format!("{error:?}"), |endpoint| endpoint.to_string())
    }

    #[test]
    fn parts_left_out_get_their_defaults() {
        assert_eq!(shown("http://h"), "http://h/RPC2");
        assert_eq!(shown("http://h:1"), "http://h:1/RPC2");
        assert_eq!(shown("http://h:1/"), "http://h:1/", "a path that was typed is kept");
        assert_eq!(shown("HTTPS://h:1/a/b"), "https://h:1/a/b");
        assert_eq!(shown("http://[::1]:65000"), "http://[::1]:65000/RPC2");
        assert_eq!(shown("http://127.0.0.1:65000/RPC2"), "http://127.0.0.1:65000/RPC2");
    }

    #[test]
    fn a_unix_socket_is_http_on_localhost() {
        for url in ["unix:/run/s.sock", "UNIX:/run/s.sock"] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.to_string(), "unix:/run/s.sock");
            assert_eq!(endpoint.socket(), Some(Path::new("/run/s.sock")));
            assert_eq!((endpoint.path(), endpoint.uri.host()), ("/RPC2", Some("localhost")));
        }
        assert_eq!(shown("unix:"), "NoSocket");
        assert_eq!(shown("unix:s.sock"), "unix:s.sock");
    }

    #[test]
    fn user_and_password_are_decoded_and_never_shown() {
        let endpoint = Endpoint::parse("http://us%40er:pa%3Ass@127.0.0.1:80/RPC2").unwrap();
        assert_eq!(endpoint.authorization.as_ref().unwrap(), "Basic dXNAZXI6cGE6c3M=");
        for text in [endpoint.to_string(), format!("{endpoint:?}"), endpoint.uri.to_string()] {
            assert!(!text.contains("pa") && !text.contains("er:") && !text.contains('@'), "{text}");
        }
        let raw_at = Endpoint::parse("http://a:p@ss@h").unwrap();
        assert_eq!(raw_at.authorization.unwrap(), HeaderValue::from_static("Basic YTpwQHNz"));
        let user_only = Endpoint::parse("http://a@h").unwrap();
        assert_eq!(user_only.authorization.unwrap(), "Basic YTo=");
    }

    #[test]
    fn what_is_no_server_url() {
        for (url, error) in [
            ("", "NoScheme"),
            ("localhost:65000", "NoScheme"),
            ("user:pa ss://h", "NoScheme"),
            ("ftp://h", "Scheme(\"ftp\")"),
            ("http://", "NoHost"),
            ("http:///RPC2", "NoHost"),
            ("http://:80/", "NoHost"),
            ("http://u:p@/", "NoHost"),
            ("http://h:/", "Port"),
            ("http://h:0/", "Port"),
            ("http://h:+80/", "Port"),
            ("http://h:65536/", "Port"),
            ("http://h:http/", "Port"),
            ("http://::1/", "NoHost"),
            ("http://[::1/", "Host"),
            ("http://[::g]/", "Host"),
            ("http://[::1]x/", "Host"),
            ("http://h h/", "Host"),
            ("http://h\r\nX: y/", "Host"),
            ("http://bücher/", "Host"),
            ("http://h/a b", "Path"),
            ("http://h/a\r\nX: y", "Path"),
            ("http://h/?q", "Query"),
            ("http://h/#f", "Query"),
            ("http://a%3Ab:c@h/", "User"),
        ] {
            assert_eq!(shown(url), error, "{url:?}");
        }
    }

    #[test]
    fn an_error_never_quotes_a_password() {
        for url in ["http://u:sec/ret@h/", "http://u:secret@h h/", "http://u:sec?ret@h/", "u:secret@h"] {
            let text = Endpoint::parse(url).unwrap_err().to_string();
            assert!(!text.contains("sec") && !text.contains("ret@"), "{text}");
        }
    }
}
