//! A picture of bars over a scale, as SVG.
//!
//! Written by hand: rectangles, lines and text are a page of code, while a plotting library is some twenty crates more to
//! be trusted with mail. What the bars mean is the business of those who draw; here is the frame that they have in common.

use std::fmt::{Display, Write as _};

/// The plot's place in the picture, in pixels.
pub const LEFT: f64 = 70.0;
/// See [`LEFT`].
pub const TOP: f64 = 50.0;
/// The plot's size, in pixels.
pub const WIDTH: f64 = 800.0;
/// See [`WIDTH`].
pub const HEIGHT: f64 = 360.0;
const BOTTOM: f64 = TOP + HEIGHT;
const SIZE: (f64, f64) = (900.0, 470.0);

/// Colours that stay apart for those who see no red or no green.
pub const BLUE: &str = "#0072b2";
/// See [`BLUE`].
pub const ORANGE: &str = "#d55e00";

/// A picture under way. Texts are not escaped: they are the program's own.
#[derive(Debug)]
pub struct Plot(String);

// Writing to a string cannot fail, which is why its results are thrown away here.
impl Plot {
    /// An empty picture.
    pub fn new(title: &str) -> Plot {
        let (width, height) = SIZE;
        let mut plot = Plot("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned());
        let _ = writeln!(
            plot.0,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">"#
        );
        let _ = writeln!(plot.0, "<title>{title}</title>");
        let _ = writeln!(plot.0, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
        plot
    }

    /// Tells what a colour means, above the plot, so many pixels from its left.
    pub fn legend(&mut self, at: f64, colour: &str, name: impl Display) {
        let at = LEFT + at;
        let _ = writeln!(self.0, r#"<rect x="{at}" y="19" width="12" height="12" fill="{colour}"/>"#);
        let _ = writeln!(self.0, r#"<text x="{}" y="30">{name}</text>"#, at + 18.0);
    }

    /// A line across, so many pixels above the base, with its mark.
    pub fn level(&mut self, tall: f64, mark: impl Display) {
        let y = BOTTOM - tall;
        let _ = writeln!(self.0, r##"<path d="M{LEFT} {y:.1}h{WIDTH}" stroke="#dddddd"/>"##);
        let _ = writeln!(self.0, r#"<text x="{}" y="{:.1}" text-anchor="end">{mark}</text>"#, LEFT - 8.0, y + 4.0);
    }

    /// A bar, so many pixels from the left, on the base; `tip` is shown under the pointer.
    pub fn bar(&mut self, left: f64, wide: f64, tall: f64, colour: &str, tip: impl Display) {
        let (left, top) = (LEFT + left, BOTTOM - tall);
        let _ = writeln!(
            self.0,
            r#"<rect x="{left:.1}" y="{top:.1}" width="{wide:.1}" height="{tall:.1}" fill="{colour}"><title>{tip}</title></rect>"#
        );
    }

    /// A dashed line upright, so many pixels from the left, with its mark above.
    pub fn upright(&mut self, at: f64, mark: impl Display) {
        let at = LEFT + at;
        let _ = writeln!(self.0, r##"<path d="M{at:.1} {TOP}v{HEIGHT}" stroke="#333333" stroke-dasharray="5 4"/>"##);
        let _ = writeln!(self.0, r#"<text x="{at:.1}" y="{:.1}" text-anchor="middle">{mark}</text>"#, TOP - 5.0);
    }

    /// The base line.
    pub fn base(&mut self) {
        let _ = writeln!(self.0, r##"<path d="M{LEFT} {BOTTOM}h{WIDTH}" stroke="#333333"/>"##);
    }

    /// A mark under the base line, so many pixels from the left.
    pub fn mark(&mut self, at: f64, mark: impl Display) {
        let (at, y) = (LEFT + at, BOTTOM + 20.0);
        let _ = writeln!(self.0, r#"<text x="{at:.1}" y="{y}" text-anchor="middle">{mark}</text>"#);
    }

    /// Names what is marked below and at the left, and ends the picture.
    pub fn end(mut self, below: &str, left: &str) -> String {
        let (x, y) = (LEFT + WIDTH / 2.0, TOP + HEIGHT / 2.0);
        let _ = writeln!(self.0, r#"<text x="{x}" y="{}" text-anchor="middle">{below}</text>"#, BOTTOM + 44.0);
        let _ = writeln!(
            self.0,
            r#"<text x="18" y="{y}" text-anchor="middle" transform="rotate(-90 18 {y})">{left}</text>"#
        );
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// The bars of a picture, for tests: x, y, width and height of each. Fails if it is no XML or a bar lies outside.
#[cfg(test)]
pub fn bars(picture: &str) -> Vec<[f64; 4]> {
    let mut reader = quick_xml::Reader::from_str(picture);
    while !matches!(reader.read_event().expect("XML"), quick_xml::events::Event::Eof) {}
    let bars = picture.lines().filter(|line| line.contains("<title>") && line.contains("<rect"));
    let bar = |line: &str| {
        let number = |name: &str| -> f64 {
            let (_, rest) = line.split_once(&format!(" {name}=\"")).expect("it has that");
            rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
        };
        let [x, y, width, height] = ["x", "y", "width", "height"].map(number);
        assert!(x >= LEFT && x + width <= LEFT + WIDTH, "{line}");
        assert!(y >= TOP && (y + height - BOTTOM).abs() < 0.2, "{line}");
        [x, y, width, height]
    };
    bars.map(bar).collect()
}
