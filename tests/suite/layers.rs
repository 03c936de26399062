//! A file may use its own room and those below it. This keeps the house as it was built.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::harness::file;

/// The rooms of each layer, from the ground up.
const LAYERS: [&[&str]; 6] = [
    &["encode"],
    &["message", "verdict", "exit", "xmlrpc", "http", "lock", "input", "output", "plot", "report"],
    &["mbox", "pipeline", "engine", "tune"],
    &["classify", "deliver", "eval", "mailbox", "training"],
    &["cli", "config", "server"],
    &["cmd"],
];

/// Uses within a layer, each with its reason.
const BESIDE: [(&str, &str, &str); 3] = [
    ("lock", "output", "whether two names are one file, and a name beside another, are questions of both"),
    ("training", "mailbox", "training is reading mailboxes into a database"),
    ("config", "cli", "a configuration is nothing but options of the command line, given elsewhere"),
];

fn layer_of(room: &str) -> usize {
    LAYERS.iter().position(|rooms| rooms.contains(&room)).unwrap_or_else(|| panic!("{room} is in no layer"))
}

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a source file names behind `crate::`, also in `crate::{a, b::c}`.
fn uses(text: &str) -> BTreeSet<String> {
    let word =
        |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut rooms = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            rooms.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut starts = vec![0];
        for (at, char) in group.char_indices() {
            match char {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => starts.push(at + 1),
                _ => {}
            }
        }
        rooms.extend(starts.into_iter().map(|at| word(&group[at..])).filter(|room| !room.is_empty()));
    }
    rooms
}

#[test]
fn every_file_uses_only_what_is_below_it() {
    let root = file("src");
    let (mut files, mut wrong) = (Vec::new(), Vec::new());
    sources(&root, &mut files);
    assert!(files.len() > 40, "{}", files.len());
    for path in files {
        let inner = path.strip_prefix(&root).expect("found there");
        let room = inner.iter().next().expect("a name").to_string_lossy();
        let room = room.trim_end_matches(".rs");
        if matches!(room, "main" | "lib") {
            continue;
        }
        for used in uses(&fs::read_to_string(&path).expect("text")) {
            let beside = BESIDE.iter().any(|(from, to, _)| (*from, *to) == (room, used.as_str()));
            if used != room && layer_of(&used) >= layer_of(room) && !beside {
                wrong.push(format!("{}: crate::{used}", inner.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn groups_of_uses_are_understood() {
    let text = "use crate::{a::{b, c}, d,\n e::f};\nuse crate::g::h; crate::i(); pub(crate) use x;";
    assert_eq!(uses(text).into_iter().collect::<Vec<_>>(), ["a", "d", "e", "g", "i"]);
}

#[test]
fn lib_names_every_room_and_main_stays_small() {
    let lib = fs::read_to_string(file("src/lib.rs")).expect("text");
    for room in lib.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
        layer_of(room.trim_end_matches(';'));
    }
    let main = fs::read_to_string(file("src/main.rs")).expect("text");
    assert!(main.lines().count() <= 40, "{}", main.lines().count());
}
