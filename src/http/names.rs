//! From a host name to addresses: looked up once for the whole pool, and the address that worked tried first.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{NextTimeout, time};
use ureq::{Error, Timeout};

use super::endpoint::Endpoint;
use super::line::{LineState, Trouble};

/// The addresses of a pool's server.
#[derive(Debug)]
pub(super) struct Names {
    state: Mutex<State>,
    changed: Condvar,
    /// Nothing to look up: an IP literal or a Unix-domain socket.
    fixed: bool,
}

#[derive(Debug)]
enum State {
    Unknown,
    /// One thread is looking, the others wait: a slow name server must not cost a thread for each of them.
    Looking,
    Known(Vec<SocketAddr>),
}

impl Names {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let fixed = if endpoint.socket().is_some() {
            // ureq insists on an address; the connector does not look at it.
            Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
        } else {
            endpoint.literal()
        };
        let state = fixed.map_or(State::Unknown, |address| State::Known(vec![address]));
        Self { state: Mutex::new(state), changed: Condvar::new(), fixed: fixed.is_some() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The known addresses, or those `look_up` finds. None if `until` is over while another thread looks.
    pub(super) fn get<E>(
        &self,
        until: Instant,
        look_up: impl FnOnce() -> Result<Vec<SocketAddr>, E>,
    ) -> Result<Option<Vec<SocketAddr>>, E> {
        let mut state = self.lock();
        loop {
            match &*state {
                State::Known(addresses) => return Ok(Some(addresses.clone())),
                State::Unknown => break,
                State::Looking => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        *state = State::Looking;
        drop(state);
        // Whatever happens, panic included, the others must not wait for a look-up that nobody does.
        let mut found = Found { names: self, state: Some(State::Unknown) };
        let addresses = look_up()?;
        found.state = Some(State::Known(addresses.clone()));
        Ok(Some(addresses))
    }

    /// The address that worked is the first to be tried from now on.
    pub(super) fn worked(&self, address: SocketAddr) {
        if let State::Known(addresses) = &mut *self.lock()
            && let Some(at) = addresses.iter().position(|one| *one == address)
        {
            addresses[..=at].rotate_right(1);
        }
    }

    /// No address worked: the name may mean another by now.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        if !self.fixed && matches!(*state, State::Known(_)) {
            *state = State::Unknown;
        }
    }
}

/// Puts down what was found, or that nothing was.
struct Found<'a> {
    names: &'a Names,
    state: Option<State>,
}

impl Drop for Found<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            *self.names.lock() = state;
        }
        self.names.changed.notify_all();
    }
}

/// What ureq asks before each call, also where no connection will be opened; so it must be quick and start no thread.
#[derive(Debug)]
pub(super) struct CachingResolver(pub(super) Arc<LineState>);

impl Resolver for CachingResolver {
    fn resolve(&self, uri: &Uri, config: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let line = &self.0;
        let until = line.lock().connect_by;
        let found = line.site.names.get(until, || {
            line.lock().connecting = true;
            let left = until.saturating_duration_since(Instant::now());
            let timeout =
                NextTimeout { after: time::Duration::Exact(left), reason: Timeout::Resolve, ..NextTimeout::default() };
            DefaultResolver::default().resolve(uri, config, timeout).map(|found| found.to_vec()).map_err(|error| {
                line.fail(match error {
                    Error::Timeout(_) => Trouble::Timeout,
                    Error::Io(error) => Trouble::Connect(error.to_string()),
                    _ => Trouble::Connect("no address for this host name".to_owned()),
                })
            })
        })?;
        let Some(found) = found else {
            line.lock().connecting = true;
            return Err(line.fail(Trouble::Timeout));
        };
        let mut addresses = self.empty();
        found.into_iter().for_each(|address| addresses.push(address));
        Ok(addresses)
    }
}

impl Endpoint {
    /// Address and port, if the host is an IP address.
    fn literal(&self) -> Option<SocketAddr> {
        let host = self.uri.host()?.trim_start_matches('[').trim_end_matches(']');
        let default_port = if self.uri.scheme_str() == Some("https") { 443 } else { 80 };
        Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, self.uri.port_u16().unwrap_or(default_port)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn names(url: &str) -> Names {
        Names::new(&Endpoint::parse(url).unwrap())
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn known(names: &Names) -> Vec<String> {
        let found = names.get(Instant::now(), || Err(())).unwrap().unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_literal_is_never_looked_up() {
        for (url, address) in [
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://127.0.0.1/", "127.0.0.1:443"),
            ("http://[::1]:7", "[::1]:7"),
            ("unix:/s", "0.0.0.0:0"),
        ] {
            let names = names(url);
            assert_eq!(known(&names), [address]);
            names.forget();
            assert_eq!(known(&names), [address]);
        }
    }

    #[test]
    fn the_address_that_worked_comes_first_until_none_does() {
        let names = names("http://name");
        let found = || Ok::<_, ()>(["[::1]:80", "10.0.0.1:80", "10.0.0.2:80"].map(address).to_vec());
        names.get(Instant::now(), found).unwrap();
        names.worked(address("10.0.0.2:80"));
        assert_eq!(known(&names), ["10.0.0.2:80", "[::1]:80", "10.0.0.1:80"]);
        names.forget();
        assert_eq!(names.get(Instant::now(), || Err("looked up anew")), Err("looked up anew"));
    }

    #[test]
    fn one_looks_and_the_others_wait_for_it_but_not_beyond_their_time() {
        let names = names("http://name");
        std::thread::scope(|scope| {
            let late = names.get(Instant::now() + Duration::from_secs(60), || {
                let early = names.get(Instant::now() + Duration::from_millis(5), || Ok::<_, ()>(vec![]));
                assert_eq!(early, Ok(None));
                scope.spawn(|| {
                    let waited = names.get(Instant::now() + Duration::from_secs(60), || Err(()));
                    assert_eq!(waited, Ok(Some(vec![address("10.0.0.1:80")])));
                });
                Ok::<_, ()>(vec![address("10.0.0.1:80")])
            });
            assert!(late.is_ok());
        });
    }

    #[test]
    fn a_look_up_that_panics_leaves_the_others_free_to_look() {
        let names = names("http://name");
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _: Result<_, ()> = names.get(Instant::now(), || panic!("on purpose"));
        }));
        assert!(caught.is_err());
        assert_eq!(names.get(Instant::now(), || Err("looked up anew")), Err("looked up anew"));
    }
}
