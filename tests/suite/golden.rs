//! The pairs in `testdata/mbox`: a mailbox, and what a server that finds everything unsure makes of it.

use super::harness::*;

#[test]
fn every_pair_agrees() {
    let server = Server::scoring(0.5);
    let folder = file("testdata/mbox");
    let inputs: Vec<_> = names(&folder).into_iter().filter(|name| name.ends_with(".in")).collect();
    assert!(inputs.len() >= 12, "{inputs:?}");
    for name in inputs {
        println!("{name}");
        let input = std::fs::read(folder.join(&name)).expect("committed");
        let want = std::fs::read(folder.join(name.replace(".in", ".ref"))).expect("committed");
        for n in ["1", "3"] {
            assert_same(&want, &filter(&server, ["-n", n, "-q"]).stdin(input.clone()).ends_with(0).out);
        }
        assert_same(&want, &filter(&server, ["-q"]).stdin(want.clone()).ends_with(0).out);
    }
}
