//! The recipes of `man/hamsift-deliver.1`, each as it stands there, carried out by the program it is for. Postfix has a
//! file of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::harness::*;

/// A user that every Debian has, for programs that refuse to deliver as root.
const USER: (&str, u32) = ("nobody", 65534);
const MAIL: &str = "Return-Path: <erin@a.example>\nReceived: from a.example by b.example; Mon, 5 Jan 2004 10:00:00 +0000\n\
                    From: erin@a.example\nTo: nobody@b.example\nSubject: x\nMessage-ID: <1@a.example>\n\nFrom here on: text\n";

/// The block of the manual page behind the first line that begins so.
pub(super) fn recipe(title: &str) -> String {
    let page = fs::read_to_string(file("man/hamsift-deliver.1")).expect("the page");
    let lines = page.lines().skip_while(|line| !line.starts_with(title));
    let block = lines.skip_while(|line| !line.starts_with(".Bd")).skip(1).take_while(|line| !line.starts_with(".Ed"));
    let block: String = block.map(|line| line.replace("\\&", "").replace("\\e", "\\") + "\n").collect();
    assert!(block.contains("/usr/bin/hamsift"), "no recipe for {title}");
    block
}

/// The home of somebody to whom a server says that all is spam.
struct Home {
    folder: tempfile::TempDir,
    _server: Server,
}

impl Home {
    fn new() -> Home {
        let server = Server::scoring(0.99);
        // Where other users can come to, and commands can be run from.
        let folder = tempfile::Builder::new().prefix("hamsift-home-").tempdir_in("/var/tmp").expect("room");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        fs::copy(env!("CARGO_BIN_EXE_hamsift"), folder.path().join("hamsift")).expect("room");
        let home = Home { folder, _server: server };
        fs::create_dir_all(home.at(".config/hamsift")).expect("room");
        home.file(".config/hamsift/config.toml", &format!("server = [\"{}\"]\n", home._server.url()));
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Some of these programs read only files that nobody else can.
    fn file(&self, name: &str, content: &str) -> PathBuf {
        fs::write(self.at(name), content).expect("room");
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(0o600)).expect("ours");
        self.at(name)
    }

    /// The recipe with the program of this build.
    fn recipe(&self, title: &str) -> String {
        recipe(title).replace("/usr/bin/hamsift", self.at("hamsift").to_str().expect("UTF-8"))
    }

    /// Runs a program as the user, with this input.
    fn run(&self, program: &str, arguments: &[&str], input: &str) -> std::process::Output {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "30", program]).args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.folder.path()).env("PATH", "/usr/bin:/bin").env("USER", USER.0);
        command.env("MAIL", self.at("inbox")).env("TERM", "vt100").env("LC_ALL", "C");
        if rustix::process::geteuid().is_root() {
            let chown = Command::new("chown").args(["-R", USER.0]).arg(self.folder.path()).status();
            assert!(chown.is_ok_and(|status| status.success()));
            command.uid(USER.1).gid(USER.1);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect(program);
        let _ = std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes());
        child.wait_with_output().expect("it ends")
    }

    /// The mail is in the mbox, once, whole, and with its verdict.
    #[track_caller]
    fn has_it(&self, name: &str, output: &std::process::Output) {
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let content = fs::read_to_string(self.at(name)).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert!(
            content.starts_with("From ") && content.matches("\nMessage-ID: <1@a.example>\n").count() == 1,
            "{content}"
        );
        assert!(content.contains("\nX-Spambayes-Classification: spam; 0.99\n"), "{content}");
        assert!(content.trim_end().ends_with("\n\n>From here on: text"), "{content}");
    }

    /// What fetches mail must leave it on the server until it is stored: first it cannot be, then it can.
    #[track_caller]
    fn fetches_it_once_it_can_be_stored(&self, program: &str, arguments: &[&str], pop: Pop) {
        fs::create_dir(self.at("Junk")).expect("room");
        self.run(program, arguments, "");
        fs::remove_dir(self.at("Junk")).expect("still empty");
        let output = self.run(program, arguments, "");
        self.has_it("Junk", &output);
        assert_eq!(pop.end(), "deleted 1\n");
    }
}

/// A POP3 server with one message.
struct Pop {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    port: String,
}

impl Pop {
    fn with(message: &Path) -> Pop {
        let mut command = Command::new("python3");
        command.arg(file("tests/peers/pop3.py")).arg(message).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python 3");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut port = String::new();
        out.read_line(&mut port).expect("a port");
        Pop { child, out, port: port.trim().to_owned() }
    }

    /// Ends it; returns what it told.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut told = String::new();
        self.out.read_to_string(&mut told).expect("text");
        told
    }
}

impl Drop for Pop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs fetchmail"]
fn fetchmail() {
    if !have(&["fetchmail"]) {
        return;
    }
    let home = Home::new();
    let pop = Pop::with(&home.file("mail", MAIL));
    let rc = format!(
        "set no bouncemail\npoll 127.0.0.1 service {} proto pop3 user \"u\" password \"p\" is \"{}\" here sslproto \"\"\n{}",
        pop.port,
        USER.0,
        home.recipe("fetchmail:")
    );
    let rc = home.file("rc", &rc);
    let pid = home.at("pid");
    let arguments = ["-f", rc.to_str().expect("UTF-8"), "--pidfile", pid.to_str().expect("UTF-8"), "--nodetach"];
    home.fetches_it_once_it_can_be_stored("fetchmail", &arguments, pop);
}

#[test]
#[ignore = "needs getmail6"]
fn getmail() {
    if !have(&["getmail"]) {
        return;
    }
    let home = Home::new();
    let pop = Pop::with(&home.file("mail", MAIL));
    let rc = format!(
        "[retriever]\ntype = SimplePOP3Retriever\nserver = 127.0.0.1\nport = {}\nusername = u\npassword = p\n\
         [options]\ndelete = true\n{}",
        pop.port,
        home.recipe("getmail6:")
    );
    home.file("rc", &rc);
    let folder = home.folder.path().to_str().expect("UTF-8");
    home.fetches_it_once_it_can_be_stored("getmail", &["--getmaildir", folder, "--rcfile", "rc"], pop);
}

#[test]
#[ignore = "needs fdm"]
fn fdm() {
    if !have(&["fdm"]) {
        return;
    }
    let home = Home::new();
    let recipe = home.recipe("fdm,");
    let (filter, deliver) = recipe.split_once("\n\n").expect("two");
    for (name, rules) in [("Filtered", filter), ("Junk", deliver)] {
        let rc = format!("account \"stdin\" stdin\naction \"junk\" mbox \"{}\"\n{rules}", home.at(name).display());
        home.file("rc", &rc);
        let output = home.run("fdm", &["-m", "-l", "-f", "rc", "-a", "stdin", "fetch"], MAIL);
        assert!(output.status.success(), "{output:?}");
        home.has_it(name, &output);
    }
}

#[test]
#[ignore = "needs maildrop"]
fn maildrop() {
    if !have(&["maildrop"]) {
        return;
    }
    let home = Home::new();
    let rc = format!("HOME=\"{}\"\n{}", home.folder.path().display(), home.recipe("maildrop:"));
    home.file("rc", &rc);
    let output = home.run("maildrop", &["rc"], MAIL);
    assert!(output.status.success(), "{output:?}");
    home.has_it("Junk", &output);
}

#[test]
#[ignore = "needs procmail"]
fn procmail() {
    if !have(&["procmail"]) {
        return;
    }
    let home = Home::new();
    let recipe = home.recipe("procmail,");
    let (filter, deliver) = recipe.split_at(recipe.find(":0w").expect("the second recipe"));
    let start = format!("SHELL=/bin/sh\nHOME={0}\nMAILDIR={0}\n", home.folder.path().display());
    for rules in [filter, deliver] {
        home.file("rc", &format!("{start}{rules}"));
        let output = home.run("procmail", &["-f", "erin@a.example", "-m", "rc"], MAIL);
        assert!(output.status.success(), "{output:?}");
        home.has_it("Junk", &output);
        fs::remove_file(home.at("Junk")).expect("there");
    }
    // What cannot be delivered is put off.
    fs::create_dir(home.at("Junk")).expect("room");
    let output = home.run("procmail", &["-f", "erin@a.example", "-m", "rc"], MAIL);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
}

#[test]
#[ignore = "needs mutt"]
fn mutt() {
    if !have(&["mutt", "script"]) {
        return;
    }
    let home = Home::new();
    home.file("mbox", &format!("From erin@a.example Mon Jan  5 10:00:00 2004\n{MAIL}\n"));
    home.file("rc", &format!("set wait_key=no folder=.\n{}push \"H<exit>\"\n", home.recipe("mutt and neomutt")));
    // A terminal, which the program insists on.
    let output = home.run("script", &["-qec", "mutt -n -R -F rc -f mbox", "/dev/null"], "");
    home.has_it("Junk", &output);
}

/// Exim's package cannot stand beside Postfix's: `.ci/run` unpacks it here.
fn exim() -> Option<PathBuf> {
    let unpacked = file("target/exim/usr/sbin/exim4");
    let exim = if unpacked.exists() { Some(unpacked) } else { have(&["exim4"]).then(|| PathBuf::from("exim4")) };
    // Without the user it was built for it does nothing.
    exim.filter(|exim| {
        let mut command = Command::new(exim);
        command.args(["-C", "/dev/null", "-bV"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

#[test]
#[ignore = "needs exim4 and root"]
fn exim_pipe_transport() {
    let Some(exim) = exim().filter(|_| rustix::process::geteuid().is_root()) else {
        println!("SKIPPED: no Exim, or not root");
        return;
    };
    let home = Home::new();
    let folder = home.folder.path().display();
    let conf = format!(
        "primary_hostname = mail.example\nkeep_environment =\nspool_directory = {folder}/spool\n\
         log_file_path = {folder}/spool/%slog\nexim_path = {}\nexim_user = mail\nexim_group = mail\nnever_users =\n\
         begin routers\nlocal:\n  driver = accept\n  check_local_user\n  transport = hamsift\n\
         begin transports\n{}  home_directory = {folder}\n\
         begin retry\n* * F,1h,1s\n",
        exim.display(),
        home.recipe("Exim 4,"),
    );
    let conf = home.file("exim.conf", &conf);
    fs::create_dir(home.at("spool")).expect("room");
    let run = |arguments: &[&str], input: &str| {
        let chown = Command::new("chown").arg("-R").arg("mail").arg(home.at("spool")).status();
        assert!(chown.is_ok_and(|status| status.success()));
        let mut command = Command::new("timeout");
        command.args(["30"]).arg(&exim).arg("-C").arg(&conf).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Exim starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes()).expect("it reads");
        String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("text")
    };
    // The user's own folder; the configuration has to stay root's.
    for name in ["", ".config", ".config/hamsift", ".config/hamsift/config.toml"] {
        std::os::unix::fs::chown(home.at(name), Some(USER.1), None).expect("root");
    }
    run(&["-odq", "-f", "erin@a.example", &format!("{}@mail.example", USER.0)], MAIL);
    let queue = run(&["-bpru"], "");
    let id = queue.split_whitespace().nth(2).expect("one message").to_owned();
    // What cannot be stored stays in the queue.
    fs::create_dir(home.at("Junk")).expect("room");
    run(&["-M", &id], "");
    assert!(run(&["-bpru"], "").contains(&id));
    fs::remove_dir(home.at("Junk")).expect("still empty");
    // Nor is it sent back when the delivery is killed.
    let (program, aside) = (home.at("hamsift"), home.at("aside"));
    fs::rename(&program, &aside).expect("there");
    fs::write(&program, "#!/bin/sh\nkill -9 $$\n").expect("room");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    run(&["-M", &id], "");
    assert!(run(&["-bpru"], "").contains(&id));
    fs::rename(&aside, &program).expect("there");
    run(&["-M", &id], "");
    let log = fs::read_to_string(home.at("spool/mainlog")).expect("a log");
    let content = fs::read_to_string(home.at("Junk")).expect(&log);
    assert!(content.starts_with("From erin@a.example ") && content.matches("\nFrom ").count() == 0, "{content}");
    assert!(content.contains("\nX-Spambayes-Classification: spam; 0.99\n\n>From here on: text\n"), "{content}");
    assert!(log.contains(" Completed") && !log.contains(" ** "), "{log}");
    assert_eq!(run(&["-bpru"], "").trim(), "");
}
