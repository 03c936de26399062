//! Destinations as they are written, and what is found there.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::DeliverError;
use crate::lock::is_open_to_all;

/// A symbolic link leads over at most so many others, as for the system.
const MOST_LINKS: usize = 40;

/// Where a message is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// `/dev/null`: it is dropped.
    Nowhere,
    /// `PATH`: an mbox, or a Maildir that is there.
    Path(PathBuf),
    /// `PATH/`: a Maildir, made if need be.
    Maildir(PathBuf),
    /// `|COMMAND`: the standard input of this line for the shell.
    Command(String),
    /// `!ADDRESS...`: sent on.
    Addresses(Vec<String>),
}

/// Why a text is no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDestination {
    /// Nothing is there.
    #[error("empty")]
    Empty,
    /// The command or the addresses are no text.
    #[error("not UTF-8")]
    NotText,
    /// An address that a program could take for an option, or that is none.
    #[error("{0:?} is no address")]
    Address(String),
}

/// What a destination is on this machine at this moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    Nowhere,
    Mbox(PathBuf),
    Maildir { path: PathBuf, there: bool },
    Command(&'a str),
    Addresses(&'a [String]),
}

impl Destination {
    /// Reads what was written. `home` takes the place of `~`.
    pub fn parse(text: &OsStr, home: Option<&Path>) -> Result<Destination, BadDestination> {
        let bytes = text.as_bytes();
        let rest = || std::str::from_utf8(&bytes[1..]).map(str::trim).map_err(|_| BadDestination::NotText);
        match bytes {
            [] => Err(BadDestination::Empty),
            b"/dev/null" => Ok(Destination::Nowhere),
            [b'|', ..] => match rest()? {
                "" => Err(BadDestination::Empty),
                line => Ok(Destination::Command(line.to_owned())),
            },
            [b'!', ..] => addresses(rest()?),
            _ => {
                let path = match (bytes.strip_prefix(b"~/"), home) {
                    (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
                    _ => PathBuf::from(text),
                };
                Ok(if bytes.ends_with(b"/") { Destination::Maildir(path) } else { Destination::Path(path) })
            }
        }
    }

    /// What is there now.
    pub(super) fn place(&self) -> Result<Place<'_>, DeliverError> {
        match self {
            Destination::Nowhere => Ok(Place::Nowhere),
            Destination::Command(line) => Ok(Place::Command(line)),
            Destination::Addresses(addresses) => Ok(Place::Addresses(addresses)),
            Destination::Maildir(path) => {
                // Behind a slash a link is always followed; without it can be seen.
                let bare: PathBuf = path.components().collect();
                let path = resolve(&bare)?;
                let there = is_maildir(&path);
                Ok(Place::Maildir { path, there })
            }
            Destination::Path(path) => {
                let path = resolve(path)?;
                match fs::metadata(&path) {
                    _ if path == Path::new("/dev/null") => Ok(Place::Nowhere),
                    Ok(found) if found.is_dir() && is_maildir(&path) => Ok(Place::Maildir { path, there: true }),
                    Ok(found) if found.is_dir() => Err(DeliverError::refused(
                        &path,
                        "is a folder but no Maildir (with a slash at its end it becomes one)",
                    )),
                    Ok(found) if !found.is_file() => {
                        Err(DeliverError::refused(&path, "is no mailbox: no regular file"))
                    }
                    _ => Ok(Place::Mbox(path)),
                }
            }
        }
    }

    /// What would be done with a message for it.
    pub fn describe(&self) -> Result<String, DeliverError> {
        Ok(match self.place()? {
            Place::Nowhere => "dropped".to_owned(),
            Place::Mbox(path) => match fs::metadata(&path) {
                Ok(found) => format!("appended to the mbox {} ({} bytes)", path.display(), found.len()),
                Err(_) => format!("the mbox {} is made", path.display()),
            },
            Place::Maildir { path, there: true } => format!("a new file in the Maildir {}/", path.display()),
            Place::Maildir { path, there: false } => format!("the Maildir {}/ is made", path.display()),
            Place::Command(line) => format!("handed to the command {line}"),
            Place::Addresses(addresses) => format!("sent to {}", addresses.join(" ")),
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Nowhere => f.write_str("/dev/null"),
            Destination::Path(path) => write!(f, "{}", path.display()),
            Destination::Maildir(path) => write!(f, "{}", path.display()),
            Destination::Command(line) => write!(f, "|{line}"),
            Destination::Addresses(addresses) => write!(f, "!{}", addresses.join(" ")),
        }
    }
}

fn addresses(text: &str) -> Result<Destination, BadDestination> {
    let words = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let addresses: Vec<_> = words.map(str::to_owned).collect();
    match addresses.iter().find(|address| address.starts_with('-') || address.contains(char::is_control)) {
        Some(bad) => Err(BadDestination::Address(bad.clone())),
        None if addresses.is_empty() => Err(BadDestination::Empty),
        None => Ok(Destination::Addresses(addresses)),
    }
}

/// Whether the folder has what makes a Maildir.
fn is_maildir(path: &Path) -> bool {
    ["cur", "new", "tmp"].iter().all(|name| path.join(name).is_dir())
}

/// The path behind a symbolic link, if it is one that can be trusted and leads somewhere. So has each link to be that it
/// leads to: behind one of our own there may be one that anybody could have put there.
fn resolve(path: &Path) -> Result<PathBuf, DeliverError> {
    let follow = || DeliverError::file("follow the symbolic link", path);
    let mut here = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&here) {
            Ok(found) if found.is_symlink() => {
                if is_open_to_all(&here) {
                    return Err(DeliverError::refused(&here, "is a symbolic link in a folder everybody may write to"));
                }
                let target = fs::read_link(&here).map_err(follow())?;
                // Behind a slash a link is always followed.
                here = here.parent().unwrap_or(Path::new("")).join(target).components().collect();
            }
            Err(error) if here == path && error.kind() != io::ErrorKind::NotFound => {
                return Err(DeliverError::file("look at", path)(error));
            }
            _ if here == path => return Ok(here),
            _ => return fs::canonicalize(path).map_err(follow()),
        }
    }
    Err(DeliverError::refused(path, "is a symbolic link that leads over too many others"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Destination, BadDestination> {
        Destination::parse(text.as_ref(), Some(Path::new("/home/a")))
    }

    #[test]
    fn each_kind_is_known_by_its_form_and_written_back_the_same() {
        for (text, want) in [
            ("/dev/null", Destination::Nowhere),
            ("/var/mail/a", Destination::Path("/var/mail/a".into())),
            ("Mail/.Spam/", Destination::Maildir("Mail/.Spam/".into())),
            ("|cat > x", Destination::Command("cat > x".into())),
            ("!a@b.example c@d.example", Destination::Addresses(vec!["a@b.example".into(), "c@d.example".into()])),
        ] {
            let parsed = parse(text).expect(text);
            assert_eq!(parsed, want);
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(parse("~/in"), Ok(Destination::Path("/home/a/in".into())));
        assert_eq!(parse("! a@b,c@d "), parse("!a@b c@d"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "|", "|  ", "!", "! ,", "!-oQ/tmp", "!a@b -bs", "!a\u{1b}@b"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!(Destination::parse(OsStr::from_bytes(b"|\xff"), None), Err(BadDestination::NotText));
        assert!(Destination::parse(OsStr::from_bytes(b"in\xff"), None).is_ok());
    }

    #[test]
    fn links_are_followed_only_where_nobody_else_can_put_them() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("room");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "").expect("written");
        symlink("real", at("link")).expect("linked");
        symlink("/dev/null", at("null")).expect("linked");
        symlink("none", at("dangling")).expect("linked");
        let place = |name: &str| Destination::Path(at(name)).place().map(|place| format!("{place:?}"));
        assert!(place("link").expect("followed").contains("real"));
        assert_eq!(place("null").expect("followed"), "Nowhere");
        assert!(place("dangling").is_err());
        symlink("loop", at("loop")).expect("linked");
        assert!(place("loop").is_err());
        fs::create_dir(at("open")).expect("made");
        symlink("../real", at("open/link")).expect("linked");
        symlink("open/link", at("over")).expect("linked");
        symlink("open/../link", at("past")).expect("linked");
        assert!(place("over").expect("followed").contains("real"));
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o1777)).expect("ours");
        assert!(place("over").is_err() && place("past").is_ok(), "a link of ours to one that may be anybody's");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).expect("ours");
        assert!(place("link").is_err() && place("null").is_err() && place("real").is_ok());
    }
}
