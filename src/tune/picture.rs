//! The throughput of each row as a picture.

use super::Row;
use crate::plot::{BLUE, HEIGHT, ORANGE, Plot, WIDTH};

/// An SVG picture with a bar for each row; that with `chosen` messages in flight has a colour of its own.
pub fn picture(rows: &[Row], chosen: usize) -> String {
    let highest = rows.iter().map(|row| row.rate).fold(0.0, f64::max);
    let step = step(highest);
    let most = step * (highest / step).ceil();
    let tall = |rate: f64| HEIGHT * rate / most;

    let mut plot = Plot::new("Throughput by messages in flight");
    plot.legend(0.0, BLUE, "messages/s");
    plot.legend(150.0, ORANGE, "the number to use");
    let mut mark = 0.0;
    while mark <= most + step / 2.0 {
        plot.level(tall(mark), format_args!("{mark}"));
        mark += step;
    }
    let room = WIDTH / rows.len().max(1) as f64;
    for (number, Row { parallel, rate, p50, .. }) in rows.iter().enumerate() {
        let left = room * number as f64;
        let colour = if *parallel == chosen { ORANGE } else { BLUE };
        let tip = format_args!("{rate:.1} messages/s, {p50:.2} ms");
        plot.bar(left + room * 0.15, room * 0.7, tall(*rate), colour, tip);
        plot.mark(left + room / 2.0, parallel);
    }
    plot.base();
    plot.end("messages in flight", "messages/s")
}

/// A round distance of marks, so that there are about five.
fn step(highest: f64) -> f64 {
    let rough = (highest / 5.0).max(f64::MIN_POSITIVE);
    let ten = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|part| part * ten).find(|step| *step >= rough).unwrap_or(10.0 * ten)
}

#[cfg(test)]
mod tests {
    use super::super::row_for_tests as row;
    use super::*;
    use crate::plot;

    #[test]
    fn each_row_has_a_bar_of_its_height() {
        let picture = picture(&[row(1, 500.0), row(2, 1000.0), row(4, 970.0)], 2);
        let bars = plot::bars(&picture);
        assert_eq!(bars.len(), 3, "{picture}");
        assert!((bars[1][3] - 2.0 * bars[0][3]).abs() < 0.2 && (bars[1][3] - HEIGHT).abs() < 0.1, "{bars:?}");
        assert_eq!(picture.matches(&format!("fill=\"{ORANGE}\"><title>1000.0 messages/s")).count(), 1, "{picture}");
    }

    #[test]
    fn marks_are_round_and_few() {
        for (highest, want) in [(1000.0, 200.0), (3457.0, 1000.0), (12.0, 5.0), (0.3, 0.1)] {
            assert!((step(highest) / want - 1.0).abs() < 1e-9, "{highest}: {}", step(highest));
        }
    }
}
