//! The configuration: what a file and the environment say becomes arguments in front of the user's own.
//!
//! There is one definition of every option, that of the command line. A key of the file is the long name of an option, a
//! section is a command; `HAMSIFT_…` is a long name too. What the command line gives, or what would contradict it, is not
//! taken from elsewhere.

mod file;
mod save;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};

use crate::cli::Cli;
use crate::http::Endpoint;
use file::File;

pub use save::save;

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Default,
    File(String),
    Environment(String),
    CommandLine,
}

/// An option with what is in force for it.
struct Setting<'a> {
    arg: &'a Arg,
    values: Vec<OsString>,
    origin: Origin,
}

/// Options that mean nothing to a file.
const NOT_CONFIGURED: [&str; 4] = ["help", "version", "config", "config-dump"];
/// The option whose values add up, each with a name of its own.
const ADDS_UP: &str = "option";

/// Options that mean something else to this command than to all others: mail to learn from there, destinations here.
/// Only its own section and its command line can be meant.
const OF_ITS_OWN: (&str, [&str; 3]) = ("deliver", ["ham", "unsure", "spam"]);

/// The long options of a command.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| arg.get_long().is_some_and(|long| !NOT_CONFIGURED.contains(&long)))
}

/// The environment variable for an option.
fn variable(arg: &Arg) -> String {
    format!("HAMSIFT_{}", arg.get_long().unwrap_or_default().to_ascii_uppercase().replace('-', "_"))
}

/// The arguments with those of the configuration put in. Arguments that make no sense come back as they are: whoever
/// parses them next says why.
pub fn with_configuration(arguments: &[OsString]) -> Result<Vec<OsString>, ConfigError> {
    let unchanged = || Ok(arguments.to_vec());
    if named_file(arguments).is_none() && is_nothing_configured() {
        return unchanged();
    }
    let cli = Cli::command();
    let Some((at, command)) = find_command(&cli, arguments) else { return unchanged() };
    let Ok(given) = cli.clone().try_get_matches_from(arguments) else { return unchanged() };
    let Some((_, given)) = given.subcommand() else { return unchanged() };
    let file = open_file(&cli, arguments)?;
    let mut added = Vec::new();
    for Setting { arg, values, origin } in settings(command, given, file.as_ref())? {
        if matches!(origin, Origin::File(_) | Origin::Environment(_)) {
            let long = arg.get_long().unwrap_or_default();
            added.extend(values.iter().map(|value| as_argument(arg, long, value)));
        }
    }
    if added.is_empty() {
        return unchanged();
    }
    let mut all = arguments.to_vec();
    all.splice(at + 1..at + 1, added);
    match cli.try_get_matches_from(&all) {
        Ok(_) => Ok(all),
        Err(error) => {
            let text = error.to_string();
            let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let place = file.map_or("the environment (HAMSIFT_…)".to_owned(), |file| file.path.display().to_string());
            Err(ConfigError(format!("{place}: {text}")))
        }
    }
}

fn as_argument(arg: &Arg, long: &str, value: &OsStr) -> OsString {
    let mut text = OsString::from(format!("--{long}"));
    if arg.get_action().takes_values() {
        text.push("=");
        text.push(value);
    }
    text
}

/// Where the command stands, and which it is.
fn find_command<'a>(cli: &'a Command, arguments: &[OsString]) -> Option<(usize, &'a Command)> {
    let mut skip = false;
    for (at, argument) in arguments.iter().enumerate().skip(1) {
        if std::mem::take(&mut skip) {
            continue;
        }
        skip = argument == "--config";
        if let Some(command) = argument.to_str().and_then(|name| cli.find_subcommand(name)) {
            return Some((at, command));
        }
        if !argument.to_str()?.starts_with('-') {
            return None;
        }
    }
    None
}

/// The value of `--config`, wherever it stands.
fn named_file(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    None
}

fn open_file(cli: &Command, arguments: &[OsString]) -> Result<Option<File>, ConfigError> {
    let named = named_file(arguments).or_else(named_by_variable);
    let must_exist = named.is_some();
    named.or_else(default_path).map_or(Ok(None), |path| File::read(path, must_exist, cli))
}

/// The file that the environment names.
fn named_by_variable() -> Option<PathBuf> {
    std::env::var_os("HAMSIFT_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `$XDG_CONFIG_HOME/hamsift/config.toml`, or the same in `~/.config` (XDG Base Directory Specification).
fn default_path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    base.map(|base| base.join("hamsift/config.toml"))
}

/// Whether there is neither a variable nor a file: then all the rest can be spared, which takes as long as a delivery.
fn is_nothing_configured() -> bool {
    let is_missing = |path: PathBuf| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let is_ours = |name: OsString| name.as_encoded_bytes().starts_with(b"HAMSIFT_");
    !std::env::vars_os().any(|(name, _)| is_ours(name)) && default_path().is_none_or(is_missing)
}

/// What is in force for each option of a command.
fn settings<'a>(
    command: &'a Command,
    given: &ArgMatches,
    file: Option<&File>,
) -> Result<Vec<Setting<'a>>, ConfigError> {
    let is_given = |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let is_set = |arg: &Arg| std::env::var_os(variable(arg)).is_some_and(|value| !value.is_empty());
    // What contradicts the command line is meant for other days; and the environment comes before the file.
    let by_line = contradicted(command, &is_given);
    let by_environment = contradicted(command, &|arg| {
        is_set(arg)
            && options(command).any(|option| option.get_id() == arg.get_id())
            && !by_line.contains(arg.get_id().as_str())
    });
    let mut settings: Vec<Setting> = Vec::new();
    for arg in options(command) {
        let adds_up = arg.get_long() == Some(ADDS_UP);
        let long = arg.get_long().unwrap_or_default();
        let is_its_own = command.get_name() == OF_ITS_OWN.0 && OF_ITS_OWN.1.contains(&long);
        let elsewhere = || -> Result<Option<(Vec<OsString>, Origin)>, ConfigError> {
            if by_line.contains(arg.get_id().as_str()) {
                return Ok(None);
            }
            // Of two variables that contradict each other the first option counts, as it does without any.
            let conflicts = command.get_arg_conflicts_with(arg);
            let taken = settings.iter().filter(|setting| matches!(setting.origin, Origin::Environment(_)));
            let beaten = taken.into_iter().any(|taken| {
                conflicts.iter().any(|other| other.get_id() == taken.arg.get_id())
                    || command.get_arg_conflicts_with(taken.arg).iter().any(|other| other.get_id() == arg.get_id())
            });
            if let Some(value) =
                std::env::var_os(variable(arg)).filter(|value| !value.is_empty() && !beaten && !is_its_own)
            {
                return Ok(Some((from_variable(arg, value)?, Origin::Environment(variable(arg)))));
            }
            if by_environment.contains(arg.get_id().as_str()) {
                return Ok(None);
            }
            let name = command.get_name();
            let found = file.and_then(|file| {
                let values = if is_its_own { file.own(name, long) } else { file.values(name, long) };
                Some((values?, file))
            });
            Ok(found.map(|(values, file)| (values.to_vec(), Origin::File(file.path.display().to_string()))))
        };
        let (values, origin) = match (is_given(arg), elsewhere()?) {
            (true, Some(found)) if adds_up => found,
            (true, _) => (raw_values(given, arg), Origin::CommandLine),
            (false, Some(found)) => found,
            (false, None) => (raw_values(given, arg), Origin::Default),
        };
        settings.push(Setting { arg, values, origin });
    }
    Ok(settings)
}

/// The options that cannot be used with one of those for which `is_given` holds.
fn contradicted<'a>(command: &'a Command, is_given: &dyn Fn(&Arg) -> bool) -> HashSet<&'a str> {
    let mut contradicted = HashSet::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            if is_given(arg) {
                contradicted.insert(other.get_id().as_str());
            }
            if is_given(other) {
                contradicted.insert(arg.get_id().as_str());
            }
        }
    }
    contradicted
}

fn raw_values(given: &ArgMatches, arg: &Arg) -> Vec<OsString> {
    let raw = given.try_get_raw(arg.get_id().as_str()).ok().flatten();
    raw.map(|values| values.map(OsStr::to_os_string).collect()).unwrap_or_default()
}

/// What a variable says: a list is separated by white space, a switch is on or off.
fn from_variable(arg: &Arg, value: OsString) -> Result<Vec<OsString>, ConfigError> {
    let text = value.to_str().map(str::to_ascii_lowercase);
    match (arg.get_action(), text.as_deref()) {
        (ArgAction::SetTrue, Some("1" | "true" | "yes" | "on")) => Ok(vec!["true".into()]),
        (ArgAction::SetTrue, Some("0" | "false" | "no" | "off")) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err(ConfigError(format!("{}: must be true or false", variable(arg)))),
        (ArgAction::Append, Some(_)) => {
            Ok(value.to_str().unwrap_or_default().split_whitespace().map(OsString::from).collect())
        }
        _ => Ok(vec![value]),
    }
}

/// What is in force, for one command or for all, as a configuration file with remarks. Arguments behind the command's name
/// are taken for those of a run.
pub fn dump(arguments: &[OsString]) -> Result<String, ConfigError> {
    let cli = Cli::command();
    let file = open_file(&cli, arguments)?;
    let found = find_command(&cli, arguments).map(|(at, command)| (command, &arguments[at..]));
    let commands: Vec<(&Command, &[OsString])> = match found {
        Some(one) => vec![one],
        None => cli.get_subcommands().map(|command| (command, &[][..])).collect(),
    };
    let mut out = String::new();
    for (command, rest) in commands {
        // Required arguments may be missing here.
        let mut lenient = command.clone().ignore_errors(true);
        let mut words = vec![OsString::from(command.get_name())];
        words.extend(rest.iter().skip(1).cloned());
        let Ok(given) = lenient.try_get_matches_from_mut(words) else { continue };
        let built = lenient;
        let settings = settings(&built, &given, file.as_ref())?;
        if settings.is_empty() {
            continue;
        }
        out.push_str(&format!("[{}]\n", command.get_name()));
        for Setting { arg, values, origin } in settings {
            out.push_str(&line(arg, &values, &origin));
        }
        out.push('\n');
    }
    Ok(out)
}

fn line(arg: &Arg, values: &[OsString], origin: &Origin) -> String {
    let long = arg.get_long().unwrap_or_default();
    // A JSON text is a TOML text.
    let quote = |value: &OsString| {
        let value = value.to_string_lossy();
        // A server's URL may hold a password.
        let shown = if long == "server" {
            Endpoint::parse(&value).map_or("?".into(), |url| url.to_string())
        } else {
            value.into()
        };
        serde_json::Value::from(shown).to_string()
    };
    let value = match (arg.get_action(), values) {
        (ArgAction::SetTrue, values) => values.iter().any(|value| value == "true").to_string(),
        (_, []) => return format!("# {long}: not set\n"),
        (ArgAction::Append, values) => format!("[{}]", values.iter().map(quote).collect::<Vec<_>>().join(", ")),
        (_, values) => values.iter().map(quote).collect::<Vec<_>>().join(", "),
    };
    let origin = match origin {
        Origin::Default => "default".to_owned(),
        Origin::File(path) => path.clone(),
        Origin::Environment(name) => name.clone(),
        Origin::CommandLine => "command line".to_owned(),
    };
    format!("{long} = {value}  # {origin}\n")
}

#[cfg(test)]
mod tests;
