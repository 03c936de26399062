//! URLs in a body: their pieces become tokens and the URL disappears from the text.

use super::params::separates_url;
use super::word::{Emit, is_space};

/// Removes URLs from `text`, which is in lower case: what is left goes to `out`. False if there is none, and `out` is
/// then empty.
pub(super) fn remove_urls(text: &[u8], out: &mut Vec<u8>, emit: &mut Emit<'_>) -> bool {
    let mut kept = 0;
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&text[from..], b"://") {
        let colon = from + found;
        from = colon + 3;
        // A scheme needs nothing before it: `xhttp://` holds a URL too.
        let before = &text[kept..colon];
        let Some(scheme) = [&b"https"[..], b"http", b"ftp"].into_iter().find(|scheme| before.ends_with(scheme)) else {
            continue;
        };
        let rest = &text[from..];
        let length = rest.iter().position(|&byte| ends_url(byte)).unwrap_or(rest.len());
        if length == 0 {
            continue;
        }
        tokens(scheme, &rest[..length], emit);
        out.extend_from_slice(&text[kept..colon - scheme.len()]);
        kept = from + length;
        from = kept;
    }
    if kept > 0 {
        out.extend_from_slice(&text[kept..]);
    }
    kept > 0
}

const fn ends_url(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'<' | b'>' | b'"' | b'\'') || byte >= 0x7f
}

fn tokens(scheme: &[u8], guts: &[u8], emit: &mut Emit<'_>) {
    emit.joined(&[b"proto:", scheme]);
    let end =
        guts.iter().rposition(|byte| !matches!(byte, b'.' | b':' | b'?' | b'!' | b'/')).map_or(0, |last| last + 1);
    for chunk in guts[..end].split(|&byte| byte == b'/' || separates_url(byte)) {
        emit.joined(&[b"url:", chunk]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let mut all = Vec::new();
        let mut sink = |token: &[u8], _| all.push(String::from_utf8_lossy(token).into_owned());
        let mut out = Vec::new();
        let text = b"see xhttp://a.b/c?d=e. and <https:///> or http:// not httpx://y";
        assert!(remove_urls(text, &mut out, &mut Emit::new(&mut sink, Vec::new())));
        assert_eq!(String::from_utf8_lossy(&out), "see x and <> or http:// not httpx://y");
        assert_eq!(all, ["proto:http", "url:a", "url:b", "url:c", "url:d", "url:e", "proto:https", "url:"]);
    }
}
