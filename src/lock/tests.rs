use std::time::SystemTime;

use super::dotlock::host_name;
use super::*;

fn mailbox() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("inbox");
    fs::write(&path, "From a\n\n").expect("written");
    let dot = folder.path().join("inbox.lock");
    (folder, path, dot)
}

fn open(path: &Path) -> (Result<Locked, LockError>, Vec<String>) {
    let mut warnings = Vec::new();
    let lock = Locked::open(path, Duration::from_millis(50), &mut |text| warnings.push(text));
    (lock, warnings)
}

fn deliver(path: &Path, kinds: Kinds) -> (Result<Locked, LockError>, Vec<String>) {
    let mut warnings = Vec::new();
    let how = How { kinds, wait: Duration::from_millis(50), delivers: true, ..How::default() };
    let lock = Locked::take(path, &how, &mut |text| warnings.push(text));
    (lock, warnings)
}

/// The number of a process that is no more.
fn dead() -> u32 {
    let mut child = std::process::Command::new("true").spawn().expect("true");
    child.wait().expect("ended");
    child.id()
}

fn age(path: &Path, age: Duration) {
    let time = SystemTime::now() - age;
    File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("set");
}

#[test]
fn the_dotlock_comes_and_goes() {
    let (_folder, path, dot) = mailbox();
    let (lock, warnings) = open(&path);
    let lock = lock.expect("free");
    assert!(dot.exists() && warnings.is_empty());
    assert!(matches!(open(&path).0, Err(LockError::Held { .. })));
    drop(lock);
    assert!(!dot.exists());
    assert!(open(&path).0.is_ok());
}

#[test]
fn a_lock_of_the_living_or_the_unknown_is_waited_for() {
    let (_folder, path, dot) = mailbox();
    for owner in ["0", "", "1 elsewhere", &format!("{} {}\n", std::process::id(), host_name())] {
        fs::write(&dot, owner).expect("written");
        assert!(matches!(open(&path).0, Err(LockError::Held { .. })), "{owner}");
        assert!(dot.exists());
    }
}

#[test]
fn a_lock_of_the_dead_or_the_old_goes_with_a_warning() {
    let (_folder, path, dot) = mailbox();
    fs::write(&dot, format!("{} {}", dead(), host_name())).expect("written");
    let (lock, warnings) = open(&path);
    assert!(lock.is_ok() && warnings.len() == 1, "{warnings:?}");
    drop(lock);
    for owner in ["0".to_owned(), format!("{} {}", std::process::id(), host_name())] {
        fs::write(&dot, owner).expect("written");
        age(&dot, STALE + Duration::from_secs(60));
        assert!(matches!(open(&path), (Ok(_), warnings) if warnings.len() == 1));
    }
}

#[test]
fn a_lock_that_is_no_file_is_neither_read_nor_waited_on() {
    let (folder, path, dot) = mailbox();
    rustix::fs::mknodat(rustix::fs::CWD, &dot, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
    assert!(matches!(open(&path).0, Err(LockError::Held { .. })));
    fs::remove_file(&dot).expect("there");
    let private = folder.path().join("private");
    fs::write(&private, "secret\n").expect("written");
    std::os::unix::fs::symlink(&private, &dot).expect("linked");
    let told = open(&path).0.expect_err("held").to_string();
    assert!(!told.contains("secret"), "{told}");
    fs::remove_file(&dot).expect("there");
    fs::write(&dot, "9".repeat(10_000)).expect("written");
    assert!(open(&path).0.expect_err("held").to_string().len() < 400);
}

#[test]
fn a_note_of_somebody_else_is_not_believed() {
    if !rustix::process::geteuid().is_root() {
        // Nobody else can give files away.
        return;
    }
    let (_folder, path, dot) = mailbox();
    fs::write(&dot, format!("{} {}\nappend 1 2\n", dead(), host_name())).expect("written");
    std::os::unix::fs::chown(&dot, Some(65534), None).expect("root");
    assert_eq!(open(&path).0.expect("stale").abandoned_note(), None);
}

#[test]
fn a_zombie_holds_no_lock() {
    let (_folder, path, dot) = mailbox();
    let mut child = std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn().expect("true");
    // Its output closes when it ends; it is waited for only afterwards.
    io::copy(&mut child.stdout.take().expect("piped"), &mut io::sink()).expect("read");
    fs::write(&dot, format!("{} {}", child.id(), host_name())).expect("written");
    let opened = (0..100).any(|_| open(&path).0.is_ok());
    child.wait().expect("ended");
    assert!(opened);
}

#[test]
fn the_last_note_of_the_dead_is_found_and_handed_on() {
    let (_folder, path, dot) = mailbox();
    fs::write(&dot, format!("{} {}\nold\nappend 1 2\n", dead(), host_name())).expect("written");
    let lock = open(&path).0.expect("stale");
    assert_eq!(lock.abandoned_note(), Some("append 1 2"));
    assert_eq!(
        fs::read_to_string(&dot).expect("there"),
        format!("{} {}\nappend 1 2\n", std::process::id(), host_name())
    );
    lock.leave_note("append 3 4").expect("written");
    assert!(fs::read_to_string(&dot).expect("there").ends_with("append 1 2\nappend 3 4\n"));
    drop(lock);
    assert_eq!(open(&path).0.expect("free").abandoned_note(), None);
}

#[test]
fn folders_and_missing_files_are_errors() {
    let (folder, ..) = mailbox();
    assert!(matches!(open(folder.path()).0, Err(LockError::Failed { .. } | LockError::NotRegular(_))));
    assert!(matches!(open(&folder.path().join("none")).0, Err(LockError::Failed { .. })));
}

#[test]
fn delivery_makes_the_mailbox_and_takes_back_one_that_stays_empty() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, dot) = (folder.path().join("new"), folder.path().join("new.lock"));
    let (lock, warnings) = deliver(&path, Kinds::default());
    lock.expect("made");
    assert!(warnings.is_empty() && !dot.exists());
    assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
    fs::remove_file(&path).expect("there");
    fs::write(&dot, "").expect("written");
    assert!(matches!(deliver(&path, Kinds::default()).0, Err(LockError::Held { .. })));
    assert!(!path.exists());
    // Who does not ask for the dotlock does not mind one.
    deliver(&path, Kinds { dot: false, ..Kinds::default() }).0.expect("free");
}

#[test]
fn delivery_follows_no_link_and_trusts_no_hard_link() {
    let (folder, path, _) = mailbox();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    std::os::unix::fs::symlink(&path, &soft).expect("linked");
    assert!(matches!(deliver(&soft, Kinds::default()).0, Err(LockError::Failed { .. })));
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).expect("linked");
    assert!(matches!(deliver(&folder.path().join("dangling"), Kinds::default()).0, Err(LockError::Failed { .. })));
    fs::hard_link(&path, &hard).expect("linked");
    assert!(matches!(deliver(&hard, Kinds::default()).0, Err(LockError::Untrusted { .. })));
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
    assert!(matches!(deliver(&fifo, Kinds::default()).0, Err(LockError::NotRegular(_))));
}

#[test]
fn each_kernel_lock_is_taken_if_asked_for() {
    let (_folder, path, dot) = mailbox();
    let held = File::open(&path).expect("there");
    flock(&held, FlockOperation::NonBlockingLockExclusive).expect("free");
    let all = Kinds { flock: true, ..Kinds::default() };
    assert!(matches!(deliver(&path, all).0, Err(LockError::Held { .. })));
    assert!(!dot.exists());
    drop(held);
    deliver(&path, all).0.expect("free");
}

#[test]
fn where_no_dotlock_can_be_the_kernel_lock_will_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("n".repeat(255));
    let (lock, warnings) = deliver(&path, Kinds::default());
    assert!(lock.is_ok() && warnings.len() == 1 && warnings[0].contains("lock"), "{warnings:?}");
    drop(lock);
    fs::remove_file(&path).expect("there");
    assert!(deliver(&path, Kinds { dot: true, fcntl: false, flock: false }).0.is_err());
    assert!(!path.exists());
}
