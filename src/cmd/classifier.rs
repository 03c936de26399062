//! From what was typed to a [`Classifier`].

use std::sync::Arc;

use crate::classify::annotate::{Annotate, Apply};
use crate::classify::remote::{Remote, RemoteConfig};
use crate::classify::{Classifier, Method};
use crate::cli::{ApplyArg, ClassifierArgs, MethodArg};
use crate::exit::{Exit, Failure};
use crate::http::Endpoint;
use crate::verdict::Cutoffs;

/// The environment variable that names servers, separated by white space.
const SERVER_VARIABLE: &str = "HAMSIFT_SERVER";

/// How messages are annotated.
pub(super) fn annotate(args: &ClassifierArgs) -> Annotate {
    let apply = match args.apply {
        ApplyArg::Verdict => Apply::Verdict,
        ApplyArg::Subject => Apply::Subject,
        ApplyArg::Message => Apply::Message,
    };
    Annotate { header: args.header.clone(), keep_forged: args.keep_forged, apply }
}

/// The classifier that the arguments or the environment name; asks nobody yet.
pub(super) fn open(args: &ClassifierArgs, parallel: usize) -> anyhow::Result<Arc<dyn Classifier>> {
    let mut urls = args.server.clone();
    if urls.is_empty() {
        let variable = std::env::var(SERVER_VARIABLE).unwrap_or_default();
        urls = variable.split_whitespace().map(str::to_owned).collect();
    }
    if urls.is_empty() {
        return Err(Failure::error(
            Exit::Config,
            format!("no classifier: name a server with -s URL or in {SERVER_VARIABLE}"),
        ));
    }
    let parse = |url: &String| Endpoint::parse(url).map_err(|error| Failure::error(Exit::Usage, error.to_string()));
    let config = RemoteConfig {
        servers: urls.iter().map(parse).collect::<Result<_, _>>()?,
        parallel,
        timeout: args.timeout,
        connect_timeout: args.connect_timeout,
        // As OpenSSL and curl take it.
        ca_file: std::env::var_os("SSL_CERT_FILE").map(Into::into),
        retries: args.retries,
        method: match args.method {
            MethodArg::Auto => None,
            MethodArg::Filter => Some(Method::Filter),
            MethodArg::Score => Some(Method::Score),
        },
        cutoffs: Cutoffs::default(),
        header: args.header.clone(),
        keep_message: args.apply as u8 != ApplyArg::Verdict as u8,
    };
    let remote = Remote::new(config).map_err(|error| Failure::error(Exit::Config, error.to_string()))?;
    Ok(Arc::new(remote))
}
