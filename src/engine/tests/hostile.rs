//! Messages made to be slow, deep or many-parted. Time is asserted loosely, a quadratic rule takes minutes here.

use std::time::{Duration, Instant};

use super::super::*;

const HEAD: &str = "From a@example.org Mon Jan  5 10:00:01 2004\nFrom: a@example.org\nMIME-Version: 1.0\n";

/// A debug build is about twenty times slower, so it gets less to do.
const SCALE: usize = if cfg!(debug_assertions) { 10 } else { 1 };

/// How many distinct tokens the message has, within the time allowed.
fn tokens(name: &str, header: &str, body: &str) -> usize {
    let message = format!("{HEAD}{header}\n{body}");
    let start = Instant::now();
    let mut set = TokenSet::new();
    set.fill(message.as_bytes(), &Options::default());
    let taken = start.elapsed();
    println!("{name}: {} bytes, {} tokens, {taken:?}", message.len(), set.len());
    let allowed = if cfg!(debug_assertions) { 10 } else { 1 };
    assert!(taken < Duration::from_secs(allowed), "{name} took {taken:?}");
    set.len()
}

#[test]
fn deep_and_many_parts() {
    let typed = "Content-Type: multipart/mixed; boundary=";
    let nested: String = (0..5000).map(|n| format!("{typed}\"b{n}\"\n\n--b{n}\n")).collect();
    let (first, rest) = nested.split_once("\n\n").unwrap();
    let with_text = format!("{rest}Content-Type: text/plain\n\ninnermost\n");
    tokens("nested", &format!("{first}\n"), &with_text);
    let mut set = TokenSet::new();
    set.fill(format!("{HEAD}{first}\n\n{with_text}").as_bytes(), &Options::default());
    assert!(set.iter().any(|token| token.word == b"innermost"), "the text at the bottom is seen");

    tokens("parts", &format!("{typed}a\n"), &("--a\n\n".repeat(200_000 / SCALE) + "--a--\n"));
    let parts = "--a\nContent-Type: text/plain; charset=x\n\n".repeat(100_000 / SCALE);
    tokens("parts with charsets", &format!("{typed}a\n"), &parts);
    let attached = "--aa\nContent-Type: message/rfc822\n\n".repeat(50_000 / SCALE);
    tokens("prefix", &format!("{typed}a\n"), &format!("--a\n{typed}aa\n\n{attached}--a--\n"));
    tokens(
        "messages in messages",
        "Content-Type: message/rfc822\n",
        &"Content-Type: message/rfc822; charset=x\n\n".repeat(100_000 / SCALE),
    );
    tokens(
        "reports in reports",
        "Content-Type: message/delivery-status\n",
        &"Content-Type: message/delivery-status\n\n".repeat(100_000 / SCALE),
    );
    tokens(
        "digests in digests",
        "Content-Type: message/rfc822\n",
        &"Content-Type: multipart/digest; boundary=x\n\n--x\n\n".repeat(50_000 / SCALE),
    );
    let dashes: String = (0..2000).map(|n| format!("{typed}b{n}\n\n--b{n}\n")).collect::<String>()
        + "\n"
        + &"--c\n".repeat(500_000 / SCALE);
    tokens("dashes in nested parts", "Content-Type: message/rfc822\n", &dashes);
}

#[test]
fn long_lines_and_unfinished_things() {
    tokens("line", "", &"a".repeat(5_000_000 / SCALE));
    tokens("brackets", "", &"<".repeat(1_000_000 / SCALE));
    tokens("brackets and letters", "", &"<a".repeat(500_000 / SCALE));
    tokens("schemes", "", &"http://".repeat(100_000 / SCALE));
    tokens("quoted schemes", "", &"http://\"".repeat(100_000 / SCALE));
    for text in [
        "<style",
        "<style>",
        "<!--",
        "<comment",
        "<comment>",
        "<noframes>",
        "<noframes>\n</noframes ",
        "</noframes",
        "< script",
        "<    ",
        "&#",
        "&#1",
        "&#1;",
        "=",
        "src=cid:",
        "width=0 ",
        "begin 644 x\n",
        "begin\n",
        "begin ",
        "end\n",
        "\nend ",
        "://",
        "&nbsp;",
        "<p>",
        "@.",
        "\r",
        "\n",
        "--",
        "\n--",
        "\x00",
        "\u{e9}",
    ] {
        tokens(text, "", &text.repeat(1_000_000 / SCALE / text.len()));
    }
}

#[test]
fn hostile_headers() {
    let many = |text: &str| text.repeat(500_000 / SCALE / text.len());
    for text in [
        "=?",
        "=?a?q?",
        "=?a?q?b",
        "=?a?b?b?=",
        "=?a?q?b?= ",
        "=?a?q?b\n ",
        "<",
        "@",
        ":",
        "a:",
        ",",
        ";",
        "(",
        ")",
        "((a)",
        "\"",
        "\\\"",
        "\"q\\",
        "<@a",
        "<@",
        "[",
        "a.",
        "(a)b.",
        "a@(",
        "\n\t",
        "a, ",
        "a:b;",
    ] {
        for field in ["Subject", "From", "Content-Type", "Message-Id", "X-Mailer"] {
            tokens(&format!("{field}: {text}"), &format!("{field}: {}\n", many(text)), "x\n");
        }
    }
    for text in ["; a", ";\"", "; name*0=a", "; name*1*=''%41", "; boundary=a", "/", "\"\\"] {
        tokens(text, &format!("Content-Type: multipart/mixed{}\n", many(text)), "x\n");
        tokens(text, &format!("Content-Disposition: x{}\n", many(text)), "x\n");
    }
    let fields: String = (0..200_000 / SCALE).map(|n| format!("X-H{n}: v\n")).collect();
    tokens("fields", &fields, "x\n");
    // Every spelling of a counted name.
    let spell = |n: usize| -> String {
        let letter = |(at, letter): (usize, char)| if n >> at & 1 == 1 { letter.to_ascii_uppercase() } else { letter };
        "x-complaints-to".chars().enumerate().map(letter).collect()
    };
    tokens("spellings", &(0..1 << 15).map(|n| spell(n) + ": v\n").collect::<String>(), "x\n");
    tokens("envelopes", &"From x\n".repeat(200_000 / SCALE), "x\n");
    tokens("empty", "", "");
}

#[test]
fn transfer_encodings() {
    for encoding in ["base64", "quoted-printable", "uue"] {
        for text in
            ["=", "A=", "AA=!", "AAAA\n", "=\r", "=41", "begin 6 x\n", "begin 6 x\nM", "\nend\n", "begin 6 x\n#000"]
        {
            tokens(
                text,
                &format!("Content-Transfer-Encoding: {encoding}\n"),
                &text.repeat(2_000_000 / SCALE / text.len()),
            );
        }
    }
}
