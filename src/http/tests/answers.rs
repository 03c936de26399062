//! Answers of every shape.

use std::io::Write;
use std::sync::mpsc;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::server::{Server, answer, ok};
use super::*;

fn body(result: Result<Answer, HttpError>) -> String {
    String::from_utf8(result.unwrap().body).unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_request_is_plain_and_leaves_in_one_write() {
    let (sender, received) = mpsc::channel();
    let server = Server::threads(move |connection, _| {
        sender.send(connection.read_some().unwrap()).unwrap();
        connection.send(&ok(b"a"));
    });
    let url = server.url().replace("//", "//us%40er:pa%3Ass@");
    let content = vec![b'x'; 20_000];
    pool(&url, 1).post(&content, 10, later()).unwrap();
    let request = received.recv().unwrap();
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert!(request[end + 4..] == content, "head and body came together");
    let head = String::from_utf8(request[..end].to_vec()).unwrap().to_lowercase();
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "post /rpc2 http/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", server.address());
    let agent = concat!("user-agent: hamsift/", env!("CARGO_PKG_VERSION"));
    let authorization = "authorization: basic dxnazxi6cge6c3m=";
    assert_eq!(lines, [authorization, "content-length: 20000", "content-type: text/xml", &host, agent]);
}

#[test]
fn any_status_is_an_answer() {
    let fault = one_answer(answer("500 Internal Server Error", "Content-Type: text/xml\r\n", b"<fault/>")).unwrap();
    assert_eq!((fault.status, fault.content_type.as_deref(), &*fault.body), (500, Some("text/xml"), &b"<fault/>"[..]));
    let missing = one_answer(answer("404 Not Found", "Content-Type: text/plain\r\n", b"No such page")).unwrap();
    assert_eq!((missing.status, &*missing.body), (404, &b"No such page"[..]));
    let empty = one_answer("HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    assert_eq!((empty.status, &*empty.body), (204, &b""[..]));
}

#[test]
fn a_redirect_is_not_followed() {
    for content in [&b""[..], b"elsewhere"] {
        let server = Server::threads(move |connection, _| {
            while connection.request().is_some() {
                connection.send(&answer("302 Found", "Location: /other\r\n", content));
            }
        });
        let pool = pool(&server.url(), 1);
        let redirect = pool.post(b"q", 100, later()).unwrap();
        assert_eq!((redirect.status, redirect.location.as_deref(), &*redirect.body), (302, Some("/other"), content));
        assert_eq!(pool.counters().requests, 1);
    }
}

#[test]
fn the_end_of_an_answer_is_found_in_every_form() {
    assert_eq!(body(one_answer("HTTP/1.0 200 OK\r\n\r\nuntil closed")), "until closed");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                   4;name=\"a;b\"\r\nchun\r\n3 ; x\r\nked\r\n0\r\nX-Trailer: t\r\n\r\n";
    assert_eq!(body(one_answer(chunked)), "chunked");
    for continued in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nServer: x\r\nDate: y\r\n\r\n",
        "HTTP/1.0 103 Early Hints\nLink: </a>\n\n",
    ] {
        let answer = [continued.repeat(2).as_bytes(), &ok(b"HTTP/1.1 100 x\r\n\r\n")].concat();
        assert_eq!(body(one_answer(answer)), "HTTP/1.1 100 x\r\n\r\n");
    }
    assert_eq!(body(one_answer("HTTP/1.1 200\nContent-Type: text/xml\nContent-Length: 2\n\nlf")), "lf");
}

#[test]
fn chunked_answers_with_trailers_keep_the_connection() {
    let server = Server::threads(|connection, _| {
        while let Some(request) = connection.request() {
            connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for byte in &request.body {
                connection.send(&[b"1;x=y\r\n", &[*byte][..], b"\r\n"].concat());
            }
            connection.send(b"0\r\nX-Trailer: t\r\n\r\n");
        }
    });
    let pool = pool(&server.url(), 1);
    echo_calls(&pool, 1, 20);
    assert_eq!(pool.counters().connections, 1);
}

#[test]
fn gzip_nobody_asked_for_is_unpacked() {
    let packed = gzip(b"unpacked");
    assert_eq!(body(one_answer(answer("200 OK", "Content-Encoding: gzip\r\n", &packed))), "unpacked");
    let two = [packed.clone(), gzip(b" twice")].concat();
    assert_eq!(body(one_answer(answer("200 OK", "Content-Encoding: X-Gzip\r\n", &two))), "unpacked twice");

    let cut = &packed[..packed.len() - 4];
    let damaged = one_answer(answer("200 OK", "Content-Encoding: gzip\r\n", cut));
    assert!(matches!(damaged, Err(HttpError::BadGzip)), "{damaged:?}");
    let mut early = answer("200 OK", "Content-Encoding: gzip\r\n", &packed);
    early.truncate(early.len() - 4);
    let early = one_answer(early);
    assert!(matches!(early, Err(HttpError::Cut)), "{early:?}");
    let other = one_answer(answer("200 OK", "Content-Encoding: br\r\n", b"?"));
    assert!(matches!(other, Err(HttpError::Protocol(_))), "{other:?}");
}

#[test]
fn an_answer_of_just_the_limit_is_taken_and_a_byte_more_is_not() {
    for head in ["HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"] {
        let server = Server::threads(move |connection, _| {
            connection.request();
            connection.send(&[head.as_bytes(), &[b'x'; 1000]].concat());
        });
        let pool = pool(&server.url(), 1);
        assert_eq!(pool.post(b"q", 1000, later()).unwrap().body.len(), 1000);
        let error = pool.post(b"q", 999, later()).unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { limit: 999 }) && error.answer_began(), "{error:?}");
    }
}

#[test]
fn an_endless_answer_and_a_gzip_bomb_end_at_the_limit() {
    let endless = one_call(|connection, _| {
        connection.request();
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n");
        while connection.send(&[b' '; 4096]) {}
    });
    assert!(matches!(endless, Err(HttpError::TooLarge { .. })), "{endless:?}");

    let bomb = gzip(&vec![b' '; 200 << 20]);
    let server = Server::threads(move |connection, _| {
        connection.request();
        connection.send(&answer("200 OK", "Content-Encoding: gzip\r\n", &bomb));
    });
    let start = Instant::now();
    let result = pool(&server.url(), 1).post(b"q", 1 << 20, later());
    assert!(matches!(result, Err(HttpError::TooLarge { .. })), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(2), "it was not unpacked to its end");
}

#[test]
fn a_message_of_twelve_megabytes_goes_there_and_back() {
    let server = Server::threads(echo);
    let pool = pool(&server.url(), 1);
    let content: Vec<u8> = (0..12_000_000_u32).map(|i| (i % 251) as u8).collect();
    for _ in 0..2 {
        assert!(pool.post(&content, 64 << 20, later()).unwrap().body == content);
    }
    assert_eq!(pool.counters().connections, 1);
}

#[test]
fn an_answer_that_breaks_off_is_cut_and_must_not_be_repeated() {
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsho",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "H",
    ] {
        let error = one_answer(bytes).unwrap_err();
        assert!(matches!(error, HttpError::Cut) && error.answer_began(), "{bytes:?}: {error:?}");
    }
    // Closing with a part of the request unread resets the connection: no regular end, even for an answer without
    // length, whether the reset meets the client sending or reading.
    for size in [1000, 8 << 20] {
        let server = Server::threads(|connection, _| {
            connection.read_byte();
            connection.send(b"HTTP/1.0 200 OK\r\n\r\nhalf an ans");
        });
        let error = pool(&server.url(), 1).post(&vec![b'x'; size], 100, later()).unwrap_err();
        assert!(matches!(error, HttpError::Cut | HttpError::Closed), "{size}: {error:?}");
    }
}

#[test]
fn what_is_no_http_answer_is_told_as_such() {
    let endless_line = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(100_000));
    let endless_chunk = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "x".repeat(100_000));
    for bytes in [
        "220 mail.example ESMTP\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        &endless_line,
        &endless_chunk,
    ] {
        let error = one_answer(bytes).unwrap_err();
        assert!(matches!(error, HttpError::Protocol(_)) && error.answer_began(), "{error:?}");
    }
}

#[test]
fn an_answer_given_before_the_request_was_read_is_heard() {
    let refusal = one_answer_unread(vec![b'x'; 8 << 20]);
    assert_eq!((refusal.status, &*refusal.body), (413, &b"too much"[..]));
}

/// The server answers at once, takes a little of the request, and closes.
fn one_answer_unread(request: Vec<u8>) -> Answer {
    let server = Server::threads(|connection, _| {
        connection.read_some();
        connection.send(&answer("413 Payload Too Large", "", b"too much"));
    });
    pool(&server.url(), 1).post(&request, 100, later()).unwrap()
}
