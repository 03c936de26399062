//! Self-written messages and their expected tokens, in `testdata/tokens`.

use std::fmt::Write as _;
use std::path::Path;

use super::super::*;

fn lines(message: &[u8]) -> String {
    let mut text = String::new();
    tokenize(message, &Options::default(), &mut |token| {
        for &byte in token {
            match byte {
                b'\\' => text.push_str("\\\\"),
                b'\n' => text.push_str("\\n"),
                b'\r' => text.push_str("\\r"),
                b'\t' => text.push_str("\\t"),
                b' '..=b'~' => text.push(char::from(byte)),
                _ => write!(text, "\\x{byte:02x}").unwrap(),
            }
        }
        text.push('\n');
    });
    text
}

#[test]
fn messages_give_their_tokens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tokens");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "in") {
            continue;
        }
        let tokens = lines(&std::fs::read(&path).unwrap());
        let expected = path.with_extension("ref");
        if std::env::var_os("HAMSIFT_BLESS").is_some() {
            std::fs::write(&expected, &tokens).unwrap();
        }
        assert_eq!(tokens, std::fs::read_to_string(&expected).unwrap(), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 8);
}
