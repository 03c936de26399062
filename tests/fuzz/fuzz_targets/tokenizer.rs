//! Any bytes as a message: no panic; one working room used again gives the tokens of a fresh one; learning, scoring and
//! unlearning agree with each other; and the evidence can stand in a header whatever the words are.
#![no_main]

use std::cell::RefCell;

use hamsift::engine::{Memory, Options, TokenSet, Tokens, Totals, clues, evidence, score, tokenize};
use libfuzzer_sys::fuzz_target;

thread_local! {
    /// Used for one message after the other, as the program does it.
    static SET: RefCell<TokenSet> = RefCell::default();
}

fuzz_target!(|message: &[u8]| {
    let mut options = Options::default();
    SET.with_borrow_mut(|set| {
        set.fill(message, &options);
        let mut fresh = TokenSet::new();
        tokenize(message, &options, &mut |token| fresh.insert(token));
        let words = |set: &TokenSet| set.iter().map(|token| token.word.to_vec()).collect::<Vec<_>>();
        assert_eq!(words(set), words(&fresh));

        let mut memory = Memory::new();
        memory.learn(set, true);
        let learned = score(set, &memory, &options).probability;
        assert!((0.5..=1.0).contains(&learned), "{learned}");
        let (again, clues) = clues(set, &memory, &options);
        assert_eq!(again.probability, learned);
        assert!(evidence(&clues, &options).iter().all(|byte| matches!(byte, b' '..=b'~')));
        assert_eq!(memory.unlearn(set, true), Ok(()));
        assert_eq!((memory.totals(), memory.iter().count()), (Totals::default(), 0));

        // The options that change what is read.
        options.count_all_header_lines = true;
        options.generate_long_skips = false;
        options.max_parts = 3;
        set.fill(message, &options);
    });
});
