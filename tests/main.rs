//! The real program against real peers. One binary, so that all suites are linked once.
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, reason = "tests, and their helpers")]

mod suite;
