//! The outermost transport of a connection: sees the bytes of the answer as ureq does, below it TLS or the bare socket.
//!
//! Two things depend on it. A call may be repeated only if no byte of its answer had come; and a connection may be used
//! again only if no byte is left on it, in any buffer or in the kernel, that a later call could take for its answer.

use std::io;
use std::sync::Arc;

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

use super::line::{LineState, Trouble};

/// Puts a [`Watch`] around a finished connection.
#[derive(Debug)]
pub(super) struct WatchConnector(pub(super) Arc<LineState>);

impl<In: Transport> Connector<In> for WatchConnector {
    type Out = Watch<In>;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        self.0.lock().connecting = false;
        Ok(chained.map(|inner| Watch { inner, line: Arc::clone(&self.0), before_answer: true }))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Watch<T> {
    inner: T,
    line: Arc<LineState>,
    /// Nothing of the answer has come, or only what an interim answer begins with.
    before_answer: bool,
}

impl<T: Transport> Watch<T> {
    /// Takes interim answers away that stand before the answer; returns whether nothing is left. ureq skips them too, but
    /// for `100 Continue` with header fields, which is an error to it.
    fn skip_interim(&mut self) -> bool {
        while self.before_answer {
            let input = self.inner.buffers().input();
            match interim(input) {
                Interim::Whole(length) => self.inner.buffers().input_consume(length),
                Interim::Part => return input.is_empty(),
                Interim::None => self.before_answer = false,
            }
        }
        false
    }
}

/// What bytes begin with.
#[derive(Debug, PartialEq)]
enum Interim {
    /// An interim answer of this length.
    Whole(usize),
    /// What may become one.
    Part,
    /// Anything else. `101` is none: what follows it is no HTTP.
    None,
}

fn interim(input: &[u8]) -> Interim {
    const BEGINNINGS: [&[u8]; 2] = [b"HTTP/1.1 1", b"HTTP/1.0 1"];
    let Some(rest) = BEGINNINGS.iter().find_map(|beginning| input.strip_prefix(*beginning)) else {
        return if BEGINNINGS.iter().any(|beginning| beginning.starts_with(input)) {
            Interim::Part
        } else {
            Interim::None
        };
    };
    if rest.starts_with(b"01") {
        return Interim::None;
    }
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', input) {
        if matches!(&input[start..end], b"" | b"\r") {
            return Interim::Whole(end + 1);
        }
        start = end + 1;
    }
    Interim::Part
}

impl<T: Transport> Transport for Watch<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.line.sending();
        self.before_answer = true;
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        loop {
            let more = self.inner.await_input(timeout).map_err(|error| match error {
                // TLS that ends without saying so may have been cut by anybody; ureq would take it for the regular end.
                Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.line.fail(Trouble::Reset),
                other => other,
            })?;
            if more {
                self.line.lock().began = true;
            }
            if !more || !self.skip_interim() {
                return Ok(more);
            }
        }
    }

    /// Called by ureq after an answer and before a request. After an answer the question is put off: the honest moment
    /// to ask is right before the next request.
    fn is_open(&mut self) -> bool {
        if !self.inner.buffers().input().is_empty() || !self.inner.is_open() {
            return false;
        }
        if self.line.lock().sent {
            return true;
        }
        // A read that does not wait, through all layers: TLS may hold decrypted bytes that no socket knows of, and may
        // have housekeeping of its own on the socket that is no reason to close.
        self.line.lock().no_wait = true;
        let read = self.inner.await_input(NextTimeout::default());
        self.line.lock().no_wait = false;
        matches!(read, Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interim_answers_are_told_from_the_answer() {
        for (input, want) in [
            (&b""[..], Interim::Part),
            (b"HTTP/1.", Interim::Part),
            (b"HTTP/1.1 2", Interim::None),
            (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 100 x\r\n\r\n", Interim::None),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200", Interim::Whole(25)),
            (b"HTTP/1.0 100\n\n", Interim::Whole(14)),
            (b"HTTP/1.1 100 Continue\r\nServer: x\r\n", Interim::Part),
            (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", Interim::Whole(40)),
            (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Interim::None),
            (b"<html>\r\n\r\n", Interim::None),
        ] {
            assert_eq!(interim(input), want, "{}", String::from_utf8_lossy(input));
        }
    }
}
