//! HTTPS: the same promises with TLS between.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::server::{Server, ok};
use super::*;

fn testdata(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "testdata", "tls", name].iter().collect()
}

fn server_config() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(testdata("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(testdata("localhost.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap())
}

/// The connection with TLS on it. What `handle` does with it ends without the regular end of TLS.
fn secure(handle: impl Fn(&mut Connection, usize) + Send + Sync + 'static) -> impl Fn(&mut Connection, usize) {
    let config = server_config();
    move |connection, nth| {
        let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        handle(&mut Connection::new(StreamOwned::new(tls, connection.take_stream())), nth);
    }
}

fn tls_pool(server: &Server, host: &str, connections: usize) -> Pool {
    let ca_file = Some(testdata("localhost.pem"));
    let config = PoolConfig { connections, ca_file, ..PoolConfig::default() };
    let url = format!("https://{host}:{}", server.address().port());
    Pool::new(Endpoint::parse(&url).unwrap(), &config).unwrap()
}

#[test]
fn calls_over_tls_keep_their_connections() {
    let server = Server::threads(secure(echo));
    for host in ["localhost", "127.0.0.1"] {
        let pool = tls_pool(&server, host, 2);
        echo_calls(&pool, 2, 50);
        assert!(pool.counters().connections <= 2);
        let large = vec![b'x'; 3 << 20];
        assert!(pool.post(&large, 4 << 20, later()).unwrap().body == large);
    }
}

#[test]
fn a_certificate_nobody_vouches_for_is_refused() {
    let server = Server::threads(secure(echo));
    let url = format!("https://localhost:{}", server.address().port());
    let error = pool(&url, 1).post(b"q", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::Tls(_)) && !error.answer_began(), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn a_server_without_tls_is_told_as_such() {
    let server = Server::threads(|connection, _| {
        connection.read_some();
        connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = tls_pool(&server, "localhost", 1).post(b"q", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::Tls(_)), "{error:?}");
    let server = Server::threads(|connection, _| assert!(connection.read_some().is_some()));
    let error = tls_pool(&server, "localhost", 1).post(b"q", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::Tls(_)), "{error:?}");
}

#[test]
fn a_handshake_that_never_ends_is_a_connection_that_took_too_long() {
    let server = Server::threads(|connection, _| connection.hold());
    let connect_timeout = Duration::from_millis(100);
    let config = PoolConfig { connections: 1, connect_timeout, ..PoolConfig::default() };
    let pool = Pool::new(Endpoint::parse(&server.url().replace("http", "https")).unwrap(), &config).unwrap();
    let error = pool.post(b"q", 10, later()).unwrap_err();
    assert!(matches!(error, HttpError::ConnectTimeout { .. }), "{error:?}");
}

#[test]
fn an_answer_without_length_must_end_as_tls_ends() {
    let server = Server::threads(secure(|connection, _| {
        connection.request();
        connection.send(b"HTTP/1.0 200 OK\r\n\r\nmay have been cut by anybody");
    }));
    let error = tls_pool(&server, "localhost", 1).post(b"q", 100, later()).unwrap_err();
    assert!(matches!(error, HttpError::Cut), "{error:?}");
}

#[test]
fn bytes_left_over_inside_tls_are_no_answer_to_the_next_call() {
    let glued = Server::threads(secure(|connection, _| {
        while let Some(request) = connection.request() {
            connection.send(&[ok(&request.body), ok(b"nobody asked")].concat());
        }
    }));
    echo_calls(&tls_pool(&glued, "localhost", 1), 1, 20);

    // In a record of its own, which may be anywhere between the socket and the answer's buffer.
    let (answered, after_answer) = mpsc::channel::<()>();
    let (spoiled, after_spoiling) = mpsc::channel();
    let after_answer = Mutex::new(after_answer);
    let server = Server::threads(secure(move |connection, _| {
        let request = connection.request().unwrap();
        connection.send(&ok(&request.body));
        after_answer.lock().unwrap().recv().unwrap();
        connection.send(&ok(b"nobody asked"));
        spoiled.send(()).unwrap();
        connection.hold();
    }));
    let pool = tls_pool(&server, "localhost", 1);
    for _ in 0..5 {
        echo_calls(&pool, 1, 1);
        answered.send(()).unwrap();
        after_spoiling.recv().unwrap();
    }
    assert_eq!(pool.counters().connections, 5);
}

#[test]
fn a_closed_connection_is_replaced() {
    let server = Server::threads(secure(|connection, _| {
        let request = connection.request().unwrap();
        connection.send(&ok(&request.body));
        connection.request();
    }));
    let pool = tls_pool(&server, "localhost", 1);
    echo_calls(&pool, 1, 5);
    assert_eq!(pool.counters().repeats, 4);
}

#[test]
fn a_server_that_answers_one_connection_only_is_noticed_in_the_handshake() {
    let server = Server::single(secure(echo));
    let pool = tls_pool(&server, "localhost", 3);
    echo_calls(&pool, 3, 300);
    assert_eq!(pool.take_notes().len(), 1);
}

#[test]
fn certificates_that_are_none() {
    let endpoint = || Endpoint::parse("https://localhost").unwrap();
    for name in ["none.pem", "README.md", "localhost.key"] {
        let config = PoolConfig { ca_file: Some(testdata(name)), ..PoolConfig::default() };
        let error = Pool::new(endpoint(), &config).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let config = PoolConfig { connections: 0, ..PoolConfig::default() };
    assert!(Pool::new(endpoint(), &config).is_err());
}
