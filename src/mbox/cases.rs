//! Small mailboxes with one quirk each, and how many messages they hold; and what must not grow with the input.

use std::io::{self, Read};

use super::{Doubt, Format, FromRule, Part, Rules, SplitError, Splitter};

const A: &str = "From a@b.example Mon Jan  5 10:00:01 2004\n";
const FIELDS: &str = "From: A <a@b.example>\nTo: c@d.example\nSubject: note\n";
const WHOLE: usize = 64 << 20;

/// A message with From_ line, header, body and empty line.
fn letter(body: &str) -> String {
    format!("{A}{FIELDS}\n{body}\n\n")
}

fn auto() -> Rules {
    Rules::default()
}

/// Of each message its start and its doubt.
type Messages = Vec<(usize, Option<Doubt>)>;

/// The number of bytes before the first message, and the messages.
fn split(data: &[u8], rules: Rules) -> Result<(usize, Messages), Format> {
    let mut splitter = Splitter::new(data, rules, WHOLE);
    let (mut preamble, mut messages) = (0, vec![]);
    loop {
        match splitter.next_piece() {
            Ok(Some(piece)) if piece.part == Part::Preamble => preamble += piece.bytes.len(),
            Ok(Some(piece)) => messages.push((piece.offset as usize, piece.doubt)),
            Ok(None) => return Ok((preamble, messages)),
            Err(SplitError::NotMbox(format)) => return Err(format),
            Err(SplitError::Read(error)) => panic!("{error}"),
        }
    }
}

#[track_caller]
fn count(data: impl AsRef<[u8]>, rules: Rules, expected: usize) {
    let (_, messages) = split(data.as_ref(), rules).unwrap();
    assert_eq!(messages.len(), expected, "{}", String::from_utf8_lossy(data.as_ref()));
}

#[track_caller]
fn doubts(data: impl AsRef<[u8]>, expected: &[Option<Doubt>]) {
    let (_, messages) = split(data.as_ref(), auto()).unwrap();
    assert_eq!(messages.iter().map(|m| m.1).collect::<Vec<_>>(), expected);
}

#[track_caller]
fn refused(data: impl AsRef<[u8]>, format: Format) {
    assert_eq!(split(data.as_ref(), auto()), Err(format));
}

#[test]
fn nothing_and_next_to_nothing() {
    assert_eq!(split(b"", auto()), Ok((0, vec![])));
    for text in ["\n", "\n\n\n", "\r\n\n", "\u{feff}", "\u{feff}\n"] {
        assert_eq!(split(text.as_bytes(), auto()), Ok((text.len(), vec![])));
    }
    for text in ["From (\\", "From ", "From \n", "From", "x", "\r", "hello\n\nthere\n"] {
        refused(text, Format::Text);
        let any = Rules { from_rule: FromRule::Any, ..auto() };
        assert_eq!(split(text.as_bytes(), any).is_ok(), text.starts_with("From "), "{text:?}");
    }
    count(A, auto(), 1);
    count(A.trim_end(), auto(), 1);
}

#[test]
fn ends_of_files() {
    count(letter("one") + &letter("two"), auto(), 2);
    count((letter("one") + &letter("two")).trim_end(), auto(), 2);
    count(letter("one") + A, auto(), 2);
    count(letter("one") + A.trim_end(), auto(), 2);
    count(letter("one") + "From ", auto(), 1);
    count(letter("one") + A + "Subject: end\n\n", auto(), 2);
    count(letter("one") + &"\n".repeat(5) + &letter("two") + &"\n".repeat(5), auto(), 2);
}

#[test]
fn line_ends() {
    let two = letter("one") + &letter("two");
    count(two.replace('\n', "\r\n"), auto(), 2);
    count(two.replace('\n', "\r\r\n"), auto(), 2);
    count(letter("one") + &letter("two").replace('\n', "\r\n") + &letter("three"), auto(), 3);
    refused(two.replace('\n', "\r"), Format::CrOnly);
    count(two.replace("2004\n", "2004\r\n").replace("note\n\n", "note\n\r\n"), auto(), 2);
}

#[test]
fn undated_lines_need_a_mail_header() {
    for line in ["From ", "From -", "From - ", "From bob", "From bob@b.example", "From bob tomorrow"] {
        count(letter("one") + line + "\n" + FIELDS + "\nbody\n", auto(), 2);
        count(line.to_owned() + "\n" + FIELDS + "\nbody\n\n" + &letter("two"), auto(), 2);
        count(letter("one") + line + "\n" + FIELDS, Rules { from_rule: FromRule::Strict, ..auto() }, 1);
    }
    for text in [
        "From Grandma\nPS: bring the cat",
        "From Grandma\nPS: bring the cat\nPPS: and the dog",
        "From Grandma\nSubject: cats",
        "From Grandma\n\nTo: bob\nSubject: x",
        "From Monday on the office is closed.\nPlease use the side door.",
        "From (my side) there is nothing else;",
        "From\nTo: bob\nSubject: x",
        "From: bob\nTo: bob\nSubject: x",
        "From : bob\nTo: bob\nSubject: x",
        ">From bob\nTo: bob\nSubject: x",
        " From bob\nTo: bob\nSubject: x",
        "It went down in the lift\nFrom the second floor\nTo: the archive\nSubject: x",
    ] {
        count(letter(text) + &letter("two"), auto(), 2);
    }
    count(letter("a\nFrom bob\nPS: x\n more\nReply-To: y\n\nb"), auto(), 1);
    count(letter("a\n\nFrom bob\nPS: x\n more\nReply-To: y\n\nb"), auto(), 2);
}

#[test]
fn dated_lines_without_an_empty_line_need_a_field() {
    let run = format!("{A}{FIELDS}\none\n{A}{FIELDS}\ntwo\n");
    count(&run, auto(), 2);
    count(&run, Rules { anywhere: true, ..auto() }, 2);
    count(&run, Rules { from_rule: FromRule::Strict, ..auto() }, 1);
    count(letter(&format!("one\n{A}text")), auto(), 1);
    count(letter(&format!("one\n{A}text")), Rules { anywhere: true, ..auto() }, 2);
    count(letter(&format!("one\n{A}text")), Rules { from_rule: FromRule::Any, ..auto() }, 2);
    count(letter(&format!("one\n \t\n{}", letter("two"))), auto(), 2);
    count(letter(&format!("one\n{A}>From q remote from r\nSubject: x\n\ntwo")), auto(), 2);
}

#[test]
fn envelopes_and_empty_messages() {
    doubts(
        format!("{A}\nno header\n\n{A}{A}{FIELDS}\nbody\n\n{A}"),
        &[Some(Doubt::NoHeader), Some(Doubt::NoHeader), None, Some(Doubt::NoHeader)],
    );
    let uucp = format!("{A}>From c Mon Jan  5 09:59:59 2004 remote from inner\n{FIELDS}\nbody\n\n");
    doubts(uucp.clone() + &letter("two") + &uucp, &[None, None, None]);
    let thunderbird = format!("{A}X-Mozilla-Status: 1\n>From - Sat Apr 04 08:00:30 2009\n{FIELDS}\nbody\n\n");
    doubts(thunderbird + &letter("two"), &[None, None]);
    doubts(letter(&format!("He wrote:\n\n{A}and no more")), &[None, Some(Doubt::NoHeader)]);
}

#[test]
fn separators_in_open_mime_parts_are_doubtful() {
    let kind = "Content-Type: multipart/mixed;\n\tboundary=\"zz\"\n";
    let inner = format!("{A}{FIELDS}\ninner\n\n");
    let outer = |end: &str| format!("{A}{kind}{FIELDS}\n--zz\n\nx\n{end}\n");
    doubts(outer("--zz--\n") + &letter("two"), &[None, None]);
    doubts(outer("") + &letter("two"), &[None, Some(Doubt::OpenMimePart)]);
    doubts(outer("\n --zz--\n") + &letter("two"), &[None, Some(Doubt::OpenMimePart)]);
    doubts(outer(&format!("--zz\n\n{inner}--zz--\n")) + &letter("two"), &[None, Some(Doubt::OpenMimePart), None]);
}

#[test]
fn content_length_is_believed_when_proved() {
    let body = format!("Patch:\n\n{A}Subject: inner\n\nnot a message\n");
    let with = |length: i64, body: &str| format!("{A}{FIELDS}Content-Length: {length}\n\n{body}");
    let right = body.len() as i64;
    for (length, ends, expected) in [
        (0, "\n", 2),
        (0, "", 2),
        (-1, "\n", 2),
        (0, "\n\n", 2),
        (0, "\n\n\n", 3),
        (1, "\n", 2),
        (3, "\n", 3),
        (-4, "\n", 3),
    ] {
        let text = with(right + length, &body) + ends + &letter("two");
        count(&text, auto(), expected);
        count(text, Rules { ignore_content_length: true, ..auto() }, 3);
    }
    count(with(right, &body), auto(), 1);
    count(with(right, &body) + "\n", auto(), 1);
    count(with(right + 9, &body), auto(), 2);
    count(with(22_448_528, "spam\n\n") + &letter("two") + &letter("three"), auto(), 3);
    count(with(22_448_528, "spam\n\n") + &letter("two"), Rules { from_rule: FromRule::Formail, ..auto() }, 1);
    count(with(3, "Hello\n\n") + &letter("two"), auto(), 2);
    count(with(3, "abc\n") + "From -\n" + FIELDS, auto(), 2);
    count(with(2, "abc\n") + "From -\n" + FIELDS, auto(), 1);
    for bad in ["-5", "many", "99999999999999999999", "10\nContent-Length: 4000"] {
        count(format!("{A}Content-Length: {bad}\n{FIELDS}\nbody\n\n{}", letter("two")), auto(), 2);
    }
}

#[test]
fn before_the_first_message() {
    let two = letter("one") + &letter("two");
    for before in ["\u{feff}", "\n\n", "\n\n# exported by hand\n\n", "a note\n", "\u{feff}\r\n"] {
        let (preamble, messages) = split((before.to_owned() + &two).as_bytes(), auto()).unwrap();
        assert_eq!((preamble, messages.len()), (before.len(), 2), "{before:?}");
    }
    let (preamble, messages) = split(format!("\n{FIELDS}\nbody\n").as_bytes(), auto()).unwrap();
    assert_eq!((preamble, messages), (1, vec![(1, None)]));
    count(format!("{FIELDS}\nbody\n\n{}", letter("two")), auto(), 2);
    refused("a note\0\n".to_owned() + &two, Format::Binary);
}

#[test]
fn other_stores_are_refused() {
    refused(format!("\x01\x01\x01\x01\n{A}{FIELDS}\nbody\n\x01\x01\x01\x01\n"), Format::Mmdf);
    refused("BABYL OPTIONS:\nVersion: 5\n\x1f\x0c\n1,,\n", Format::Babyl);
    refused([&b"\x7fELF\x02\x01\0\0"[..], &[7; 5000]].concat(), Format::Binary);
    refused(letter("x").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(), Format::Utf16);
    refused(letter("x").encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>(), Format::Utf16);
    count(letter("nul \0 and \x01\x02") + &letter("two"), auto(), 2);
    for (format, word) in [
        (Format::Utf16, "UTF-16"),
        (Format::Mmdf, "MMDF"),
        (Format::Babyl, "BABYL"),
        (Format::Mbx, "mbx"),
        (Format::Packed("a zip archive"), "zip"),
        (Format::CrOnly, "CR"),
        (Format::Binary, "binary"),
    ] {
        assert!(SplitError::NotMbox(format).to_string().contains(word));
    }
}

#[test]
fn modifiers() {
    let rules = |from_rule, min_fields| Rules { from_rule, min_fields: Some(min_fields), ..auto() };
    let short = letter("one") + A + "Subject: x\n\nbody\n\n" + &letter("two");
    for rule in [FromRule::Auto, FromRule::Strict, FromRule::Formail, FromRule::Any] {
        count(&short, rules(rule, 2), 3);
        count(&short, rules(rule, 3), 2);
        count(&short, rules(rule, 0), 3);
    }
    let formail = Rules { from_rule: FromRule::Formail, ..auto() };
    count(letter("one") + A + "ARC-Seal: x\nTo: b\n\nbody\n", formail, 1);
    count(letter("one") + A + "X-Any: x\n\nbody\n", formail, 2);
    count(letter("one") + "From bob\nTo: b\n\nbody\n", formail, 1);
    count(letter("one") + "From bob now\nTo: b\n\nbody\n", formail, 2);
    count((letter("one") + &letter("two")).replace('\n', "\r\n"), formail, 1);
    count(format!("{A}{FIELDS}\none\n{}", letter("two")), formail, 1);
    count(format!("{A}{FIELDS}\none\n{}", letter("two")), Rules { anywhere: true, ..formail }, 2);
}

#[test]
fn long_lines() {
    let long = "x".repeat(300_000);
    let text = format!("From {long} Mon Jan  5 10:00:01 2004\nSubject: {long}\nTo: b\n\nbody\n\n");
    count(text.clone() + &letter("two") + &text, auto(), 3);
    let too_long = "x".repeat(1 << 20);
    count(letter("one") + &format!("From {too_long} Mon Jan  5 10:00:01 2004\n{FIELDS}\nbody\n"), auto(), 1);
    count(letter("one") + &format!("From x\nX-Long: {too_long}\n{FIELDS}\nbody\n"), auto(), 1);
}

/// Counts what is asked of it.
struct Endless {
    line: &'static [u8],
    left: usize,
    step: usize,
}

impl Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let size = self.step.min(self.left).min(buf.len());
        for (n, byte) in buf[..size].iter_mut().enumerate() {
            *byte = self.line[(n + self.left) % self.line.len()];
        }
        self.left -= size;
        Ok(size)
    }
}

#[test]
fn a_large_message_comes_in_parts_and_is_scanned_once() {
    // Each would take minutes if anything were looked at again for every read: no From_ line at all, and candidates that
    // cannot be decided until their lookahead is used up.
    for (line, step) in [(&b"text\n"[..], 1), (b" fold\n", 7), (b"\nFrom x\nA: b\n", 1), (b"From", 3)] {
        let left = 4 << 20;
        let head = format!("{A}Content-Length: 1000000\nSubject: x\n\n\nFrom x\nPS: y\n");
        let mut splitter = Splitter::new(head.as_bytes().chain(Endless { line, left, step }), auto(), 0);
        let (mut bytes, mut parts) = (0, vec![]);
        while let Some(piece) = splitter.next_piece().unwrap() {
            bytes += piece.bytes.len();
            assert!(piece.bytes.len() <= 2 << 20);
            parts.push(piece.part);
        }
        assert_eq!(bytes, head.len() + left);
        assert_eq!((parts.first(), parts.last()), (Some(&Part::First), Some(&Part::Last)));
        assert!(parts.len() > 4);
        assert!(splitter.buffer_size() < 4 << 20, "{}", splitter.buffer_size());
    }
}

#[test]
fn forged_lengths_on_every_message_cost_no_more_than_the_buffer() {
    let forged = format!("{A}Content-Length: 3900000\n{FIELDS}\nspam\n\n").repeat(60_000);
    let mut splitter = Splitter::new(forged.as_bytes(), auto(), 4 << 20);
    let mut count = 0;
    while splitter.next_piece().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 60_000);
    assert!(splitter.buffer_size() < 8 << 20, "{}", splitter.buffer_size());
}

struct Failing(bool);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0 = !self.0;
        Err(if self.0 { io::ErrorKind::Interrupted } else { io::ErrorKind::UnexpectedEof }.into())
    }
}

#[test]
fn whole_messages_come_before_a_read_error_and_the_rest_can_be_had() {
    let (one, two) = (letter("one"), letter("two"));
    let mut splitter = Splitter::new(one.as_bytes().chain(two.as_bytes()).chain(Failing(false)), auto(), WHOLE);
    assert_eq!(splitter.next_piece().unwrap().unwrap().bytes, one.as_bytes());
    for _ in 0..2 {
        assert!(splitter.needs_input());
        assert!(matches!(splitter.next_piece(), Err(SplitError::Read(e)) if e.kind() == io::ErrorKind::UnexpectedEof));
        assert_eq!(splitter.remainder(), two.as_bytes());
        assert_eq!(splitter.offset(), one.len() as u64);
    }
}
