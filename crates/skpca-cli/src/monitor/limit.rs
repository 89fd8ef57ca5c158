//! The limit of Hotelling's T².
//!
//! ```text
//! T² = Σ_k f_k² / (λ_k + ε)
//! with noise:     score = SPE + ε T²,  so limit = threshold / ε
//! without noise:  limit = q (n² − 1) / (n (n − q)) F⁻¹(1 − α; q, n − q)
//! ```
//!
//! With noise, T² is part of the score and shares its threshold. Without noise, the score is SPE alone, and T² has the
//! textbook limit (Lee, Yoo, Choi, Vanrolleghem & Lee 2004 for kernel PCA), which assumes Gaussian features: normal
//! rows may exceed it more or less often than α says.

use skpca::Model;

/// The limit that T² of normal rows exceeds at a rate of about α; `None` if there are not more rows than components.
pub fn of_t2(model: &Model, alpha: f64) -> Option<f64> {
    let parts = model.parts();
    if parts.noise > 0.0 {
        return Some(model.threshold() / parts.noise);
    }
    let (n, q) = (parts.n as f64, parts.variances.iter().filter(|v| **v > 0.0).count() as f64);
    (q > 0.0 && n > q + 1.0).then(|| q * (n * n - 1.0) / (n * (n - q)) * f_quantile(1.0 - alpha, q, n - q))
}

/// The `p`-quantile of the F distribution with `a` and `b` degrees of freedom.
fn f_quantile(p: f64, a: f64, b: f64) -> f64 {
    // I_x(a/2, b/2) = p with x = aF / (aF + b), by bisection on 1 − x, which may be tiny.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if incomplete_beta(middle, 0.5 * b, 0.5 * a) > 1.0 - p { high = middle } else { low = middle }
    }
    let rest = 0.5 * (low + high);
    b / a * (1.0 - rest) / rest
}

/// I_x(a, b), regularised, by its continued fraction (Lentz's algorithm; Numerical Recipes §6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let safe = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / safe(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    for m in (1..10_000).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for step in [even, odd] {
            d = 1.0 / safe(1.0 + step * d);
            c = safe(1.0 + step / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// ln Γ(x) for x > 0: the recurrence up to 12, from where Stirling's series has 15 digits.
fn ln_gamma(x: f64) -> f64 {
    if x < 12.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let square = 1.0 / (x * x);
    let series = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    let tail = series.iter().rev().fold(0.0, |sum, c| sum * square + c) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // scipy.stats.f.ppf
        let table = [
            (0.95, 1.0, 10.0, 4.964602743730711),
            (0.99, 5.0, 95.0, 3.2161559507885378),
            (0.999, 3.0, 1e6, 5.422120119647842),
            (0.95, 99.3, 200.7, 1.321130029065472),
            (0.5, 2.0, 2.0, 1.0),
        ];
        for (p, a, b, expected) in table {
            let found = f_quantile(p, a, b);
            assert!((found / expected - 1.0).abs() < 1e-9, "{p} {a} {b}: {found}");
        }
    }
}
