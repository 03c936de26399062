//! `eval` on the committed ham and spam.

use std::fs;

use super::harness::*;

fn mail(class: &str) -> String {
    let path = file(&format!("testdata/sample/{class}.mbox"));
    path.into_os_string().into_string().expect("UTF-8")
}

fn eval<'a>(more: impl IntoIterator<Item = &'a str>) -> Run {
    let (ham, spam) = (mail("ham"), mail("spam"));
    let arguments = ["eval", "--ham", &ham, "--spam", &spam].map(str::to_owned);
    hamsift(arguments.into_iter().chain(more.into_iter().map(str::to_owned)))
}

#[test]
fn a_table_and_a_histogram_that_add_up() {
    let ended = eval([]).ends_with(0);
    let text = String::from_utf8(ended.out).expect("text");
    assert_eq!(ended.err, "");
    assert!(text.starts_with("20 ham and 20 spam in 10 folds, ham below 0.2, spam above 0.9\n"), "{text}");
    let number = |name: &str| -> usize {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a line of that");
        line[name.len()..].split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
    };
    // The two are easily told apart, or nobody could try the program on them.
    assert_eq!((number("false positives"), number("false negatives")), (0, 0), "{text}");
    let in_force = text.lines().find(|line| line.ends_with(" *")).expect("the pair in force is marked");
    assert!(in_force.starts_with("  0.200   0.900 "), "{in_force}");
    let cost: f64 = in_force.split_whitespace().rev().nth(1).and_then(|word| word.parse().ok()).expect("a cost");
    assert!((cost - 0.2 * number("unsure") as f64).abs() < 0.051, "{text}");
    let (_, bars) = text.split_once("bars logarithmic:\n").expect("a histogram");
    assert_eq!(bars.lines().count(), 21);
    let counts = bars.lines().skip(1).flat_map(|line| line.split_whitespace().skip(1));
    let sum: usize = counts.filter_map(|word| word.parse::<usize>().ok()).sum();
    assert_eq!(sum, 40, "{bars}");
}

#[test]
fn it_is_the_same_each_time_and_leaves_one_out_at_the_most_folds() {
    let once = eval(["--folds", "20"]).ends_with(0).out;
    assert_same(&once, &eval(["--folds", "20"]).ends_with(0).out);
    assert!(once.starts_with(b"20 ham and 20 spam in 20 folds"));
}

#[test]
fn too_few_messages_and_wrong_numbers_are_told() {
    let ended = eval(["--folds", "21"]).ends_with(64);
    assert!(ended.err.contains("there are 20 and 20"), "{}", ended.err);
    assert_eq!(ended.out, b"");
    for wrong in ["--folds=1", "--folds=ten", "--cost-fp=-1", "--cost-fn=nan", "--cost-unsure=inf"] {
        eval([wrong]).ends_with(64);
    }
    hamsift(["eval", "--ham", &mail("ham")]).ends_with(64);
}

#[test]
fn mail_that_is_missing_or_none() {
    let folder = tempfile::tempdir().expect("room");
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().expect("UTF-8");
    eval(["--spam", &path("none")]).ends_with(66);
    fs::write(path("text"), "Not a mailbox.\n".repeat(100)).expect("room");
    eval(["--spam", &path("text")]).ends_with(65);
}

#[test]
fn what_came_before_is_left_out() {
    let err = eval(["--ham", &mail("ham")]).ends_with(0).err;
    assert!(err.contains("20 messages left out that came before"), "{err}");
    let err = eval(["--spam", &mail("ham")]).ends_with(0).err;
    assert!(err.contains("20 messages of spam left out that are in the ham too"), "{err}");
}

#[test]
fn costs_and_cutoffs_in_force_are_heeded() {
    let text = eval(["--option", "ham_cutoff=0.15", "--cost-unsure", "0"]).ends_with(0).out;
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("ham below 0.15, spam above 0.9"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  0.150   0.900 ") && line.ends_with("  0.0 *")), "{text}");
    assert!(text.contains("an unsure one 0:\n  0.150   0.900 "), "{text}");
}

#[test]
fn the_plot_is_written_but_never_over_the_mail() {
    let folder = tempfile::tempdir().expect("room");
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().expect("UTF-8");
    eval(["--plot", &path("plot.svg")]).ends_with(0);
    let plot = fs::read_to_string(path("plot.svg")).expect("written");
    assert!(plot.starts_with("<?xml") && plot.ends_with("</svg>\n"), "{plot}");
    assert!(plot.contains(">ham (20)<") && plot.contains(">spam (20)<"), "{plot}");

    let ham = fs::read(mail("ham")).expect("committed");
    fs::write(path("copy.mbox"), &ham).expect("room");
    std::os::unix::fs::symlink(path("copy.mbox"), path("link.svg")).expect("room");
    for plot in ["copy.mbox", "link.svg"] {
        eval(["--ham", &path("copy.mbox"), "--plot", &path(plot)]).ends_with(64);
    }
    assert_same(&ham, &fs::read(path("copy.mbox")).expect("there"));
    for name in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.path().join("maildir").join(name)).expect("room");
    }
    eval(["--ham", &path("maildir"), "--plot", &path("maildir/cur/plot.svg")]).ends_with(64);
    eval(["--plot", &path("no/folder.svg")]).ends_with(73);
    // A failed run leaves what was there.
    eval(["--folds", "500", "--plot", &path("plot.svg")]).ends_with(64);
    assert_eq!(fs::read_to_string(path("plot.svg")).ok(), Some(plot));
}
