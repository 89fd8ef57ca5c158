//! All tests of the command line, in one program to save build time.

mod bad_data;
mod compare;
mod damaged_tables;
mod exports;
mod formats;
mod given;
mod lags;
mod larger;
mod model_files;
mod monitor;
mod names;
mod odd_data;
mod outputs;
mod path;
mod ranges;
mod results;
mod streams;
mod support;
mod tables;
mod terminal;
mod threads;
mod updates;
mod weights;
