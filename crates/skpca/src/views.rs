//! Conversion of matrices of other crates to rows, in 64 or 32 bits: `faer`, and with the feature `ndarray` that crate.

use faer::MatRef;

use crate::error::{Error, Result};
use crate::points::Points;

/// Copies a matrix, row after row.
fn copied<T: Copy + Into<f64>>(n: usize, d: usize, at: impl Fn(usize, usize) -> T) -> Result<Points<'static>> {
    let values: Vec<f64> = (0..n).flat_map(|i| (0..d).map(move |k| (i, k))).map(|(i, k)| at(i, k).into()).collect();
    Points::new(d, values)
}

/// ```
/// let rows = faer::mat![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
/// let points = skpca::Points::try_from(rows.as_ref())?;
/// assert_eq!((points.n(), points.row(1)), (3, &[2.0, 3.0][..]));
/// # Ok::<(), skpca::Error>(())
/// ```
impl TryFrom<MatRef<'_, f64>> for Points<'static> {
    type Error = Error;

    fn try_from(rows: MatRef<'_, f64>) -> Result<Points<'static>> {
        copied(rows.nrows(), rows.ncols(), |i, k| rows[(i, k)])
    }
}

impl TryFrom<MatRef<'_, f32>> for Points<'static> {
    type Error = Error;

    fn try_from(rows: MatRef<'_, f32>) -> Result<Points<'static>> {
        copied(rows.nrows(), rows.ncols(), |i, k| rows[(i, k)])
    }
}

#[cfg(feature = "ndarray")]
mod of_ndarray {
    use ndarray::ArrayView2;

    use super::copied;
    use crate::error::{Error, Result};
    use crate::points::{Points, UncheckedRows};

    /// Borrows the array if its rows are contiguous, and copies it otherwise.
    ///
    /// ```
    /// let rows = ndarray::array![[0.0, 1.0], [2.0, 3.0]];
    /// let points = skpca::Points::try_from(rows.view())?;
    /// assert_eq!(points.row(1), [2.0, 3.0]);
    /// # Ok::<(), skpca::Error>(())
    /// ```
    impl<'a> TryFrom<ArrayView2<'a, f64>> for Points<'a> {
        type Error = Error;

        fn try_from(rows: ArrayView2<'a, f64>) -> Result<Points<'a>> {
            match rows.to_slice() {
                Some(values) => Points::new(rows.ncols(), values),
                None => copied(rows.nrows(), rows.ncols(), |i, k| rows[(i, k)]),
            }
        }
    }

    impl TryFrom<ArrayView2<'_, f32>> for Points<'static> {
        type Error = Error;

        fn try_from(rows: ArrayView2<'_, f32>) -> Result<Points<'static>> {
            copied(rows.nrows(), rows.ncols(), |i, k| rows[(i, k)])
        }
    }

    /// Borrows rows in 32 bits, which must be contiguous.
    impl<'a> TryFrom<ArrayView2<'a, f32>> for UncheckedRows<'a> {
        type Error = Error;

        fn try_from(rows: ArrayView2<'a, f32>) -> Result<UncheckedRows<'a>> {
            let values = rows.to_slice().ok_or_else(|| {
                Error::parameter("rows", format!("{:?}", rows.strides()), "rows one after the other in memory")
            })?;
            UncheckedRows::new(rows.ncols(), values)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toys;

    #[test]
    fn matrices_are_rows() {
        let points = toys::clusters(0);
        let matrix = faer::Mat::from_fn(points.n(), points.d(), |i, k| points.row(i)[k]);
        assert_eq!(Points::try_from(matrix.as_ref()).unwrap(), points);
        let single = faer::Mat::from_fn(3, 2, |i, k| (2 * i + k) as f32);
        assert_eq!(Points::try_from(single.as_ref()).unwrap().values(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let empty: faer::Mat<f64> = faer::Mat::zeros(0, 2);
        assert!(Points::try_from(empty.as_ref()).is_err());
        assert!(Points::try_from(faer::mat![[f64::NAN]].as_ref()).is_err());
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn arrays_are_rows_in_any_order() {
        use crate::{Fit, Precision, UncheckedRows};
        let points = toys::clusters(0);
        let rows = ndarray::Array2::from_shape_vec((points.n(), points.d()), points.values().to_vec()).unwrap();
        let borrowed = Points::try_from(rows.view()).unwrap();
        assert_eq!(borrowed, points);
        assert_eq!(borrowed.values().as_ptr(), rows.as_ptr(), "no copy");
        let turned = rows.t().to_owned();
        assert_eq!(Points::try_from(turned.t()).unwrap(), points);
        let single = rows.mapv(|v| v as f32);
        let model = Fit::default().train(&Points::try_from(single.view()).unwrap()).unwrap();
        let scores = model.score(UncheckedRows::try_from(single.view()).unwrap(), Precision::Double).unwrap();
        assert_eq!(scores.len(), points.n());
        assert!(UncheckedRows::try_from(single.t()).is_err());
    }
}
