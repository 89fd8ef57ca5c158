//! The input of a method, and the computations that methods share: factor, scatter, reference, components over a
//! support.

use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef};

use super::FIDELITY;
use super::shared::{Memo, Principal, Scattered, Shared};
use super::solution::Target;
use crate::dense;
use crate::eigen::{Accuracy, Pairs, above_rounding, top};
use crate::error::{Error, Result};
use crate::factor::{Factor, Stop};
use crate::kernel::Kernel;
use crate::kernel_matrix::gram;
use crate::labels::Labels;
use crate::points::Points;
use crate::reference::{Question, Reference};
use crate::rows::{Rows, Weighted};
use crate::spectrum::{Expansion, Span};
use crate::watch::Watch;

/// Number of rows up to which the factor has full rank by default.
const FULL_RANK_ROWS: usize = 1000;
/// Default rank of the factor of more rows.
const RANK: usize = 500;
/// Number of entries of the factor above which its default rank is lower than that.
const MAX_ENTRIES: usize = 200_000_000;
/// The default rank is not lowered below this one.
pub(super) const LEAST_RANK: usize = 200;

/// Returns the rank requested by the user, or a good one for n rows.
pub(super) fn usual_rank(asked: Option<usize>, n: usize, target: Option<Target>) -> usize {
    let enough = match target {
        Some(Target::Support(m)) => m.saturating_mul(2),
        _ => 0,
    };
    match asked {
        Some(rank) => rank.clamp(1, n),
        None if n <= FULL_RANK_ROWS => n,
        None => RANK.min((MAX_ENTRIES / n).max(LEAST_RANK)).max(enough).min(n),
    }
}

/// Share of the trace left by a factor at which it is complete.
const ROUNDING: f64 = 1e-13;
/// Share of the trace left by a factor up to which its eigenvalues are those of exact kernel PCA.
const EXACT: f64 = 1e-11;
/// The reason given when there are no components.
pub(crate) const NO_VARIANCE: &str = "to working precision, the kernel does not vary over these rows";

/// Everything that a method may see.
pub(crate) struct Task<'a> {
    pub kernel: &'a Arc<dyn Kernel>,
    pub rows: &'a dyn Rows,
    /// Classes of the rows, if known.
    pub labels: Option<&'a Labels>,
    /// Number of components to find.
    pub q: usize,
    /// Whether the user chose that number.
    pub asked: bool,
    pub target: Option<Target>,
    pub center: bool,
    pub seed: u64,
    pub watch: &'a dyn Watch,
    /// Whether the fidelity will be needed.
    pub judged: bool,
    /// The variance that exact kernel PCA captures, once known.
    reference: OnceLock<Arc<Reference>>,
    /// The cache shared with other fits of the same rows.
    pub shared: Option<&'a Shared<'a>>,
}

impl<'a> Task<'a> {
    /// Creates a task to find `q` components of all rows.
    pub(crate) fn new(kernel: &'a Arc<dyn Kernel>, rows: &'a dyn Rows, q: usize, watch: &'a dyn Watch) -> Task<'a> {
        Task {
            kernel,
            rows,
            labels: None,
            q,
            asked: false,
            target: None,
            center: true,
            seed: 0,
            watch,
            judged: true,
            reference: OnceLock::new(),
            shared: None,
        }
    }

    /// Returns the same task over other rows, for example a sample.
    pub(crate) fn on<'b>(&'b self, rows: &'b dyn Rows) -> Task<'b> {
        Task { rows, labels: None, reference: OnceLock::new(), shared: None, ..*self }
    }

    /// Returns the same task with another number of components.
    pub(crate) fn with_components(&self, q: usize) -> Task<'a> {
        Task { q, reference: OnceLock::new(), ..*self }
    }

    /// Returns the same task with a known reference.
    pub(crate) fn with_reference(&self, reference: Arc<Reference>) -> Task<'a> {
        Task { reference: OnceLock::from(reference), ..*self }
    }

    /// Number of rows.
    pub(crate) fn n(&self) -> usize {
        self.rows.n()
    }

    /// Number of columns.
    pub(crate) fn d(&self) -> usize {
        self.rows.d()
    }

    /// Returns the target; by default, the default fidelity.
    pub(crate) fn aim(&self) -> Target {
        self.target.unwrap_or(Target::Fidelity(FIDELITY))
    }

    /// Returns the requested number of points, or 0 if the target is something else.
    pub(super) fn support(&self) -> usize {
        if let Some(Target::Support(m)) = self.target { m } else { 0 }
    }

    /// Rejects a target given together with the method's `own` parameter.
    pub(crate) fn refuse_target(&self, own: &str) -> Result<()> {
        self.target.map_or(Ok(()), |target| Err(target.refused(own)))
    }

    /// Returns the shared value of `key`, computing it with `make` if there is none.
    fn shared<K: PartialEq, V>(
        &self,
        memo: impl for<'s> Fn(&'s Shared) -> &'s Memo<K, V>,
        key: K,
        make: impl FnOnce() -> Result<V>,
    ) -> Result<Arc<V>> {
        match self.shared {
            Some(shared) => shared.get(memo(shared), key, make),
            None => make().map(Arc::new),
        }
    }

    /// Returns the factor with at most `rank` columns.
    fn factor(&self, rank: usize) -> Result<Arc<Factor>> {
        let rank = rank.min(self.kernel.rank(self.d()));
        let stop = Stop { rank, residual: ROUNDING };
        let make = || Factor::weighted(self.kernel, Weighted::of(self.rows), stop, self.seed, self.watch);
        self.shared(|shared| &shared.factors, rank, make)
    }

    /// Returns the factor with at most `rank` columns and the scatter of its rows.
    pub(crate) fn scattered(&self, rank: usize) -> Result<Arc<Scattered>> {
        let make = || {
            let factor = self.factor(rank)?;
            let (t, mean) = factor.scatter(self.center, self.watch)?;
            Ok(Scattered { factor, t, mean })
        };
        self.shared(|shared| &shared.scattered, (rank, self.center), make)
    }

    /// Computes the leading eigenpairs of `t`, the scatter of the factor.
    pub(crate) fn leading(&self, factor: &Factor, t: &Mat<f64>) -> Result<Pairs> {
        let pairs = top(t, self.q, Accuracy { trace: factor.trace, ..Accuracy::default() }, self.seed, self.watch)?;
        self.note_exact(factor, &pairs.values)?;
        Ok(pairs)
    }

    /// Returns the factor in coordinates where its scatter is diagonal.
    pub(crate) fn principal(&self, rank: usize) -> Result<Arc<Principal>> {
        let make = || {
            let Scattered { factor, t, .. } = Arc::unwrap_or_clone(self.scattered(rank)?);
            let (mut values, e) = dense::eigen(t.as_ref())?;
            values.iter_mut().for_each(|v| *v = v.max(0.0));
            Ok(Principal { factor: Arc::unwrap_or_clone(factor).rotated(e.as_ref()), values })
        };
        let principal = self.shared(|shared| &shared.principal, (rank, self.center), make)?;
        let Principal { factor, values } = &*principal;
        let leading = above_rounding(values, factor.trace).min(self.q);
        self.note_exact(factor, &values[..leading])?;
        Ok(principal)
    }

    /// Records the reference if the factor is complete: the sum of its leading eigenvalues.
    fn note_exact(&self, factor: &Factor, leading: &[f64]) -> Result<()> {
        self.note(self.exact(factor, leading)?);
        Ok(())
    }

    /// Returns what exact kernel PCA captures if the factor with these leading eigenvalues is complete.
    pub(super) fn exact(&self, factor: &Factor, leading: &[f64]) -> Result<Option<Reference>> {
        if factor.residual_trace <= EXACT * factor.trace {
            return self.captured(leading).map(Some);
        }
        if leading.is_empty() { Err(Error::NoVariance { why: NO_VARIANCE.into() }) } else { Ok(None) }
    }

    /// Returns what exact kernel PCA with these eigenvalues captures.
    pub(super) fn captured(&self, leading: &[f64]) -> Result<Reference> {
        if leading.is_empty() {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        Ok(Reference::known(self.n(), leading.iter().sum(), self.center, self.seed))
    }

    /// Records what exact kernel PCA captures for later calls of [`Task::reference`]. The first value stays.
    pub(super) fn note(&self, reference: Option<Reference>) {
        if let Some(reference) = reference {
            let _ = self.reference.set(Arc::new(reference));
        }
    }

    /// Computes the best components in the span of `rows`, or takes the method's `own` components over them.
    pub(crate) fn expansion(&self, rows: &[usize], own: Option<MatRef<f64>>) -> Result<Expansion> {
        let support = self.rows.gather(rows)?;
        match own {
            None => self.expansion_of(&support),
            Some(own) => self.span(&support)?.given(own, || gram(self.kernel, &support)),
        }
    }

    /// Computes the best components in the span of any points.
    pub(crate) fn expansion_of(&self, support: &Points<'static>) -> Result<Expansion> {
        self.span(support)?.best(self.q, self.watch)
    }

    /// Computes the span of any points.
    pub(crate) fn span(&self, support: &Points<'static>) -> Result<Span> {
        Span::new(self.kernel, self.rows, support, self.center, self.watch)
    }

    /// Returns the fidelity of components over `rows`: their captured variance divided by that of exact kernel PCA.
    pub(crate) fn fidelity(&self, rows: &[usize], expansion: &Expansion) -> Result<f64> {
        if expansion.kept.len() == self.n() && expansion.frame.is_none() {
            return Ok(1.0);
        }
        self.reference()?.fidelity(self.kernel, self.rows, || self.rows.gather(rows), expansion)
    }

    /// Returns the fidelity of components over any points.
    pub(crate) fn fidelity_of(&self, support: &Points<'static>, expansion: &Expansion) -> Result<f64> {
        self.reference()?.fidelity(self.kernel, self.rows, || Ok(support.clone()), expansion)
    }

    /// Returns the settings of the exact kernel PCA that this task is compared with.
    pub(crate) fn question(&self) -> Question {
        Question { q: self.q, center: self.center, seed: self.seed }
    }

    /// Returns what exact kernel PCA captures, computed on first use.
    pub(crate) fn reference(&self) -> Result<&Arc<Reference>> {
        if let Some(known) = self.reference.get() {
            return Ok(known);
        }
        let make = || Reference::new(self.kernel, self.rows, self.question(), self.watch);
        let reference = self.shared(|shared| &shared.references, (self.q, self.center), make)?;
        Ok(self.reference.get_or_init(|| reference))
    }

    /// Returns `‖φ̄‖²` if it has been computed already.
    pub(crate) fn known_mean_norm(&self) -> Option<f64> {
        self.reference.get().and_then(|reference| reference.mean_norm)
    }
}
