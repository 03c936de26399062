//! The parameters of a call, read as Python would: missing ones have defaults, and `None` stands for the default too.

use super::fault::Fault;
use crate::xmlrpc::Value;

/// A message, and whether it came as text.
#[derive(Debug, PartialEq)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    pub(super) was_string: bool,
}

/// What is left of a call's parameters.
pub(super) struct Params {
    method: &'static str,
    left: std::vec::IntoIter<Value>,
}

impl Params {
    /// The parameters of a call, of which there may be `most`.
    pub(super) fn new(method: &'static str, values: Vec<Value>, most: usize) -> Result<Params, Fault> {
        if values.len() > most {
            let text = format!("{method}() takes at most {most} arguments ({} given)", values.len());
            return Err(Fault::of_type(text));
        }
        Ok(Params { method, left: values.into_iter() })
    }

    fn next(&mut self) -> Option<Value> {
        self.left.next().filter(|value| *value != Value::Nil)
    }

    fn wrong(&self, name: &str, want: &str) -> Fault {
        Fault::of_type(format!("{}(): {name} must be {want}", self.method))
    }

    fn missing(&self, name: &str) -> Fault {
        Fault::of_type(format!("{}() missing required argument: '{name}'", self.method))
    }

    /// The message.
    pub(super) fn message(&mut self) -> Result<Text, Fault> {
        match self.next() {
            Some(Value::Base64(bytes)) => Ok(Text { bytes, was_string: false }),
            Some(Value::Str(text)) => Ok(Text { bytes: text.into_bytes(), was_string: true }),
            Some(_) => Err(self.wrong("msg", "base64 or a string")),
            None => Err(self.missing("msg")),
        }
    }

    /// A string.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, Fault> {
        match self.next() {
            Some(Value::Str(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string")),
            None => Ok(None),
        }
    }

    /// A number.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, Fault> {
        match self.next() {
            Some(value @ (Value::Double(_) | Value::Int(_))) => {
                value.as_score().map(Some).ok_or_else(|| self.wrong(name, "a finite number"))
            }
            Some(_) => Err(self.wrong(name, "a number")),
            None => Ok(None),
        }
    }

    /// Clues: an array of pairs, each a word and its probability.
    pub(super) fn clues(&mut self, name: &str) -> Result<Vec<(Vec<u8>, f64)>, Fault> {
        let pair = |value| match value {
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([word, number @ (Value::Double(_) | Value::Int(_))]) => word.into_message().zip(number.as_score()),
                _ => None,
            },
            _ => None,
        };
        match self.next() {
            Some(Value::Array(pairs)) => {
                let pairs: Option<Vec<_>> = pairs.into_iter().map(pair).collect();
                pairs.ok_or_else(|| self.wrong(name, "an array of words with their probabilities"))
            }
            Some(_) => Err(self.wrong(name, "an array")),
            None => Err(self.missing(name)),
        }
    }

    /// A flag: anything that Python takes for true.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Fault> {
        match self.next() {
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::Int(number)) => Ok(Some(number != 0)),
            Some(Value::Double(number)) => Ok(Some(number != 0.0)),
            Some(Value::Str(text)) => Ok(Some(!text.is_empty())),
            Some(_) => Err(self.wrong(name, "a boolean")),
            None => Ok(None),
        }
    }

    /// A flag that has to be there.
    pub(super) fn needed_flag(&mut self, name: &str) -> Result<bool, Fault> {
        self.flag(name)?.ok_or_else(|| self.missing(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(values: &[Value]) -> Params {
        Params::new("filter", values.to_vec(), 5).expect("few")
    }

    #[test]
    fn nil_and_nothing_are_the_default() {
        let mut some = params(&[Value::Str("a".into()), Value::Nil, Value::Int(1), Value::Nil]);
        assert_eq!(some.message(), Ok(Text { bytes: b"a".to_vec(), was_string: true }));
        assert_eq!(some.string("header"), Ok(None));
        assert_eq!(some.number("spam_cutoff"), Ok(Some(1.0)));
        assert_eq!(some.flag("debug"), Ok(None));
        assert_eq!(some.flag("train"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = |fault: Fault| fault.to_string();
        assert!(text(params(&[]).message().unwrap_err()).contains("'msg'"));
        assert!(text(params(&[Value::Double(1.0)]).message().unwrap_err()).starts_with("<class 'TypeError'>:filter()"));
        assert!(params(&[Value::Double(f64::NAN)]).number("n").is_err());
        assert!(params(&[Value::Int(1)]).string("header").is_err());
        assert!(params(&[]).needed_flag("is_spam").is_err());
        assert!(Params::new("f", vec![Value::Nil; 6], 5).is_err());
    }
}
