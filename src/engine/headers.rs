//! The tokens of header fields: the metadata of every part, and the message's own fields.

use super::address;
use super::encoded::{self, Chunk};
use super::options::Options;
use super::params;
use super::parse::{Field, Part, mime_type};
use super::word::{self, Emit, is_space, is_word, rounded_log2};
use super::words::Words;

/// The charset tokens of a part are repeated for every part around it. All of them together stop at this many: the
/// outermost part has named every charset by then, so that the set of tokens is complete.
const MOST_CHARSET_TOKENS: usize = 100_000;

/// The tokens of all parts' types, dispositions and file names.
pub(super) fn metadata(data: &[u8], parts: &[Part], emit: &mut Emit<'_>) {
    let charsets: Vec<(usize, Vec<u8>)> = parts
        .iter()
        .enumerate()
        .filter_map(|(number, part)| Some((number, params::charset(part.content_type?.of(data))?)))
        .collect();
    // Parts and charsets are both in walk order, so that the charsets inside a part follow each other.
    let mut first = 0;
    let mut given = 0;
    for (number, part) in parts.iter().enumerate() {
        let content_type = part.content_type.map(|span| span.of(data));
        emit.lowered(&[b"content-type:"], mime_type(content_type, part.default_message));
        if let Some(value) = content_type.and_then(|field| params::get(field, b"type")) {
            // Written as `type*=`, it makes the original fail; a token does no harm.
            emit.lowered(&[b"content-type/type:"], &value.bytes);
        }
        while charsets.get(first).is_some_and(|(of, _)| *of < number) {
            first += 1;
        }
        for (_, charset) in charsets[first..].iter().take_while(|(of, _)| *of < part.end) {
            if number == 0 || given < MOST_CHARSET_TOKENS {
                emit.joined(&[b"charset:", charset]);
                given += 1;
            } else {
                break;
            }
        }
        let disposition = part.disposition.map(|span| span.of(data));
        if let Some(value) = disposition {
            emit.lowered(&[b"content-disposition:"], value);
        }
        if let Some((name, unicode)) = params::file_name(disposition, content_type) {
            emit.unicode = unicode;
            params::file_name_tokens(b"filename:", &name, emit);
            emit.unicode = false;
        }
    }
}

/// The tokens of the message's own header fields.
pub(super) fn fields(data: &[u8], fields: &[Field], options: &Options, emit: &mut Emit<'_>) {
    let values = |name| values(data, fields, name);
    subject(values("subject").first().copied().unwrap_or_default(), options, emit);
    for name in &options.address_headers {
        addresses(name.as_bytes(), &values(name), emit);
    }
    for name in ["to", "cc"] {
        let count: usize = values(name).iter().map(|value| memchr::memchr_iter(b',', value).count() + 1).sum();
        if count > 0 {
            emit.joined(&[name.as_bytes(), b":2**", rounded_log2(count).to_string().as_bytes()]);
        }
    }
    mailer(values("x-mailer").first().copied().unwrap_or(b"none"), emit);
    match message_id_host(values("message-id").first().copied().unwrap_or_default()) {
        Some(host) => emit.joined(&[b"message-id:@", host]),
        None => emit.whole(b"message-id:invalid"),
    }
    counts(data, fields, options, emit);
}

/// The values of all fields of this name, in order.
fn values<'d>(data: &'d [u8], fields: &[Field], name: &str) -> Vec<&'d [u8]> {
    let named = fields.iter().filter(|field| field.name.of(data).eq_ignore_ascii_case(name.as_bytes()));
    named.map(|field| field.value.of(data)).collect()
}

fn subject(value: &[u8], options: &Options, emit: &mut Emit<'_>) {
    for Chunk { text, charset } in encoded::decode(value) {
        if let Some(charset) = charset {
            emit.joined(&[b"subjectcharset:", &charset]);
        }
        let text: Vec<u8> = text.iter().map(|&byte| if byte == b'\r' { b' ' } else { byte }).collect();
        let in_word = |byte: u8| is_word(byte) || matches!(byte, b'$' | b'.' | b'%') || !byte.is_ascii();
        for run in text.split(|&byte| !in_word(byte)) {
            word::word(b"subject:", run, options, emit);
        }
        for run in text.split(|&byte| is_word(byte)).filter(|run| !run.is_empty()) {
            emit.joined(&[b"subject:", run]);
        }
    }
}

fn addresses(name: &[u8], values: &[&[u8]], emit: &mut Emit<'_>) {
    if values.is_empty() {
        emit.joined(&[name, b":none"]);
        return;
    }
    let mut nameless = 0;
    for (display, address) in address::parse(&values.join(&b", "[..])) {
        if display.is_empty() {
            nameless += 1;
        } else {
            for Chunk { text, charset } in encoded::decode(&display) {
                emit.lowered(&[name, b":name:"], &text);
                if let Some(charset) = charset {
                    emit.joined(&[name, b":charset:", &charset]);
                }
            }
        }
        if address.is_empty() {
            emit.joined(&[name, b":addr:none"]);
        } else {
            for piece in address.split(|&byte| byte == b'@') {
                emit.lowered(&[name, b":addr:"], piece);
            }
        }
    }
    if nameless > 0 {
        emit.joined(&[name, b":no real name:2**", rounded_log2(nameless).to_string().as_bytes()]);
    }
}

fn mailer(value: &[u8], emit: &mut Emit<'_>) {
    let words: Vec<&[u8]> = value.split(|&byte| is_space(byte)).filter(|word| !word.is_empty()).collect();
    emit.lowered(&[b"x-mailer:"], &words.join(&b' '));
}

/// The host of a well-formed message id.
fn message_id_host(value: &[u8]) -> Option<&[u8]> {
    let start = value.iter().position(|&byte| !is_space(byte))?;
    let id = value[start..].strip_prefix(b"<")?;
    let at = memchr::memchr(b'@', id).filter(|&at| at > 0)?;
    let host = &id[at + 1..];
    let end = memchr::memchr(b'>', host).filter(|&end| end > 0)?;
    Some(&host[..end])
}

/// How often each field is there, by its exact spelling.
fn counts(data: &[u8], fields: &[Field], options: &Options, emit: &mut Emit<'_>) {
    // A table and not a list: a name of fourteen letters has thousands of spellings.
    let mut names = Words::new();
    let mut counts: Vec<usize> = Vec::new();
    for field in fields {
        let name = field.name.of(data);
        let counted = options.count_all_header_lines
            || options.safe_headers.iter().any(|safe| name.eq_ignore_ascii_case(safe.as_bytes()));
        if counted && let Some(number) = names.insert(name) {
            if number == counts.len() {
                counts.push(0);
            }
            counts[number] += 1;
        }
    }
    for (number, count) in counts.iter().enumerate() {
        emit.joined(&[b"header:", names.get(number), b":", count.to_string().as_bytes()]);
    }
}
