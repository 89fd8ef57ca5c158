//! `skpca completions` and `skpca man`: what shells and `man` know of the flags, generated from them.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::failure::Failure;

pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "skpca", &mut text);
    Ok(std::io::stdout().write_all(&text)?)
}

pub fn pages(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let mut text = Vec::new();
        Man::new(Arguments::command()).render(&mut text)?;
        return Ok(std::io::stdout().write_all(&text)?);
    };
    let named = |error: std::io::Error| Failure::Run(format!("{}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(named)?;
    clap_mangen::generate_to(Arguments::command(), directory).map_err(named)
}
