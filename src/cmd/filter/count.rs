//! `--dry-run`: splits and counts, and asks nobody.

use std::sync::Arc;

use super::item::{Fate, Outcome, Place, message_id};
use super::read::{input_error, split_error, splitter};
use super::select::{Choice, Selection};
use super::tally::{Report, Tally};
use super::{Plan, classifier, create_report, create_stats, finish_reports, rules};
use crate::classify::Usage;
use crate::exit::Exit;
use crate::input::Source;
use crate::mbox::{Part, Piece};
use crate::message::Message;
use crate::report::Teller;

struct Count<'a> {
    plan: &'a Plan,
    header: String,
    tally: Tally,
    report: Option<Report>,
    selection: Selection,
    /// A message that came in part.
    large: Option<(Place, Outcome)>,
}

/// Counts what a real run would read. Nothing is classified, so all messages are counted as skipped.
pub(super) fn run(plan: &Plan, teller: &Arc<Teller>) -> anyhow::Result<Exit> {
    let header = classifier::annotate(&plan.args.classifier).header;
    let (report, stats) = (create_report(&plan.args)?, create_stats(&plan.args)?);
    let selection = plan.selection();
    let mut count = Count { plan, header, tally: Tally::default(), report, selection, large: None };
    let mut exit = Exit::Ok;
    for (file, source) in plan.inputs.iter().enumerate() {
        match count.input(file, source, teller) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                teller.error(&format!("{error:#}"));
                exit = crate::exit::status(&error);
                break;
            }
        }
    }
    teller.end_progress();
    let usage = Usage::default();
    exit = exit.and(finish_reports(plan, teller, &count.tally, count.report, stats, &usage, 0));
    teller.note(&format!("{} (dry run)", count.tally.summary(&usage)));
    Ok(exit)
}

impl Count<'_> {
    /// Counts one input; returns whether the next one is wanted.
    fn input(&mut self, file: usize, source: &Source, teller: &Teller) -> anyhow::Result<bool> {
        let input = source.open().map_err(|error| input_error(&error))?;
        let length = input.length;
        let name = source.name();
        let mut splitter = splitter(input, rules(&self.plan.args), self.plan.args.classifier.max_size);
        loop {
            let offset = splitter.offset();
            let piece = splitter.next_piece().map_err(|error| split_error(&name, offset, &error))?;
            let Some(piece) = piece else { break };
            if !self.piece(file, &name, piece, teller)? {
                return Ok(false);
            }
        }
        Ok(!self.selection.end_of_input(length.unwrap_or(0)))
    }

    fn piece(&mut self, file: usize, name: &str, piece: Piece<'_>, teller: &Teller) -> anyhow::Result<bool> {
        match piece.part {
            Part::Preamble => {
                if self.selection.takes_preamble(piece.offset + piece.bytes.len() as u64) {
                    self.tally.preamble_bytes += piece.bytes.len() as u64;
                    self.tally.bytes_in += piece.bytes.len() as u64;
                }
                return Ok(true);
            }
            Part::Middle | Part::Last => {
                if let Some((place, _)) = &mut self.large {
                    place.length += piece.bytes.len() as u64;
                }
                if let Some((place, outcome)) = self.large.take_if(|_| piece.part == Part::Last) {
                    self.done(name, &place, &outcome, teller)?;
                }
                return Ok(true);
            }
            Part::Message | Part::First => {}
        }
        let place = match self.selection.choose(file, &piece, false) {
            Choice::Take(place) => place,
            Choice::Leave => return Ok(true),
            Choice::Stop => return Ok(false),
        };
        let id = self.report.as_ref().and_then(|_| message_id(&Message::parse(piece.bytes, &self.header)));
        let outcome = Outcome { fate: Fate::Skipped, id };
        if piece.part == Part::First {
            self.large = Some((place, outcome));
        } else {
            self.done(name, &place, &outcome, teller)?;
        }
        Ok(true)
    }

    fn done(&mut self, name: &str, place: &Place, outcome: &Outcome, teller: &Teller) -> anyhow::Result<()> {
        self.tally.count(place, &outcome.fate);
        if place.doubt.is_some() {
            super::write::tell_doubt(teller, name, place);
        }
        if teller.is_verbose() {
            teller.detail(&format!("{name}, message {} at byte {}: {} bytes", place.seq, place.offset, place.length));
        }
        teller.at(self.tally.messages(), self.tally.bytes_in);
        let report = self.report.as_mut();
        Ok(report.map_or(Ok(()), |report| report.row(name, place, outcome))?)
    }
}
