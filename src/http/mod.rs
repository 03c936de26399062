//! HTTP client for posting documents to one server.

mod endpoint;

pub use endpoint::{Endpoint, UrlError};
