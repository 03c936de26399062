//! `--in-place`: rewrites a mailbox that other programs deliver to meanwhile.
//!
//! The mailbox is locked only for moments: to note what it holds, and, once that has been classified into a file beside
//! it, to bring the new text into the same inode. What was delivered between stays, behind the rest. See `recovery` for
//! what happens if the process is killed in the second moment; before that, nothing has been touched.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::recovery::{self, Digest};
use super::tally::Report;
use super::write::Destination;
use super::{Ended, Filled, Run, cannot};
use crate::exit::{Exit, Failure};
use crate::input::Source;
use crate::lock::{LockError, Locked};
use crate::mbox::write::Writer;
use crate::output::{self, Output};

/// How long a lock is waited for.
const WAIT: Duration = Duration::from_secs(60);
/// How often a mailbox is read anew that somebody else has rewritten meanwhile.
const TRIES: usize = 3;

/// What a mailbox held when it was locked first.
struct Snapshot {
    device: u64,
    inode: u64,
    length: u64,
    digest: Digest,
}

/// Rewrites all mailboxes of the plan, one after the other.
pub(super) fn run(run: &mut Run) -> anyhow::Result<Ended> {
    let mut exit = Exit::Ok;
    for (file, source) in run.plan.inputs.clone().into_iter().enumerate() {
        let Source::Path(path) = source else {
            return Err(Failure::error(Exit::Usage, "standard input cannot be rewritten in place"));
        };
        let path = std::fs::canonicalize(&path).map_err(|error| cannot(Exit::NoInput, "open", &path, &error))?;
        match rewrite(run, file, &path) {
            Ok(status) => exit = exit.and(status),
            Err(error) => {
                run.teller.error(&format!("{error:#}"));
                exit = exit.and(crate::exit::status(&error));
            }
        }
        if run.stop.pulled() {
            break;
        }
    }
    Ok(Ended::With(exit))
}

fn lock(run: &Run, path: &Path) -> anyhow::Result<Locked> {
    Locked::open(path, WAIT, &mut |text| run.teller.error(&text)).map_err(|error| {
        let exit = match &error {
            LockError::Held { .. } | LockError::Stopped(_) => Exit::TempFail,
            LockError::NotRegular(_) => Exit::NoInput,
            LockError::Failed { error, .. } if error.kind() == io::ErrorKind::NotFound => Exit::NoInput,
            LockError::Failed { .. } | LockError::Untrusted { .. } => Exit::CannotCreate,
        };
        Failure::error(exit, error.to_string())
    })
}

fn rewrite(run: &mut Run, file: usize, path: &Path) -> anyhow::Result<Exit> {
    let failed = |what: &str, error: io::Error| cannot(Exit::Io, what, path, &error);
    for _ in 0..TRIES {
        let snapshot = {
            let mut locked = lock(run, path)?;
            output::sweep(path);
            // First, for it is told by its place in the mailbox as it is now.
            crate::deliver::mbox::mend(&mut locked, path, &mut |text| run.teller.error(&text))
                .map_err(|error| failed("mend", error))?;
            for told in recovery::recover(path, locked.file()).map_err(|error| failed("recover", error))? {
                run.teller.error(&told);
            }
            take(&mut locked).map_err(|error| failed("read", error))?
        };
        let counted = run.tally.clone();
        let rows = run.report.as_mut().map_or(Ok(0), Report::mark).map_err(|error| failed("report on", error))?;
        let temporary =
            output::beside(path, 0o600).map_err(|error| cannot(Exit::CannotCreate, "write beside", path, &error))?;
        let output = Output::temporary(temporary).map_err(|error| failed("write beside", error))?;
        run.file = file;
        let source = Source::Beginning { path: path.to_owned(), length: snapshot.length };
        let Filled { destination, complete, ended } = run.fill(vec![source], Destination::one(output))?;
        let Ended::With(status) = ended else { return Ok(Exit::Io) };
        if !complete && run.stop.pulled() {
            return Ok(status);
        }
        // Also where reading has failed: a mailbox that is rewritten meanwhile can seem to be anything.
        let mut locked = lock(run, path)?;
        if !unchanged(&mut locked, &snapshot, path).map_err(|error| failed("read", error))? {
            run.teller.note(&format!("{} was rewritten by another program; reading it anew", path.display()));
            run.tally = counted;
            run.report
                .as_mut()
                .map_or(Ok(()), |report| report.back_to(rows))
                .map_err(|error| failed("report on", error))?;
            continue;
        }
        if !complete {
            return Ok(status);
        }
        let Destination::One(writer) = destination else { return Ok(Exit::Io) };
        put(&mut locked, *writer, &snapshot, path).map_err(|error| failed("rewrite", error))?;
        return Ok(status);
    }
    Err(Failure::error(
        Exit::TempFail,
        format!("{}: other programs keep rewriting it; it is as it was", path.display()),
    ))
}

fn take(locked: &mut Locked) -> io::Result<Snapshot> {
    let metadata = locked.file().metadata()?;
    let (device, inode, length) = (metadata.dev(), metadata.ino(), metadata.len());
    locked.file().rewind()?;
    let digest = Digest::of(locked.file().take(length))?;
    Ok(Snapshot { device, inode, length, digest })
}

fn unchanged(locked: &mut Locked, before: &Snapshot, path: &Path) -> io::Result<bool> {
    let metadata = locked.file().metadata()?;
    if (metadata.dev(), metadata.ino()) != (before.device, before.inode) || metadata.len() < before.length {
        return Ok(false);
    }
    // Another run began to rewrite it and was killed: what it has made longer is no mail that was delivered.
    if recovery::is_pending(path)? {
        return Ok(false);
    }
    locked.file().rewind()?;
    Ok(Digest::of(locked.file().take(before.length))? == before.digest)
}

/// Brings the new text, and what was delivered since the snapshot, into the mailbox.
fn put(locked: &mut Locked, mut new: Writer<Output>, before: &Snapshot, path: &Path) -> io::Result<()> {
    let old_length = locked.file().metadata()?.len();
    let mailbox = locked.file();
    mailbox.seek(SeekFrom::Start(before.length))?;
    let mut delivered = mailbox.take(old_length - before.length);
    let mut start = Vec::new();
    (&mut delivered).take(5).read_to_end(&mut start)?;
    if start == b"From " {
        new.end_in_empty_line()?;
    }
    new.write_all(&start)?;
    io::copy(&mut delivered, &mut new)?;
    let temporary = new.into_inner().into_temporary()?;
    recovery::replace(mailbox, temporary, path)
}
