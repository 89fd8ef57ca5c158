//! SQL: the [`Formula`] as a SELECT over named columns, in 64 bits. It uses arithmetic and, depending on the kernel,
//! the functions EXP, POWER, TANH, SQRT and ABS.
//!
//! ```text
//! table ── columns scaled ── [lengths, f] ── kernel values ── features ──► pc1, …, score, t2, threshold, novel
//! ```

use std::fmt::Write as _;

use skpca::kernel::{Outer, Stretch};
use skpca::{Input, Kind, Model, Unknown};

use crate::formula::{Far, Formula, Linear, Values, description};
use crate::{Error, Options};

pub(crate) fn write(model: &Model, formula: &Formula, options: &Options) -> Result<Vec<u8>, Error> {
    let mut text = format!("-- A sparse kernel PCA model, made by skpca {}.\n", env!("CARGO_PKG_VERSION"));
    for (key, value) in description(model).into_iter().filter(|(_, value)| !value.is_null()) {
        let _ = writeln!(text, "-- {key}: {value}");
    }
    text += "-- A row is novel if its score is above the threshold, or unknown.\n";
    let mut query = Query { layers: Vec::new(), keep: &options.keep, from: quoted(&options.name) };
    query.scale(formula);
    let own = query.kernel(formula);
    query.features(formula, &own);
    text += &query.finish(formula);
    if text.contains('\0') { Err(Error::ZeroByte) } else { Ok(text.into_bytes()) }
}

/// The numbers made from a column of a table; NULL if skpca rejects the cell.
fn taken_in(input: &Input, unknown: Unknown) -> Vec<String> {
    let column = quoted(&input.name);
    let (values, fill) = match &input.kind {
        Kind::Number { fill: None } => return vec![column],
        Kind::Number { fill: Some(fill) } => return vec![format!("COALESCE({column}, {})", number(*fill))],
        Kind::Category { values, fill } => (values, fill),
    };
    let cell = format!("NULLIF(TRIM({column}), '')");
    let cell = fill.map_or(cell.clone(), |k| format!("COALESCE({cell}, {})", literal(&values[k])));
    let known = match unknown {
        Unknown::Zero => format!("{cell} IS NOT NULL"),
        Unknown::Refuse => format!("{cell} IN ({})", values.iter().map(|v| literal(v)).collect::<Vec<_>>().join(", ")),
    };
    let one = |value: &String| format!("CASE WHEN {cell} = {} THEN 1e0 WHEN {known} THEN 0e0 END", literal(value));
    values.iter().map(one).collect()
}

/// A SQL string literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A chain of common table expressions, each with the columns that later ones need.
struct Query<'a> {
    layers: Vec<String>,
    keep: &'a [String],
    from: String,
}

/// An expression and its name.
type Named = (String, String);

impl Query<'_> {
    /// Adds a layer with these columns and those to keep.
    fn layer(&mut self, name: &str, columns: &[Named]) {
        let kept = self.keep.iter().map(|column| format!("    {}", quoted(column)));
        let lines: Vec<String> =
            kept.chain(columns.iter().map(|(what, name)| format!("    {what} AS {name}"))).collect();
        self.layers.push(format!("{name} AS (\n  SELECT\n{}\n  FROM {}\n)", lines.join(",\n"), self.from));
        self.from = name.into();
    }

    fn scale(&mut self, formula: &Formula) {
        let steps = formula.shift.iter().zip(&formula.offset).zip(&formula.scale);
        let inputs = match &formula.intake {
            Some(intake) => intake.inputs.iter().flat_map(|input| taken_in(input, intake.unknown)).collect(),
            None => formula.inputs().iter().map(|name| quoted(name)).collect::<Vec<_>>(),
        };
        let columns = inputs.into_iter().zip(steps).enumerate();
        let scaled = columns.map(|(k, (input, ((shift, offset), scale)))| {
            (format!("(({input} - {}) - {}) / {}", number(*shift), number(*offset), number(*scale)), u(k))
        });
        let scaled: Vec<Named> = scaled.collect();
        self.layer("skpca_scaled", &scaled);
        if let Some(stretch) = &formula.stretch {
            let f = (stretched(stretch), "skpca_f".to_string());
            self.layer("skpca_stretched", &[same(u, formula.d()), vec![f]].concat());
        }
    }

    /// Adds a layer of centred kernel values and returns the expression of k(x, x) over it.
    fn kernel(&mut self, formula: &Formula) -> String {
        let d = formula.d();
        let mut own: Vec<Named> = Vec::new();
        let mut plain: Vec<String> = match &formula.values {
            Values::Columns => {
                own.push((sum(squares(d)), "skpca_own".into()));
                (0..d).map(u).collect()
            }
            Values::Gaussian { gamma, points } => points.rows().map(|z| gaussian(*gamma, z)).collect(),
            Values::Manhattan { gamma, points } => points.rows().map(|z| manhattan(*gamma, z)).collect(),
            Values::Cosine { points } => {
                self.unit(formula);
                own.push(("CASE WHEN skpca_length = 0e0 THEN 0e0 ELSE 1e0 END".into(), "skpca_own".into()));
                points.rows().map(|z| combination(z, u)).collect()
            }
            Values::Dot { .. } => {
                let (values, k) = self.dot(formula);
                own.push((k, "skpca_own".into()));
                values
            }
        };
        let one = own.is_empty();
        if formula.stretch.is_some() {
            plain =
                plain.iter().zip(&formula.factors).map(|(v, f)| format!("{v} * (skpca_f * {})", number(*f))).collect();
            own.push(("skpca_f".into(), "skpca_f".into()));
        }
        let centred = plain.into_iter().zip(&formula.mean).enumerate();
        let values = centred.map(
            |(i, (value, mu))| if *mu == 0.0 { (value, v(i)) } else { (format!("{value} - {}", number(*mu)), v(i)) },
        );
        let far = match (&formula.far, &formula.values) {
            // Computed earlier, before the rows were normalised to unit length.
            (Some(_), Values::Cosine { .. }) => Some("skpca_far".to_string()),
            (far, _) => far.as_ref().map(far_of),
        };
        let far = far.map(|far| (far, "skpca_far".to_string()));
        let values: Vec<Named> = values.chain(own).chain(far).collect();
        self.layer("skpca_kernel", &values);
        let own = if one { "1e0" } else { "skpca_own" };
        if formula.stretch.is_some() { format!("{own} * (skpca_f * skpca_f)") } else { own.into() }
    }

    /// Adds a layer of rows normalised to unit length, with their original lengths.
    fn unit(&mut self, formula: &Formula) {
        let d = formula.d();
        let f: Vec<Named> = formula.stretch.iter().map(|_| ("skpca_f".to_string(), "skpca_f".to_string())).collect();
        let length = (format!("SQRT({})", sum(squares(d))), "skpca_length".to_string());
        let far = formula.far.iter().map(|far| (far_of(far), "skpca_far".to_string())).collect();
        self.layer("skpca_lengths", &[same(u, d), vec![length.clone()], f.clone(), far].concat());
        let far = passed(formula.far.is_some(), "skpca_far").collect();
        let unit =
            (0..d).map(|k| (format!("CASE WHEN skpca_length = 0e0 THEN 0e0 ELSE {} / skpca_length END", u(k)), u(k)));
        let length = ("skpca_length".to_string(), "skpca_length".to_string());
        self.layer("skpca_unit", &[unit.collect(), vec![length], f, far].concat());
    }

    /// Adds a layer of inner products and returns the expressions of kernel values and of k(x, x) over it.
    fn dot(&mut self, formula: &Formula) -> (Vec<String>, String) {
        let Values::Dot { gamma, points, constants, own, own_constant, outer } = &formula.values else {
            unreachable!("called for dot-product kernels only")
        };
        let t = |i: usize| format!("skpca_t{}", i + 1);
        let inner = |(i, (z, constant)): (usize, (&[f64], &f64))| {
            let scaled: Vec<f64> = z.iter().map(|z| gamma * z).collect();
            (format!("{} + {}", combination(&scaled, u), number(*constant)), t(i))
        };
        let mut layer: Vec<Named> = points.rows().zip(constants).enumerate().map(inner).collect();
        let lengths = format!("{} * {}", number(*gamma), sum(squares(formula.d())));
        let own = format!("{lengths} + {} + {}", combination(own, u), number(*own_constant));
        layer.push((own, "skpca_t".into()));
        layer.extend(formula.stretch.iter().map(|_| ("skpca_f".to_string(), "skpca_f".to_string())));
        self.layer("skpca_inner", &layer);
        let outer = |t: String| match outer {
            Outer::Identity => t,
            Outer::Power(power) => format!("POWER({t}, {power})"),
            Outer::Tanh => format!("TANH({t})"),
        };
        ((0..points.n()).map(|i| outer(t(i))).collect(), outer("skpca_t".into()))
    }

    /// Adds the layers of features and of the score.
    fn features(&mut self, formula: &Formula, own: &str) {
        let mut columns = linear(&formula.features, v, |k| format!("pc{}", k + 1));
        let mut length = format!("{own} - {}", number(formula.mean_norm));
        if formula.beta.iter().any(|beta| *beta != 0.0) {
            length = format!("{length} - 2e0 * {}", combination(&formula.beta, v));
        }
        columns.push((length, "skpca_length".into()));
        columns.extend(passed(formula.far.is_some(), "skpca_far"));
        self.layer("skpca_features", &columns);
        let pc = |k: usize| format!("pc{}", k + 1);
        let along: Vec<String> = match &formula.frame {
            None => (0..formula.q()).map(pc).collect(),
            Some(frame) => {
                let column = |l: usize| frame.rows().map(|row| row[l]).collect::<Vec<f64>>();
                (0..frame.columns).map(|l| combination(&column(l), pc)).collect()
            }
        };
        let weighted = |(k, y): (usize, &String)| match &formula.weights {
            None => format!("{y} * {y}"),
            Some(weights) => format!("{} * ({y} * {y})", number(weights[k])),
        };
        let squares = along.iter().enumerate().map(weighted).collect();
        let distance = (format!("skpca_length - {}", sum(squares)), "skpca_distance".to_string());
        let far = passed(formula.far.is_some(), "skpca_far").collect();
        self.layer("skpca_distances", &[same(pc, formula.q()), vec![distance], far].concat());
        let more = if formula.far.is_some() { " + skpca_far" } else { "" };
        let score = format!("CASE WHEN skpca_distance < 0e0 THEN 0e0 ELSE skpca_distance END{more}");
        let score = (score, "score".to_string());
        self.layer("skpca_scores", &[same(pc, formula.q()), vec![score]].concat());
    }

    fn finish(&self, formula: &Formula) -> String {
        let kept = self.keep.iter().map(|column| quoted(column));
        let features = (1..=formula.q()).map(|k| format!("pc{k}"));
        let threshold = number(formula.threshold);
        let term = |(k, precision): (usize, &f64)| format!("{0} * (pc{1} * pc{1})", number(*precision), k + 1);
        let t2 = formula.precisions.iter().map(|precisions| {
            let terms = precisions.iter().enumerate().map(term).collect();
            format!("{} AS t2", sum(terms))
        });
        let results =
            [format!("{threshold} AS threshold"), format!("CASE WHEN score <= {threshold} THEN 0 ELSE 1 END AS novel")];
        let columns = kept.chain(features).chain(["score".to_string()]).chain(t2).chain(results);
        let columns: Vec<String> = columns.map(|column| format!("  {column}")).collect();
        format!("WITH {}\nSELECT\n{}\nFROM {};\n", self.layers.join(",\n"), columns.join(",\n"), self.from)
    }
}

/// The far term of the score.
fn far_of(far: &Far) -> String {
    let step = |(k, centre): (usize, &f64)| format!("({0} - {1}) * ({0} - {1})", u(k), number(*centre));
    format!("{} * {}", number(far.weight), sum(far.centre.iter().enumerate().map(step).collect()))
}

fn u(k: usize) -> String {
    format!("skpca_u{}", k + 1)
}

fn v(i: usize) -> String {
    format!("skpca_v{}", i + 1)
}

/// A column that is passed on unchanged, if it exists.
fn passed(there: bool, name: &str) -> impl Iterator<Item = Named> + use<> {
    there.then(|| (name.to_string(), name.to_string())).into_iter()
}

/// Columns that are passed on unchanged.
fn same(name: impl Fn(usize) -> String, count: usize) -> Vec<Named> {
    (0..count).map(|k| (name(k), name(k))).collect()
}

/// A quoted identifier of standard SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A floating-point literal. Integers and decimals would change the type of the arithmetic.
fn number(value: f64) -> String {
    if value < 0.0 { format!("({value:e})") } else { format!("{:e}", value.abs()) }
}

/// Adds terms pairwise, since databases may limit the depth of an expression.
fn sum(mut terms: Vec<String>) -> String {
    while terms.len() > 1 {
        terms = terms
            .chunks(2)
            .map(|pair| if pair.len() == 2 { format!("({} + {})", pair[0], pair[1]) } else { pair[0].clone() })
            .collect();
    }
    terms.pop().unwrap_or_else(|| "0e0".into())
}

fn squares(d: usize) -> Vec<String> {
    (0..d).map(|k| format!("{0} * {0}", u(k))).collect()
}

/// `w · names`
fn combination(weights: &[f64], name: impl Fn(usize) -> String) -> String {
    let terms = weights.iter().enumerate().filter(|(_, w)| **w != 0.0);
    let terms: Vec<String> = terms.map(|(k, w)| format!("{} * {}", number(*w), name(k))).collect();
    format!("({})", sum(terms))
}

fn linear(linear: &Linear, from: fn(usize) -> String, to: impl Fn(usize) -> String) -> Vec<Named> {
    let column = |k: usize| linear.weights.rows().map(|row| row[k]).collect::<Vec<f64>>();
    let one = |k: usize| match linear.bias[k] {
        0.0 => (combination(&column(k), from), to(k)),
        bias => (format!("{} + {}", combination(&column(k), from), number(bias)), to(k)),
    };
    (0..linear.weights.columns).map(one).collect()
}

fn gaussian(gamma: f64, z: &[f64]) -> String {
    let step = |(k, z): (usize, &f64)| format!("({0} - {1}) * ({0} - {1})", u(k), number(*z));
    format!("EXP({} * {})", number(-gamma), sum(z.iter().enumerate().map(step).collect()))
}

fn manhattan(gamma: f64, z: &[f64]) -> String {
    let step = |(k, z): (usize, &f64)| format!("ABS({} - {})", u(k), number(*z));
    format!("EXP({} * {})", number(-gamma), sum(z.iter().enumerate().map(step).collect()))
}

/// `f(u)`
fn stretched(stretch: &Stretch) -> String {
    let bumps = stretch.vectors.rows().zip(&stretch.weights);
    let terms: Vec<String> = bumps.map(|(v, b)| format!("{} * {}", number(*b), gaussian(stretch.delta, v))).collect();
    format!("{} + {}", number(stretch.constant), sum(terms))
}
