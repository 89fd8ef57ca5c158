//! `skpca methods`, `skpca kernels` and the help of `skpca fit`: the registries as text.

use skpca::kernel::{self, KERNELS};
use skpca::method::{self, METHODS};
use skpca::{Domain, Parameter, Spec};

use crate::failure::Failure;
use crate::terminal::Screen;

/// Line width of the help text.
const WIDTH: usize = 98;
const INDENT: usize = 15;

pub fn methods(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        return show(&METHODS.iter().map(|entry| explained(entry.name, &entry.about())).collect::<String>());
    };
    let entry = method::entry(&Spec::new(name))?;
    let parameters = listed(entry.parameters.iter().map(|parameter| (parameter, vec![])));
    show(&all_about(entry.name, entry.summary, Some(entry.source), &parameters))
}

pub fn kernels(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        return show(&KERNELS.iter().map(|entry| explained(entry.name, &entry.about())).collect::<String>());
    };
    let entry = kernel::entry(&Spec::new(name))?;
    let parameters = listed(entry.parameters.iter().map(|parameter| (parameter, vec![])));
    show(&all_about(entry.name, entry.summary, entry.source, &parameters))
}

fn show(text: &str) -> Result<(), Failure> {
    let mut screen = Screen::new();
    Ok(text.lines().try_for_each(|line| screen.line(line))?)
}

fn all_about(name: &str, summary: &str, source: Option<&str>, parameters: &str) -> String {
    let source = source.map_or(String::new(), |source| explained("source", source));
    let parameters = if parameters.is_empty() {
        "No parameters.".into()
    } else {
        format!("Parameters, as {name},key=value,…:\n{parameters}")
    };
    format!("{}{source}\n{parameters}", explained(name, summary))
}

/// Describes all methods, kernels and their parameters.
pub fn help() -> String {
    let methods: String = METHODS.iter().map(|entry| explained(entry.name, &entry.about())).collect();
    let kernels: String = KERNELS.iter().map(|entry| explained(entry.name, &entry.about())).collect();
    let of_methods = METHODS.iter().flat_map(|entry| entry.parameters.iter().map(|parameter| (parameter, entry.name)));
    let of_kernels = KERNELS.iter().flat_map(|entry| entry.parameters.iter().map(|parameter| (parameter, entry.name)));
    format!(
        "Methods:\n{methods}\n\
         Parameters of methods, as --method NAME,key=value,…; without them --support or --fidelity decides:\n{}\n\
         Kernels:\n{kernels}\n\
         Parameters of kernels, as --kernel NAME,key=value,…:\n{}\n\
         Bandwidth rules: median: γ = 1 / median squared distance of two rows; scale: γ = 1 / (columns ·\n\
         variance); mean: γ = 1 / 2σ², σ² the mean squared distance; auto: γ = 1 / columns.\n",
        listed(grouped(of_methods)),
        listed(grouped(of_kernels)),
    )
}

/// A parameter, and the methods or kernels that have it.
type Owned = (&'static Parameter, Vec<&'static str>);

/// Groups equal parameters of several methods or kernels.
fn grouped(all: impl Iterator<Item = (&'static Parameter, &'static str)>) -> impl Iterator<Item = Owned> {
    let mut groups: Vec<Owned> = Vec::new();
    for (parameter, owner) in all {
        match groups.iter_mut().find(|(known, _)| *known == parameter) {
            Some((_, owners)) => owners.push(owner),
            None => groups.push((parameter, vec![owner])),
        }
    }
    groups.into_iter()
}

fn listed(parameters: impl Iterator<Item = Owned>) -> String {
    let line = |(parameter, owners): Owned| {
        let owners = if owners.is_empty() { String::new() } else { format!("{}: ", owners.join(", ")) };
        let values = match parameter.domain {
            Domain::Boolean => String::new(),
            domain => format!(" ({domain})"),
        };
        explained(parameter.name, &format!("{owners}{}{values} [default: {}]", parameter.help, parameter.default))
    };
    parameters.map(line).collect()
}

/// Formats a name and its description, wrapped to the right of the name.
fn explained(name: &str, about: &str) -> String {
    let mut text = format!("  {name:<12} ");
    let mut column = text.chars().count();
    for word in about.split_whitespace() {
        let length = word.chars().count() + 1;
        if column + length > WIDTH {
            text.truncate(text.trim_end().len());
            text.push_str(&format!("\n{:INDENT$}", ""));
            column = INDENT;
        }
        text.push_str(word);
        text.push(' ');
        column += length;
    }
    text.trim_end().to_string() + "\n"
}
