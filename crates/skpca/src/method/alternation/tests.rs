use super::*;
use crate::eigen::{self, top};
use crate::factor::{Factor, Stop};
use crate::method::space::{FactorSpace, KernelSpace};
use crate::points::Points;
use crate::random::{Random, Stream};
use crate::spec::Spec;
use crate::toys;

/// Computes gap and objective from all rows of the factor, independently of the solver.
fn recomputed(
    (f, t): (&Mat<f64>, &Mat<f64>),
    (a, p): (&Mat<f64>, &Mat<f64>),
    ridge: Ridge,
    shape: Shape,
    penalty: f64,
) -> (f64, f64) {
    let v = f.transpose() * a;
    let (features, coefficients) = ridge.both();
    let z = f * (t * (p - &v) - Scale(features) * &v) - Scale(coefficients) * a;
    let norms = |x: &Mat<f64>, k: usize| -> Vec<f64> {
        match shape {
            Shape::Rows => (0..x.nrows()).map(|i| x.row(i).norm_l2()).collect(),
            Shape::Entries => x.col(k).iter().map(|v| v.abs()).collect(),
        }
    };
    let q = p.ncols();
    let groups: Vec<Range<usize>> =
        if shape == Shape::Rows { std::iter::once(0..q).collect() } else { (0..q).map(|k| k..k + 1).collect() };
    let (mut primal, mut dual, mut cost) = (0.0, 0.0, 0.0);
    for columns in groups {
        let pick = |x: &Mat<f64>| x.get(.., columns.clone()).to_owned();
        let (p, v, a) = (pick(p), pick(&v), pick(a));
        let dot = |x: &Mat<f64>, y: &Mat<f64>| (x.transpose() * y).diagonal().column_vector().sum();
        let own = penalty * norms(&a, 0).iter().sum::<f64>();
        let residual = dot(&(&p - &v), &(t * (&p - &v))) + features * dot(&v, &v) + coefficients * dot(&a, &a);
        let largest = norms(&pick(&z), 0).into_iter().fold(0.0, f64::max) / penalty;
        let shrink = 1.0 / largest.max(1.0);
        primal += 0.5 * residual + own;
        dual += shrink * dot(&p, &(t * (&p - &v))) - 0.5 * shrink * shrink * residual;
        cost += own;
    }
    let trace = dense::trace(t);
    let dot = |x: &Mat<f64>, y: &Mat<f64>| (x.transpose() * y).diagonal().column_vector().sum();
    let ridge = 0.5 * features * dot(&v, &v) + 0.5 * coefficients * dot(a, a);
    let objective = 0.5 * trace - dot(&v, &(t * p)) + 0.5 * dot(&v, &(t * &v)) + ridge + cost;
    ((primal - dual) / primal, objective)
}

#[test]
fn gap_and_objective_are_those_of_what_is_returned() {
    // The second table is so large that most passes screen the candidates only.
    let many = |i: usize| [(0.7 * i as f64).sin() + 1e-4 * i as f64, (0.31 * i as f64).cos()];
    for points in [toys::parabola(5), Points::new(2, (0..3 * NEAREST).flat_map(many).collect::<Vec<f64>>()).unwrap()] {
        let kernel = crate::kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
        let factor = Factor::pivoted(&kernel, &points, Stop { rank: 60, residual: 0.0 }, 0, &()).unwrap();
        let (t, _) = factor.scatter(true, &()).unwrap();
        let space = FactorSpace { factor: &factor, t: &t };
        let start = space.vectors(top(&t, 3, eigen::Accuracy::default(), 0, &()).unwrap().vectors);
        let f = factor.rows_of(&(0..points.n()).collect::<Vec<_>>());
        check_in(&space, &start, &f, &t, |p| p.coordinates().clone());
    }
}

#[test]
fn candidates_have_the_largest_gradients_or_are_spread_evenly() {
    let few = [0.1, 0.9, 0.7, 0.71];
    assert_eq!(nearest(&few), [1, 3]);
    // The last third has the largest gradients, the middle third may join as well, and the first third may not.
    let many: Vec<f64> = (0..9 * NEAREST).map(|i| 0.4 + 0.4 * (i / (3 * NEAREST)) as f64 + 1e-6 * i as f64).collect();
    let rows = nearest(&many);
    assert!(rows.len() == NEAREST && rows.is_sorted_by(|a, b| a < b) && rows[0] >= 3 * NEAREST);
    assert!((9 * NEAREST - FIRST..9 * NEAREST).all(|i| rows.binary_search(&i).is_ok()));
    let gap = rows.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(gap <= Some(8), "{gap:?}");
}

/// Compares the kernel matrix with the complete factor of the same rows.
#[test]
fn gap_and_objective_are_right_without_a_factor() {
    let mut random = Random::new(0, Stream::Tests);
    let points = Points::new(8, (0..150 * 8).map(|_| random.normal()).collect::<Vec<_>>()).unwrap();
    let kernel = crate::kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
    let factor = Factor::exact(&kernel, &points, &()).unwrap();
    let f = factor.rows_of(&(0..150).collect::<Vec<_>>());
    for center in [true, false] {
        let (t, _) = factor.scatter(center, &()).unwrap();
        let mut x = top(&t, 3, eigen::Accuracy::default(), 0, &()).unwrap().vectors;
        let own = FactorSpace { factor: &factor, t: &t };
        let start = own.vectors(x.clone());
        let by_factor = check_in(&own, &start, &f, &t, |p| p.coordinates().clone());
        dense::solve_lower_transposed(f.as_ref(), x.as_mut());
        let space = KernelSpace::new(&kernel, &points, center, factor.trace);
        let start = space.vectors(x);
        let by_kernel = check_in(&space, &start, &f, &t, |p| f.transpose() * p.coordinates());
        for (a, b) in by_factor.into_iter().zip(by_kernel) {
            assert!((a.0 / b.0 - 1.0).abs() < 1e-6 && a.1 == b.1, "{a:?} {b:?}");
        }
        let rows: Vec<usize> = (0..40).collect();
        let weights = Mat::from_fn(40, 2, |i, k| ((i * (k + 1)) as f64).sin());
        for own_components in [None, Some(weights.as_ref())] {
            let captured = |space: &dyn Space| space.captured(&rows, own_components, 2).unwrap();
            assert!((captured(&own) / captured(&space) - 1.0).abs() < 1e-9);
        }
    }
}

/// Solves with every scheme, checks the reported numbers, and returns the objectives with the rows in use.
fn check_in(
    space: &dyn Space,
    start: &Vectors,
    f: &Mat<f64>,
    t: &Mat<f64>,
    coordinates: impl Fn(&Vectors) -> Mat<f64>,
) -> Vec<(f64, Vec<usize>)> {
    let mut found = Vec::new();
    for (shape, sequential) in [(Shape::Rows, false), (Shape::Entries, false), (Shape::Entries, true)] {
        for ridge in [Ridge::Features(0.1), Ridge::Coefficients(0.1)] {
            for rounds in [0, 2, 500] {
                let scheme = Scheme { shape, ridge, gap: 1e-6, rounds, sequential };
                let mut problem = Alternation::new(space, scheme, None, &());
                let penalty = 0.1 * problem.largest_penalty(start);
                let groups = if shape == Shape::Rows { 1 } else { 3 };
                let state = problem.solve(start, &vec![penalty; groups], None).unwrap();
                let mut a = Mat::zeros(f.nrows(), 3);
                for (w, &row) in problem.atoms.rows.iter().enumerate() {
                    (0..3).for_each(|k| a[(row, k)] = state.a[(w, k)]);
                }
                let p = coordinates(&state.p);
                let (gap, objective) = recomputed((f, t), (&a, &p), ridge, shape, penalty);
                let case = format!("{shape:?} {ridge:?} {rounds} {sequential}");
                assert!((gap - state.gap).abs() < 1e-9 && gap <= 1e-6, "{case}: {gap} {}", state.gap);
                assert!((objective / state.objective - 1.0).abs() < 1e-10, "{case}: {objective} {}", state.objective);
                let identity = p.transpose() * &p - Mat::<f64>::identity(3, 3);
                assert!(identity.norm_max() < 1e-12, "{case}: P is orthonormal");
                assert!(rounds == 2 || state.converged, "{case}");
                let mut rows: Vec<usize> = problem.used(&state.a).iter().map(|&w| problem.atoms.rows[w]).collect();
                rows.sort_unstable();
                found.push((objective, rows));
            }
        }
    }
    found
}

/// Every row occurs four times. Copies are solved as one row, and spread over the copies again the solution is a
/// minimum over all rows.
#[test]
fn equal_rows_share_a_coefficient() {
    let few: Vec<usize> = (0..400).map(|i| 2 * (i % 100)).collect();
    let points = toys::parabola(6).select(&few);
    let kernel = crate::kernel::build(&Spec::new("rbf"), &points, 0).unwrap();
    let factor = Factor::pivoted(&kernel, &points, Stop { rank: 60, residual: 0.0 }, 0, &()).unwrap();
    let (t, _) = factor.scatter(true, &()).unwrap();
    let space = FactorSpace { factor: &factor, t: &t };
    let pairs = top(&t, 2, eigen::Accuracy::default(), 0, &()).unwrap();
    let (shape, ridge) = (Shape::Entries, Ridge::Coefficients(0.5));
    let scheme = Scheme { shape, ridge, gap: 1e-6, rounds: 100, sequential: false };
    let mut problem = Alternation::new(&space, scheme, Some(Twins::of(&points)), &());
    let start = space.vectors(pairs.vectors);
    let penalty = 0.1 * problem.largest_penalty(&start);
    let state = problem.solve(&start, &[penalty; 2], None).unwrap();
    assert!(problem.atoms.rows.iter().all(|row| *row < 100), "only first copies: {:?}", problem.atoms.rows);
    let mut a = Mat::zeros(400, 2);
    for (w, &row) in problem.atoms.rows.iter().enumerate() {
        (0..4).for_each(|copy| (0..2).for_each(|k| a[(row + 100 * copy, k)] = state.a[(w, k)] / 4.0));
    }
    let f = factor.rows_of(&(0..400).collect::<Vec<_>>());
    let (gap, objective) = recomputed((&f, &t), (&a, state.p.coordinates()), ridge, shape, penalty);
    assert!((gap - state.gap).abs() < 1e-9 && gap <= 1e-6, "{gap} {}", state.gap);
    assert!((objective / state.objective - 1.0).abs() < 1e-10, "{objective} {}", state.objective);
}
