//! Whether the configuration can be trusted: who may write it says where mail goes, and which commands get it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

/// Refuses a configuration file, or a folder of one, that everybody may write to.
pub(super) fn check_configuration() -> anyhow::Result<()> {
    configuration().map_or(Ok(()), |path| check(&path))
}

/// Where the configuration is, by the XDG base directory specification.
fn configuration() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("hamsift/config.toml"))
}

fn check(path: &Path) -> anyhow::Result<()> {
    let metadata = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        other => other
            .map_err(|error| Failure::error(Exit::Config, format!("cannot look at {}: {error}", path.display())))?,
    };
    let us = rustix::process::geteuid().as_raw();
    let why = if metadata.mode() & 0o002 != 0 {
        "everybody may write to it"
    } else if metadata.uid() != us && metadata.uid() != 0 {
        "it belongs to somebody else"
    } else if crate::lock::is_open_to_all(path) {
        "everybody may write to its folder"
    } else {
        return Ok(());
    };
    Err(Failure::error(Exit::Config, format!("{} is not used: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_everybody_may_write_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("room");
        let path = folder.path().join("config.toml");
        assert!(check(&path).is_ok());
        fs::write(&path, "").expect("written");
        for (file, dir, good) in
            [(0o644, 0o755, true), (0o664, 0o755, true), (0o666, 0o755, false), (0o644, 0o777, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(file)).expect("ours");
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(dir)).expect("ours");
            let checked = check(&path);
            assert_eq!(checked.is_ok(), good, "{file:o} {dir:o}");
            assert!(checked.is_ok() || format!("{checked:?}").contains("config.toml"));
        }
    }
}
