//! One program for all tests of the library but those that count memory: every program costs a build of its own.

mod architecture;
mod dependencies;
mod energy;
mod expansion;
mod features;
mod greedy;
mod labelled;
mod landmarks;
mod laws;
mod likelihood;
#[allow(dead_code, reason = "benchmarks use the rest of it")]
mod oracle;
mod papers;
mod registered;
mod robust;
mod spca;
mod streamed;
