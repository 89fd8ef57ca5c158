//! With many columns, points move in the affine subspace of the leading principal axes of the rows: the plane.
//!
//! ```text
//! x = c + A x′ + h,  Aᵀh = 0      k(x, c + A z′) = exp(−γ ‖h‖²) exp(−γ ‖x′ − z′‖²)
//! ```
//!
//! Under a Gaussian kernel, kernel values between rows and points in the plane are exact: the plane restricts where
//! points may be, not what is known about the rows. Points that capture much are close to means of many rows, which are
//! close to the plane. The axes are found by a random sketch with one power iteration (Halko, Martinsson & Tropp 2011),
//! because an approximation of the principal plane is sufficient.

use faer::{Mat, MatRef};

use crate::dense;
use crate::eigen::orthonormal;
use crate::points::Points;
use crate::random::{Random, Stream};

/// Number of columns from which points move in a plane.
const WIDE: usize = 512;
/// Dimension of the plane.
const AXES: usize = 256;

pub(super) struct Plane {
    centre: Vec<f64>,
    /// d × axes, orthonormal.
    axes: Mat<f64>,
}

impl Plane {
    /// Computes the plane of these rows; `None` if there are too few columns for it to pay off.
    pub(super) fn new(x: &Points, seed: u64) -> Option<Plane> {
        if x.d() < WIDE {
            return None;
        }
        let centre = x.mean();
        let rows = centred(x, &centre);
        let mut random = Random::new(seed, Stream::Plane);
        let sketch = Mat::from_fn(x.n(), AXES.min(x.n()), |_, _| random.normal());
        let first = orthonormal(dense::product(rows.transpose(), sketch.as_ref()), None);
        let along = dense::product(rows.as_ref(), first.as_ref());
        let axes = orthonormal(dense::product(rows.transpose(), along.as_ref()), None);
        (axes.ncols() > 0).then_some(Plane { centre, axes })
    }

    /// Returns coordinates in the plane, and squared distances from it.
    pub(super) fn inside(&self, x: &Points) -> (Points<'static>, Vec<f64>) {
        let rows = centred(x, &self.centre);
        let inside = dense::product(rows.as_ref(), self.axes.as_ref());
        let height = |i: usize| (rows.row(i).squared_norm_l2() - inside.row(i).squared_norm_l2()).max(0.0);
        let heights = (0..x.n()).map(height).collect();
        let values: Vec<f64> = (0..x.n()).flat_map(|i| inside.row(i).iter().copied()).collect();
        (Points::new(self.axes.ncols(), values).expect("products of finite values of one scale"), heights)
    }

    /// Returns the points with these coordinates.
    pub(super) fn outside(&self, z: &Points) -> Points<'static> {
        let along = MatRef::from_row_major_slice(z.values(), z.n(), z.d());
        let rows = dense::product(along, self.axes.transpose());
        let of = |i: usize| rows.row(i).iter().zip(&self.centre).map(|(v, c)| v + c);
        let values: Vec<f64> = (0..z.n()).flat_map(of).collect();
        Points::new(self.centre.len(), values).expect("points near finite rows")
    }
}

fn centred(x: &Points, centre: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.n(), x.d(), |i, k| x.row(i)[k] - centre[k])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys;

    /// Rows of rank 6 plus a little noise, in 600 columns of which the second is constant.
    fn wide() -> Points<'static> {
        let (low, map, noise) = (toys::normal(90, 6, 0), toys::normal(6, 600, 1), toys::normal(90, 600, 2));
        let value = |i: usize, k: usize| match k {
            1 => 0.1,
            _ => (0..6).map(|r| low.row(i)[r] * map.row(r)[k]).sum::<f64>() + 1e-3 * noise.row(i)[k],
        };
        Points::new(600, (0..90).flat_map(|i| (0..600).map(move |k| value(i, k))).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn distances_to_points_in_the_plane_are_those_of_the_rows() {
        let x = wide();
        assert!(Plane::new(&toys::normal(50, 511, 0), 0).is_none());
        let plane = Plane::new(&x, 0).unwrap();
        let (inside, heights) = plane.inside(&x.slice(0..20));
        let z = inside.select(&[3, 7]);
        let lifted = plane.outside(&z);
        let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        for (i, height) in heights.iter().enumerate() {
            for j in 0..2 {
                let (far, near) = (squared(x.row(i), lifted.row(j)), squared(inside.row(i), z.row(j)) + height);
                assert!((far - near).abs() < 1e-9 * far.max(1.0), "{i} {j}: {far} {near}");
            }
            assert!(*height < 1e-2, "only the noise is left: {height}");
        }
        assert!(lifted.rows().all(|row| row[1] == 0.1), "a constant column keeps its value");
    }
}
