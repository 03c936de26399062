//! The grammar of the From_ line: is what follows `From ` a sender and a date?
//!
//! Source: RFC 4155 for the ideal form, man hamsift(7) for the forms mail programs really write. This module looks at one
//! line only; what must stand around it is the business of `look`.
//!
//! The line is read from its end. Words are taken as long as each is a part of a date that has not been seen yet, in any
//! order; what is left over is the sender, which may be empty and may hold blanks. So prose that only mentions a date
//! (`From Monday Jan 5 we will`) fails at its last word.

/// Most date words a line can hold: weekday, month, day, year, AM/PM and zones, and the pieces of a damaged clock.
const MAX_WORDS: usize = 16;
/// A comment such as `(Central European Summer Time)` may be this long, in bytes.
const MAX_COMMENT: usize = 64;

const WEEKDAYS: [&[u8]; 7] = [b"sunday", b"monday", b"tuesday", b"wednesday", b"thursday", b"friday", b"saturday"];
const MONTHS: [&[u8]; 12] = [
    b"january",
    b"february",
    b"march",
    b"april",
    b"may",
    b"june",
    b"july",
    b"august",
    b"september",
    b"october",
    b"november",
    b"december",
];
/// Zone names that do not end in `T`, in which case any short word in capitals would do.
const ZONES: [&[u8]; 24] = [
    b"ut", b"utc", b"gmt", b"z", b"met", b"mez", b"mesz", b"msk", b"msd", b"est", b"edt", b"cst", b"cdt", b"mst",
    b"mdt", b"pst", b"pdt", b"cet", b"cest", b"bst", b"dst", b"wib", b"am", b"pm",
];

/// Whether `line` (with or without its line end) is `From `, a sender that may be empty, and a full date: month, day, year
/// and time of day (spec: mbox, rule a1).
///
/// The order of the date's parts is free; weekday and zone may be missing; the year may have two digits. Upper and lower
/// case do not matter. A tail `remote from HOST` is accepted. The bytes of the sender are not looked at.
#[must_use]
pub fn is_dated(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else { return false };
    let end = trimmed_end(rest, rest.len(), |b| is_blank(b) || b == b'\r' || b == b'\n');
    ends_in_usual_date(&rest[..end]) || ends_in_date(rest, end)
}

/// Whether the text ends in ` Mon Jan  5 10:00:00 2004`. Nearly all do, and these bytes are quicker to look at than words
/// are to take.
fn ends_in_usual_date(text: &[u8]) -> bool {
    let Some((sender, date)) = text.split_last_chunk::<24>() else { return false };
    let blanks = [3, 7, 10, 19].iter().all(|&at| date[at] == b' ') && sender.last().is_none_or(|&byte| is_blank(byte));
    let day = date[8..10].trim_ascii_start();
    blanks
        && is_year(&date[20..])
        && date[11..19]
            .iter()
            .enumerate()
            .all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() })
        && is_clock(&date[11..19])
        && is_short(day)
        && (1..=31).contains(&number(day))
        && is_name_of(&MONTHS, &date[4..7])
        && is_name_of(&WEEKDAYS, &date[..3])
}

/// Whether `text[..end]` ends in a date of any form.
fn ends_in_date(rest: &[u8], end: usize) -> bool {
    let mut end = without_remote(rest, end);
    let mut date = Date::default();
    for _ in 0..MAX_WORDS {
        let Some((start, word)) = word_before(rest, end) else { break };
        if word.ends_with(b")")
            && let Some(open) = comment_before(rest, end)
        {
            if !date.take_zone() {
                break;
            }
            end = open;
        } else if let Some((clock_start, joined)) = damaged_clock(rest, start, word) {
            if !date.take(joined.as_slice()) {
                break;
            }
            end = clock_start;
        } else {
            if !date.take(word) {
                break;
            }
            end = start;
        }
    }
    date.is_full()
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trimmed_end(text: &[u8], mut end: usize, blank: impl Fn(u8) -> bool) -> usize {
    while end > 0 && blank(text[end - 1]) {
        end -= 1;
    }
    end
}

/// The last word of `text[..end]` and where it starts.
fn word_before(text: &[u8], end: usize) -> Option<(usize, &[u8])> {
    let end = trimmed_end(text, end, is_blank);
    let start = trimmed_end(text, end, |b| !is_blank(b));
    (start < end).then(|| (start, &text[start..end]))
}

/// Where the text ends once `remote from HOST` is taken off.
fn without_remote(text: &[u8], end: usize) -> usize {
    let tail = || {
        let (host, _) = word_before(text, end)?;
        let (from, word) = word_before(text, host)?;
        let (remote, first) = word_before(text, from)?;
        (word.eq_ignore_ascii_case(b"from") && first.eq_ignore_ascii_case(b"remote")).then_some(remote)
    };
    tail().unwrap_or(end)
}

/// Where the `(` is that opens the comment ending at the end of `text[..end]`.
fn comment_before(text: &[u8], end: usize) -> Option<usize> {
    let end = trimmed_end(text, end, is_blank);
    let floor = end.saturating_sub(MAX_COMMENT);
    memchr::memrchr(b'(', &text[floor..end]).map(|at| floor + at)
}

/// A clock of up to 15 bytes put together from several words.
struct Joined {
    bytes: [u8; 16],
    start: usize,
}

impl Joined {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn prepend(&mut self, word: &[u8]) -> bool {
        let Some(start) = self.start.checked_sub(word.len()) else { return false };
        self.bytes[start..self.start].copy_from_slice(word);
        self.start = start;
        true
    }
}

/// `09: 41:05` or `09:41: 5`: the clock and where it starts, if `word` is the last piece of one that blanks tore apart.
fn damaged_clock(text: &[u8], start: usize, word: &[u8]) -> Option<(usize, Joined)> {
    let digits_and_colons = |w: &[u8]| w.iter().all(|b| b.is_ascii_digit() || *b == b':');
    if word.len() > 8 || !digits_and_colons(word) {
        return None;
    }
    let mut joined = Joined { bytes: [0; 16], start: 16 };
    joined.prepend(word);
    let (mut start, mut pieces) = (start, 1);
    while let Some((at, before)) = word_before(text, start) {
        let torn = before.ends_with(b":") || (joined.as_slice().starts_with(b":") && before.len() <= 2);
        if !torn || !digits_and_colons(before) || !joined.prepend(before) {
            break;
        }
        (start, pieces) = (at, pieces + 1);
    }
    (pieces > 1).then_some((start, joined))
}

/// The parts of a date seen so far, from the end of the line.
#[derive(Default)]
struct Date {
    weekday: bool,
    month: bool,
    clock: bool,
    year: bool,
    zones: u8,
    /// Numbers of one or two digits, the last of the line first: the day, or a short year and then the day.
    short: [u8; 2],
    shorts: usize,
}

impl Date {
    fn is_full(&self) -> bool {
        let day = match (self.year, self.shorts) {
            (true, 1) => self.short[0],
            (false, 2) => self.short[1],
            _ => return false,
        };
        self.month && self.clock && (1..=31).contains(&day)
    }

    /// Takes a word into the part of the date it can be; false if it is none or that part is there already.
    fn take(&mut self, word: &[u8]) -> bool {
        let word = word.strip_suffix(b",").or_else(|| word.strip_suffix(b".")).unwrap_or(word);
        match word.first() {
            Some(b'+' | b'-') => is_offset(word) && self.take_zone(),
            Some(b'0'..=b'9') => self.take_number(word),
            Some(_) if is_name_of(&WEEKDAYS, word) => take_once(&mut self.weekday),
            Some(_) if is_name_of(&MONTHS, word) => take_once(&mut self.month),
            Some(_) => is_zone(word) && self.take_zone(),
            None => false,
        }
    }

    fn take_number(&mut self, word: &[u8]) -> bool {
        if word.iter().all(u8::is_ascii_digit) {
            return match word.len() {
                1 | 2 if self.shorts < 2 - usize::from(self.year) => {
                    self.short[self.shorts] = number(word);
                    self.shorts += 1;
                    true
                }
                4 => self.shorts < 2 && is_year(word) && take_once(&mut self.year),
                _ => false,
            };
        }
        if is_clock(word) {
            return take_once(&mut self.clock);
        }
        self.take_day(word)
    }

    /// `2004-01-05`, `2004/01/05`, `2004-01-05T10:00:00Z`, `05-Jan-2004`.
    fn take_day(&mut self, word: &[u8]) -> bool {
        if self.year || self.month || self.shorts > 0 {
            return false;
        }
        let (date, clock) = match word.iter().position(|b| matches!(b, b'T' | b't')) {
            Some(10) => (&word[..10], Some(&word[11..])),
            _ => (word, None),
        };
        let mut parts = date.split(|b| matches!(b, b'-' | b'/'));
        let (Some(first), Some(second), Some(third), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let iso = is_year(first) && is_short(second) && (1..=12).contains(&number(second)) && is_short(third);
        let named = is_short(first) && is_name_of(&MONTHS, second) && (is_year(third) || is_short(third));
        let clock_fits = clock.is_none_or(|c| is_clock(c) && take_once(&mut self.clock));
        if !(iso || named) || !clock_fits {
            return false;
        }
        (self.year, self.month, self.shorts) = (true, true, 1);
        self.short[0] = number(if iso { third } else { first });
        true
    }

    fn take_zone(&mut self) -> bool {
        self.zones += 1;
        self.zones <= 3
    }
}

fn take_once(part: &mut bool) -> bool {
    !std::mem::replace(part, true)
}

fn number(digits: &[u8]) -> u8 {
    digits.iter().fold(0, |n: u8, b| n.wrapping_mul(10).wrapping_add(b.wrapping_sub(b'0')))
}

fn is_short(word: &[u8]) -> bool {
    matches!(word.len(), 1 | 2) && word.iter().all(u8::is_ascii_digit)
}

fn is_year(word: &[u8]) -> bool {
    word.len() == 4 && word.iter().all(u8::is_ascii_digit) && (word.starts_with(b"19") || word.starts_with(b"20"))
}

/// The full name or one of at least three letters (`Jan`, `Sept`, `Tues`).
fn is_name_of(names: &[&[u8]], word: &[u8]) -> bool {
    word.len() >= 3 && names.iter().any(|name| name.get(..word.len()).is_some_and(|n| n.eq_ignore_ascii_case(word)))
}

/// `10:00`, `1:02:03`, `10:00:00.25`, each also with a zone right behind it.
fn is_clock(word: &[u8]) -> bool {
    let zone = word.iter().position(|b| !matches!(b, b'0'..=b'9' | b':' | b'.')).unwrap_or(word.len());
    let (clock, zone) = word.split_at(zone);
    let mut parts = clock.split(|b| *b == b':');
    let (Some(hour), Some(minute), second, None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let below = |part: &[u8], limit: u8| is_short(part) && number(part) < limit;
    let second_fits = second.is_none_or(|second| {
        let mut halves = second.splitn(2, |b| *b == b'.');
        halves.next().is_some_and(|whole| below(whole, 62))
            && halves.next().is_none_or(|f| !f.is_empty() && f.iter().all(u8::is_ascii_digit))
    });
    below(hour, 25) && below(minute, 60) && second_fits && (zone.is_empty() || is_offset(zone) || is_zone(zone))
}

/// `+0100`, `-05:00`, `+01`, `-500`.
fn is_offset(word: &[u8]) -> bool {
    let Some((b'+' | b'-', digits)) = word.split_first() else { return false };
    let colons = digits.iter().filter(|b| **b == b':').count();
    (1..=5).contains(&digits.len()) && colons <= 1 && digits.iter().all(|b| b.is_ascii_digit() || *b == b':')
}

/// A zone's name, or `GMT+1`.
fn is_zone(word: &[u8]) -> bool {
    let name = word.iter().position(|b| matches!(b, b'+' | b'-')).map_or(word, |at| &word[..at]);
    if name.len() < word.len() && !is_offset(&word[name.len()..]) {
        return false;
    }
    ZONES.iter().any(|zone| zone.eq_ignore_ascii_case(name))
        || (matches!(name.len(), 3..=5) && name.ends_with(b"T") && name.iter().all(u8::is_ascii_uppercase))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DATED: &[&str] = &[
        "- Mon Jan  5 10:00:00 2004",
        "alice at example.org  Mon Jan  5 10:00:01 2004",
        "alice@example.org Mon Jan  5 10:00:02 2004 -0500",
        "alice@example.org Mon Jan  5 10:00:03 EST 2004",
        "alice@example.org Mon Jan  5 10:00 2004",
        "alice@example.org Mon Jan 5 10:00:04 2004",
        "alice@example.org Mon, 5 Jan 2004 10:00:05 +0000",
        "alice@example.org 5 Jan 2004 10:00:05 +0000",
        "alice@example.org Mon, 5 Jan 2004 10:00:05 +0100 (CET)",
        "alice@example.org Mon, 5 Jan 2004 10:00:05 +0100 (Central European Standard Time)",
        "alice@example.org Mon, 5 Jan 04 10:00:05 GMT",
        "alice@example.org Mon Jan 15  15:30:00  2018",
        " alice@example.org  Mon Jan  5 10:00:06 2004",
        "MAILER-DAEMON Mon Jan  5 10:00:07 2004",
        "\"a b\"@example.org Mon Jan  5 10:00:08 2004",
        "\"odd, user\"@example.org Mon Jan  5 10:00:01 2004",
        "x@[1086695621] [ufa]  Sun Aug  5 09:51:15 2001",
        "uucp!alice Mon Jan  5 10:00:09 2004 remote from example",
        "1669160939957813740@xxx Thu Jun 11 00:38:38 +0000 2020",
        "alice@example.org mon jan  5 10:00:10 2004",
        "ALICE@EXAMPLE.ORG MON JAN  5 10:00:10 2004",
        "<> Mon Jan  5 10:00:11 2004",
        " Wed Jun 12 07:08:09 2013",
        "alice@example.org\tMon Jan  5 10:00:12 2004",
        "alice@example.org\tMon\tJan\t5\t10:00:12\t2004",
        "alice@example.org Mon Jan  5 10:00:13 04",
        "alice@example.org 2004-01-05T10:00:14Z",
        "alice@example.org 2004-01-05T10:00:14+01:00",
        "alice@example.org 2004-01-05T10:00:14.123Z",
        "alice@example.org 2004-01-05 10:00:14 +0100",
        "alice@example.org 2004/01/05 10:00",
        "alice@example.org 05-Jan-2004 10:00:14 +0100",
        "mboxrd@z Thu Jan  1 00:00:00 1970",
        "???@??? Mon Jan 05 10:00:15 2004",
        "0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001",
        "carol@example.org  Mon Oct 17 09: 41:05 2016",
        "carol@example.org  Mon Oct 17 09:41: 5 2016",
        "carol@example.org  Mon Oct 17 09: 41: 5 2016",
        "carol@example.org  Mon Oct 17  9 :41:05 2016",
        "alice Mon Jan  5 10:00:01 2004 remote from gate",
        "alice Mon Jan  5 10:00:01 2004 Remote  From gate",
        "alice Monday January 5 10:00:01 2004",
        "alice Mon Sept 5 10:00:01 2004",
        "alice Mon Jan  5 10:00:01 AM EST 2004",
        "alice Mon Jan  5 10:00:01 MET DST 2004",
        "alice Mon Jan  5 10:00:01 GMT+1 2004",
        "alice Mon Jan  5 10:00:01 2004   ",
        "alice Mon Jan  5 10:00:01 2004\r",
        "alice Mon Jan  5 10:00:01 2004\n",
        "alice Mon Jan  5 10:00:01 2004\r\n",
        "alice Mon Jan  5 10:00:01 2004\r\r\n",
        "Jan Mon Jan  5 10:00:01 2004",
        "2004 Mon Jan  5 10:00:01 2004",
        "5 Mon Jan  5 10:00:01 2004",
        "user 12 Mon Jan  5 10:00:01 2004",
    ];

    const NOT_DATED: &[&str] = &[
        "",
        "-",
        "- ",
        "bob@example.org",
        "Monday Jan 5 we will",
        "Monday Jan 5 10:00:00 2004 we will",
        "Monday on the office is closed.",
        "Grandma",
        "(\\",
        "(my side) there is nothing else;",
        "the second floor to the archive,",
        "Monday to Friday",
        "Mon to Fri 10:00",
        "May 2003",
        "5 May 2003",
        "Monday, May 5 2003",
        "January 5, 2004 until 10:00",
        "10:00 to 11:00 on May 5",
        "10:00 on Monday",
        "alice@example.org 2004-01-05",
        "alice@example.org Mon Jan  5 2004",
        "alice@example.org Mon Jan  5 10:00:00",
        "alice@example.org Mon 10:00:00 2004",
        "alice@example.org Mon Jan 10:00:00 2004",
        "alice@example.org Mon Jan  5 25:00:00 2004",
        "alice@example.org Mon Jan  5 10:60:00 2004",
        "alice@example.org Mon Jan  5 10:00:99 2004",
        "alice@example.org Mon Jan  5 10:00:00:00 2004",
        "alice@example.org Mon Jan 55 10:00:00 2004",
        "alice@example.org Mon Jan  0 10:00:00 2004",
        "alice@example.org Mon Jan  5 10:00:00 3004",
        "alice@example.org Mon Foo  5 10:00:00 2004",
        "alice@example.org Mon Jan  5 10:00:00 2004 remote from",
        "alice@example.org Mon Jan  5 10:00:00 2004 from gate",
        "alice@example.org 2004-13-05T10:00:14Z",
        "alice@example.org 2004-01-05T10:00:14X9",
        "alice@example.org Mon Jan  5 10:00:00 2004.5",
        "alice@example.org Mon Jan  5 10:00:00 2004 )",
    ];

    #[test]
    fn dated_lines() {
        for text in DATED {
            assert!(is_dated(format!("From {text}").as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn other_lines() {
        for text in NOT_DATED {
            assert!(!is_dated(format!("From {text}").as_bytes()), "{text:?}");
        }
        for text in ["From: alice Mon Jan  5 10:00:00 2004", ">From a Mon Jan  5 10:00:00 2004", "From", " From "] {
            assert!(!is_dated(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn sender_may_be_any_bytes() {
        let mut line = b"From \xe9ric\x01\0\xff@example.org Mon Jan  5 10:00:01 2004".to_vec();
        assert!(is_dated(&line));
        line.splice(5..5, std::iter::repeat_n(b'a', 300_000));
        assert!(is_dated(&line));
        line.push(b'x');
        assert!(!is_dated(&line));
    }

    #[test]
    fn the_usual_date_is_told_at_once() {
        for text in ["a@b Mon Jan  5 10:00:00 2004", "Mon Jan  5 10:00:00 2004", "a\tMon Jan 05 10:00:00 2004"] {
            assert!(ends_in_usual_date(text.as_bytes()), "{text:?}");
        }
        for text in [
            "aMon Jan  5 10:00:00 2004",
            "a Mon Jan  5 10:00:00 204",
            "a Mon Jan  0 10:00:00 2004",
            "a Mon Jan 5 10:00:00 2004 ",
        ] {
            assert!(!ends_in_usual_date(text.as_bytes()), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// The quick look never says yes where the careful one says no.
        #[test]
        fn the_usual_date_is_a_date(
            sender in "([a-z@ ]{0,6}|5|EST|Mon|Jan|10:|2004|[0-9]{1,2}:? ?){0,3}[ \t]?",
            date in "(Mon|Sun|Foo) (Jan|DEC|Bar) [ 0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9] (19|20|21)[0-9]{2}",
        ) {
            let text = format!("{sender}{date}");
            let text = text.as_bytes();
            prop_assert!(!ends_in_usual_date(text) || ends_in_date(text, text.len()));
        }
    }
}
