"""`SparseKernelPCA`: kernel PCA that keeps a handful of points."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_array, check_is_fitted

from . import _parameters, _preimage
from ._kernel_model import KernelModel, dense, double, refuse_masked

INVERSES = (None, "fixed-point", "ridge", "kernel-ridge")


class SparseKernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelModel):
    """Kernel PCA whose components are sums over a handful of points.

    Kernel PCA keeps every training row. This keeps `n_support` points, or as few as reach a `fidelity`: the share of
    what exact kernel PCA captures. Columns are taken as they are: where they have different units, give a `scaling` or
    put a `StandardScaler` before it.

    Parameters
    ----------
    n_components : int, default=None
        Number of components; None is 10, or the rank of the data where that is lower.
    method : str or dict, default="expansion"
        How the points are found: "exact" (all rows), "landmarks", "l1", "l21", "elastic-net", "threshold", "energy",
        "likelihood", "greedy", "expansion" (points that are no samples: the smallest models) or
        "discriminant" (needs `y`). A dict gives a method's own parameters too: ``{"name": "l21", "penalty": 0.1}``.
    kernel : str or dict, default="rbf"
        "rbf", "laplacian", "poly", "sigmoid", "linear", "cosine" or "conformal" (needs `y`), or a dict:
        ``{"name": "rbf", "gamma": 0.5}``. A function of two rows, or "precomputed" (X is the matrix of kernel values,
        then of those of new rows with the training rows), works with every method but "expansion"; it takes an
        n_samples x n_samples matrix and cannot be saved to a model file.
    gamma : float or {"median", "mean", "scale"}, default=None
        The kernel's coefficient. None is the median rule for "rbf" and "laplacian", 1 / median (squared) distance of
        two rows, and "scale", 1 / (n_features * X.var()), for "poly" and "sigmoid". KernelPCA's default would
        be ``1 / n_features``.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=1
        Constant of the kernels "poly" and "sigmoid".
    n_support : int, default=None
        How many points are kept.
    fidelity : float, default=None
        How good the components must be, from 0 to 1. With neither this nor `n_support`: 0.95.
    center : bool, default=None
        Whether features are centred; None does as the method's paper: all but "likelihood" do.
    scaling : {"none", "standard", "minmax"}, default="none"
        How columns are scaled before the kernel sees them: not at all, to mean 0 and variance 1 (as the `skpca` program
        does by default), or to the range from 0 to 1.
    refit : bool, default=True
        Whether the best components over the chosen points replace those of the method's paper. For "l1", "l21",
        "elastic-net", "threshold" and "likelihood"; the others have no components but the best.
    tol : float, default=None
        Where the iterations of "l1", "l21", "elastic-net" and "likelihood" end.
    max_iter : int, default=None
        Most iterations: alternations of "l1", "l21" and "elastic-net", steps of "expansion", passes of exchanges
        of "greedy".
    inverse : {"fixed-point", "ridge", "kernel-ridge"}, default=None
        How `inverse_transform` finds rows: the fixed point of Mika et al. (1998), for the kernel "rbf" alone and its
        default; a ridge regression of the training rows on their features, the default of the other kernels; or a
        kernel ridge regression over the features of the support, which removes noise best.
    alpha : float, default=1.0
        Ridge of these regressions.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is random. The same seed gives the same bits on any number of threads.
    n_jobs : int, default=None
        There for compatibility: all threads of the machine are used. ``RAYON_NUM_THREADS`` limits them.
    verbose : int, default=0
        Whether progress is shown.

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

    def __init__(
        self,
        n_components=None,
        *,
        method="expansion",
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1,
        n_support=None,
        fidelity=None,
        center=None,
        scaling="none",
        refit=True,
        tol=None,
        max_iter=None,
        inverse=None,
        alpha=1.0,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            n_components,
            method=method,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            n_support=n_support,
            fidelity=fidelity,
            center=center,
            scaling=scaling,
            refit=refit,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.inverse = inverse
        self.alpha = alpha

    def fit(self, X, y=None):
        """Fit the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; sparse ones are made dense.
        y : array-like of shape (n_samples,), default=None
            Classes, of any type; used by the method "discriminant" and the kernel "conformal" only.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.inverse not in INVERSES:
            raise ValueError(f"inverse = {self.inverse!r}: expected one of {INVERSES}")
        if not (_parameters.is_number(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha = {self.alpha!r}: must be a finite number from 0")
        X = self._fit(X, y)
        inverse = self.inverse or ("fixed-point" if _preimage.applies(self._model) else "ridge")
        if inverse == "fixed-point" and not _preimage.applies(self._model):
            raise ValueError("inverse = 'fixed-point': only the kernel rbf has one")
        if not self.__sklearn_tags__().input_tags.pairwise:
            if inverse == "ridge":
                self._inverse = Ridge(alpha=self.alpha).fit(self._model.transform(X), X)
            elif inverse == "kernel-ridge":
                self._inverse = _preimage.KernelRidge(self._model, self.support_vectors_, X, self.alpha)
        return self

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
                "models under a precomputed kernel have no inverse, and those from files only the fixed point under rbf"
            )
        return rows.astype(X.dtype, copy=False)

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
