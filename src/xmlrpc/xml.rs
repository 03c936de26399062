//! The XML below the grammar: bytes to text by the encoding, text to tags and character data.
//!
//! quick-xml does the tokenizing, and its freedoms are taken back here: it splits text at every reference, lets any
//! DOCTYPE pass, does not look at attributes, and calls the end of a cut document an ordinary end. Namespaces are not
//! resolved, a prefix is dropped; entities other than the five predefined ones do not exist.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::decode::DecodeError;

/// The elements of XML-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    MethodResponse,
    MethodCall,
    MethodName,
    Params,
    Param,
    Fault,
    Value,
    Int,
    Boolean,
    Double,
    String,
    Base64,
    DateTime,
    Array,
    Data,
    Struct,
    Member,
    Name,
    Nil,
    /// Anything else, which is allowed nowhere.
    Unknown,
}

impl Tag {
    fn of(local_name: &str) -> Tag {
        match local_name {
            "methodResponse" => Tag::MethodResponse,
            "methodCall" => Tag::MethodCall,
            "methodName" => Tag::MethodName,
            "params" => Tag::Params,
            "param" => Tag::Param,
            "fault" => Tag::Fault,
            "value" => Tag::Value,
            "int" | "i1" | "i2" | "i4" | "i8" => Tag::Int,
            "boolean" => Tag::Boolean,
            "double" | "float" => Tag::Double,
            "string" => Tag::String,
            "base64" => Tag::Base64,
            "dateTime.iso8601" | "dateTime" => Tag::DateTime,
            "array" => Tag::Array,
            "data" => Tag::Data,
            "struct" => Tag::Struct,
            "member" => Tag::Member,
            "name" => Tag::Name,
            "nil" => Tag::Nil,
            _ => Tag::Unknown,
        }
    }
}

/// The text of a document, and how it came to be.
pub(super) struct Source<'b> {
    text: Cow<'b, str>,
    /// Where the first `<` is: white space before the declaration is no XML, but it is met.
    start: usize,
    /// Length of the byte order mark.
    mark: usize,
    /// Some bytes did not fit the encoding, and are U+FFFD now.
    pub(super) damaged: bool,
}

impl<'b> Source<'b> {
    pub(super) fn new(body: &'b [u8]) -> Result<Source<'b>, DecodeError> {
        let (encoding, mark) = match Encoding::for_bom(body) {
            Some(found) => found,
            None => (declared_encoding(body)?, 0),
        };
        // Borrows where the bytes are UTF-8 (or ASCII) already.
        let (text, damaged) = encoding.decode_without_bom_handling(&body[mark..]);
        let content = text.trim_start_matches(is_blank);
        if content.is_empty() {
            return Err(DecodeError::Empty);
        }
        if !content.starts_with('<') {
            return Err(DecodeError::NotXml);
        }
        let start = text.len() - content.len();
        Ok(Source { text, start, mark, damaged })
    }

    pub(super) fn document(&self) -> Document<'_> {
        let text = &self.text[self.start..];
        let mut reader = Reader::from_str(text);
        // `<a/>` and `<a></a>` are the same: only one of them needs code.
        reader.config_mut().expand_empty_elements = true;
        Document { reader, text, offset: self.mark + self.start, at: 0 }
    }
}

/// The encoding that the XML declaration names; UTF-8 where there is none.
fn declared_encoding(body: &[u8]) -> Result<&'static Encoding, DecodeError> {
    let Some(declaration) = body.trim_ascii_start().strip_prefix(b"<?xml") else { return Ok(UTF_8) };
    // Only this far: a declaration is short, and what follows may be anything.
    let declaration = &declaration[..declaration.len().min(256)];
    let end = memchr::memchr(b'>', declaration).unwrap_or(declaration.len());
    let declaration = &declaration[..end];
    let Some(at) = memchr::memmem::find(declaration, b"encoding") else { return Ok(UTF_8) };
    let value = declaration[at + b"encoding".len()..].trim_ascii_start();
    let Some(value) = value.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) else { return Ok(UTF_8) };
    let Some((&quote, value)) = value.split_first() else { return Ok(UTF_8) };
    let end = memchr::memchr(quote, value).unwrap_or(value.len());
    let encoding = Encoding::for_label(&value[..end]).ok_or(DecodeError::UnknownEncoding)?;
    // The declaration was read byte by byte, so these two are a lie: .NET writes one into documents in UTF-8.
    Ok(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// White space as XML defines it.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// What a document consists of, once comments and processing instructions are left out.
pub(super) enum Item<'a> {
    Start(Tag),
    /// Always the end of the innermost open element: quick-xml compares the names.
    End,
    /// Text with its line ends made LF, or the content of a CDATA section.
    Text(Cow<'a, str>),
    /// A reference, resolved; not subject to the rule on line ends.
    Char(char),
    /// The end of the bytes, wherever that is.
    Eof,
}

/// A walk through a document.
pub(super) struct Document<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
    offset: usize,
    /// Where in `text` the last item begins.
    at: usize,
}

impl<'a> Document<'a> {
    pub(super) fn next(&mut self) -> Result<Item<'a>, DecodeError> {
        loop {
            self.at = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
            // Before quick-xml walks through it all.
            self.refuse_foreign()?;
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => return Err(self.syntax(&error)),
            };
            return Ok(match event {
                Event::Start(start) | Event::Empty(start) => {
                    self.check_attributes(&start)?;
                    Item::Start(Tag::of(start.local_name().into_inner()))
                }
                Event::End(_) => Item::End,
                Event::Text(text) => Item::Text(text.xml10_content()),
                Event::CData(text) => Item::Text(text.xml10_content()),
                Event::GeneralRef(name) => Item::Char(self.resolve(&name)?),
                Event::Comment(_) | Event::PI(_) => continue,
                Event::Decl(_) if self.at == 0 => continue,
                Event::Decl(_) => return Err(self.malformed("an XML declaration that is not at the beginning")),
                Event::DocType(_) => return Err(DecodeError::Doctype),
                Event::Eof => Item::Eof,
            });
        }
    }

    /// HTML is told from other broken XML here, since web pages are seldom good XML up to the first interesting tag.
    fn refuse_foreign(&self) -> Result<(), DecodeError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if let Some(behind) = strip(rest, "<!doctype") {
            let html = strip(behind.trim_start_matches(is_blank), "html").is_some();
            return Err(if html { DecodeError::Html } else { DecodeError::Doctype });
        }
        match strip(rest, "<html") {
            Some(behind) if behind.starts_with(|c| is_blank(c) || c == '>' || c == '/') => Err(DecodeError::Html),
            _ => Ok(()),
        }
    }

    /// XML-RPC has no attributes, so nobody needs their values; but a tag that is garbled must not pass for a good one.
    fn check_attributes(&self, start: &BytesStart<'_>) -> Result<(), DecodeError> {
        let raw = start.attributes_raw();
        // Repeated attributes are not looked for: that takes quadratic time.
        let good = raw.is_empty() || !raw.contains('<') && start.attributes().with_checks(false).all(|a| a.is_ok());
        if good { Ok(()) } else { Err(self.malformed("a tag with broken attributes")) }
    }

    fn resolve(&self, name: &quick_xml::events::BytesRef<'_>) -> Result<char, DecodeError> {
        match &**name {
            "amp" => Ok('&'),
            "lt" => Ok('<'),
            "gt" => Ok('>'),
            "apos" => Ok('\''),
            "quot" => Ok('"'),
            _ => match name.resolve_char_ref() {
                Ok(Some(char)) => Ok(char),
                Ok(None) => Err(self.malformed("an unknown entity")),
                Err(_) => Err(self.malformed("a reference to a character that does not exist")),
            },
        }
    }

    fn syntax(&self, error: &quick_xml::Error) -> DecodeError {
        use quick_xml::Error::{IllFormed, Syntax};
        use quick_xml::errors::IllFormedError::{MismatchedEndTag, UnclosedReference, UnmatchedEndTag};
        let end = self.text.len();
        let read = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        match error {
            // `<!` and `<!-` are cut off too, though quick-xml stops before the end there.
            Syntax(_) if read >= end || end - self.at <= "<!-".len() => DecodeError::Truncated,
            IllFormed(UnclosedReference) if read >= end => DecodeError::Truncated,
            IllFormed(UnclosedReference) => self.malformed("a `&` that begins no reference"),
            IllFormed(MismatchedEndTag { .. } | UnmatchedEndTag(_)) => {
                self.malformed("an end tag without its start tag")
            }
            _ => self.malformed("broken XML"),
        }
    }

    /// An error at the last item.
    pub(super) fn malformed(&self, what: impl Into<Cow<'static, str>>) -> DecodeError {
        DecodeError::Malformed { what: what.into(), at: self.offset + self.at }
    }

    /// The name in the last item, which was a start tag; cut short, and without anything a terminal would act on.
    pub(super) fn name(&self) -> String {
        let tag = self.text.get(self.at..).unwrap_or_default().trim_start_matches('<');
        let name = tag.chars().take_while(|&c| !is_blank(c) && c != '>' && c != '/').take(40);
        name.map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
    }
}

/// The text behind a prefix that is ASCII and may be in any case.
fn strip<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}
