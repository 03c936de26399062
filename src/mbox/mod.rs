//! mbox
pub mod write;
