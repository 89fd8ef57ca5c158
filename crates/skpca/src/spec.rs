//! A name with parameters, spelled the same everywhere: `rbf,gamma=0.5` on a command line and
//! `{"name": "rbf", "gamma": 0.5}` in JSON. Registries turn it into a kernel or a method, taking the fields
//! they know; what is left over is refused with the valid names listed.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::error::{Error, Result};

/// `name` and its fields.
///
/// ```
/// let spec: skpca::Spec = "rbf,gamma=0.5".parse()?;
/// assert_eq!(spec.to_json().to_string(), r#"{"gamma":0.5,"name":"rbf"}"#);
/// assert_eq!(skpca::Spec::from_json(&spec.to_json())?, spec);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Which entry of the registry.
    pub name: String,
    /// Parameters, by name.
    pub fields: BTreeMap<String, Value>,
}

impl Spec {
    /// A name without parameters.
    pub fn new(name: &str) -> Spec {
        Spec { name: name.into(), fields: BTreeMap::new() }
    }

    /// The same with one more parameter.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Spec {
        self.fields.insert(field.into(), value.into());
        self
    }

    /// `{"name": …, field: value, …}`
    pub fn to_json(&self) -> Value {
        let name = ("name".to_string(), Value::from(self.name.clone()));
        Value::Object(std::iter::once(name).chain(self.fields.clone()).collect())
    }

    /// Reads the JSON form; a bare string is a name without parameters.
    pub fn from_json(value: &Value) -> Result<Spec> {
        let wrong = || Error::parameter("spec", value, "a name or an object with a name");
        if let Value::String(name) = value {
            return Ok(Spec::new(name));
        }
        let mut fields: BTreeMap<_, _> = value.as_object().ok_or_else(wrong)?.clone().into_iter().collect();
        match fields.remove("name") {
            Some(Value::String(name)) => Ok(Spec { name, fields }),
            _ => Err(wrong()),
        }
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Spec> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().filter(|n| !n.is_empty() && !n.contains('='));
        let mut spec = Spec::new(name.ok_or_else(|| Error::parameter("spec", text, "NAME or NAME,key=value,…"))?);
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| Error::parameter(&spec.name, part, "key=value after the name"))?;
            let value = match (value.parse::<f64>(), value) {
                (Ok(number), _) if number.is_finite() => Value::from(number),
                (_, "true") => Value::from(true),
                (_, "false") => Value::from(false),
                (_, text) => Value::from(text),
            };
            if spec.fields.insert(key.into(), value).is_some() {
                return Err(Error::parameter(key, part, "each key once"));
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    /// The command-line spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for (key, value) in &self.fields {
            match value {
                Value::String(text) => write!(f, ",{key}={text}")?,
                // No command line has these: they come from files and JSON.
                Value::Array(list) => write!(f, ",{key}=({} numbers)", list.len())?,
                other => write!(f, ",{key}={other}")?,
            }
        }
        Ok(())
    }
}

/// The fields of a spec on their way into an entry of a registry.
pub(crate) struct Fields {
    left: BTreeMap<String, Value>,
    known: Vec<&'static str>,
}

impl Fields {
    pub(crate) fn new(spec: &Spec) -> Fields {
        Fields { left: spec.fields.clone(), known: Vec::new() }
    }

    pub(crate) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name)
    }

    /// A finite number, or the default.
    pub(crate) fn number(&mut self, name: &'static str, default: f64) -> Result<f64> {
        match self.value(name) {
            None => Ok(default),
            Some(value) => value
                .as_f64()
                .filter(|v| v.is_finite())
                .ok_or_else(|| Error::parameter(name, &value, "a finite number")),
        }
    }

    /// A number from 0, if given.
    pub(crate) fn non_negative(&mut self, name: &'static str) -> Result<Option<f64>> {
        self.checked(name, "a number from 0", |value| value.as_f64().filter(|v| *v >= 0.0 && v.is_finite()))
    }

    /// A number above 0, if given.
    pub(crate) fn positive(&mut self, name: &'static str) -> Result<Option<f64>> {
        self.checked(name, "a number above 0", |value| value.as_f64().filter(|v| *v > 0.0 && v.is_finite()))
    }

    /// A whole number from 0 to a million, if given; command lines spell it as any number. What is counted takes time, so
    /// a larger number could only be a mistake.
    pub(crate) fn count(&mut self, name: &'static str) -> Result<Option<usize>> {
        let whole = |v: &f64| (0.0..=1e6).contains(v) && v.fract() == 0.0;
        let expected = "a whole number from 0, at most 1000000";
        self.checked(name, expected, |value| value.as_f64().filter(whole).map(|v| v as usize))
    }

    /// One of `names`, the first of them where nothing is said.
    pub(crate) fn choice(&mut self, name: &'static str, names: &[&'static str]) -> Result<&'static str> {
        let known = |value: &Value| names.iter().copied().find(|known| value.as_str() == Some(known));
        Ok(self.checked(name, &names.join(" or "), known)?.unwrap_or(names[0]))
    }

    /// true or false, or the default.
    pub(crate) fn boolean(&mut self, name: &'static str, default: bool) -> Result<bool> {
        Ok(self.checked(name, "true or false", Value::as_bool)?.unwrap_or(default))
    }

    /// One number or several, none below 0, if given: `0.1`, `[0.1, 0.2]`, or `0.1:0.2` on a command line.
    pub(crate) fn numbers(&mut self, name: &'static str) -> Result<Option<Vec<f64>>> {
        let all = |value: &Value| -> Option<Vec<f64>> {
            match value {
                Value::Array(list) => list.iter().map(Value::as_f64).collect(),
                Value::String(text) => text.split(':').map(|part| part.parse().ok()).collect(),
                number => number.as_f64().map(|v| vec![v]),
            }
        };
        let sound = |list: &Vec<f64>| !list.is_empty() && list.iter().all(|v| *v >= 0.0 && v.is_finite());
        self.checked(name, "a number from 0, or several (0.1:0.2)", |value| all(value).filter(sound))
    }

    /// Any finite numbers, if given.
    pub(crate) fn reals(&mut self, name: &'static str) -> Result<Option<Vec<f64>>> {
        let all = |value: &Value| -> Option<Vec<f64>> {
            value.as_array()?.iter().map(|v| v.as_f64().filter(|v| v.is_finite())).collect()
        };
        self.checked(name, "a list of finite numbers", all)
    }

    fn checked<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        self.value(name).map(|value| read(&value).ok_or_else(|| Error::parameter(name, &value, expected))).transpose()
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self, what: &'static str) -> Result<()> {
        match self.left.into_keys().next() {
            None => Ok(()),
            Some(name) => {
                let valid = match self.known.is_empty() {
                    true => vec!["nothing (it has no parameters)".to_string()],
                    false => self.known.iter().map(|k| k.to_string()).collect(),
                };
                Err(Error::Unknown { what, name, valid })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_spellings_are_refused() {
        for text in ["", ",gamma=1", "gamma=1", "rbf,gamma", "rbf,gamma=1,gamma=2"] {
            assert!(text.parse::<Spec>().is_err(), "{text:?}");
        }
        for json in ["3", "{}", r#"{"name": 3}"#, "[]"] {
            assert!(Spec::from_json(&serde_json::from_str(json).unwrap()).is_err(), "{json}");
        }
    }

    #[test]
    fn display_is_read_back() {
        let spec: Spec = "polynomial,degree=3,gamma=scale".parse().unwrap();
        assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
    }
}
