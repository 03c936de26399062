use hyper::header::{HeaderName, HeaderValue};

use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).expect("a name"),
            HeaderValue::from_str(value).expect("a value"),
        );
    }
    map
}

fn addressed(pairs: &[(&str, &str)]) -> u16 {
    let result = is_addressed(&Names::default(), &Uri::from_static("/RPC2"), Version::HTTP_11, &headers(pairs));
    result.map_or_else(|refused| refused.0.as_u16(), |()| 200)
}

#[test]
fn loopback_names_are_ours_and_others_are_not() {
    for host in ["localhost", "LOCALHOST:65000", "localhost.:1", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:65000"] {
        assert!(Names::default().has(host), "{host}");
    }
    for host in [
        "",
        ":80",
        "evil.example",
        "localhost.evil.example",
        "10.0.0.1:65000",
        "[::1",
        "[::2]",
        "::1",
        "localhost:x",
        "localhost:",
        "127.0.0.1.evil.example:1",
        "evil@localhost",
        "localhost:1@evil",
    ] {
        assert!(!Names::default().has(host), "{host}");
    }
}

#[test]
fn more_names_can_be_given() {
    let names = Names { remote: false, more: vec!["mail.example.org".into()] };
    assert!(names.has("Mail.example.org:8080") && !names.has("example.org"));
    let names = Names { remote: true, more: Vec::new() };
    assert!(names.has("192.0.2.1:65000") && names.has("[2001:db8::1]") && !names.has("evil.example"));
    assert!(names.has(&rustix::system::uname().nodename().to_string_lossy()));
}

#[test]
fn pages_are_refused() {
    let host = ("Host", "127.0.0.1:65000");
    assert_eq!(addressed(&[host]), 200);
    assert_eq!(addressed(&[("Host", "evil.example")]), 403);
    assert_eq!(addressed(&[host, ("Origin", "http://evil.example")]), 403);
    assert_eq!(addressed(&[host, ("Origin", "null")]), 403);
    assert_eq!(addressed(&[host, ("Origin", "http://127.0.0.1:8080")]), 403);
    assert_eq!(addressed(&[host, ("Origin", "http://127.0.0.1:65000")]), 200);
    assert_eq!(addressed(&[host, ("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(addressed(&[host, host]), 400);
    assert_eq!(addressed(&[]), 400);
    let foreign = Uri::from_static("http://evil.example/RPC2");
    assert!(is_addressed(&Names::default(), &foreign, Version::HTTP_11, &headers(&[host])).is_err());
    assert!(is_addressed(&Names::default(), &Uri::from_static("/"), Version::HTTP_10, &headers(&[])).is_ok());
}

#[test]
fn only_xml_is_read() {
    for (kind, good) in [
        ("text/xml", true),
        ("Text/XML; charset=utf-8", true),
        ("application/xml", true),
        ("text/plain", false),
        ("text/plain; text/xml", false),
        ("application/x-www-form-urlencoded", false),
        ("multipart/form-data; boundary=text/xml", false),
        ("", false),
    ] {
        assert_eq!(is_xml(&headers(&[("Content-Type", kind)])).is_ok(), good, "{kind}");
    }
    assert!(is_xml(&headers(&[])).is_err());
    assert!(is_xml(&headers(&[("Content-Type", "text/xml"), ("Content-Type", "text/plain")])).is_err());
}

#[test]
fn tokens_come_as_bearer_or_basic() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "# clients\nfirst\n\n  second \n").expect("written");
    let tokens = Tokens::read(file.path()).expect("read");
    let known = |value: &str| is_known(Some(&tokens), &headers(&[("Authorization", value)])).is_ok();
    let basic = |pair: &str| format!("basic {}", STANDARD.encode(pair));
    assert!(known("Bearer first") && known("bearer  second") && known(&basic("any:first")));
    for bad in ["", "Bearer", "Bearer ", "Bearer firs", "first", "Digest first", "Basic first", "Bearer # clients"] {
        assert!(!known(bad), "{bad}");
    }
    assert!(!known(&basic("first")) && !known(&basic("first:")));
    assert!(is_known(Some(&tokens), &headers(&[])).is_err() && is_known(None, &headers(&[])).is_ok());
    fs::write(file.path(), "# nobody\n").expect("written");
    assert!(tokens.reload().is_err() && known("Bearer first"), "an empty file locks nobody out and lets nobody in");
    fs::write(file.path(), "third\n").expect("written");
    assert!(tokens.reload().is_ok() && known("Bearer third") && !known("Bearer first"));
}
