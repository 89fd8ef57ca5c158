//! A cache of what fits of the same rows under the same kernel have in common.
//!
//! Every cached value is a function of its key, so that a fit gives the same bits with or without the cache. The time
//! that cache hits save is measured by the caller's clock, so that the time of a fit can be reported as if it had run
//! alone.

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

/// Cached values by key, each with the time that it took to compute.
pub(crate) type Memo<K, V> = Mutex<Vec<(K, Arc<V>, Duration)>>;

/// The cache shared by many fits.
pub(crate) struct Shared<'a> {
    clock: &'a (dyn Fn() -> Duration + Sync),
    saved: Mutex<Duration>,
    /// Keyed by rank.
    pub factors: Memo<usize, Factor>,
    /// Keyed by rank and whether features are centred.
    pub scattered: Memo<(usize, bool), Scattered>,
    pub principal: Memo<(usize, bool), Principal>,
    /// Keyed by number of components and whether features are centred.
    pub references: Memo<(usize, bool), Reference>,
}

impl<'a> Shared<'a> {
    /// Creates an empty cache; `clock` returns the time since any fixed moment.
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

    /// Returns the value of `key` in `memo`, computing it on first use.
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

    /// Returns the result of `work` and the time it would have taken with an empty cache.
    pub(crate) fn timed<V>(&self, work: impl FnOnce() -> V) -> (V, Duration) {
        let (start, saved) = ((self.clock)(), *locked(&self.saved));
        let value = work();
        (value, (self.clock)().saturating_sub(start) + (*locked(&self.saved) - saved))
    }
}

/// Locks a mutex, ignoring poison: a panic cannot leave the value half-written.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn saved_time_is_counted_once_including_nested_values() {
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
        assert_eq!(seconds(&small), (7, 2), "a hit is timed like a miss");
        assert_eq!(seconds(&large), (8, 5), "computed from a cached part");
        assert_eq!(seconds(&large), (8, 5));
        assert_eq!(now.load(Relaxed), 5, "each was computed once");
    }

    #[test]
    fn failures_are_not_cached() {
        let clock = || Duration::ZERO;
        let shared = Shared::new(&clock);
        let memo = Memo::<u8, u32>::default();
        assert!(shared.get(&memo, 0, || Err(crate::Error::Interrupted)).is_err());
        assert_eq!(*shared.get(&memo, 0, || Ok(3)).expect("computed now"), 3);
    }
}
