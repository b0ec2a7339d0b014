//! Who raced, as a picture: the blocks of the grid, and the warps and lanes of both blocks.

use maud::{Markup, html};

use crate::model::{Access, Race};

/// Threads of a warp.
const LANES: u64 = 32;
/// Blocks of a row or column of the grid that get a square each; of more, a square stands for several.
const MOST: u64 = 32;
/// Side of a square, in pixels.
const SIDE: u64 = 9;

/// The map, where at least one block is known.
pub(super) fn render(race: &Race) -> Option<Markup> {
    let sides = [("first", 0), ("second", 1)].map(|(name, n)| (name, &race.accesses[n]));
    let blocks: Vec<(&str, [u32; 3])> = { sides.iter() }
        .filter_map(|(name, of)| Some((*name, of.block?)))
        .collect();
    if blocks.is_empty() {
        return None;
    }
    let [x, y, z] = race.kernel.grid.map(u64::from);
    let [width, height] = [x.max(1), (y * z).max(1)];
    let row = |block: [u32; 3]| u64::from(block[1]) + u64::from(block[2]) * y;
    let grid = Squares {
        title: format!("grid ({x},{y},{z})"),
        columns: width,
        rows: height,
        used: width * height,
        marks: { blocks.iter() }
            .map(|&(name, block)| (name, u64::from(block[0]), row(block)))
            .collect(),
    };
    let [bx, by, bz] = race.kernel.block.map(u64::from);
    let threads = bx * by * bz;
    let lane = |access: &Access| {
        let [tx, ty, tz] = access.thread?.map(u64::from);
        Some((access.block?, tx + ty * bx + tz * bx * by))
    };
    let known: Vec<(&str, ([u32; 3], u64))> = { sides.iter() }
        .filter_map(|&(name, access)| Some((name, lane(access)?)))
        .collect();
    let inside = known.chunk_by(|a, b| a.1.0 == b.1.0).map(|of| {
        let [i, j, k] = of[0].1.0;
        let named: Vec<String> = { of.iter() }
            .map(|(name, (_, at))| format!("{name}: warp {}, lane {}", at / LANES, at % LANES))
            .collect();
        Squares {
            title: format!("block ({i},{j},{k}); {}", named.join("; ")),
            columns: LANES,
            rows: threads.div_ceil(LANES).max(1),
            used: threads,
            marks: { of.iter() }
                .map(|&(name, (_, at))| (name, at % LANES, at / LANES))
                .collect(),
        }
    });
    Some(html! {
        div.maps {
            (grid.draw())
            @for squares in inside { (squares.draw()) }
        }
    })
}

/// Squares in rows and columns, some of them marked.
struct Squares {
    title: String,
    columns: u64,
    rows: u64,
    /// Squares that there are, row by row.
    used: u64,
    marks: Vec<(&'static str, u64, u64)>,
}

impl Squares {
    fn draw(&self) -> Markup {
        // How many each square stands for.
        let [across, down] = [self.columns, self.rows].map(|of| of.div_ceil(MOST));
        let [columns, rows] = [self.columns.div_ceil(across), self.rows.div_ceil(down)];
        let [width, height] = [columns * SIDE + 1, rows * SIDE + 1];
        let exists =
            |column: u64, row: u64| row * down * self.columns + column * across < self.used;
        let class = |column: u64, row: u64| {
            let here = |of: &&(&str, u64, u64)| (of.1 / across, of.2 / down) == (column, row);
            let names: Vec<&str> = { self.marks.iter() }.filter(here).map(|of| of.0).collect();
            match names[..] {
                [] => "none",
                [one] => one,
                _ => "both",
            }
        };
        let title = match across * down {
            1 => self.title.clone(),
            _ => format!("{}; a square is {across} by {down}", self.title),
        };
        html! {
            figure {
                svg role="img" aria-label=(title) width=(width) height=(height)
                    viewBox=(format!("0 0 {width} {height}"))
                {
                    @for row in 0..rows {
                        @for column in (0..columns).filter(|&column| exists(column, row)) {
                            rect x=(column * SIDE + 1) y=(row * SIDE + 1) width=(SIDE - 1) height=(SIDE - 1)
                                class=(class(column, row)) {}
                        }
                    }
                }
                figcaption { (title) }
            }
        }
    }
}
