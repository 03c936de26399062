//! The configuration file: TOML, top-level keys for all commands, a section per command.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use toml::{Table, Value};

use super::{ConfigError, options};
use crate::engine::Options;

/// The section with SpamBayes's own options, which become values of `--option`.
const SPAMBAYES: &str = "spambayes";
/// A configuration is not larger than this, bytes.
const LARGEST: u64 = 1 << 20;

/// A file that has been read: values by section (empty: for all commands) and key.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) path: PathBuf,
    values: HashMap<(String, String), Vec<OsString>>,
}

impl File {
    /// Reads and checks the file. One that is not there is none, unless it `must_exist`.
    pub(super) fn read(path: PathBuf, must_exist: bool, cli: &Command) -> Result<Option<File>, ConfigError> {
        match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => return Ok(None),
            _ => {}
        }
        let text = File::text(&path)?;
        File::parse(path, &text, cli).map(Some)
    }

    /// What stands in a file, if that is one to be trusted.
    pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
        let failed = |text: &dyn std::fmt::Display| ConfigError(format!("{}: {text}", path.display()));
        let file = fs::File::open(path).map_err(|error| failed(&error))?;
        // Whoever may write it may have mail sent elsewhere.
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        if metadata.is_file() && metadata.mode() & 0o002 != 0 {
            return Err(failed(&"everybody may write it; it is not used (chmod o-w)"));
        }
        let mut text = String::new();
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
        if text.len() as u64 > LARGEST {
            return Err(failed(&"more than a megabyte; that is no configuration"));
        }
        Ok(text)
    }

    fn parse(path: PathBuf, text: &str, cli: &Command) -> Result<File, ConfigError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            ConfigError(format!("{}, line {line}: {}", path.display(), error.message()))
        })?;
        let mut file = File { path, values: HashMap::new() };
        for (key, value) in &table {
            match value {
                Value::Table(section) if key == SPAMBAYES => file.add_spambayes(section)?,
                Value::Table(section) => file.add_section(key, section, cli)?,
                value => {
                    let known = cli.get_subcommands().flat_map(options);
                    let arg = find(known, key).map_err(|known| file.unknown("", key, text_line(text, key), known))?;
                    file.add("", key, arg, value)?;
                }
            }
        }
        Ok(file)
    }

    fn add_section(&mut self, name: &str, section: &Table, cli: &Command) -> Result<(), ConfigError> {
        let Some(command) = cli.find_subcommand(name) else {
            let names = cli.get_subcommands().map(Command::get_name).chain([SPAMBAYES]);
            let near = nearest(names, name);
            return Err(ConfigError(format!("{}: there is no section [{name}]{near}", self.path.display())));
        };
        for (key, value) in section {
            let arg = find(options(command), key).map_err(|known| self.unknown(name, key, None, known))?;
            self.add(name, key, arg, value)?;
        }
        Ok(())
    }

    fn add_spambayes(&mut self, section: &Table) -> Result<(), ConfigError> {
        let mut values = Vec::new();
        for (key, value) in section {
            let list = value.as_array().map(|items| items.iter().map(scalar).collect::<Option<Vec<_>>>());
            let text = list.map_or_else(|| scalar(value), |words| words.map(|words| words.join(" ")));
            let text = text.ok_or_else(|| {
                ConfigError(format!("{}, [{SPAMBAYES}]: {key} must be a text, a number or a list", self.path.display()))
            })?;
            if let Err(error) = Options::default().set(key, &text) {
                return Err(ConfigError(format!("{}, [{SPAMBAYES}]: {error}", self.path.display())));
            }
            values.push(format!("{key}={text}").into());
        }
        self.values.insert((String::new(), super::ADDS_UP.to_owned()), values);
        Ok(())
    }

    fn add(&mut self, section: &str, key: &str, arg: &Arg, value: &Value) -> Result<(), ConfigError> {
        let wrong = |wanted: &str| ConfigError(format!("{}: {key} must be {wanted}", self.path.display()));
        let values = match (arg.get_action(), value) {
            (ArgAction::SetTrue, Value::Boolean(on)) => on.then(|| "true".into()).into_iter().collect(),
            (ArgAction::SetTrue, _) => return Err(wrong("true or false")),
            (_, Value::Array(items)) => {
                let items: Option<Vec<_>> = items.iter().map(|item| scalar(item).map(OsString::from)).collect();
                let items = items.ok_or_else(|| wrong("a list of texts or numbers"))?;
                match arg.get_value_delimiter() {
                    Some(_) => items,
                    None if matches!(arg.get_action(), ArgAction::Append) => items,
                    None => return Err(wrong("one value")),
                }
            }
            (_, value) => vec![scalar(value).ok_or_else(|| wrong("a text or a number"))?.into()],
        };
        self.values.insert((section.to_owned(), key.to_owned()), values);
        Ok(())
    }

    /// What the file says of an option of a command. The section of the command comes first.
    pub(super) fn values(&self, command: &str, long: &str) -> Option<&[OsString]> {
        self.own(command, long).or_else(|| self.own("", long))
    }

    /// The same, of its own section alone.
    pub(super) fn own(&self, section: &str, long: &str) -> Option<&[OsString]> {
        self.values.get(&(section.to_owned(), long.to_owned())).map(Vec::as_slice)
    }

    fn unknown(&self, section: &str, key: &str, line: Option<usize>, known: Vec<String>) -> ConfigError {
        let near = nearest(known.iter().map(String::as_str), key);
        let place = if section.is_empty() { String::new() } else { format!(" in [{section}]") };
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        ConfigError(format!("{}{line}: unknown key {key}{place}{near}", self.path.display()))
    }
}

/// The option of this name, or the names there are.
fn find<'a>(known: impl Iterator<Item = &'a Arg>, key: &str) -> Result<&'a Arg, Vec<String>> {
    let mut names = Vec::new();
    for arg in known {
        if arg.get_long() == Some(key) {
            return Ok(arg);
        }
        names.extend(arg.get_long().map(str::to_owned));
    }
    Err(names)
}

fn text_line(text: &str, key: &str) -> Option<usize> {
    text.lines().position(|line| line.trim_start().starts_with(key)).map(|line| line + 1)
}

fn nearest<'a>(names: impl Iterator<Item = &'a str>, key: &str) -> String {
    let near = names.map(|name| (strsim::damerau_levenshtein(name, key), name)).min();
    near.filter(|(distance, _)| *distance <= key.len().max(3))
        .map_or(String::new(), |(_, name)| format!("; did you mean {name}?"))
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(on) => Some(on.to_string()),
        _ => None,
    }
}

#[cfg(test)]
pub(super) fn parse_for_test(text: &str, cli: &Command) -> Result<File, ConfigError> {
    File::parse(PathBuf::from("config.toml"), text, cli)
}
