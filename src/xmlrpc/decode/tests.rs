//! One test for each line of the leniency register, and for the traps of the parser below.

use super::*;

mod document;

const DECLARATION: &str = "<?xml version='1.0'?>";

fn decode(body: impl AsRef<[u8]>) -> Result<Response, DecodeError> {
    decode_response(body.as_ref(), &Limits::default())
}

/// The document that answers with the content of a `<value>`.
fn answer(content: &str) -> String {
    format!("{DECLARATION}\n<methodResponse><params><param><value>{content}</value></param></params></methodResponse>")
}

fn value(content: &str) -> Value {
    match decode(answer(content)) {
        Ok(Response::Value(value)) => value,
        other => panic!("{content:?}: {other:?}"),
    }
}

fn error(content: &str) -> DecodeError {
    decode(answer(content)).expect_err(content)
}

fn string(text: &str) -> Value {
    Value::Str(text.to_owned())
}

#[track_caller]
fn malformed(error: &DecodeError, part: &str) {
    assert!(matches!(error, DecodeError::Malformed { what, .. } if what.contains(part)), "{error:?}, not {part}");
}

#[test]
fn strings() {
    assert_eq!(value("0.02"), string("0.02"));
    assert_eq!(value(""), string(""));
    assert_eq!(value("<string/>"), string(""));
    assert_eq!(value("<string> a \n</string>"), string(" a \n"));
    assert_eq!(value(" \n"), string(" \n"), "white space in an untyped value is its text");
    assert_eq!(decode(answer("").replace("<value></value>", "<value/>")), Ok(Response::Value(string(""))));
}

#[test]
fn nil() {
    assert_eq!(value("<nil/>"), Value::Nil);
    assert_eq!(value("<ex:nil xmlns:ex='http://ws.apache.org/xmlrpc/namespaces/extensions'></ex:nil>"), Value::Nil);
    malformed(&error("<nil>0</nil>"), "nil");
}

#[test]
fn number_types() {
    for tag in ["int", "i1", "i2", "i4", "i8", "ex:i8"] {
        assert_eq!(value(&format!("<{tag}>-12</{tag}>")), Value::Int(-12));
    }
    assert_eq!(value("<i8>9223372036854775807</i8>"), Value::Int(i64::MAX));
    assert_eq!(value("<int>+007</int>"), Value::Int(7));
    for wrong in ["", "1.0", "0x1", "9223372036854775808", "1 2", "- 1", "١"] {
        malformed(&error(&format!("<int>{wrong}</int>")), "integer");
    }
}

#[test]
fn doubles() {
    for (text, number) in [("0.02", 0.02), ("-.5", -0.5), ("5.", 5.0), ("1e-05", 1e-5), ("1", 1.0), ("+2E3", 2000.0)] {
        assert_eq!(value(&format!("<double>{text}</double>")), Value::Double(number));
        assert_eq!(value(&format!("<float>{text}</float>")), Value::Double(number));
    }
    for text in ["nan", "inf", "-Infinity"] {
        assert_eq!(value(&format!("<double>{text}</double>")).as_score(), None);
    }
    for wrong in ["", "0,5", "0x1p3", "1_0", "0.5 0.6", "e5", "ham"] {
        malformed(&error(&format!("<double>{wrong}</double>")), "double");
    }
}

#[test]
fn booleans() {
    assert_eq!(value("<boolean>1</boolean>"), Value::Bool(true));
    assert_eq!(value("<boolean>0</boolean>"), Value::Bool(false));
    for wrong in ["", "true", "2", "01"] {
        malformed(&error(&format!("<boolean>{wrong}</boolean>")), "boolean");
    }
}

#[test]
fn numbers_are_trimmed() {
    assert_eq!(value("\n <double>\r\n\t0.02 </double>\n"), Value::Double(0.02));
    assert_eq!(value("<i4> 5\n</i4>"), Value::Int(5));
    assert_eq!(value("<boolean>\n1\n</boolean>"), Value::Bool(true));
    let date = "<dateTime.iso8601> 19980717T14:08:55 </dateTime.iso8601>";
    assert_eq!(value(date), Value::DateTime("19980717T14:08:55".into()));
    malformed(&error("<int>\u{a0}5</int>"), "integer");
}

#[test]
fn base64_forms() {
    for text in [
        "eW91IGNhbid0IQ==",
        "\neW91IGNh\nbid0IQ==\n",
        "eW91IGNhbid0IQ",
        "\r\n\teW91 IGNhbid0IR==",
        "&#101;W91IGNh<!-- -->bid0IQ=",
    ] {
        assert_eq!(value(&format!("<base64>{text}</base64>")), Value::Base64(b"you can't!".to_vec()), "{text:?}");
    }
    assert_eq!(value("<base64/>"), Value::Base64(vec![]));
    assert_eq!(value("<base64>\n</base64>"), Value::Base64(vec![]));
    for wrong in ["!!!!=", "eW91I", "eW91-A==", "eQ==eQ==", "=", "eW91\u{b}", "eW91&#0xa0;"] {
        malformed(&error(&format!("<base64>{wrong}</base64>")), "");
    }
}

#[test]
fn arrays_and_structs() {
    let one = "<value><array>\n<data> <value><double>0.5</double></value><value>a</value> </data></array></value>";
    let both = Value::Array(vec![Value::Double(0.5), string("a")]);
    assert_eq!(value(&one.replace("<value><array>", "<array>").replace("</array></value>", "</array>")), both);
    assert_eq!(value("<array><data/></array>"), Value::Array(vec![]));
    let member = format!("<member> <name> n&amp;m</name>\n{one} </member>");
    let twice = vec![(" n&m".to_owned(), both.clone()), (" n&m".to_owned(), both)];
    assert_eq!(value(&format!("<struct>{member}\n{member}</struct>")), Value::Struct(twice));
    assert_eq!(value("<struct/>"), Value::Struct(vec![]));
}

#[test]
fn text_in_pieces_is_joined() {
    assert_eq!(value("a&lt;b&#65;&#x42;&amp;&gt;&quot;&apos;c"), string("a<bAB&>\"'c"));
    assert_eq!(value("<double>0.<!-- c -->9<![CDATA[5]]><?pi x?></double>"), Value::Double(0.95));
    assert_eq!(value("<string><![CDATA[<b>&amp;]]></string>"), string("<b>&amp;"));
    assert_eq!(value("<!-- a --> <string>x</string><?p?>\n"), string("x"));
    assert_eq!(value("&#x1F600;<![CDATA[]]>"), string("😀"));
}

#[test]
fn line_ends() {
    assert_eq!(value("a\r\nb\rc\n\r\n"), string("a\nb\nc\n\n"));
    assert_eq!(value("a&#13;\r\nb&#13;&#10;"), string("a\r\nb\r\n"));
    assert_eq!(value("<![CDATA[a\r\nb]]>\r<!-- -->\n"), string("a\nb\n\n"));
}

#[test]
fn characters_xml_forbids() {
    assert_eq!(value("a\x1b[31m\x01&#1;\x7f\0b"), string("a\x1b[31m\x01\x01\x7f\0b"));
    assert_eq!(value("a]]>b<!-- -- --->"), string("a]]>b"));
    for wrong in ["&#0;", "&#xD800;", "&#x110000;", "&#-1;", "&#;", "&#x;", "&#99999999999;"] {
        malformed(&error(wrong), "character");
    }
}

#[test]
fn unknown_entities() {
    for wrong in ["&nbsp;", "&a;", "&;", "& ;"] {
        malformed(&error(wrong), "entity");
    }
    malformed(&error("Rock & Roll"), "reference");
    malformed(&error("a && b;"), "reference");
}

#[test]
fn prefixes_and_attributes() {
    let text = "<?xml version=\"1.0\" standalone=\"yes\" ?><x:methodResponse xmlns:x='u' ><params\n><param\t><value ><double \
                xml:space=\"preserve\" a='>'>0.02</double ></value\r\n></param ></params ></x:methodResponse >";
    assert_eq!(decode(text), Ok(Response::Value(Value::Double(0.02))));
    for wrong in
        ["<int a>1</int>", "<int a=1>1</int>", "<int <double>1</int>", "<int a='<'>1</int>", "<int =''>1</int>"]
    {
        malformed(&error(wrong), "attributes");
    }
    // Ten thousand attributes do not take quadratic time.
    let many: String = (0..10_000).map(|i| format!(" a{i}=''")).collect();
    assert_eq!(value(&format!("<int{many}>1</int>")), Value::Int(1));
}

fn fault_document(members: &str) -> String {
    format!("{DECLARATION}<methodResponse><fault><value><struct>{members}</struct></value></fault></methodResponse>")
}

#[test]
fn fault_forms() {
    let fault = |members: &str| match decode(fault_document(members)) {
        Ok(Response::Fault { code, text }) => (code, text),
        other => panic!("{members}: {other:?}"),
    };
    let text = "<member><name>faultString</name><value>Rock &amp; Roll &lt;b&gt; \x1b</value></member>";
    let code = |content: &str| format!("<member><name>faultCode</name><value>{content}</value></member>");
    let extra = "<member><name>extra</name><value><nil/></value></member>";
    for (members, number) in [
        (format!("{}{text}", code("<int>1</int>")), "1"),
        (format!("{text}{extra}{}", code(" 8002 ")), "8002"),
        (format!("{text}{}", code("<i8>-5</i8>")), "-5"),
        (format!("{text}{}", code("SERVER_ERROR")), "SERVER_ERROR"),
        (format!("{}{text}{}", code("1"), code("2")), "2"),
        (text.replace("faultString", "\n faultString "), ""),
    ] {
        assert_eq!(fault(&members), (number.to_owned(), "Rock & Roll <b> \x1b".to_owned()), "{members}");
    }
    assert_eq!(fault(""), (String::new(), String::new()));
    let no_struct = "<methodResponse><fault><value>oops</value></fault></methodResponse>";
    malformed(&decode(no_struct).unwrap_err(), "fault");
}

#[test]
fn one_value() {
    for none in [
        "<methodResponse/>",
        "<methodResponse><params/></methodResponse>",
        "<methodResponse><params><param/></params></methodResponse>",
    ] {
        assert_eq!(decode(none), Err(DecodeError::NoValue), "{none}");
    }
    let param = "<param><value>1</value></param>";
    malformed(&decode(answer("1").replace(param, &param.repeat(2))).unwrap_err(), "<param>");
    malformed(&decode(answer("1").replace(param, "<param><value/><value/></param>")).unwrap_err(), "<value>");
}

#[test]
fn misplaced() {
    for wrong in [
        "<int>1</int>x",
        "x<int>1</int>",
        "<int>1</int><int>1</int>",
        "<int><b>1</b></int>",
        "<array><value/></array>",
        "<array/>",
        "<array><data>x</data></array>",
        "<array><data/><data/></array>",
        "<struct><value/></struct>",
        "<struct><member><value/></member></struct>",
        "<struct><member><name>n</name></member></struct>",
        "<struct><member><name>n</name><value/><value/></member></struct>",
        "<param>1</param>",
        "<b>1</b>",
        "<Int>1</Int>",
        "<int>1</i4>",
        "</value>",
        "<int>1</int>&#32;",
    ] {
        malformed(&error(wrong), "");
    }
    malformed(&error("<array><data><\u{1b}>"), "<?>");
    let params = answer("1");
    for (from, to) in [
        ("<params>", "text<params>"),
        ("</params>", "</params><params/>"),
        ("<params>", "<data>"),
        ("methodResponse", "methodCall"),
    ] {
        malformed(&decode(params.replace(from, to)).unwrap_err(), "");
    }
}

#[test]
fn calls() {
    let call = |text: &str| decode_call(text.as_bytes(), &Limits::default());
    assert_eq!(call("<methodCall><methodName> score\n</methodName></methodCall>"), Ok(("score".into(), vec![])));
    let both = "<?xml version='1.0'?>\n<methodCall>\n<methodName>score</methodName>\n<params>\n<param>\n\
                <value><base64>\neA==\n</base64></value>\n</param>\n<param><value><boolean>1</boolean></value></param></params></methodCall>";
    assert_eq!(call(both), Ok(("score".into(), vec![Value::Base64(b"x".to_vec()), Value::Bool(true)])));
    assert_eq!(call(&both[..both.len() - 20]), Err(DecodeError::Truncated));
    malformed(&call("<methodCall/>").unwrap_err(), "method name");
    malformed(&call("<methodCall><params/><methodName>m</methodName></methodCall>").unwrap_err(), "<params>");
    malformed(&call(&answer("1")).unwrap_err(), "<methodResponse>");
    assert_eq!(
        call("<methodCall><methodName>m</methodName><params><param/></params></methodCall>"),
        Err(DecodeError::NoValue)
    );
}
