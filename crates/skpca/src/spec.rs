//! A name with parameters, with the same spelling everywhere: `rbf,gamma=0.5` on a command line and
//! `{"name": "rbf", "gamma": 0.5}` in JSON. Registries turn it into a kernel or a method; an unknown field is an error
//! that lists the valid names.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::parameter::{Domain, Parameter, numbers};

/// Panic messages for entries that do not match their declarations; the tests of the registries check every entry.
const AS_DECLARED: &str = "a value as declared";
const DEFAULT: &str = "a default is declared";

/// Maximum number of elements of a list that is written out; of longer ones only the length is written.
const MAX_WRITTEN: usize = 64;
/// Maximum number of characters of a list that is written out by [`Spec::brief`].
const MAX_BRIEF: usize = 64;

/// The name of a method or kernel with its parameters.
///
/// ```
/// let spec: skpca::Spec = "rbf,gamma=0.5".parse()?;
/// assert_eq!(spec.to_json().to_string(), r#"{"gamma":0.5,"name":"rbf"}"#);
/// assert_eq!(skpca::Spec::from_json(&spec.to_json())?, spec);
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The name of the registry entry.
    pub name: String,
    /// The parameters by name.
    pub fields: BTreeMap<String, Value>,
}

impl Spec {
    /// Creates a spec without parameters.
    pub fn new(name: &str) -> Spec {
        Spec { name: name.into(), fields: BTreeMap::new() }
    }

    /// Adds a parameter.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Spec {
        self.fields.insert(field.into(), value.into());
        self
    }

    /// Returns `{"name": …, field: value, …}`.
    pub fn to_json(&self) -> Value {
        let name = ("name".to_string(), Value::from(self.name.clone()));
        Value::Object(std::iter::once(name).chain(self.fields.clone()).collect())
    }

    /// Parses the JSON form; a bare string is a name without parameters.
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
    /// Writes the command-line spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written(f, |list| list.len() <= MAX_WRITTEN)
    }
}

impl Spec {
    /// Returns the command-line spelling with long lists, as learned kernels have, replaced by their length.
    pub fn brief(&self) -> String {
        let mut text = String::new();
        self.written(&mut text, |list| between_colons(list).len() <= MAX_BRIEF).expect("a string takes any text");
        text
    }

    /// Writes name and fields, and only the length of lists that are not `short`.
    fn written(&self, to: &mut impl fmt::Write, short: impl Fn(&[Value]) -> bool) -> fmt::Result {
        write!(to, "{}", self.name)?;
        for (key, value) in &self.fields {
            match value {
                Value::String(text) => write!(to, ",{key}={text}")?,
                Value::Array(list) if short(list) => write!(to, ",{key}={}", between_colons(list))?,
                // Such lists come from files and JSON, never from a command line.
                Value::Array(list) => write!(to, ",{key}=({} numbers)", list.len())?,
                other => write!(to, ",{key}={other}")?,
            }
        }
        Ok(())
    }
}

/// Returns the command-line spelling of a list: `0.1:0.2`.
fn between_colons(list: &[Value]) -> String {
    list.iter().map(Value::to_string).collect::<Vec<_>>().join(":")
}

/// The fields of a spec, read by a registry entry according to its declarations.
///
/// # Panics
///
/// Reading a field that the entry does not declare, or declares with another type, is a bug in the program and panics.
pub struct Fields {
    left: BTreeMap<String, Value>,
    declared: &'static [Parameter],
    pub(crate) known: Vec<&'static str>,
}

impl Fields {
    pub(crate) fn new(spec: &Spec, declared: &'static [Parameter]) -> Fields {
        Fields { left: spec.fields.clone(), declared, known: Vec::new() }
    }

    /// Switches to the declarations of another entry.
    pub(crate) fn declare(&mut self, declared: &'static [Parameter]) {
        self.declared = declared;
    }

    /// Returns the given value, or the default.
    pub fn value(&mut self, name: &str) -> Result<Option<Value>> {
        let declared = self.declared.iter().find(|parameter| parameter.name == name);
        let parameter = declared.unwrap_or_else(|| panic!("{name} is read and not declared"));
        self.know(parameter.name);
        match self.left.remove(name) {
            None => Ok(parameter.default.value()),
            Some(value) if parameter.domain.holds(&value) => Ok(Some(value)),
            Some(value) => Err(Error::parameter(name, &value, &parameter.domain.to_string())),
        }
    }

    /// Returns whether a field was given, and marks it as known.
    pub fn is_given(&mut self, name: &'static str) -> bool {
        self.know(name);
        self.left.contains_key(name)
    }

    fn know(&mut self, name: &'static str) {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
    }

    /// Returns a number if there is one.
    pub fn optional_number(&mut self, name: &str) -> Result<Option<f64>> {
        Ok(self.value(name)?.map(|value| value.as_f64().expect(AS_DECLARED)))
    }

    /// Returns a number that has a default.
    pub fn number(&mut self, name: &str) -> Result<f64> {
        Ok(self.optional_number(name)?.expect(DEFAULT))
    }

    /// Returns an integer if there is one.
    pub fn optional_count(&mut self, name: &str) -> Result<Option<usize>> {
        Ok(self.optional_number(name)?.map(|v| v as usize))
    }

    /// Returns an integer that has a default.
    pub fn count(&mut self, name: &str) -> Result<usize> {
        Ok(self.optional_count(name)?.expect(DEFAULT))
    }

    /// Returns one of the declared words.
    pub fn choice(&mut self, name: &str) -> Result<&'static str> {
        let value = self.value(name)?.expect(DEFAULT);
        let declared = self.declared.iter().find(|parameter| parameter.name == name);
        let Some(Domain::Choice(words)) = declared.map(|parameter| parameter.domain) else { panic!("{AS_DECLARED}") };
        Ok(words.iter().find(|word| value == **word).expect(AS_DECLARED))
    }

    /// Returns a Boolean.
    pub fn boolean(&mut self, name: &str) -> Result<bool> {
        Ok(self.value(name)?.expect(DEFAULT).as_bool().expect(AS_DECLARED))
    }

    /// Returns one or more numbers if there are any.
    pub fn optional_numbers(&mut self, name: &str) -> Result<Option<Vec<f64>>> {
        Ok(self.value(name)?.map(|value| numbers(&value).expect(AS_DECLARED)))
    }

    /// Rejects fields that were not read.
    pub(crate) fn finish(self, what: &'static str) -> Result<()> {
        match self.left.into_keys().next() {
            None => Ok(()),
            Some(name) => {
                let valid = if self.known.is_empty() {
                    vec!["nothing (it has no parameters)".to_string()]
                } else {
                    self.known.iter().map(|k| k.to_string()).collect()
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
    fn invalid_spellings_are_rejected() {
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
        let penalties = Spec::new("l1").with("penalty", vec![0.1, 0.25, 3.0]);
        assert_eq!(penalties.to_string(), "l1,penalty=0.1:0.25:3.0");
        assert_eq!(penalties.brief(), penalties.to_string(), "few numbers say more than their count");
        assert_eq!(Spec::new("l1").with("penalty", vec![0.1; 20]).brief(), "l1,penalty=(20 numbers)");
        assert_eq!(Spec::new("l1").with("penalty", vec![0.1; 65]).to_string(), "l1,penalty=(65 numbers)");
    }
}
