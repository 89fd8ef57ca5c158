//! `skpca completions` and `skpca man`: shell completions and manual pages, generated from the command-line arguments.

use std::io::Write;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::outputs::{self, Ours, Outputs};

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
    outputs::make_directory(directory)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, &mut pages)?;
    let pages: Vec<_> = pages.into_iter().map(|(name, text)| (directory.join(name), text)).collect();
    pages.iter().try_for_each(|(file, _)| Outputs::apart_from([]).check_own(file, Ours::Manual))?;
    pages.iter().try_for_each(|(file, text)| outputs::write(file, text))
}

/// Renders the pages of a command and of its subcommands, with their file names.
fn render(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    command.get_subcommands().try_for_each(|below| render(below, pages))?;
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    Ok(())
}
