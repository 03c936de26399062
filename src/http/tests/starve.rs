//! Servers that answer one connection at a time, and those that only look like it.

use std::sync::{Arc, mpsc};

use super::server::{Server, ok};
use super::*;

#[test]
fn a_server_that_answers_one_connection_only_is_noticed_and_every_call_answered() {
    let server = Server::single(|connection, _| {
        while let Some(request) = connection.request() {
            // The work of a call: so that those on the good connection outlast the judge's patience with the others.
            std::thread::sleep(Duration::from_millis(1));
            connection.send(&ok(&request.body));
        }
    });
    let pool = pool(&server.url(), 4);
    echo_calls(&pool, 4, 150);
    // Four, and on a slow machine one more on trial; each but the good one costs one request sent again.
    let counters = pool.counters();
    assert!(counters.connections > 1, "{counters:?}");
    assert_eq!(counters.repeats, counters.connections - 1, "{counters:?}");
    assert_eq!(counters.requests, 600 + counters.repeats, "{counters:?}");
    let notes = pool.take_notes();
    assert_eq!(
        notes,
        [format!("{}/RPC2 answers one connection at a time; going on with one connection", server.url())]
    );
    assert!(pool.take_notes().is_empty());
}

#[test]
fn few_calls_are_enough_to_notice() {
    let server = Server::single(echo);
    let pool = pool(&server.url(), 4);
    let start = Instant::now();
    echo_calls(&pool, 4, 1);
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(pool.take_notes().len(), 1);
}

/// A server with two threads, each of which stays with its connection.
fn two_threads(handle: impl Fn(&mut Connection, usize) + Send + Sync + 'static) -> Server {
    let (sender, connections) = mpsc::channel();
    let (connections, handle) = (Arc::new(std::sync::Mutex::new(connections)), Arc::new(handle));
    for _ in 0..2 {
        let (connections, handle) = (Arc::clone(&connections), Arc::clone(&handle));
        std::thread::spawn(move || {
            loop {
                let next = connections.lock().unwrap().recv();
                let Ok((mut connection, nth)) = next else { return };
                handle(&mut connection, nth);
            }
        });
    }
    Server::start(move |connection, nth| sender.send((connection, nth)).unwrap())
}

#[test]
fn the_connections_beyond_those_that_a_server_has_threads_for_take_turns() {
    // The calls of one thread, so that the others' are over before, after, or never.
    for calls in [1, 40] {
        let server = two_threads(|connection, _| {
            while let Some(request) = connection.request() {
                // The work of a call: so that they outlast the patience with those that wait.
                std::thread::sleep(Duration::from_millis(10));
                connection.send(&ok(&request.body));
            }
        });
        let pool = pool(&server.url(), 5);
        let start = Instant::now();
        echo_calls(&pool, 5, calls);
        assert!(start.elapsed() < Duration::from_secs(10));
        let counters = pool.counters();
        // One may be closed in the moment when its next call begins.
        assert_eq!(counters.requests, 5 * calls as u64 + counters.repeats);
        assert!((5..100).contains(&counters.connections), "{counters:?}");
        assert!(pool.take_notes().is_empty());
    }
}

#[test]
fn a_large_request_nobody_reads_is_starved_too() {
    let server = Server::single(echo);
    let pool = pool(&server.url(), 2);
    echo_calls(&pool, 1, 2);
    std::thread::scope(|scope| {
        let large = vec![b'x'; 20 << 20];
        scope.spawn(|| echo_calls(&pool, 1, 200));
        let pool = &pool;
        scope.spawn(move || assert!(pool.post(&large, 64 << 20, later()).unwrap().body == large));
    });
}

#[test]
fn a_server_of_http_1_0_with_one_thread_is_only_slow() {
    let server = Server::single(|connection, _| {
        let Some(request) = connection.request() else { return };
        std::thread::sleep(Duration::from_millis(10));
        let head = format!("HTTP/1.0 200 OK\r\nContent-length: {}\r\n\r\n", request.body.len());
        connection.send(&[head.as_bytes(), &request.body].concat());
    });
    let pool = pool(&server.url(), 4);
    echo_calls(&pool, 4, 20);
    assert_eq!((pool.counters().connections, pool.counters().repeats), (80, 0));
    assert!(pool.take_notes().is_empty());
}

#[test]
fn one_slow_message_among_many_is_waited_for() {
    let (others_done, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let server = Server::threads(move |connection, _| {
        while let Some(request) = connection.request() {
            if request.body == b"slow" {
                wait.lock().unwrap().recv().unwrap();
            }
            connection.send(&ok(&request.body));
        }
    });
    let pool = pool(&server.url(), 3);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| pool.post(b"slow", 10, later()));
        let until = soon(400);
        while Instant::now() < until {
            echo_calls(&pool, 2, 20);
        }
        others_done.send(()).unwrap();
        assert_eq!(slow.join().unwrap().unwrap().body, b"slow");
    });
    assert_eq!((pool.counters().repeats, pool.take_notes().len()), (0, 0));
}
