//! Specs of methods and kernels as text.

use skpca::{Fit, Level, Points, Random, RowOrder, Spec, Statistic, kernel};

use crate::choices::{self, one_in};

pub fn seeds() -> Vec<Vec<u8>> {
    let methods = skpca::method::METHODS.iter().map(|entry| (entry.name, entry.parameters));
    let kernels = skpca::kernel::KERNELS.iter().map(|entry| (entry.name, entry.parameters));
    methods
        .chain(kernels)
        .map(|(name, parameters)| {
            let fields = parameters.iter().map(|p| format!(",{}={}", p.name, p.default));
            format!("{name}{}", fields.collect::<String>()).into_bytes()
        })
        .collect()
}

pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let text = |random: &mut Random| String::from_utf8_lossy(&seeds[random.below(seeds.len())]).into_owned();
    let mut parts: Vec<String> = text(random).split(',').map(String::from).collect();
    let values =
        ["0", "1", "-1", "1e308", "1e-320", "nan", "inf", "true", "median", "", "0.1:0.2", "1:2:3", ":", "=", "x"];
    for _ in 0..random.below(4) {
        let at = random.below(parts.len());
        match random.below(5) {
            0 if parts.len() > 1 => drop(parts.remove(at)),
            1 => parts.push(text(random).split(',').next_back().unwrap_or_default().to_string()),
            _ => {
                let key = parts[at].split('=').next().unwrap_or_default().to_string();
                parts[at] = format!("{key}={}", values[random.below(values.len())]);
            }
        }
    }
    let mut bytes = parts.join(",").into_bytes();
    if one_in(random, 4) {
        choices::mutate(random, &mut bytes);
    }
    bytes
}

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (text.parse::<RowOrder>().is_ok(), text.parse::<Statistic>().is_ok(), text.parse::<Level>().is_ok());
    let _ = (text.parse::<skpca::Missing>().is_ok(), text.parse::<skpca::Unknown>().is_ok());
    let Ok(spec) = text.parse::<Spec>() else { return };
    assert_eq!(spec.to_string().parse::<Spec>().as_ref(), Ok(&spec), "written and read again");
    assert_eq!(Spec::from_json(&spec.to_json()).as_ref(), Ok(&spec), "as JSON");
    assert!(spec.brief().len() <= spec.to_string().len() + 32);
    let points = Points::new(2, vec![0.0, 1.0, -1.0, 0.5, 3.0, 3.0]).expect("three rows");
    if let Ok(kernel) = kernel::build(&spec, &points, 0) {
        let _ = kernel.eval(points.row(0), points.row(1));
        let again = kernel::build(&kernel.spec(), &points, 0).expect("a kernel is built from its own spec");
        assert_eq!(again.spec(), kernel.spec());
    }
    for fit in [Fit { method: spec.clone(), ..Fit::default() }, Fit { kernel: spec, ..Fit::default() }] {
        let _ = (fit.check(), fit.memory(1000, 10), fit.memory(usize::MAX, usize::MAX), fit.labelled(), fit.centered());
        let _ = fit.streamed_memory(usize::MAX, 1 << 40, 0);
    }
}
