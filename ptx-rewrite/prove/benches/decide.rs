//! What a decision costs, for the forms of typical kernels.

#[path = "../tests/shapes/builder.rs"]
#[allow(dead_code, reason = "shared with tests")]
mod builder;

use builder::{BX, BY, BZ, Launch, TX, TY, form, within};
use divan::{Bencher, black_box};
use prove::decide::decide;
use prove::problem::SymbolKind;

const BUFFER: i128 = 1 << 24;

fn main() {
    divan::main();
}

fn measure(bencher: Bencher, launch: &Launch) {
    let whole = launch.decide().accesses.iter().all(Result::is_ok);
    assert!(whole, "{:?}", launch.decide());
    bencher.bench(|| decide(black_box(&launch.problem), 1 << 20));
}

/// c[i] = a[i] + b[i] below n.
#[divan::bench]
fn vector(bencher: Bencher) {
    let mut launch = Launch::new([1000, 1, 1], [256, 1, 1]);
    let index = [(BX, 4 * 256), (TX, 4)];
    let guard = within(&[(BX, 256), (TX, 1)], 0, 255_900);
    launch.load(form(&index, 0), &guard, &[]);
    launch.load(form(&index, BUFFER), &guard, &[]);
    launch.store(form(&index, 2 * BUFFER), &guard, &[]);
    measure(bencher, &launch);
}

/// Seven points in three dimensions.
#[divan::bench]
fn stencil_3d(bencher: Bencher) {
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
    for neighbour in [0, 4, -4, 4 * nx, -4 * nx, 4 * nx * ny, -4 * nx * ny] {
        launch.load(form(&point, neighbour.into()), &guard, &[]);
    }
    launch.store(form(&point, BUFFER), &guard, &[]);
    measure(bencher, &launch);
}

/// Overlapping tiles in shared memory, two of them, barriers between the steps (hotspot).
#[divan::bench]
fn stencil_in_tiles(bencher: Bencher) {
    let mut launch = Launch::new([86, 86, 1], [16, 16, 1]);
    let steps = launch.symbol(SymbolKind::Counter(0), 0, 1);
    let n = 1024;
    let to = [(BY, 48 * n), (TY, 4 * n), (BX, 48), (TX, 4)];
    let corner = i128::from(-8 * n - 8);
    let mut path = within(&[(BX, 12), (TX, 1)], 2, 1025);
    path.extend(within(&[(BY, 12), (TY, 1)], 2, 1025));
    let mut inner = path.clone();
    inner.extend(within(&[(TX, 1)], 2, 13));
    inner.extend(within(&[(TY, 1)], 2, 13));
    let mut step = path.clone();
    step.push(form(&[(TX, 1), (steps, -1)], -1));
    step.push(form(&[(TX, -1), (steps, -1)], 14));
    step.push(form(&[(TY, 1), (steps, -1)], -1));
    step.push(form(&[(TY, -1), (steps, -1)], 14));
    launch.load(form(&to, corner + BUFFER), &path, &[]);
    launch.load(form(&to, corner + 2 * BUFFER), &path, &[]);
    launch.store(form(&to, corner), &inner, &[]);
    let tile = |offset: i64| form(&[(TY, 64), (TX, 4)], offset.into());
    let before = launch.store_shared(tile(0), &path, &[]);
    launch.store_shared(tile(1024), &path, &[]);
    let mut reads = Vec::new();
    for offset in [0, 64, -64, 4, -4, 1024] {
        reads.push(launch.load_shared(tile(offset), &step, &[0]));
    }
    let next = launch.store_shared(tile(2048), &step, &[0]);
    let copy_from = launch.load_shared(tile(2048), &step, &[0]);
    let copy_to = launch.store_shared(tile(0), &step, &[0]);
    for &read in &reads {
        launch.meet(before, read, &[]);
        launch.meet(4, read, &[]);
        launch.meet(read, next, &[]);
        launch.meet(read, copy_to, &[]);
    }
    launch.meet(before, copy_to, &[]);
    launch.meet(next, copy_from, &[vec![(0, 0)]]);
    launch.meet(next, next, &[vec![(0, 0)]]);
    launch.meet(copy_to, copy_to, &[vec![(0, 0)]]);
    measure(bencher, &launch);
}

/// A product by tiles, the inner loop unrolled 16 times.
#[divan::bench]
fn product_in_tiles(bencher: Bencher) {
    let n = 1024;
    let mut launch = Launch::new([64, 64, 1], [16, 16, 1]);
    let k = launch.symbol(SymbolKind::Counter(0), 0, 63);
    launch.load(
        form(&[(BY, 64 * n), (TY, 4 * n), (k, 64), (TX, 4)], 0),
        &[],
        &[0],
    );
    launch.load(
        form(&[(k, 64 * n), (TY, 4 * n), (BX, 64), (TX, 4)], BUFFER),
        &[],
        &[0],
    );
    let a = launch.store_shared(form(&[(TY, 64), (TX, 4)], 0), &[], &[0]);
    let b = launch.store_shared(form(&[(TY, 64), (TX, 4)], 1024), &[], &[0]);
    let mut reads = Vec::new();
    for j in 0..16 {
        reads.push(launch.load_shared(form(&[(TY, 64)], 4 * j), &[], &[0]));
        reads.push(launch.load_shared(form(&[(TX, 4)], 1024 + 64 * j), &[], &[0]));
    }
    launch.store(
        form(&[(BY, 64 * n), (TY, 4 * n), (BX, 64), (TX, 4)], 2 * BUFFER),
        &[],
        &[],
    );
    for store in [a, b] {
        launch.meet(store, store, &[vec![(0, 0)]]);
        for &read in &reads {
            launch.meet(store, read, &[]);
        }
    }
    measure(bencher, &launch);
}

/// An antidiagonal of a tile per interval (needleman-wunsch).
#[divan::bench]
fn diagonals(bencher: Bencher) {
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
    for first in 0..4 {
        for second in first..4 {
            launch.meet(first, second, &[vec![(0, 0)]]);
        }
    }
    let columns = 2049;
    let tile = [(BX, 4 * (16 - 16 * columns)), (TX, 4)];
    let corner = i128::from(4 * (20 * 16 * columns + columns + 1));
    for row in 0..16 {
        let row = i128::from(4 * columns * row);
        launch.load(form(&tile, BUFFER + row), &[], &[]);
        launch.store(form(&tile, corner + row), &[], &[]);
    }
    measure(bencher, &launch);
}

/// `if (tid < s) a[tid] += a[tid + s]`, which takes elimination.
#[divan::bench]
fn reduction(bencher: Bencher) {
    let mut launch = Launch::new([64, 1, 1], [256, 1, 1]);
    launch.symbol(SymbolKind::Counter(0), 0, 7);
    let s = launch.symbol(SymbolKind::BlockUniform, 1, 128);
    let guard = [form(&[(s, 1), (TX, -1)], -1)];
    launch.load_shared(form(&[(TX, 4), (s, 4)], 0), &guard, &[0]);
    launch.load_shared(form(&[(TX, 4)], 0), &guard, &[0]);
    launch.store_shared(form(&[(TX, 4)], 0), &guard, &[0]);
    for first in 0..3 {
        for second in first..3 {
            launch.meet(first, second, &[vec![(0, 0)]]);
        }
    }
    measure(bencher, &launch);
}
