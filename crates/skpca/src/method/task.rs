//! What a method is asked to do, and what fits have in common: factor, scatter, reference, components over a support.

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

/// Rank of the factor by default: all of it up to this many rows …
const EXACT_ROWS: usize = 1000;
/// … 500 above, and less where the factor would take more numbers than this.
const RANK: usize = 500;
pub(super) const LEAST_RANK: usize = 200;
const FACTOR: usize = 200_000_000;

/// The rank that the user asked for, or a good one for n rows.
pub(super) fn usual_rank(asked: Option<usize>, n: usize, target: Option<Target>) -> usize {
    let enough = match target {
        Some(Target::Support(m)) => m.saturating_mul(2),
        _ => 0,
    };
    match asked {
        Some(rank) => rank.clamp(1, n),
        None if n <= EXACT_ROWS => n,
        None => RANK.min((FACTOR / n).max(LEAST_RANK)).max(enough).min(n),
    }
}

/// A factor ends where no more than this share of the trace is left.
const ROUNDING: f64 = 1e-13;
/// One that leaves no more than this knows what exact kernel PCA captures.
const EXACT: f64 = 1e-11;
/// Why there is nothing to find.
pub(crate) const NO_VARIANCE: &str = "to working precision, the kernel does not vary over these rows";

/// All that a method may see.
pub(crate) struct Task<'a> {
    pub kernel: &'a Arc<dyn Kernel>,
    pub rows: &'a dyn Rows,
    /// Classes of the rows, where they are known.
    pub labels: Option<&'a Labels>,
    /// Components to find …
    pub q: usize,
    /// … and whether the user said so.
    pub asked: bool,
    pub target: Option<Target>,
    pub center: bool,
    pub seed: u64,
    pub watch: &'a dyn Watch,
    /// Whether anybody will ask for the fidelity.
    pub judged: bool,
    /// What exact kernel PCA captures, once somebody knows.
    reference: OnceLock<Arc<Reference>>,
    /// What fits before this one have made of the same rows.
    pub shared: Option<&'a Shared<'a>>,
}

impl<'a> Task<'a> {
    /// `q` components of all rows.
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

    /// The same task over other rows, such as some of them.
    pub(crate) fn on<'b>(&'b self, rows: &'b dyn Rows) -> Task<'b> {
        Task { rows, labels: None, reference: OnceLock::new(), shared: None, ..*self }
    }

    /// The same task with another number of components.
    pub(crate) fn with_components(&self, q: usize) -> Task<'a> {
        Task { q, reference: OnceLock::new(), ..*self }
    }

    /// The same task where what exact kernel PCA captures is known.
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

    /// What to aim at: the default fidelity unless the user says otherwise.
    pub(crate) fn aim(&self) -> Target {
        self.target.unwrap_or(Target::Fidelity(FIDELITY))
    }

    /// The number of points asked for; 0 where it is not that.
    pub(super) fn support(&self) -> usize {
        if let Some(Target::Support(m)) = self.target { m } else { 0 }
    }

    /// Refuses a target where the method was given its `own` parameter.
    pub(crate) fn refuse_target(&self, own: &str) -> Result<()> {
        self.target.map_or(Ok(()), |target| Err(target.refused(own)))
    }

    /// What fits before this one have made, or `make` makes.
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

    /// The factor with at most `rank` columns.
    fn factor(&self, rank: usize) -> Result<Arc<Factor>> {
        let rank = rank.min(self.kernel.rank(self.d()));
        let stop = Stop { rank, residual: ROUNDING };
        let make = || Factor::weighted(self.kernel, Weighted::of(self.rows), stop, self.seed, self.watch);
        self.shared(|shared| &shared.factors, rank, make)
    }

    /// The factor with at most `rank` columns and the scatter of its rows.
    pub(crate) fn scattered(&self, rank: usize) -> Result<Arc<Scattered>> {
        let make = || {
            let factor = self.factor(rank)?;
            let (t, mean) = factor.scatter(self.center, self.watch)?;
            Ok(Scattered { factor, t, mean })
        };
        self.shared(|shared| &shared.scattered, (rank, self.center), make)
    }

    /// The leading eigenpairs of the factor's `t`.
    pub(crate) fn leading(&self, factor: &Factor, t: &Mat<f64>) -> Result<Pairs> {
        let pairs = top(t, self.q, Accuracy { trace: factor.trace, ..Accuracy::default() }, self.seed, self.watch)?;
        self.note_exact(factor, &pairs.values)?;
        Ok(pairs)
    }

    /// The factor in coordinates where its scatter is diagonal.
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

    /// A factor that leaves nothing knows what exact kernel PCA captures: its leading eigenvalues.
    fn note_exact(&self, factor: &Factor, leading: &[f64]) -> Result<()> {
        self.note(self.exact(factor, leading)?);
        Ok(())
    }

    /// What exact kernel PCA captures, where a factor with these leading eigenvalues leaves nothing of it.
    pub(super) fn exact(&self, factor: &Factor, leading: &[f64]) -> Result<Option<Reference>> {
        if factor.residual_trace <= EXACT * factor.trace {
            return self.captured(leading).map(Some);
        }
        if leading.is_empty() { Err(Error::NoVariance { why: NO_VARIANCE.into() }) } else { Ok(None) }
    }

    /// What exact kernel PCA with these eigenvalues captures.
    pub(super) fn captured(&self, leading: &[f64]) -> Result<Reference> {
        if leading.is_empty() {
            return Err(Error::NoVariance { why: NO_VARIANCE.into() });
        }
        Ok(Reference::known(self.n(), leading.iter().sum(), self.center, self.seed))
    }

    /// Keeps what exact kernel PCA captures, where somebody knows, for all who ask later. The first to know it is
    /// right.
    pub(super) fn note(&self, reference: Option<Reference>) {
        if let Some(reference) = reference {
            let _ = self.reference.set(Arc::new(reference));
        }
    }

    /// The best components in the span of `rows`, or a method's `own` over them.
    pub(crate) fn expansion(&self, rows: &[usize], own: Option<MatRef<f64>>) -> Result<Expansion> {
        let support = self.rows.gather(rows)?;
        match own {
            None => self.expansion_of(&support),
            Some(own) => self.span(&support)?.given(own, || gram(self.kernel, &support)),
        }
    }

    /// The best components in the span of any points.
    pub(crate) fn expansion_of(&self, support: &Points<'static>) -> Result<Expansion> {
        self.span(support)?.best(self.q, self.watch)
    }

    /// The span of any points.
    pub(crate) fn span(&self, support: &Points<'static>) -> Result<Span> {
        Span::new(self.kernel, self.rows, support, self.center, self.watch)
    }

    /// The share of exact kernel PCA's captured variance that components over `rows` capture.
    pub(crate) fn fidelity(&self, rows: &[usize], expansion: &Expansion) -> Result<f64> {
        if expansion.kept.len() == self.n() && expansion.frame.is_none() {
            return Ok(1.0);
        }
        self.reference()?.fidelity(self.kernel, self.rows, || self.rows.gather(rows), expansion)
    }

    /// The same of components over any points.
    pub(crate) fn fidelity_of(&self, support: &Points<'static>, expansion: &Expansion) -> Result<f64> {
        self.reference()?.fidelity(self.kernel, self.rows, || Ok(support.clone()), expansion)
    }

    /// What is asked of exact kernel PCA of these rows.
    pub(crate) fn question(&self) -> Question {
        Question { q: self.q, center: self.center, seed: self.seed }
    }

    /// What exact kernel PCA captures, computed on first use.
    pub(crate) fn reference(&self) -> Result<&Arc<Reference>> {
        if let Some(known) = self.reference.get() {
            return Ok(known);
        }
        let make = || Reference::new(self.kernel, self.rows, self.question(), self.watch);
        let reference = self.shared(|shared| &shared.references, (self.q, self.center), make)?;
        Ok(self.reference.get_or_init(|| reference))
    }

    /// `‖φ̄‖²`, where it became known on the way.
    pub(crate) fn known_mean_norm(&self) -> Option<f64> {
        self.reference.get().and_then(|reference| reference.mean_norm)
    }
}
