//! A comparison as a picture: a panel for each algorithm, all with the same axes.
//!
//! Three algorithms decide alike, so in one set of axes their lines would hide one another. Side by side each
//! stands out, equal axes make them comparable, and strokes tell the lines apart as well as colours do.

use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::{LinePlot, LineStyle};
use kuva::render::annotations::ShadedRegion;
use kuva::render::figure::Figure;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use tidegate_server::config::{show_period, show_rate};

use super::axes::Axes;
use super::{Comparison, Curve, Figures, Measure};
use crate::span::shown_span;
use crate::table::shown_key;

/// Panels side by side.
const COLUMNS: usize = 3;

/// Draws it as SVG; `traffic` is what it is of.
pub fn plot(traffic: &str, comparison: &Comparison) -> String {
    let axes = Axes::of(comparison);
    let panels: Vec<Vec<Line>> =
        comparison.measures.iter().map(|measure| lines(comparison, measure, &axes)).collect();
    let plots = panels.iter().map(|lines| lines.iter().map(Line::plot).collect()).collect();
    let layouts = comparison.figures().enumerate().map(|(place, figures)| {
        let layout = layout(comparison, figures, &axes);
        with_labels(layout, &axes, place, panels.len())
    });
    let shaded = !axes.windows(comparison.nominal.window()).is_empty();
    let figure = Figure::new(panels.len().div_ceil(COLUMNS), COLUMNS)
        .with_title(format!("{traffic}, under {}", comparison.nominal))
        .with_title_size(15)
        .with_cell_size(310.0, 250.0)
        .with_spacing(6.0)
        .with_plots(plots)
        .with_layouts(layouts.collect())
        .with_shared_legend_entries(legend(&panels, shaded))
        .with_shared_legend_bottom();
    SvgBackend.render_scene(&figure.render())
}

/// How a line is drawn. The colours (Okabe and Ito) differ for people who see fewer of them, too.
#[derive(Clone, Copy)]
struct Style {
    color: &'static str,
    width: f64,
    dashes: Option<&'static str>,
}

const ASKED: Style = Style { color: "#6e6e6e", width: 1.5, dashes: Some("2 3") };
const RATE: Style = Style { color: "#b0b0b0", width: 1.0, dashes: None };
const BEGUN: Style = Style { color: "#d55e00", width: 2.0, dashes: Some("7 3") };
/// Behind the lines.
const SHADE: &str = "#edf1f5";
/// Of what was admitted to each key.
const ADMITTED: [Style; super::MOST_KEYS_APART] = [
    Style { color: "#0072b2", width: 2.6, dashes: None },
    Style { color: "#d55e00", width: 2.6, dashes: Some("7 3") },
    Style { color: "#000000", width: 2.0, dashes: Some("12 3") },
    Style { color: "#009e73", width: 2.6, dashes: Some("3 2") },
];

struct Line {
    label: String,
    style: Style,
    points: Vec<(f64, f64)>,
    steps: bool,
}

impl Line {
    fn of(label: impl Into<String>, style: Style, curve: Option<&Curve>, axes: &Axes) -> Self {
        let points = curve.map(|curve| axes.steps(curve)).unwrap_or_default();
        Line { label: label.into(), style, points, steps: true }
    }

    fn plot(&self) -> Plot {
        let Style { color, width, dashes } = self.style;
        let dashes = dashes.map_or(LineStyle::Solid, |dashes| LineStyle::Custom(dashes.to_owned()));
        let plot = LinePlot::new().with_data(self.points.iter().copied());
        let plot = plot.with_color(color).with_stroke_width(width).with_line_style(dashes);
        Plot::Line(if self.steps { plot.with_step() } else { plot })
    }
}

/// One algorithm's lines: for each key if there are a few, else for all together.
fn lines(comparison: &Comparison, measure: &Measure, axes: &Axes) -> Vec<Line> {
    let rate = comparison.nominal.rate();
    let label = format!("the rate itself, {}", show_rate(rate));
    let mut lines = vec![Line { label, style: RATE, points: axes.rate(rate), steps: false }];
    let (asked, admitted) = (&comparison.asked, measure.admitted());
    if let Some(keys) = asked.keys().filter(|keys| keys.len() > 1) {
        for (key, style) in keys.into_iter().zip(ADMITTED) {
            let label = format!("admitted to {}", shown_key(key));
            lines.push(Line::of("asked for by each", ASKED, asked.of(key), axes));
            lines.push(Line::of(label, style, admitted.of(key), axes));
        }
        return lines;
    }
    lines.push(Line::of("asked for", ASKED, Some(asked.total()), axes));
    lines.push(Line::of("admitted", ADMITTED[0], Some(admitted.total()), axes));
    if measure.figures().longest_delay_us > 0 {
        lines.push(Line::of("begun, after the delay told", BEGUN, Some(measure.begun()), axes));
    }
    lines
}

fn layout(comparison: &Comparison, figures: &Figures, axes: &Axes) -> Layout {
    let window = comparison.nominal.window();
    let mut said = format!(
        "{} in all, at most {} in any {}",
        figures.admitted,
        figures.most_in_a_window,
        show_period(window)
    );
    if figures.longest_delay_us > 0 {
        said =
            format!("{} in all, delayed by up to {}", figures.admitted, shown_span(figures.longest_delay_us));
    }
    let layout = Layout::new(axes.range_x(), axes.range_y())
        .with_clamp_axis()
        .with_title(figures.algorithm.name())
        .with_title_size(14)
        .with_subtitle(said)
        .with_subtitle_size(11)
        .with_label_size(12)
        .with_tick_size(10)
        .with_show_grid(false)
        .with_x_tick_format(TickFormat::Auto)
        .with_y_tick_format(TickFormat::Integer);
    let shade = |(from, to)| ShadedRegion::vertical(from, to).with_color(SHADE).with_opacity(1.0);
    axes.windows(window).into_iter().map(shade).fold(layout, Layout::with_shaded_region)
}

/// Says what the axes are at the edges of the picture.
fn with_labels(mut layout: Layout, axes: &Axes, place: usize, panels: usize) -> Layout {
    if place.is_multiple_of(COLUMNS) {
        layout = layout.with_y_label("units");
    }
    if place + COLUMNS >= panels {
        layout = layout.with_x_label(format!("{} since the first check", axes.unit_name()));
    }
    layout
}

/// What each kind of line and the shade stand for, once.
fn legend(panels: &[Vec<Line>], shaded: bool) -> Vec<LegendEntry> {
    let entry = |label: &str, color: &str, shape, dashes: Option<&str>| LegendEntry {
        label: label.to_owned(),
        color: color.to_owned(),
        shape,
        dasharray: dashes.map(str::to_owned),
    };
    let mut entries: Vec<LegendEntry> = Vec::new();
    for line in panels.iter().flatten() {
        if entries.iter().all(|entry| entry.label != line.label) {
            entries.push(entry(&line.label, line.style.color, LegendShape::Line, line.style.dashes));
        }
    }
    if shaded {
        entries.push(entry("every other window", SHADE, LegendShape::Rect, None));
    }
    entries
}
