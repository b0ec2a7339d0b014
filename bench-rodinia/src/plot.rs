//! The ratios as a bar chart: one group of bars per program, on a logarithmic scale, as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::IntoSegmentedCoord;
use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::*;

use crate::figures::{Row, named_ratio, simulated};

/// Width of the chart, and height per program, in pixels.
const SIZE: (u32, u32) = (900, 34);

/// What is drawn, by the name of its ratio; colours that differ in brightness too.
const BARS: [(&str, &str, RGBColor); 2] = [
    ("kernel_time", "kernel time", RGBColor(40, 90, 160)),
    (
        "warp_instructions",
        "executed warp-instructions",
        RGBColor(240, 160, 60),
    ),
];

/// The chart; a program without figures keeps its line, empty.
pub(crate) fn render(rows: &[Row], mode: &str) -> Result<String> {
    let mut text = String::new();
    draw(rows, mode, &mut text).map_err(|error| anyhow!("cannot draw: {error}"))?;
    Ok(text)
}

fn draw(rows: &[Row], mode: &str, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let all = BARS
        .iter()
        .flat_map(|(name, ..)| rows.iter().filter_map(|row| named_ratio(row, name)));
    let (least, most) = all.fold((1.0_f64, 2.0_f64), |(a, b), r| (a.min(r), b.max(r)));
    let on = match simulated(rows) {
        true => "simulated device",
        false => "GPU",
    };

    let height = SIZE.1 * rows.len() as u32 + 130;
    let area = SVGBackend::with_string(text, (SIZE.0, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let lines = (0..rows.len()).into_segmented();
    let mut chart = ChartBuilder::on(&area)
        .caption(
            format!("Checked over unchecked, --mode {mode}, {on}"),
            ("sans-serif", 20),
        )
        .margin(12)
        // Where the legend is.
        .margin_top(44)
        .x_label_area_size(40)
        .y_label_area_size(130)
        .build_cartesian_2d((least * 0.9..most * 1.2).log_scale(), lines)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc("times as much")
        .x_label_formatter(&|x| format!("{x}"))
        .y_labels(rows.len())
        .y_label_formatter(&|y| match y {
            // The first program is at the top.
            SegmentValue::CenterOf(line) => rows
                .len()
                .checked_sub(line + 1)
                .and_then(|index| Some(rows.get(index)?.name.clone()))
                .unwrap_or_default(),
            _ => String::new(),
        })
        .draw()?;
    for (place, &(name, label, color)) in BARS.iter().enumerate() {
        let bars = rows.iter().enumerate().filter_map(|(index, row)| {
            let ratio = named_ratio(row, name)?;
            let line = rows.len() - 1 - index;
            let ends = [
                (1.0, SegmentValue::Exact(line)),
                (ratio, SegmentValue::Exact(line + 1)),
            ];
            let mut bar = Rectangle::new(ends, color.filled());
            let (outside, inside) = (SIZE.1 / 8, SIZE.1 / 2);
            match place {
                0 => bar.set_margin(outside, inside, 0, 0),
                _ => bar.set_margin(inside, outside, 0, 0),
            };
            Some(bar)
        });
        chart.draw_series(bars)?;
        let (x, y) = (140 + 160 * place as i32, 18);
        area.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], color.filled()))?;
        area.draw(&Text::new(label, (x + 18, y), ("sans-serif", 15)))?;
    }
    drop(chart);
    area.present()?;
    drop(area);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests;

    #[test]
    fn a_bar_is_as_long_as_the_logarithm_of_its_ratio() {
        let rows = [tests::row("a", 10.0), tests::row("b", 1000.0)];
        let text = render(&rows, "fast").unwrap();
        let RGBColor(r, g, b) = BARS[0].2;
        let color = format!("#{r:02X}{g:02X}{b:02X}");
        let bars = text.lines().filter(|line| line.contains(&color));
        let width = |line: &str| {
            let (_, rest) = line.split_once("width=\"").unwrap();
            rest.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        let mut widths: Vec<f64> = bars.map(width).collect();
        widths.sort_by(f64::total_cmp);
        // The shortest is in the legend.
        assert_eq!(widths.len(), 3, "{text}");
        assert!((widths[2] / widths[1] - 3.0).abs() < 0.05, "{widths:?}");
    }

    #[test]
    fn every_program_has_a_line() {
        let rows: Vec<Row> = (0..20)
            .map(|i| tests::nothing(&format!("program{i}<"), ""))
            .collect();
        let text = render(&rows, "precise").unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert_eq!(text.matches("program").count(), 20, "{text}");
        assert!(text.contains("program19&lt;"));
    }
}
