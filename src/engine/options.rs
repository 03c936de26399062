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
