//! A single test program for all tests of the library except those of memory, because every program is linked anew.

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
#[allow(dead_code, reason = "the rest is used by benchmarks")]
mod oracle;
mod papers;
mod registered;
mod robust;
mod spca;
mod streamed;
