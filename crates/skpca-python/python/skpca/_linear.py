"""`SparseLinearPCA`: linear components with few non-zero loadings each."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _core, _parameters, _threads
from ._collections import over_partitions, reject_collection
from ._documentation import Linked
from ._kernel_model import SHORTFALL, progress, reject_masked
from ._parameters import INTEGERS, about, documented, is_flag, is_integer, is_number, is_positive
from ._registry import COLUMNS
from ._spec import text
from .exceptions import ShortfallWarning

# The core's names of parameters that have other names here.
NAMES = {**_parameters.NAMES, "nonzero": "n_nonzero", "alternations": "max_iter", "tolerance": "tol"}


def are(is_one):
    """Returns a check that accepts one value or a sequence of values."""

    def check(value):
        several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        return len(value) > 0 and all(map(is_one, value)) if several else is_one(value)

    return check


@documented
@dataclass(eq=False, repr=False)
class SparseLinearPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Linked, BaseEstimator):
    """PCA whose components have few non-zero loadings each (Zou, Hastie & Tibshirani 2006).

    Each component is an elastic-net regression on its principal component; components and regressions are updated
    alternately. Only the covariance matrix of the rows is needed, which takes one pass. Columns are not scaled: if
    their units differ, put a `StandardScaler` in front.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings, of unit length; most are exactly zero.
    n_nonzero_ : ndarray of shape (n_components,)
        Number of non-zero loadings of each component.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each component, per row.
    adjusted_variance_ : ndarray of shape (n_components,)
        Variance of each component that is uncorrelated with the preceding ones, as in the paper.
    adjusted_variance_ratio_ : ndarray of shape (n_components,)
        Adjusted variances as shares of the total variance of the columns.
    captured_variance_ratio_ : float
        Share of the total variance of the columns that lies in the span of the components.
    fidelity_ : float
        Captured variance as a share of what PCA captures with as many components.
    penalties_ : ndarray of shape (n_components,) or (1,)
        The penalty of each component, or one for all.
    ridge_ : float
        The ridge.
    mean_ : ndarray of shape (n_features,)
        Means of the columns; zeros after `fit_covariance`.
    report_ : dict
        Diagnostics of the fit: objective, gap, rounds, converged, notes.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    See Also
    --------
    SparseKernelPCA : Components in feature space over few support points.
    sklearn.decomposition.SparsePCA : Minimises another objective by dictionary learning.

    References
    ----------
    .. [1] H. Zou, T. Hastie and R. Tibshirani, "Sparse principal component analysis", Journal of Computational and
       Graphical Statistics 15 (2006), 265-286. doi:10.1198/106186006X113430

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skpca import SparseLinearPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = SparseLinearPCA(n_components=5, n_nonzero=12).fit(X)
    >>> pca.transform(X).shape
    (1797, 5)
    >>> pca.n_nonzero_.tolist()
    [12, 12, 12, 12, 12]
    >>> bool(pca.fidelity_ > 0.75)
    True
    """

    n_components: int | None = field(
        default=None,
        metadata=about(
            "Number of components; None is 10, or the rank of the data if that is lower.", is_integer, INTEGERS
        ),
    )
    n_nonzero: int | Sequence | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "Number of non-zero loadings: one for all components, or one per component.",
            are(is_integer),
            f"{INTEGERS} or a sequence of them",
        ),
    )
    penalty: float | Sequence | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "L1 penalty on the loadings, in units of the covariance, instead of `n_nonzero`: one for all components, or"
            " one per component.",
            are(lambda value: is_number(value) and value >= 0),
            "a float in the range [0.0, inf) or a sequence of them",
        ),
    )
    fidelity: float | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "Share of what PCA captures that the components must reach, instead of `n_nonzero` or `penalty`; 0.95 if"
            " none of the three is given.",
            lambda value: is_positive(value) and value <= 1,
            "a float in the range (0.0, 1.0]",
        ),
    )
    ridge: float | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "Ridge penalty on the loadings; None is 1e-2 times the largest eigenvalue.",
            lambda value: is_number(value) and value >= 0,
            "a float in the range [0.0, inf)",
        ),
    )
    sequential: bool = field(
        default=False,
        kw_only=True,
        metadata=about("Whether components are fitted one after the other.", is_flag, "a bool"),
    )
    polish: bool = field(
        default=False,
        kw_only=True,
        metadata=about(
            "Whether the loadings are refitted on the selected columns so that their span captures the most variance.",
            is_flag,
            "a bool",
        ),
    )
    tol: float = field(
        default=1e-6,
        kw_only=True,
        metadata=about(
            "Iterations end when no component moves by more than this.", is_positive, "a float in the range (0.0, inf)"
        ),
    )
    max_iter: int = field(
        default=500,
        kw_only=True,
        metadata=about(
            "Maximum number of iterations.",
            lambda value: is_integer(value, 0, 10**15),
            "an int in the range [0, 10**15]",
        ),
    )
    n_jobs: int | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "Number of threads, as in the other estimators. Results do not depend on it.",
            lambda value: is_integer(value, -(2**63)) and value != 0,
            "an int other than 0",
        ),
    )
    verbose: int = field(default=0, kw_only=True, metadata=about("Whether progress is shown."))

    def fit(self, X, y=None):
        """Fit the components to rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        reject_collection(X, "give the covariance matrix of its columns to fit_covariance")
        reject_masked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2)
        return self._fit(np.ascontiguousarray(X, dtype=np.float64))

    def fit_covariance(self, covariance):
        """Fit the components to a covariance or correlation matrix.

        `transform` then takes rows whose columns have mean 0, and variance 1 for a correlation matrix.

        Parameters
        ----------
        covariance : array-like of shape (n_features, n_features)
            A symmetric matrix.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        reject_collection(covariance, "a covariance matrix is small")
        reject_masked(covariance=covariance)
        covariance = validate_data(self, covariance, dtype=np.float64, order="C")
        return self._fit(covariance, covariance=True)

    def _fit(self, X, **options):
        _parameters.check_each(self)
        sizes = {"nonzero": self.n_nonzero, "penalty": self.penalty, "ridge": self.ridge}
        given = {name: np.asarray(value).tolist() for name, value in sizes.items() if value is not None}
        others = {"sequential": bool(self.sequential), "polish": bool(self.polish)}
        others |= {"tolerance": float(self.tol), "alternations": int(self.max_iter)}
        with _threads.limited(self.n_jobs), _parameters.renamed(self, NAMES):
            found = _core.loadings(
                X,
                method=text("method", {"name": COLUMNS, **given, **others}),
                components=self.n_components,
                fidelity=self.fidelity,
                progress=progress(type(self).__name__) if self.verbose else None,
                **options,
            )
        self.components_ = found["components"]
        self.n_nonzero_ = np.count_nonzero(self.components_, axis=1)
        self.explained_variance_ = found["variances"]
        self.adjusted_variance_ = found["adjusted"]
        self.adjusted_variance_ratio_ = found["adjusted"] / found["total"]
        self.captured_variance_ratio_ = found["captured"] / found["total"]
        self.fidelity_ = found["fidelity"]
        self.penalties_, self.ridge_ = found["penalties"], found["ridge"]
        self.mean_ = found["mean"]
        self.report_ = found["report"]
        self.n_components_ = len(self.components_)
        self.n_iter_ = max(1, self.report_["rounds"])
        if not self.report_["converged"]:
            message = f"the loadings did not converge in {self.n_iter_} rounds: raise max_iter or tol, or see report_"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        for note in self.report_["notes"]:
            if SHORTFALL in note:
                warnings.warn(note, ShortfallWarning, stacklevel=3)
        return self

    @over_partitions
    def transform(self, X):
        """Project centred rows onto the loadings.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_components)
            Features, in float32 if X is.
        """
        check_is_fitted(self)
        reject_masked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return ((X - self.mean_) @ self.components_.T).astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """Find the rows in the span of the components that have the given features.

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
        return (X @ np.linalg.pinv(self.components_).T + self.mean_).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
