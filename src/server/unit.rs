//! The service manager: unit files for systemd, and telling it how far we are.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The unit that runs the server.
pub const SERVICE: &str = include_str!("units/hamsift.service");
/// The unit that opens its sockets.
pub const SOCKET: &str = include_str!("units/hamsift.socket");

/// Tells the service manager something, as `sd_notify(3)` does. Nobody may be there to be told.
pub(super) fn notify(text: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&name),
    };
    let told = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address));
    if let Err(error) = told {
        log::debug!("NOTIFY_SOCKET: {error}");
    }
}

/// The time that the service manager compares with its own.
pub(super) fn monotonic_micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}
