//! Properties that must hold for all values and all bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::encode::Encoder;

/// Text that XML can hold: the encoder replaces other characters.
fn text() -> impl Strategy<Value = String> {
    let char = any::<char>().prop_filter("no XML character", |c| {
        !(*c < ' ' && !matches!(c, '\t' | '\n' | '\r') || matches!(c, '\u{fffe}' | '\u{ffff}'))
    });
    let piece = prop_oneof![
        char.prop_map(String::from),
        prop::sample::select(vec!["\r\n", "\r", "&", "<", ">", "]]>", "&#13;", "<!--", " ", "&amp;"])
            .prop_map(String::from),
        "[a-z ]{0,9}",
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_filter("not equal to itself", |d| !d.is_nan()).prop_map(Value::Double),
        text().prop_map(Value::Str),
        vec(any::<u8>(), 0..200).prop_map(Value::Base64),
        "[0-9]{8}T[0-9]{2}:[0-9]{2}:[0-9]{2}".prop_map(Value::DateTime),
        Just(Value::Nil),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((text(), inner), 0..6).prop_map(Value::Struct),
        ]
    })
}

fn decoded(body: &[u8]) -> Result<Response, DecodeError> {
    decode_response(body, &Limits::default())
}

/// Bytes that look like a document for a while.
fn almost_xml() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec![
        "<?xml version='1.0'?>",
        "<methodResponse>",
        "<params>",
        "<param>",
        "<value>",
        "<string>",
        "<base64>",
        "<int>",
        "<array>",
        "<data>",
        "<struct>",
        "<member>",
        "<name>",
        "<fault>",
        "</value>",
        "</param>",
        "</params>",
        "</methodResponse>",
        "</string>",
        "</base64>",
        "</int>",
        "</data>",
        "</array>",
        "<nil/>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<!-",
        "<!",
        "<?",
        "?>",
        "<",
        ">",
        "&",
        "&#",
        ";",
        "&amp;",
        "&#x",
        "\"",
        "'",
        "=",
        " ",
        "\r",
        "\n",
        "QQ==",
        "1",
        "<!DOCTYPE",
        "\u{feff}",
        "\0",
        "encoding='utf-16'",
        "/",
    ];
    let piece = prop_oneof![
        9 => prop::sample::select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn an_answer_comes_back(value in value()) {
        let mut out = Encoder::default();
        response(&value, &mut out);
        prop_assert_eq!(decoded(out.as_slice()), Ok(Response::Value(value)));
    }

    #[test]
    fn a_call_comes_back(method in "[A-Za-z_.:/&<]{1,20}", params in vec(value(), 0..4)) {
        let mut out = Encoder::default();
        call(&method, &params, &mut out);
        prop_assert_eq!(decode_call(out.as_slice(), &Limits::default()), Ok((method, params)));
    }

    #[test]
    fn a_fault_comes_back(code in any::<i32>(), text in text()) {
        let mut out = Encoder::default();
        fault(code, &text, &mut out);
        prop_assert_eq!(decoded(out.as_slice()), Ok(Response::Fault { code: code.to_string(), text }));
    }

    #[test]
    fn a_message_comes_back(message in vec(any::<u8>(), 0..10_000)) {
        let mut out = Encoder::default();
        call_message("filter", &message, &mut out);
        let (method, params) = decode_call(out.as_slice(), &Limits::default()).unwrap();
        prop_assert_eq!(method, "filter");
        prop_assert_eq!(params, vec![Value::Base64(message)]);
    }

    /// White space anywhere, no padding, odd last bits: the same bytes.
    #[test]
    fn sloppy_base64(message in vec(any::<u8>(), 1..5000), blanks in vec((any::<prop::sample::Index>(), "[ \t\r\n]{1,3}"), 0..20), bits in 0..16u8) {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = Encoder::default();
        out.base64(&message);
        let mut text = String::from_utf8(out.into_vec()).unwrap().trim_end_matches('=').to_owned();
        let odd = match message.len() % 3 { 1 => bits, 2 => bits & 3, _ => 0 };
        let last = text.pop().unwrap();
        let index = ALPHABET.iter().position(|&c| char::from(c) == last).unwrap();
        text.push(char::from(ALPHABET[index | usize::from(odd)]));
        for (index, blank) in blanks {
            text.insert_str(index.index(text.len() + 1), &blank);
        }
        prop_assert_eq!(base64::decode(&text), Some(message));
    }

    /// One wrong character anywhere is never skipped.
    #[test]
    fn damaged_base64(message in vec(any::<u8>(), 1..5000), index in any::<prop::sample::Index>(), wrong in "[-_!.,\u{b}\u{c}\0é]") {
        let mut out = Encoder::default();
        out.base64(&message);
        let mut text = String::from_utf8(out.into_vec()).unwrap();
        let at = index.index(text.len());
        text.replace_range(at..=at, &wrong);
        prop_assert_eq!(base64::decode(&text), None);
    }

    #[test]
    fn every_cut_is_an_error(value in value(), cut in any::<prop::sample::Index>()) {
        let mut out = Encoder::default();
        response(&value, &mut out);
        let whole = out.as_slice().trim_ascii_end();
        prop_assert!(decoded(&whole[..cut.index(whole.len())]).is_err());
    }

    #[test]
    fn no_bytes_panic(bytes in prop_oneof![vec(any::<u8>(), 0..300), almost_xml()]) {
        let _ = decoded(&bytes);
        let _ = decode_call(&bytes, &Limits { depth: 3, values: 5, bytes: 1000 });
    }

    /// Nor does a byte changed in a good document; and no error text can act on a terminal.
    #[test]
    fn one_byte_changed(value in value(), index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut out = Encoder::default();
        response(&value, &mut out);
        let mut out = out.into_vec();
        let at = index.index(out.len());
        out[at] = byte;
        if let Err(error) = decoded(&out) {
            let text = error.to_string();
            prop_assert!(text.len() < 150 && !text.chars().any(char::is_control), "{}", text);
        }
    }
}
