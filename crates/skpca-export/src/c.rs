//! C99: the [`Formula`] as one header of `static inline` functions and constants, without allocation. It needs
//! `math.h`, and `string.h` if there are categories.

use std::fmt::Write as _;

use skpca::kernel::{Outer, Stretch};
use skpca::{Intake, Kind, Model, Unknown};

use crate::Error;
use crate::arithmetic::Arithmetic;
use crate::formula::{Formula, Linear, Matrix, Values, description};

/// Numbers per line.
const PER_LINE: usize = 6;

pub(crate) fn write(model: &Model, formula: &Formula, arithmetic: Arithmetic, name: &str) -> Result<Vec<u8>, Error> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !(name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())) {
        return Err(Error::Name(name.into()));
    }
    let header = Header { formula, arithmetic, name };
    let mut text = header.numbers();
    if let Some(stretch) = &formula.stretch {
        text.push_str(&header.stretch(stretch));
    }
    text.push_str(&header.kernel());
    text.push_str(&header.evaluate());
    text.push_str(&header.p_value());
    let _ = write!(text, "\n#endif\n");
    // Substituted at the end, so that the templates read like C.
    let text = text.replace("NAME", name).replace("CAPITALS", &name.to_ascii_uppercase());
    Ok((header.preamble(model) + &text).into_bytes())
}

struct Header<'a> {
    formula: &'a Formula,
    arithmetic: Arithmetic,
    name: &'a str,
}

impl Header<'_> {
    fn preamble(&self, model: &Model) -> String {
        let mut text = format!("/* A sparse kernel PCA model, made by skpca {}.\n *\n", env!("CARGO_PKG_VERSION"));
        for (key, value) in description(model).into_iter().filter(|(_, value)| !value.is_null()) {
            // Names of columns come from data and could end the comment.
            let value = value.to_string().replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?");
            let _ = writeln!(text, " * {key}: {value}");
        }
        let _ = write!(
            text,
            " * arithmetic: {}\n *\n * {name}_evaluate(x) takes the inputs in the order of the columns. The alarm is raised if the score is\n \
             * above the threshold, or NaN.{inputs}\n */\n",
            self.arithmetic.name(),
            name = self.name,
            inputs = if self.formula.intake.is_some() {
                "\n *\n * The inputs are those of a table: x are its numbers, with NaN for empty cells; c are its categories, if\n \
                 * any, as texts without surrounding blanks."
            } else {
                ""
            }
        );
        text
    }

    /// Types, sizes and the result.
    fn numbers(&self) -> String {
        let (external, internal) = (self.arithmetic.external_double(), self.arithmetic.internal_double());
        let categories = self.categories().len();
        let name = |double: bool| if double { "double" } else { "float" };
        let t2 = if self.formula.precisions.is_some() {
            "    /* Hotelling's: squared features over their variances. */\n    NAME_number t2;\n"
        } else {
            ""
        };
        let likelihood = if self.formula.density.is_some() { "    NAME_number log_likelihood;\n" } else { "" };
        format!(
            "#ifndef CAPITALS_H\n#define CAPITALS_H\n\n#include <math.h>\n{}\n#define CAPITALS_INPUTS {}\n{}#define CAPITALS_COMPONENTS {}\n#define CAPITALS_THRESHOLD {}\n\n\
             /* The type of inputs and outputs, and the type of the arithmetic. */\n\
             typedef {} NAME_number;\ntypedef {} NAME_real;\n\n\
             typedef struct {{\n    NAME_number features[{}];\n    /* Squared distance to the components: higher is more novel. */\n    \
             NAME_number score;\n{t2}{likelihood}    int alarm;\n}} NAME_result;\n\n",
            if categories == 0 { "" } else { "#include <string.h>\n" },
            self.formula.intake.as_ref().map_or(self.formula.d(), |intake| intake.inputs.len() - categories),
            if categories == 0 { String::new() } else { format!("#define CAPITALS_CATEGORIES {categories}\n") },
            self.formula.q(),
            self.number(self.formula.threshold),
            name(external),
            name(internal),
            self.formula.q(),
        )
    }

    /// `f(u)`
    fn stretch(&self, stretch: &Stretch) -> String {
        let vectors = Matrix { columns: stretch.vectors.d(), values: stretch.vectors.values().to_vec() };
        format!(
            "static inline NAME_real NAME_stretch(const NAME_real *u)\n{{\n{}{}    NAME_real sum = {};\n    int i, k;\n    \
             for (i = 0; i < {}; i++) {{\n        NAME_real squared = 0;\n        for (k = 0; k < {}; k++) {{\n            \
             const NAME_real step = u[k] - vectors[i][k];\n            squared += step * step;\n        }}\n        \
             sum += weights[i] * {}({} * squared);\n    }}\n    return sum;\n}}\n\n",
            self.matrix("vectors", &vectors),
            self.vector("weights", &stretch.weights),
            self.number(stretch.constant),
            vectors.n(),
            vectors.columns,
            self.function("exp"),
            self.number(-stretch.delta),
        )
    }

    /// `κ(u, z_i)`, and `k(x, x)` for `i = −1`.
    fn kernel(&self) -> String {
        let body = match &self.formula.values {
            Values::Columns => self.columns(),
            Values::Gaussian { gamma, points } => self.distance(points, *gamma, "step * step"),
            Values::Manhattan { gamma, points } => {
                let absolute = format!("{}(step)", self.function("fabs"));
                self.distance(points, *gamma, &absolute)
            }
            Values::Dot { .. } => self.dot(),
            Values::Cosine { points } => self.cosine(points),
        };
        let about = "/* The kernel of a row with point i, or with itself if i is negative. */\n";
        format!("{about}static inline NAME_real NAME_kernel(const NAME_real *u, int i)\n{{\n{body}}}\n\n")
    }

    fn columns(&self) -> String {
        let d = self.formula.d();
        format!(
            "    NAME_real squared = 0;\n    int k;\n    if (i >= 0) {{\n        return u[i];\n    }}\n    \
             for (k = 0; k < {d}; k++) {{\n        squared += u[k] * u[k];\n    }}\n    return squared;\n"
        )
    }

    fn distance(&self, points: &Matrix, gamma: f64, term: &str) -> String {
        format!(
            "{}    NAME_real distance = 0;\n    int k;\n    if (i < 0) {{\n        return 1;\n    }}\n    \
             for (k = 0; k < {}; k++) {{\n        const NAME_real step = u[k] - points[i][k];\n        distance += {term};\n    }}\n    \
             return {}({} * distance);\n",
            self.matrix("points", points),
            points.columns,
            self.function("exp"),
            self.number(-gamma),
        )
    }

    fn dot(&self) -> String {
        let Values::Dot { gamma, points, constants, own, own_constant, outer } = &self.formula.values else {
            unreachable!("called for dot-product kernels only")
        };
        let outer = match outer {
            Outer::Identity => "    return inner;\n".into(),
            Outer::Tanh => format!("    return {}(inner);\n", self.function("tanh")),
            Outer::Power(power) => format!(
                "    {{\n        NAME_real product = 1;\n        for (k = 0; k < {power}; k++) {{\n            product *= inner;\n        }}\n        \
                 return product;\n    }}\n"
            ),
        };
        format!(
            "{}{}{}    NAME_real inner = 0;\n    int k;\n    for (k = 0; k < {}; k++) {{\n        \
             inner += u[k] * (i < 0 ? {gamma} * u[k] + own[k] : {gamma} * points[i][k]);\n    }}\n    \
             inner += i < 0 ? {} : constants[i];\n{outer}",
            self.matrix("points", points),
            self.vector("constants", constants),
            self.vector("own", own),
            points.columns,
            self.number(*own_constant),
            gamma = self.number(*gamma),
        )
    }

    fn cosine(&self, points: &Matrix) -> String {
        format!(
            "{}    NAME_real squared = 0, inner = 0;\n    int k;\n    for (k = 0; k < {d}; k++) {{\n        squared += u[k] * u[k];\n    }}\n    \
             if (squared == 0) {{\n        return 0;\n    }}\n    if (i < 0) {{\n        return 1;\n    }}\n    \
             for (k = 0; k < {d}; k++) {{\n        inner += u[k] * points[i][k];\n    }}\n    return inner / {}(squared);\n",
            self.matrix("points", points),
            self.function("sqrt"),
            d = points.columns,
        )
    }

    fn evaluate(&self) -> String {
        let formula = self.formula;
        let (first, second) = formula.steps(self.arithmetic);
        let mut tables = self.vector("shift", &first) + &self.vector("offset", &second);
        tables += &self.vector("scale", &formula.scale);
        tables += &self.vector("mu", &formula.mean);
        tables += &self.layer("coefficients", &formula.features);
        let mut each = String::new();
        let mut locals = format!("    NAME_real u[{}], y[{}];\n", formula.d(), formula.q());
        if !formula.beta.is_empty() {
            tables += &self.vector("beta", &formula.beta);
            each += "        length -= 2 * beta[i] * value;\n";
        }
        if let Some(density) = &formula.density {
            tables += &self.layer("axes", &density.along);
            let along = density.along.weights.columns;
            let _ = writeln!(locals, "    NAME_real along[{along}], distance;");
            let _ = writeln!(
                each,
                "        for (k = 0; k < {along}; k++) {{\n            along[k] += axes[i][k] * value;\n        }}"
            );
        }
        let (mut start, mut value) = (String::new(), "NAME_kernel(u, i)".to_string());
        let mut own = "NAME_kernel(u, -1)".to_string();
        if formula.stretch.is_some() {
            tables += &self.vector("factors", &formula.factors);
            locals += "    NAME_real f;\n";
            start += "    f = NAME_stretch(u);\n";
            value = format!("{value} * (f * factors[i])");
            own = format!("{own} * (f * f)");
        }
        for (name, linear) in
            [("y", Some(&formula.features)), ("along", formula.density.as_ref().map(|density| &density.along))]
        {
            let Some(linear) = linear else { continue };
            let bias = if self.has_bias(linear) {
                format!("{}_bias[k]", if name == "y" { "coefficients" } else { "axes" })
            } else {
                "0".into()
            };
            let _ = writeln!(
                start,
                "    for (k = 0; k < {}; k++) {{\n        {name}[k] = {bias};\n    }}",
                linear.weights.columns
            );
        }
        format!(
            "static inline NAME_result NAME_evaluate({arguments})\n{{\n{tables}{locals}    NAME_real length, score;\n    \
             NAME_result result;\n    int i, k;\n{encoded}    for (k = 0; k < {d}; k++) {{\n        u[k] = (({cell} - shift[k]) - offset[k]) / scale[k];\n    }}\n\
             {start}    length = {own} - {norm};\n    for (i = 0; i < {m}; i++) {{\n        const NAME_real value = {value} - mu[i];\n        \
             for (k = 0; k < {q}; k++) {{\n            y[k] += coefficients[i][k] * value;\n        }}\n{each}    }}\n\
             {finish}    return result;\n}}\n\n",
            arguments = self.arguments(),
            encoded = formula.intake.as_ref().map(|intake| self.encoded(intake)).unwrap_or_default(),
            cell = if formula.intake.is_some() { "u[k]" } else { "x[k]" },
            d = formula.d(),
            q = formula.q(),
            m = formula.mean.len(),
            norm = self.number(formula.mean_norm),
            finish = self.finish(),
        )
    }

    /// The arguments for a row: numbers, and categories if the model has any.
    fn arguments(&self) -> &'static str {
        if self.categories().is_empty() { "const NAME_number *x" } else { "const NAME_number *x, const char *const *c" }
    }

    fn categories(&self) -> Vec<&String> {
        self.formula.intake.iter().flat_map(|intake| intake.categories()).collect()
    }

    /// `u` before scaling: the columns made from numbers and categories.
    fn encoded(&self, intake: &Intake) -> String {
        let (mut text, mut at, mut number, mut category) = (String::new(), 0, 0, 0);
        for input in &intake.inputs {
            match &input.kind {
                Kind::Number { fill } => {
                    let fill = fill.map_or("(NAME_real)NAN".into(), |fill| self.number(fill));
                    let _ = writeln!(text, "    u[{at}] = x[{number}] == x[{number}] ? x[{number}] : {fill};");
                    number += 1;
                }
                Kind::Category { values, fill } => {
                    let fill = fill.map_or("\"\"".into(), |fill| literal(&values[fill]));
                    let _ = writeln!(
                        text,
                        "    {{\n        const char *const text = c[{category}] && *c[{category}] ? c[{category}] : {fill};"
                    );
                    for (k, value) in values.iter().enumerate() {
                        let _ = writeln!(text, "        u[{}] = strcmp(text, {}) == 0;", at + k, literal(value));
                    }
                    let known: Vec<String> = (at..at + values.len()).map(|k| format!("u[{k}] == 0")).collect();
                    let refused = match intake.unknown {
                        Unknown::Zero => "!*text".into(),
                        Unknown::Refuse => known.join(" && "),
                    };
                    let _ = writeln!(
                        text,
                        "        if ({refused}) {{\n            u[{at}] = (NAME_real)NAN;\n        }}\n    }}"
                    );
                    category += 1;
                }
            }
            at += input.width();
        }
        if number == 0 {
            text += "    (void)x;\n";
        }
        text
    }

    /// Computes the result from the sums over points.
    fn finish(&self) -> String {
        let formula = self.formula;
        let (q, mut text) = (formula.q(), "    score = length;\n".to_string());
        match &formula.frame {
            None => {
                let (table, weight) = match &formula.weights {
                    Some(weights) => (format!("    {}", self.vector("weights", weights)), "weights[k] * "),
                    None => (String::new(), ""),
                };
                let _ = write!(
                    text,
                    "    for (k = 0; k < {q}; k++) {{\n{table}        score -= {weight}y[k] * y[k];\n    }}\n"
                );
            }
            Some(frame) => {
                let _ = write!(
                    text,
                    "    for (i = 0; i < {}; i++) {{\n    {}        NAME_real sum = 0;\n        for (k = 0; k < {q}; k++) {{\n            \
                     sum += frame[k][i] * y[k];\n        }}\n        score -= sum * sum;\n    }}\n",
                    frame.columns,
                    self.matrix("frame", frame),
                );
            }
        }
        if let Some(density) = &formula.density {
            let _ = write!(
                text,
                "    distance = length;\n    for (k = 0; k < {}; k++) {{\n        distance -= along[k] * along[k];\n    }}\n    \
                 if (distance < 0) {{\n        distance = 0;\n    }}\n    \
                 result.log_likelihood = (NAME_number)({} * ({} + distance / {}));\n",
                density.along.weights.columns,
                self.number(-0.5),
                self.number(density.constant),
                self.number(density.noise),
            );
        }
        let _ = write!(
            text,
            "    if (score < 0) {{\n        score = 0;\n    }}\n{far}    for (k = 0; k < {q}; k++) {{\n        \
             result.features[k] = (NAME_number)y[k];\n    }}\n    result.score = (NAME_number)score;\n{t2}    \
             result.alarm = !(score <= CAPITALS_THRESHOLD);\n",
            far = self.far(),
            t2 = self.t2(),
        );
        text
    }

    fn t2(&self) -> String {
        let Some(precisions) = &self.formula.precisions else { return String::new() };
        format!(
            "    {{\n    {}        NAME_real t2 = 0;\n        for (k = 0; k < {}; k++) {{\n            \
             t2 += precisions[k] * (y[k] * y[k]);\n        }}\n        result.t2 = (NAME_number)t2;\n    }}\n",
            self.vector("precisions", precisions),
            self.formula.q(),
        )
    }

    /// The far term of the score.
    fn far(&self) -> String {
        let Some(far) = &self.formula.far else { return String::new() };
        format!(
            "    for (k = 0; k < {}; k++) {{\n    {}        const NAME_real step = u[k] - centre[k];\n        \
             score += {} * (step * step);\n    }}\n",
            self.formula.d(),
            self.vector("centre", &far.centre),
            self.number(far.weight),
        )
    }

    /// The p-value above the highest training score.
    fn tail(&self) -> String {
        let Some(tail) = self.formula.tail else { return String::new() };
        format!(
            "    if (low == {}) {{\n        const NAME_real tail = {} * {}(1 + (score - {}) / {}, {});\n        \
             if (tail < p_values[low]) {{\n            return (NAME_number)tail;\n        }}\n    }}\n",
            self.formula.scores.len(),
            self.number(tail.share),
            self.function("pow"),
            self.number(tail.start),
            self.number(tail.scale),
            self.number(-tail.count),
        )
    }

    fn p_value(&self) -> String {
        let formula = self.formula;
        format!(
            "/* The share of the training rows that score at least as high. */\n\
             static inline NAME_number NAME_p_value(NAME_number score)\n{{\n{}{}    int low = 0, high = {};\n    \
             if (score != score) {{\n        return score;\n    }}\n    while (low < high) {{\n        const int middle = low + (high - low) / 2;\n        \
             if (scores[middle] < score) {{\n            low = middle + 1;\n        }} else {{\n            high = middle;\n        }}\n    }}\n{tail}    \
             return (NAME_number)p_values[low];\n}}\n",
            self.vector("scores", &formula.scores),
            self.vector("p_values", &formula.p_values),
            formula.scores.len(),
            tail = self.tail(),
        )
    }

    fn has_bias(&self, linear: &Linear) -> bool {
        linear.bias.iter().any(|v| *v != 0.0)
    }

    fn layer(&self, name: &str, linear: &Linear) -> String {
        let bias =
            if self.has_bias(linear) { self.vector(&format!("{name}_bias"), &linear.bias) } else { String::new() };
        self.matrix(name, &linear.weights) + &bias
    }

    fn matrix(&self, name: &str, matrix: &Matrix) -> String {
        let row = |row: &[f64]| format!("        {{{}}}", self.list(row, "\n         "));
        let rows: Vec<String> = matrix.rows().map(row).collect();
        format!(
            "    static const NAME_real {name}[{}][{}] = {{\n{}\n    }};\n",
            matrix.n(),
            matrix.columns,
            rows.join(",\n")
        )
    }

    fn vector(&self, name: &str, values: &[f64]) -> String {
        format!("    static const NAME_real {name}[{}] = {{{}}};\n", values.len(), self.list(values, "\n        "))
    }

    fn list(&self, values: &[f64], between: &str) -> String {
        let lines =
            values.chunks(PER_LINE).map(|line| line.iter().map(|v| self.number(*v)).collect::<Vec<_>>().join(", "));
        lines.collect::<Vec<_>>().join(&format!(",{between}"))
    }

    /// The shortest decimal that reads back as the same number.
    fn number(&self, value: f64) -> String {
        if self.arithmetic.internal_double() { format!("{value:e}") } else { format!("{:e}f", value as f32) }
    }

    /// The name of a `math.h` function for the arithmetic type.
    fn function(&self, name: &str) -> String {
        if self.arithmetic.internal_double() { name.into() } else { format!("{name}f") }
    }
}

/// A C string literal that is independent of the source encoding, without trigraphs or the placeholders of the
/// template.
fn literal(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\?".contains(byte) || *byte == b' ';
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("\\{byte:03o}") };
    let text = text.bytes().map(one).collect::<String>();
    format!("\"{}\"", text.replace("NAME", "\\116AME").replace("CAPITALS", "\\103APITALS"))
}
