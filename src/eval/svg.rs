//! The histogram as a picture.
//!
//! Written by hand: two rows of rectangles and a scale are a page of code, while a plotting library is some twenty crates
//! more to be trusted with mail.

use std::fmt::{self, Write as _};

use super::histogram::Histogram;
use crate::verdict::Cutoffs;

/// The plot's place in the picture, and the picture's size, in pixels.
const LEFT: f64 = 70.0;
const TOP: f64 = 50.0;
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 360.0;
const SIZE: (f64, f64) = (900.0, 470.0);
/// Colours that stay apart for those who see no red or no green.
const HAM: &str = "#0072b2";
const SPAM: &str = "#d55e00";

/// An SVG picture of the histogram with the cutoffs in it.
pub fn svg(histogram: &Histogram, cutoffs: &Cutoffs) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = draw(&mut text, histogram, cutoffs);
    text
}

fn draw(out: &mut String, histogram: &Histogram, cutoffs: &Cutoffs) -> fmt::Result {
    let (width, height) = SIZE;
    let bottom = TOP + HEIGHT;
    let x = |score: f64| LEFT + WIDTH * score;
    // The scale ends with a power of ten. Bars begin at one half, or one message would have no height.
    let mut most = 10;
    while most < histogram.highest() {
        most *= 10;
    }
    let tall = |count: usize| HEIGHT * (count as f64 * 2.0).ln() / (most as f64 * 2.0).ln();

    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">"#
    )?;
    writeln!(out, r#"<title>Scores of ham and spam in cross-validation</title>"#)?;
    writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##)?;
    for (colour, name, at, bars) in [(HAM, "ham", LEFT, &histogram.ham), (SPAM, "spam", LEFT + 150.0, &histogram.spam)]
    {
        let count: usize = bars.iter().sum();
        writeln!(out, r#"<rect x="{at}" y="19" width="12" height="12" fill="{colour}"/>"#)?;
        writeln!(out, r#"<text x="{}" y="30">{name} ({count})</text>"#, at + 18.0)?;
    }
    let mut mark = 1;
    while mark <= most {
        let y = bottom - tall(mark);
        writeln!(out, r##"<path d="M{LEFT} {y:.1}h{WIDTH}" stroke="#dddddd"/>"##)?;
        writeln!(out, r#"<text x="{}" y="{:.1}" text-anchor="end">{mark}</text>"#, LEFT - 8.0, y + 4.0)?;
        mark *= 10;
    }
    let room = WIDTH / histogram.ham.len() as f64;
    for (colour, shift, bars) in [(HAM, 0.08, &histogram.ham), (SPAM, 0.52, &histogram.spam)] {
        for (number, &count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (left, tall, wide) = (LEFT + room * (number as f64 + shift), tall(count), room * 0.4);
            let top = bottom - tall;
            writeln!(
                out,
                r#"<rect x="{left:.1}" y="{top:.1}" width="{wide:.1}" height="{tall:.1}" fill="{colour}"><title>{count}</title></rect>"#
            )?;
        }
    }
    for cutoff in [cutoffs.ham, cutoffs.spam] {
        let at = x(cutoff);
        writeln!(out, r##"<path d="M{at:.1} {TOP}v{HEIGHT}" stroke="#333333" stroke-dasharray="5 4"/>"##)?;
        writeln!(out, r#"<text x="{at:.1}" y="{:.1}" text-anchor="middle">{cutoff:.3}</text>"#, TOP - 5.0)?;
    }
    writeln!(out, r##"<path d="M{LEFT} {bottom}h{WIDTH}" stroke="#333333"/>"##)?;
    for tenth in 0..=10 {
        let score = f64::from(tenth) / 10.0;
        writeln!(out, r#"<text x="{:.1}" y="{}" text-anchor="middle">{score:.1}</text>"#, x(score), bottom + 20.0)?;
    }
    let middle = (LEFT + WIDTH / 2.0, bottom + 44.0, TOP + HEIGHT / 2.0);
    writeln!(out, r#"<text x="{}" y="{}" text-anchor="middle">score</text>"#, middle.0, middle.1)?;
    writeln!(
        out,
        r#"<text x="18" y="{0}" text-anchor="middle" transform="rotate(-90 18 {0})">messages (logarithmic)</text>"#,
        middle.2
    )?;
    writeln!(out, "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Scores;

    #[test]
    fn each_bar_is_drawn_inside_and_the_picture_is_xml() {
        let ham = vec![0.01; 4321];
        let picture = svg(&Histogram::new(&Scores::new(ham, vec![0.5, 0.97, 1.0])), &Cutoffs { ham: 0.2, spam: 0.9 });
        let bars: Vec<_> = picture.lines().filter(|line| line.contains("<title>") && line.contains("<rect")).collect();
        assert_eq!(bars.len(), 3, "{picture}");
        for bar in bars {
            let number = |name: &str| -> f64 {
                let (_, rest) = bar.split_once(&format!(" {name}=\"")).expect("it has that");
                rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
            };
            assert!(number("height") > 5.0 && number("y") >= TOP, "{bar}");
            assert!(number("x") >= LEFT && number("x") + number("width") <= LEFT + WIDTH, "{bar}");
        }
        let mut reader = quick_xml::Reader::from_str(&picture);
        loop {
            match reader.read_event().expect("XML") {
                quick_xml::events::Event::Eof => break,
                _ => continue,
            }
        }
    }
}
