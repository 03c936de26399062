//! What cutoffs would have made of the scores.

use crate::verdict::Cutoffs;

/// Cutoffs are tried in steps of one over this, as timcv does.
const STEPS: usize = 200;

/// Scores of mail whose class is known, each class in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    ham: Vec<f64>,
    spam: Vec<f64>,
}

/// What goes wrong at a pair of cutoffs, in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Ham taken for spam.
    pub false_positives: usize,
    /// Spam taken for ham.
    pub false_negatives: usize,
    /// Ham taken for neither.
    pub unsure_ham: usize,
    /// Spam taken for neither.
    pub unsure_spam: usize,
}

/// What a message costs that is not recognised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Ham taken for spam.
    pub false_positive: f64,
    /// Spam taken for ham.
    pub false_negative: f64,
    /// Either taken for neither.
    pub unsure: f64,
}

/// The cheapest cutoffs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The pair, of all that cost the same the one nearest to the pair in force.
    pub cutoffs: Cutoffs,
    /// What goes wrong there.
    pub errors: Errors,
    /// What that costs.
    pub cost: f64,
    /// How many pairs cost the same.
    pub equal: usize,
}

impl Costs {
    /// The costs of all that goes wrong.
    pub fn of(&self, errors: &Errors) -> f64 {
        errors.false_positives as f64 * self.false_positive
            + errors.false_negatives as f64 * self.false_negative
            + (errors.unsure_ham + errors.unsure_spam) as f64 * self.unsure
    }
}

impl Errors {
    /// Messages of both classes taken for neither.
    pub fn unsure(&self) -> usize {
        self.unsure_ham + self.unsure_spam
    }
}

impl Scores {
    /// Scores in any order.
    pub fn new(mut ham: Vec<f64>, mut spam: Vec<f64>) -> Scores {
        ham.sort_unstable_by(f64::total_cmp);
        spam.sort_unstable_by(f64::total_cmp);
        Scores { ham, spam }
    }

    /// The scores of ham, in ascending order.
    pub fn ham(&self) -> &[f64] {
        &self.ham
    }

    /// The scores of spam, in ascending order.
    pub fn spam(&self) -> &[f64] {
        &self.spam
    }

    /// What goes wrong at these cutoffs, by the rule of [`Cutoffs::class`].
    pub fn errors(&self, cutoffs: &Cutoffs) -> Errors {
        let [ham, spam] = [&self.ham, &self.spam].map(|scores| {
            let low = scores.partition_point(|&score| score < cutoffs.ham);
            // A score below both cutoffs is ham, also where they are the wrong way round.
            let not_high = scores.partition_point(|&score| score <= cutoffs.spam).max(low);
            (low, not_high - low, scores.len() - not_high)
        });
        Errors { false_positives: ham.2, false_negatives: spam.0, unsure_ham: ham.1, unsure_spam: spam.1 }
    }

    /// The cutoffs that would have cost the least.
    pub fn best(&self, costs: &Costs, in_force: &Cutoffs) -> Best {
        let at = |step: usize| step as f64 / STEPS as f64;
        let distance = |cutoffs: &Cutoffs| (cutoffs.ham - in_force.ham).abs() + (cutoffs.spam - in_force.spam).abs();
        let mut best: Option<Best> = None;
        for ham in 0..=STEPS {
            for spam in ham..=STEPS {
                let cutoffs = Cutoffs { ham: at(ham), spam: at(spam) };
                let errors = self.errors(&cutoffs);
                let this = Best { cutoffs, errors, cost: costs.of(&errors), equal: 1 };
                best = Some(match best {
                    Some(best) if best.cost < this.cost => best,
                    Some(best) if best.cost == this.cost => {
                        let nearest = if distance(&this.cutoffs) < distance(&best.cutoffs) { this } else { best };
                        Best { equal: best.equal + 1, ..nearest }
                    }
                    _ => this,
                });
            }
        }
        best.unwrap_or(Best { cutoffs: *in_force, errors: Errors::default(), cost: 0.0, equal: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Class;

    fn scores() -> Scores {
        Scores::new(vec![0.0, 0.2, 0.1999, 0.9, 0.95, 0.5], vec![1.0, 0.9, 0.91, 0.2, 0.1, 0.7, 0.99])
    }

    #[test]
    fn counts_are_those_of_the_verdicts() {
        let scores = scores();
        for (ham, spam) in [(0.2, 0.9), (0.0, 1.0), (0.5, 0.5), (0.95, 0.1), (1.0, 1.0)] {
            let cutoffs = Cutoffs { ham, spam };
            let count = |of: &[f64], class| of.iter().filter(|&&score| cutoffs.class(score) == class).count();
            let want = Errors {
                false_positives: count(scores.ham(), Class::Spam),
                false_negatives: count(scores.spam(), Class::Ham),
                unsure_ham: count(scores.ham(), Class::Unsure),
                unsure_spam: count(scores.spam(), Class::Unsure),
            };
            assert_eq!(scores.errors(&cutoffs), want, "{cutoffs:?}");
        }
    }

    #[test]
    fn costs_decide_and_the_nearest_of_equal_pairs_is_taken() {
        let apart = Scores::new(vec![0.0, 0.3], vec![0.6, 1.0]);
        let costs = Costs { false_positive: 10.0, false_negative: 1.0, unsure: 0.2 };
        let best = apart.best(&costs, &Cutoffs::default());
        assert_eq!((best.cost, best.errors), (0.0, Errors::default()));
        assert_eq!(best.cutoffs, Cutoffs { ham: 0.305, spam: 0.595 });
        assert!(best.equal > 1000, "{}", best.equal);

        let crossed = Scores::new(vec![0.0, 0.97], vec![0.5, 1.0]);
        assert_eq!(crossed.best(&costs, &Cutoffs::default()).errors.false_positives, 0);
        let careless = Costs { false_positive: 0.1, ..costs };
        assert_eq!(crossed.best(&careless, &Cutoffs::default()).errors.false_positives, 1);
    }

    #[test]
    fn nothing_at_all_costs_nothing() {
        let none = Scores::new(Vec::new(), Vec::new());
        let costs = Costs { false_positive: 10.0, false_negative: 1.0, unsure: 0.2 };
        assert_eq!(none.best(&costs, &Cutoffs::default()).cutoffs, Cutoffs::default());
    }
}
