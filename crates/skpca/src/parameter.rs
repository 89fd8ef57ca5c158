//! Declarations of parameters in the registries: their values, defaults and help texts.
//!
//! Specs are parsed by these declarations ([`Fields`](crate::spec::Fields)), and help texts, `skpca compare` and the
//! bindings are generated from them, so documentation and behaviour cannot differ.

use std::fmt;

use serde_json::{Value, json};

/// A parameter of a method or a kernel.
///
/// ```
/// use skpca::method::METHODS;
/// use skpca::Parameter;
///
/// let greedy = METHODS.iter().find(|entry| entry.name == "greedy").unwrap();
/// let exchanges: &Parameter = greedy.parameters.iter().find(|parameter| parameter.name == "exchanges").unwrap();
/// assert!(!exchanges.help.is_empty() && !exchanges.fixes_size);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The name that users write.
    pub name: &'static str,
    /// The valid values.
    pub domain: Domain,
    /// The default.
    pub default: DefaultValue,
    /// A one-line description.
    pub help: &'static str,
    /// The equivalent parameter of the scikit-learn estimators.
    pub sklearn: Option<&'static str>,
    /// Whether it determines the number of points, so that no size or fidelity can be requested with it.
    pub fixes_size: bool,
}

/// The valid values of a parameter.
///
/// ```
/// use skpca::method::METHODS;
/// use skpca::Domain;
///
/// let greedy = METHODS.iter().find(|entry| entry.name == "greedy").unwrap();
/// let exchanges = greedy.parameters.iter().find(|parameter| parameter.name == "exchanges").unwrap();
/// assert!(matches!(exchanges.domain, Domain::Count { least: 0, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A finite number.
    Number(Range),
    /// An integer in a closed interval; it may be spelled `2.0`.
    #[allow(missing_docs)]
    Count { least: usize, most: usize },
    /// true or false.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A positive number, or the name of a rule that computes one.
    Bandwidth,
    /// One or more numbers ≥ 0: `0.1`, `[0.1, 0.2]`, or `0.1:0.2` on the command line.
    Numbers,
    /// One or more integers ≥ 1: `7`, `[7, 4]`, or `7:4` on the command line.
    Counts,
    /// A list of finite numbers.
    Reals,
    /// The name of another kernel, whose parameters are given alongside.
    Kernel,
}

/// An interval of finite numbers.
///
/// ```
/// use skpca::{DefaultValue, Domain, Parameter, Range};
///
/// let delta = Parameter::number("delta", Range::Above(0.0), 0.5, "what a kernel of your own takes");
/// assert_eq!((delta.domain, delta.default), (Domain::Number(Range::Above(0.0)), DefaultValue::Number(0.5)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Any finite number.
    Any,
    /// Numbers ≥ this one.
    From(f64),
    /// Numbers > this one.
    Above(f64),
    /// Numbers ≥ the first and ≤ the second.
    Between(f64, f64),
    /// Numbers ≥ the first and < the second.
    Below(f64, f64),
}

/// The default of a parameter.
///
/// ```
/// use skpca::method::METHODS;
/// use skpca::DefaultValue;
///
/// let greedy = METHODS.iter().find(|entry| entry.name == "greedy").unwrap();
/// let exchanges = greedy.parameters.iter().find(|parameter| parameter.name == "exchanges").unwrap();
/// assert_eq!(exchanges.default, DefaultValue::Count(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // values of the domains of the same names
pub enum DefaultValue {
    Number(f64),
    Count(usize),
    Boolean(bool),
    Word(&'static str),
    /// No value; the text says what happens instead.
    Unset(&'static str),
}

/// The bandwidth rules.
pub(crate) const RULES: [&str; 4] = ["median", "mean", "scale", "auto"];
/// Maximum of a count. Counts cost time or memory, so a larger one can only be a mistake.
const MANY: usize = 1_000_000;

impl Parameter {
    /// Declares a parameter without a default value; `otherwise` says what happens if it is not given.
    pub const fn optional(
        name: &'static str,
        domain: Domain,
        otherwise: &'static str,
        help: &'static str,
    ) -> Parameter {
        Parameter { name, domain, default: DefaultValue::Unset(otherwise), help, sklearn: None, fixes_size: false }
    }

    /// Declares a number in a range.
    pub const fn number(name: &'static str, range: Range, default: f64, help: &'static str) -> Parameter {
        let default = DefaultValue::Number(default);
        Parameter { default, ..Parameter::optional(name, Domain::Number(range), "", help) }
    }

    /// Declares an integer ≥ `least`.
    pub const fn count(name: &'static str, least: usize, default: usize, help: &'static str) -> Parameter {
        let default = DefaultValue::Count(default);
        Parameter { default, ..Parameter::optional(name, Domain::from(least), "", help) }
    }

    /// Declares a Boolean.
    pub const fn boolean(name: &'static str, default: bool, help: &'static str) -> Parameter {
        let default = DefaultValue::Boolean(default);
        Parameter { default, ..Parameter::optional(name, Domain::Boolean, "", help) }
    }

    /// Declares a choice of words; the first one is the default.
    pub const fn choice(name: &'static str, words: &'static [&'static str], help: &'static str) -> Parameter {
        let default = DefaultValue::Word(words[0]);
        Parameter { default, ..Parameter::optional(name, Domain::Choice(words), "", help) }
    }

    /// Declares a bandwidth whose default is the rule `default`.
    pub const fn bandwidth(name: &'static str, default: &'static str, help: &'static str) -> Parameter {
        let default = DefaultValue::Word(default);
        Parameter { default, ..Parameter::optional(name, Domain::Bandwidth, "", help) }
    }

    /// Sets the name of the equivalent scikit-learn parameter.
    pub(crate) const fn as_sklearn(self, name: &'static str) -> Parameter {
        Parameter { sklearn: Some(name), ..self }
    }

    /// Declares that the parameter determines the number of points.
    pub(crate) const fn fixing_size(self) -> Parameter {
        Parameter { fixes_size: true, ..self }
    }

    /// Returns the declaration as JSON; `default` is null if there is only a text.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.domain.name(),
            "values": self.domain.to_string(),
            "choices": self.domain.choices(),
            "default": self.default.value(),
            "default_text": self.default.to_string(),
            "help": self.help,
            "sklearn": self.sklearn,
            "fixes_size": self.fixes_size,
        })
    }
}

impl Domain {
    /// Returns the domain of integers ≥ `least`.
    pub(crate) const fn from(least: usize) -> Domain {
        Domain::Count { least, most: MANY }
    }

    /// Returns the name of the type.
    fn name(&self) -> &'static str {
        match self {
            Domain::Number(_) => "number",
            Domain::Count { .. } => "count",
            Domain::Boolean => "boolean",
            Domain::Choice(_) => "choice",
            Domain::Bandwidth => "bandwidth",
            Domain::Numbers => "numbers",
            Domain::Counts => "counts",
            Domain::Reals => "reals",
            Domain::Kernel => "kernel",
        }
    }

    /// Returns the valid words.
    fn choices(&self) -> &[&'static str] {
        match self {
            Domain::Choice(words) => words,
            Domain::Bandwidth => &RULES,
            _ => &[],
        }
    }

    /// Returns whether a value is valid. Numeric bandwidths and names of kernels are checked where they are used.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match self {
            Domain::Number(range) => value.as_f64().is_some_and(|v| range.holds(v)),
            Domain::Count { least, most } => {
                value.as_f64().is_some_and(|v| v.fract() == 0.0 && (*least as f64..=*most as f64).contains(&v))
            }
            Domain::Boolean => value.is_boolean(),
            Domain::Choice(_) => value.as_str().is_some_and(|word| self.choices().contains(&word)),
            Domain::Bandwidth => value.is_number() || value.as_str().is_some_and(|rule| RULES.contains(&rule)),
            Domain::Numbers => {
                numbers(value).is_some_and(|list| !list.is_empty() && list.iter().all(|v| Range::From(0.0).holds(*v)))
            }
            Domain::Counts => {
                let is_count = |v: &f64| v.fract() == 0.0 && (1.0..=MANY as f64).contains(v);
                numbers(value).is_some_and(|list| !list.is_empty() && list.iter().all(is_count))
            }
            Domain::Reals => value.is_array() && numbers(value).is_some_and(|list| list.iter().all(|v| v.is_finite())),
            Domain::Kernel => value.is_string(),
        }
    }
}

impl Range {
    fn holds(&self, v: f64) -> bool {
        v.is_finite()
            && match *self {
                Range::Any => true,
                Range::From(least) => v >= least,
                Range::Above(bound) => v > bound,
                Range::Between(least, most) => (least..=most).contains(&v),
                Range::Below(least, bound) => (least..bound).contains(&v),
            }
    }
}

/// Returns the numbers of a number, a list of them, or a string of several separated by colons.
pub(crate) fn numbers(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::Array(list) => list.iter().map(Value::as_f64).collect(),
        Value::String(text) => text.split(':').map(|part| part.parse().ok()).collect(),
        number => number.as_f64().map(|v| vec![v]),
    }
}

impl DefaultValue {
    /// Returns the default as a spec has it.
    pub fn value(&self) -> Option<Value> {
        match *self {
            DefaultValue::Number(v) => Some(Value::from(v)),
            DefaultValue::Count(v) => Some(Value::from(v)),
            DefaultValue::Boolean(v) => Some(Value::from(v)),
            DefaultValue::Word(v) => Some(Value::from(v)),
            DefaultValue::Unset(_) => None,
        }
    }
}

impl fmt::Display for Domain {
    /// Writes the text after "expected" in error messages, also used in help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Number(range) => write!(f, "{range}"),
            Domain::Count { least, most: MANY } => write!(f, "an integer ≥ {least}, at most {MANY}"),
            Domain::Count { least, most } => write!(f, "an integer from {least} to {most}"),
            Domain::Boolean => write!(f, "true or false"),
            Domain::Choice(words) => write!(f, "{}", words.join(" or ")),
            Domain::Bandwidth => write!(f, "a positive number, median, mean, scale or auto"),
            Domain::Numbers => write!(f, "a number ≥ 0, or several (0.1:0.2)"),
            Domain::Counts => write!(f, "an integer ≥ 1, or several (7:4:4)"),
            Domain::Reals => write!(f, "a list of finite numbers"),
            Domain::Kernel => write!(f, "the name of another kernel"),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Any => write!(f, "a finite number"),
            Range::From(least) => write!(f, "a number ≥ {}", short(*least)),
            Range::Above(bound) => write!(f, "a number above {}", short(*bound)),
            Range::Between(least, most) => write!(f, "a number from {} to {}", short(*least), short(*most)),
            Range::Below(least, bound) => write!(f, "a number ≥ {} and < {}", short(*least), short(*bound)),
        }
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Number(v) => write!(f, "{}", short(*v)),
            DefaultValue::Count(v) => write!(f, "{v}"),
            DefaultValue::Boolean(v) => write!(f, "{v}"),
            DefaultValue::Word(text) | DefaultValue::Unset(text) => write!(f, "{text}"),
        }
    }
}

/// Formats a number, in scientific notation if it is very large or small.
fn short(v: f64) -> String {
    if v != 0.0 && !(0.01..1e6).contains(&v.abs()) { format!("{v:e}") } else { v.to_string() }
}

/// Returns summary and parameters of a registry entry, for help texts.
pub(crate) fn about(summary: &str, source: Option<&str>, parameters: &[Parameter]) -> String {
    let source = source.map_or(String::new(), |source| format!(" ({source})"));
    let with_default = |p: &Parameter| match p.default {
        DefaultValue::Unset(_) => p.name.to_string(),
        value => format!("{} = {value}", p.name),
    };
    let parameters: Vec<String> = parameters.iter().map(with_default).collect();
    let list = if parameters.is_empty() { "no parameters".to_string() } else { parameters.join(", ") };
    format!("{summary}{source}; {list}")
}

#[cfg(test)]
impl Domain {
    /// Returns some valid and some invalid values.
    pub(crate) fn examples(&self) -> (Vec<Value>, Vec<Value>) {
        let outside = |range: &Range| match *range {
            Range::Any => json!("much"),
            Range::Above(bound) => json!(bound),
            Range::From(least) | Range::Between(least, _) | Range::Below(least, _) => json!(least - 1.0),
        };
        match self {
            Domain::Number(range) => (vec![json!(0.5)], vec![outside(range), json!("x")]),
            Domain::Count { least, most } => (vec![json!(least), json!(2.0)], vec![json!(2.5), json!(most + 1)]),
            Domain::Boolean => (vec![json!(true), json!(false)], vec![json!(1), json!("yes")]),
            Domain::Choice(words) => (words.iter().map(|word| json!(word)).collect(), vec![json!("x"), json!(1)]),
            Domain::Bandwidth => (vec![json!("mean"), json!(0.5)], vec![json!("x"), json!(0.0), json!(true)]),
            Domain::Numbers => (vec![json!(0.5), json!([0.5, 1]), json!("0.5:1")], vec![json!(-1), json!([])]),
            Domain::Counts => (vec![json!(2), json!([2, 1]), json!("2:1")], vec![json!(0), json!(0.5), json!([])]),
            Domain::Reals => (vec![json!([1.0, -1.0])], vec![json!(1), json!(["x"])]),
            Domain::Kernel => (vec![json!("rbf")], vec![json!(1), json!("x")]),
        }
    }
}
