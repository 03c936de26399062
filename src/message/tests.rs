use proptest::prelude::*;

use super::*;

const HEADER: &str = "X-Spambayes-Classification";

fn annotated(bytes: &[u8], verdict: &str) -> Vec<u8> {
    let message = Message::parse(bytes, HEADER);
    let mut edits = Edits::default();
    message.cut_ours(&mut edits);
    message.insert_fields(&mut edits, [NewField { name: HEADER.as_bytes(), value: verdict.as_bytes() }]);
    edits.applied(bytes)
}

fn cleaned(bytes: &[u8]) -> Vec<u8> {
    Message::parse(bytes, HEADER).without_ours().into_owned()
}

#[test]
fn the_field_goes_to_the_end_of_the_header_block() {
    let v = "X-Spambayes-Classification: ham; 0.02";
    for (about, before, after) in [
        ("plain", "From a\nA: 1\n\nbody\n", format!("From a\nA: 1\n{v}\n\nbody\n")),
        ("CRLF", "From a\r\nA: 1\r\n\r\nb\r\n", format!("From a\r\nA: 1\r\n{v}\r\n\r\nb\r\n")),
        ("LF LF in a CRLF body", "A: 1\r\n\r\nb\n\nc\r\n", format!("A: 1\r\n{v}\r\n\r\nb\n\nc\r\n")),
        ("CRLF envelope, LF fields", "From a\r\nA: 1\n\nb", format!("From a\r\nA: 1\n{v}\n\nb")),
        ("fold of one blank", "A: 1\n \n\nb\n", format!("A: 1\n \n{v}\n\nb\n")),
        ("no empty line", "A: 1\n--qq\nb\n", format!("A: 1\n{v}\n--qq\nb\n")),
        ("header only", "A: 1\n", format!("A: 1\n{v}\n")),
        ("cut header", "A: 1", format!("A: 1\n{v}")),
        ("cut CRLF header", "B: 2\r\nA: 1", format!("B: 2\r\nA: 1\r\n{v}")),
        ("empty header block", "From a\n\nbody\n", format!("From a\n{v}\n\nbody\n")),
        ("body alone", "\r\nbody\r\n", format!("{v}\r\n\r\nbody\r\n")),
        ("first line is a fold", "From a\n x\nA: 1\n\nb", format!("From a\n x\nA: 1\n{v}\n\nb")),
        ("quoted From_ lines", "From a\n>From b remote from c\nA: 1\n>From d\nB: 2\n\nb\n", {
            format!("From a\n>From b remote from c\nA: 1\n>From d\nB: 2\n{v}\n\nb\n")
        }),
        ("cut behind a CR", "A: 1\r", format!("A: 1\r\r\n{v}")),
        ("broken name", "A: 1\nB\u{e4}: 2\nC: 3\n\nb", format!("A: 1\n{v}\nB\u{e4}: 2\nC: 3\n\nb")),
        ("blank before the colon", "A : 1\n\nb", format!("A : 1\n{v}\n\nb")),
    ] {
        assert_eq!(annotated(before.as_bytes(), "ham; 0.02"), after.as_bytes(), "{about}");
    }
}

#[test]
fn fields_of_ours_go_with_their_folds_and_nothing_else_does() {
    for (about, before, after) in [
        ("any case, several", "A: 1\nx-spambayes-CLASSIFICATION: ham\n\tfold\nX-SPAMBAYES-Trained: x\nB: 2\n\nb", {
            "A: 1\nB: 2\n\nb"
        }),
        ("blank before the colon", "X-Spambayes-Evidence : x\nA: 1\n", "A: 1\n"),
        ("below a broken line", "A: 1\nB\u{e4}: 2\nX-Spambayes-Classification: ham\n\nb", "A: 1\nB\u{e4}: 2\n\nb"),
        ("not in the body", "A: 1\n\nX-Spambayes-Classification: ham\n", "A: 1\n\nX-Spambayes-Classification: ham\n"),
        ("last line without newline", "A: 1\nX-Spambayes-Classification: ham", "A: 1"),
        ("last two lines", "A: 1\r\nX-Spambayes-Trained: x\r\nX-Spambayes-Classification: ham", "A: 1"),
        ("nothing else", "From a\nX-Spambayes-Classification: ham", "From a"),
        ("other names", "X-Spam: 1\nX-Spambayes: 2\n\n", "X-Spam: 1\nX-Spambayes: 2\n\n"),
    ] {
        assert_eq!(
            String::from_utf8_lossy(&cleaned(before.as_bytes())),
            String::from_utf8_lossy(after.as_bytes()),
            "{about}"
        );
    }
}

#[test]
fn the_named_header_is_ours_too() {
    let message = Message::parse(b"X-JUNK-verdict: a\n b\nX-Junk-Verdict-2: c\n\n", "X-Junk-Verdict");
    assert_eq!(*message.without_ours(), b"X-Junk-Verdict-2: c\n\n"[..]);
}

#[test]
fn kept_forged_fields_are_renamed() {
    let renamed = |text: &str, header| {
        let message = Message::parse(text.as_bytes(), header);
        let mut edits = Edits::default();
        message.rename_ours(&mut edits);
        String::from_utf8(edits.applied(message.bytes())).expect("text")
    };
    assert_eq!(
        renamed("A: 1\nx-spambayes-trained: s\n f\nX-Spambayes-Classification: ham\n\nb", HEADER),
        "A: 1\nX-Old-spambayes-trained: s\n f\nX-Old-Spambayes-Classification: ham\n\nb"
    );
    assert_eq!(renamed("A: 1\r\nJunk: x", "Junk"), "A: 1\r\nX-Old-Junk: x");
}

#[test]
fn bare_messages_and_store_records_are_known() {
    let parse = |text: &'static str| Message::parse(text.as_bytes(), HEADER);
    for bare in
        ["", "From a", "From a\n", "From a\n\n\r\n", "From a\n>From b\n\n", "From a\nX-Spambayes-Trained: x\n y\n\n"]
    {
        assert!(parse(bare).is_bare(), "{bare:?}");
    }
    for full in ["From a\n\nx", "From a\nA: 1\n", "A", "From a\nX-Spambayes-Trained: x\nA: 1\n", "From a\n \n"] {
        assert!(!parse(full).is_bare(), "{full:?}");
    }
    assert!(parse("From MAILER-DAEMON Mon\nX-IMAP: 1 2\n\nx\n").is_store_record());
    assert!(parse("From x Mon\nFrom: <MAILER-DAEMON@h>\nX-IMAPbase: 1 2\n\nx\n").is_store_record());
    assert!(!parse("From x Mon\nFrom: <bob@h>\nX-IMAPbase: 1 2\n\nx\n").is_store_record());
    assert!(!parse("From MAILER-DAEMON Mon\nSubject: bounce\n\nX-IMAP: 1\n").is_store_record());
}

#[test]
fn values_are_cut_at_the_first_control_character() {
    for (raw, want) in [
        ("ham; 0.02\n", "ham; 0.02"),
        ("ham; 0.02\r\r\nX-Evil: 1\n", "ham; 0.02"),
        ("ham; 0.02\x0bX-Evil: 1\n", "ham; 0.02"),
        ("a;\r\n\tb;\n c\r\n", "a;\n\tb;\n c"),
        ("a\n", "a"),
        ("", ""),
        ("a\n\n b", "a"),
    ] {
        assert_eq!(clean_value(raw.as_bytes()), want.as_bytes(), "{raw:?}");
    }
}

#[test]
fn inserted_folds_take_the_ending_of_the_message() {
    let message = Message::parse(b"A: 1\r\n\r\nb", HEADER);
    let mut edits = Edits::default();
    let fields = [("X", "a\n\tb"), ("Y", "c")];
    let fields = fields.map(|(name, value)| NewField { name: name.as_bytes(), value: value.as_bytes() });
    message.insert_fields(&mut edits, fields);
    assert_eq!(edits.applied(message.bytes()), b"A: 1\r\nX: a\r\n\tb\r\nY: c\r\n\r\nb");
}

#[test]
fn empty_lines_at_the_end_are_seen() {
    for (text, want) in [("", true), ("a\n\n", true), ("a\r\n\r\n", true), ("\n", true), ("a\n", false), ("a", false)] {
        assert_eq!(ends_in_empty_line(text.as_bytes()), want, "{text:?}");
    }
}

/// Lines that a header block is made of, and some that end it.
pub(super) fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => Just(&b"Subject: x"[..]),
        2 => Just(&b" fold"[..]),
        1 => Just(&b"\t"[..]),
        3 => Just(&b"X-Spambayes-Classification: ham; 0.00"[..]),
        2 => Just(&b"x-SPAMBAYES-trained : spam"[..]),
        1 => Just(&b"X-Spambayes-\xff: odd"[..]),
        1 => Just(&b"F\xf6: odd"[..]),
        1 => Just(&b"two words: odd"[..]),
        1 => Just(&b">From me remote from you"[..]),
        1 => Just(&b"text"[..]),
        1 => Just(&b""[..]),
        1 => Just(&b"\r"[..]),
        1 => Just(&b"\0:\0"[..]),
    ];
    let eol = prop_oneof![Just(&b"\n"[..]), Just(&b"\r\n"[..])];
    (any::<bool>(), prop::collection::vec((line, eol), 0..12), any::<bool>()).prop_map(|(from, lines, cut)| {
        let mut text = if from { b"From a@b Mon Jan  5 10:00:00 2004\n".to_vec() } else { Vec::new() };
        for (line, eol) in &lines {
            text.extend_from_slice(line);
            text.extend_from_slice(eol);
        }
        if cut {
            let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
            text.truncate(end);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn our_fields_are_those_of_all_that_are_ours(text in prop_oneof![lines(), prop::collection::vec(any::<u8>(), 0..200)]) {
        let message = Message::parse(&text, HEADER);
        let ours: Vec<_> = message.our_fields().map(|field| field.range).collect();
        let all = message.fields().filter(|field| is_ours(field.name, HEADER)).map(|field| field.range);
        prop_assert_eq!(ours, all.collect::<Vec<_>>());
    }

    #[test]
    fn annotating_only_adds_what_cleaning_takes_away(text in prop_oneof![lines(), prop::collection::vec(any::<u8>(), 0..200)]) {
        let clean = cleaned(&text);
        let out = annotated(&text, "ham; 0.02");
        prop_assert_eq!(&cleaned(&clean), &clean, "cleaning twice");
        prop_assert_eq!(annotated(&clean, "ham; 0.02"), out.clone(), "annotating the cleaned");
        prop_assert_eq!(annotated(&out, "ham; 0.02"), out.clone(), "annotating twice");
        prop_assert_eq!(cleaned(&out), clean, "cleaning the annotated");
        prop_assert_eq!(annotated(&out, "spam; 1.00").len() - out.len(), 1, "another verdict");
        let message = Message::parse(&out, HEADER);
        prop_assert!(message.fields().any(|field| is_ours(field.name, HEADER)), "no reader would see it");
    }
}
