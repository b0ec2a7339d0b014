//! Operations of all lanes of a warp on matrices.
//!
//! Who of the warp reads and writes what in memory the ISA leaves open for `wmma`; here every lane
//! accesses the elements it holds. The rows of `ldmatrix` and `stmatrix` are accessed by the lanes
//! that give their addresses.

use events::{AccessKind, Bytes};
use ptx::ast::Space;

use super::address::{each_aligned, lanes, scattered_sectors};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::lanes::{Lanes, WARP};
use crate::matrix::{Layout, Matrix, MatrixKind, Part};

impl<O: Listener + ?Sized> Machine<'_, O> {
    pub(crate) fn matrix(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        matrix: &Matrix,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let read = |rows: &[u32]| -> Vec<Lanes> {
            let row = |&row: &u32| warp.read(&split.frame, row, consts);
            rows.iter().map(row).collect()
        };
        let a = read(&matrix.a);
        let d = match &matrix.kind {
            MatrixKind::Multiply(multiply) => {
                let (b, c) = (read(&matrix.b), read(&matrix.c));
                multiply.compute(&a, &b, &c, exec)
            }
            MatrixKind::Transpose => {
                let words = std::array::from_fn(|lane| a[0][lane] as u32);
                vec![transpose(&words).map(u64::from)]
            }
            MatrixKind::Rows { .. } => self.rows(cta, warp, split, matrix, &a, exec)?,
            MatrixKind::Fragment { .. } => self.fragment(cta, warp, split, matrix, &a, exec)?,
        };
        let mut rows = warp.rows(&split.frame, &self.setup.program.consts);
        // A fragment with room for more holds its elements again.
        for (&row, value) in matrix.d.iter().zip(d.iter().cycle()) {
            rows.put(row, exec, value);
        }
        Ok(())
    }

    /// `ldmatrix` and `stmatrix`.
    fn rows(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        matrix: &Matrix,
        stored: &[Lanes],
        exec: u32,
    ) -> Result<Vec<Lanes>, Box<Fault>> {
        let (Some(address), MatrixKind::Rows { transposed }) = (&matrix.address, &matrix.kind)
        else {
            return Ok(Vec::new());
        };
        let transposed = *transposed;
        let count = stored.len().max(matrix.d.len());
        let mask = exec & (u32::MAX >> (32 - 8 * count));
        let store = !stored.is_empty();
        let mut words = vec![[0u32; WARP]; count];
        for (words, value) in words.iter_mut().zip(stored) {
            *words = std::array::from_fn(|lane| value[lane] as u32);
            if transposed {
                *words = transpose(words);
            }
        }
        let mut at = [0; WARP];
        let (first, others) = self.addresses(warp, split, address, 16, mask, &mut at);
        for group in std::iter::once(&first).chain(&others) {
            each_aligned(&at, group.mask, 16)?;
            let threads = self.executing(cta, warp.index, split.pc, group.mask);
            self.observer
                .access(threads, kind(store), group.space, &at, 16);
            for lane in lanes(group.mask) {
                let spot = self.spot(cta, warp, lane, group.bytes(lane, &at, 16), store)?;
                for part in 0..4 {
                    // The word of this row that lane `4 * (lane % 8) + part` holds.
                    let word = &mut words[lane / 8][4 * (lane % 8) + part];
                    let (spot, step) = (spot.plus(4 * part as u64), 4 * part as u64);
                    if store {
                        let new = u64::from(*word);
                        let word = Bytes {
                            space: group.space,
                            address: at[lane] + step,
                            count: 4,
                        };
                        self.changes(threads, warp, lane, word, spot, new);
                        self.poke(warp, spot, 4, new);
                    } else {
                        *word = self.peek(warp, spot, 4) as u32;
                    }
                }
            }
            self.accessed(cta, group.space);
        }
        if store {
            return Ok(Vec::new());
        }
        let result = words.iter().map(|words| {
            let words = if transposed { transpose(words) } else { *words };
            words.map(u64::from)
        });
        Ok(result.collect())
    }

    /// `wmma.load` and `wmma.store`.
    fn fragment(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        matrix: &Matrix,
        stored: &[Lanes],
        exec: u32,
    ) -> Result<Vec<Lanes>, Box<Fault>> {
        let (Some(address), MatrixKind::Fragment { layout, by_columns }) =
            (&matrix.address, &matrix.kind)
        else {
            return Ok(Vec::new());
        };
        let consts = &self.setup.program.consts;
        let stride = matrix.stride;
        let walk = Walk {
            layout: *layout,
            by_columns: *by_columns,
            stride: stride.map_or([0; WARP], |row| warp.read(&split.frame, row, consts)),
        };
        let mut base = [0; WARP];
        let (group, others) = self.addresses(warp, split, address, 4, exec, &mut base);
        if !others.is_empty() {
            let kind = FaultKind::Unsupported("a matrix in several state spaces".to_owned());
            return Err(Fault::new(exec.trailing_zeros(), kind));
        }
        let store = !stored.is_empty();
        let (pieces, bytes) = walk.pieces();
        let mut out = vec![[0; WARP]; walk.layout.registers()];
        for piece in 0..out.len() * pieces {
            let (register, shift) = (piece / pieces, 8 * bytes * (piece % pieces) as u32);
            let at = walk.addresses(&base, piece);
            let (space, mask) = (group.space, group.mask);
            each_aligned(&at, mask, bytes)?;
            let threads = self.executing(cta, warp.index, split.pc, mask);
            self.observer
                .access(threads, kind(store), space, &at, bytes);
            if space == Space::Global {
                self.stats.global_sectors += scattered_sectors(&at, mask, bytes);
            }
            for lane in lanes(mask) {
                let element = group.bytes(lane, &at, bytes);
                let spot = self.spot(cta, warp, lane, element, store)?;
                if store {
                    let new = stored[register][lane] >> shift & (u64::MAX >> (64 - 8 * bytes));
                    self.changes(threads, warp, lane, element, spot, new);
                    self.poke(warp, spot, bytes, new);
                } else {
                    out[register][lane] |= self.peek(warp, spot, bytes) << shift;
                }
            }
            self.accessed(cta, space);
        }
        Ok(if store { Vec::new() } else { out })
    }
}

fn kind(store: bool) -> AccessKind {
    if store {
        AccessKind::Store
    } else {
        AccessKind::Load
    }
}

/// How a fragment's elements are found in memory.
struct Walk {
    layout: Layout,
    by_columns: bool,
    /// Elements from one row (or column) to the next, by lane.
    stride: Lanes,
}

impl Walk {
    /// Accesses per register, and the bytes of each: one where the elements lie side by side.
    fn pieces(&self) -> (usize, u32) {
        let packed = self.layout.element.per_register();
        let along = match self.layout.part {
            Part::A | Part::C => !self.by_columns,
            Part::B => self.by_columns,
        };
        let bits = self.layout.element.bits();
        if along {
            (1, bits * packed as u32 / 8)
        } else {
            (packed, bits / 8)
        }
    }

    /// Where the lanes find a piece.
    fn addresses(&self, base: &Lanes, piece: usize) -> Lanes {
        let (pieces, _) = self.pieces();
        let index = piece * self.layout.element.per_register() / pieces;
        std::array::from_fn(|lane| {
            let (row, column) = self.layout.place(lane, index);
            let (line, inside) = if self.by_columns {
                (column, row)
            } else {
                (row, column)
            };
            let stride = self.stride[lane] & 0xffff_ffff;
            let element = (line as u64).wrapping_mul(stride) + inside as u64;
            base[lane].wrapping_add(element * u64::from(self.layout.element.bits()) / 8)
        })
    }
}

/// Turns 8 by 8 elements of 16 bits, two of a row in each lane, into their transpose.
fn transpose(words: &[u32; WARP]) -> [u32; WARP] {
    let element =
        |row: usize, column: usize| words[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        element(column, row) | element(column + 1, row) << 16
    })
}
