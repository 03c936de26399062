//! The life of connections: how many there are, when they end, and that none carries an answer over to another call.

use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};

use super::server::{Server, answer, ok, on_unix_socket};
use super::*;

#[test]
fn there_are_as_many_connections_as_calls_at_once_and_no_more() {
    let together = Arc::new(Barrier::new(4));
    let server = Server::threads(move |connection, _| {
        while let Some(request) = connection.request() {
            // The first calls are answered only once four are there: so four connections there must be.
            if request.body.ends_with(b"-0") {
                together.wait();
            }
            connection.send(&ok(&request.body));
        }
    });
    let pool = pool(&server.url(), 4);
    assert_eq!(server.accepted(), 0, "nothing is opened in advance");
    echo_calls(&pool, 4, 200);
    let counters = pool.counters();
    assert_eq!((counters.connections, counters.requests, counters.repeats), (4, 800, 0));
    assert_eq!((server.accepted(), pool.in_flight()), (4, 0));
    assert!(pool.take_notes().is_empty());
}

#[test]
fn more_threads_than_connections_take_turns() {
    let server = Server::threads(echo);
    let pool = pool(&server.url(), 2);
    echo_calls(&pool, 8, 50);
    assert!(pool.counters().connections <= 2);
    assert_eq!(pool.counters().requests, 400);
}

#[test]
fn one_call_after_the_other_stays_on_one_connection() {
    let server = Server::threads(echo);
    let pool = pool(&server.url(), 8);
    echo_calls(&pool, 1, 100);
    assert_eq!(pool.counters().connections, 1);
}

#[test]
fn a_server_of_http_1_0_gets_a_connection_per_call() {
    let server = Server::threads(|connection, _| {
        let request = connection.request().unwrap();
        let head = format!("HTTP/1.0 200 OK\r\nContent-length: {}\r\n\r\n", request.body.len());
        connection.send(&[head.as_bytes(), &request.body].concat());
    });
    let pool = pool(&server.url(), 2);
    echo_calls(&pool, 2, 30);
    let counters = pool.counters();
    assert_eq!((counters.connections, counters.requests, counters.repeats), (60, 60, 0));
    assert!(pool.take_notes().is_empty());
}

#[test]
fn a_server_that_closes_silently_after_each_answer_is_no_trouble() {
    let server = Server::threads(|connection, _| {
        let request = connection.request().unwrap();
        connection.send(&ok(&request.body));
    });
    let pool = pool(&server.url(), 2);
    echo_calls(&pool, 2, 50);
    assert_eq!(pool.counters().connections, 100);
}

#[test]
fn a_request_that_meets_the_closing_of_a_kept_connection_is_sent_again_once() {
    let server = Server::threads(|connection, _| {
        let request = connection.request().unwrap();
        connection.send(&ok(&request.body));
        // Closes only when the second request is there: it cannot be noticed before.
        connection.request();
    });
    let pool = pool(&server.url(), 1);
    echo_calls(&pool, 1, 10);
    let counters = pool.counters();
    assert_eq!((counters.connections, counters.requests, counters.repeats), (10, 19, 9));
}

#[test]
fn a_fresh_connection_that_is_closed_is_for_the_caller_to_judge() {
    let server = Server::threads(|connection, nth| {
        let request = connection.request().unwrap();
        if nth == 0 {
            connection.send(&ok(&request.body));
            connection.request();
        }
    });
    let pool = pool(&server.url(), 1);
    pool.post(b"1", 10, later()).unwrap();
    let error = pool.post(b"2", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::Closed) && !error.answer_began(), "{error:?}");
    assert_eq!(pool.counters().requests, 3, "sent again once, not for ever");
}

#[test]
fn bytes_left_over_are_no_answer_to_the_next_call() {
    // Directly behind the answer, where they come with it.
    let glued = Server::threads(|connection, _| {
        while let Some(request) = connection.request() {
            connection.send(&[ok(&request.body), ok(b"nobody asked")].concat());
        }
    });
    echo_calls(&pool(&glued.url(), 1), 1, 10);

    // A length that is too small.
    let short = Server::threads(|connection, _| {
        while let Some(request) = connection.request() {
            let mut bytes = answer("200 OK", "", b"x");
            bytes.extend(ok(&request.body));
            connection.send(&bytes);
        }
    });
    let short_pool = pool(&short.url(), 1);
    for _ in 0..5 {
        assert_eq!(short_pool.post(b"q", 100, later()).unwrap().body, b"x");
    }
    assert_eq!(short_pool.counters().connections, 5);
}

#[test]
fn bytes_that_come_later_are_no_answer_to_the_next_call_either() {
    let (answered, after_answer) = mpsc::channel::<()>();
    let (spoiled, after_spoiling) = mpsc::channel();
    let after_answer = std::sync::Mutex::new(after_answer);
    let server = Server::threads(move |connection, nth| {
        let request = connection.request().unwrap();
        connection.send(&ok(&request.body));
        if nth == 0 {
            after_answer.lock().unwrap().recv().unwrap();
            connection.send(&ok(b"nobody asked"));
            spoiled.send(()).unwrap();
            connection.hold();
        }
    });
    let pool = pool(&server.url(), 1);
    assert_eq!(pool.post(b"1", 100, later()).unwrap().body, b"1");
    answered.send(()).unwrap();
    after_spoiling.recv().unwrap();
    assert_eq!(pool.post(b"2", 100, later()).unwrap().body, b"2");
    assert_eq!(pool.counters().connections, 2);
}

#[test]
fn a_connection_whose_answer_was_not_taken_whole_is_dropped() {
    let server = Server::threads(|connection, _| {
        while let Some(request) = connection.request() {
            connection.send(&ok(&request.body.repeat(1000)));
        }
    });
    let pool = pool(&server.url(), 1);
    for _ in 0..3 {
        assert!(matches!(pool.post(b"abc", 100, later()), Err(HttpError::TooLarge { .. })));
        assert_eq!(pool.post(b"x", 1000, later()).unwrap().body, [b'x'; 1000]);
    }
    assert_eq!(pool.counters().connections, 4);
}

#[test]
fn nobody_listens() {
    let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let pool = pool(&format!("http://user:secret@{address}"), 1);
    let error = pool.post(b"q", 10, later()).unwrap_err();
    assert!(!error.answer_began());
    assert_eq!(error.to_string(), "cannot connect: connection refused");
    assert_eq!(pool.counters().connections, 0);
}

#[test]
fn every_address_of_a_name_is_tried_and_the_one_that_works_remembered() {
    let refused = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let server = Server::threads(|connection, _| {
        let request = connection.request().unwrap();
        connection.send(&answer("200 OK", "Connection: close\r\n", &request.body));
    });
    let pool = pool("http://name.invalid", 2);
    let found = || Ok::<_, ()>(vec![refused, server.address()]);
    pool.site().names.get(later(), found).unwrap();
    echo_calls(&pool, 1, 3);
    let known = pool.site().names.get(later(), || Err(())).unwrap().unwrap();
    assert_eq!(known, [server.address(), refused]);
}

#[test]
fn localhost_is_looked_up_and_a_name_that_is_none_is_told() {
    let server = Server::threads(echo);
    let pool_of_name = pool(&format!("http://localhost:{}", server.address().port()), 4);
    echo_calls(&pool_of_name, 4, 10);
    let error = pool("http://name.invalid:1", 1).post(b"q", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
}

#[test]
fn a_unix_domain_socket_speaks_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let pool = pool(&format!("unix:{}", path.display()), 1);
    let error = pool.post(b"q", 10, later()).unwrap_err();
    assert!(error.to_string().ends_with(": no such socket"), "{error}");

    let (sender, heads) = mpsc::channel();
    on_unix_socket(&path, move |connection, _| {
        while let Some(request) = connection.request() {
            sender.send(request.head).unwrap();
            connection.send(&ok(&request.body));
        }
    });
    echo_calls(&pool, 1, 20);
    assert_eq!(pool.counters().connections, 1);
    let head = heads.recv().unwrap();
    assert!(head.starts_with("POST /RPC2 HTTP/1.1\r\n") && head.contains("host: localhost"), "{head}");
}

#[test]
fn a_call_that_panics_gives_its_place_back() {
    let server = Server::threads(echo);
    let pool = pool(&server.url(), 1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.seat_then_panic()));
    assert!(caught.is_err());
    echo_calls(&pool, 2, 5);
}

#[test]
fn no_two_calls_are_in_flight_beyond_the_limit() {
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, highest) = (Arc::clone(&at_once), Arc::clone(&most));
    let server = Server::threads(move |connection, _| {
        while let Some(request) = connection.request() {
            highest.fetch_max(count.fetch_add(1, SeqCst) + 1, SeqCst);
            std::thread::yield_now();
            count.fetch_sub(1, SeqCst);
            connection.send(&ok(&request.body));
        }
    });
    let pool = pool(&server.url(), 3);
    echo_calls(&pool, 12, 20);
    assert!(most.load(SeqCst) <= 3);
    let addresses: HashSet<_> = pool.site().names.get(later(), || Err(())).unwrap().unwrap().into_iter().collect();
    assert_eq!(addresses.len(), 1);
}
