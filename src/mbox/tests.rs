//! The splitter against the reference on random mailboxes, and on small files of every kind.

use std::io::{self, Read};

use proptest::prelude::*;

use super::cutter::Limits;
use super::reference::{Found, Reference};
use super::{Format, FromRule, Part, Rules, SplitError, Splitter};

const LIMITS: Limits = Limits { whole: 1 << 20, lookahead: 1 << 20, middle: 1 << 18 };

/// Answers with chunks of the given sizes in turn, and is interrupted now and then.
struct Chunks<'a> {
    data: &'a [u8],
    sizes: &'a [usize],
    turn: usize,
}

impl Read for Chunks<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(7) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.sizes[self.turn % self.sizes.len()].min(self.data.len()).min(buf.len());
        let (now, later) = self.data.split_at(size);
        buf[..size].copy_from_slice(now);
        self.data = later;
        Ok(size)
    }
}

/// Runs the splitter; checks what must hold of any pieces.
fn pieces(data: &[u8], rules: Rules, limits: Limits, sizes: &[usize]) -> Result<(usize, Vec<Found>), Format> {
    let mut splitter = Splitter::with_limits(Chunks { data, sizes, turn: 0 }, rules, limits);
    let (mut preamble, mut found, mut seen, mut last) = (0, Vec::<Found>::new(), 0, Part::Preamble);
    loop {
        let needs_input = splitter.needs_input();
        let turn = splitter.get_ref().turn;
        let piece = match splitter.next_piece() {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(SplitError::NotMbox(format)) => {
                assert_eq!(seen, 0, "refused after a piece");
                assert!(matches!(splitter.next_piece(), Err(SplitError::NotMbox(again)) if again == format));
                return Err(format);
            }
            Err(SplitError::Read(error)) => panic!("{error}"),
        };
        assert_eq!(piece.offset, seen as u64);
        assert_eq!(piece.bytes, &data[seen..seen + piece.bytes.len()]);
        assert!(!piece.bytes.is_empty());
        let end = seen + piece.bytes.len();
        match (last, piece.part) {
            (Part::Preamble, Part::Preamble) => preamble = end,
            (Part::Preamble | Part::Message | Part::Last, Part::Message | Part::First) => {
                let whole = piece.part == Part::Message;
                assert!(if whole { piece.bytes.len() <= limits.whole } else { piece.bytes.len() == limits.whole });
                found.push(Found { start: seen, end, has_from_line: piece.has_from_line, doubt: piece.doubt });
            }
            (Part::First | Part::Middle, Part::Middle | Part::Last) => {
                let message = found.last_mut().unwrap();
                message.end = end;
                assert_eq!(message.has_from_line, piece.has_from_line);
                assert_eq!(piece.doubt, None);
            }
            other => panic!("{other:?}"),
        }
        (last, seen) = (piece.part, end);
        assert_eq!(needs_input, splitter.get_ref().turn > turn, "needs_input is exact");
    }
    assert_eq!(seen, data.len());
    assert!(matches!(last, Part::Preamble | Part::Message | Part::Last));
    assert!(splitter.next_piece().unwrap().is_none());
    Ok((preamble, found))
}

fn agree(data: &[u8], rules: Rules, limits: Limits, sizes: &[usize]) -> Result<(), TestCaseError> {
    let reference = Reference { data, rules, whole: limits.whole, lookahead: limits.lookahead };
    let text = String::from_utf8_lossy(data);
    prop_assert_eq!(
        pieces(data, rules, limits, sizes),
        reference.split(),
        "{:?} {:?} {:?}\n{}",
        rules,
        limits,
        sizes,
        text
    );
    Ok(())
}

fn from_line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just("From a@b.example Mon Jan  5 10:00:01 2004".to_owned()),
        1 => Just("From - Mon Jan  5 10:00:00 2004".to_owned()),
        1 => Just("From  Mon Jan  5 10:00 04".to_owned()),
        1 => Just("From a 2004-01-05T10:00:14Z".to_owned()),
        1 => Just("From a Mon Jan  5 10:00:09 2004 remote from gate".to_owned()),
        1 => Just("From ".to_owned()),
        1 => Just("From -".to_owned()),
        1 => Just("From bob".to_owned()),
        1 => Just("From : bob".to_owned()),
        1 => Just("From".to_owned()),
        1 => Just("From the second floor to the archive,".to_owned()),
        1 => Just("From a Mon Jan  5 10:00:01 2004 or so".to_owned()),
        1 => Just(">From carol Mon Jan  5 09:59:59 2004".to_owned()),
        1 => Just(" From a@b Mon Jan  5 10:00:01 2004".to_owned()),
        1 => (0..90usize).prop_map(|n| format!("From {} Mon Jan  5 10:00:01 2004", "x".repeat(n))),
    ]
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("Subject: note".to_owned()),
        2 => Just("X-Spambayes-Trained: ham".to_owned()),
        2 => Just("To: bob".to_owned()),
        1 => Just("X-Unknown: 1".to_owned()),
        1 => Just("ARC-Seal: 1".to_owned()),
        1 => Just("PS: bring the cat".to_owned()),
        1 => Just(" folded".to_owned()),
        1 => Just("\t".to_owned()),
        1 => Just(">From q remote from r".to_owned()),
        4 => (0..260u32).prop_map(|n| format!("Content-Length: {n}")),
        1 => Just("Content-Length: -5".to_owned()),
        1 => Just("content-length : 99999999999999999999".to_owned()),
        2 => Just("Content-Type: multipart/mixed; boundary=\"zz\"".to_owned()),
        1 => Just("Content-Type: multipart/mixed;\n boundary=zz; x=y".to_owned()),
        1 => Just("Content-Type: text/plain".to_owned()),
        1 => (0..60usize).prop_map(|n| format!("X-Long: {}", "y".repeat(n))),
    ]
}

fn body_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        4 => Just("some text".to_owned()),
        2 => from_line(),
        1 => Just("--zz".to_owned()),
        2 => Just("--zz--".to_owned()),
        1 => Just("\0".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("Subject: inner".to_owned()),
        1 => Just("\u{e9}".to_owned()),
    ]
}

/// A piece of a mailbox: lines, and whether it ends its lines in CRLF.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let lines = (
        prop::option::weighted(0.9, from_line()),
        prop::collection::vec(field(), 0..5),
        prop::bool::weighted(0.85),
        prop::collection::vec(body_line(), 0..7),
        0..3usize,
        prop::bool::weighted(0.2),
        // Puts the true length of the body, or a close one, into the header.
        prop::option::weighted(0.4, -1..=3i32),
    );
    lines.prop_map(|(from, fields, separated, body, blanks, crlf, length)| {
        let end = if crlf { "\r\n" } else { "\n" };
        let body: String = body.iter().map(|l| format!("{l}{end}")).collect();
        let mut text: String = from.iter().chain(&fields).map(|l| format!("{l}{end}")).collect();
        if let Some(off) = length {
            text += &format!("Content-Length: {}{end}", (body.len() as i32 + off).max(0));
        }
        if separated {
            text += end;
        }
        text += &body;
        text += &end.repeat(blanks);
        text.into_bytes()
    })
}

fn mailbox() -> impl Strategy<Value = Vec<u8>> {
    let before = prop_oneof![
        12 => Just(&b""[..]),
        1 => Just(&b"\xef\xbb\xbf"[..]),
        1 => Just(&b"\n\r\n\n"[..]),
        1 => Just(&b"\xef\xbb\xbf\n"[..]),
        1 => Just(&b"# a note\n"[..]),
        1 => Just(&b"a note\n\nof two\n\n"[..]),
        1 => Just(&b"\0\n"[..]),
        1 => Just(&b"\xef\xbb"[..]),
    ];
    (before, prop::collection::vec(message(), 0..7), prop::bool::weighted(0.2)).prop_map(|(before, messages, cut)| {
        let mut data = before.to_vec();
        data.extend(messages.concat());
        if cut {
            data.pop();
        }
        data
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    let from_rule = prop_oneof![
        5 => Just(FromRule::Auto),
        1 => Just(FromRule::Strict),
        2 => Just(FromRule::Formail),
        1 => Just(FromRule::Any),
    ];
    let rest = (prop::bool::weighted(0.2), prop::bool::weighted(0.2), prop::option::weighted(0.2, 0..5u32));
    (from_rule, rest).prop_map(|(from_rule, (anywhere, ignore_content_length, min_fields))| Rules {
        from_rule,
        anywhere,
        ignore_content_length,
        min_fields,
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    let small = (16..300usize, 0..600usize, 1..64usize);
    let small = small.prop_map(|(lookahead, more, middle)| Limits { whole: lookahead + more, lookahead, middle });
    prop_oneof![Just(LIMITS), small]
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), Just(vec![1 << 20]), prop::collection::vec(1..90usize, 1..6)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn same_as_the_reference(data in mailbox(), rules in rules(), limits in limits(), sizes in sizes()) {
        agree(&data, rules, limits, &sizes)?;
    }

    #[test]
    fn same_as_the_reference_on_noise(data in "[Fro\\n\\r :>\\-\\x00-\\x05a\u{feff}]{0,60}", rules in rules(), limits in limits()) {
        agree(data.as_bytes(), rules, limits, &[1])?;
    }
}

/// Every place of the limits relative to what they may cut: separators, claimed ends, closing delimiters, line ends.
#[test]
fn same_as_the_reference_at_every_limit() {
    let a = "From a@b.example Mon Jan  5 10:00:01 2004\n";
    let inner = format!("Patch:\n\n{a}Subject: inner\n\nno message\n");
    let length = format!("Content-Length: {}\n", inner.len());
    let mime = "Content-Type: multipart/mixed; boundary=zz\n";
    let mailboxes = [
        format!("{a}{length}Subject: x\n\n{inner}\n{a}To: b\n\n{inner}\n\r\n{a}"),
        format!("{a}{length}\n{inner}\n\nFrom -\nTo: b\nCc: c\n\nbody"),
        format!("{a}{mime}\n--zz\n\nx\n--zz--\n\n{a}{mime}\n\n--zz\n\n{a}"),
        format!("{mime}{length}\n{inner}\n{a}{a}{a}To: b\n"),
        format!("\n\r\nsome text\n\n{a}{length}To: b\n\n{inner}").replace('\n', "\r\n"),
    ];
    for data in mailboxes {
        for whole in 16..data.len() + 8 {
            for lookahead in [16, 45, 60, whole] {
                for from_rule in [FromRule::Auto, FromRule::Formail, FromRule::Any] {
                    let limits = Limits { whole, lookahead: lookahead.min(whole), middle: 1 + whole / 3 };
                    let rules = Rules { from_rule, ..Rules::default() };
                    agree(data.as_bytes(), rules, limits, &[1 << 20]).unwrap();
                    agree(data.as_bytes(), rules, limits, &[1]).unwrap();
                }
            }
        }
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}
