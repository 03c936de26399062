use super::*;

fn settings_of(toml: &str, command_line: &str) -> Result<Vec<String>, String> {
    let mut cli = Cli::command();
    cli.build();
    let file = file::parse_for_test(toml, &cli).map_err(|error| error.to_string())?;
    let words: Vec<OsString> = command_line.split(' ').map(OsString::from).collect();
    let given = cli.clone().try_get_matches_from(&words).expect("a good command line");
    let (name, given) = given.subcommand().expect("a command");
    let command = cli.find_subcommand(name).expect("just parsed");
    let all = settings(command, given, Some(&file)).map_err(|error| error.to_string())?;
    let from_file = all.into_iter().filter(|setting| matches!(setting.origin, Origin::File(_)));
    Ok(from_file
        .flat_map(|Setting { arg, values, .. }| {
            let long = arg.get_long().expect("options have names").to_owned();
            values.into_iter().map(move |value| format!("{long}={}", value.to_string_lossy())).collect::<Vec<_>>()
        })
        .collect())
}

#[test]
fn sections_go_before_keys_for_all_and_the_command_line_before_both() {
    let toml = "timeout = 7\nheader = \"X-All\"\n[filter]\nheader = \"X-Filter\"\n[pipe]\nexit-code = true\n";
    let says = |line: &str| settings_of(toml, line).expect("a good file");
    assert_eq!(says("hamsift filter -s http://h"), ["timeout=7", "header=X-Filter"]);
    assert_eq!(says("hamsift pipe --timeout 3"), ["header=X-All", "exit-code=true"]);
    assert_eq!(says("hamsift filter --header X-Line --timeout 3"), [""; 0]);
}

#[test]
fn what_contradicts_the_command_line_is_left_out() {
    let toml = "server = [\"http://a\", \"http://b\"]\n";
    assert_eq!(settings_of(toml, "hamsift filter"), Ok(vec!["server=http://a".into(), "server=http://b".into()]));
    assert_eq!(settings_of(toml, "hamsift filter --db x"), Ok(vec![]));
    assert_eq!(settings_of(toml, "hamsift filter --ham x"), Ok(vec![]));
    assert_eq!(settings_of("db = \"x\"\n", "hamsift filter -s http://h"), Ok(vec![]));
}

#[test]
fn mistakes_are_told_with_what_was_perhaps_meant() {
    let error = |toml: &str| settings_of(toml, "hamsift filter").expect_err(toml);
    assert_eq!(error("[filter]\ntimeuot = 5\n"), "config.toml: unknown key timeuot in [filter]; did you mean timeout?");
    assert_eq!(error("\nheadr = \"X\"\n"), "config.toml, line 2: unknown key headr; did you mean header?");
    assert_eq!(error("[fitler]\n"), "config.toml: there is no section [fitler]; did you mean filter?");
    assert!(error("[filter\n").starts_with("config.toml, line 1: "));
    assert_eq!(error("unordered = 1\n"), "config.toml: unordered must be true or false");
    assert_eq!(error("header = [\"X\", \"Y\"]\n"), "config.toml: header must be one value");
    assert!(error("[spambayes]\nham_cutof = 0.1\n").contains("ham_cutoff"));
    assert!(error("[spambayes]\nham_cutoff = 7\n").contains("ham_cutoff"));
    assert!(error("[spambayes]\nham_cutoff = {a = 1}\n").contains("ham_cutoff"));
}

#[test]
fn spambayes_options_add_up_with_those_of_the_command_line() {
    let toml = "[spambayes]\nham_cutoff = 0.1\n";
    assert_eq!(settings_of(toml, "hamsift filter"), Ok(vec!["option=ham_cutoff=0.1".into()]));
    let list = "[spambayes]\naddress_headers = [\"from\", \"to\"]\n";
    assert_eq!(settings_of(list, "hamsift filter"), Ok(vec!["option=address_headers=from to".into()]));
    assert_eq!(settings_of(toml, "hamsift filter --option spam_cutoff=0.8"), Ok(vec!["option=ham_cutoff=0.1".into()]));
}

#[test]
fn the_command_is_found_behind_options_for_all() {
    let cli = Cli::command();
    let find = |line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        find_command(&cli, &words).map(|(at, command)| (at, command.get_name().to_owned()))
    };
    assert_eq!(find("hamsift --config filter pipe"), Some((3, "pipe".into())));
    assert_eq!(find("hamsift --config=x filter"), Some((2, "filter".into())));
    assert_eq!(find("hamsift nonsense filter"), None);
    assert_eq!(find("hamsift"), None);
}
