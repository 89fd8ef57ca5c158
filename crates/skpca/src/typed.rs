//! Methods and kernels as types, so that the compiler checks their parameters.
//!
//! Each type converts to a [`Spec`], as used in files and on command lines. `None` stands for the default or a rule.
//! Parameters without a field here can be added with [`Spec::with`].
//!
//! ```
//! use skpca::typed::{L21, Rbf};
//! use skpca::{Fit, toys};
//!
//! let method = L21 { fraction: Some(0.3), ..L21::default() }.into();
//! let kernel = Rbf { gamma: Some(0.5), ..Rbf::default() }.into();
//! let model = Fit { method, kernel, components: Some(3), ..Fit::default() }.train(&toys::clusters(0))?;
//! assert!(model.m() < 90);
//! # Ok::<(), skpca::Error>(())
//! ```

use serde_json::Value;

use crate::spec::Spec;

/// Defines structs of optional parameters for the entries of the registries, and their conversion to specs.
macro_rules! entries {
    ($($about:literal, $name:ident = $spec:literal { $($field:ident: $kind:ty = $help:literal),* $(,)? };)*) => {
        $(
            #[doc = $about]
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $name {
                $(#[doc = $help] pub $field: Option<$kind>,)*
            }

            impl From<$name> for Spec {
                fn from(typed: $name) -> Spec {
                    let $name { $($field),* } = typed;
                    let fields: Vec<(&str, Option<Value>)> = vec![$((stringify!($field), $field.map(Value::from))),*];
                    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?)));
                    Spec { name: $spec.into(), fields: given.collect() }
                }
            }
        )*

        /// Returns for every type its entry, its fields, and the spec of its default.
        #[cfg(test)]
        fn types() -> Vec<(&'static str, Vec<&'static str>, Spec)> {
            vec![$(($spec, vec![$(stringify!($field)),*], $name::default().into())),*]
        }
    };
}

entries! {
    "Kernel PCA with every row.",
    Exact = "exact" {};
    "Landmarks (Nyström), chosen by randomly pivoted Cholesky by default.",
    Landmarks = "landmarks" {
        sampling: String = "`auto`, `pivoted`, `uniform`, `leverage` or `kmeans`.",
        steps: usize = "Number of optimisation steps that move the points afterwards.",
    };
    "Wang & Tanaka 2019, algorithm 1: each component has its own points.",
    L1 = "l1" {
        penalty: Vec<f64> = "λ₁: one, or one per component.",
        fraction: f64 = "The penalty as a share of the largest useful one.",
        ridge: f64 = "λ.",
        sequential: bool = "Whether components are computed one after the other.",
        alternations: usize = "Maximum number of P-steps.",
        starts: usize = "Number of starts of P; the lowest minimum is kept.",
        refit: bool = "Whether the best components over the chosen points replace the method's own.",
        tolerance: f64 = "Tolerance: the relative duality gap at which to stop.",
        rank: usize = "Number of columns of the factor.",
    };
    "Wang & Tanaka 2019, algorithm 2: one set of points for all components.",
    L21 = "l21" {
        penalty: f64 = "μ.",
        fraction: f64 = "The penalty as a share of the largest useful one.",
        ridge: f64 = "λ.",
        alternations: usize = "Maximum number of P-steps.",
        refit: bool = "Whether the best components over the chosen points replace the method's own.",
        tolerance: f64 = "Tolerance: the relative duality gap at which to stop.",
        rank: usize = "Number of columns of the factor.",
    };
    "Das, Golatkar & Awate 2018.",
    ElasticNet = "elastic-net" {
        penalty: Vec<f64> = "λ₁: one, or one per component.",
        fraction: f64 = "The penalty as a share of the largest useful one.",
        ridge: f64 = "λ, on the coefficients.",
        l1_ratio: f64 = "ρ, which gives penalty ρ and ridge (1 − ρ)/2.",
        alternations: usize = "Maximum number of P-steps.",
        starts: usize = "Number of starts of P; the lowest minimum is kept.",
        refit: bool = "Whether the best components over the chosen points replace the method's own.",
        tolerance: f64 = "Tolerance: the relative duality gap at which to stop.",
        rank: usize = "Number of columns of the factor.",
    };
    "The largest coefficients of kernel PCA.",
    Threshold = "threshold" {
        keep: usize = "Number of coefficients kept per component.",
        refit: bool = "Whether the best components over the chosen points replace the method's own.",
    };
    "Zhang, Wang & Ma 2010: the points with most of the variance.",
    Energy = "energy" {
        alpha: f64 = "The share of the variance that may be lost.",
        split: String = "`half` or `sharp`.",
        rank: usize = "Number of columns of the factor.",
    };
    "Tipping 2001: maximum likelihood of a Gaussian.",
    Likelihood = "likelihood" {
        noise: f64 = "σ².",
        fraction: f64 = "The noise as a share of the largest useful one.",
        refit: bool = "Whether the best components over the chosen points replace the method's own.",
        tolerance: f64 = "Tolerance: the largest |ρ − 1| at which to stop.",
        rank: usize = "Number of columns of the factor.",
    };
    "Li & Gao 2011: expansion vectors among the rows.",
    Greedy = "greedy" {
        gain: String = "`leading`, `trace` or `top`.",
        exchanges: usize = "Number of passes in which each point may be exchanged for a better one.",
        rank: usize = "Number of columns of the factor.",
    };
    "Li & Gao 2011: expansion vectors that are optimised freely; the default.",
    Expansion = "expansion" {
        steps: usize = "Maximum number of steps of the optimiser.",
        restarts: usize = "Number of further starts; the best result is kept.",
        rows: usize = "Number of rows used while points move.",
    };
    "Smola, Mangasarian & Schölkopf 1999: sparse kernel feature analysis.",
    Skfa = "skfa" {
        rank: usize = "Number of columns of the factor that approximates the kernel matrix.",
    };
    "Jiang, Motai, Wahl & Zhu 2006: accelerated kernel feature analysis.",
    Akfa = "akfa" {
        cutoff: f64 = "Rows with less than this share of their squared norm left are skipped.",
        rank: usize = "Number of columns of the factor that approximates the kernel matrix.",
    };
    "Smola & Schölkopf 2000; Hussain & Shawe-Taylor 2009: matching pursuit.",
    Pursuit = "pursuit" {
        candidates: usize = "Number of rows drawn for each choice; 0 for all.",
        rank: usize = "Number of columns of the factor that approximates the kernel matrix.",
    };
    "Schölkopf et al. 1999: the components of exact kernel PCA, approximated over fewer points.",
    ReducedSet = "reduced-set" {
        by: String = "`elimination` or `penalty`.",
        refit: bool = "Whether the best components over the chosen points replace the method's own.",
        rank: usize = "Number of columns of the factor that approximates the kernel matrix.",
    };
    "Alzate & Suykens 2008: components on which outliers have no more influence than other rows.",
    Robust = "robust" {
        epsilon: f64 = "Rows closer to zero along a component than this many standard deviations have no influence.",
        clip: f64 = "Maximum influence of a row, in standard deviations beyond epsilon.",
        rank: usize = "Number of columns of the factor that approximates the kernel matrix.",
    };
    "Zou, Hastie & Tibshirani 2006: linear components with few non-zero loadings; for the kernel [`Linear`].",
    Spca = "spca" {
        nonzero: Vec<usize> = "Non-zero loadings: one number, or one per component.",
        penalty: Vec<f64> = "λ₁, the ℓ₁ penalty on loadings: one number, or one per component.",
        ridge: f64 = "λ.",
        sequential: bool = "Whether components are computed one after the other.",
        alternations: usize = "Maximum number of P-steps.",
        tolerance: f64 = "Tolerance: stop when no component of P moves by more than this share of its length.",
        polish: bool = "Whether loadings on the chosen columns are replaced by those whose span captures most.",
    };
    "Kernel discriminant analysis over few points.",
    Discriminant = "discriminant" {
        regularisation: f64 = "Ridge added to the within-class scatter, as a share of its mean.",
    };

    "`exp(−γ ‖x − z‖²)`; without parameters γ is set by the median rule.",
    Rbf = "rbf" {
        gamma: f64 = "γ.",
        sigma: f64 = "σ, instead of γ = 1 / 2σ².",
        width: f64 = "r, instead of γ = 1 / r².",
    };
    "`exp(−γ ‖x − z‖₁)`",
    Laplacian = "laplacian" { gamma: f64 = "γ." };
    "`(γ x·z + c)^p`",
    Polynomial = "polynomial" {
        gamma: f64 = "γ.",
        degree: usize = "p.",
        coef0: f64 = "c.",
    };
    "`tanh(γ x·z + c)`",
    Sigmoid = "sigmoid" { gamma: f64 = "γ.", coef0: f64 = "c." };
    "`x·z`",
    Linear = "linear" {};
    "`x·z / (‖x‖ ‖z‖)`",
    Cosine = "cosine" {};
    "`f(x) f(z) k(x, z)`, where f separates labelled classes (Amari & Wu 1999; Li & Gao 2011).",
    Conformal = "conformal" {
        delta: f64 = "δ, the width of the terms of f.",
        solver: String = "`exact`, `positive` or `iteration`.",
        regularisation: f64 = "Ridge added to the within-class scatter, as a share of its mean.",
        rate: f64 = "The initial step size of `iteration`.",
        rounds: usize = "Number of steps of `iteration`.",
        base: String = "The name of k; its parameters are added with [`Spec::with`].",
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KERNELS;
    use crate::method::METHODS;
    use crate::parameter::Parameter;
    use crate::{Fit, Labels, Training, toys};

    fn registered() -> Vec<(&'static str, &'static [Parameter])> {
        let methods = METHODS.iter().map(|entry| (entry.name, entry.parameters));
        methods.chain(KERNELS.iter().map(|entry| (entry.name, entry.parameters))).collect()
    }

    #[test]
    fn every_entry_has_a_type_and_every_parameter_a_field() {
        let types = types();
        for (name, parameters) in registered() {
            let (_, fields, _) = types.iter().find(|(of, ..)| *of == name).unwrap_or_else(|| panic!("{name}: no type"));
            let mut declared: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
            let mut fields = fields.clone();
            declared.sort_unstable();
            fields.sort_unstable();
            assert_eq!(fields, declared, "{name}");
        }
        assert_eq!(types.len(), registered().len(), "a type of no entry");
    }

    /// Panics unless the registry accepts each value for its parameter.
    fn check(spec: impl Into<Spec>) {
        let spec = spec.into();
        let (_, parameters) = registered().into_iter().find(|(name, _)| *name == spec.name).unwrap();
        assert_eq!(spec.fields.len(), parameters.len(), "{}: set every field", spec.name);
        for (field, value) in &spec.fields {
            let declared = parameters.iter().find(|parameter| parameter.name == field).unwrap();
            assert!(declared.domain.holds(value), "{}: {field} = {value}", spec.name);
        }
    }

    #[test]
    fn registries_accept_the_values_of_the_types() {
        let (penalty, refit, alternations) = (Some(vec![0.5, 0.1]), Some(false), Some(3));
        let (tolerance, rank, ridge, fraction) = (Some(1e-3), Some(20), Some(0.1), Some(0.5));
        let (sequential, starts, polish) = (Some(true), Some(2), Some(true));
        let text = |text: &str| Some(text.to_string());
        check(Landmarks { sampling: text("kmeans"), steps: Some(10) });
        check(L1 {
            penalty: penalty.clone(),
            fraction,
            ridge,
            sequential,
            alternations,
            starts,
            refit,
            tolerance,
            rank,
        });
        check(L21 { penalty: Some(0.5), fraction, ridge, alternations, refit, tolerance, rank });
        let l1_ratio = Some(0.5);
        check(ElasticNet {
            penalty: penalty.clone(),
            fraction,
            ridge,
            l1_ratio,
            alternations,
            starts,
            refit,
            tolerance,
            rank,
        });
        check(Threshold { keep: Some(3), refit });
        check(Energy { alpha: Some(0.1), split: text("sharp"), rank });
        check(Likelihood { noise: Some(0.1), fraction, refit, tolerance, rank });
        check(Greedy { gain: text("top"), exchanges: Some(2), rank });
        check(Expansion { steps: Some(5), restarts: Some(1), rows: Some(500) });
        check(Skfa { rank });
        check(Akfa { cutoff: Some(0.1), rank });
        check(Pursuit { candidates: Some(59), rank });
        check(ReducedSet { by: text("penalty"), refit, rank });
        check(Robust { epsilon: Some(0.5), clip: Some(2.0), rank });
        check(Spca { nonzero: Some(vec![7, 4]), penalty, ridge, sequential, alternations, tolerance, polish });
        check(Discriminant { regularisation: Some(0.1) });
        check(Rbf { gamma: Some(0.5), sigma: Some(1.0), width: Some(1.0) });
        check(Laplacian { gamma: Some(0.5) });
        check(Polynomial { gamma: Some(0.5), degree: Some(2), coef0: Some(1.0) });
        check(Sigmoid { gamma: Some(0.5), coef0: Some(1.0) });
        let (solver, base) = (text("iteration"), text("laplacian"));
        check(Conformal {
            delta: Some(0.5),
            solver,
            regularisation: Some(0.1),
            rate: Some(0.1),
            rounds: Some(9),
            base,
        });
    }

    #[test]
    fn default_types_are_bare_names_and_can_be_fitted() {
        let points = toys::clusters(0);
        let labels = Labels::new((0..points.n()).map(|i| i % 3)).unwrap();
        for (name, _, spec) in types() {
            assert_eq!(spec, Spec::new(name));
            // Not every kernel is a valid one on these rows.
            let Some(method) = METHODS.iter().find(|entry| entry.name == name) else { continue };
            let kernel = if method.capabilities.linear { Linear {}.into() } else { Rbf::default().into() };
            let fit = Fit { method: spec, kernel, components: Some(2), ..Fit::default() };
            fit.train(Training { labels: Some(&labels), ..Training::of(&points) }).unwrap();
        }
    }
}
