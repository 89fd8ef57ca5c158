//! Transposes row-major rows to lanes, and back.
//!
//! ```text
//! pack      x[k][i] = ((row_i[k] − first_k) / scale_k − second_k) · factor_k,   Σ_k x², max_k |x|
//! unpack    row_i[c] = sums[c][i]
//! ```
//!
//! Both transpose square blocks in registers. Lanes beyond the last row repeat it.

use super::{PackRows, PackedRows, Vector};

/// Number of lanes of the widest vector.
const WIDEST: usize = 16;

/// Transposes a square block. Each round interleaves the rows that are half a block apart.
#[inline(always)]
unsafe fn transposed<V: Vector, const L: usize>(mut square: [V; L]) -> [V; L] {
    for _ in 0..L.trailing_zeros() {
        let mut next = square;
        for i in 0..L / 2 {
            // SAFETY: the caller has the instruction set enabled.
            (next[2 * i], next[2 * i + 1]) = unsafe { square[i].interleave(square[i + L / 2]) };
        }
        square = next;
    }
    square
}

/// Loads the vector at `at`, padded with zeros beyond the end of `values`.
#[inline(always)]
unsafe fn load<V: Vector>(values: &[V::E], at: usize) -> V {
    // SAFETY: the caller has the instruction set enabled; all lanes are inside.
    unsafe {
        if at + V::LANES <= values.len() {
            return V::load(values.as_ptr().add(at));
        }
        let mut part = [V::E::default(); WIDEST];
        part[..values.len() - at].copy_from_slice(&values[at..]);
        V::load(part.as_ptr())
    }
}

/// Packs `rows.values` into panels of `rows.stride` lanes.
#[inline(always)]
pub(super) unsafe fn pack<V: Vector, const L: usize, const SCALED: bool>(
    rows: &PackRows<V::E>,
    out: &mut PackedRows<V::E>,
) {
    let (d, stride) = (rows.placement.factor.len(), rows.stride);
    let n = rows.values.len() / d;
    for start in (0..n.next_multiple_of(stride)).step_by(L) {
        // SAFETY: `Tiles::pack` checked that there is room for whole panels and a placement for every column.
        unsafe {
            let to = out.x.as_mut_ptr().add(start / stride * stride * d + start % stride);
            let zero = V::splat(V::E::default());
            let (mut squares, mut largest) = (zero, zero);
            for first in (0..d).step_by(L) {
                let at = |i: usize| (start + i).min(n - 1) * d + first;
                let mut square = [zero; L];
                for (i, row) in square.iter_mut().enumerate() {
                    *row = load(rows.values, at(i));
                }
                // Summed block by block, which reduces the rounding error if there are many columns.
                let mut sum = zero;
                for (k, column) in transposed::<V, L>(square).into_iter().enumerate() {
                    if first + k == d {
                        break;
                    }
                    let x = placed::<V, SCALED>(rows, first + k, column);
                    sum = x.fma(x, sum);
                    largest = largest.max_size(x);
                    x.store(to.add((first + k) * stride));
                }
                squares = squares.add(sum);
            }
            squares.store(out.squares.as_mut_ptr().add(start));
            largest.store(out.largest.as_mut_ptr().add(start));
        }
    }
}

/// The coordinates of column k.
#[inline(always)]
unsafe fn placed<V: Vector, const SCALED: bool>(rows: &PackRows<V::E>, k: usize, column: V) -> V {
    let placement = rows.placement;
    // SAFETY: as above; a placement with scales has one for every column.
    unsafe {
        let mut x = column.sub(V::splat(*placement.first.get_unchecked(k)));
        if SCALED {
            x = x.div(V::splat(*placement.scale.get_unchecked(k)));
        }
        x.sub(V::splat(*placement.second.get_unchecked(k))).mul(V::splat(*placement.factor.get_unchecked(k)))
    }
}

/// Unpacks `sums[panel][c][i]` into rows of `columns` numbers; returns whether all are finite.
#[inline(always)]
pub(super) unsafe fn unpack<V: Vector, const L: usize>(
    columns: usize,
    stride: usize,
    sums: &[V::E],
    out: &mut [V::E],
) -> bool {
    // SAFETY: `Tiles::unpack` checked that there are sums for whole panels; all stores are inside `out`.
    unsafe {
        let zero = V::splat(V::E::default());
        let mut unsound = zero;
        for start in (0..out.len() / columns).step_by(L) {
            let from = sums.as_ptr().add(start / stride * stride * columns + start % stride);
            for first in (0..columns).step_by(L) {
                // The last block overlaps the one before it, if there are enough columns.
                let first = first.min(columns.saturating_sub(L));
                let mut square = [zero; L];
                for (c, sums) in square.iter_mut().enumerate().take(columns - first) {
                    *sums = V::load(from.add((first + c) * stride));
                    // The difference is NaN for infinite and NaN values, otherwise zero.
                    unsound = unsound.add(sums.sub(*sums));
                }
                for (i, row) in transposed::<V, L>(square).into_iter().enumerate() {
                    let at = (start + i) * columns + first;
                    if at + L <= out.len() {
                        // With few columns this overwrites the next rows, which are stored afterwards.
                        row.store(out.as_mut_ptr().add(at));
                    } else if at < out.len() {
                        let mut part = [V::E::default(); WIDEST];
                        row.store(part.as_mut_ptr());
                        let rest = &mut out[at..];
                        rest.copy_from_slice(&part[..rest.len()]);
                    }
                }
            }
        }
        let mut lanes = [V::E::default(); WIDEST];
        unsound.store(lanes.as_mut_ptr());
        lanes == [V::E::default(); WIDEST]
    }
}
