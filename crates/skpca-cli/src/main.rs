//! The `skpca` program: command line, tables, files and progress around the library.

#![forbid(unsafe_code)]
// `println!` panics when the reader has closed the pipe.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod apply;
mod arguments;
mod compare;
mod demo;
mod export;
mod failure;
mod fit;
mod inspect;
mod intake;
mod lags;
mod loadings;
mod manual;
mod memory;
mod model_file;
mod monitor;
mod outputs;
mod page;
mod path;
mod progress;
mod random;
mod registry;
mod rows;
mod table;
mod terminal;
mod update;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    let outcome = match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(answer) => return print_clap(&answer),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::BrokenPipe) {
                terminal::print_stderr(&format!("error: {failure}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Prints what clap returns instead of arguments: the requested help or version, or what is wrong with the call.
fn print_clap(answer: &clap::Error) -> ExitCode {
    let code = u8::try_from(answer.exit_code()).unwrap_or(2);
    match answer.print() {
        Err(error) if !answer.use_stderr() => ExitCode::from(Failure::from(error).code()),
        _ => ExitCode::from(code),
    }
}

fn run(Arguments { quiet, command }: Arguments) -> Result<(), Failure> {
    match command {
        Command::Fit(arguments) => fit::run(&arguments, quiet),
        Command::Transform(arguments) => apply::transform(&arguments, quiet),
        Command::Score(arguments) => apply::score(&arguments, quiet),
        Command::Monitor(arguments) => monitor::run(&arguments, quiet),
        Command::Update(arguments) => update::run(&arguments, quiet),
        Command::Inspect { model, json, html } => inspect::run(&model, json, html.as_deref(), quiet),
        Command::Loadings(arguments) => loadings::run(&arguments, quiet),
        Command::Methods { name } => registry::methods(name.as_deref()),
        Command::Kernels { name } => registry::kernels(name.as_deref()),
        Command::Export(arguments) => export::run(&arguments, quiet),
        Command::Compare(arguments) => compare::run(&arguments, quiet),
        Command::Path(arguments) => path::run(&arguments, quiet),
        Command::Demo { output } => demo::run(output.as_deref(), quiet),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { output } => manual::pages(output.as_deref()),
    }
}

/// Sets the number of threads of the global pool: `threads` if given, else that of `OMP_NUM_THREADS`, else one per
/// core.
fn use_threads(threads: Option<u16>) -> Result<(), Failure> {
    let threads = threads.or_else(|| first_number(&std::env::var("OMP_NUM_THREADS").ok()?));
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.map_or(0, usize::from));
    builder.build_global().map_err(|error| Failure::Run(format!("no threads: {error}")))
}

/// Returns the first number of OpenMP's variable, which may be a list with one number per nesting level.
fn first_number(list: &str) -> Option<u16> {
    list.split(',').next()?.trim().parse().ok().filter(|number| (1..=1024).contains(number))
}
