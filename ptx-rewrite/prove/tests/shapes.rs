//! The forms that addresses have in real kernels: each proved, and each not proved when one number is off.

mod builder;

use builder::{BX, BY, BZ, Launch, TX, TY, form, within};
use prove::Argument::{Atomic, Barriers, Private, ReadOnly};
use prove::decide::{Threads, Why, decide};
use prove::problem::SymbolKind;

/// Bytes from one buffer to the next.
const BUFFER: i128 = 1 << 24;

#[test]
fn a_vector() {
    let mut launch = Launch::new([1000, 1, 1], [256, 1, 1]);
    let index = [(BX, 4 * 256), (TX, 4)];
    let guard = within(&[(BX, 256), (TX, 1)], 0, 255_900);
    launch.load(form(&index, 0), &guard, &[]);
    launch.load(form(&index, BUFFER), &guard, &[]);
    launch.store(form(&index, 2 * BUFFER), &guard, &[]);
    assert_eq!(
        launch.proved(),
        [Some(ReadOnly), Some(ReadOnly), Some(Private)]
    );
}

#[test]
fn a_vector_shifted_by_one() {
    let mut launch = Launch::new([1000, 1, 1], [256, 1, 1]);
    let index = [(BX, 4 * 256), (TX, 4)];
    launch.load(form(&index, 4), &[], &[]);
    launch.store(form(&index, 0), &[], &[]);
    launch.store(form(&index, BUFFER), &[], &[]);
    let between = launch.conflicts();
    assert_eq!(between[0].map(|conflict| conflict.0), Some(1));
    assert_eq!(between[1].map(|conflict| conflict.0), Some(0));
    assert_eq!(between[2], None);
}

#[test]
fn a_step_that_is_too_small() {
    let mut launch = Launch::new([1000, 1, 1], [256, 1, 1]);
    let store = launch.store(form(&[(BX, 4 * 255), (TX, 4)], 0), &[], &[]);
    assert_eq!(launch.conflicts(), [Some((store, Threads::OfTwoBlocks))]);
}

#[test]
fn one_word_for_all_threads() {
    let mut launch = Launch::new([1, 1, 1], [2, 1, 1]);
    let store = launch.store(form(&[], 0), &[], &[]);
    assert_eq!(launch.conflicts(), [Some((store, Threads::OfOneBlock))]);
    let mut launch = Launch::new([1, 1, 1], [1, 1, 1]);
    launch.store(form(&[], 0), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private)]);
}

#[test]
fn a_row_of_a_matrix_needs_its_guard() {
    // 64 blocks of 16 columns over 1,000 columns.
    let address = form(&[(BY, 4 * 16_000), (TY, 4000), (BX, 64), (TX, 4)], 0);
    let guard = within(&[(BX, 16), (TX, 1)], 0, 999);
    let mut launch = Launch::new([64, 64, 1], [16, 16, 1]);
    launch.store(address.clone(), &guard, &[]);
    assert_eq!(launch.proved(), [Some(Private)]);
    let mut launch = Launch::new([64, 64, 1], [16, 16, 1]);
    launch.store(address, &[], &[]);
    assert_eq!(launch.proved(), [None]);
}

#[test]
fn a_stencil_whose_blocks_overlap() {
    // x = 12 * bx + tx - 2, of which the inner 12 threads write.
    let mut launch = Launch::new([86, 86, 1], [16, 16, 1]);
    let n = 1024;
    let to = form(
        &[(BY, 48 * n), (TY, 4 * n), (BX, 48), (TX, 4)],
        i128::from(-8 * n - 8),
    );
    let mut path = within(&[(BX, 12), (TX, 1)], 2, 1025);
    path.extend(within(&[(BY, 12), (TY, 1)], 2, 1025));
    path.extend(within(&[(TX, 1)], 2, 13));
    let mut inner = path.clone();
    inner.extend(within(&[(TY, 1)], 2, 13));
    launch.store(to.clone(), &inner, &[]);
    assert_eq!(launch.proved(), [Some(Private)]);
    launch.store(to, &path, &[]);
    assert_eq!(launch.proved(), [None, None]);
}

#[test]
fn a_stencil_in_three_dimensions() {
    let (nx, ny) = (100, 60);
    let point = [
        (BX, 4 * 32),
        (TX, 4),
        (BY, 4 * 4 * nx),
        (TY, 4 * nx),
        (BZ, 4 * nx * ny),
    ];
    let mut guard = within(&[(BX, 32), (TX, 1)], 1, 98);
    guard.extend(within(&[(BY, 4), (TY, 1)], 1, 58));
    let mut launch = Launch::new([4, 15, 20], [32, 4, 1]);
    for neighbour in [0, 4, -4, 4 * nx, -4 * nx, 4 * nx * ny] {
        launch.load(form(&point, neighbour.into()), &guard, &[]);
    }
    launch.store(form(&point, BUFFER), &guard, &[]);
    let mut expected = vec![Some(ReadOnly); 6];
    expected.push(Some(Private));
    assert_eq!(launch.proved(), expected);
    // In place.
    launch.store(form(&point, 0), &guard, &[]);
    assert_eq!(launch.proved()[..2], [Some(Private), None]);
}

#[test]
fn a_transpose_by_tiles() {
    let mut launch = Launch::new([32, 32, 1], [32, 8, 1]);
    let rows = launch.symbol(SymbolKind::Counter(0), 0, 3);
    let n = 1024;
    // in[(32 * by + ty + 8 * k) * n + 32 * bx + tx], tile[ty + 8 * k][tx], tile[tx][ty + 8 * k], out[..]
    let y = |step: i64| [(BY, 32 * step), (TY, step), (rows, 8 * step)];
    let terms = |x: &[(u32, i64)], y: &[(u32, i64)]| [x, y].concat();
    launch.load(form(&terms(&[(BX, 128), (TX, 4)], &y(4 * n)), 0), &[], &[0]);
    let tile = |x: i64, y: i64| form(&[(TX, x), (TY, y), (rows, 8 * y)], 0);
    let into = launch.store_shared(tile(4, 4 * 33), &[], &[0]);
    let outof = launch.load_shared(tile(4 * 33, 4), &[], &[1]);
    let second = launch.symbol(SymbolKind::Counter(1), 0, 3);
    launch.problem.accesses[outof].alternatives[0].address =
        form(&[(TX, 4 * 33), (TY, 4), (second, 32)], 0);
    let out = [
        (BX, 4 * 32 * n),
        (BY, 128),
        (TX, 4),
        (TY, 4 * n),
        (second, 4 * 8 * n),
    ];
    launch.store(form(&out, BUFFER), &[], &[1]);
    assert_eq!(launch.proved()[1..3], [None, None]);
    launch.meet(into, outof, &[]);
    assert_eq!(
        launch.proved(),
        [
            Some(ReadOnly),
            Some(Barriers),
            Some(Barriers),
            Some(Private)
        ]
    );
}

#[test]
fn a_tile_by_quotient_and_remainder() {
    let mut launch = Launch::new([8, 1, 1], [256, 1, 1]);
    let (row, column) = launch.divided(&[(TX, 1)], 255, 16);
    launch.store_shared(form(&[(row, 4 * 17), (column, 4)], 0), &[], &[]);
    launch.store_shared(form(&[(column, 4 * 17), (row, 4)], 4096), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private), Some(Private)]);
    launch.store_shared(form(&[(column, 4 * 15), (row, 4)], 16384), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private), Some(Private), None]);
}

#[test]
fn blocks_by_parity() {
    // Even blocks write the first half of a buffer, odd ones the second.
    let mut launch = Launch::new([64, 1, 1], [32, 1, 1]);
    let (half, parity) = launch.divided(&[(BX, 1)], 63, 2);
    let address = [(half, 4 * 32), (TX, 4)];
    launch.store(form(&address, 0), &within(&[(parity, 1)], 0, 0), &[]);
    launch.store(
        form(&address, 4 * 32 * 32),
        &within(&[(parity, 1)], 1, 1),
        &[],
    );
    assert_eq!(launch.proved(), [Some(Private), Some(Private)]);
    launch.store(form(&address, 2 * BUFFER), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private), Some(Private), None]);
}

#[test]
fn a_pivot_row_is_read_only() {
    // Row `k` is read by all, rows below are written.
    let (n, k) = (512_i64, 100);
    let mut launch = Launch::new([32, 32, 1], [16, 16, 1]);
    let x = [(BX, 64), (TX, 4)];
    let y = [(BY, 4 * 16 * n), (TY, 4 * n)];
    let mut path = within(&[(BX, 16), (TX, 1)], 0, (n - 1).into());
    path.extend(within(&[(BY, 16), (TY, 1)], 0, (n - 1 - k - 1).into()));
    let below = i128::from(4 * n * (k + 1));
    launch.load(form(&x, i128::from(4 * n * k)), &path, &[]);
    launch.load(form(&[x, y].concat(), below), &path, &[]);
    launch.store(form(&[x, y].concat(), below), &path, &[]);
    assert_eq!(
        launch.proved(),
        [Some(ReadOnly), Some(Private), Some(Private)]
    );
}

#[test]
fn threads_of_one_column() {
    // if (16 * bx + tx == 37) a[16 * by + ty] = ..
    let mut launch = Launch::new([8, 8, 1], [16, 16, 1]);
    let row = [(BY, 64), (TY, 4)];
    launch.store(form(&row, 0), &within(&[(BX, 16), (TX, 1)], 37, 37), &[]);
    assert_eq!(launch.proved(), [Some(Private)]);
    launch.store(
        form(&row, BUFFER),
        &within(&[(BX, 16), (TX, 1)], 37, 38),
        &[],
    );
    assert_eq!(launch.proved(), [Some(Private), None]);
    // if (ty == 0)
    launch.store(
        form(&[(BX, 64), (TX, 4), (BY, 4096)], 2 * BUFFER),
        &within(&[(TY, 1)], 0, 0),
        &[],
    );
    assert_eq!(launch.proved()[2], Some(Private));
}

#[test]
fn diagonals_of_blocks() {
    // Blocks of 16 by 16 on an antidiagonal: block bx has its tile at column bx and row 20 - bx.
    let columns = 2049;
    let mut launch = Launch::new([21, 1, 1], [16, 1, 1]);
    let row = launch.symbol(SymbolKind::Counter(0), 0, 15);
    let tile = [(BX, 4 * (16 - 16 * columns)), (TX, 4), (row, 4 * columns)];
    let corner = i128::from(4 * (20 * 16 * columns + columns + 1));
    launch.load(form(&tile, BUFFER), &[], &[0]);
    launch.store(form(&tile, corner), &[], &[0]);
    assert_eq!(launch.proved(), [Some(ReadOnly), Some(Private)]);
}

#[test]
fn a_diagonal_of_a_tile_between_barriers() {
    // if (tx <= m) tile[m - tx + 1][tx + 1] = f(three neighbours above), one diagonal m per interval.
    let build = |meet: bool| {
        let mut launch = Launch::new([21, 1, 1], [16, 1, 1]);
        let m = launch.symbol(SymbolKind::Counter(0), 0, 15);
        let guard = [form(&[(m, 1), (TX, -1)], 0)];
        let at = |row: i64, column: i64| {
            let offset = i128::from(4 * 17 * row + 4 * column);
            form(&[(TX, 4 - 4 * 17), (m, 4 * 17)], offset)
        };
        for (row, column) in [(0, 0), (0, 1), (1, 0)] {
            launch.load_shared(at(row, column), &guard, &[0]);
        }
        launch.store_shared(at(1, 1), &guard, &[0]);
        if meet {
            for first in 0..4 {
                for second in first..4 {
                    launch.meet(first, second, &[vec![(0, 0)]]);
                }
            }
        }
        launch.proved()
    };
    assert_eq!(build(true), [Some(Barriers); 4]);
    assert!(build(false).contains(&None));
}

#[test]
fn chunks_by_a_counter() {
    // for (k = 0; k < 10; k++) a[me * 10 + k], cut off at 2,555.
    let mut launch = Launch::new([1, 1, 1], [256, 1, 1]);
    let k = launch.symbol(SymbolKind::Counter(0), 0, 9);
    let guard = [form(&[(TX, -10), (k, -1)], 2554)];
    launch.store(form(&[(TX, 40), (k, 4)], 0), &guard, &[0]);
    assert_eq!(launch.proved(), [Some(Private)]);
    launch.store(form(&[(TX, 40), (k, 4)], 4), &guard, &[0]);
    assert_eq!(launch.proved(), [None, None]);
}

#[test]
fn a_loop_over_the_grid() {
    let mut launch = Launch::new([8, 1, 1], [256, 1, 1]);
    let k = launch.symbol(SymbolKind::Counter(0), 0, 99);
    let index = [(BX, 4 * 256), (TX, 4), (k, 4 * 2048)];
    launch.load(form(&index, 0), &[], &[0]);
    launch.store(form(&index, 0), &[], &[0]);
    assert_eq!(launch.proved(), [Some(Private), Some(Private)]);
    launch.store(
        form(&[(BX, 4 * 256), (TX, 4), (k, 4 * 2047)], BUFFER),
        &[],
        &[0],
    );
    assert_eq!(launch.proved(), [Some(Private), Some(Private), None]);
}

/// `for (s = ..; s > 0; s /= 2) { if (tid < s) a[tid] += a[tid + s]; barrier; }`
fn reduction(distance: i64, condition: i128) -> Vec<Option<prove::Argument>> {
    let mut launch = Launch::new([64, 1, 1], [256, 1, 1]);
    launch.symbol(SymbolKind::Counter(0), 0, 7);
    let s = launch.symbol(SymbolKind::BlockUniform, 1, 128);
    let guard = [form(&[(s, 1), (TX, -1)], condition)];
    launch.load_shared(form(&[(TX, 4), (s, 4)], 0), &guard, &[0]);
    launch.load_shared(form(&[(TX, 4)], 0), &guard, &[0]);
    launch.store_shared(form(&[(TX, 4)], 0), &guard, &[0]);
    for first in 0..3 {
        for second in first..3 {
            launch.meet(first, second, &[vec![(0, distance)]]);
        }
    }
    launch.proved()
}

#[test]
fn a_reduction_tree() {
    assert_eq!(
        reduction(0, -1),
        [Some(Barriers), Some(Private), Some(Barriers)]
    );
    // `tid <= s`: thread s writes a[s], which thread 0 reads.
    assert_eq!(reduction(0, 0), [None, Some(Private), None]);
    // The barrier is missing somewhere, so that iterations meet in which `s` differs.
    assert_eq!(reduction(1, -1), [None, Some(Private), None]);
}

#[test]
fn triangular_loops() {
    // for (j = 0; j < i; j++) a[i * 64 + j] by the thread i, then a[i * 64 + i + ..]
    let mut launch = Launch::new([1, 1, 1], [64, 1, 1]);
    let j = launch.symbol(SymbolKind::Counter(0), 0, 63);
    let below = [form(&[(TX, 1), (j, -1)], -1)];
    launch.store(form(&[(TX, 256), (j, 4)], 0), &below, &[0]);
    // Column by column: a[j * 64 + i] for j > i, which is the other triangle.
    let above = [form(&[(TX, -1), (j, 1)], -1)];
    launch.load(form(&[(TX, 256), (j, 4)], 0), &above, &[0]);
    assert_eq!(launch.proved(), [Some(Private), Some(Private)]);
    // Row i below the diagonal against column i above it: the same element.
    launch.load(form(&[(TX, 4), (j, 256)], 0), &above, &[0]);
    assert_eq!(launch.proved(), [None, Some(Private), None]);
}

#[test]
fn lower_and_upper_triangle() {
    // Thread i reads above the diagonal by columns, a[j * 64 + i] with j < i; rows below are written.
    let mut launch = Launch::new([1, 1, 1], [64, 1, 1]);
    let j = launch.symbol(SymbolKind::Counter(0), 0, 63);
    let below = [form(&[(TX, 1), (j, -1)], -1)];
    launch.store(form(&[(TX, 256), (j, 4)], 0), &below, &[0]);
    launch.load(form(&[(TX, 4), (j, 256)], 0), &below, &[0]);
    assert_eq!(launch.proved(), [Some(Private), Some(Private)]);
}

#[test]
fn atomics_of_one_class() {
    let mut launch = Launch::new([8, 1, 1], [32, 1, 1]);
    launch.atomic(form(&[], 0), 1);
    launch.atomic(form(&[], 0), 1);
    assert_eq!(launch.proved(), [Some(Atomic), Some(Atomic)]);
    let other = launch.atomic(form(&[], 0), 2);
    assert_eq!(launch.conflicts()[0], Some((other, Threads::OfTwoBlocks)));
}

#[test]
fn shared_memory_is_of_one_block() {
    let mut launch = Launch::new([8, 1, 1], [32, 1, 1]);
    launch.store_shared(form(&[(TX, 4)], 0), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private)]);
    launch.store(form(&[(TX, 4)], 0), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private), None]);
}

#[test]
fn what_is_uniform_in_a_block_differs_between_blocks() {
    let build = |kind| {
        let mut launch = Launch::new([8, 1, 1], [32, 1, 1]);
        let offset = launch.symbol(kind, 0, 7);
        launch.store(form(&[(BX, 4 * 256), (TX, 4), (offset, 128)], 0), &[], &[]);
        launch.store_shared(form(&[(TX, 4), (offset, 2)], 0), &[], &[]);
        launch.store(
            form(&[(BX, 4 * 255), (TX, 4), (offset, 128)], BUFFER),
            &[],
            &[],
        );
        launch.proved()
    };
    assert_eq!(build(SymbolKind::GridUniform), [Some(Private); 3]);
    assert_eq!(
        build(SymbolKind::BlockUniform),
        [Some(Private), Some(Private), None]
    );
    assert_eq!(build(SymbolKind::Unknown), [Some(Private), None, None]);
}

#[test]
fn a_missing_symbol_or_address_can_be_anything() {
    let mut launch = Launch::new([1, 1, 1], [32, 1, 1]);
    launch.store(form(&[(TX, 4)], 0), &[], &[]);
    assert_eq!(launch.proved(), [Some(Private)]);
    launch.problem.symbols.pop();
    assert_eq!(launch.proved(), [None], "blocks in z");
    let mut launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let store = launch.store(form(&[(TX, 4)], 0), &[], &[]);
    launch.load(form(&[], BUFFER), &[], &[]);
    let anywhere = launch.store(form(&[], 0), &[], &[]);
    launch.problem.accesses[anywhere].alternatives.clear();
    let decision = launch.decide();
    assert_eq!(
        decision
            .accesses
            .iter()
            .filter(|result| result.is_ok())
            .count(),
        0
    );
    assert_eq!(decision.accesses[store].unwrap_err().against, anywhere);
    assert_eq!(decision.accesses[anywhere].unwrap_err().why, Why::Large);
}

#[test]
fn numbers_beyond_the_arithmetic_prove_nothing() {
    let mut launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let unknown = launch.symbol(SymbolKind::Unknown, i64::MIN, i64::MAX);
    launch.store(form(&[(TX, 4)], 0), &[], &[]);
    launch.store(form(&[(TX, i64::MAX)], 0), &[], &[]);
    launch.store(form(&[(unknown, 1 << 39)], 0), &[], &[]);
    launch.store(form(&[(TX, 4)], i128::MAX / 2), &[], &[]);
    assert_eq!(launch.proved(), [None; 4]);
}

#[test]
fn the_budget_ends_proofs_and_not_results() {
    let mut launch = Launch::new([1000, 1, 1], [256, 1, 1]);
    let index = [(BX, 4 * 256), (TX, 4)];
    launch.load(form(&index, 0), &[], &[]);
    launch.store(form(&index, BUFFER), &[], &[]);
    launch.store(form(&index, 2 * BUFFER), &[], &[]);
    let whole = launch.decide();
    assert!(whole.accesses.iter().all(Result::is_ok));
    let part = decide(&launch.problem, whole.steps / 2);
    assert_eq!(part.accesses[1], Ok(Private));
    assert_eq!(part.accesses[2].unwrap_err().why, Why::Steps);
    assert_eq!(launch.decide(), whole, "the same again");
}

#[test]
fn unrolled_tiles_are_decided_in_groups() {
    // 146 loads and 96 stores of three tiles, in intervals of their own.
    let mut launch = Launch::new([63, 1, 1], [32, 1, 1]);
    for number in 0..242_i64 {
        let tile = number % 3;
        let address = form(
            &[(TX, 4)],
            i128::from(4096 * tile + 128 * (number / 3 % 16)),
        );
        if number < 146 {
            launch.load_shared(address, &[], &[]);
        } else {
            launch.store_shared(address, &[], &[]);
        }
    }
    let decision = launch.decide();
    assert!(decision.accesses.iter().all(Result::is_ok));
    assert!(decision.steps < 2_000, "{} steps", decision.steps);
}
