//! `hamsift deliver`: what can be typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{ClassifierArgs, OnErrorArg, TellArgs, seconds};
use crate::deliver::LogFormat;
use crate::lock::Kinds;

/// `hamsift deliver`
#[derive(Debug, Args)]
pub struct DeliverArgs {
    /// Where ham goes: MBOX, MAILDIR/, /dev/null, |COMMAND or !ADDRESS (repeatable: a copy to each)
    #[arg(long, value_name = "DEST", help_heading = "Destinations")]
    pub ham: Vec<OsString>,
    /// Where unsure mail goes, and mail that could not be classified
    #[arg(long, value_name = "DEST", help_heading = "Destinations")]
    pub unsure: Vec<OsString>,
    /// Where spam goes
    #[arg(long, value_name = "DEST", help_heading = "Destinations")]
    pub spam: Vec<OsString>,
    /// Deliver as this user: the mail becomes his, and all is done with his rights
    #[arg(short = 'd', long, value_name = "USER", help_heading = "Delivery")]
    pub user: Option<String>,
    /// Envelope sender, for the From_ line; `-`: the sender as found, with a new date
    #[arg(short = 'f', long, value_name = "SENDER", allow_hyphen_values = true, help_heading = "Delivery")]
    pub sender: Option<OsString>,
    /// Which locks an mbox gets
    #[arg(
        long,
        value_enum,
        value_name = "KINDS",
        value_delimiter = ',',
        default_value = "dot,fcntl",
        help_heading = "Delivery"
    )]
    pub lock: Vec<LockArg>,
    /// Give up on a lock after this time
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "60", help_heading = "Delivery")]
    pub lock_timeout: Duration,
    /// Take a dotlock of this age for one that somebody has left behind
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "600", help_heading = "Delivery")]
    pub stale_lock: Duration,
    /// Have a message on disk before it counts as stored
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "always", default_missing_value = "always", help_heading = "Delivery")]
    pub fsync: FsyncArg,
    /// Drop a message that has come to the same place already, by its Message-ID; FILE remembers them
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = "Delivery")]
    pub dedupe: Option<Option<PathBuf>>,
    /// Give up on a command, or on sendmail, after this time
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "900", help_heading = "Delivery")]
    pub command_timeout: Duration,
    /// The program that sends mail to !ADDRESS
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/sbin/sendmail", help_heading = "Delivery")]
    pub sendmail: PathBuf,
    /// What to do with a message that cannot be classified
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Delivery")]
    pub on_error: OnErrorArg,
    /// Ask no classifier: all mail goes where unsure mail goes, without a verdict
    #[arg(long, help_heading = "Classifier")]
    pub no_classify: bool,
    /// Say on standard output where the message would go and why, and deliver nothing
    #[arg(long, help_heading = "Messages")]
    pub explain: bool,
    /// Add what was delivered to this file
    #[arg(long, value_name = "FILE", help_heading = "Messages")]
    pub log: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, help_heading = "Messages")]
    pub log_format: LogFormatArg,
    /// Where the verdict comes from
    #[command(flatten)]
    pub classifier: ClassifierArgs,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
}

/// Values of `--lock`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LockArg {
    /// MBOX.lock
    Dot,
    /// The kernel's POSIX lock
    Fcntl,
    /// The kernel's BSD lock
    Flock,
}

/// Values of `--fsync`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FsyncArg {
    /// Each message
    Always,
    /// Leave it to the system
    Never,
}

/// Values of `--log-format`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum LogFormatArg {
    /// As procmail's LOGABSTRACT, for mailstat
    #[default]
    Abstract,
    /// One JSON object per line
    Json,
}

impl From<LogFormatArg> for LogFormat {
    fn from(format: LogFormatArg) -> Self {
        match format {
            LogFormatArg::Abstract => LogFormat::Abstract,
            LogFormatArg::Json => LogFormat::Json,
        }
    }
}

impl DeliverArgs {
    /// The locks as a set.
    pub fn locks(&self) -> Kinds {
        let has = |kind| self.lock.contains(&kind);
        Kinds { dot: has(LockArg::Dot), fcntl: has(LockArg::Fcntl), flock: has(LockArg::Flock) }
    }
}
