use skpca::*;
use std::time::Instant;
fn main() {
    let mut s = 1u64;
    let mut r = move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(std::env::args().nth(1).map_or(2, |t| t.parse().unwrap()))
        .build_global()
        .unwrap();
    for d in [1usize, 10, 54, 784] {
        let (m, n, q) = if d == 1 { (480, 4096, 1200) } else { (5000, 10000, 10) };
        let z = Points::new(d, (0..m * d).map(|_| r()).collect::<Vec<_>>()).unwrap();
        let x = Points::new(d, (0..n * d).map(|_| r()).collect::<Vec<_>>()).unwrap();
        let kernel = kernel::build(&if d == 1 { "linear" } else { "rbf" }.parse().unwrap(), &z, 0).unwrap();
        let b = Basis::new(kernel, z);
        let w = b.weights(faer::Mat::from_fn(m, q, |i, j| ((i * 7 + j * 3) % 11) as f64 - 5.0));
        for p in [Precision::Double, Precision::Single] {
            let mut best = 1e9f64;
            for _ in 0..7 {
                let t = Instant::now();
                std::hint::black_box(b.product(&x, &w, p));
                best = best.min(t.elapsed().as_secs_f64());
            }
            let ops = (d
                + q
                + if d == 1 {
                    0
                } else if p == Precision::Double {
                    10
                } else {
                    6
                }) as f64;
            println!(
                "d {d} {p:?} {:.1} ms  {:.3} G/s  {:.1} GFMA/s",
                best * 1e3,
                (n * m) as f64 / best / 1e9,
                (n * m) as f64 * ops / best / 1e9
            );
        }
    }
}
