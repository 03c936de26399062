//! A value of XML-RPC, and the two readings of it that a spam classifier needs.

/// A value, as the "Scalar `<value>`s", `<struct>`s and `<array>`s of the XML-RPC specification define it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `<int>`, `<i4>`; and the sizes `<i1>`, `<i2>`, `<i8>` of later extensions, which need 64 bits.
    Int(i64),
    /// `<boolean>`: 0 or 1.
    Bool(bool),
    /// `<double>`. May hold NaN or an infinity, which Python servers send; see [`Value::as_score`].
    Double(f64),
    /// `<string>`, or a `<value>` without a type element. White space is kept; control characters may be in it.
    Str(String),
    /// `<base64>`.
    Base64(Vec<u8>),
    /// `<dateTime.iso8601>`, as it was written: the specification leaves the time zone open, so nothing is computed.
    DateTime(String),
    /// `<array>`.
    Array(Vec<Value>),
    /// `<struct>`: the members in the order of the document, repeated names included.
    Struct(Vec<(String, Value)>),
    /// `<nil/>`, a widespread extension.
    Nil,
}

impl Value {
    /// The score that the answer of a `score` call holds: a finite number, or nothing.
    ///
    /// That is a `<double>`, an integer, a number written as a string, or an array that starts with one of these
    /// (SpamBayes answers so when it is asked for the evidence). The range is not judged here.
    pub fn as_score(&self) -> Option<f64> {
        match self {
            Value::Array(items) => items.first().and_then(Value::as_number),
            scalar => scalar.as_number(),
        }
    }

    /// The bytes of the message that the answer of a `filter` call holds: those of a `<base64>`, or of a string in UTF-8.
    ///
    /// An empty message comes back as empty bytes; the caller knows that it sent more than that.
    pub fn into_message(self) -> Option<Vec<u8>> {
        match self {
            Value::Base64(bytes) => Some(bytes),
            Value::Str(text) => Some(text.into_bytes()),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<f64> {
        let number = match self {
            Value::Double(number) => *number,
            // A score is a small number: what f64 cannot hold exactly is none.
            #[allow(clippy::cast_precision_loss)]
            Value::Int(number) => *number as f64,
            // Rust reads no hexadecimal, no decimal comma and no digit separators; "inf" and "nan" are not finite.
            Value::Str(text) => text.trim_ascii().parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Str(text.to_owned())
    }

    #[test]
    fn scores() {
        assert_eq!(Value::Double(0.02).as_score(), Some(0.02));
        assert_eq!(Value::Int(1).as_score(), Some(1.0));
        assert_eq!(text(" 0.95\r\n").as_score(), Some(0.95));
        assert_eq!(text("1e-05").as_score(), Some(0.00001));
        let evidence = Value::Array(vec![text("word"), Value::Double(0.1)]);
        assert_eq!(Value::Array(vec![Value::Double(0.5), Value::Array(vec![evidence])]).as_score(), Some(0.5));
    }

    #[test]
    fn what_is_no_score() {
        for double in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Value::Double(double).as_score(), None);
        }
        for string in ["", " ", "nan", "inf", "-Infinity", "0x1p-3", "0x10", "0,5", "1_0", "0.5 0.6", "ham", "1e999"] {
            assert_eq!(text(string).as_score(), None, "{string}");
        }
        assert_eq!(Value::Nil.as_score(), None);
        assert_eq!(Value::Bool(true).as_score(), None);
        assert_eq!(Value::Base64(b"0.5".to_vec()).as_score(), None);
        assert_eq!(Value::Array(vec![]).as_score(), None);
        assert_eq!(Value::Array(vec![Value::Array(vec![Value::Double(0.5)])]).as_score(), None);
    }

    #[test]
    fn messages() {
        assert_eq!(Value::Base64(vec![0, 255]).into_message(), Some(vec![0, 255]));
        assert_eq!(text("Grüße\n").into_message(), Some("Grüße\n".as_bytes().to_vec()));
        assert_eq!(Value::Base64(vec![]).into_message(), Some(vec![]));
        assert_eq!(Value::Double(0.5).into_message(), None);
        assert_eq!(Value::Array(vec![text("x")]).into_message(), None);
        assert_eq!(Value::Nil.into_message(), None);
    }
}
