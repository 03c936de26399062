//! `filter`: what is read, and which part of it.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;

use super::harness::*;

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("room");
    path.into_os_string().into_string().expect("UTF-8")
}

#[test]
fn several_mailboxes_are_read_one_after_the_other() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let a = write(folder.path(), "a", &mailbox(1, 3));
    let b = write(folder.path(), "b", &mailbox(4, 2));
    let out = filter(&server, [&a, "-", &b]).stdin(mailbox(9, 1)).ends_with(0).out;
    assert_only_verdicts_added(&[mailbox(1, 3), mailbox(9, 1), mailbox(4, 2)].concat(), &out, 6);
}

#[test]
fn at_a_joint_the_next_message_is_still_found() {
    let (server, folder) = (Server::scoring(0.5), tempfile::tempdir().expect("room"));
    let from = "From a@b.example Mon Jan  5 10:00:00 2004";
    for (end, joint) in [("", "\n\n"), ("\n", "\n"), ("\n\n", "")] {
        let first = format!("{from}\nA: 1\n\nno line end");
        let a = write(folder.path(), "a", format!("{first}{end}").as_bytes());
        let b = write(folder.path(), "b", &mailbox(1, 2));
        let out = filter(&server, [&a, &b]).ends_with(0).out;
        let want = [first.as_bytes(), end.as_bytes(), joint.as_bytes(), &mailbox(1, 2)].concat();
        assert_only_verdicts_added(&want, &out, 3);
        assert_same(&out, &filter(&server, ["-q"]).stdin(out.clone()).ends_with(0).out);
    }
}

#[test]
fn a_fifo_is_read_as_it_is_filled() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let path = folder.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a FIFO");
    let running = filter(&server, [&path]).start();
    let (input, writer) = (mailbox(1, 50), path.clone());
    let feeding = thread::spawn(move || {
        let mut fifo = std::fs::File::options().write(true).open(writer).expect("a reader");
        mailbox(1, 50).chunks(777).for_each(|chunk| fifo.write_all(chunk).expect("read"));
    });
    let ended = running.end();
    feeding.join().expect("all written");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_only_verdicts_added(&input, &ended.out, 50);
}

#[test]
fn what_has_been_read_is_written_while_the_input_still_waits() {
    use std::io::{BufRead, BufReader};
    let server = Server::good();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hamsift"));
    command.env_clear().args(["filter", "-q", "-s", server.url()]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let (mut stdin, mut lines) =
        (child.stdin.take().expect("piped"), BufReader::new(child.stdout.take().expect("piped")).lines());
    // The first message is known to have ended once the second has begun.
    stdin.write_all(&mailbox(1, 2)).expect("it reads");
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let found = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("no 1 here"));
        let _ = sender.send(found);
        lines.map_while(Result::ok).count()
    });
    let first = receiver.recv_timeout(DEADLINE).expect("the first message comes out before the input ends");
    assert_eq!(first.as_deref(), Some("no 1 here."));
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn packed_mailboxes_are_known_by_their_content() {
    let (server, input) = (Server::good(), sample());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&input).expect("a Vec");
    let gzip = gzip.finish().expect("a Vec");
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&input).expect("a Vec");
    let folder = tempfile::tempdir().expect("room");
    for packed in [gzip.clone(), xz.finish().expect("a Vec"), zstd::encode_all(&input[..], 1).expect("a Vec")] {
        let path = write(folder.path(), "mailbox", &packed);
        assert_only_verdicts_added(&input, &filter(&server, [&path]).ends_with(0).out, 25);
        assert_only_verdicts_added(&input, &filter(&server, ["-"]).stdin(packed).ends_with(0).out, 25);
    }
    // One that was cut gives what can be had, and says so.
    let cut = filter(&server, ["-"]).stdin(&gzip[..gzip.len() / 2]).ends_with(65);
    assert!(cut.err.contains("gzip"), "{}", cut.err);
    assert!(input.starts_with(&without_verdicts(&cut.out).0), "a prefix");
}

#[test]
fn skip_and_total_take_a_part() {
    let (server, input) = (Server::good(), mailbox(0, 10));
    let out = |arguments: &[&str]| filter(&server, arguments).stdin(input.clone()).ends_with(0).out;
    for arguments in [["--skip", "3", "--total", "4"].as_slice(), &["+3", "-4"], &["--skip=3", "-4"]] {
        assert_only_verdicts_added(&mailbox(3, 4), &out(arguments), 4);
    }
    assert_only_verdicts_added(&mailbox(0, 2), &out(&["-2"]), 2);
    assert_only_verdicts_added(&mailbox(8, 2), &out(&["+8"]), 2);
    assert!(out(&["+10"]).is_empty() && out(&["-0"]).is_empty());
    assert_same(&out(&[]), &[out(&["-6"]), out(&["+6"])].concat());
}

#[test]
fn shards_one_after_the_other_are_the_whole() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let preamble = [&b"text before\n\n"[..], &mailbox(100, 7)].concat();
    let a = write(folder.path(), "a", &sample());
    let b = write(folder.path(), "b", &preamble);
    // Lacks its last line end.
    let c = write(folder.path(), "c", preamble.trim_ascii_end());
    // Its last message reaches through the last shards, and lacks the empty line.
    let d = write(folder.path(), "d", &[&mailbox(3, 7)[..], &mailbox(1, 7), &b"long line\n".repeat(200)].concat());
    let empty = write(folder.path(), "e", b"");
    for mailboxes in [vec![&a], vec![&c, &b], vec![&b, &a, &c], vec![&d], vec![&d, &empty], vec![&d, &b]] {
        let whole = filter(&server, mailboxes.iter()).ends_with(0).out;
        for of in [1, 2, 3, 7, 40] {
            let shard = |number| {
                let run = filter(&server, ["-q", &format!("--shard={number}/{of}")]);
                let mut run = run;
                run.command().args(&mailboxes);
                run.ends_with(0).out
            };
            let parts: Vec<u8> = (1..=of).flat_map(shard).collect();
            assert_same(&whole, &parts);
        }
    }
    assert!(hamsift(["filter", "-s", server.url(), "--shard=1/2"]).stdin("x").ends_with(64).err.contains("--shard"));
}

#[test]
fn where_messages_begin_can_be_chosen() {
    let input = "From a@b.example Mon Jan  5 10:00:00 2004\nSubject: 1\n\ntext\n\nFrom here on it is text\n\nmore\n\n\
                 From c@d.example Mon Jan  5 10:00:00 2004\nSubject: 2\n\ntext\nFrom e@f.example Mon Jan  5 10:00:00 2004\nSubject: 3\n\ntext\n";
    let count = |arguments: &[&str]| {
        let mut run = hamsift(["filter", "--dry-run"]);
        run.command().args(arguments);
        let err = run.stdin(input).ends_with(0).err;
        err.split_whitespace().nth(1).map(str::to_owned)
    };
    for (arguments, want) in [
        (["--from-rule=auto"].as_slice(), "3"),
        (&["--from-rule=strict"], "2"),
        (&["--from-rule=any"], "4"),
        (&["--from-rule=formail"], "2"),
        (&["--from-rule=formail", "-e"], "3"),
        (&["--from-rule=formail", "-m", "9"], "1"),
    ] {
        assert_eq!(count(arguments).as_deref(), Some(want), "{arguments:?}");
    }
}

#[test]
fn what_is_no_mbox_is_refused_by_name() {
    let server = Server::good();
    let utf16: Vec<u8> = "From a@b.example Mon Jan  5\nA: 1\n\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, input) in [
        ("UTF-16", [b"\xff\xfe", &utf16[..]].concat()),
        ("MMDF", b"\x01\x01\x01\x01\nFrom: a\n\nb\n\x01\x01\x01\x01\n".to_vec()),
        ("BABYL", b"BABYL OPTIONS: -*- rmail -*-\nVersion: 5\n\x1f".to_vec()),
        ("binary", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0\0\0\0\0".to_vec()),
    ] {
        let ended = filter(&server, [""; 0]).stdin(input).ends_with(65);
        assert!(ended.err.contains(name) && ended.out.is_empty(), "{name}: {}", ended.err);
    }
    assert_eq!(server.count("accept"), 0);
}

#[test]
fn what_cannot_be_opened_is_said_before_anything_is_written() {
    let (server, folder) = (Server::good(), tempfile::tempdir().expect("room"));
    let good = write(folder.path(), "a", &mailbox(1, 1));
    let missing = folder.path().join("missing");
    let ended = filter(&server, [Path::new(&good), &missing]).ends_with(66);
    assert!(ended.err.contains("missing") && ended.out.is_empty(), "{}", ended.err);
    filter(&server, [folder.path()]).ends_with(66);
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe mbox"));
    std::fs::write(&odd, mailbox(1, 1)).expect("room");
    assert_only_verdicts_added(&mailbox(1, 1), &filter(&server, [&odd]).ends_with(0).out, 1);
}
