"""`SparseKernelPCA`: kernel PCA that keeps a handful of points."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_array, check_is_fitted

from . import _preimage
from ._kernel_model import KernelModel, dense, double, refuse_masked
from ._parameters import about, documented, is_number, is_one_of
from ._registry import KERNELS, listed, those
from ._threads import on_threads

INVERSES = ("fixed-point", "ridge", "kernel-ridge")


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SparseKernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelModel):
    """Kernel PCA whose components are sums over a handful of points.

    Kernel PCA keeps every training row. This keeps `n_support` points, or as few as reach a `fidelity`: the share of
    what exact kernel PCA captures. Columns are taken as they are: where they have different units, give a `scaling` or
    put a `StandardScaler` before it.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    support_ : ndarray of shape (n_support,) or None
        Rows that are kept; None where the points are no samples.
    support_vectors_ : ndarray of shape (n_support, n_features)
        The points that are kept.
    coefficients_ : ndarray of shape (n_support, n_components)
        Components as sums over these points in feature space.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each component.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as shares of all variance in feature space.
    captured_variance_ratio_ : float
        Share of all variance that the components hold together; the sum of the above where they are uncorrelated.
    eigenvalues_ : ndarray of shape (n_components,)
        Variances times the number of rows, as in KernelPCA.
    fidelity_ : float
        Share of what exact kernel PCA captures.
    gamma_ : float or None
        The kernel's coefficient, resolved.
    report_ : dict
        How the fit went: objective, gap, rounds, converged, notes.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Rounds of the method; 1 where it has none.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are strings.

    See Also
    --------
    KernelNovelty : The same model as a detector of outliers.
    sklearn.decomposition.KernelPCA : Keeps every row.

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
            'How `inverse_transform` finds rows: "fixed-point", the iteration of Mika et al. (1998), for the kernel'
            f" {listed(those(KERNELS, 'gaussian'))} alone and its default;"
            ' "ridge", a ridge regression of the training rows on their features, the default of the other kernels; or'
            ' "kernel-ridge", a kernel ridge regression over the features of the support, which removes noise best.',
            is_one_of(INVERSES),
            f"one of {', '.join(INVERSES)}",
        ),
    )
    alpha: float = field(
        default=1.0,
        metadata=about(
            "Ridge of these regressions.", lambda value: is_number(value) and value >= 0, "a finite number from 0"
        ),
    )

    def fit(self, X, y=None):
        """Fit the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; sparse ones are made dense.
        y : array-like of shape (n_samples,), default=None
            Classes, of any type; only methods and kernels that need labels look at them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit_inverse(self._fit(X, y))
        return self

    @on_threads
    def _fit_inverse(self, X):
        """What `inverse_transform` needs of the training rows."""
        inverse = self.inverse or ("fixed-point" if _preimage.applies(self._model) else "ridge")
        if inverse == "fixed-point" and not _preimage.applies(self._model):
            raise ValueError(f"inverse = 'fixed-point': only {listed(those(KERNELS, 'gaussian'))} has one")
        if not self.__sklearn_tags__().input_tags.pairwise and X.dtype != object:
            if inverse == "ridge":
                self._inverse = Ridge(alpha=self.alpha).fit(self._model.transform(X), X)
            elif inverse == "kernel-ridge":
                self._inverse = _preimage.KernelRidge(self._model, self.support_vectors_, X, self.alpha)

    @on_threads
    def transform(self, X):
        """Features of rows, at `n_support` kernel values each.

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
        features = self._model.transform(dense(X), single=X.dtype == np.float32)
        return features.astype(X.dtype, copy=False)

    @on_threads
    def inverse_transform(self, X):
        """Rows whose features are near the given ones.

        By a fixed point over the support or by a regression, as the parameter `inverse` says.

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
        refuse_masked(X=X)
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X has {X.shape[1]} columns, expected one for each of {self.n_components_} components")
        if self._inverse is not None:
            rows = self._inverse.predict(X)
        elif self.inverse in (None, "fixed-point") and _preimage.applies(self._model):
            rows = _preimage.fixed_point(self._model, X.astype(np.float64))
        else:
            raise NotFittedError(
                "no inverse: a precomputed kernel has none, and of a model file only the fixed point is left"
            )
        return rows.astype(X.dtype, copy=False)

    @on_threads
    def score(self, X, y=None):
        """Share of the variance of X in feature space that the components capture.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
            From 0 to 1; on the training rows it is `captured_variance_ratio_`.
        """
        X = double(self._queries(X))
        captured = np.square(self._along(self._model.transform(X))).sum()
        return float(captured / (captured + self._model.score(X).sum()))

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
