//! The subspace in which P moves while the working set is fixed.
//!
//! A P-step gives `P = T V M` with `V = Σ_i a_i φ_i`, so that P stays in the span of its start and of the images
//! `T φ_i` of the working set. There a vector is w + q numbers and a round costs O(w²), independently of the number of
//! rows and of the columns of the factor.
//!
//! ```text
//! v = Σ_j b_j g_j,   g = (T φ_1, …, T φ_w, p_1, …, p_q),   y_j = ⟨g_j, v⟩,  z_j = ⟨g_j, T v⟩
//! ⟨u, v⟩ = bᵤᵀ y_v        ⟨φ_i, T v⟩ = y_i        ⟨u, T v⟩ = bᵤᵀ z_v        T Σ a_i φ_i has b = (a, 0)
//! ```

use faer::{Mat, MatRef};

use super::space::{Atoms, Space, Vectors};
use crate::dense;

/// The images of the working set under T.
pub(super) struct Images {
    /// `T φ_i`
    vectors: Vectors,
    /// `⟨T φ_i, T φ_j⟩`
    gram: Mat<f64>,
    /// `⟨T φ_i, T T φ_j⟩`
    scattered: Mat<f64>,
}

impl Images {
    /// Computes the images of all atoms; those of the first atoms may be `known`.
    pub(super) fn of(space: &dyn Space, atoms: &Atoms, known: Option<Images>) -> Images {
        let all = atoms.rows.len();
        let from = |first: usize| {
            let each = Mat::from_fn(all, all - first, |i, j| if i == first + j { 1.0 } else { 0.0 });
            Images::new(space, space.scatter(&space.combination(atoms, each.as_ref())))
        };
        match known {
            None => from(0),
            Some(known) if known.vectors.count() == all => known,
            Some(known) => known.beside(space, &from(known.vectors.count())),
        }
    }

    fn new(space: &dyn Space, vectors: Vectors) -> Images {
        let (gram, scattered) = (vectors.products(&vectors), space.between(&vectors, &vectors));
        Images { vectors, gram, scattered }
    }

    fn beside(&self, space: &dyn Space, more: &Images) -> Images {
        Images {
            vectors: self.vectors.beside(&more.vectors),
            gram: dense::bordered(
                self.gram.as_ref(),
                self.vectors.products(&more.vectors).as_ref(),
                more.gram.as_ref(),
            ),
            scattered: dense::bordered(
                self.scattered.as_ref(),
                space.between(&self.vectors, &more.vectors).as_ref(),
                more.scattered.as_ref(),
            ),
        }
    }
}

/// The span of the images and of the initial P.
pub(super) struct Reach<'a> {
    /// The first w of the g.
    images: &'a Images,
    /// The last q of the g: the initial P.
    start: Vectors,
    /// `⟨g_i, g_j⟩` for pairs that involve P.
    gram: Border,
    /// `⟨g_i, T g_j⟩` for pairs that involve P.
    scattered: Border,
}

/// The border that products with the initial P add to a matrix of products of images, stored apart so that the large
/// matrix need not be copied.
struct Border {
    /// Products of images with P, w × q.
    side: Mat<f64>,
    /// The same, transposed.
    below: Mat<f64>,
    /// Products of P with P.
    corner: Mat<f64>,
}

impl Border {
    fn new(side: Mat<f64>, corner: Mat<f64>) -> Border {
        Border { below: side.transpose().to_owned(), side, corner }
    }

    /// Returns column `j` of the bordered matrix, in two parts.
    fn column<'a>(&'a self, inner: &'a Mat<f64>, j: usize) -> (&'a [f64], &'a [f64]) {
        match j.checked_sub(inner.ncols()) {
            None => (inner.col_as_slice(j), self.below.col_as_slice(j)),
            Some(k) => (self.side.col_as_slice(k), self.corner.col_as_slice(k)),
        }
    }
}

impl<'a> Reach<'a> {
    pub(super) fn new(space: &dyn Space, images: &'a Images, start: &Vectors) -> Reach<'a> {
        let products = |u: &Vectors| u.products(start);
        let between = |u: &Vectors| space.between(u, start);
        Reach {
            images,
            gram: Border::new(products(&images.vectors), products(start)),
            scattered: Border::new(between(&images.vectors), between(start)),
            start: start.clone(),
        }
    }

    /// Returns the size of the working set.
    fn w(&self) -> usize {
        self.images.vectors.count()
    }

    /// Returns the number of the g, w + q.
    pub(super) fn count(&self) -> usize {
        self.w() + self.start.count()
    }

    /// Returns the vectors with coordinates `b`, most of which are zero.
    fn vectors(&self, b: Mat<f64>) -> Vectors {
        let (w, count) = (self.w(), self.count());
        let add = |sums: &mut [f64], b: f64, (first, second): (&[f64], &[f64])| {
            let (upper, lower) = sums.split_at_mut(w);
            upper.iter_mut().zip(first).for_each(|(sum, g)| *sum += b * g);
            lower.iter_mut().zip(second).for_each(|(sum, g)| *sum += b * g);
        };
        let mut y = Mat::zeros(2 * count, b.ncols());
        for k in 0..b.ncols() {
            let (values, scattered) = y.col_as_slice_mut(k).split_at_mut(count);
            for (j, &b) in b.col_as_slice(k).iter().enumerate().filter(|(_, b)| **b != 0.0) {
                add(values, b, self.gram.column(&self.images.gram, j));
                add(scattered, b, self.scattered.column(&self.images.scattered, j));
            }
        }
        Vectors::paired(b, y)
    }

    /// Returns `g_j`, or `None` if there are fewer.
    pub(super) fn direction(&self, j: usize) -> Option<Vectors> {
        let count = self.count();
        (j < count).then(|| self.vectors(Mat::from_fn(count, 1, |i, _| if i == j { 1.0 } else { 0.0 })))
    }

    /// Returns the initial P.
    pub(super) fn start(&self) -> Vectors {
        let (count, w) = (self.count(), self.w());
        self.vectors(Mat::from_fn(count, count - w, |i, k| if i == w + k { 1.0 } else { 0.0 }))
    }

    /// `T Σ_i a_i φ_i`
    pub(super) fn image(&self, a: MatRef<f64>) -> Vectors {
        let mut b = Mat::zeros(self.count(), a.ncols());
        b.as_mut().subrows_mut(0, self.w()).copy_from(a);
        self.vectors(b)
    }

    /// `⟨φ_i, T v_k⟩`, and `⟨v_k, T v_k⟩`.
    pub(super) fn along(&self, v: &Vectors) -> (Mat<f64>, Vec<f64>) {
        let (b, y) = v.pair();
        let scattered = y.subrows(b.nrows(), b.nrows());
        let squares = (0..v.count()).map(|k| b.col(k).transpose() * scattered.col(k)).collect();
        (y.subrows(0, self.w()).to_owned(), squares)
    }

    /// Converts to vectors of the space itself.
    pub(super) fn outside(&self, v: &Vectors) -> Vectors {
        let (images, start) = v.pair().0.split_at_row(self.w());
        self.images.vectors.times(images).plus(1.0, &self.start.times(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eigen::{self, top};
    use crate::factor::Factor;
    use crate::kernel;
    use crate::method::space::{FactorSpace, KernelSpace};
    use crate::toys;

    /// Inner products within the reach equal those of the same vectors in the space.
    #[test]
    fn inner_products_equal_those_of_the_space() {
        let points = toys::clusters(0);
        let kernel = kernel::build(&"rbf,gamma=5".parse().unwrap(), &points, 0).unwrap();
        let factor = Factor::exact(&kernel, &points, &()).unwrap();
        let (t, _) = factor.scatter(true, &()).unwrap();
        let by_factor = FactorSpace { factor: &factor, t: &t };
        let x = top(&t, 2, eigen::Accuracy::default(), 0, &()).unwrap().vectors;
        check(&by_factor, &by_factor.vectors(x));
        let by_kernel = KernelSpace::new(&kernel, &points, true, factor.trace);
        check(&by_kernel, &by_kernel.vectors(Mat::from_fn(points.n(), 2, |i, k| ((i + 3 * k) as f64).sin())));
    }

    fn check(space: &dyn Space, start: &Vectors) {
        let near = |a: &Mat<f64>, b: &Mat<f64>| (a - b).norm_max() <= 1e-11 * b.norm_max();
        let (few, atoms) = (space.atoms(vec![40, 3]), space.atoms(vec![40, 3, 77, 9]));
        let a = Mat::from_fn(4, 2, |i, k| if i == k { 0.0 } else { 1.0 + i as f64 - k as f64 });
        for known in [None, Some(Images::of(space, &few, None))] {
            let images = Images::of(space, &atoms, known);
            let reach = Reach::new(space, &images, start);
            let inside = reach.image(a.as_ref()).plus(0.5, &reach.start());
            let outside = space.scatter(&space.combination(&atoms, a.as_ref())).plus(0.5, start);
            assert!(near(&inside.products(&reach.start()), &outside.products(start)));
            assert!(near(&reach.outside(&inside).products(start), &outside.products(start)));
            assert!(near(&inside.products(&inside), &outside.products(&outside)));
            let (own, squares) = reach.along(&inside);
            let (c, expected) = space.along(&atoms, &outside);
            assert!(near(&own, &c));
            assert!(
                squares.iter().zip(&expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-11),
                "{squares:?} {expected:?}"
            );
            let other = reach.direction(2).expect("there are six");
            let third = space.scatter(&space.combination(&space.atoms(vec![77]), Mat::identity(1, 1).as_ref()));
            assert!(near(&other.products(&inside), &third.products(&outside)));
            assert!(reach.direction(6).is_none());
        }
    }
}
