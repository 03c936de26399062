//! A message's verdict: `ham; 0.02`, as SpamBayes writes it into `X-Spambayes-Classification`.

use std::fmt;

/// What a message was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Wanted mail.
    Ham,
    /// Neither clearly the one nor the other.
    Unsure,
    /// Unwanted mail.
    Spam,
}

impl Class {
    /// All classes, from wanted to unwanted.
    pub const ALL: [Class; 3] = [Class::Ham, Class::Unsure, Class::Spam];

    /// The word for it in headers, options and reports.
    pub fn word(self) -> &'static str {
        match self {
            Class::Ham => "ham",
            Class::Unsure => "unsure",
            Class::Spam => "spam",
        }
    }

    /// The class of this word, in any case of letters.
    pub fn from_word(word: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.word().eq_ignore_ascii_case(word))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Where ham ends and spam begins, both strictly: a score equal to a cutoff is unsure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cutoffs {
    /// Scores below this are ham.
    pub ham: f64,
    /// Scores above this are spam.
    pub spam: f64,
}

impl Default for Cutoffs {
    /// SpamBayes's own: 0.20 and 0.90.
    fn default() -> Self {
        Cutoffs { ham: 0.20, spam: 0.90 }
    }
}

impl Cutoffs {
    /// The class of a score from 0 (ham) to 1 (spam). The word is chosen from the unrounded score, so `unsure; 0.20`
    /// and `ham; 0.20` both happen.
    pub fn class(&self, score: f64) -> Class {
        if score < self.ham {
            Class::Ham
        } else if score > self.spam {
            Class::Spam
        } else {
            Class::Unsure
        }
    }
}

/// A class with the text that stands in the header.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The class.
    pub class: Class,
    /// The score from 0 to 1, where it is known.
    pub score: Option<f64>,
    /// The header field's value.
    pub text: String,
}

impl Verdict {
    /// The verdict on a score, written as SpamBayes does: two digits, rounded from the exact value of the double.
    pub fn from_score(score: f64, cutoffs: &Cutoffs) -> Verdict {
        let class = cutoffs.class(score);
        // A negative zero would be written with its sign.
        let score = score + 0.0;
        Verdict { class, score: Some(score), text: format!("{class}; {score:.2}") }
    }

    /// Reads the value of a classification field: a class word, then nothing, or `;` and a number and perhaps more
    /// (SpamBayes adds ` (N)` with `header_score_logarithm`). `None` where no class word stands first.
    pub fn parse(value: &str) -> Option<Verdict> {
        let text = value.trim_matches([' ', '\t']);
        let (word, rest) = text.split_once(';').unwrap_or((text, ""));
        // `notate_to` puts the word before the value once more: `spam,spam; 0.95`.
        let word = word.rsplit(',').next().unwrap_or(word);
        let class = Class::from_word(word.trim())?;
        let number = rest.split_ascii_whitespace().next().and_then(|number| number.parse::<f64>().ok());
        Some(Verdict { class, score: number.filter(|score| (0.0..=1.0).contains(score)), text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutoffs_are_strict_and_the_number_is_rounded() {
        let text = |score| Verdict::from_score(score, &Cutoffs::default()).text;
        for (score, want) in [
            (0.0, "ham; 0.00"),
            (-0.0, "ham; 0.00"),
            (0.1999, "ham; 0.20"),
            (0.20, "unsure; 0.20"),
            (0.5, "unsure; 0.50"),
            (0.90, "unsure; 0.90"),
            (0.9001, "spam; 0.90"),
            (1.0, "spam; 1.00"),
            (0.125, "ham; 0.12"),
        ] {
            assert_eq!(text(score), want);
        }
    }

    #[test]
    fn values_are_read_as_servers_write_them() {
        let read = |value| Verdict::parse(value).map(|v| (v.class, v.score, v.text));
        assert_eq!(read("ham; 0.02"), Some((Class::Ham, Some(0.02), "ham; 0.02".into())));
        assert_eq!(read(" Spam ;0.95 (3) "), Some((Class::Spam, Some(0.95), "Spam ;0.95 (3)".into())));
        assert_eq!(read("unsure"), Some((Class::Unsure, None, "unsure".into())));
        assert_eq!(read("spam,spam; 0.95").map(|v| v.0), Some(Class::Spam));
        assert_eq!(read("ham; 7").map(|v| v.1), Some(None));
        for nonsense in ["", "; 0.5", "0.5", "hamster; 0.1", "yes"] {
            assert_eq!(read(nonsense), None, "{nonsense:?}");
        }
    }
}
