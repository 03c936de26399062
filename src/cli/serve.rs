//! What can be typed behind `hamsift serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{EngineArgs, TellArgs, parallel, seconds, size};

/// `hamsift serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen on this address, HOST:PORT (repeatable) [default: 127.0.0.1:65000, or none with --socket]
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub listen: Vec<String>,
    /// Listen on this Unix socket, which only its owner can open
    #[arg(long, value_name = "PATH", help_heading = "Listening")]
    pub socket: Option<PathBuf>,
    /// Allow addresses that other machines can reach
    #[arg(long, help_heading = "Listening")]
    pub allow_remote: bool,
    /// Answer to this host name too, such as that of a proxy in front (repeatable)
    #[arg(long, value_name = "NAME", value_parser = host, help_heading = "Listening")]
    pub allow_host: Vec<String>,
    /// Ask for a token from this file with each call (Bearer, or Basic with the token as password)
    #[arg(long, value_name = "FILE", help_heading = "Listening")]
    pub token_file: Option<PathBuf>,
    /// Use this token database (see `hamsift train`)
    #[arg(long, value_name = "FILE", help_heading = "Classifier")]
    pub db: Option<PathBuf>,
    /// Let clients train the database; it is made if it is not there
    #[arg(long, help_heading = "Classifier")]
    pub allow_train: bool,
    /// How the engine counts
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Calls carried out at once [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = parallel, help_heading = "Limits")]
    pub workers: Option<usize>,
    /// Refuse larger requests (suffixes K, M, G); a message becomes a third larger on its way
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "96M", help_heading = "Limits")]
    pub max_body: u64,
    /// Connections at once; beyond them the longest silent ones are closed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), default_value = "1000", help_heading = "Limits")]
    pub max_connections: u64,
    /// Close a connection that is silent for this time
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "75", help_heading = "Limits")]
    pub idle_timeout: Duration,
    /// Close a connection that takes longer to send its header lines
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "15", help_heading = "Limits")]
    pub header_timeout: Duration,
    /// Wait this long for calls to end when told to stop
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "25", help_heading = "Limits")]
    pub grace: Duration,
    /// Print a unit file for systemd and end
    #[arg(long, value_enum, value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "service", help_heading = "Messages")]
    pub print_unit: Option<UnitArg>,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
}

/// Values of `--print-unit`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// The unit that runs the server
    Service,
    /// The unit that opens its sockets
    Socket,
}

fn host(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(good) {
        return Err("not a host name (without port)".to_owned());
    }
    Ok(text.trim_end_matches('.').to_ascii_lowercase())
}
