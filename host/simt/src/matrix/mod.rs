//! Matrices that the lanes of a warp hold together: what lies where, and their products.
//!
//! Source: PTX ISA 9.0, "Warp Level Matrix Multiply-Accumulate Instructions", the figures of the
//! fragments. Departure: the ISA leaves the fragments of `wmma` open; here they are those of `mma`,
//! tile beside tile, as on sm_75 and later devices as far as that is known. A fragment with
//! room for more elements than its share (`f16`) holds them several times.

mod multiply;

use crate::code::Address;
use crate::values::soft::Round;

/// Types of elements.
#[allow(missing_docs, reason = "each is the PTX type of the same name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    B1,
    S4,
    U4,
    S8,
    U8,
    E4m3,
    E5m2,
    F16,
    Bf16,
    Tf32,
    F32,
    S32,
    F64,
}

impl Element {
    /// The element type that a suffix without its dot names.
    pub(crate) fn from_suffix(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "b1" => Self::B1,
            "s4" => Self::S4,
            "u4" => Self::U4,
            "s8" => Self::S8,
            "u8" => Self::U8,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "s32" => Self::S32,
            "f64" => Self::F64,
            _ => return None,
        })
    }

    /// Bits of an element, in a register and in memory.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::B1 => 1,
            Self::S4 | Self::U4 => 4,
            Self::S8 | Self::U8 | Self::E4m3 | Self::E5m2 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }

    /// Elements in a register.
    pub(crate) fn per_register(self) -> usize {
        (32 / self.bits()).max(1) as usize
    }
}

/// Rows and columns of the product, and the length of what is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Shape {
    /// The shape of a suffix such as `m16n8k16`.
    pub(crate) fn from_suffix(suffix: &str) -> Option<Self> {
        let (m, rest) = suffix.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        let number = |text: &str| text.parse().ok().filter(|n| (1..=256).contains(n));
        Some(Self {
            m: number(m)?,
            n: number(n)?,
            k: number(k)?,
        })
    }
}

/// Which matrix of `d = a * b + c`; `d` lies as `c` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    C,
}

/// Where the elements of one matrix lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) part: Part,
    pub(crate) shape: Shape,
    pub(crate) element: Element,
    /// For the four products of `m8n8k4` with `f16`, each of a quarter of the warp: whether the
    /// matrix is by columns.
    pub(crate) quarters: Option<bool>,
}

impl Layout {
    /// Rows and columns of the matrix.
    pub(crate) fn size(self) -> (usize, usize) {
        let Shape { m, n, k } = self.shape;
        match self.part {
            Part::A => (m, k),
            Part::B => (k, n),
            Part::C => (m, n),
        }
    }

    /// Elements that a lane holds, each once.
    pub(crate) fn count(self) -> usize {
        let (rows, columns) = self.size();
        match self.quarters {
            Some(_) => rows * columns / 8,
            None => rows * columns / 32,
        }
    }

    /// Registers that a lane holds them in.
    pub(crate) fn registers(self) -> usize {
        self.count() / self.element.per_register()
    }

    /// Row and column of an element of a lane.
    pub(crate) fn place(self, lane: usize, index: usize) -> (usize, usize) {
        if let Some(by_columns) = self.quarters {
            return self.quarter(lane, index, by_columns);
        }
        let (group, thread) = (lane / 4, lane % 4);
        let Shape { m, n, k } = self.shape;
        // Tiles have 8 or 16 rows, and 8 columns.
        let halves = (m / 8).min(2);
        let packed = self.element.per_register();
        let (register, inside) = (index / packed, index % packed);
        // Along the product's sum four lanes stand beside each other, with a register each.
        let steps = (k / (4 * packed)).max(1);
        match self.part {
            Part::A => {
                let (tile, register) = (register / (halves * steps), register % (halves * steps));
                let row = 8 * halves * tile + group + 8 * (register % halves);
                (
                    row,
                    4 * packed * (register / halves) + packed * thread + inside,
                )
            }
            Part::B => {
                let (tile, register) = (register / steps, register % steps);
                let row = 4 * packed * register + packed * thread + inside;
                (row, 8 * tile + group)
            }
            Part::C => {
                let (tile, index) = (index / (2 * halves), index % (2 * halves));
                let (down, across) = (tile / (n / 8), tile % (n / 8));
                let row = 8 * halves * down + group + 8 * (index / 2);
                (row, 8 * across + 2 * thread + index % 2)
            }
        }
    }

    fn quarter(self, lane: usize, index: usize, by_columns: bool) -> (usize, usize) {
        let (own, upper) = (lane % 4, 4 * (lane / 16));
        match (self.part, by_columns) {
            (Part::A, false) => (own + upper, index),
            (Part::A, true) => (index + upper, own),
            (Part::B, false) => (own, index + upper),
            (Part::B, true) => (index, own + upper),
            (Part::C, _) if self.element == Element::F16 => (own + upper, index),
            (Part::C, _) => (
                (lane & 1) + (index & 2) + upper,
                (index & 4) + (lane & 2) + (index & 1),
            ),
        }
    }

    /// Which of the products a lane works on.
    pub(crate) fn product(self, lane: usize) -> usize {
        match self.quarters {
            Some(_) => lane % 16 / 4,
            None => 0,
        }
    }
}

/// What is done with every pair of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    Xor,
    And,
}

/// A product `d = a * b + c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiply {
    pub(crate) a: Layout,
    pub(crate) b: Layout,
    pub(crate) c: Layout,
    pub(crate) d: Layout,
    /// Integers are kept at the ends of their range instead of wrapping.
    pub(crate) saturate: bool,
    pub(crate) bits: Bits,
    /// For double precision.
    pub(crate) round: Round,
}

/// What is done with matrices.
#[derive(Clone, Debug)]
pub(crate) enum MatrixKind {
    Multiply(Box<Multiply>),
    /// `ldmatrix`, `stmatrix`: 8 by 8 elements of 16 bits, a row at the address of each of eight lanes.
    Rows {
        transposed: bool,
    },
    /// `movmatrix`
    Transpose,
    /// `wmma.load`, `wmma.store`
    Fragment {
        layout: Layout,
        by_columns: bool,
    },
}

/// An operation of the lanes of a warp on matrices.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) kind: MatrixKind,
    /// Written rows.
    pub(crate) d: Vec<u32>,
    /// Read rows: of `a`, of `b`, of `c`; what is stored or moved stands in `a`.
    pub(crate) a: Vec<u32>,
    pub(crate) b: Vec<u32>,
    pub(crate) c: Vec<u32>,
    pub(crate) address: Option<Address>,
    /// Row with the distance of rows (or columns) in memory, in elements.
    pub(crate) stride: Option<u32>,
}

impl Matrix {
    /// Shows `f` every register row, and whether it is written.
    pub(crate) fn visit(&mut self, f: &mut dyn FnMut(&mut u32, bool)) {
        if let Some(address) = &mut self.address {
            f(&mut address.base, false);
        }
        let sources = [&mut self.a, &mut self.b, &mut self.c];
        for row in sources.into_iter().flatten().chain(&mut self.stride) {
            f(row, false);
        }
        self.d.iter_mut().for_each(|row| f(row, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(part: Part, shape: &str, element: Element) -> Layout {
        Layout {
            part,
            shape: Shape::from_suffix(shape).unwrap(),
            element,
            quarters: None,
        }
    }

    #[test]
    fn every_element_lies_in_one_place() {
        use Element::{B1, F16, F32, F64, S4, S8, S32, Tf32};
        let mut layouts = Vec::new();
        for (shape, input, output) in [
            ("m16n8k8", F16, F32),
            ("m16n8k16", F16, F16),
            ("m16n8k4", Tf32, F32),
            ("m16n8k8", Tf32, F32),
            ("m8n8k4", F64, F64),
            ("m16n8k16", F64, F64),
            ("m16n8k32", S8, S32),
            ("m8n8k16", S8, S32),
            ("m16n8k64", S4, S32),
            ("m16n8k256", B1, S32),
            ("m8n8k128", B1, S32),
            ("m16n16k16", F16, F32),
            ("m32n8k16", F16, F16),
            ("m8n32k16", S8, S32),
            ("m16n16k8", Tf32, F32),
        ] {
            layouts.push(layout(Part::A, shape, input));
            layouts.push(layout(Part::B, shape, input));
            layouts.push(layout(Part::C, shape, output));
        }
        for layout in layouts {
            let (rows, columns) = layout.size();
            let mut seen = vec![false; rows * columns];
            for lane in 0..32 {
                for index in 0..layout.count() {
                    let (row, column) = layout.place(lane, index);
                    assert!(row < rows && column < columns, "{layout:?}");
                    let seen = &mut seen[row * columns + column];
                    assert!(!*seen, "{layout:?} has {row}, {column} twice");
                    *seen = true;
                }
            }
            assert!(seen.iter().all(|&seen| seen), "{layout:?}");
        }
    }

    #[test]
    fn quarters_hold_every_element_once() {
        for (part, element, by_columns) in [
            (Part::A, Element::F16, false),
            (Part::A, Element::F16, true),
            (Part::B, Element::F16, false),
            (Part::B, Element::F16, true),
            (Part::C, Element::F16, false),
            (Part::C, Element::F32, false),
        ] {
            let layout = Layout {
                quarters: Some(by_columns),
                ..layout(part, "m8n8k4", element)
            };
            let (rows, columns) = layout.size();
            let mut seen = vec![0; 4 * rows * columns];
            for lane in 0..32 {
                for index in 0..layout.count() {
                    let (row, column) = layout.place(lane, index);
                    seen[(layout.product(lane) * rows + row) * columns + column] += 1;
                }
            }
            assert!(seen.iter().all(|&seen| seen == 1), "{layout:?} {seen:?}");
        }
    }

    #[test]
    fn places_of_the_figures() {
        // PTX ISA, mma.m16n8k16: a6 of lane 5 lies in row 1 + 8, column 2 * 1 + 8.
        let a = layout(Part::A, "m16n8k16", Element::F16);
        assert_eq!(a.place(5, 6), (9, 10));
        let b = layout(Part::B, "m16n8k16", Element::F16);
        assert_eq!(b.place(5, 3), (11, 1));
        let c = layout(Part::C, "m16n8k16", Element::F32);
        assert_eq!(c.place(5, 3), (9, 3));
        // mma.m16n8k32 of bytes: a13 of lane 31.
        let a = layout(Part::A, "m16n8k32", Element::S8);
        assert_eq!(a.place(31, 13), (15, 29));
    }
}
