//! The text form of a database, as SpamBayes's `sb_dbexpimp` reads and writes it: a row `NHAM,NSPAM`, then a row
//! `WORD,HAM,SPAM` for each word. Words are raw bytes and may hold line ends.

use std::io::{self, Read, Write};

use super::super::bayes::{Counts, Totals};
use super::super::memory::Memory;

/// Why an export could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// Reading failed.
    #[error("reading the export: {0}")]
    Read(io::Error),
    /// A row is not what it should be.
    #[error("row {row}: {reason}")]
    Row {
        /// The row, the first one being 1.
        row: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// Reads an export.
///
/// # Errors
/// At the first row that makes no sense.
pub fn read_csv(input: impl Read) -> Result<Memory, CsvError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = csv::ByteRecord::new();
    let mut memory = Memory::new();
    let mut row = 0_u64;
    while reader.read_byte_record(&mut record).map_err(|error| CsvError::Read(error.into()))? {
        row += 1;
        let number = |at: usize| {
            let text = record.get(at).and_then(|field| std::str::from_utf8(field).ok());
            text.and_then(|text| text.trim().parse().ok()).ok_or(CsvError::Row { row, reason: "no number of messages" })
        };
        match (row, record.len()) {
            (1, 2) => memory.add_totals(Totals { nham: number(0)?, nspam: number(1)? }),
            (1, _) => return Err(CsvError::Row { row, reason: "the numbers of ham and spam messages were expected" }),
            (_, 3) => memory.add(&record[0], Counts { ham: number(1)?, spam: number(2)? }),
            _ => return Err(CsvError::Row { row, reason: "a word and two numbers were expected" }),
        }
    }
    if row == 0 {
        return Err(CsvError::Row { row: 1, reason: "the numbers of ham and spam messages were expected" });
    }
    Ok(memory)
}

pub(super) fn write_totals(out: &mut dyn Write, totals: Totals) -> io::Result<()> {
    write!(out, "{},{}\r\n", totals.nham, totals.nspam)
}

/// Quotes as Python's csv module does: only where there is need.
pub(super) fn write_row(out: &mut dyn Write, word: &[u8], counts: Counts) -> io::Result<()> {
    if word.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        out.write_all(b"\"")?;
        for (n, part) in word.split(|&byte| byte == b'"').enumerate() {
            if n > 0 {
                out.write_all(b"\"\"")?;
            }
            out.write_all(part)?;
        }
        out.write_all(b"\"")?;
    } else {
        out.write_all(word)?;
    }
    write!(out, ",{},{}\r\n", counts.ham, counts.spam)
}
