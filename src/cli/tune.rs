//! What can be typed for `hamsift tune`.

use std::path::PathBuf;

use clap::Args;

use super::{ClassifierArgs, SampleArgs, TellArgs, parallel};

/// `hamsift tune`
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Mailboxes, read one after the other and many times over
    #[arg(value_name = "MBOX", required = true)]
    pub mailboxes: Vec<PathBuf>,
    // Not `--parallel`: a configured number of messages in flight is what is to be found out.
    /// Try these numbers of messages in flight
    #[arg(short = 'n', long, value_name = "N,...", value_parser = parallel, value_delimiter = ',', default_value = "1,2,4,8,16")]
    pub numbers: Vec<usize>,
    /// Measure each number so many times, in turns
    #[arg(long, value_name = "K", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Draw the throughput as an SVG picture
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write the number to use into the configuration file, for `filter`
    #[arg(long)]
    pub save: bool,
    /// Where the verdict comes from
    #[command(flatten)]
    pub classifier: ClassifierArgs,
    /// Where the verdict comes from otherwise
    #[command(flatten)]
    pub samples: SampleArgs,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
}
