//! Senders' addresses, which anybody may have written, and the date of a From_ line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest address that RFC 5321 (4.5.3.1) knows: local part, `@`, domain.
const LONGEST: usize = 64 + 1 + 255;

/// An envelope sender that is one word without control characters; empty for a bounce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    address: String,
    genuine: bool,
}

impl Sender {
    /// Makes a sender of any text: angle brackets around it go, what cannot stand in a From_ line becomes `-`, and what
    /// is too long is cut.
    pub fn from_bytes(bytes: &[u8]) -> Sender {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        let text = text.strip_prefix('<').map_or(text, |text| text.strip_suffix('>').unwrap_or(text)).trim();
        let odd = |char: char| char.is_whitespace() || char.is_control() || char == char::REPLACEMENT_CHARACTER;
        let mut address: String = text.chars().map(|char| if odd(char) { '-' } else { char }).collect();
        let end = (0..=LONGEST).rev().find(|&end| address.is_char_boundary(end));
        address.truncate(end.unwrap_or(0));
        let genuine = address == text;
        let address = if address == "MAILER-DAEMON" { String::new() } else { address };
        Sender { address, genuine }
    }

    /// The word for a From_ line.
    pub fn word(&self) -> &str {
        if self.address.is_empty() { "MAILER-DAEMON" } else { &self.address }
    }

    /// The address to send on with: nobody must get mail because an address was cut or mended.
    pub fn address(&self) -> &str {
        if self.genuine { &self.address } else { "" }
    }

    /// A From_ line for this sender, without its line end.
    pub(super) fn separator(&self, time: SystemTime) -> String {
        format!("From {} {}", self.word(), asctime(time))
    }
}

/// The time as asctime(3) writes it, in UTC as RFC 4155 demands.
pub(super) fn asctime(time: SystemTime) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // The epoch was a Thursday.
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of the year 0; years begin in March here, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    let (weekday, month) = (WEEKDAYS[(days % 7) as usize], MONTHS[month as usize]);
    format!("{weekday} {month} {day:2} {:02}:{:02}:{:02} {year}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_asctime() {
        for (seconds, want) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_399, "Mon Feb 28 23:59:59 2000"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (951_868_800, "Wed Mar  1 00:00:00 2000"),
            (1_078_099_199, "Sun Feb 29 23:59:59 2004"),
            (1_796_083_199, "Mon Nov 30 23:59:59 2026"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ] {
            assert_eq!(asctime(UNIX_EPOCH + Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn any_text_makes_one_word() {
        for (text, word, address) in [
            ("alice@example.org", "alice@example.org", "alice@example.org"),
            ("<alice@example.org>", "alice@example.org", "alice@example.org"),
            ("", "MAILER-DAEMON", ""),
            ("<>", "MAILER-DAEMON", ""),
            ("MAILER-DAEMON", "MAILER-DAEMON", ""),
            ("a b c", "a-b-c", ""),
            ("alice\nX-Evil: 1", "alice-X-Evil:-1", ""),
            ("a\u{85}b\u{a0}c\x1b", "a-b-c-", ""),
            ("jürgen@bücher.example", "jürgen@bücher.example", "jürgen@bücher.example"),
        ] {
            let sender = Sender::from_bytes(text.as_bytes());
            assert_eq!((sender.word(), sender.address()), (word, address), "{text:?}");
            let line = sender.separator(UNIX_EPOCH);
            assert!(crate::mbox::is_dated(line.as_bytes()), "{line}");
        }
        let long = Sender::from_bytes(&"ä".repeat(3000).into_bytes());
        assert!(long.word().len() <= LONGEST && long.address().is_empty());
        assert_eq!(Sender::from_bytes(b"a\xffb").word(), "a-b");
    }
}
