//! The real program against real peers. One binary, so that all suites are linked once.
#![allow(missing_docs, reason = "tests")]

mod suite;
