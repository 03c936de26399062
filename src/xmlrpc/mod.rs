//! The XML-RPC codec: bytes to values and back, as <http://xmlrpc.com/spec.md> has it.
//!
//! This room is pure: it owns no socket, no clock and no file, so that property tests and the fuzzer can hit everything
//! in it. It refuses to guess: whatever is not certainly a complete answer is an error, because the caller then keeps
//! the original message, while a wrong guess would cost mail. Where the decoder is looser or stricter than the
//! specification is listed, with a test for each, at the top of `decode.rs`.

mod base64;
mod decode;
mod encode;
#[cfg(test)]
mod props;
mod value;
mod xml;

pub use self::decode::{DecodeError, Limits, Response, decode_call, decode_response};
pub use self::encode::{call, call_message, fault, response};
pub use self::value::Value;
