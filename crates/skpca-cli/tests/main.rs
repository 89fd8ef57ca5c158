//! One program for all tests of the command line: every program costs a build of its own.

mod bad_data;
mod compare;
mod damaged_tables;
mod formats;
mod model_files;
mod names;
mod odd_data;
mod outputs;
mod results;
mod support;
mod terminal;
