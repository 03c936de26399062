//! `filter`: messages that are too large to be held, and come in pieces.

use super::harness::*;

const FROM: &str = "From a@b.example Mon Jan  5 10:00:00 2004\n";

/// `start`, and fields up to `length` bytes.
fn filled(start: &str, length: usize) -> String {
    let mut text = start.to_owned();
    while length - text.len() > 2000 {
        text += &format!("X-Pad: {}\n", "p".repeat(900));
    }
    let fill = "q".repeat(length - text.len() - 9);
    text + &format!("X-Fill: {fill}\n")
}

#[test]
fn forged_fields_go_wherever_the_pieces_are_cut() {
    let server = Server::good();
    let forged = "x-spambayes-CLASSIFICATION: ham;\r\n 0.00\r\n";
    let rest = |own: &str| format!("X-After: 1\n{}{own}\n{own}{}\n", filled("B: 1\n", 300 << 10), "z\n".repeat(3000));
    for before in [0, 1, 2, 15, 27, 28, 31, 32, 33, 39, 40, 41, 60] {
        let head = filled(&format!("{FROM}Subject: x\n"), (1 << 20) - before);
        let input = format!("{head}{forged}{}", rest("X-Spambayes-Trained: ham\n"));
        let own = "X-Spambayes-Trained: ham\n";
        let want = format!("{head}{}", rest(own).replacen(own, "", 1));
        let run = |option: &str| filter(&server, ["--max-size", "1K", option]).stdin(input.clone()).ends_with(0).out;
        assert_same(want.as_bytes(), &run("-q"));
        if before == 27 {
            let old = rest(own).replacen(own, "X-Old-Spambayes-Trained: ham\n", 1);
            let want = format!("{head}{}{old}", forged.replacen("x-", "X-Old-", 1));
            assert_same(want.as_bytes(), &run("--keep-forged"));
        }
    }
}

#[test]
fn a_large_message_without_from_line_is_enclosed_beside_others() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let head = filled("Subject: x\n", 2000);
    let body = |quote: &str| format!("{head}\n{}{quote}From me\n{quote}>From you\nend", "text\n".repeat(400_000));
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    std::fs::write(&a, body("")).expect("room");
    std::fs::write(&b, mailbox(1, 2)).expect("room");
    let want = format!("From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n{}\n\n", body(">"));
    let out = filter(&server, ["--max-size=1K".as_ref(), a.as_os_str(), b.as_os_str()]).ends_with(0).out;
    assert_only_verdicts_added(&[want.as_bytes(), &mailbox(1, 2)].concat(), &out, 2);
    let sorted = folder.path().join("sorted");
    filter(&server, ["--sort", sorted.to_str().expect("UTF-8"), "--max-size", "1K"]).stdin(body("")).ends_with(0);
    assert_same(want.as_bytes(), &std::fs::read(sorted.join("unclassified.mbox")).expect("written"));
    // Alone it stays as it is.
    assert_same(body("").as_bytes(), &filter(&server, ["--max-size", "1K"]).stdin(body("")).ends_with(0).out);
}
