//! The curvature memory of limited-memory BFGS (Nocedal 1980), for maximisation.
//!
//! Existing crates require their own vector types, cannot be interrupted between evaluations, and do not let variables
//! come and go; hence this implementation.

use crate::dense::dot;

/// Maximum number of steps in memory.
const STEPS: usize = 10;

/// The last steps: the change of the variables and the decrease of the gradient in each.
#[derive(Clone, Default)]
pub(super) struct Memory {
    steps: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.steps.clear();
    }

    /// Stores a step if its curvature is positive.
    pub(super) fn remember(&mut self, moved: Vec<f64>, fallen: Vec<f64>) {
        if is_curved(&moved, &fallen) {
            self.steps.push((moved, fallen));
            if self.steps.len() > STEPS {
                self.steps.remove(0);
            }
        }
    }

    /// Returns the memory extended to `size` variables, with nothing known about the new ones.
    pub(super) fn extended(&self, size: usize) -> Memory {
        let mut memory = self.clone();
        memory
            .steps
            .iter_mut()
            .for_each(|(moved, fallen)| [moved, fallen].into_iter().for_each(|v| v.resize(size, 0.0)));
        memory
    }

    /// Returns the memory restricted to the variables that `part` keeps.
    pub(super) fn restricted(&self, part: impl Fn(&[f64]) -> Vec<f64>) -> Memory {
        let steps = self.steps.iter().map(|(moved, fallen)| (part(moved), part(fallen)));
        Memory { steps: steps.filter(|(moved, fallen)| is_curved(moved, fallen)).collect() }
    }

    /// Computes H g, H the approximate inverse curvature, by the two-loop recursion.
    pub(super) fn direction(&self, g: &[f64]) -> Vec<f64> {
        let mut direction = g.to_vec();
        let mut shares = Vec::with_capacity(self.steps.len());
        for (moved, fallen) in self.steps.iter().rev() {
            let share = dot(moved, &direction) / dot(moved, fallen);
            direction.iter_mut().zip(fallen).for_each(|(v, y)| *v -= share * y);
            shares.push(share);
        }
        if let Some((moved, fallen)) = self.steps.last() {
            let scale = dot(moved, fallen) / dot(fallen, fallen);
            direction.iter_mut().for_each(|v| *v *= scale);
        }
        for ((moved, fallen), share) in self.steps.iter().zip(shares.iter().rev()) {
            let back = dot(fallen, &direction) / dot(moved, fallen);
            direction.iter_mut().zip(moved).for_each(|(v, s)| *v += (share - back) * s);
        }
        direction
    }
}

/// Returns whether the curvature along the step is that of a function near its maximum.
fn is_curved(moved: &[f64], fallen: &[f64]) -> bool {
    dot(moved, fallen) > 1e-10 * dot(moved, moved).sqrt() * dot(fallen, fallen).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_of_a_parabola_lead_to_its_top() {
        // −½ Σ c_i (x_i − 1)²: with steps along every axis the curvature is known exactly.
        let curvature = [1.0, 4.0, 0.25];
        let mut memory = Memory::default();
        for axis in 0..3 {
            let moved: Vec<f64> = (0..3).map(|i| if i == axis { 0.5 } else { 0.0 }).collect();
            let fallen = moved.iter().zip(&curvature).map(|(s, c)| c * s).collect();
            memory.remember(moved, fallen);
        }
        let gradient: Vec<f64> = curvature.iter().map(|c| c * 1.0).collect();
        let direction = memory.direction(&gradient);
        assert!(direction.iter().all(|v| (v - 1.0).abs() < 1e-12), "{direction:?}");
        // Without the third variable the curvature of the others is unchanged; a fourth moves along its gradient.
        let fewer = memory.restricted(|v| v[..2].to_vec()).direction(&gradient[..2]);
        assert!(fewer.iter().all(|v| (v - 1.0).abs() < 1e-12), "{fewer:?}");
        let more = memory.extended(4).direction(&[1.0, 4.0, 0.25, 2.0]);
        assert!(more[..3].iter().all(|v| (v - 1.0).abs() < 1e-12) && more[3] > 0.0, "{more:?}");
    }

    #[test]
    fn the_secant_condition_holds() {
        let (last, fell) = ([0.0, 1.0, -1.0], [-0.5, 2.0, -1.5]);
        let mut memory = Memory::default();
        memory.remember(vec![1.0, 0.0, 2.0], vec![2.0, 0.5, 3.0]);
        memory.remember(last.to_vec(), fell.to_vec());
        // The secant condition: H maps the last change of the gradient to the last step.
        let step = memory.direction(&fell);
        assert!(step.iter().zip(&last).all(|(a, b)| (a - b).abs() < 1e-12), "{step:?}");
        // Without memory, H g is the gradient; with one pair, H = γI orthogonally to it.
        assert_eq!(Memory::default().direction(&[3.0, 1.0]), [3.0, 1.0]);
        let mut one = Memory::default();
        one.remember(vec![2.0, 0.0], vec![4.0, 0.0]);
        assert_eq!(one.direction(&[0.0, 1.0]), [0.0, 0.5]);
    }

    #[test]
    fn steps_of_negative_curvature_are_not_stored() {
        let mut memory = Memory::default();
        memory.remember(vec![1.0, 0.0], vec![-1.0, 0.0]);
        assert!(memory.is_empty());
        (0..2 * STEPS).for_each(|_| memory.remember(vec![1.0, 0.0], vec![2.0, 0.0]));
        assert_eq!(memory.steps.len(), STEPS);
    }
}
