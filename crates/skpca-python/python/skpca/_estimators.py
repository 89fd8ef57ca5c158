"""`SparseKernelPCA`: kernel PCA with a handful of support points."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from . import _preimage
from ._collections import over_partitions, reject_collection
from ._kernel_model import double, has_density, is_sparse, reject_masked
from ._online import OnlineModel
from ._parameters import about, among, documented, is_number, is_one_of
from ._registry import KERNELS, listed, those
from ._threads import on_threads

INVERSES = ("fixed-point", "ridge", "kernel-ridge")


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SparseKernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OnlineModel):
    """Kernel PCA whose components are linear combinations of a handful of points in feature space.

    Kernel PCA keeps every training row. This estimator keeps `n_support` points, or the fewest that reach a `fidelity`:
    the share of the variance captured by exact kernel PCA. Columns are not scaled by default: if their units differ,
    set `scaling` or put a `StandardScaler` in front.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    support_ : ndarray of shape (n_support,) or None
        Indices of the training rows that are kept; None if the points are synthetic.
    support_vectors_ : ndarray of shape (n_support, n_features)
        The points that are kept.
    coefficients_ : ndarray of shape (n_support, n_components)
        Coefficients of the components over these points.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each component.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along each component, as a share of the total variance in feature space.
    captured_variance_ratio_ : float
        Share of the total variance that all components capture; the sum of the above if they are uncorrelated.
    eigenvalues_ : ndarray of shape (n_components,)
        Variances times the number of rows, as in KernelPCA.
    fidelity_ : float
        Captured variance as a share of what exact kernel PCA captures.
    gamma_ : float or None
        The kernel's coefficient that was used.
    report_ : dict
        Diagnostics of the fit: objective, gap, rounds, converged, notes.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Number of iterations; 1 if the method does not iterate.
    n_samples_seen_ : int
        Number of rows seen by `fit` and `partial_fit`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    KernelNovelty : The same model as a novelty detector.
    sklearn.decomposition.KernelPCA : Keeps every row.

    References
    ----------
    Kernel PCA, and papers on its sparse forms; the description of each method cites its own.

    .. [1] B. Schölkopf, A. Smola and K.-R. Müller, "Nonlinear component analysis as a kernel eigenvalue problem",
       Neural Computation 10 (1998), 1299-1319. doi:10.1162/089976698300017467
    .. [2] M. E. Tipping, "Sparse kernel principal component analysis", Advances in Neural Information Processing
       Systems 13 (2001), 633-639.
    .. [3] R. Zhang, W. Wang and Y. Ma, "Approximations of the standard principal components analysis and kernel PCA",
       Expert Systems with Applications 37 (2010), 6531-6537. doi:10.1016/j.eswa.2010.02.133
    .. [4] J.-B. Li and H. Gao, "Sparse data-dependent kernel principal component analysis based on least squares
       support vector machine for feature extraction and recognition", Neural Computing and Applications 21 (2012).
    .. [5] R. Das, A. Golatkar and S. Awate, "Sparse kernel PCA for outlier detection", ICMLA 2018.
       doi:10.48550/arXiv.1809.02497
    .. [6] D. Wang and T. Tanaka, "Kernel principal component analysis allowing sparse representation and sample
       selection", ECTI Transactions on Computer and Information Technology 13 (2019), no. 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skpca import SparseKernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = SparseKernelPCA(n_components=8, n_support=20, random_state=0).fit(X)
    >>> pca.transform(X).shape
    (1797, 8)
    >>> pca.support_vectors_.shape
    (20, 64)
    >>> bool(pca.fidelity_ > 0.95)
    True
    """

    inverse: str | None = field(
        default=None,
        metadata=about(
            'How `inverse_transform` finds rows: "fixed-point", the iteration of Mika et al. (1998), only for'
            f" {listed(those(KERNELS, 'gaussian'))} and its default;"
            ' "ridge", a ridge regression of the training rows on their features, the default of the other kernels; or'
            ' "kernel-ridge", a kernel ridge regression over the features of the support, which removes noise best.',
            is_one_of(INVERSES),
            f"a str among {among(INVERSES)}",
        ),
    )
    alpha: float = field(
        default=1.0,
        metadata=about(
            "Ridge penalty of these regressions.",
            lambda value: is_number(value) and value >= 0,
            "a float in the range [0.0, inf)",
        ),
    )

    def fit(self, X, y=None, sample_weight=None):
        """Fit the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or an iterable of blocks of rows
            Training rows. Sparse rows whose dense copy would take more than 100 MB stay sparse: the points are then
            chosen on a sample, and the kernel must be a function of inner products and norms. Rows that do not fit in
            memory may be given as blocks: by a generator or a function that returns one, a
            ``pyarrow.dataset.Dataset`` or ``RecordBatchReader``, or a polars ``LazyFrame``; they are written to a
            temporary file and read in passes. A large ``np.memmap`` is read in place.
        y : array-like of shape (n_samples,), default=None
            Class labels, of any type; used only by methods and kernels that need labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, 1 by default: a row of weight 3 counts as three equal rows, one of weight 0 is ignored.
            Methods that cannot use weights raise an error.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit_inverse(*self._fit(X, y, sample_weight))
        return self

    @on_threads
    def _fit_inverse(self, X, weights):
        """Fits what `inverse_transform` needs from the training rows."""
        inverse = self.inverse or ("fixed-point" if _preimage.applies(self._model) else "ridge")
        if inverse == "fixed-point" and not _preimage.applies(self._model):
            raise ValueError(f"inverse = 'fixed-point': only {listed(those(KERNELS, 'gaussian'))} has one")
        if is_sparse(X):
            if self.inverse in ("ridge", "kernel-ridge"):
                raise ValueError(f"inverse = {self.inverse!r}: expected None on rows that stay sparse, or dense rows")
            return
        if not self.__sklearn_tags__().input_tags.pairwise and X.dtype != object:
            if inverse == "ridge":
                self._inverse = Ridge(alpha=self.alpha).fit(self._model.transform(X), X, sample_weight=weights)
            elif inverse == "kernel-ridge":
                self._inverse = _preimage.KernelRidge(self._model, self.support_vectors_, X, self.alpha, weights)

    @over_partitions
    @on_threads
    def transform(self, X):
        """Project rows onto the components, at `n_support` kernel values per row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_components)
            Features, in float32 if X is.
        """
        X = self._queries(X)
        return self._features(X).astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)

    @on_threads
    def inverse_transform(self, X):
        """Find rows whose features are close to the given features.

        Uses a fixed-point iteration over the support or a regression, depending on the parameter `inverse`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Features.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        reject_collection(X, "inverse_transform takes arrays only")
        reject_masked(X=X)
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X has {X.shape[1]} columns, expected one for each of {self.n_components_} components")
        if self._inverse is not None:
            rows = self._inverse.predict(X)
        elif self.inverse in (None, "fixed-point") and _preimage.applies(self._model):
            rows = _preimage.fixed_point(self._model, X.astype(np.float64))
        else:
            raise NotFittedError(
                "no inverse: a precomputed kernel has none, and of a model file, or after partial_fit, only the fixed"
                " point is left"
            )
        return rows.astype(X.dtype, copy=False)

    @on_threads
    def score(self, X, y=None):
        """Return the share of the variance of X in feature space that the components capture.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Between 0 and 1; equal to `captured_variance_ratio_` on the training rows.
        """
        X = self._queries(X)
        X = X.astype(np.float64, copy=False) if is_sparse(X) else double(X)
        captured = np.square(self._along(self._features(X))).sum()
        return float(captured / (captured + self._novelty(X).sum()))

    @available_if(has_density)
    def score_samples(self, X):
        """Log-likelihood of rows: an alias of `log_likelihood`, named as in `sklearn.decomposition.PCA`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Natural logarithms.
        """
        return self.log_likelihood(X)

    def _adopt(self, model):
        self._inverse = None
        return super()._adopt(model)

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
