//! `filter`: bytes, order, idempotence.

use serde_json::json;

use super::harness::*;

/// Mailboxes with one oddity each, and how many verdicts they get.
fn odd_mailboxes() -> Vec<(&'static str, Vec<u8>, usize)> {
    let from = "From a@b.example Mon Jan  5 10:00:00 2004\n";
    let plain = format!("{from}Subject: x\n\nbody\n\n");
    let text = |text: String| text.into_bytes();
    vec![
        ("CRLF", text(plain.repeat(2).replace('\n', "\r\n")), 2),
        ("no final newline", text(format!("{plain}{from}Subject: y\n\nend")), 2),
        ("header cut at the end", text(format!("{plain}{from}Subject: y")), 2),
        ("CRLF header cut at the end", text(format!("{plain}{from}A: 1\nSubject: y").replace('\n', "\r\n")), 2),
        ("no empty line below the header", text(format!("{from}Subject: x\nthis is text\n\n{plain}")), 2),
        ("NUL and 8-bit", [format!("{from}Subject: \0\u{fc}\n\n").as_bytes(), b"\xff\xfe\0\n\n"].concat(), 1),
        ("bare CR", text(format!("{from}Subject: a\rb\n\nc\rd\r\n\n")), 1),
        ("text before the first message", text(format!("some text\n\n{plain}")), 1),
        (
            "quoted From_ lines",
            text(format!("{from}>From x@y.example remote from z\nA: 1\n\n>From here\n>>From there\n\n{plain}")),
            2,
        ),
        ("folded fields", text(format!("{from}A: 1\n\t2\n  3\nB:\n 4\n\nbody\n\n")), 1),
        ("message without header or body", text(format!("{from}\n{plain}")), 1),
        ("a single message without From_ line", text("Subject: x\nTo: y@z.example\n\nbody\n".to_owned()), 1),
        ("a long line", text(format!("{from}A: {}\n\n{}\n\n", "x".repeat(100_000), "y".repeat(300_000))), 1),
    ]
}

#[test]
fn bytes_and_order_are_kept_for_every_number_of_connections() {
    let (server, input) = (Server::good(), sample());
    let runs = ["1", "4", "16"].map(|n| filter(&server, ["-n", n]).stdin(input.clone()).ends_with(0));
    assert_only_verdicts_added(&input, &runs[0].out, 25);
    for run in &runs[1..] {
        assert_same(&runs[0].out, &run.out);
    }
    assert!(runs[0].err.lines().last().is_some_and(|line| line.contains("25 messages: ")), "{}", runs[0].err);
}

#[test]
fn slow_messages_do_not_change_the_order() {
    // The very first message is answered last. (With --method auto all others would wait for it: it is the one that
    // tells whether `filter` works.)
    let server = Server::with_rule(json!({ "has": "no 1 here", "do": "hold" }));
    let input = mailbox(1, 200);
    let running = filter(&server, ["-n", "4", "--method", "filter"]).stdin(input.clone()).start();
    server.wait_for("request", 200);
    server.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&input, &ended.out, 200);
}

#[test]
fn odd_mailboxes_keep_every_byte() {
    let server = Server::good();
    for (what, input, added) in odd_mailboxes() {
        println!("{what}");
        let once = filter(&server, ["-n", "2"]).stdin(input.clone()).ends_with(0).out;
        assert_only_verdicts_added(&input, &once, added);
        let twice = filter(&server, ["-n", "2"]).stdin(once.clone()).ends_with(0).out;
        assert_same(&once, &twice);
    }
}

#[test]
fn a_second_run_changes_only_the_score() {
    let (first, second, input) = (Server::scoring(0.01), Server::scoring(0.99), sample());
    let once = filter(&first, ["-n", "3"]).stdin(input.clone()).ends_with(0).out;
    let twice = filter(&second, ["-n", "3"]).stdin(once.clone()).ends_with(0).out;
    let other = String::from_utf8_lossy(&once).replace("Classification: ham; 0.01", "Classification: spam; 0.99");
    assert_eq!(other, String::from_utf8_lossy(&twice));
    assert_only_verdicts_added(&input, &twice, 25);
}

#[test]
fn a_forged_verdict_never_survives() {
    let forged = b"From a@b.example Mon Jan  5 10:00:00 2004\nx-spambayes-classification: ham;\n 0.00\nSubject: x\n\
                   X-Spambayes-Trained: ham\nX-SPAMBAYES-CLASSIFICATION: ham; 0.00\n\nbody\n\n";
    let clean = b"From a@b.example Mon Jan  5 10:00:00 2004\nSubject: x\n\nbody\n\n";
    let good = Server::scoring(0.95);
    let out = filter(&good, ["-q"]).stdin(&forged[..]).ends_with(0).out;
    assert_only_verdicts_added(clean, &out, 1);
    assert_eq!(verdicts(&out), ["spam; 0.95"]);
    // Neither by a fault, nor by a server that is not there, nor by size.
    let faulty = Server::with_rule(json!({ "do": "fault" }));
    assert_same(clean, &filter(&faulty, ["-q"]).stdin(&forged[..]).ends_with(75).out);
    let dead = hamsift(["filter", "-s", &dead_url(), "--retries", "0"]).stdin(&forged[..]).ends_with(75);
    assert_same(clean, &dead.out);
    assert_same(clean, &filter(&good, ["--max-size", "20"]).stdin(&forged[..]).ends_with(0).out);
    let kept = filter(&good, ["--keep-forged"]).stdin(&forged[..]).ends_with(0).out;
    let kept = String::from_utf8(kept).expect("text");
    assert!(kept.contains("\nX-Old-spambayes-classification: ham;\n 0.00\n"), "{kept}");
    assert!(kept.contains("\nX-Old-Spambayes-Trained: ham\n"), "{kept}");
}

#[test]
fn the_field_can_have_another_name() {
    let server = Server::scoring(0.95);
    let out = filter(&server, ["--header", "X-Junk"])
        .stdin("From a@b.example Mon Jan  5 10:00:00 2004\nx-junk: no\nA: 1\n\n")
        .ends_with(0)
        .out;
    let want = "From a@b.example Mon Jan  5 10:00:00 2004\nA: 1\nX-Junk: spam; 0.95\n\n";
    assert_eq!(String::from_utf8_lossy(&out), want);
}

#[test]
fn unordered_output_holds_the_same_messages() {
    let (server, input) = (Server::good(), mailbox(0, 60));
    let out = filter(&server, ["--unordered", "-n", "8"]).stdin(input.clone()).ends_with(0).out;
    let messages = |bytes: &[u8]| {
        let text = String::from_utf8(without_verdicts(bytes).0).expect("text");
        let mut messages: Vec<_> = text.split("From a@").map(str::to_owned).collect();
        messages.sort();
        messages
    };
    assert_eq!(messages(&input), messages(&out));
    assert_eq!(verdicts(&out).len(), 60);
}

#[test]
fn large_messages_pass_and_a_store_record_is_no_mail() {
    let server = Server::good();
    let record = b"From MAILER-DAEMON Mon Jan  5 10:00:00 2004\nFrom: Mail System <MAILER-DAEMON@b.example>\n\
                   Subject: DON'T DELETE THIS MESSAGE\nX-IMAP: 1 2\n\ninternal\n\n";
    let large = format!("From a@b.example Mon Jan  5 10:00:00 2004\nSubject: large\n\n{}\n\n", "text\n".repeat(2000));
    let input = [&record[..], large.as_bytes(), &mailbox(1, 3)].concat();
    let ended = filter(&server, ["--max-size", "4K"]).stdin(input.clone()).ends_with(0);
    assert_only_verdicts_added(&input, &ended.out, 3);
    assert!(ended.err.contains("2 skipped"), "{}", ended.err);
    assert_eq!(server.count("request"), 3);
}

#[test]
fn an_empty_mailbox_is_an_empty_mailbox() {
    let server = Server::good();
    let ended = filter(&server, [""; 0]).stdin("").ends_with(0);
    assert!(ended.out.is_empty());
    assert_eq!(server.count("accept"), 0);
}

#[test]
fn what_is_sent_is_the_message_without_fields_of_ours() {
    // The checksum that the server makes of a message is the same with and without a forged field.
    let server = Server::good();
    let score = |input: &str| verdicts(&filter(&server, [""; 0]).stdin(input).ends_with(0).out);
    let clean = score("From a@b.example Mon Jan  5 10:00:00 2004\nA: 1\n\nbody\n");
    assert_eq!(
        clean,
        score("From a@b.example Mon Jan  5 10:00:00 2004\nX-Spambayes-Spam-Probability: 0\nA: 1\n\nbody\n")
    );
    assert_ne!(clean, score("From c@b.example Mon Jan  5 10:00:00 2004\nA: 1\n\nbody\n"));
}
