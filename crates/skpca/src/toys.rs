//! The synthetic data sets of the papers, seeded.

use crate::points::Points;
use crate::random::{Random, Stream};

/// Returns three Gaussian clusters in the plane (Schölkopf et al. 1998; Tipping 2001): 3 × 30 points, standard
/// deviation 0.1.
pub fn clusters(seed: u64) -> Points<'static> {
    let mut random = Random::new(seed, Stream::Clusters);
    let centres = [[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]];
    let mut values = Vec::with_capacity(180);
    for centre in centres {
        for _ in 0..30 {
            values.extend(centre.map(|c| c + 0.1 * random.normal()));
        }
    }
    Points::new(2, values).expect("finite by construction")
}

/// Returns `y = x² + noise` (Wang & Tanaka 2019): 500 points, x uniform on [−1, 1], noise of standard deviation 0.2.
pub fn parabola(seed: u64) -> Points<'static> {
    let mut random = Random::new(seed, Stream::Parabola);
    let mut values = Vec::with_capacity(1000);
    for _ in 0..500 {
        let x = 2.0 * random.uniform() - 1.0;
        values.extend([x, x * x + 0.2 * random.normal()]);
    }
    Points::new(2, values).expect("finite by construction")
}

/// Returns independent standard normal columns (Zhang, Wang & Ma 2010).
pub fn normal(n: usize, d: usize, seed: u64) -> Points<'static> {
    let mut random = Random::new(seed, Stream::Normal);
    Points::new(d, (0..n * d).map(|_| random.normal()).collect::<Vec<_>>()).expect("finite by construction")
}
