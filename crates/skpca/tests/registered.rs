//! Kernels of other crates: unknown before they are registered, and afterwards equivalent to built-in ones.

use std::sync::Arc;

use skpca::kernel::{self, Bandwidth, Capabilities, Distance, Entry, Fields, Kernel};
use skpca::method::{self, METHODS};
use skpca::{
    Basis, Error, Fit, Labels, Model, Parameter, Points, Precision, Result, Scaling, Spec, Target, format, toys,
};

/// A Gaussian without a `form`, so that the built-in one is its oracle.
#[derive(Debug)]
struct Bell {
    name: &'static str,
    gamma: f64,
}

impl Kernel for Bell {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        (-self.gamma * x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    }

    fn spec(&self) -> Spec {
        Spec::new(self.name).with("gamma", self.gamma)
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        let slope = -2.0 * self.gamma * weight * self.eval(z, x);
        out.iter_mut().zip(z.iter().zip(x)).for_each(|(out, (z, x))| *out += slope * (z - x));
    }

    fn bounded(&self) -> bool {
        true
    }
}

type Build = fn(&mut Fields, &Bandwidth) -> Result<Arc<dyn Kernel>>;

fn called(name: &'static str, fields: &mut Fields, bandwidth: &Bandwidth) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Bell { name, gamma: bandwidth.of("gamma", fields, Distance::Squared)? }))
}

const GAMMA: &[Parameter] = &[Parameter::bandwidth("gamma", "median", "γ")];

const fn entry(name: &'static str, build: Build) -> Entry {
    Entry {
        name,
        sklearn: None,
        summary: "exp(−γ ‖x − z‖²)",
        source: None,
        parameters: GAMMA,
        learned: &[],
        capabilities: Capabilities::RADIAL,
        build,
    }
}

static BELL: Entry = entry("bell", |fields, bandwidth| called("bell", fields, bandwidth));

fn registered() -> Fit {
    kernel::register(&BELL).unwrap();
    Fit { kernel: Spec::new("bell"), components: Some(3), ..Fit::default() }
}

fn table() -> Points<'static> {
    Points::new(2, toys::clusters(0).values()[..2 * 90].to_vec()).unwrap()
}

#[test]
fn block_values_and_products_equal_the_definition() {
    registered();
    // More points than a chunk and more columns than a run of coordinates.
    for (n, m, d) in [(1, 1, 1), (70, 250, 2), (65, 130, 200)] {
        let (x, z) = (toys::normal(n, d, 1), toys::normal(m, d, 2));
        let built = kernel::build(&"bell,gamma=0.01".parse().unwrap(), &z, 0).unwrap();
        let basis = Basis::new(built.clone(), z.clone());
        let ones = basis.weights(faer::Mat::from_fn(m, 1, |_, _| 1.0));
        for (precision, tolerance) in [(Precision::Double, 1e-13), (Precision::Single, 1e-6)] {
            let found = basis.product(&x, &ones, precision);
            for (i, found) in found.iter().enumerate() {
                let exact: f64 = z.rows().map(|z| built.eval(x.row(i), z)).sum();
                assert!((found - exact).abs() < tolerance * m as f64, "{n} {m} {d} row {i}: {found} {exact}");
            }
        }
    }
}

#[test]
fn every_method_gives_the_same_model_as_with_the_built_in_kernel() {
    let base = registered();
    let points = table();
    let labels = Labels::new((0..points.n()).map(|i| i % 3)).unwrap();
    for entry in METHODS.iter().filter(|entry| entry.takes(&base.kernel)) {
        let target = if entry.capabilities.keeps_all_rows { None } else { Some(Target::Support(8)) };
        let target = target.filter(|_| !entry.fixes_size(&Spec::new(entry.name)));
        let fit = Fit { method: Spec::new(entry.name), target, ..base.clone() };
        let ours = Fit { kernel: Spec::new("rbf"), ..fit.clone() };
        let run = |fit: &Fit| fit.run_labelled(&points, &labels, None, &()).unwrap();
        let (theirs, ours) = (run(&fit), run(&ours));
        let relative = (theirs.captured() / ours.captured() - 1.0).abs();
        assert!(relative < 1e-3, "{}: {} against {}", entry.name, theirs.captured(), ours.captured());
        assert_eq!(theirs.kernel().spec().name, "bell");
    }
}

#[test]
fn points_move_along_its_gradient() {
    let base = Fit { target: Some(Target::Support(3)), ..registered() };
    let captured = |method: &str, kernel: &str| {
        let fit = Fit { method: Spec::new(method), kernel: Spec::new(kernel), ..base.clone() };
        fit.train(&table()).unwrap().captured()
    };
    let (rows, moved) = (captured("greedy", "bell"), captured("expansion", "bell"));
    assert!(moved > 1.001 * rows, "{moved} {rows}");
    assert!(moved > 0.999 * captured("expansion", "rbf"), "{moved}");
}

#[test]
fn it_may_be_the_base_of_a_learned_kernel() {
    let base = registered();
    let points = toys::clusters(0);
    let labels = Labels::new((0..points.n()).map(|i| i * 3 / points.n())).unwrap();
    let captured = |name: &str| {
        let kernel = Spec::new("conformal").with("base", name);
        let fit = Fit { kernel, method: Spec::new("greedy"), target: Some(Target::Support(6)), ..base.clone() };
        fit.run_labelled(&points, &labels, None, &()).unwrap().captured()
    };
    assert!((captured("bell") / captured("rbf") - 1.0).abs() < 1e-6);
}

#[test]
fn a_model_survives_writing_and_reading() {
    let points = table();
    let fit = Fit { scaling: Scaling::Minmax, ..registered() };
    let model = fit.train(&points).unwrap();
    let mut bytes = Vec::new();
    format::write(&model, &mut bytes).unwrap();
    let read = format::read(&bytes[..]).unwrap();
    let scores = |model: &Model| model.score(&points, Precision::Double).unwrap();
    assert_eq!(scores(&read), scores(&model));
    assert_eq!(read.parts(), model.parts());
    assert_eq!(read.parts().request.as_ref().unwrap().fit, fit);
}

#[test]
fn invalid_parameters_are_rejected_like_those_of_built_in_kernels() {
    let fit = |text: &str| Fit { kernel: text.parse().unwrap(), ..registered() }.check().unwrap_err().to_string();
    assert_eq!(fit("bell,gamma=-1"), "gamma = -1: expected a positive number");
    assert_eq!(fit("bell,gama=1"), "unknown kernel parameter 'gama': expected one of gamma");
    let unknown = fit("unheard-of");
    assert!(unknown.starts_with("unknown kernel 'unheard-of': expected one of rbf, "), "{unknown}");
    assert!(unknown.contains(", bell"), "{unknown}");
}

#[test]
fn a_name_can_be_registered_only_once() {
    static OTHER: Entry = entry("bell", |fields, bandwidth| called("bell", fields, bandwidth));
    static OURS: Entry = entry("rbf", |fields, bandwidth| called("rbf", fields, bandwidth));
    static SPACED: Entry = entry("two words", |fields, bandwidth| called("two words", fields, bandwidth));
    // Otherwise files would name another kernel.
    static MISNAMED: Entry = entry("gong", |fields, bandwidth| called("bell", fields, bandwidth));
    registered();
    kernel::register(&BELL).unwrap();
    let message = |entry: &'static Entry| kernel::register(entry).unwrap_err().to_string();
    assert_eq!(message(&OTHER), "kernel = bell: expected a name that no other kernel has");
    assert_eq!(message(&OURS), "kernel = rbf: expected a name that no other kernel has");
    assert_eq!(message(&MISNAMED), "kernel = gong: expected a kernel whose spec has the name of its entry");
    assert_eq!(message(&SPACED), "kernel = two words: expected a name without spaces, commas and equals signs");
    assert!(matches!(kernel::entry(&Spec::new("gong")), Err(Error::Unknown { .. })));
    assert!(method::entry(&Spec::new("bell")).is_err());
}
