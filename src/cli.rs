//! What can be typed. No behaviour: each command turns its arguments into a plan of its own.

mod deliver;
mod serve;
mod tune;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::classify::annotate::field_name;
use crate::engine::Options;
use crate::report;
use crate::verdict::Class;

pub use deliver::{DeliverArgs, FsyncArg};
pub use serve::{ServeArgs, UnitArg};
pub use tune::TuneArgs;

/// The most calls in flight; more is capped.
pub const MOST_PARALLEL: usize = 256;

/// Splits an mbox, classifies its messages concurrently, and writes it back in order, byte for byte.
#[derive(Debug, Parser)]
#[command(name = "hamsift", version, disable_help_subcommand = true, args_override_self = true, max_term_width = 100)]
pub struct CliOf<C: Subcommand> {
    /// Read this configuration file, not the default one
    #[arg(long, global = true, value_name = "FILE", help_heading = "Configuration")]
    pub config: Option<PathBuf>,
    /// Print what is in force, and where each value comes from, and do nothing else
    #[arg(long, help_heading = "Configuration")]
    pub config_dump: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: C,
}

/// All that can be typed.
pub type Cli = CliOf<Command>;

/// Reads what was typed. Making the options of all commands takes as long as delivering a message, so where the first
/// word is the command of one message, the others' are not made.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    if !arguments.get(1).is_some_and(|word| word == "pipe" || word == "deliver") {
        return Cli::try_parse_from(arguments);
    }
    let CliOf { config, config_dump, command } = CliOf::<OneMessage>::try_parse_from(arguments)?;
    Ok(Cli { config, config_dump, command: Command::OneMessage(command) })
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Annotate mailboxes: `formail -n 4 -s sb_client`, done right
    Filter(Box<FilterArgs>),
    /// Those that a mail system runs.
    #[command(flatten)]
    OneMessage(OneMessage),
    /// Classify mail for others: an XML-RPC server in the place of sb_xmlrpcserver.py
    Serve(Box<ServeArgs>),
    /// Learn from mail: mboxes, Maildirs and single messages that are known to be ham or spam
    Train(Box<TrainArgs>),
    /// Print class, score and Message-ID of each message
    Score(Box<ScoreArgs>),
    /// Look into the token database, export it, import another one
    Db(Box<DbArgs>),
    /// Tell how well the engine does on your own mail, by cross-validation
    Eval(Box<EvalArgs>),
    /// Find out how many messages in flight your server or machine is best asked with
    Tune(Box<TuneArgs>),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The commands that a mail system runs for each message.
#[derive(Debug, Subcommand)]
pub enum OneMessage {
    /// Annotate one message from standard input, as a filter for procmail, maildrop, fdm or Postfix
    Pipe(Box<PipeArgs>),
    /// Deliver one message from standard input, by its class, to mailboxes, commands or addresses
    Deliver(Box<DeliverArgs>),
}

/// Settings of the engine.
#[derive(Debug, Default, Args)]
pub struct EngineArgs {
    /// Set an option of SpamBayes's, such as ham_cutoff=0.15 (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = engine_option, help_heading = "Engine")]
    pub option: Vec<(String, String)>,
    /// Take options from a SpamBayes options file (bayescustomize.ini, .spambayesrc)
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub spambayesrc: Option<PathBuf>,
}

/// Where the verdict comes from and how it is written: what all commands that classify have in common.
#[derive(Debug, Args)]
pub struct ClassifierArgs {
    /// Ask this XML-RPC server (http://, https://, unix:/PATH); several share the load
    #[arg(short, long = "server", value_name = "URL", help_heading = "Classifier")]
    pub server: Vec<String>,
    /// Use this token database (see `hamsift train`), not a server
    #[arg(long, value_name = "FILE", help_heading = "Classifier", conflicts_with = "server")]
    pub db: Option<PathBuf>,
    /// Which XML-RPC method to call
    #[arg(long, value_enum, value_name = "METHOD", default_value_t, help_heading = "Classifier")]
    pub method: MethodArg,
    /// Give up on a message after this time, repeats included
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "60", help_heading = "Classifier")]
    pub timeout: Duration,
    /// Give up on connecting after this time
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "5", help_heading = "Classifier")]
    pub connect_timeout: Duration,
    /// Repeat a call this often if no answer began
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(..=1000), help_heading = "Classifier")]
    pub retries: u32,
    /// Pass larger messages through unclassified (suffixes K, M, G)
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "64M", help_heading = "Classifier")]
    pub max_size: u64,
    /// Name of the field that carries the verdict
    #[arg(long, value_name = "NAME", value_parser = field_name, default_value = "X-Spambayes-Classification", help_heading = "Header")]
    pub header: String,
    /// Add the clues in a field X-Spambayes-Evidence (token database only)
    #[arg(long, help_heading = "Header")]
    pub evidence: bool,
    /// Rename fields of ours that a message has already to X-Old-... rather than removing them
    #[arg(long, help_heading = "Header")]
    pub keep_forged: bool,
    /// What to take over from the server's answer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Header")]
    pub apply: ApplyArg,
    /// How the engine counts
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Mail to train on in memory for one run, rather than a server or a database.
#[derive(Debug, Default, Args)]
pub struct SampleArgs {
    /// Learn ham from this mbox, Maildir or message, in memory for this run (repeatable)
    #[arg(long, value_name = "PATH", help_heading = "Classifier", conflicts_with_all = ["server", "db"])]
    pub ham: Vec<PathBuf>,
    /// Learn spam from this mbox, Maildir or message, in memory for this run (repeatable)
    #[arg(long, value_name = "PATH", help_heading = "Classifier", conflicts_with_all = ["server", "db"])]
    pub spam: Vec<PathBuf>,
}

/// What is told, and how.
#[derive(Debug, Args)]
pub struct TellArgs {
    /// Say nothing when all is well
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Messages")]
    pub quiet: bool,
    /// Say more: one line per message
    #[arg(short, long, help_heading = "Messages")]
    pub verbose: bool,
    /// Use colour on standard error
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, help_heading = "Messages")]
    pub color: WhenArg,
}

/// `hamsift filter`
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Mailboxes, one after the other; `-` or none: standard input
    #[arg(value_name = "MBOX")]
    pub mailboxes: Vec<PathBuf>,
    /// Where the verdict comes from
    #[command(flatten)]
    pub classifier: ClassifierArgs,
    /// Where the verdict comes from otherwise
    #[command(flatten)]
    pub samples: SampleArgs,
    /// Messages in flight, or `auto` to find the best number meanwhile [default: 4 with a server, else one per CPU]
    #[arg(short = 'n', long, value_name = "N|auto", value_parser = parallel_or_auto, help_heading = "Classifier")]
    pub parallel: Option<Parallel>,
    /// Write here rather than to standard output; the file appears when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["in_place", "sort"])]
    pub output: Option<PathBuf>,
    /// Rewrite each MBOX under lock, keeping mail that arrives meanwhile
    #[arg(long, help_heading = "Output", requires = "mailboxes", conflicts_with_all = ["sort", "only", "shard", "skip", "total", "unordered"])]
    pub in_place: bool,
    /// Write ham.mbox, unsure.mbox, spam.mbox and unclassified.mbox in this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub sort: Option<PathBuf>,
    /// Write only messages of these classes (ham, unsure, spam, unclassified)
    #[arg(long, value_name = "CLASSES", value_parser = class, value_delimiter = ',', help_heading = "Output")]
    pub only: Vec<Only>,
    /// Write one JSON object per message here; CSV if the name ends in .csv
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Write one JSON object with the totals here
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub stats: Option<PathBuf>,
    /// Only split and count: no classifier is asked, nothing but the reports is written
    #[arg(long, help_heading = "Output", conflicts_with_all = ["in_place", "sort"])]
    pub dry_run: bool,
    /// Write messages as they are done, whatever their order
    #[arg(long, help_heading = "Output")]
    pub unordered: bool,
    /// Leave out the first N messages (formail's +N)
    #[arg(long, value_name = "N", default_value = "0", help_heading = "Splitting")]
    pub skip: u64,
    /// Stop after N messages (formail's -N)
    #[arg(long, value_name = "N", help_heading = "Splitting")]
    pub total: Option<u64>,
    /// Take the I-th of N byte ranges
    #[arg(long, value_name = "I/N", value_parser = shard, help_heading = "Splitting")]
    pub shard: Option<Shard>,
    /// Where messages begin
    #[arg(long, value_enum, value_name = "RULE", default_value_t, help_heading = "Splitting")]
    pub from_rule: FromRuleArg,
    /// A From_ line needs no empty line before it
    #[arg(short = 'e', long = "no-empty-line", help_heading = "Splitting")]
    pub anywhere: bool,
    /// Ignore Content-Length
    #[arg(short = 'Y', long, help_heading = "Splitting")]
    pub ignore_content_length: bool,
    /// A message has at least N header lines, its From_ line included
    #[arg(short = 'm', long, value_name = "N", help_heading = "Splitting")]
    pub min_fields: Option<u32>,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
    /// Show a progress line
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, help_heading = "Messages")]
    pub progress: WhenArg,
}

/// `hamsift pipe`
#[derive(Debug, Args)]
pub struct PipeArgs {
    /// Where the verdict comes from
    #[command(flatten)]
    pub classifier: ClassifierArgs,
    /// Where the verdict comes from otherwise
    #[command(flatten)]
    pub samples: SampleArgs,
    /// What to do with a message that cannot be classified
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Output")]
    pub on_error: OnErrorArg,
    /// Tell the verdict as exit code: 0 spam, 1 ham, 2 unsure, 3 unclassified
    #[arg(long, help_heading = "Output")]
    pub exit_code: bool,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
}

/// `hamsift train`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("mail").required(true).multiple(true).args(["ham", "spam"])))]
pub struct TrainArgs {
    /// The token database; made if it is not there
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// An mbox, a Maildir or one message of ham (repeatable)
    #[arg(long, value_name = "PATH")]
    pub ham: Vec<PathBuf>,
    /// An mbox, a Maildir or one message of spam (repeatable)
    #[arg(long, value_name = "PATH")]
    pub spam: Vec<PathBuf>,
    /// Take these messages out again, whatever class they were learned in
    #[arg(long)]
    pub forget: bool,
    /// How the engine counts
    #[command(flatten)]
    pub engine: EngineArgs,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
    /// Show a progress line
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, help_heading = "Messages")]
    pub progress: WhenArg,
}

/// `hamsift score`
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// Mboxes, Maildirs or single messages; `-` or none: standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print below each message the words that made its score (token database only)
    #[arg(long, help_heading = "Output")]
    pub clues: bool,
    /// Where the verdict comes from
    #[command(flatten)]
    pub classifier: ClassifierArgs,
    /// Where the verdict comes from otherwise
    #[command(flatten)]
    pub samples: SampleArgs,
    /// Messages in flight, or `auto` to find the best number meanwhile [default: 4 with a server, else one per CPU]
    #[arg(short = 'n', long, value_name = "N|auto", value_parser = parallel_or_auto, help_heading = "Classifier")]
    pub parallel: Option<Parallel>,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
}

/// `hamsift db`
#[derive(Debug, Args)]
pub struct DbArgs {
    /// The token database
    #[arg(long, value_name = "FILE", global = true)]
    pub db: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub action: DbAction,
}

/// `hamsift eval`
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// An mbox, a Maildir or one message of ham (repeatable)
    #[arg(long, value_name = "PATH", required = true)]
    pub ham: Vec<PathBuf>,
    /// An mbox, a Maildir or one message of spam (repeatable)
    #[arg(long, value_name = "PATH", required = true)]
    pub spam: Vec<PathBuf>,
    /// Deal the mail out over N parts, each of which is scored by what was learned from the others
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub folds: u32,
    /// What ham taken for spam costs, to find the best cutoffs
    #[arg(long, value_name = "COST", default_value = "10", value_parser = cost)]
    pub cost_fp: f64,
    /// What spam taken for ham costs
    #[arg(long, value_name = "COST", default_value = "1", value_parser = cost)]
    pub cost_fn: f64,
    /// What a message taken for neither costs
    #[arg(long, value_name = "COST", default_value = "0.2", value_parser = cost)]
    pub cost_unsure: f64,
    /// Draw the scores as an SVG picture
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// How the engine counts
    #[command(flatten)]
    pub engine: EngineArgs,
    /// What is told
    #[command(flatten)]
    pub tell: TellArgs,
    /// Show a progress line
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, help_heading = "Messages")]
    pub progress: WhenArg,
}

/// The actions of `hamsift db`.
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// Say how much has been learned
    Stats,
    /// Write all words and their counts as CSV, as SpamBayes's sb_dbexpimp does
    Export {
        /// Where to; `-`: standard output
        file: PathBuf,
    },
    /// Read an export or a pickle of SpamBayes in the place of what is there
    Import {
        /// Where from; `-`: standard input
        file: PathBuf,
        /// Add to what is there instead
        #[arg(long)]
        merge: bool,
    },
}

/// Values of `--method`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum MethodArg {
    /// Filter, unless the server's is broken
    #[default]
    Auto,
    /// The server returns the message with its verdict
    Filter,
    /// The server returns the score alone
    Score,
}

/// Values of `--apply`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum ApplyArg {
    /// The verdict
    #[default]
    Verdict,
    /// The verdict and a tag in the Subject
    Subject,
    /// The whole message
    Message,
}

/// Values of `--from-rule`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum FromRuleArg {
    /// Whatever real mailboxes need
    #[default]
    Auto,
    /// After an empty line, with sender and date
    Strict,
    /// As formail
    Formail,
    /// Every line that begins with `From `
    Any,
}

/// Values of `--color` and `--progress`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum WhenArg {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl From<WhenArg> for report::When {
    fn from(when: WhenArg) -> Self {
        match when {
            WhenArg::Auto => report::When::Auto,
            WhenArg::Always => report::When::Always,
            WhenArg::Never => report::When::Never,
        }
    }
}

impl TellArgs {
    /// How much is told.
    pub fn volume(&self) -> report::Volume {
        match (self.quiet, self.verbose) {
            (true, _) => report::Volume::Quiet,
            (false, true) => report::Volume::Verbose,
            (false, false) => report::Volume::Normal,
        }
    }
}

/// Values of `--on-error`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OnErrorArg {
    /// Pass it on unchanged, exit 0
    #[default]
    Pass,
    /// Write nothing, exit 75
    Tempfail,
}

/// Messages in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallel {
    /// As many as turn out to be best.
    Auto,
    /// So many.
    Number(usize),
}

/// Messages of this class, or those that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Only(pub Option<Class>);

/// One of several byte ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

/// The name and the value in `NAME=VALUE`, checked.
fn engine_option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Options::default().set(name.trim(), value.trim()).map_err(|error| error.to_string())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.trim_end_matches('s').parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && time <= Duration::from_secs(86_400) => Ok(time),
        _ => Err("must be above 0 and at most a day".to_owned()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| "not a number of bytes (suffixes K, M, G)".to_owned())?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or_else(|| "out of range".to_owned())
}

fn cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost| (0.0..=1e9).contains(cost));
    cost.ok_or_else(|| "must be a number from 0 to a thousand millions".to_owned())
}

fn parallel(text: &str) -> Result<usize, String> {
    match text.parse::<u64>() {
        Ok(0) | Err(_) => Err("must be a number from 1".to_owned()),
        Ok(number) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
    }
}

fn parallel_or_auto(text: &str) -> Result<Parallel, String> {
    match text {
        "auto" => Ok(Parallel::Auto),
        text => parallel(text).map(Parallel::Number).map_err(|error| format!("{error}, or auto")),
    }
}

fn class(text: &str) -> Result<Only, String> {
    match text.trim() {
        word if word.eq_ignore_ascii_case("unclassified") => Ok(Only(None)),
        word => Class::from_word(word)
            .map(|class| Only(Some(class)))
            .ok_or_else(|| "must be ham, unsure, spam or unclassified".to_owned()),
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    let parse = || {
        let (number, of) = text.split_once('/')?;
        Some(Shard { number: number.parse().ok()?, of: of.parse().ok()? })
    };
    parse()
        .filter(|shard| (1..=shard.of).contains(&shard.number))
        .ok_or_else(|| "must be I/N, with I from 1 to N".to_owned())
}

/// The first argument that is the name of a command, however wrong those before it are.
pub fn command_in(arguments: &[OsString]) -> Option<&str> {
    let cli = Cli::command();
    arguments.iter().skip(1).filter_map(|word| word.to_str()).find(|word| cli.find_subcommand(word).is_some())
}

/// Turns formail's `+SKIP` and `-TOTAL` into `--skip` and `--total`. Arguments behind `--` are names.
pub fn with_formail_numbers(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut named = false;
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let at = arguments.iter().position(|word| word == "filter").filter(|_| command_in(&arguments) == Some("filter"));
    let Some(at) = at else { return arguments };
    for argument in &mut arguments[at + 1..] {
        named |= argument == "--";
        let Some(text) = argument.to_str().filter(|_| !named) else { continue };
        let number = |sign| text.strip_prefix(sign).filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if let Some(number) = number('+') {
            *argument = format!("--skip={number}").into();
        } else if let Some(number) = number('-') {
            *argument = format!("--total={number}").into();
        }
    }
    arguments
}

#[cfg(test)]
mod tests {

    use super::*;

    fn parse(arguments: &str) -> Result<Cli, clap::Error> {
        let words = std::iter::once("hamsift").chain(arguments.split(' ')).map(OsString::from);
        Cli::try_parse_from(with_formail_numbers(words))
    }

    fn filter(arguments: &str) -> FilterArgs {
        match parse(&format!("filter {arguments}")).expect("good arguments").command {
            Command::Filter(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn formails_numbers_are_understood() {
        let args = filter("-s http://h +3 -20 -n 2 in.mbox");
        assert_eq!((args.skip, args.total, args.parallel), (3, Some(20), Some(Parallel::Number(2))));
        assert_eq!(filter("-s http://h -- +3").mailboxes, [PathBuf::from("+3")]);
        assert!(parse("filter -n -1").is_err());
        assert!(parse("filter -s http://h -n 0").is_err());
        assert_eq!(filter("-s http://h -n auto").parallel, Some(Parallel::Auto));
    }

    #[test]
    fn values_are_read_with_their_units() {
        assert_eq!(size("8K"), Ok(8192));
        assert_eq!(size("1"), Ok(1));
        assert_eq!(size("2G"), Ok(2 << 30));
        assert!(["", "K", "x", "0", "-1", "99999999999G", "1ä"].iter().all(|text| size(text).is_err()));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["", "soon", "0", "-1", "nan", "inf", "1e9"].iter().all(|text| seconds(text).is_err()));
        assert_eq!(shard("2/3"), Ok(Shard { number: 2, of: 3 }));
        assert!(["", "0/3", "4/3", "1", "1/0", "a/b", "-1/2"].iter().all(|text| shard(text).is_err()));
        let only = [Only(Some(Class::Spam)), Only(Some(Class::Ham)), Only(None)];
        assert_eq!(filter("-s http://h --only spam,Ham,unclassified").only, only);
        assert!(parallel("18446744073709551616").is_err());
    }
}
