//! The `hamsift` program.
#![forbid(unsafe_code)]
fn main() {}
