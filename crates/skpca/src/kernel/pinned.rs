//! A kernel whose values are computed with a given instruction set.
//!
//! The level of a fit is part of its kernel, because everything that computes kernel values has the kernel: the
//! instruction set cannot be lost on the way, and needs no thread-local state (docs/decisions/0025).

use std::sync::Arc;

use super::{Conformal, Form, Kernel, build_resolved};
use crate::error::Result;
use crate::parcel::{Parcel, wrong};
use crate::spec::Spec;
use skpca_simd::{Instructions, Level};

/// Returns the same kernel with values computed by `instructions`.
pub(crate) fn pinned(kernel: Arc<dyn Kernel>, instructions: Instructions) -> Arc<dyn Kernel> {
    if kernel.instructions() == instructions {
        return kernel;
    }
    match Conformal::of(kernel.as_ref()) {
        Some(Conformal { base, stretch }) => {
            Arc::new(Conformal { base: pinned(base.clone(), instructions), stretch: stretch.clone() })
        }
        None => Arc::new(Pinned { kernel, instructions }),
    }
}

/// Adds a kernel and its instruction set to a parcel.
pub(crate) fn with_kernel(parcel: Parcel, kernel: &Arc<dyn Kernel>) -> Parcel {
    parcel.with("kernel", kernel.spec().to_json()).with("level", kernel.instructions().level().name())
}

/// Returns the kernel of a parcel, with the instruction set of the sender if this machine has it.
pub(crate) fn kernel_of(parcel: &Parcel) -> Result<Arc<dyn Kernel>> {
    let spec = parcel.head.get("kernel").ok_or_else(|| wrong("they have no kernel"))?;
    let level: Level = parcel.text("level").parse()?;
    let instructions = level.instructions().unwrap_or_else(|_| Instructions::best());
    Ok(pinned(build_resolved(&Spec::from_json(spec)?)?, instructions))
}

#[derive(Debug)]
struct Pinned {
    kernel: Arc<dyn Kernel>,
    instructions: Instructions,
}

impl Kernel for Pinned {
    fn eval(&self, x: &[f64], z: &[f64]) -> f64 {
        self.kernel.eval(x, z)
    }

    fn form(&self) -> Form {
        self.kernel.form()
    }

    fn spec(&self) -> Spec {
        self.kernel.spec()
    }

    fn add_gradient(&self, z: &[f64], x: &[f64], weight: f64, out: &mut [f64]) {
        self.kernel.add_gradient(z, x, weight, out);
    }

    fn rank(&self, d: usize) -> usize {
        self.kernel.rank(d)
    }

    fn width(&self) -> Option<usize> {
        self.kernel.width()
    }

    fn instructions(&self) -> Instructions {
        self.instructions
    }

    fn positive_semidefinite(&self) -> bool {
        self.kernel.positive_semidefinite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KERNELS;
    use crate::points::Points;

    #[test]
    fn a_pinned_kernel_is_the_same_kernel() {
        let points = Points::new(2, vec![0.0, 1.0, 2.0, 0.5, 1.0, 3.0]).unwrap();
        let (x, z) = (points.row(0), points.row(1));
        for instructions in Instructions::available() {
            for entry in KERNELS {
                let kernel = entry.example(&points);
                let pinned = pinned(kernel.clone(), instructions);
                assert_eq!(pinned.instructions(), instructions, "{}", entry.name);
                let known = |k: &dyn Kernel| {
                    let mut gradient = [0.0; 2];
                    k.add_gradient(z, x, 1.5, &mut gradient);
                    let conformal =
                        Conformal::of(k).map(|k| (k.base.instructions() == k.instructions(), k.stretch.clone()));
                    let flags = (k.is_linear(), k.bounded(), k.positive_semidefinite());
                    (k.eval(x, z), gradient, k.form(), k.spec(), k.rank(2), k.width(), conformal, flags)
                };
                assert_eq!(known(pinned.as_ref()), known(kernel.as_ref()), "{}", entry.name);
            }
        }
    }
}
