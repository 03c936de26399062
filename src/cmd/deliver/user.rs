//! Whose mail it is: the user's inbox and files, and becoming that user.
//!
//! The rights are given up here, and then the program starts itself anew: so the environment is the user's and not that
//! of whoever called us, which cannot be had by changing it in a running process (that is unsafe with threads). Nothing
//! has been read of the message yet, so it is still there for the new start.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use nix::unistd::{User, geteuid, getuid, initgroups, setgid, setuid};

use crate::exit::{Exit, Failure};

/// Where Debian and most others keep inboxes.
const SPOOL: &str = "/var/mail";
/// What may be kept of the environment: nothing that says where mail goes or what runs.
const KEPT: [&str; 5] = ["TZ", "LANG", "LC_ALL", "SSL_CERT_FILE", "NO_COLOR"];
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Makes this process one of the user's. Returns if it is already; else starts the program anew.
pub(super) fn become_user(name: &str, uses_inbox: bool) -> anyhow::Result<()> {
    let found = User::from_name(name);
    let found = found.map_err(|error| anyhow::anyhow!("cannot look up the user {name}: {error}"))?;
    let user = found.ok_or_else(|| Failure::error(Exit::NoUser, format!("no such user: {name}")))?;
    if user.uid == geteuid() && user.uid == getuid() {
        return Ok(());
    }
    if !geteuid().is_root() {
        anyhow::bail!("only root can deliver as another user ({name})");
    }
    if uses_inbox {
        make_inbox(&user);
    }
    let failed = |what: &str, error: nix::Error| anyhow::anyhow!("cannot become {name} ({what}): {error}");
    let c_name = CString::new(name.as_bytes())?;
    initgroups(&c_name, user.gid).map_err(|error| failed("groups", error))?;
    setgid(user.gid).map_err(|error| failed("group", error))?;
    setuid(user.uid).map_err(|error| failed("user", error))?;
    if setuid(nix::unistd::ROOT).is_ok() {
        anyhow::bail!("cannot become {name}: the rights of root are still there");
    }
    let kept = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        name.starts_with("HAMSIFT_") || KEPT.contains(&&*name)
    });
    let error = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .env_clear()
        .envs(kept)
        .env("PATH", PATH)
        .env("HOME", &user.dir)
        .env("SHELL", &user.shell)
        .env("USER", name)
        .env("LOGNAME", name)
        .exec();
    anyhow::bail!("cannot start anew as {name}: {error}")
}

/// Only root can make a file in the spool folder, on most systems. What goes wrong here will be told by the delivery.
fn make_inbox(user: &User) {
    let path = PathBuf::from(SPOOL).join(&user.name);
    let made = File::options().write(true).create_new(true).mode(0o600).open(path);
    let _ = made.and_then(|file| fchown(file, Some(user.uid.as_raw()), Some(user.gid.as_raw())));
}

/// The user's inbox: `$MAIL`, or the file of his name in the spool folder.
pub(super) fn inbox() -> anyhow::Result<PathBuf> {
    let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = value("MAIL") {
        return Ok(path.into());
    }
    let name = value("USER").or_else(|| value("LOGNAME"));
    let name = name.or_else(|| User::from_uid(getuid()).ok().flatten().map(|user| user.name.into()));
    match name {
        Some(name) if !name.as_encoded_bytes().contains(&b'/') && name != ".." && name != "." => {
            Ok(PathBuf::from(SPOOL).join(name))
        }
        _ => Err(io::Error::other("nobody knows whose inbox is meant: set MAIL or USER, or name a destination").into()),
    }
}

/// Where Message-IDs are remembered if nothing is said.
pub(super) fn default_seen() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(folder.join("hamsift/message-ids"))
}
