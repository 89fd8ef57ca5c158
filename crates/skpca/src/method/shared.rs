//! What fits of the same rows under the same kernel have in common: made on first use, kept for the fits that follow.
//!
//! Everything kept is a function of its key, so that a fit gives the same bits whether it found or made it. The time
//! that finding saved is counted by the caller's clock, so that a fit's time can be told as if it had been alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faer::Mat;

use crate::error::Result;
use crate::factor::Factor;
use crate::reference::Reference;

/// A factor and the scatter of its rows.
#[derive(Clone)]
pub(crate) struct Scattered {
    pub factor: Arc<Factor>,
    /// `F̃ᵀF̃`
    pub t: Mat<f64>,
    /// `f̄`, zero if not centred.
    pub mean: Vec<f64>,
}

/// A factor in coordinates where its scatter is diagonal.
pub(crate) struct Principal {
    pub factor: Factor,
    /// The diagonal, largest first.
    pub values: Vec<f64>,
}

/// Values made, each under its key, with the time they took.
pub(crate) type Memo<K, V> = Mutex<Vec<(K, Arc<V>, Duration)>>;

/// The common parts of many fits.
pub(crate) struct Shared<'a> {
    clock: &'a (dyn Fn() -> Duration + Sync),
    saved: Mutex<Duration>,
    /// By rank.
    pub factors: Memo<usize, Factor>,
    /// By rank and whether it is centred.
    pub scattered: Memo<(usize, bool), Scattered>,
    pub principal: Memo<(usize, bool), Principal>,
    /// By number of components and whether they are centred.
    pub references: Memo<(usize, bool), Reference>,
}

impl<'a> Shared<'a> {
    /// `clock` tells the time since any fixed moment.
    pub(crate) fn new(clock: &'a (dyn Fn() -> Duration + Sync)) -> Shared<'a> {
        Shared {
            clock,
            saved: Mutex::default(),
            factors: Memo::default(),
            scattered: Memo::default(),
            principal: Memo::default(),
            references: Memo::default(),
        }
    }

    /// What `memo` has under `key`; it is made if it has nothing.
    pub(crate) fn get<K: PartialEq, V>(
        &self,
        memo: &Memo<K, V>,
        key: K,
        make: impl FnOnce() -> Result<V>,
    ) -> Result<Arc<V>> {
        if let Some((_, value, cost)) = locked(memo).iter().find(|(known, ..)| *known == key) {
            *locked(&self.saved) += *cost;
            return Ok(value.clone());
        }
        let (value, cost) = self.timed(|| make().map(Arc::new));
        let value = value?;
        locked(memo).push((key, value.clone(), cost));
        Ok(value)
    }

    /// What `work` gives, and the time it would have taken if nothing had been there.
    pub(crate) fn timed<V>(&self, work: impl FnOnce() -> V) -> (V, Duration) {
        let (start, saved) = ((self.clock)(), *locked(&self.saved));
        let value = work();
        (value, (self.clock)().saturating_sub(start) + (*locked(&self.saved) - saved))
    }
}

/// What a lock holds; whoever panicked with it left it whole.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn time_saved_is_counted_once_and_nested_parts_with_it() {
        let now = AtomicU64::new(0);
        let clock = || Duration::from_secs(now.load(Relaxed));
        let shared = Shared::new(&clock);
        let (inner, outer) = (Memo::<u8, u32>::default(), Memo::<u8, u32>::default());
        let take = |seconds: u64| now.fetch_add(seconds, Relaxed);
        let small = || {
            shared.get(&inner, 0, || {
                take(2);
                Ok(7)
            })
        };
        let large = || {
            shared.get(&outer, 0, || {
                take(3);
                Ok(*small()? + 1)
            })
        };
        let seconds = |work: &dyn Fn() -> Result<Arc<u32>>| {
            let (value, time) = shared.timed(work);
            (*value.expect("nothing fails here"), time.as_secs())
        };
        assert_eq!(seconds(&small), (7, 2));
        assert_eq!(seconds(&small), (7, 2), "found, and told as if made");
        assert_eq!(seconds(&large), (8, 5), "made with a part that was found");
        assert_eq!(seconds(&large), (8, 5));
        assert_eq!(now.load(Relaxed), 5, "each was made once");
    }

    #[test]
    fn what_failed_is_not_kept() {
        let clock = || Duration::ZERO;
        let shared = Shared::new(&clock);
        let memo = Memo::<u8, u32>::default();
        assert!(shared.get(&memo, 0, || Err(crate::Error::Interrupted)).is_err());
        assert_eq!(*shared.get(&memo, 0, || Ok(3)).expect("made now"), 3);
    }
}
