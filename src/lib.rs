//! hamsift splits an mbox, classifies its messages concurrently through a pool of persistent XML-RPC connections, and
//! writes the annotated mbox back out, in order, byte for byte.
#![forbid(unsafe_code)]

pub mod classify;
pub mod cli;
pub mod cmd;
pub mod config;
pub mod deliver;
pub mod encode;
pub mod engine;
pub mod eval;
pub mod exit;
pub mod http;
pub mod input;
pub mod lock;
pub mod mailbox;
pub mod mbox;
pub mod message;
pub mod output;
pub mod pipeline;
pub mod plot;
pub mod report;
pub mod server;
pub mod training;
pub mod tune;
pub mod verdict;
pub mod xmlrpc;
