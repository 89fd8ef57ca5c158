//! The parameters requested for a fit: model files store them, so that the fit can be repeated.
//!
//! ```text
//! { method, kernel, components, support, fidelity, center, scaling, quantile, seed, words, and if they are given
//!   false_alarms, statistic, score_fidelity, robust, row_order, level }
//! ```
//!
//! Method and kernel of the model itself are resolved: penalties that were searched for and rules are numbers there.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::fit::{Fit, RowOrder, Statistic};
use crate::kernel;
use crate::method::Target;
use crate::spec::Spec;
use skpca_simd::Level;

/// The parameters requested for a fit.
///
/// ```
/// use skpca::{Fit, toys};
///
/// let model = Fit { seed: 7, ..Fit::default() }.train(&toys::parabola(0))?;
/// assert_eq!(model.parts().request.as_ref().map(|request| request.fit.seed), Some(7));
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The parameters of the fit.
    pub fit: Fit,
    /// The request as the caller spelled it, which is stored but not interpreted.
    pub words: Map<String, Value>,
}

impl Request {
    /// Returns the request as a JSON object.
    pub fn to_json(&self) -> Value {
        let fit = &self.fit;
        let (support, fidelity) = match fit.target {
            None => (None, None),
            Some(Target::Support(m)) => (Some(m), None),
            Some(Target::Fidelity(f)) => (None, Some(f)),
        };
        let mut json = json!({
            "method": fit.method.to_json(),
            "kernel": fit.kernel.to_json(),
            "components": fit.components,
            "support": support,
            "fidelity": fidelity,
            "center": fit.center,
            "scaling": fit.scaling.name(),
            "quantile": fit.quantile,
            "seed": fit.seed,
            "words": self.words,
        });
        if let Some(rate) = fit.false_alarms {
            json["false_alarms"] = rate.into();
        }
        if fit.statistic != Statistic::Distance {
            json["statistic"] = fit.statistic.name().into();
        }
        if fit.row_order != RowOrder::Auto {
            json["row_order"] = fit.row_order.name().into();
        }
        if let Some(asked) = fit.score_fidelity {
            json["score_fidelity"] = asked.into();
        }
        if fit.robust {
            json["robust"] = true.into();
        }
        if fit.level != Level::Auto {
            json["level"] = fit.level.name().into();
        }
        json
    }

    /// Returns the JSON object for the file of a model with this kernel. Lists that the kernel has too are null,
    /// because they may be as long as the data.
    pub(crate) fn to_file(&self, kernel: &Spec) -> Value {
        let mut request = self.clone();
        for (name, value) in &mut request.fit.kernel.fields {
            if value.is_array() && kernel.fields.get(name) == Some(value) {
                *value = Value::Null;
            }
        }
        request.to_json()
    }

    /// Reads the request in the file of a model with this kernel; files of older versions have none.
    pub(crate) fn from_file(json: &Value, of: &Spec) -> Result<Option<Request>> {
        if json.is_null() {
            return Ok(None);
        }
        // If the kernel lacks a list, report that, not the request that refers to it.
        kernel::build_resolved(of)?;
        let mut asked = Spec::from_json(&json["kernel"])?;
        for (name, value) in asked.fields.iter_mut().filter(|(_, value)| value.is_null()) {
            *value = of.fields.get(name).cloned().ok_or_else(|| wrong("kernel"))?;
        }
        let support = optional(json, "support", whole)?.map(Target::Support);
        let fidelity = optional(json, "fidelity", Value::as_f64)?.map(Target::Fidelity);
        let fit = Fit {
            method: Spec::from_json(&json["method"])?,
            kernel: asked,
            components: optional(json, "components", whole)?,
            target: support.or(fidelity),
            center: optional(json, "center", Value::as_bool)?,
            scaling: json["scaling"].as_str().ok_or_else(|| wrong("scaling"))?.parse()?,
            quantile: json["quantile"].as_f64().ok_or_else(|| wrong("quantile"))?,
            false_alarms: optional(json, "false_alarms", Value::as_f64)?,
            statistic: optional(json, "statistic", |value| value.as_str()?.parse().ok())?.unwrap_or_default(),
            score_fidelity: optional(json, "score_fidelity", Value::as_f64)?,
            robust: optional(json, "robust", Value::as_bool)?.unwrap_or_default(),
            row_order: optional(json, "row_order", |value| value.as_str()?.parse().ok())?.unwrap_or_default(),
            seed: json["seed"].as_u64().ok_or_else(|| wrong("seed"))?,
            level: Level::Auto,
        };
        fit.check()?;
        // Set after the check, because the model may have been fitted on another machine.
        let level = optional(json, "level", |value| value.as_str()?.parse().ok())?.unwrap_or_default();
        let fit = Fit { level, ..fit };
        let words = json["words"].as_object().ok_or_else(|| wrong("words"))?.clone();
        Ok(Some(Request { fit, words }))
    }
}

fn whole(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|value| usize::try_from(value).ok())
}

fn optional<T>(json: &Value, name: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Option<T>> {
    match &json[name] {
        Value::Null => Ok(None),
        value => read(value).map(Some).ok_or_else(|| wrong(name)),
    }
}

fn wrong(name: &str) -> Error {
    Error::file(format!("'{name}' of its request is missing or of the wrong type"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scaling, format, toys};

    fn read_back(fit: Fit, words: Value) -> Option<Request> {
        let mut model = fit.run(&toys::clusters(0), None, &()).unwrap();
        model.request_in(words.as_object().unwrap().clone());
        let mut bytes = Vec::new();
        format::write(&model, &mut bytes).unwrap();
        let read = format::read(&bytes[..]).unwrap();
        assert_eq!(read.parts(), model.parts());
        read.parts().request.clone()
    }

    #[test]
    fn a_file_stores_the_parameters_requested_not_the_resolved_ones() {
        let lists = Spec::new("conformal").with("delta", 0.5).with("weights", vec![1.0, -1.5]);
        let kernels = ["rbf", "rbf,gamma=mean", "polynomial,degree=2"].map(|text| text.parse().unwrap());
        let methods = ["l21", "l1,fraction=0.3", "energy", "threshold,keep=3"].map(|text| text.parse().unwrap());
        let fits = [
            Fit::default(),
            Fit { components: Some(2), target: Some(Target::Support(5)), center: Some(false), ..Fit::default() },
            Fit {
                target: Some(Target::Fidelity(0.5)),
                scaling: Scaling::Minmax,
                quantile: 0.9,
                seed: 7,
                ..Fit::default()
            },
            Fit { level: Level::Portable, ..Fit::default() },
            Fit::detector(),
            Fit { robust: true, ..Fit::detector() },
            Fit { score_fidelity: Some(0.5), ..Fit::detector() },
            Fit { false_alarms: Some(0.05), row_order: RowOrder::Any, ..Fit::default() },
            Fit { kernel: lists.with("vectors", vec![-0.5, 0.2, 0.7, 0.1]), ..Fit::default() },
        ];
        let fits = fits.into_iter();
        let fits = fits.chain(kernels.map(|kernel| Fit { kernel, ..Fit::default() }));
        for fit in fits.chain(methods.map(|method| Fit { method, components: Some(2), ..Fit::default() })) {
            let words = json!({"n_components": null, "kernel": "poly"});
            let expected = Request { fit: fit.clone(), words: words.as_object().unwrap().clone() };
            assert_eq!(read_back(fit, words), Some(expected));
        }
    }

    #[test]
    fn lists_of_the_kernel_are_stored_once() {
        let kernel = Spec::new("conformal").with("weights", vec![1.0]).with("vectors", vec![2.0]);
        let fit = Fit { kernel: kernel.clone(), ..Fit::default() };
        let json = Request { fit, words: Map::new() }.to_file(&kernel);
        assert_eq!(json["kernel"], json!({"name": "conformal", "weights": null, "vectors": null}));
    }

    #[test]
    fn a_request_is_not_trusted() {
        let kernel = Spec::new("rbf").with("gamma", 1.0);
        let good = Request { fit: Fit::default(), words: Map::new() }.to_file(&kernel);
        assert!(Request::from_file(&good, &kernel).unwrap().is_some());
        assert_eq!(Request::from_file(&Value::Null, &kernel), Ok(None));
        // Without a level, files are the same as before levels existed.
        assert!(good.get("level").is_none());
        for (name, value) in [
            ("method", json!("lasso")),
            ("method", json!({"name": "l21", "penalty": -1})),
            ("kernel", json!({"name": "rbf", "breadth": 1})),
            ("kernel", json!({"name": "rbf", "gamma": []})),
            ("kernel", json!({"name": "rbf", "vectors": null})),
            ("components", json!(0)),
            ("components", json!(-1)),
            ("support", json!("many")),
            ("fidelity", json!(2)),
            ("center", json!(1)),
            ("scaling", json!("log")),
            ("quantile", json!(12)),
            ("false_alarms", json!(2)),
            ("row_order", json!("random")),
            ("statistic", json!("euclid")),
            ("robust", json!("very")),
            ("score_fidelity", json!(2)),
            ("seed", json!(-1)),
            ("level", json!("sse9")),
            ("words", json!([1])),
        ] {
            let mut bad = good.clone();
            bad[name] = value;
            assert!(Request::from_file(&bad, &kernel).is_err(), "{bad}");
        }
        assert!(Request::from_file(&json!(3), &kernel).is_err());
    }
}
