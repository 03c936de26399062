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
        Ok(chained.map(|inner| Watch { inner, line: Arc::clone(&self.0) }))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Watch<T> {
    inner: T,
    line: Arc<LineState>,
}

impl<T: Transport> Transport for Watch<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.line.sending();
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let more = self.inner.await_input(timeout).map_err(|error| match error {
            // TLS that ends without saying so may have been cut by anybody; ureq would take it for the regular end.
            Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.line.fail(Trouble::Reset),
            other => other,
        })?;
        if more {
            self.line.lock().began = true;
        }
        Ok(more)
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
