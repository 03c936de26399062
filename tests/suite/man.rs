//! The manual page and the program agree on the options of every command.

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory;
use hamsift::cli::Cli;

use super::harness::file;

/// The options in the headings of a list item: `.It Fl s , Fl -server Ar URL` has `-s` and `--server`.
fn options_of(item: &str) -> impl Iterator<Item = String> + '_ {
    let words: Vec<_> = item.split_whitespace().collect();
    let flags: Vec<_> = words.windows(2).filter(|pair| pair[0] == "Fl").map(|pair| format!("-{}", pair[1])).collect();
    flags.into_iter()
}

#[test]
fn every_option_is_in_the_page_and_no_other() {
    let page = std::fs::read_to_string(file("man/hamsift.1")).expect("the page");
    let mut documented = BTreeMap::<String, BTreeSet<String>>::new();
    let mut read = |page: &str, command: Option<&str>| {
        let mut section = command.unwrap_or_default().to_owned();
        for line in page.lines() {
            if let (None, Some(title)) = (command, line.strip_prefix(".Ss ").or(line.strip_prefix(".Sh "))) {
                section = title.strip_prefix("hamsift ").unwrap_or("").to_owned();
            }
            if let Some(item) = line.strip_prefix(".It ").filter(|_| !section.is_empty()) {
                documented.entry(section.clone()).or_default().extend(options_of(item));
            }
        }
    };
    read(&page, None);
    // Pages of their own.
    let own = [("deliver", "man/hamsift-deliver.1"), ("serve", "man/hamsift-serve.8")];
    for (command, path) in own {
        read(&std::fs::read_to_string(file(path)).expect("the page"), Some(command));
    }
    for command in Cli::command().get_subcommands() {
        let mut defined = BTreeSet::new();
        for option in command.get_opts().filter(|option| !option.is_hide_set()) {
            defined.extend(option.get_short().map(|short| format!("-{short}")));
            defined.extend(option.get_long().map(|long| format!("--{long}")));
        }
        // -h and -V are told once, for all commands.
        let there = documented.remove(command.get_name()).unwrap_or_default();
        let there: BTreeSet<_> = there.into_iter().filter(|name| name != "-h" && name != "--help").collect();
        let missing: Vec<_> = defined.difference(&there).collect();
        let invented: Vec<_> = there.difference(&defined).collect();
        assert!(missing.is_empty() && invented.is_empty(), "{}: {missing:?} {invented:?}", command.get_name());
        let name = command.get_name();
        let is_there = own.iter().any(|(own, _)| *own == name) || page.contains(&format!(".Ss hamsift {name}\n"));
        assert!(is_there, "{name} has no section");
    }
    assert!(documented.is_empty(), "sections of no command: {documented:?}");
}
