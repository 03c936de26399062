//! `filter` and `score_and_filter`: the message with its verdict, every other byte as it came.

use std::time::Duration;

use super::{Outcome, Service};
use crate::classify::Answer;
use crate::classify::annotate::{Annotate, Graft, field_name};
use crate::classify::local::{EVIDENCE, evidence_field};
use crate::engine;
use crate::message::Message;
use crate::server::fault::Fault;
use crate::server::params::{Params, Text};
use crate::verdict::{Class, Cutoffs, Verdict};
use crate::xmlrpc::Value;

/// The field that tells as what a message was trained.
pub(super) const TRAINED: &str = "X-Spambayes-Trained";

/// What was asked for besides the message.
struct Asked {
    annotate: Annotate,
    cutoffs: Cutoffs,
    /// The field the clues go to, if they are wanted.
    evidence: Option<String>,
    train: bool,
}

impl Service {
    pub(super) fn filter(&self, params: Params, outcome: &mut Outcome) -> Result<Value, Fault> {
        let (_, text) = self.filtered(params, outcome)?;
        Ok(Value::Base64(text.bytes))
    }

    pub(super) fn score_and_filter(&self, params: Params, outcome: &mut Outcome) -> Result<Value, Fault> {
        let (score, text) = self.filtered(params, outcome)?;
        // Only ASCII was added, so text is still text.
        let text = match String::from_utf8(text.bytes) {
            Ok(string) if text.was_string => Value::Str(string),
            Ok(string) => Value::Base64(string.into_bytes()),
            Err(error) => Value::Base64(error.into_bytes()),
        };
        Ok(Value::Array(vec![Value::Double(score), text]))
    }

    fn filtered(&self, mut params: Params, outcome: &mut Outcome) -> Result<(f64, Text), Fault> {
        let mut text = params.message()?;
        let asked = self.asked(params)?;
        outcome.bytes = text.bytes.len();
        self.catch_up()?;
        if let Some(name) = &asked.evidence {
            // A field of this name is not the sender's, whatever it is called.
            text.bytes = Message::parse(&text.bytes, name).without_ours().into_owned();
        }
        let message = asked.annotate.parse(&text.bytes);
        let cleaned = message.without_ours();
        let (score, mut fields) = self.local.weigh(&cleaned, |tokens, words| match &asked.evidence {
            None => (engine::score(tokens, words, self.options()).probability, Vec::new()),
            Some(name) => {
                let (score, clues) = engine::clues(tokens, words, self.options());
                (score.probability, vec![evidence_field(name, &engine::evidence(&clues, self.options()))])
            }
        })?;
        let verdict = Verdict::from_score(score, &asked.cutoffs);
        outcome.class = Some(verdict.class);
        if asked.train {
            // Unsure is trained as ham: that is what the original does.
            let is_spam = verdict.class == Class::Spam;
            self.learn(&cleaned, is_spam)?;
            fields.push((TRAINED.into(), if is_spam { b"spam".to_vec() } else { b"ham".to_vec() }));
        }
        let answer =
            Answer { verdict, fields, message: None, method: "filter", server: None, took: Duration::default() };
        let mut graft = Graft::default();
        asked.annotate.classified(&message, &answer, &mut graft);
        text.bytes = graft.applied(&text.bytes);
        Ok((score, text))
    }

    fn asked(&self, mut params: Params) -> Result<Asked, Fault> {
        let name = |name: String, what| field_name(&name).map_err(|why| Fault::of_value(format!("{what}: {why}")));
        let mut annotate = Annotate::default();
        // The original takes an empty name for none.
        if let Some(header) = params.string("header")?.filter(|header| !header.is_empty()) {
            annotate.header = name(header, "header")?;
        }
        let default = self.cutoffs();
        let spam = params.number("spam_cutoff")?.unwrap_or(default.spam);
        let ham = params.number("ham_cutoff")?.unwrap_or(default.ham);
        let debugheader = params.string("debugheader")?.filter(|header| !header.is_empty());
        let debugheader = debugheader.map(|header| name(header, "debugheader")).transpose()?;
        let evidence = params.flag("debug")?.unwrap_or(false);
        let train = params.flag("train")?.unwrap_or(false);
        if train && self.trained.is_none() {
            return Err(Fault::other("training is not allowed here"));
        }
        let evidence = evidence.then(|| debugheader.unwrap_or_else(|| EVIDENCE.to_owned()));
        Ok(Asked { annotate, cutoffs: Cutoffs { ham, spam }, evidence, train })
    }
}
