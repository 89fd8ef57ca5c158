//! The `skpca` program: files, flags, progress and tables around the library.

mod apply;
mod arguments;
mod demo;
mod failure;
mod fit;
mod inspect;
mod memory;
mod progress;
mod table;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::BrokenPipe) {
                eprintln!("error: {failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Transform(arguments) => apply::transform(&arguments),
        Command::Score(arguments) => apply::score(&arguments),
        Command::Inspect { model, json } => inspect::run(&model, json),
        Command::Demo { output } => demo::run(output.as_deref()),
    }
}

/// Sets the number of threads for everything that follows.
fn use_threads(threads: Option<u16>) -> Result<(), Failure> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.map_or(0, usize::from));
    builder.build_global().map_err(|error| Failure::Run(format!("no threads: {error}")))
}
