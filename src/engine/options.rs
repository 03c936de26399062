//! The settings, with SpamBayes's names and defaults.

/// What can be set about tokens and arithmetic. Field names and default values are SpamBayes's own, section
/// `[Tokenizer]`, `[Classifier]`, `[Categorization]` and `[Headers]` of its options file; the one exception is
/// [`max_parts`](Options::max_parts).
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// A score strictly below is ham. Default 0.20.
    pub ham_cutoff: f64,
    /// A score strictly above is spam. Default 0.90.
    pub spam_cutoff: f64,
    /// At most so many clues are combined, the strongest ones. Default 150.
    pub max_discriminators: usize,
    /// The probability given to a word nobody has seen. Default 0.5.
    pub unknown_word_prob: f64,
    /// How many sightings that belief weighs. Default 0.45.
    pub unknown_word_strength: f64,
    /// A word nearer to 0.5 than this is no clue. Default 0.1.
    pub minimum_prob_strength: f64,
    /// The evidence text shows clues at most this likely to be spam, or at most this likely to be ham. Default 0.5: all.
    pub clue_mailheader_cutoff: f64,
    /// A longer word, in bytes, is summarised instead of used. Default 12.
    pub skip_max_word_size: usize,
    /// Give `skip:C N` for a word that is too long. Default true.
    pub generate_long_skips: bool,
    /// Count header fields of every name, not only those of `safe_headers`. Default false.
    pub count_all_header_lines: bool,
    /// The fields parsed as address lists, in lower case, in this order. Default from, to, cc, sender, reply-to.
    pub address_headers: Vec<String>,
    /// The fields that are counted, in lower case.
    pub safe_headers: Vec<String>,
    /// A message is read up to this many MIME parts and the rest of it is ignored: memory per part is about 150 bytes
    /// while a part can be written in five. Not an option of SpamBayes. Default 100,000.
    pub max_parts: usize,
}

impl Default for Options {
    fn default() -> Self {
        let words = |list: &str| list.split_whitespace().map(str::to_owned).collect();
        Options {
            ham_cutoff: 0.20,
            spam_cutoff: 0.90,
            max_discriminators: 150,
            unknown_word_prob: 0.5,
            unknown_word_strength: 0.45,
            minimum_prob_strength: 0.1,
            clue_mailheader_cutoff: 0.5,
            skip_max_word_size: 12,
            generate_long_skips: true,
            count_all_header_lines: false,
            address_headers: words("from to cc sender reply-to"),
            safe_headers: words(
                "abuse-reports-to date errors-to from importance in-reply-to message-id mime-version organization \
                 received reply-to return-path subject to user-agent x-abuse-info x-complaints-to x-face",
            ),
            max_parts: 100_000,
        }
    }
}

/// Why an option cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// There is none of this name here.
    #[error("unknown option {name}; there are {known}", known = NAMES.join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The value does not fit.
    #[error("{name} must be {wanted}")]
    Value {
        /// The name.
        name: &'static str,
        /// What it may be.
        wanted: &'static str,
    },
}

/// The names [`Options::set`] knows.
const NAMES: [&str; 12] = [
    "ham_cutoff",
    "spam_cutoff",
    "max_discriminators",
    "unknown_word_prob",
    "unknown_word_strength",
    "minimum_prob_strength",
    "clue_mailheader_cutoff",
    "skip_max_word_size",
    "generate_long_skips",
    "count_all_header_lines",
    "address_headers",
    "safe_headers",
];

impl Options {
    /// Sets an option by its name, in any case, from text as it stands in SpamBayes's options files.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let unknown = || OptionError::Unknown { name: name.to_owned() };
        let name = *NAMES.iter().find(|known| known.eq_ignore_ascii_case(name)).ok_or_else(unknown)?;
        let wrong = |wanted| OptionError::Value { name, wanted };
        let share = |most: f64, wanted| {
            let number: Option<f64> = value.parse().ok();
            number.filter(|number| (0.0..=most).contains(number)).ok_or(wrong(wanted))
        };
        let count = || value.parse::<usize>().ok().filter(|&n| n > 0).ok_or(wrong("a number from 1"));
        let switch = || match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(wrong("True or False")),
        };
        let words = || value.split_whitespace().map(str::to_ascii_lowercase).collect();
        match name {
            "ham_cutoff" => self.ham_cutoff = share(1.0, "from 0 to 1")?,
            "spam_cutoff" => self.spam_cutoff = share(1.0, "from 0 to 1")?,
            "max_discriminators" => self.max_discriminators = count()?,
            "unknown_word_prob" => self.unknown_word_prob = share(1.0, "from 0 to 1")?,
            "unknown_word_strength" => self.unknown_word_strength = share(1e6, "0 or more")?,
            "minimum_prob_strength" => self.minimum_prob_strength = share(0.5, "from 0 to 0.5")?,
            "clue_mailheader_cutoff" => self.clue_mailheader_cutoff = share(0.5, "from 0 to 0.5")?,
            "skip_max_word_size" => self.skip_max_word_size = count()?,
            "generate_long_skips" => self.generate_long_skips = switch()?,
            "count_all_header_lines" => self.count_all_header_lines = switch()?,
            "address_headers" => self.address_headers = words(),
            _ => self.safe_headers = words(),
        }
        Ok(())
    }

    /// Applies a SpamBayes options file: `[Section]`, `name: value` or `name = value`, continuation lines that begin with a
    /// blank, remarks that begin with `#` or `;`. Returns what it sets that is not honoured here, or not well formed.
    pub fn apply_file(&mut self, text: &str) -> Vec<String> {
        let mut settings: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            let bare = line.trim();
            if bare.is_empty() || bare.starts_with(['#', ';', '[']) {
                continue;
            }
            if line.starts_with([' ', '\t']) {
                if let Some((_, value)) = settings.last_mut() {
                    value.push(' ');
                    value.push_str(bare);
                }
                continue;
            }
            // As Python 2 reads it, `;` behind a blank begins a remark.
            let bare = bare.split_once(" ;").map_or(bare, |(bare, _)| bare);
            let (name, value) = bare.split_once([':', '=']).unwrap_or((bare, ""));
            settings.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let refused = |(name, value): (String, String)| match self.set(&name, &value) {
            Ok(()) => None,
            Err(OptionError::Unknown { name }) => Some(name),
            Err(error) => Some(error.to_string()),
        };
        settings.into_iter().filter_map(refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_and_nonsense_cannot() {
        for name in NAMES {
            let good = ["0.25", "7", "true", "from to"];
            assert!(good.iter().any(|value| Options::default().set(name, value).is_ok()), "{name}");
        }
        let set = |name, value| {
            let mut options = Options::default();
            options.set(name, value).map(|()| options)
        };
        assert_eq!(set("HAM_cutoff", "0.15").map(|options| options.ham_cutoff), Ok(0.15));
        for (name, value) in [("ham_cutoff", "2"), ("ham_cutoff", "nan"), ("max_discriminators", "0"), ("nothing", "1")]
        {
            assert!(set(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn an_options_file_is_read_and_what_is_not_honoured_is_told() {
        let text = "# mine\n[Categorization]\nham_cutoff: 0.15 ; mine\nSpam_Cutoff = 0.95\n[Tokenizer]\naddress_headers: from to\n \
                    cc\nmine_received_headers: True\n[Storage]\npersistent_storage_file = ~/.hammiedb\nmax_discriminators: x\n";
        let mut options = Options::default();
        let refused = options.apply_file(text);
        assert_eq!((options.ham_cutoff, options.spam_cutoff), (0.15, 0.95));
        assert_eq!(options.address_headers, ["from", "to", "cc"]);
        let want = ["mine_received_headers", "persistent_storage_file", "max_discriminators must be a number from 1"];
        assert_eq!(refused, want);
    }
}
