//! Bytes to values: the grammar of `methodResponse` and `methodCall`.
//!
//! # Leniency register
//!
//! Each place where this decoder is looser or stricter than the XML-RPC specification (and the XML below it), with the
//! test that holds it there; the tests are in `decode/tests.rs` and `decode/tests/document.rs`.
//!
//! | looser | test |
//! |---|---|
//! | `<nil/>` is a value | `nil` |
//! | `i1 i2 i4 i8 int`, 64 bits in all of them | `number_types` |
//! | `<float>`, doubles with an exponent, `nan` and `inf` (which are no score) | `doubles` |
//! | any namespace prefix is dropped, unresolved; attributes are ignored | `prefixes_and_attributes` |
//! | base64 in lines, with any white space, without padding, with odd last bits | `base64_forms` |
//! | white space around numbers, booleans, dates and method names | `numbers_are_trimmed` |
//! | byte order mark; white space before the XML declaration; any white space in tags | `before_the_document`, `prefixes_and_attributes` |
//! | every encoding that the WHATWG knows; `iso-8859-1` is read as `windows-1252` | `encodings` |
//! | a declared `utf-16` in a document of single bytes is read as UTF-8 | `encodings` |
//! | bytes that do not fit the encoding, in a fault only (it is text for people; a value would be damaged) | `bytes_outside_the_encoding` |
//! | control characters in text, raw and as references; `]]>` in text; `--` in comments | `characters_xml_forbids` |
//! | a fault without code or text, with a code that is no int, with more members | `fault_forms` |
//! | `methodCall` without `params` | `calls` |
//!
//! | stricter | test |
//! |---|---|
//! | DOCTYPE is refused, so there are no entities but the five | `doctype`, `unknown_entities` |
//! | only comments, processing instructions and white space may follow the root | `after_the_root` |
//! | elements and text where they do not belong are errors, and so are unknown elements | `misplaced` |
//! | exactly one `param` in an answer | `one_value` |
//! | characters outside the alphabet in base64 are errors, not skipped | `base64_forms` |
//! | booleans are 0 or 1 | `booleans` |
//! | depth, number of values and size are limited | `limits` |

use std::borrow::Cow;

use thiserror::Error;

use super::base64;
use super::value::Value;
use super::xml::{Document, Item, Source, Tag, is_blank};

#[cfg(test)]
mod tests;

/// More would endanger the stack: reading, printing and dropping a value are recursive.
const DEEPEST: usize = 256;

/// What a document may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep values may be nested, a value outside all arrays and structs being 1. 256 at most, whatever is set.
    pub depth: usize,
    /// How many values there may be in all.
    pub values: usize,
    /// How long the document may be.
    pub bytes: usize,
}

impl Default for Limits {
    /// Depth 64, 100 000 values, 256 MiB: more than any answer about a message up to 64 MiB needs.
    fn default() -> Self {
        Limits { depth: 64, values: 100_000, bytes: 256 << 20 }
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The call was carried out.
    Value(Value),
    /// It was not, and the server says why.
    Fault {
        /// `faultCode` as text, because servers send words as well; empty where there is none.
        code: String,
        /// `faultString` as it came, control characters included; empty where there is none.
        text: String,
    },
}

/// Why a document is no answer, or no call.
///
/// The texts fit after "the server sent" and hold no control characters and nothing long from the document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A page for people: a log-in page, a proxy's error page, some other service.
    #[error("an HTML page instead of XML-RPC")]
    Html,
    /// Nothing, or white space.
    #[error("an empty document")]
    Empty,
    /// The first character is no `<`.
    #[error("something that is not XML")]
    NotXml,
    /// A DOCTYPE, with which a document can be made to blow up.
    #[error("a document type declaration, which XML-RPC does not have")]
    Doctype,
    /// The document ends before its root element does.
    #[error("a document that is cut off")]
    Truncated,
    /// Deeper than [`Limits::depth`].
    #[error("values nested too deep")]
    TooDeep,
    /// More than [`Limits::values`] or [`Limits::bytes`].
    #[error("a document that is too large")]
    TooLarge,
    /// An answer that answers nothing.
    #[error("an answer without a value")]
    NoValue,
    /// The XML declaration names an encoding that does not exist.
    #[error("a document in an unknown encoding")]
    UnknownEncoding,
    /// There are bytes in a value that do not exist in the document's encoding.
    #[error("a document that is not in the encoding it claims")]
    WrongEncoding,
    /// Everything else.
    #[error("{what} (at byte {at})")]
    Malformed {
        /// What is wrong.
        what: Cow<'static, str>,
        /// Where the tag or text begins; exact for documents in UTF-8 and ASCII.
        at: usize,
    },
}

/// Reads a `methodResponse`. The whole document is read before anything is believed.
pub fn decode_response(body: &[u8], limits: &Limits) -> Result<Response, DecodeError> {
    let source = source(body, limits)?;
    let mut parser = Parser::new(&source, limits);
    let response = parser.response()?;
    if source.damaged && matches!(response, Response::Value(_)) {
        return Err(DecodeError::WrongEncoding);
    }
    Ok(response)
}

/// Reads a `methodCall`: the method's name and the parameters.
pub fn decode_call(body: &[u8], limits: &Limits) -> Result<(String, Vec<Value>), DecodeError> {
    let source = source(body, limits)?;
    let call = Parser::new(&source, limits).call()?;
    if source.damaged { Err(DecodeError::WrongEncoding) } else { Ok(call) }
}

fn source<'b>(body: &'b [u8], limits: &Limits) -> Result<Source<'b>, DecodeError> {
    if body.len() > limits.bytes { Err(DecodeError::TooLarge) } else { Source::new(body) }
}

/// One function per kind of element; each is called behind the start tag and returns behind the end tag.
struct Parser<'a> {
    document: Document<'a>,
    depth: usize,
    values_left: usize,
}

impl<'a> Parser<'a> {
    fn new(source: &'a Source<'_>, limits: &Limits) -> Self {
        Parser { document: source.document(), depth: limits.depth.min(DEEPEST), values_left: limits.values }
    }

    fn response(&mut self) -> Result<Response, DecodeError> {
        self.root(Tag::MethodResponse)?;
        let response = match self.child()? {
            Some(Tag::Params) => {
                let value = match self.child()? {
                    Some(Tag::Param) => self.only_value()?.ok_or(DecodeError::NoValue)?,
                    Some(_) => return Err(self.misplaced()),
                    None => return Err(DecodeError::NoValue),
                };
                self.close()?;
                Response::Value(value)
            }
            Some(Tag::Fault) => match self.only_value()? {
                Some(Value::Struct(members)) => fault(&members),
                _ => return Err(self.document.malformed("a fault that is no struct")),
            },
            Some(_) => return Err(self.misplaced()),
            None => return Err(DecodeError::NoValue),
        };
        self.close()?;
        self.finish()?;
        Ok(response)
    }

    fn call(&mut self) -> Result<(String, Vec<Value>), DecodeError> {
        self.root(Tag::MethodCall)?;
        self.expect(Tag::MethodName, "a call without a method name")?;
        let name = self.text()?.trim_matches(is_blank).to_owned();
        let mut params = Vec::new();
        match self.child()? {
            Some(Tag::Params) => {
                while let Some(tag) = self.child()? {
                    let value = if tag == Tag::Param { self.only_value()? } else { return Err(self.misplaced()) };
                    params.push(value.ok_or(DecodeError::NoValue)?);
                }
                self.close()?;
            }
            Some(_) => return Err(self.misplaced()),
            None => {}
        }
        self.finish()?;
        Ok((name, params))
    }

    fn root(&mut self, wanted: Tag) -> Result<(), DecodeError> {
        loop {
            return match self.document.next()? {
                Item::Start(tag) if tag == wanted => Ok(()),
                Item::Start(_) => {
                    Err(self.document.malformed(format!("XML of another kind, <{}>", self.document.name())))
                }
                Item::Text(text) if text.chars().all(is_blank) => continue,
                Item::Eof => Err(DecodeError::Truncated),
                Item::Text(_) | Item::Char(_) | Item::End => Err(DecodeError::NotXml),
            };
        }
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
        loop {
            match self.document.next()? {
                Item::Text(text) if text.chars().all(is_blank) => {}
                Item::Eof => return Ok(()),
                _ => return Err(self.document.malformed("something behind the end of the document")),
            }
        }
    }

    /// The next element in the current one, if there is any before its end tag.
    fn child(&mut self) -> Result<Option<Tag>, DecodeError> {
        loop {
            match self.document.next()? {
                Item::Start(tag) => return Ok(Some(tag)),
                Item::End => return Ok(None),
                Item::Text(text) if text.chars().all(is_blank) => {}
                Item::Text(_) | Item::Char(_) => return Err(self.document.malformed("text where none belongs")),
                Item::Eof => return Err(DecodeError::Truncated),
            }
        }
    }

    fn expect(&mut self, wanted: Tag, missing: &'static str) -> Result<(), DecodeError> {
        match self.child()? {
            Some(tag) if tag == wanted => Ok(()),
            Some(_) => Err(self.misplaced()),
            None => Err(self.document.malformed(missing)),
        }
    }

    /// The end tag of the current element, before which nothing may come.
    fn close(&mut self) -> Result<(), DecodeError> {
        if self.child()?.is_some() { Err(self.misplaced()) } else { Ok(()) }
    }

    fn misplaced(&self) -> DecodeError {
        self.document.malformed(format!("an element <{}> where it does not belong", self.document.name()))
    }

    /// The rest of the current element, which is text only. Borrowed where it is one piece.
    fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let (text, tag) = self.text_up_to_tag()?;
        if tag.is_some() { Err(self.misplaced()) } else { Ok(text) }
    }

    /// The text up to the next tag, which is the end tag of the current element if it comes back as `None`.
    fn text_up_to_tag(&mut self) -> Result<(Cow<'a, str>, Option<Tag>), DecodeError> {
        let mut text = Cow::Borrowed("");
        loop {
            match self.document.next()? {
                Item::Text(piece) if text.is_empty() => text = piece,
                Item::Text(piece) => text.to_mut().push_str(&piece),
                Item::Char(char) => text.to_mut().push(char),
                Item::Start(tag) => return Ok((text, Some(tag))),
                Item::End => return Ok((text, None)),
                Item::Eof => return Err(DecodeError::Truncated),
            }
        }
    }

    /// What a `param`, a `fault` or the end of a `member` holds: one `value`.
    fn only_value(&mut self) -> Result<Option<Value>, DecodeError> {
        let value = match self.child()? {
            Some(Tag::Value) => self.value(1)?,
            Some(_) => return Err(self.misplaced()),
            None => return Ok(None),
        };
        self.close()?;
        Ok(Some(value))
    }

    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        if depth > self.depth {
            return Err(DecodeError::TooDeep);
        }
        self.values_left = self.values_left.checked_sub(1).ok_or(DecodeError::TooLarge)?;
        let (text, tag) = self.text_up_to_tag()?;
        let Some(tag) = tag else { return Ok(Value::Str(text.into_owned())) };
        if !text.chars().all(is_blank) {
            return Err(self.document.malformed("a value of text and an element"));
        }
        let value = match tag {
            Tag::Array => self.array(depth)?,
            Tag::Struct => self.structure(depth)?,
            tag => self.scalar(tag)?,
        };
        self.close()?;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Value, DecodeError> {
        self.expect(Tag::Data, "an array without <data>")?;
        let mut items = Vec::new();
        while let Some(tag) = self.child()? {
            items.push(if tag == Tag::Value { self.value(depth + 1)? } else { return Err(self.misplaced()) });
        }
        self.close()?;
        Ok(Value::Array(items))
    }

    fn structure(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let mut members = Vec::new();
        while let Some(tag) = self.child()? {
            if tag != Tag::Member {
                return Err(self.misplaced());
            }
            self.expect(Tag::Name, "a member without a name")?;
            let name = self.text()?.into_owned();
            self.expect(Tag::Value, "a member without a value")?;
            members.push((name, self.value(depth + 1)?));
            self.close()?;
        }
        Ok(Value::Struct(members))
    }

    fn scalar(&mut self, tag: Tag) -> Result<Value, DecodeError> {
        if !matches!(tag, Tag::Int | Tag::Boolean | Tag::Double | Tag::String | Tag::Base64 | Tag::DateTime | Tag::Nil)
        {
            return Err(self.misplaced());
        }
        let text = self.text()?;
        let trimmed = text.trim_matches(is_blank);
        let (value, what) = match tag {
            Tag::String => (Some(Value::Str(text.into_owned())), ""),
            Tag::Base64 => (base64::decode(&text).map(Value::Base64), "damaged base64"),
            Tag::Int => (trimmed.parse().ok().map(Value::Int), "an integer that is none"),
            Tag::Double => (trimmed.parse().ok().map(Value::Double), "a double that is none"),
            Tag::Boolean => match trimmed {
                "0" => (Some(Value::Bool(false)), ""),
                "1" => (Some(Value::Bool(true)), ""),
                _ => (None, "a boolean that is neither 0 nor 1"),
            },
            Tag::DateTime => (Some(Value::DateTime(trimmed.to_owned())), ""),
            _ => (trimmed.is_empty().then_some(Value::Nil), "a nil with content"),
        };
        value.ok_or_else(|| self.document.malformed(what))
    }
}

fn fault(members: &[(String, Value)]) -> Response {
    // The last of several, as in Python, where a struct is a dictionary.
    let member = |wanted| members.iter().rev().find(|(name, _)| name.trim_matches(is_blank) == wanted);
    let text = |wanted| match member(wanted) {
        Some((_, Value::Str(text) | Value::DateTime(text))) => text.clone(),
        Some((_, Value::Int(number))) => number.to_string(),
        Some((_, Value::Double(number))) => number.to_string(),
        Some((_, Value::Base64(bytes))) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    Response::Fault { code: text("faultCode").trim_matches(is_blank).to_owned(), text: text("faultString") }
}
