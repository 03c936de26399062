//! `-n auto`: against servers that can do with more, that can do with one, and that refuse.

use serde_json::json;

use super::harness::*;

/// The number that it says it ended with.
#[track_caller]
fn ended_with(err: &str) -> usize {
    let line = err.lines().find_map(|line| line.strip_prefix("hamsift: -n auto: ended with "));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("it says: {err}"))
}

#[test]
fn more_are_in_flight_where_that_pays() {
    let server = Server::with_rule(json!({ "do": "delay", "seconds": 0.02 }));
    let input = mailbox(0, 600);
    let ended = filter(&server, ["-n", "auto", "-v"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 600);
    let number = ended_with(&ended.err);
    assert!(number >= 8, "{number}");
    let path = ended.err.lines().find_map(|line| line.strip_prefix("hamsift: -n auto: 4")).expect("where it went");
    assert!(path.starts_with(" (") && path.contains("/s), 8"), "{path}");
    // As many connections as were in flight at most, and no thread or socket beyond.
    assert!(server.count("accept") <= 4 * number, "{} for {number}", server.count("accept"));
    let last = ended.err.lines().last().expect("a summary");
    assert!(last.starts_with("hamsift: 600 messages: "), "{last}");
}

#[test]
fn a_server_of_one_connection_at_a_time_is_asked_one_at_a_time() {
    let (server, input) = (Server::start(&json!({ "mode": "single" })), mailbox(0, 600));
    let ended = filter(&server, ["-n", "auto"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 600);
    assert_eq!(ended_with(&ended.err), 1);
    assert_eq!(ended.err.lines().count(), 3, "a note, the number and the summary: {}", ended.err);
    assert!(server.count("accept") <= 4, "{}", server.count("accept"));
}

#[test]
fn a_server_that_refuses_more_keeps_what_it_can_take() {
    for most in [1, 3, 6] {
        let config = json!({ "most": most, "rules": [{ "do": "delay", "seconds": 0.01 }] });
        let (server, input) = (Server::start(&config), mailbox(0, 300));
        let ended = filter(&server, ["-n", "auto"]).stdin(input.clone()).ends_with(0);
        assert_only_verdicts_added(&input, &ended.out, 300);
        let number = ended_with(&ended.err);
        assert!(number <= most, "{number} of {most}");
        // It goes up again, but with care.
        assert!(server.count("refuse") <= 20, "{most}: {}", server.count("refuse"));
    }
}

#[test]
fn a_server_that_stays_with_its_connections_leaves_no_call_behind() {
    let config = json!({ "workers": 3, "rules": [{ "do": "delay", "seconds": 0.01 }] });
    let (server, input) = (Server::start(&config), mailbox(0, 1200));
    let ended = filter(&server, ["-n", "auto", "--timeout", "20"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 1200);
    assert!(ended_with(&ended.err) <= 3, "{}", ended.err);
}

#[test]
fn auto_is_a_value_wherever_a_number_is_one() {
    let folder = tempfile::tempdir().expect("room");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "parallel = \"auto\"\n").expect("room");
    let config = config.to_str().expect("UTF-8");
    let (server, input) = (Server::good(), mailbox(0, 20));
    let of_file = filter(&server, ["--config", config]).stdin(input.clone()).ends_with(0).err;
    let of_variable =
        filter(&server, [] as [&str; 0]).env("HAMSIFT_PARALLEL", "auto").stdin(input.clone()).ends_with(0).err;
    for err in [of_file, of_variable] {
        assert_eq!(ended_with(&err), 4, "there was no time for more: {err}");
    }
    let dump = hamsift(["--config", config, "--config-dump", "filter"]).ends_with(0).out;
    assert!(String::from_utf8_lossy(&dump).contains("parallel = \"auto\"  # "), "{}", String::from_utf8_lossy(&dump));
    assert_eq!(filter(&server, ["-n", "auto", "-q"]).stdin(input.clone()).ends_with(0).err, "");
    filter(&server, ["-n", "automatic"]).stdin(input.clone()).ends_with(64);

    let mail = |class: &str| file(&format!("testdata/sample/{class}.mbox")).into_os_string().into_string();
    let (ham, spam) = (mail("ham").expect("UTF-8"), mail("spam").expect("UTF-8"));
    let ended = hamsift(["filter", "--ham", &ham, "--spam", &spam, "-n", "auto"]).stdin(input).ends_with(0);
    assert!(ended.err.contains("-n auto: ") && ended.err.contains(", one per CPU"), "{}", ended.err);
    let scored = hamsift(["score", "-s", server.url(), "-n", "auto", &ham]).ends_with(0);
    assert_eq!(ended_with(&scored.err), 4);
}
