//! Where calls come from: TCP addresses, a Unix socket, and sockets that the service manager has opened for us.

use std::fs;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use listenfd::ListenFd;
use rustix::fs::{FlockOperation, Mode, flock};
use tokio::net::{TcpListener, UnixListener};

use super::ServeError;
use super::wire::Accepted;

/// The port of an address that has none: that of `sb_xmlrpcserver.py`.
const DEFAULT_PORT: u16 = 65000;

/// A socket that listens.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Option<SocketFile>),
}

impl Listener {
    /// The next connection, and who it is from.
    pub(super) async fn accept(&self) -> io::Result<(Accepted, Arc<str>)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // An answer is written whole, so there is nothing to wait for.
                stream.set_nodelay(true)?;
                Ok((Accepted::Tcp(stream.into_std()?), peer.to_string().into()))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred().map_or_else(|_| "?".to_owned(), |peer| peer.uid().to_string());
                Ok((Accepted::Unix(stream.into_std()?), format!("uid {uid}").into()))
            }
        }
    }

    /// Its address as a URL that `hamsift filter -s` takes.
    pub(super) fn url(&self) -> String {
        match self {
            Listener::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "?".to_owned(), |at| format!("http://{at}"))
            }
            Listener::Unix(_, Some(file)) => format!("unix:{}", file.path.display()),
            Listener::Unix(listener, None) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                format!("unix:{}", path.map_or_else(|| "?".into(), |path| path.display().to_string()))
            }
        }
    }

    /// Whether others than those on this machine can reach it.
    pub(super) fn is_remote(&self) -> bool {
        match self {
            Listener::Tcp(listener) => !listener.local_addr().is_ok_and(|at| at.ip().is_loopback()),
            Listener::Unix(..) => false,
        }
    }
}

/// Opens what is to be listened on. With sockets from the service manager, those alone.
pub(super) fn open(
    addresses: &[String],
    socket: Option<&Path>,
    allow_remote: bool,
) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = inherited()?;
    if listeners.is_empty() {
        for address in addresses {
            for at in resolve(address)? {
                if !at.ip().is_loopback() && !allow_remote {
                    return Err(ServeError::Remote(at.to_string()));
                }
                listeners.push(Listener::Tcp(tcp(at).map_err(|source| cannot(&at.to_string(), source))?));
            }
        }
        if let Some(path) = socket {
            listeners.push(unix(path).map_err(|source| cannot(&path.display().to_string(), source))?);
        }
    }
    match listeners.iter().find(|listener| listener.is_remote()) {
        Some(remote) if !allow_remote => Err(ServeError::Remote(remote.url())),
        _ => Ok(listeners),
    }
}

fn cannot(place: &str, source: io::Error) -> ServeError {
    ServeError::Listen { place: place.to_owned(), source }
}

fn tcp(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// `host:port`, `host`, `[::1]:port` or `port`.
fn resolve(address: &str) -> Result<Vec<SocketAddr>, ServeError> {
    let wrong = || ServeError::Address(address.to_owned());
    let with_port = if let Ok(port) = address.parse::<u16>() {
        format!("127.0.0.1:{port}")
    } else if address.ends_with(']') || !address.contains(':') {
        format!("{address}:{DEFAULT_PORT}")
    } else {
        address.to_owned()
    };
    let found: Vec<_> = with_port.to_socket_addrs().map_err(|_| wrong())?.collect();
    if found.is_empty() { Err(wrong()) } else { Ok(found) }
}

/// The sockets that systemd hands over (`LISTEN_FDS`).
fn inherited() -> Result<Vec<Listener>, ServeError> {
    let mut handed = ListenFd::from_env();
    let mut listeners = Vec::new();
    for number in 0..handed.len() {
        let listener = take(&mut handed, number).map_err(|source| cannot("a socket of the service manager", source))?;
        listeners.extend(listener);
    }
    Ok(listeners)
}

fn take(handed: &mut ListenFd, number: usize) -> io::Result<Option<Listener>> {
    // It stays where it is if it is of the other kind.
    if let Ok(Some(listener)) = handed.take_tcp_listener(number) {
        listener.set_nonblocking(true)?;
        return TcpListener::from_std(listener).map(|listener| Some(Listener::Tcp(listener)));
    }
    let Some(listener) = handed.take_unix_listener(number)? else { return Ok(None) };
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener).map(|listener| Some(Listener::Unix(listener, None)))
}

/// A socket's file, removed when this is dropped, unless it is another one by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Listens on a socket that only its owner can open. A socket file that nobody listens on is replaced; anything else
/// that is there stays.
fn unix(path: &Path) -> io::Result<Listener> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Two servers that start at once must not both find the same old file.
    let folder = fs::File::open(folder)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| io::Error::new(io::ErrorKind::AddrInUse, "another program holds a lock on the folder"))?;
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
        }
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there")),
        },
        Err(_) => {}
    }
    // The mode is right from the first moment. Nothing else runs yet whose files this could touch.
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = std::os::unix::net::UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path)? };
    Ok(Listener::Unix(UnixListener::from_std(listener)?, Some(file)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn inside<T>(what: impl FnOnce() -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        what()
    }

    #[test]
    fn addresses_may_be_short() {
        let first = |address| resolve(address).map(|all| all[0].to_string()).map_err(|error| error.to_string());
        assert_eq!(first("65001"), Ok("127.0.0.1:65001".into()));
        assert_eq!(first("127.0.0.1"), Ok("127.0.0.1:65000".into()));
        assert_eq!(first("[::1]"), Ok("[::1]:65000".into()));
        assert_eq!(first("[::1]:80"), Ok("[::1]:80".into()));
        for bad in ["127.0.0.1:x", "127.0.0.1:70000", "", "::1"] {
            assert!(first(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_loopback_without_leave() {
        inside(|| {
            assert!(matches!(open(&["0.0.0.0:0".into()], None, false), Err(ServeError::Remote(_))));
            assert!(matches!(open(&["[::]:0".into()], None, false), Err(ServeError::Remote(_))));
            assert_eq!(open(&["127.0.0.1:0".into()], None, false).expect("free").len(), 1);
        });
    }

    #[test]
    fn a_stale_socket_is_replaced_and_nothing_else() {
        inside(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("s");
            let first = unix(&path).expect("free");
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
            assert_eq!(unix(&path).expect_err("in use").kind(), io::ErrorKind::AddrInUse);
            drop(first);
            assert!(!path.exists(), "removed at the end");
            drop(std::os::unix::net::UnixListener::bind(&path).expect("a stale one"));
            assert!(path.exists());
            let second = unix(&path).expect("replaced");
            fs::remove_file(&path).expect("removed by somebody");
            fs::write(&path, "other").expect("written");
            drop(second);
            assert!(unix(&path).is_err());
            assert_eq!(fs::read(&path).expect("left alone"), b"other");
        });
    }
}
