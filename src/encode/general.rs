//! The general way: everything goes through a `std::io::Write`, and base64 through `std::fmt`.

use std::io::Write;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use super::Way;

/// See the module.
#[derive(Debug)]
pub enum General {}

impl Way for General {
    fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
        let stream: &mut dyn Write = out;
        // Writing to memory cannot fail.
        let _ = stream.write_all(bytes);
    }

    fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
        let stream: &mut dyn Write = out;
        let _ = write!(stream, "{}", Base64Display::new(bytes, &STANDARD));
    }
}
