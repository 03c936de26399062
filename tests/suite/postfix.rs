//! `deliver` as the `mailbox_command` of a private Postfix: loopback, its own configuration and queue.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::*;
use super::recipes::recipe;

/// A user that every Debian has.
const USER: (&str, u32) = ("nobody", 65534);
const MAILS: usize = 500;

/// A Postfix that ends when this is dropped.
struct Postfix {
    folder: PathBuf,
    port: u16,
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect(program);
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Postfix {
    fn start(folder: &Path, mailbox_command: &str, transport: &str) -> Postfix {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        for name in ["etc", "queue", "data"] {
            fs::create_dir(folder.join(name)).expect("room");
        }
        run("chown", &["postfix", folder.join("data").to_str().expect("UTF-8")]);
        let at = |name: &str| folder.join(name).display().to_string();
        let main = format!(
            "compatibility_level = 3.6\nqueue_directory = {}\ndata_directory = {}\nmyhostname = mail.example\n\
             mydestination = mail.example, pipe.example\ntransport_maps = inline:{{pipe.example=hamsift:}}\nmynetworks = 127.0.0.0/8\ninet_interfaces = 127.0.0.1\n\
             inet_protocols = ipv4\nlocal_recipient_maps =\nalias_maps =\nalias_database =\nbiff = no\n\
             maillog_file = {}\nmaillog_file_prefixes = {}\n{mailbox_command}\n\
             default_transport = error:none\nqueue_run_delay = 1s\nminimal_backoff_time = 1s\n\
             maximal_backoff_time = 2s\nlocal_destination_concurrency_limit = 8\n\
             local_destination_concurrency_failed_cohort_limit = 100\nsmtpd_relay_restrictions = permit_mynetworks, reject\nexport_environment = TZ LANG\n",
            at("queue"),
            at("data"),
            at("log"),
            folder.display()
        );
        fs::write(folder.join("etc/main.cf"), main).expect("room");
        let mut master = format!("127.0.0.1:{port} inet n - n - - smtpd\n");
        for line in [
            "pickup unix n - n 60 1 pickup",
            "cleanup unix n - n - 0 cleanup",
            "qmgr unix n - n 300 1 qmgr",
            "rewrite unix - - n - - trivial-rewrite",
            "bounce unix - - n - 0 bounce",
            "defer unix - - n - 0 bounce",
            "trace unix - - n - 0 bounce",
            "error unix - - n - - error",
            "retry unix - - n - - error",
            "showq unix n - n - - showq",
            "proxymap unix - - n - - proxymap",
            "local unix - n n - - local",
            "anvil unix - - n - 1 anvil",
            "postlog unix-dgram n - n - 1 postlogd",
        ] {
            master += &format!("{line}\n");
        }
        master += transport;
        fs::write(folder.join("etc/master.cf"), master).expect("room");
        drop(listener);
        let postfix = Postfix { folder: folder.to_owned(), port };
        run("/usr/sbin/postfix", &["-c", &at("etc"), "start"]);
        postfix
    }

    fn send(&self, domain: &str, numbers: std::ops::Range<usize>) {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        socket.set_read_timeout(Some(DEADLINE)).expect("a socket");
        let mut lines = BufReader::new(socket.try_clone().expect("a socket")).lines();
        let mut say = |text: &str, code: &str| {
            (&socket).write_all(text.as_bytes()).expect("connected");
            let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.as_bytes().get(3) == Some(&b' ')));
            let line = line.expect("an answer").expect("text");
            assert!(line.starts_with(code), "{text}: {line}");
        };
        say("", "220");
        say("HELO client.example\r\n", "250");
        for number in numbers {
            say("MAIL FROM:<alice@client.example>\r\n", "250");
            say(&format!("RCPT TO:<{}@{domain}>\r\n", USER.0), "250");
            say("DATA\r\n", "354");
            let body = format!("From number {number} on\r\n").repeat(40);
            say(&format!("Message-ID: <{number}@client.example>\r\nSubject: {number}\r\n\r\n{body}.\r\n"), "250");
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        let etc = self.folder.join("etc");
        let _ = Command::new("/usr/sbin/postfix").arg("-c").arg(etc).arg("stop").stdin(Stdio::null()).output();
    }
}

#[test]
#[ignore = "needs postfix, root and a minute"]
fn five_hundred_mails_arrive_once_though_the_disk_fills_and_the_database_changes() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can start a Postfix and mount a file system");
        return;
    }
    let folder = tempfile::Builder::new().prefix("hamsift-postfix-").tempdir_in("/var/tmp").expect("room");
    run("chmod", &["755", folder.path().to_str().expect("UTF-8")]);
    // The user must be able to run the program, wherever it was built.
    let program = folder.path().join("hamsift");
    fs::copy(env!("CARGO_BIN_EXE_hamsift"), &program).expect("room");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("db")).expect("room");
    fs::write(at("ham.mbox"), mailbox(0, 50)).expect("room");
    fs::write(at("spam.mbox"), mailbox(1000, 50)).expect("room");
    run("chown", &[USER.0, at("db").to_str().expect("UTF-8")]);
    run("chmod", &["644", at("ham.mbox").to_str().expect("UTF-8"), at("spam.mbox").to_str().expect("UTF-8")]);
    let disk = Small::mount(&at("disk"), &format!("size=2m,mode=700,uid={}", USER.1));
    let train = |forget: bool| {
        let mut command = Command::new(&program);
        command.arg("train").arg("--db").arg(at("db/tokens.db")).arg("--ham").arg(at("ham.mbox"));
        command.arg("--spam").arg(at("spam.mbox")).args(forget.then_some("--forget"));
        command.env("HOME", at("db")).current_dir("/").uid(USER.1).gid(USER.1);
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    train(false);
    let inbox = at("disk/inbox");
    // The recipes of the manual page, with places of our own.
    let own = |title: &str, places: &[(&str, String)]| {
        let recipe = recipe(title).replace("/usr/bin/hamsift", program.to_str().expect("UTF-8"));
        places.iter().fold(recipe, |recipe, (place, own)| {
            assert!(recipe.contains(place), "{place}: {recipe}");
            recipe.replace(place, own)
        })
    };
    let database = at("db/tokens.db").display().to_string();
    let options = format!("--db {database} --ham {0} --unsure {0} --spam {0} --lock-timeout 20", inbox.display());
    let command = own(".Xr local 8 ,", &[("--spam ~/Junk", options)]);
    let transport = own(
        ".Xr pipe 8 ,",
        &[
            ("user=vmail", format!("user={}", USER.0)),
            ("/var/vmail/tokens.db", database),
            ("/var/vmail/", format!("{}/", disk.0.display())),
        ],
    );
    let postfix = Postfix::start(folder.path(), &command, &transport);
    let filler = at("disk/filler");
    let deferred = |log: &str| log.matches("status=deferred").count();
    std::thread::scope(|scope| {
        let sending: Vec<_> = (0..4)
            .map(|part| {
                let postfix = &postfix;
                scope.spawn(move || postfix.send("mail.example", part * MAILS / 4..(part + 1) * MAILS / 4))
            })
            .collect();
        // The disk fills while they come, until some are put off.
        let started = Instant::now();
        while fs::metadata(&inbox).map_or(0, |found| found.len()) < 50_000 {
            assert!(started.elapsed() < DEADLINE, "nothing arrives: {}", postfix.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = fs::write(&filler, vec![0; 4 << 20]);
        train(true);
        while deferred(&postfix.log()) < 5 {
            assert!(started.elapsed() < DEADLINE, "nothing is put off: {}", postfix.log());
            train(false);
            train(true);
        }
        train(false);
        fs::remove_file(&filler).expect("there");
        sending.into_iter().for_each(|thread| thread.join().expect("all are taken"));
    });
    let arrived = || {
        let content = fs::read_to_string(&inbox).expect("there");
        (0..MAILS)
            .map(|n| content.matches(&format!("\nMessage-ID: <{n}@client.example>\n")).count())
            .collect::<Vec<_>>()
    };
    let started = Instant::now();
    // Postfix waits between its tries, and longer on a machine that has much else to do.
    while arrived().contains(&0) && started.elapsed() < 3 * DEADLINE {
        train(true);
        train(false);
    }
    let log = postfix.log();
    assert_eq!(arrived(), vec![1; MAILS], "{}", log.lines().rev().take(20).collect::<Vec<_>>().join("\n"));
    let content = fs::read_to_string(&inbox).expect("there");
    assert_eq!(content.matches("\n\nFrom alice@client.example ").count() + 1, MAILS);
    assert_eq!(content.matches("\n>From number ").count(), 40 * MAILS);
    assert_eq!(log.matches("status=bounced").count(), 0);
    // And through pipe(8).
    postfix.send("pipe.example", 0..5);
    let maildir = disk.0.join(USER.0);
    let arrived = || {
        [maildir.join("new"), maildir.join(".Junk/new")]
            .iter()
            .filter(|f| f.exists())
            .map(|f| names(f).len())
            .sum::<usize>()
    };
    let started = Instant::now();
    while arrived() < 5 {
        assert!(started.elapsed() < DEADLINE, "{}", postfix.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{} deliveries were put off and made later", deferred(&log));
    drop((postfix, disk));
}
