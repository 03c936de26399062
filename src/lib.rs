//! hamsift splits an mbox, classifies its messages concurrently through a pool of persistent XML-RPC connections, and
//! writes the annotated mbox back out, in order, byte for byte.
//!
//! Rooms, lowest layer first; a room uses only rooms above it in this list:
//!
//! * [`engine`]: the embedded classifier, SpamBayes's tokens and arithmetic

pub mod engine;
