//! The purpose-made way: bytes are copied straight to where they go, and base64 is made by vector instructions.

use super::Way;

/// See the module.
#[derive(Debug)]
pub enum Fast {}

impl Way for Fast {
    fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend_from_slice(bytes);
    }

    fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
        // Left to itself the crate reserves no more than it needs, and many pieces would be copied again and again.
        out.reserve(super::base64_len(bytes.len()));
        base64_simd::STANDARD.encode_append(bytes, out);
    }
}
