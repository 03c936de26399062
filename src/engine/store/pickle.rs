//! Reads the database that SpamBayes itself keeps: a Python pickle.
//!
//! A pickle is a program for a small stack machine. This machine builds plain data only: it imports nothing, calls
//! nothing, and knows protocols 0 to 2. Objects are made of two classes by name, the classifier and its word records,
//! and anything else in the file is an error or is carried along unread.

use std::collections::HashMap;

use super::super::bayes::{Counts, Totals};
use super::super::memory::Memory;

/// Why a pickle could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PickleError {
    /// The file ends too early or makes no sense.
    #[error("not a pickle, or a damaged one, at byte {0}")]
    Damaged(usize),
    /// The file holds something of a kind that SpamBayes does not write.
    #[error("a pickle with an instruction that no SpamBayes database has, {code:#04x} at byte {at}")]
    Unsupported {
        /// The instruction.
        code: u8,
        /// Its place in the file.
        at: usize,
    },
    /// The file is a pickle of something else.
    #[error("a pickle, but not of a SpamBayes database")]
    Foreign,
    /// The database has another layout.
    #[error("a SpamBayes database of version {0}; only version 5 can be read")]
    Version(i64),
}

/// The version of the layout, which SpamBayes has written since 2003.
const VERSION: i64 = 5;

/// Reads the pickle of a `PickledClassifier`. Words that the original holds as Unicode strings become UTF-8.
///
/// # Errors
/// If the file is no such pickle. Damage inside never gives half a database.
pub fn read_pickle(data: &[u8]) -> Result<Memory, PickleError> {
    let mut machine =
        Machine { data, at: 0, nodes: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    let root = machine.run()?;
    machine.database(root).ok_or(PickleError::Foreign)?
}

type Id = usize;

#[derive(Debug, Clone)]
enum Node<'d> {
    Number(i64),
    Text(Text<'d>),
    Tuple(Vec<Id>),
    /// Keys and values in turn.
    Dict(Vec<Id>),
    Class(&'d [u8], &'d [u8]),
    Object {
        class: Id,
        state: Option<Id>,
    },
    Other,
}

#[derive(Debug, Clone)]
enum Text<'d> {
    Raw(&'d [u8]),
    Unescaped(Vec<u8>),
}

impl Text<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Text::Raw(bytes) => bytes,
            Text::Unescaped(bytes) => bytes,
        }
    }
}

struct Machine<'d> {
    data: &'d [u8],
    at: usize,
    /// Everything ever made; stack and memo hold numbers, so that sharing cannot multiply anything.
    nodes: Vec<Node<'d>>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
}

impl<'d> Machine<'d> {
    fn damaged(&self) -> PickleError {
        PickleError::Damaged(self.at)
    }

    fn take(&mut self, length: usize) -> Result<&'d [u8], PickleError> {
        let end = self.at.checked_add(length).ok_or(self.damaged())?;
        let bytes = self.data.get(self.at..end).ok_or(self.damaged())?;
        self.at = end;
        Ok(bytes)
    }

    /// A number of up to eight bytes, little endian, without sign.
    fn unsigned(&mut self, length: usize) -> Result<u64, PickleError> {
        Ok(self.take(length)?.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    fn sized(&mut self, length_bytes: usize) -> Result<&'d [u8], PickleError> {
        let length = self.unsigned(length_bytes)?;
        self.take(usize::try_from(length).map_err(|_| self.damaged())?)
    }

    fn line(&mut self) -> Result<&'d [u8], PickleError> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).ok_or(self.damaged())?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn push(&mut self, node: Node<'d>) {
        self.stack.push(self.nodes.len());
        self.nodes.push(node);
    }

    fn pop(&mut self) -> Result<Id, PickleError> {
        // What lies below a mark belongs to somebody else.
        if self.stack.len() <= self.marks.last().copied().unwrap_or(0) {
            return Err(self.damaged());
        }
        self.stack.pop().ok_or(self.damaged())
    }

    fn top(&self) -> Result<Id, PickleError> {
        self.stack.last().copied().ok_or(self.damaged())
    }

    /// What lies above the last mark, which goes away.
    fn above_mark(&mut self) -> Result<Vec<Id>, PickleError> {
        let mark = self.marks.pop().ok_or(self.damaged())?;
        if mark > self.stack.len() {
            return Err(self.damaged());
        }
        Ok(self.stack.split_off(mark))
    }

    fn pop_tuple(&mut self, length: usize) -> Result<(), PickleError> {
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Node::Tuple(items));
        Ok(())
    }

    fn remember(&mut self, key: u64) -> Result<(), PickleError> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<(), PickleError> {
        let id = *self.memo.get(&key).ok_or(self.damaged())?;
        self.stack.push(id);
        Ok(())
    }

    fn number(&mut self, text: &[u8]) -> Result<i64, PickleError> {
        let text = std::str::from_utf8(text).map_err(|_| self.damaged())?.trim();
        text.strip_suffix('L').unwrap_or(text).parse().map_err(|_| self.damaged())
    }

    /// Puts keys and values into the dictionary that is now on top.
    fn fill(&mut self, items: Vec<Id>) -> Result<(), PickleError> {
        let top = self.top()?;
        match self.nodes.get_mut(top) {
            Some(Node::Dict(all)) if items.len().is_multiple_of(2) => all.extend(items),
            Some(Node::Other) => {}
            _ => return Err(self.damaged()),
        }
        Ok(())
    }

    fn run(&mut self) -> Result<Id, PickleError> {
        loop {
            let at = self.at;
            let code = self.take(1)?[0];
            match code {
                b'.' => return self.pop(),
                0x80 => {
                    if self.take(1)?[0] > 2 {
                        return Err(PickleError::Unsupported { code, at });
                    }
                }
                b'(' => self.marks.push(self.stack.len()),
                b'0' => {
                    self.pop()?;
                }
                b'1' => {
                    self.above_mark()?;
                }
                b'2' => {
                    let top = self.top()?;
                    self.stack.push(top);
                }
                b'N' | 0x88 | 0x89 | b']' => self.push(Node::Other),
                b'F' => {
                    self.line()?;
                    self.push(Node::Other);
                }
                b'G' => {
                    self.take(8)?;
                    self.push(Node::Other);
                }
                b'I' | b'L' => {
                    let line = self.line()?;
                    let number = self.number(line)?;
                    self.push(Node::Number(number));
                }
                b'J' => {
                    let number = self.unsigned(4)? as u32 as i32;
                    self.push(Node::Number(i64::from(number)));
                }
                b'K' => {
                    let number = self.unsigned(1)?;
                    self.push(Node::Number(number as i64));
                }
                b'M' => {
                    let number = self.unsigned(2)?;
                    self.push(Node::Number(number as i64));
                }
                0x8a => {
                    let bytes = self.sized(1)?;
                    let number = long(bytes).ok_or(self.damaged())?;
                    self.push(Node::Number(number));
                }
                b'U' => {
                    let text = self.sized(1)?;
                    self.push(Node::Text(Text::Raw(text)));
                }
                b'T' | b'X' => {
                    let text = self.sized(4)?;
                    self.push(Node::Text(Text::Raw(text)));
                }
                b'S' => {
                    let line = self.line()?;
                    let text = unescape_string(line).ok_or(self.damaged())?;
                    self.push(Node::Text(Text::Unescaped(text)));
                }
                b'V' => {
                    let line = self.line()?;
                    let text = unescape_unicode(line).ok_or(self.damaged())?;
                    self.push(Node::Text(Text::Unescaped(text)));
                }
                b')' => self.push(Node::Tuple(Vec::new())),
                b't' => {
                    let items = self.above_mark()?;
                    self.push(Node::Tuple(items));
                }
                0x85..=0x87 => self.pop_tuple(usize::from(code - 0x84))?,
                b'}' => self.push(Node::Dict(Vec::new())),
                b'd' => {
                    let items = self.above_mark()?;
                    self.push(Node::Dict(Vec::new()));
                    self.fill(items)?;
                }
                b's' => {
                    let value = self.pop()?;
                    let key = self.pop()?;
                    self.fill(vec![key, value])?;
                }
                b'u' => {
                    let items = self.above_mark()?;
                    self.fill(items)?;
                }
                b'l' => {
                    self.above_mark()?;
                    self.push(Node::Other);
                }
                b'a' => {
                    self.pop()?;
                }
                b'e' => {
                    self.above_mark()?;
                }
                b'p' => {
                    let line = self.line()?;
                    let key = self.number(line)?;
                    self.remember(key as u64)?;
                }
                b'q' => {
                    let key = self.unsigned(1)?;
                    self.remember(key)?;
                }
                b'r' => {
                    let key = self.unsigned(4)?;
                    self.remember(key)?;
                }
                b'g' => {
                    let line = self.line()?;
                    let key = self.number(line)?;
                    self.recall(key as u64)?;
                }
                b'h' => {
                    let key = self.unsigned(1)?;
                    self.recall(key)?;
                }
                b'j' => {
                    let key = self.unsigned(4)?;
                    self.recall(key)?;
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.push(Node::Class(module, name));
                }
                b'o' => {
                    let items = self.above_mark()?;
                    let class = *items.first().ok_or(self.damaged())?;
                    self.push(Node::Object { class, state: None });
                }
                b'i' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.above_mark()?;
                    self.push(Node::Class(module, name));
                    let class = self.pop()?;
                    self.push(Node::Object { class, state: None });
                }
                0x81 => {
                    self.pop()?;
                    let class = self.pop()?;
                    self.push(Node::Object { class, state: None });
                }
                b'R' => {
                    let (arguments, function) = (self.pop()?, self.pop()?);
                    let object = self.reconstruct(function, arguments);
                    self.push(object);
                }
                b'b' => {
                    let state = self.pop()?;
                    let top = self.top()?;
                    match self.nodes.get_mut(top) {
                        Some(Node::Object { state: place, .. }) => *place = Some(state),
                        Some(Node::Other) => {}
                        _ => return Err(self.damaged()),
                    }
                }
                _ => return Err(PickleError::Unsupported { code, at }),
            }
        }
    }

    /// The one function whose call is understood, and not made: the one that makes an object of a class.
    fn reconstruct(&self, function: Id, arguments: Id) -> Node<'d> {
        match (self.nodes.get(function), self.nodes.get(arguments)) {
            (Some(Node::Class(b"copy_reg" | b"copyreg", b"_reconstructor")), Some(Node::Tuple(items))) => {
                match items.first() {
                    Some(&class) => Node::Object { class, state: None },
                    None => Node::Other,
                }
            }
            _ => Node::Other,
        }
    }

    /// The state of an object of this class.
    fn state(&self, id: Id, name: &[u8]) -> Option<&[Id]> {
        let Node::Object { class, state: Some(state) } = self.nodes.get(id)? else { return None };
        match (self.nodes.get(*class)?, self.nodes.get(*state)?) {
            (Node::Class(_, found), Node::Tuple(items)) if *found == name => Some(items),
            _ => None,
        }
    }

    fn count(&self, id: Id) -> Option<u32> {
        match self.nodes.get(id)? {
            Node::Number(number) => u32::try_from(*number).ok(),
            _ => None,
        }
    }

    fn database(&self, root: Id) -> Option<Result<Memory, PickleError>> {
        let state = self.state(root, b"PickledClassifier").or_else(|| self.state(root, b"Classifier"))?;
        let Node::Number(version) = self.nodes.get(*state.first()?)? else { return None };
        if *version != VERSION {
            return Some(Err(PickleError::Version(*version)));
        }
        let &[_, words, nspam, nham] = state else { return None };
        let Node::Dict(items) = self.nodes.get(words)? else { return None };
        let mut memory = Memory::new();
        memory.add_totals(Totals { nham: self.count(nham)?, nspam: self.count(nspam)? });
        for pair in items.chunks_exact(2) {
            let Node::Text(word) = self.nodes.get(pair[0])? else { return None };
            let &[spam, ham] = self.state(pair[1], b"WordInfo")? else { return None };
            memory.add(word.bytes(), Counts { ham: self.count(ham)?, spam: self.count(spam)? });
        }
        Some(Ok(memory))
    }
}

/// A number in two's complement, little endian.
fn long(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > 8 {
        return None;
    }
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    Some(bytes.iter().rev().fold(if negative { -1 } else { 0 }, |sum: i64, &byte| sum << 8 | i64::from(byte)))
}

/// Undoes Python 2's `repr` of a byte string.
fn unescape_string(line: &[u8]) -> Option<Vec<u8>> {
    let quote = *line.first().filter(|quote| matches!(quote, b'\'' | b'"'))?;
    let inside = line.get(1..)?.strip_suffix(&[quote])?;
    let mut out = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => hex(&mut bytes, 2)? as u8,
            other @ (b'\\' | b'\'' | b'"') => other,
            _ => return None,
        });
    }
    Some(out)
}

/// Undoes Python 2's `raw-unicode-escape`, which is latin-1 with `\uXXXX` for the rest; gives UTF-8.
fn unescape_unicode(line: &[u8]) -> Option<Vec<u8>> {
    let mut out = String::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let digits = match (byte, bytes.peek()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                out.push(char::from(byte));
                continue;
            }
        };
        bytes.next();
        out.push(char::from_u32(hex(&mut bytes, digits)?).unwrap_or('\u{fffd}'));
    }
    Some(out.into_bytes())
}

fn hex(bytes: &mut impl Iterator<Item = u8>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0, |sum, _| Some(sum << 4 | char::from(bytes.next()?).to_digit(16)?))
}
