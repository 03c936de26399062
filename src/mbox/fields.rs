//! What a header field looks like, which names are known, and what of a message's header the splitter has to know.

/// Fields of which at least one must follow an undated From_ line (spec: mbox, rule a2). A choice: what transports, mail
/// stores and mail programs write into nearly every message, and nothing that prose would begin a line with and go on with
/// a second such line.
#[rustfmt::skip]
const USUAL: &[&[u8]] = &[
    b"cc", b"to", b"bcc", b"date", b"from", b"x-uid", b"sender", b"status", b"x-imap", b"x-uidl", b"list-id",
    b"subject", b"arc-seal", b"received", b"reply-to", b"x-mailer", b"x-status", b"errors-to", b"list-post",
    b"resent-to", b"importance", b"message-id", b"newsgroups", b"precedence", b"references", b"user-agent",
    b"x-gm-thrid", b"x-imapbase", b"x-keywords", b"x-priority", b"x-received", b"envelope-to", b"in-reply-to",
    b"resent-date", b"resent-from", b"return-path", b"content-type", b"delivered-to", b"mime-version",
    b"organization", b"received-spf", b"thread-index", b"thread-topic", b"x-spam-level", b"delivery-date",
    b"x-original-to", b"x-spam-status", b"auto-submitted", b"content-length", b"dkim-signature", b"x-gmail-labels",
    b"x-mozilla-keys", b"list-unsubscribe", b"x-mozilla-status", b"x-originating-ip", b"resent-message-id",
    b"x-mozilla-status2", b"content-disposition", b"domainkey-signature", b"arc-message-signature",
    b"authentication-results", b"content-transfer-encoding", b"arc-authentication-results",
];

/// The fields formail of procmail 3.22 counts after a From_ line, found by trying each of them with it; besides, it takes
/// every name that begins `X-` or `Old-`. Nothing newer than 1999 is among them, and no `Resent-` field but these.
#[rustfmt::skip]
const FORMAIL: &[&[u8]] = &[
    b"cc", b"to", b"bcc", b"fcc", b"uri", b"via", b"cost", b"date", b"from", b"path", b"text", b"xref", b"allow",
    b"lines", b"title", b"accept", b"posted", b"public", b"resent", b"sender", b"server", b"status", b"article",
    b"control", b"expires", b"message", b"post-to", b"replied", b"sent-by", b"subject", b"summary", b"version",
    b"approved", b"comments", b"cutmarks", b"encoding", b"keywords", b"language", b"priority", b"received",
    b"reply-by", b"reply-to", b"www-link", b"encrypted", b"errors-to", b"forwarded", b"full-name", b"hop-count",
    b"mail-from", b"obsoletes", b"posted-to", b"reference", b"resent-cc", b"resent-to", b"content-id", b"conversion",
    b"importance", b"message-id", b"newsgroups", b"originator", b"pp-warning", b"precedence", b"references",
    b"remote-mta", b"resent-bcc", b"supersedes", b"user-agent", b"x400-trace", b"content-md5", b"encrypt-key",
    b"envelope-to", b"expiry-date", b"fake-sender", b"followup-to", b"in-reply-to", b"latent-time", b"mr-received",
    b"original-cc", b"original-to", b"posted-date", b"resent-date", b"resent-from", b"return-path", b"sensitivity",
    b"anon-post-to", b"anon-send-to", b"article-i.d.", b"content-type", b"delivered-to", b"derived-from",
    b"distribution", b"from-warning", b"mailing-list", b"message-type", b"mime-version", b"organisation",
    b"organization", b"submitted-by", b"apparently-to", b"autoforwarded", b"delivery-date", b"end-of-header",
    b"last-modified", b"original-date", b"original-from", b"received-date", b"relay-version", b"resent-sender",
    b"x400-received", b"acknowledge-to", b"app-message-id", b"auto-submitted", b"content-length", b"content-return",
    b"mail-copies-to", b"report-version", b"default-options", b"diagnostic-code", b"final-recipient",
    b"incomplete-copy", b"read-receipt-to", b"resent-reply-to", b"x400-originator", b"x400-recipients",
    b"content-language", b"not-delivered-to", b"deferred-delivery", b"last-attempt-date", b"nntp-posting-date",
    b"nntp-posting-host", b"original-received", b"resent-message-id", b"return-receipt-to", b"transport-options",
    b"x400-content-type", b"auto-forward-count", b"content-identifier", b"alternate-recipient",
    b"auto-forwarded-from", b"content-description", b"content-disposition", b"disclose-recipients",
    b"x400-mts-identifier", b"apparently-resent-to", b"conversion-with-loss", b"dl-expansion-history",
    b"latest-delivery-time", b"request-remailing-to", b"generate-delivery-report", b"return-receipt-requested",
    b"content-transfer-encoding", b"originator-return-address", b"requested-delivery-method",
    b"prevent-nondelivery-report", b"original-auto-forwarded-from", b"discarded-x400-mts-extensions",
    b"discarded-x400-ipms-extensions", b"notice-requested-upon-delivery-to", b"original-encoded-information-types",
];

/// The name of the header field `line` begins with: printable ASCII up to a colon, blanks before the colon allowed
/// (RFC 5322, sections 2.2 and 4.5).
pub(super) fn name(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|b| !matches!(b, b'!'..=b'9' | b';'..=b'~'))?;
    let blanks = line[end..].iter().position(|b| *b != b' ' && *b != b'\t')?;
    (end > 0 && line[end + blanks] == b':').then(|| &line[..end])
}

/// Whether a field of this name is one mail usually has.
pub(super) fn is_usual(name: &[u8]) -> bool {
    is_in(USUAL, name)
}

/// Whether formail would count a field of this name.
pub(super) fn is_known_to_formail(name: &[u8]) -> bool {
    let begins = |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|p| p.eq_ignore_ascii_case(prefix));
    begins(b"x-") || begins(b"old-") || is_in(FORMAIL, name)
}

fn is_in(names: &[&[u8]], name: &[u8]) -> bool {
    names
        .iter()
        .skip_while(|n| n.len() < name.len())
        .take_while(|n| n.len() == name.len())
        .any(|n| n.eq_ignore_ascii_case(name))
}

/// Whether a field of this name is one that a filter puts in and takes out again. Where messages begin must not hang on it:
/// else a message could be lost in the one before with the verdict that is taken out of it.
pub(super) fn is_verdict(name: &[u8]) -> bool {
    const PREFIX: &[u8] = crate::message::OUR_PREFIX.as_bytes();
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// A line that goes on with the field before it.
pub(super) fn is_continuation(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// An empty line: LF or CR LF alone.
pub(super) fn is_empty(line: &[u8]) -> bool {
    line == b"\n" || line == b"\r\n"
}

/// `>From `, quoted once or more: in a header it is an older envelope, not text.
pub(super) fn is_envelope(line: &[u8]) -> bool {
    let quotes = line.iter().take_while(|b| **b == b'>').count();
    quotes > 0 && line[quotes..].starts_with(b"From ")
}

/// What the splitter has to know of a message's header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// What Content-Length says, in bytes.
    pub(super) length: Option<u64>,
    /// Where the body starts, from the start of the message.
    pub(super) body: usize,
    /// Where the boundary of a multipart message stands, from the start of the message.
    pub(super) boundary: Option<std::ops::Range<usize>>,
}

/// Reads the header of the message that `text` starts with; `first` is the length of its From_ line. `blindly` takes
/// Content-Length the way formail does: the first one, as far as it is a number, capped.
pub(super) fn header(text: &[u8], first: usize, blindly: bool) -> Header {
    let mut header = Header { body: text.len(), ..Header::default() };
    let (mut at, mut lengths, mut typed) = (first, 0_u32, false);
    // The field whose continuation lines are being looked for: nothing, Content-Length, or Content-Type and its start.
    let (mut folded_length, mut type_start) = (false, None);
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n + 1);
        let line = &text[at..end];
        if is_continuation(line) {
            if folded_length && !blindly {
                lengths = 2;
            }
            at = end;
            continue;
        }
        folded_length = false;
        if let Some(start) = type_start.take() {
            header.boundary = boundary(&text[start..at]).map(|b| start + b.start..start + b.end);
        }
        // A quick look at the first letter saves reading the names of nearly all fields.
        match line[0] {
            b'c' | b'C' => match name(line) {
                Some(n) if n.eq_ignore_ascii_case(b"content-length") => {
                    lengths = lengths.saturating_add(1);
                    folded_length = true;
                    if lengths == 1 {
                        header.length = length(line, blindly);
                    }
                }
                Some(n) if !typed && n.eq_ignore_ascii_case(b"content-type") => {
                    typed = true;
                    type_start = Some(at);
                }
                Some(_) => {}
                None => {
                    header.body = at;
                    break;
                }
            },
            b'\n' | b'\r' if is_empty(line) => {
                header.body = end;
                break;
            }
            _ if name(line).is_some() && !line.starts_with(b"From ") || is_envelope(line) => {}
            _ => {
                header.body = at;
                break;
            }
        }
        at = end;
    }
    if let Some(start) = type_start {
        header.boundary = boundary(&text[start..at]).map(|b| start + b.start..start + b.end);
    }
    if lengths > 1 && !blindly {
        header.length = None;
    }
    header
}

/// The number in a Content-Length field; none if it is not a number or does not fit (`blindly`: whatever digits begin it).
fn length(line: &[u8], blindly: bool) -> Option<u64> {
    let colon = memchr::memchr(b':', line)?;
    let value = line[colon + 1..].trim_ascii();
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || (digits < value.len() && !blindly) {
        return None;
    }
    let number =
        value[..digits].iter().try_fold(0_u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    if blindly { Some(number.unwrap_or(u64::MAX)) } else { number }
}

/// Where the boundary parameter's value is in a Content-Type field (all its lines), if that is a multipart one.
fn boundary(field: &[u8]) -> Option<std::ops::Range<usize>> {
    const MULTIPART: &[u8] = b"multipart/";
    const PARAMETER: &[u8] = b"boundary";
    let colon = memchr::memchr(b':', field)?;
    let skip = |at: usize| at + field[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    let kind = skip(colon + 1);
    if !field.get(kind..kind + MULTIPART.len())?.eq_ignore_ascii_case(MULTIPART) {
        return None;
    }
    let mut at = kind + MULTIPART.len();
    loop {
        at += memchr::memchr(b'=', &field[at..])?;
        let before = field[..at].trim_ascii_end();
        at = skip(at + 1);
        let Some(name_start) = before.len().checked_sub(PARAMETER.len() + 1) else { continue };
        let fits = before[name_start + 1..].eq_ignore_ascii_case(PARAMETER)
            && matches!(before[name_start], b';' | b' ' | b'\t' | b'\n' | b'"');
        if !fits {
            continue;
        }
        let (start, end) = if field.get(at) == Some(&b'"') {
            (at + 1, memchr::memchr(b'"', &field[at + 1..]).map(|n| at + 1 + n)?)
        } else {
            let stop = |b: &u8| b.is_ascii_whitespace() || *b == b';';
            (at, field[at..].iter().position(stop).map_or(field.len(), |n| at + n))
        };
        return (start < end).then_some(start..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name(b"Subject: x"), Some(&b"Subject"[..]));
        assert_eq!(name(b"Subject \t: x"), Some(&b"Subject"[..]));
        assert_eq!(name(b"a:"), Some(&b"a"[..]));
        for line in
            [&b""[..], b":", b" a:", b"a b:", b"a\x80:", b"a", b"a ", b"From a@b Mon Jan  5 10:00:01 2004", b"\n"]
        {
            assert_eq!(name(line), None, "{line:?}");
        }
        assert!(is_usual(b"SUBJECT") && is_usual(b"to") && !is_usual(b"PS") && !is_usual(b""));
        assert!(is_known_to_formail(b"x-anything") && is_known_to_formail(b"Old-Subject"));
        assert!(!is_known_to_formail(b"ARC-Seal") && !is_known_to_formail(b"x") && !is_known_to_formail(b"Resent-Foo"));
    }

    #[test]
    fn name_tables_are_in_order_of_length() {
        for table in [USUAL, FORMAIL] {
            assert!(table.is_sorted_by_key(|n| n.len()));
        }
    }

    fn length_of(fields: &str) -> Option<u64> {
        header(format!("{fields}\n\nbody").as_bytes(), 0, false).length
    }

    #[test]
    fn content_length() {
        assert_eq!(length_of("Content-Length: 12"), Some(12));
        assert_eq!(length_of("content-length :00468 \r"), Some(468));
        assert_eq!(length_of("A: b\nContent-Length: 18446744073709551615"), Some(u64::MAX));
        for bad in
            ["-5", "many", "", "18446744073709551616", "99999999999999999999", "5 5", "+5", "0x5", "5\n 5", "\n 5"]
        {
            assert_eq!(length_of(&format!("Content-Length: {bad}")), None, "{bad}");
        }
        assert_eq!(length_of("Content-Length: 5\nContent-Length: 5"), None);
        let blind = |fields: &str| header(format!("{fields}\n\nbody").as_bytes(), 0, true).length;
        assert_eq!(blind("Content-Length: 5\nContent-Length: 6"), Some(5));
        assert_eq!(blind("Content-Length: 99999999999999999999"), Some(u64::MAX));
        assert_eq!(blind("Content-Length: 60 x"), Some(60));
        assert_eq!(blind("Content-Length: x"), None);
    }

    #[test]
    fn where_the_body_starts() {
        for (text, body) in [
            ("A: b\n\nbody", 6),
            ("A: b\r\n\r\nbody", 8),
            ("A: b\n c\n\nbody", 9),
            ("A: b\nbody", 5),
            ("A: b\nc body", 5),
            ("A: b\nFrom x\n", 5),
            ("A: b\n>From x\nB: c\n\n", 19),
            ("A: b\n", 5),
            ("\nbody", 1),
            ("", 0),
        ] {
            assert_eq!(header(text.as_bytes(), 0, false).body, body, "{text:?}");
        }
    }

    #[test]
    fn boundaries() {
        for (value, expected) in [
            ("multipart/mixed; boundary=\"zz y\"", Some("zz y")),
            ("Multipart/Mixed; BOUNDARY=zz; a=b", Some("zz")),
            ("multipart/mixed; x=boundary; boundary = \"q\"", Some("q")),
            ("multipart/mixed;\n\tcharset=a;\r\n boundary=----=_Part_1", Some("----=_Part_1")),
            ("multipart/mixed; xboundary=zz", None),
            ("multipart/mixed; boundary=\"\"", None),
            ("multipart/mixed; boundary=\"open", None),
            ("multipart/mixed; boundary=", None),
            ("multipart/mixed", None),
            ("text/plain; boundary=zz", None),
        ] {
            let text = format!("Content-Type: {value}\nTo: b\n\nbody");
            let found = header(text.as_bytes(), 0, false).boundary.map(|range| text[range].to_owned());
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }
}
