//! The axes that all panels of a picture share.

use tidegate::{Period, Rate, Timestamp};

use super::{Comparison, Curve};

/// Time to the right, units upwards.
#[derive(Debug, Clone, Copy)]
pub struct Axes {
    start: Timestamp,
    end: Timestamp,
    /// Microseconds in the unit of time.
    unit: f64,
    unit_name: &'static str,
    top: f64,
}

impl Axes {
    /// From the first check until the last one, or until the last admitted work begins; as high as what was
    /// admitted, and what was asked if that is not much more.
    pub fn of(comparison: &Comparison) -> Self {
        let (start, last) = comparison.span.unwrap_or_default();
        let begun = comparison.measures.iter().filter_map(|measure| measure.begun().points().last());
        let end = begun.map(|(at, _)| at).chain([last]).max().unwrap_or(last);
        let span = end.micros_since(start).max(1);
        let units = [
            (172_800_000_000, 86_400_000_000.0, "days"),
            (7_200_000_000, 3_600_000_000.0, "hours"),
            (120_000_000, 60_000_000.0, "minutes"),
            (500_000, 1_000_000.0, "seconds"),
            (500, 1_000.0, "milliseconds"),
        ];
        let fitting = units.into_iter().find(|(least, ..)| span >= *least);
        let (_, unit, unit_name) = fitting.unwrap_or((0, 1.0, "microseconds"));
        let asked = units_drawn(comparison.asked.total().total());
        let admitted = comparison.figures().map(|figures| figures.admitted).max().unwrap_or(0);
        let admitted = units_drawn(admitted).max(1.0);
        let top = if asked <= 2.0 * admitted { asked.max(1.0) } else { 1.25 * admitted };
        Axes {
            start,
            end: end.max(start.saturating_add(tidegate::Wait::from_micros(1))),
            unit,
            unit_name,
            top: 1.05 * top,
        }
    }

    /// The range of the axis of time.
    pub fn range_x(&self) -> (f64, f64) {
        (0.0, self.x(self.end))
    }

    /// The range of the axis of units.
    pub fn range_y(&self) -> (f64, f64) {
        (0.0, self.top)
    }

    /// The unit of the axis of time.
    pub fn unit_name(&self) -> &'static str {
        self.unit_name
    }

    /// A curve from nothing at the start to the end of the axis, cut where it leaves the picture.
    pub fn steps(&self, curve: &Curve) -> Vec<(f64, f64)> {
        let mut points = vec![(0.0, 0.0)];
        for (at, sum) in curve.points() {
            let (x, y) = (self.x(at), units_drawn(sum));
            points.push((x, y.min(self.top)));
            if y > self.top {
                return points;
            }
        }
        let (_, last) = points[points.len() - 1];
        points.push((self.x(self.end), last));
        points
    }

    /// What a rate amounts to from the start on.
    pub fn rate(&self, rate: Rate) -> Vec<(f64, f64)> {
        let a_unit_of_time = rate.amount().get() as f64 * self.unit / rate.per().as_micros() as f64;
        let end = self.x(self.end).min(self.top / a_unit_of_time);
        vec![(0.0, 0.0), (end, end * a_unit_of_time)]
    }

    /// Every other window, unless they are too many to look at.
    pub fn windows(&self, window: Period) -> Vec<(f64, f64)> {
        const MOST: u64 = 40;
        let window = window.as_micros();
        let (first, last) = (self.start.as_micros() / window, self.end.as_micros() / window);
        if last - first > MOST {
            return Vec::new();
        }
        let odd = (first..=last).filter(|number| (number - first) % 2 == 1);
        let x = |number: u64| {
            self.x(Timestamp::saturating_from_micros(number.saturating_mul(window)).min(self.end))
        };
        odd.map(|number| (x(number), x(number + 1))).collect()
    }

    fn x(&self, at: Timestamp) -> f64 {
        at.micros_since(self.start) as f64 / self.unit
    }
}

/// Where a float is no longer exact, a picture has long ceased to be.
fn units_drawn(units: u128) -> f64 {
    units as f64
}
