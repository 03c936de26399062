//! How well the engine does on mail whose class is known: k-fold cross-validation, as SpamBayes's timcv does it.
//!
//! Each class is dealt out over the folds, message N to fold N modulo their number. Each fold is then scored by a database
//! that has learned all the others, so that no message is scored by one that knows it.
//!
//! Everything here is pure: no mail is read and nothing is written.

mod cutoffs;
mod histogram;
mod svg;

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use crate::engine::{Memory, Options, TokenSet, Tokens as _, Totals, Underflow, score};

pub use cutoffs::{Best, Costs, Errors, Scores};
pub use histogram::Histogram;
pub use svg::svg;

/// Mail of known class, made into tokens. A message takes four bytes per distinct token, and the tokens of all are kept
/// once.
#[derive(Debug, Default)]
pub struct Corpus {
    /// Has learned all of it.
    memory: Memory,
    ham: Vec<Box<[u32]>>,
    spam: Vec<Box<[u32]>>,
}

impl Corpus {
    /// Adds a message.
    pub fn add(&mut self, set: &TokenSet, is_spam: bool) {
        self.memory.learn(set, is_spam);
        let numbers = self.memory.numbers(set).collect();
        if is_spam { &mut self.spam } else { &mut self.ham }.push(numbers);
    }

    /// How many messages there are.
    pub fn totals(&self) -> Totals {
        self.memory.totals()
    }

    /// The scores of all messages, each from a database without its fold. At least two folds are needed for that, and
    /// no more than there are messages of the rarer class. Runs on rayon's threads; what comes out does not depend on
    /// their number.
    ///
    /// # Errors
    /// None that can be seen here: what is taken out of a database was put in before.
    pub fn cross_validate(&self, folds: usize, options: &Options, done: impl Fn() + Sync) -> Result<Scores, Underflow> {
        let folds: Vec<(Vec<f64>, Vec<f64>)> = (0..folds)
            .into_par_iter()
            .map(|fold| {
                let scores = self.fold(fold, folds, options);
                done();
                scores
            })
            .collect::<Result<_, _>>()?;
        let (ham, spam): (Vec<_>, Vec<_>) = folds.into_iter().unzip();
        Ok(Scores::new(ham.concat(), spam.concat()))
    }

    fn fold(&self, fold: usize, folds: usize, options: &Options) -> Result<(Vec<f64>, Vec<f64>), Underflow> {
        // A copy costs less than learning the others, and only as many live at once as there are threads.
        let mut others = self.memory.clone();
        let mut set = TokenSet::new();
        let classes = [(&self.ham, false), (&self.spam, true)];
        for (messages, is_spam) in classes {
            for numbers in messages.iter().skip(fold).step_by(folds) {
                others.unlearn(self.refill(&mut set, numbers), is_spam)?;
            }
        }
        let [ham, spam] = classes.map(|(messages, _)| {
            let fold = messages.iter().skip(fold).step_by(folds);
            fold.map(|numbers| score(self.refill(&mut set, numbers), &others, options).probability).collect()
        });
        Ok((ham, spam))
    }

    /// The tokens again, though not which of them are Unicode strings: no score depends on that.
    fn refill<'a>(&self, set: &'a mut TokenSet, numbers: &[u32]) -> &'a TokenSet {
        set.clear();
        numbers.iter().for_each(|&number| set.insert(self.memory.word(number)));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &str) -> TokenSet {
        let mut set = TokenSet::new();
        words.split_whitespace().for_each(|word| set.insert(word.as_bytes()));
        set
    }

    fn corpus() -> Vec<(TokenSet, bool)> {
        let mail = ["a b", "a c", "b d", "a e x", "c", "x y", "x z", "y a", "z x w", "w y", "x", "z"];
        mail.iter().enumerate().map(|(n, words)| (set(words), n >= 5)).collect()
    }

    #[test]
    fn each_fold_is_scored_by_what_learned_only_the_others() {
        let mail = corpus();
        let mut corpus = Corpus::default();
        mail.iter().for_each(|(set, is_spam)| corpus.add(set, *is_spam));
        assert_eq!(corpus.totals(), Totals { nham: 5, nspam: 7 });
        let options = Options::default();
        for folds in [2, 3, 5] {
            let fold_of = |n: usize| if n < 5 { n % folds } else { (n - 5) % folds };
            let mut want = [Vec::new(), Vec::new()];
            for (n, (set, is_spam)) in mail.iter().enumerate() {
                let mut others = Memory::new();
                for (m, (set, is_spam)) in mail.iter().enumerate() {
                    if fold_of(m) != fold_of(n) {
                        others.learn(set, *is_spam);
                    }
                }
                want[usize::from(*is_spam)].push(score(set, &others, &options).probability);
            }
            let [ham, spam] = want;
            assert_eq!(corpus.cross_validate(folds, &options, || ()), Ok(Scores::new(ham, spam)), "{folds} folds");
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let mut corpus_ = Corpus::default();
        corpus().iter().for_each(|(set, is_spam)| corpus_.add(set, *is_spam));
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| corpus_.cross_validate(4, &Options::default(), || ()))
        };
        assert_eq!(run(1), run(3));
    }
}
