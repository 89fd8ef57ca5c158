//! The `skpca` program: files, flags, progress and tables around the library.

// A reader that has gone is no reason to panic.
#![warn(clippy::print_stdout)]

mod apply;
mod arguments;
mod compare;
mod demo;
mod failure;
mod fit;
mod inspect;
mod manual;
mod memory;
mod page;
mod progress;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::BrokenPipe) {
                eprintln!("error: {failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run(Arguments { quiet, command }: Arguments) -> Result<(), Failure> {
    match command {
        Command::Fit(arguments) => fit::run(&arguments, quiet),
        Command::Transform(arguments) => apply::transform(&arguments),
        Command::Score(arguments) => apply::score(&arguments),
        Command::Inspect { model, json, html } => inspect::run(&model, json, html.as_deref(), quiet),
        Command::Compare(arguments) => compare::run(&arguments, quiet),
        Command::Demo { output } => demo::run(output.as_deref(), quiet),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { output } => manual::pages(output.as_deref()),
    }
}

/// Sets the number of threads for everything that follows.
fn use_threads(threads: Option<u16>) -> Result<(), Failure> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.map_or(0, usize::from));
    builder.build_global().map_err(|error| Failure::Run(format!("no threads: {error}")))
}
