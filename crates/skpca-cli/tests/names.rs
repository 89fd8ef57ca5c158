//! The program and the bindings know methods and kernels from the registries only: their sources name none.

use std::fs;
use std::path::{Path, PathBuf};

use skpca::kernel::KERNELS;
use skpca::method::METHODS;

/// Folders to search, relative to the root of the repository.
const FOLDERS: [&str; 3] = ["crates/skpca-cli/src", "crates/skpca-python/src", "crates/skpca-python/python"];

/// Names that are also ordinary words: they count only if they are quoted.
const WORDS: [&str; 9] =
    ["energy", "exact", "expansion", "landmarks", "likelihood", "linear", "pursuit", "robust", "threshold"];

/// Lines that may name one: a file, and a part of the line.
const ALLOWED: &[(&str, &str)] = &[
    // Examples.
    ("arguments.rs", "skpca fit train.csv"),
    ("arguments.rs", "| skpca fit -"),
    ("arguments.rs", "skpca compare train.csv"),
    ("arguments.rs", "skpca path train.csv"),
    ("_path.py", ">>> penalties = skpca.path"),
    ("arguments.rs", "skpca loadings"),
    ("report.rs", "/// `l21-50.skpca`, `greedy-fidelity-0.95.skpca`"),
    ("_spec.py", r#""name": "rbf", "gamma": 0.5"#),
    ("_parameters.py", r#"``{"name": "l21", "penalty": 0.1}``"#),
    ("lib.rs", r#"/// Converts a spec to JSON: `l21,penalty=0.1`"#),
    ("_parameters.py", r#"``{"name": "rbf", "gamma": 0.5}``"#),
    // Points given by the user, and a kind of regression.
    ("lib.rs", "/// Fits a model to the rows of x, dense or sparse. `landmarks` are points to keep"),
    ("_kernel_model.py", r#"return {"landmarks": "#),
    ("_linear.py", "is an elastic-net regression on"),
    ("arguments.rs", r#"conflicts_with = "landmarks""#),
    ("arguments.rs", r#"conflicts_with_all = ["support", "fidelity", "landmarks"]"#),
    ("arguments.rs", r#"conflicts_with_all = ["sample", "updatable", "landmarks","#),
    // A fit that excludes outliers, with any method.
    ("_novelty.py", r#""robust": self._sets_aside"#),
    ("_request.py", r#""robust": request.get("robust", False)"#),
    // Defaults.
    ("_parameters.py", r#"default="expansion","#),
    ("_parameters.py", r#"default="rbf","#),
    ("_novelty.py", r#"replaced("method", "landmarks")"#),
    ("_core.pyi", r#"method: str = "expansion""#),
    ("_core.pyi", r#"kernel: str = "rbf""#),
    ("_given.py", r#"AMONG_SAMPLES = "greedy""#),
    ("lib.rs", r#"method = "expansion", kernel = "rbf""#),
    // Words with another meaning: the threshold of the scores, a linear classifier, a capability.
    ("apply.rs", r#"["score", "threshold", "p_value", "novel"]"#),
    ("inspect.rs", r#"("threshold", threshold(model))"#),
    ("plots.rs", r#""threshold""#),
    ("report.rs", r#"heading: "linear""#),
    ("report.rs", r#"("linear", |judged|"#),
    ("_novelty.py", r#"about["threshold"]"#),
    ("_registry.py", r#"if entry["linear"]"#),
];

/// A line of a source, and the name that it mentions.
struct Mention {
    file: PathBuf,
    line: String,
    name: &'static str,
}

impl Mention {
    fn is_allowed_by(&self, (file, text): &(&str, &str)) -> bool {
        self.file.ends_with(file) && self.line.contains(text)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust and Python source below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|end| ["rs", "py", "pyi"].iter().any(|e| end == *e));
    folders.iter().flat_map(|folder| sources(folder)).chain(files.into_iter().filter(is_source)).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    let kernels = KERNELS.iter().flat_map(|entry| [entry.name].into_iter().chain(entry.sklearn));
    METHODS.iter().map(|entry| entry.name).chain(kernels)
}

fn mentions(line: &str, name: &str) -> bool {
    if WORDS.contains(&name) {
        return ['"', '\'', '`'].iter().any(|quote| line.contains(&format!("{quote}{name}{quote}")));
    }
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + name.len()..].chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// The names that a file mentions outside its tests.
fn mentions_of(file: PathBuf) -> Vec<Mention> {
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let found = lines.flat_map(|line| names().filter(|name| mentions(line, name)).map(move |name| (line, name)));
    found.map(|(line, name)| Mention { file: file.clone(), line: line.trim().into(), name }).collect()
}

#[test]
fn only_defaults_and_examples_name_a_method_or_a_kernel() {
    let files = FOLDERS.iter().flat_map(|folder| sources(&root().join(folder)));
    let found: Vec<Mention> = files.flat_map(mentions_of).collect();
    let surplus = found.iter().filter(|mention| !ALLOWED.iter().any(|one| mention.is_allowed_by(one)));
    let surplus: Vec<String> = surplus.map(|m| format!("{}: {}: {}", m.file.display(), m.name, m.line)).collect();
    assert!(surplus.is_empty(), "take these names from the registry:\n{}", surplus.join("\n"));
    for one in ALLOWED {
        assert!(found.iter().any(|mention| mention.is_allowed_by(one)), "{one:?} no longer exists");
    }
}

#[test]
fn names_are_found_as_words() {
    assert!(mentions("take greedy, or", "greedy") && mentions("l1, l21", "l1") && mentions("'l1'", "l1"));
    assert!(!mentions("greedy_rows", "greedy") && !mentions("l1_ratio", "l1") && !mentions("l21", "l1"));
    assert!(mentions("kernel=\"linear\"", "linear") && !mentions("a linear classifier", "linear"));
}
