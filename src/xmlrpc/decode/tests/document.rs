//! The document around the values: what may come before and behind, encodings, refusals, cuts and limits.

use super::*;

#[test]
fn before_the_document() {
    let plain = answer("x");
    for before in ["\u{feff}", "\n", "\u{feff}\r\n\t ", " "] {
        assert_eq!(decode(format!("{before}{plain}")), Ok(Response::Value(string("x"))), "{before:?}");
        let bare = plain.trim_start_matches(DECLARATION);
        assert_eq!(decode(format!("{before}{bare}")), Ok(Response::Value(string("x"))), "{before:?}");
    }
    let comments = "<!-- a -->\n".repeat(100_000);
    assert_eq!(decode(plain.replace("?>", &format!("?>{comments}<?pi?>"))), Ok(Response::Value(string("x"))));
    malformed(&decode(format!("<!-- -->{plain}")).unwrap_err(), "declaration");
    malformed(&decode(format!("{DECLARATION}{plain}")).unwrap_err(), "declaration");
    assert_eq!(decode(format!("x{plain}")), Err(DecodeError::NotXml));
    assert_eq!(decode(plain.replace("?>", "?>x")), Err(DecodeError::NotXml));
}

#[test]
fn encodings() {
    let with = |label: &str, text: &[u8]| {
        let head = format!("<?xml version='1.0' encoding = \"{label}\"?><methodResponse><params><param><value>");
        decode([head.as_bytes(), text, b"</value></param></params></methodResponse>"].concat())
    };
    for (label, bytes) in [
        ("iso-8859-1", &b"Gr\xf6\xdfe"[..]),
        ("ISO-8859-15", b"Gr\xf6\xdfe"),
        ("windows-1252", b"Gr\xf6\xdfe"),
        ("utf-8", b"Gr\xc3\xb6\xc3\x9fe"),
        ("UTF8", b"Gr\xc3\xb6\xc3\x9fe"),
        ("utf-16", b"Gr\xc3\xb6\xc3\x9fe"),
        ("gb18030", b"Gr\x810\x8b2\x810\x898e"),
    ] {
        assert_eq!(with(label, bytes), Ok(Response::Value(string("Größe"))), "{label}");
    }
    assert_eq!(with("iso-8859-1", b"\x80"), Ok(Response::Value(string("€"))));
    assert_eq!(with("klingon", b"x"), Err(DecodeError::UnknownEncoding));
    let wide = answer("Größe");
    let little: Vec<u8> = [0xfeff].into_iter().chain(wide.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = [0xfeff].into_iter().chain(wide.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    assert_eq!(decode(little), Ok(Response::Value(string("Größe"))));
    assert_eq!(decode(big), Ok(Response::Value(string("Größe"))));
    // The encoding of something else, far behind a broken declaration, is not taken for it.
    assert_eq!(decode(answer("encoding='klingon'")), Ok(Response::Value(string("encoding='klingon'"))));
}

#[test]
fn bytes_outside_the_encoding() {
    let bytes = |text: String| {
        text.replace('@', "\u{0}").into_bytes().iter().map(|&b| if b == 0 { 0xf6 } else { b }).collect::<Vec<_>>()
    };
    assert_eq!(decode(bytes(answer("Gr@n"))), Err(DecodeError::WrongEncoding));
    malformed(&decode(bytes(answer("<base64>AA@A</base64>"))).unwrap_err(), "base64");
    let fault = fault_document("<member><name>faultString</name><value>gr@n</value></member>");
    assert_eq!(decode(bytes(fault)), Ok(Response::Fault { code: String::new(), text: "gr\u{fffd}n".into() }));
    let call = "<methodCall><methodName>m@</methodName></methodCall>".to_owned();
    assert_eq!(decode_call(&bytes(call), &Limits::default()), Err(DecodeError::WrongEncoding));
}

#[test]
fn doctype() {
    let bomb = "<!DOCTYPE m [<!ENTITY a \"0123456789\"><!ENTITY b \"&a;&a;&a;\">]>";
    for wrong in [bomb, "<!doctype m>", "<!DOCTYPE", "<!DOCTYPE m [ <!-- "] {
        assert_eq!(decode(answer("&b;").replace("?>", &format!("?>\n<!-- -->{wrong}"))), Err(DecodeError::Doctype));
        assert_eq!(decode(wrong), Err(DecodeError::Doctype));
    }
    assert_eq!(error("<!DOCTYPE m>"), DecodeError::Doctype);
}

#[test]
fn html() {
    for page in [
        "<!DOCTYPE html><html><head><title>Sign in</title></head><body>please</body></html>",
        "\n<!doctype HTML PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">",
        "<?xml version='1.0'?>\n<!DOCTYPE html><html>",
        "<html><br><p>502",
        "<!-- nginx --><HTML lang=en>",
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>",
    ] {
        assert_eq!(decode(page), Err(DecodeError::Html), "{page}");
    }
    assert!(DecodeError::Html.to_string().contains("HTML"));
    assert_eq!(decode("502 Bad Gateway"), Err(DecodeError::NotXml));
    assert_eq!(decode("{\"error\": 1}"), Err(DecodeError::NotXml));
    assert_eq!(decode(""), Err(DecodeError::Empty));
    assert_eq!(decode("\u{feff}\n"), Err(DecodeError::Empty));
    malformed(&decode("<rss\x1b\u{e4}[0m><a/></rss>").unwrap_err(), "<rss??[0m>");
}

#[test]
fn after_the_root() {
    let plain = answer("1");
    for after in ["", "\r\n ", "<!-- served by x -->", "\n<?pi?>\n"] {
        assert_eq!(decode(format!("{plain}{after}")), Ok(Response::Value(string("1"))), "{after:?}");
    }
    for after in ["x", "\0", "<b/>", "</b>", "&lt;", "<![CDATA[]]>x", &plain] {
        malformed(&decode(format!("{plain}{after}")).unwrap_err(), "");
    }
    assert_eq!(decode(format!("{plain}<!-- ")), Err(DecodeError::Truncated));
    assert_eq!(decode(format!("{plain}<")), Err(DecodeError::Truncated));
}

#[test]
fn every_cut_is_noticed() {
    let documents = [
        answer("<base64>\nRnJvbTogQQ==\n</base64>"),
        answer(
            "<array><data><value><double>0.5</double></value><value>a&amp;<![CDATA[b]]><!-- c --></value></data></array>",
        ),
        fault_document("<member><name>faultCode</name><value><int>1</int></value></member>"),
    ];
    for document in documents {
        assert!(decode(&document).is_ok());
        for cut in 0..document.len() {
            let error = decode(&document[..cut]).expect_err(&document[..cut]);
            assert_eq!(
                error,
                if cut == 0 { DecodeError::Empty } else { DecodeError::Truncated },
                "{}",
                &document[..cut]
            );
        }
    }
}

#[test]
fn limits() {
    let nested =
        |n: usize| answer(&format!("{}1{}", "<array><data><value>".repeat(n), "</value></data></array>".repeat(n)));
    let small = Limits { depth: 3, values: 4, bytes: 1000 };
    assert!(decode_response(nested(2).as_bytes(), &small).is_ok());
    assert_eq!(decode_response(nested(3).as_bytes(), &small), Err(DecodeError::TooDeep));
    assert_eq!(decode(nested(200_000)), Err(DecodeError::TooDeep));
    assert!(decode("<value><array><data>".repeat(200_000)).is_err());
    // However large the limit is set, the stack is safe.
    let deep = Limits { depth: usize::MAX, ..Limits::default() };
    assert!(decode_response(nested(DEEPEST - 1).as_bytes(), &deep).is_ok());
    assert_eq!(decode_response(nested(DEEPEST).as_bytes(), &deep), Err(DecodeError::TooDeep));
    let wide = |n: usize| answer(&format!("<array><data>{}</data></array>", "<value/>".repeat(n)));
    assert!(decode_response(wide(3).as_bytes(), &small).is_ok());
    assert_eq!(decode_response(wide(4).as_bytes(), &small), Err(DecodeError::TooLarge));
    assert_eq!(decode_response(answer(&"x".repeat(1000)).as_bytes(), &small), Err(DecodeError::TooLarge));
}

#[test]
fn the_place_of_an_error() {
    let at = |text: &str| match decode(text) {
        Err(DecodeError::Malformed { at, .. }) => at,
        other => panic!("{other:?}"),
    };
    let text = answer("<int>1</int><b/>");
    assert_eq!(at(&text), text.find("<b/>").unwrap());
    assert_eq!(at(&format!("\u{feff}\n{text}")), text.find("<b/>").unwrap() + 4);
    assert_eq!(error("&x;").to_string(), "an unknown entity (at byte 60)");
}
