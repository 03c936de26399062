//! The histogram as a picture.

use super::histogram::Histogram;
use crate::plot::{BLUE, HEIGHT, ORANGE, Plot, WIDTH};
use crate::verdict::Cutoffs;

/// An SVG picture of the histogram with the cutoffs in it.
pub fn svg(histogram: &Histogram, cutoffs: &Cutoffs) -> String {
    // The scale ends with a power of ten. Bars begin at one half, or one message would have no height.
    let mut most = 10;
    while most < histogram.highest() {
        most *= 10;
    }
    let tall = |count: usize| HEIGHT * (count as f64 * 2.0).ln() / (most as f64 * 2.0).ln();

    let mut plot = Plot::new("Scores of ham and spam in cross-validation");
    for (colour, name, at, bars) in [(BLUE, "ham", 0.0, &histogram.ham), (ORANGE, "spam", 150.0, &histogram.spam)] {
        plot.legend(at, colour, format_args!("{name} ({})", bars.iter().sum::<usize>()));
    }
    let mut mark = 1;
    while mark <= most {
        plot.level(tall(mark), mark);
        mark *= 10;
    }
    let room = WIDTH / histogram.ham.len() as f64;
    for (colour, shift, bars) in [(BLUE, 0.08, &histogram.ham), (ORANGE, 0.52, &histogram.spam)] {
        for (number, &count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
            plot.bar(room * (number as f64 + shift), room * 0.4, tall(count), colour, count);
        }
    }
    for cutoff in [cutoffs.ham, cutoffs.spam] {
        plot.upright(WIDTH * cutoff, format_args!("{cutoff:.3}"));
    }
    plot.base();
    for tenth in 0..=10 {
        let score = f64::from(tenth) / 10.0;
        plot.mark(WIDTH * score, format_args!("{score:.1}"));
    }
    plot.end("score", "messages (logarithmic)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Scores;
    use crate::plot;

    #[test]
    fn each_bar_is_drawn_inside_and_the_picture_is_xml() {
        let ham = vec![0.01; 4321];
        let picture = svg(&Histogram::new(&Scores::new(ham, vec![0.5, 0.97, 1.0])), &Cutoffs { ham: 0.2, spam: 0.9 });
        let bars = plot::bars(&picture);
        assert_eq!(bars.len(), 3, "{picture}");
        assert!(bars.iter().all(|[_, _, _, height]| *height > 5.0), "{picture}");
    }
}
