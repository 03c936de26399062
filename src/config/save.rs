//! Writes one value into the configuration file and leaves all the rest of it as it is: order, comments, spacing.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, Value, value};

use super::ConfigError;
use super::file::File;
use crate::output::Output;

/// Sets `key` in the section of a command: in the file that is named, or else in that which is read without a name. File
/// and folder are made if they are not there. Gives the file's path.
///
/// # Errors
/// If the file is none that would be read, is not TOML, or cannot be written. Then it is as it was.
pub fn save(named: Option<PathBuf>, section: &str, key: &str, number: i64) -> Result<PathBuf, ConfigError> {
    let path = named.or_else(super::named_by_variable).or_else(super::default_path);
    let path = path.ok_or_else(|| ConfigError("no place for a configuration file: HOME is not set".to_owned()))?;
    let failed = |text: &dyn std::fmt::Display| ConfigError(format!("cannot save to {}: {text}", path.display()));
    let old = match fs::metadata(&path) {
        Ok(metadata) if !metadata.is_file() => return Err(failed(&"it is no regular file")),
        Ok(_) => File::text(&path)?,
        // A link that leads nowhere was made for something that is not there now, such as a disk.
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => String::new(),
        Err(error) => return Err(failed(&error)),
    };
    let new = with(&old, section, key, number).map_err(|text| failed(&text))?;
    write(&path, &new).map_err(|error| failed(&error))?;
    Ok(path)
}

fn with(old: &str, section: &str, key: &str, number: i64) -> Result<String, String> {
    let mut document: DocumentMut = old.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let section_item = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
    let table = section_item.as_table_like_mut().ok_or_else(|| format!("{section} is no section"))?;
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) => {
            // What surrounds a value, such as a comment behind it, hangs on it.
            let decor = there.decor().clone();
            *there = Value::from(number);
            *there.decor_mut() = decor;
        }
        None => drop(table.insert(key, value(number))),
    }
    Ok(document.to_string())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut output = Output::file(path)?;
    output.write_all(text.as_bytes())?;
    output.finish(true).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(old: &str) -> String {
        with(old, "filter", "parallel", 8).expect("a good file")
    }

    #[test]
    fn all_the_rest_stays() {
        let old = "# mine\nquiet = true   # at night\n\n[filter] # us\n  parallel = 4   # measured\nserver = [ \"http://a\",\n  'http://b' ]\n";
        assert_eq!(saved(old), old.replace("= 4", "= 8"));
        assert_eq!(saved("[filter]\nparallel = \"auto\" # so\n"), "[filter]\nparallel = 8 # so\n");
        assert_eq!(saved("filter = { parallel = 2, timeout = 3 }\n"), "filter = { parallel = 8, timeout = 3 }\n");
        assert_eq!(saved("filter.parallel = 2\n"), "filter.parallel = 8\n");
    }

    #[test]
    fn what_is_not_there_is_added() {
        assert_eq!(saved(""), "[filter]\nparallel = 8\n");
        let out = saved("parallel = 3\n\n[pipe]\nexit-code = true # yes\n");
        assert_eq!(out, "parallel = 3\n\n[pipe]\nexit-code = true # yes\n\n[filter]\nparallel = 8\n");
        assert_eq!(
            saved("[filter]\ntimeout = 3\n\n# end\n[pipe]\n"),
            "[filter]\ntimeout = 3\nparallel = 8\n\n# end\n[pipe]\n"
        );
    }

    #[test]
    fn what_makes_no_sense_is_left_alone() {
        assert!(with("filter = 3\n", "filter", "parallel", 8).is_err());
        assert!(with("[filter\n", "filter", "parallel", 8).is_err());
    }

    #[test]
    fn the_file_behind_a_link_is_written_and_nothing_else() {
        let folder = tempfile::tempdir().expect("room");
        let path = |name: &str| folder.path().join(name);
        let save = |name: &str| save(Some(path(name)), "filter", "parallel", 8);
        assert_eq!(save("deep/down/config.toml").ok(), Some(path("deep/down/config.toml")));
        assert_eq!(fs::read_to_string(path("deep/down/config.toml")).expect("made"), "[filter]\nparallel = 8\n");
        fs::write(path("real"), "[filter]\nparallel = 4\n").expect("room");
        std::os::unix::fs::symlink(path("real"), path("link")).expect("room");
        save("link").expect("saved");
        assert!(path("link").symlink_metadata().expect("there").is_symlink());
        assert_eq!(fs::read_to_string(path("real")).expect("there"), "[filter]\nparallel = 8\n");
        std::os::unix::fs::symlink("/dev/null", path("device")).expect("room");
        std::os::unix::fs::symlink(path("nothing"), path("dangling")).expect("room");
        fs::create_dir(path("folder")).expect("room");
        for odd in ["device", "dangling", "folder"] {
            assert!(save(odd).is_err(), "{odd}");
        }
        assert!(!path("nothing").exists());
    }
}
