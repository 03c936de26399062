//! Opening inputs: a path or `-`, packed (gzip, xz, zstd, known by their content) or not, as one [`Read`].

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// What can be wrong with an input, apart from its content.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be opened.
    #[error("{name}: {error}")]
    Open {
        /// The input's name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// It is packed, and would have to be rewritten.
    #[error("{name} is packed and cannot be rewritten in place")]
    Packed {
        /// The input's name.
        name: String,
    },
    /// It is a folder.
    #[error("{name} is a folder, not an mbox file")]
    Folder {
        /// The input's name.
        name: String,
    },
}

/// What went wrong while reading; travels inside an [`io::Error`].
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The packed data are damaged or end early.
    #[error("damaged or truncated {format} data: {error}")]
    Packed {
        /// gzip, xz or zstd.
        format: &'static str,
        /// What the unpacker says.
        error: io::Error,
    },
    /// The file has become shorter since it was opened.
    #[error("the file was truncated while it was read, at byte {read} of {expected}")]
    Truncated {
        /// Bytes read.
        read: u64,
        /// Its length when it was opened.
        expected: u64,
    },
}

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    Path(PathBuf),
    /// The beginning of a file that other programs append to; it must not be packed.
    Beginning {
        /// The file.
        path: PathBuf,
        /// How much of it is read, bytes.
        length: u64,
    },
}

impl Source {
    /// The input that an argument names: `-` is standard input.
    pub fn from_argument(argument: PathBuf) -> Source {
        if argument.as_os_str() == "-" { Source::Stdin } else { Source::Path(argument) }
    }

    /// Its name for messages and reports.
    pub fn name(&self) -> String {
        match self {
            Source::Stdin => "standard input".to_owned(),
            Source::Path(path) | Source::Beginning { path, .. } => path.display().to_string(),
        }
    }

    /// Opens it.
    pub fn open(&self) -> Result<Input, InputError> {
        let file = match self {
            // A duplicate, so that no buffer of std's own stands between: reads are large already.
            Source::Stdin => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            Source::Path(path) | Source::Beginning { path, .. } => File::open(path),
        };
        let file = file.map_err(|error| InputError::Open { name: self.name(), error })?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(InputError::Folder { name: self.name() });
        }
        let input = Input::new(file).map_err(|error| InputError::Open { name: self.name(), error })?;
        match self {
            Source::Beginning { .. } if input.length.is_none() => Err(InputError::Packed { name: self.name() }),
            Source::Beginning { length, .. } => {
                Ok(Input { reader: Box::new(input.reader.take(*length)), length: Some(*length) })
            }
            Source::Stdin | Source::Path(_) => Ok(input),
        }
    }
}

/// An open input.
pub struct Input {
    /// The unpacked bytes.
    pub reader: Box<dyn Read + Send>,
    /// Length of the plain content from here on, where it is known: of a regular file that is not packed.
    pub length: Option<u64>,
}

impl Input {
    fn new(mut file: File) -> io::Result<Input> {
        let expected = remaining(&mut file);
        let mut reader = Whole { file, read: 0, expected };
        let mut magic = Vec::with_capacity(MAGIC);
        (&mut reader).take(MAGIC as u64).read_to_end(&mut magic)?;
        let format = Format::of(&magic);
        let raw = Cursor::new(magic).chain(reader);
        let packed = |format, reader| Ok(Input { reader: Box::new(Packed { format, reader }), length: None });
        match format {
            None => Ok(Input { reader: Box::new(raw), length: expected }),
            Some(Format::Gzip) => packed("gzip", Box::new(flate2::read::MultiGzDecoder::new(raw))),
            Some(Format::Xz) => packed("xz", Box::new(liblzma::read::XzDecoder::new_multi_decoder(raw))),
            Some(Format::Zstd) => packed("zstd", zstd_reader(raw)?),
        }
    }
}

fn zstd_reader(raw: Chain<Cursor<Vec<u8>>, Whole>) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::stream::read::Decoder::new(raw)?))
}

/// Bytes from the current position to the end of a regular file.
fn remaining(file: &mut File) -> Option<u64> {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let at = io::Seek::stream_position(file).ok()?;
    Some(metadata.len().saturating_sub(at))
}

/// Bytes needed to know a format.
const MAGIC: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Gzip,
    Xz,
    Zstd,
}

impl Format {
    /// RFC 1952, the .xz file format 1.2, RFC 8878 (a frame, or one that is skipped).
    fn of(magic: &[u8]) -> Option<Format> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Format::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => Some(Format::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Format::Zstd),
            _ => None,
        }
    }
}

/// A file that must not end before the length it had when it was opened. This is what a memory map would tell with a
/// signal.
struct Whole {
    file: File,
    read: u64,
    expected: Option<u64>,
}

impl Read for Whole {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(out)?;
        self.read += length as u64;
        match self.expected {
            Some(expected) if length == 0 && !out.is_empty() && self.read < expected => {
                Err(io::Error::other(Damage::Truncated { read: self.read, expected }))
            }
            _ => Ok(length),
        }
    }
}

/// An unpacker whose errors say what is damaged.
struct Packed {
    format: &'static str,
    reader: Box<dyn Read + Send>,
}

impl Read for Packed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reader.read(out).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ if error.get_ref().is_some_and(|inner| inner.is::<Damage>()) => error,
            _ => io::Error::other(Damage::Packed { format: self.format, error }),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"From a@b Mon Jan  5 10:00:00 2004\nA: 1\n\nbody\n\n";

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        io::Seek::rewind(&mut file)?;
        let mut out = Vec::new();
        Input::new(file)?.reader.read_to_end(&mut out)?;
        Ok(out)
    }

    fn packed() -> [(&'static str, Vec<u8>); 3] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(TEXT).expect("a Vec");
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(TEXT).expect("a Vec");
        let zstd = zstd::encode_all(TEXT, 1).expect("a Vec");
        [("gzip", gzip.finish().expect("a Vec")), ("xz", xz.finish().expect("a Vec")), ("zstd", zstd)]
    }

    #[test]
    fn packed_input_is_known_by_its_content_and_may_come_in_members() {
        for (format, bytes) in packed() {
            assert_eq!(read(&bytes).expect(format), TEXT);
            assert_eq!(read(&[bytes.clone(), bytes].concat()).expect(format), [TEXT, TEXT].concat());
        }
        for plain in [TEXT, b"", b"F", b"\x1f", b"\xfd7zXY\0"] {
            assert_eq!(read(plain).expect("plain"), plain);
        }
    }

    #[test]
    fn packed_input_that_was_cut_is_an_error() {
        for (format, bytes) in packed() {
            for cut in MAGIC..bytes.len() {
                let text = read(&bytes[..cut]).map_err(|error| error.to_string());
                assert!(text.as_ref().is_err_and(|text| text.contains(format)), "{format} cut at {cut}: {text:?}");
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(1 << 20).expect("room");
        let mut input = Source::Path(file.path().to_owned()).open().expect("it is there");
        assert_eq!(input.length, Some(1 << 20));
        let mut some = [0; 1000];
        input.reader.read_exact(&mut some).expect("still there");
        file.as_file().set_len(10).expect("shorter");
        let error = input.reader.read_to_end(&mut Vec::new()).expect_err("cut");
        assert!(error.to_string().contains("truncated while it was read"), "{error}");
    }

    #[test]
    fn folders_and_missing_files_are_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = |path: PathBuf| Source::from_argument(path).open().err();
        assert!(matches!(open(folder.path().to_owned()), Some(InputError::Folder { .. })));
        assert!(matches!(open(folder.path().join("none")), Some(InputError::Open { .. })));
        assert_eq!(Source::from_argument("-".into()), Source::Stdin);
    }
}
