"""`SparseLinearPCA`: linear components that look at few columns each."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _core, _parameters, _threads
from ._collections import over_partitions, refuse
from ._documentation import Linked
from ._kernel_model import SHORTFALL, progress, refuse_masked
from ._parameters import INTEGERS, about, documented, is_flag, is_number, is_positive, is_whole
from ._registry import COLUMNS
from ._spec import text
from .exceptions import ShortfallWarning

# What the core calls parameters that have other names here.
NAMES = {**_parameters.NAMES, "nonzero": "n_nonzero", "alternations": "max_iter", "tolerance": "tol"}


def are(is_one):
    """One value, or a sequence of them."""

    def check(value):
        several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        return len(value) > 0 and all(map(is_one, value)) if several else is_one(value)

    return check


@documented
@dataclass(eq=False, repr=False)
class SparseLinearPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Linked, BaseEstimator):
    """PCA whose components look at few columns each (Zou, Hastie & Tibshirani 2006).

    Each component is an elastic-net regression on its principal component; components and regressions are found in
    turn. One pass over the rows makes their covariance matrix, and nothing else is kept of them. Columns are taken as
    they are: where they have different units, put a `StandardScaler` before it.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings, of unit length; most are exactly zero.
    n_nonzero_ : ndarray of shape (n_components,)
        How many loadings of each component are not zero.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each component, per row.
    adjusted_variance_ : ndarray of shape (n_components,)
        Of each what is uncorrelated with those before it, as in the paper.
    adjusted_variance_ratio_ : ndarray of shape (n_components,)
        The same as shares of the variance of all columns.
    captured_variance_ratio_ : float
        Share of the variance of all columns in the span of the components.
    fidelity_ : float
        Share of what as many components of PCA capture.
    penalties_ : ndarray of shape (n_components,) or (1,)
        The penalty of each component, or of all.
    ridge_ : float
        The ridge.
    mean_ : ndarray of shape (n_features,)
        Means of the columns; zeros after `fit_covariance`.
    report_ : dict
        How the fit went: objective, gap, rounds, converged, notes.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, where all are strings.

    See Also
    --------
    SparseKernelPCA : Components that are sums over few points.
    sklearn.decomposition.SparsePCA : Another objective, solved by dictionary learning.

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
            "Number of components; None is 10, or the rank of the data where that is lower.", is_whole, INTEGERS
        ),
    )
    n_nonzero: int | Sequence | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "How many loadings of each component are not zero: one number, or one per component.",
            are(is_whole),
            f"{INTEGERS} or a sequence of them",
        ),
    )
    penalty: float | Sequence | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "What the size of a loading costs, in units of the covariance, instead: one number, or one per component.",
            are(lambda value: is_number(value) and value >= 0),
            "a float in the range [0.0, inf) or a sequence of them",
        ),
    )
    fidelity: float | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "How good the components must be, as a share of what PCA captures, instead. With none of the three: 0.95.",
            lambda value: is_positive(value) and value <= 1,
            "a float in the range (0.0, 1.0]",
        ),
    )
    ridge: float | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "What the squared length of the loadings costs; None is 1e-2 times the largest eigenvalue.",
            lambda value: is_number(value) and value >= 0,
            "a float in the range [0.0, inf)",
        ),
    )
    sequential: bool = field(
        default=False,
        kw_only=True,
        metadata=about("Whether components are found one after the other.", is_flag, "a bool"),
    )
    polish: bool = field(
        default=False,
        kw_only=True,
        metadata=about(
            "Whether the loadings, on the columns that were chosen, are replaced by those whose span captures most.",
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
            "Maximum number of iterations.", lambda value: is_whole(value, 0, 10**15), "an int in the range [0, 10**15]"
        ),
    )
    n_jobs: int | None = field(
        default=None,
        kw_only=True,
        metadata=about(
            "Number of threads, as in the other estimators. Results do not depend on it.",
            lambda value: is_whole(value, -(2**63)) and value != 0,
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
        refuse(X, "give the covariance matrix of its columns to fit_covariance")
        refuse_masked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2)
        return self._fit(np.ascontiguousarray(X, dtype=np.float64))

    def fit_covariance(self, covariance):
        """Fit the components to a covariance or correlation matrix.

        `transform` then takes rows whose columns have mean 0, and variance 1 where it is a correlation matrix.

        Parameters
        ----------
        covariance : array-like of shape (n_features, n_features)
            A symmetric matrix, a row for each column.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        refuse(covariance, "a covariance matrix is small")
        refuse_masked(covariance=covariance)
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
            message = f"the loadings did not settle in {self.n_iter_} rounds: raise max_iter or tol, or see report_"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        for note in self.report_["notes"]:
            if SHORTFALL in note:
                warnings.warn(note, ShortfallWarning, stacklevel=3)
        return self

    @over_partitions
    def transform(self, X):
        """Features of rows: their products with the loadings.

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
        refuse_masked(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return ((X - self.mean_) @ self.components_.T).astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """Rows in the span of the components that have these features.

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
        refuse(X, "features are inverted as arrays only")
        refuse_masked(X=X)
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
