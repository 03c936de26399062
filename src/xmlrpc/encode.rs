//! Values to bytes. Writes what the specification has, plus `<i8>` and `<nil/>` where it has no word for a value.

use std::fmt::Display;

use super::value::Value;
use crate::encode::{Encoding, Way, base64_len};

const DECLARATION: &[u8] = b"<?xml version=\"1.0\"?>\n";

/// Writes a call of `method` with the message as its one parameter, a `<base64>`: what `filter` and `score` take.
///
/// `out` is cleared, and nothing is allocated where it has the capacity, so one buffer serves a connection for ever.
pub fn call_message<W: Way>(method: &str, message: &[u8], out: &mut Encoding<W>) {
    out.clear();
    // The tags around take less than 200 bytes; a method name with much to escape may cost one more allocation.
    out.reserve(base64_len(message.len()) + method.len() + 200);
    begin_call(method, out);
    out.bytes(b"<param><value><base64>");
    out.base64(message);
    out.bytes(b"</base64></value></param>");
    end_call(out);
}

/// Writes a call of `method` with any parameters. `out` is cleared.
pub fn call<W: Way>(method: &str, params: &[Value], out: &mut Encoding<W>) {
    out.clear();
    begin_call(method, out);
    for param in params {
        out.bytes(b"<param>");
        write_value(param, out);
        out.bytes(b"</param>");
    }
    end_call(out);
}

/// Writes the answer to a call. `out` is cleared.
pub fn response<W: Way>(value: &Value, out: &mut Encoding<W>) {
    out.clear();
    out.bytes(DECLARATION);
    out.bytes(b"<methodResponse><params><param>");
    write_value(value, out);
    out.bytes(b"</param></params></methodResponse>\n");
}

/// Writes the answer to a call that failed. `out` is cleared.
pub fn fault<W: Way>(code: i32, text: &str, out: &mut Encoding<W>) {
    out.clear();
    out.bytes(DECLARATION);
    out.bytes(b"<methodResponse><fault><value><struct><member><name>faultCode</name><value><int>");
    out.number(code);
    out.bytes(b"</int></value></member><member><name>faultString</name><value><string>");
    escape(text, out);
    out.bytes(b"</string></value></member></struct></value></fault></methodResponse>\n");
}

fn begin_call<W: Way>(method: &str, out: &mut Encoding<W>) {
    out.bytes(DECLARATION);
    out.bytes(b"<methodCall><methodName>");
    escape(method, out);
    out.bytes(b"</methodName><params>");
}

fn end_call<W: Way>(out: &mut Encoding<W>) {
    out.bytes(b"</params></methodCall>\n");
}

/// Recursive, unlike anything that reads: the depth of a value is ours, or was limited when it was decoded.
fn write_value<W: Way>(value: &Value, out: &mut Encoding<W>) {
    out.bytes(b"<value>");
    match value {
        // `<int>` has 32 bits in the specification; a peer that knows more than that also knows `<i8>`.
        Value::Int(n) if i32::try_from(*n).is_ok() => element("int", n, out),
        Value::Int(n) => element("i8", n, out),
        Value::Bool(b) => element("boolean", u8::from(*b), out),
        // Never an exponent, as specified.
        Value::Double(d) => element("double", d, out),
        Value::Str(text) => escaped_element("string", text, out),
        Value::DateTime(text) => escaped_element("dateTime.iso8601", text, out),
        Value::Base64(bytes) => {
            out.bytes(b"<base64>");
            out.base64(bytes);
            out.bytes(b"</base64>");
        }
        Value::Array(items) => {
            out.bytes(b"<array><data>");
            items.iter().for_each(|item| write_value(item, out));
            out.bytes(b"</data></array>");
        }
        Value::Struct(members) => {
            out.bytes(b"<struct>");
            for (name, member) in members {
                out.bytes(b"<member>");
                escaped_element("name", name, out);
                write_value(member, out);
                out.bytes(b"</member>");
            }
            out.bytes(b"</struct>");
        }
        Value::Nil => out.bytes(b"<nil/>"),
    }
    out.bytes(b"</value>");
}

fn element<W: Way>(name: &str, number: impl Display, out: &mut Encoding<W>) {
    for part in ["<", name, ">"] {
        out.bytes(part.as_bytes());
    }
    out.number(number);
    for part in ["</", name, ">"] {
        out.bytes(part.as_bytes());
    }
}

fn escaped_element<W: Way>(name: &str, text: &str, out: &mut Encoding<W>) {
    for part in ["<", name, ">"] {
        out.bytes(part.as_bytes());
    }
    escape(text, out);
    for part in ["</", name, ">"] {
        out.bytes(part.as_bytes());
    }
}

/// Appends `text` so that every XML parser reads it back.
///
/// A CR must be a reference, or the parser makes it an LF. Characters that XML 1.0 has no way to write (most control
/// characters) become U+FFFD: a peer's parser would refuse the whole document for one of them.
fn escape<W: Way>(text: &str, out: &mut Encoding<W>) {
    let mut rest = text;
    while let Some(at) = rest.find(needs_escape) {
        let (plain, from) = rest.split_at(at);
        out.bytes(plain.as_bytes());
        let mut chars = from.chars();
        out.bytes(match chars.next() {
            Some('&') => b"&amp;",
            Some('<') => b"&lt;",
            // Only `]]>` would have to be escaped, but everybody writes it so.
            Some('>') => b"&gt;",
            Some('\r') => b"&#13;",
            _ => "\u{fffd}".as_bytes(),
        });
        rest = chars.as_str();
    }
    out.bytes(rest.as_bytes());
}

fn needs_escape(c: char) -> bool {
    match c {
        '&' | '<' | '>' | '\u{fffe}' | '\u{ffff}' => true,
        '\t' | '\n' => false,
        c => c < ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, Fast};

    fn written(write: impl FnOnce(&mut Encoder)) -> String {
        let mut out = Encoder::default();
        out.bytes(b"left over");
        write(&mut out);
        String::from_utf8(out.into_vec()).unwrap()
    }

    #[test]
    fn a_message() {
        assert_eq!(
            written(|out| call_message("filter", b"From: a\n\xff\0", out)),
            "<?xml version=\"1.0\"?>\n<methodCall><methodName>filter</methodName><params>\
             <param><value><base64>RnJvbTogYQr/AA==</base64></value></param></params></methodCall>\n"
        );
    }

    #[test]
    fn a_message_into_capacity_does_not_allocate() {
        let mut out = Encoding::<Fast>::default();
        call_message("filter", &[1; 5000], &mut out);
        let before = (out.as_slice().as_ptr(), out.capacity());
        for len in [5000, 10, 4999] {
            call_message("score", &vec![2; len], &mut out);
            assert_eq!((out.as_slice().as_ptr(), out.capacity()), before);
        }
    }

    #[test]
    fn every_kind_of_value() {
        let value = Value::Struct(vec![
            ("<&>".into(), Value::Array(vec![Value::Int(-1), Value::Int(1 << 31), Value::Bool(true), Value::Nil])),
            ("".into(), Value::Array(vec![])),
            ("d".into(), Value::Double(1e-7)),
            ("t".into(), Value::DateTime("20040105T10:00:00".into())),
            ("s".into(), Value::Str(" a\r\n\t]]>".into())),
            ("b".into(), Value::Base64(b"x".to_vec())),
        ]);
        assert_eq!(
            written(|out| response(&value, out)),
            "<?xml version=\"1.0\"?>\n<methodResponse><params><param><value><struct>\
             <member><name>&lt;&amp;&gt;</name><value><array><data><value><int>-1</int></value>\
             <value><i8>2147483648</i8></value><value><boolean>1</boolean></value><value><nil/></value></data></array>\
             </value></member><member><name></name><value><array><data></data></array></value></member>\
             <member><name>d</name><value><double>0.0000001</double></value></member>\
             <member><name>t</name><value><dateTime.iso8601>20040105T10:00:00</dateTime.iso8601></value></member>\
             <member><name>s</name><value><string> a&#13;\n\t]]&gt;</string></value></member>\
             <member><name>b</name><value><base64>eA==</base64></value></member>\
             </struct></value></param></params></methodResponse>\n"
        );
    }

    #[test]
    fn a_fault_and_what_xml_cannot_say() {
        let text = written(|out| fault(1, "esc \x1b[31m nul \0 \u{ffff} & ü", out));
        assert!(text.contains("<string>esc \u{fffd}[31m nul \u{fffd} \u{fffd} &amp; ü</string>"), "{text}");
        assert!(text.contains("<name>faultCode</name><value><int>1</int></value>"));
    }

    #[test]
    fn a_method_name_is_escaped() {
        let text = written(|out| call("a<b", &[Value::Int(1), Value::Nil], out));
        assert!(text.contains("<methodName>a&lt;b</methodName>"));
        assert!(text.contains("<param><value><int>1</int></value></param><param><value><nil/></value></param>"));
    }
}
