"""Kernels that the core does not know: a function of two rows, or a matrix of kernel values.

    K = F Fᵀ: the core fits its model to the rows of F under the linear kernel, and chooses among the samples.
    New rows need their kernel values with these samples, nothing of F.

n × n, unlike everything else here. Methods that move points have nothing to move.
"""

import json

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import _check_psd_eigenvalues

from . import _core, _registry


def is_given(kernel):
    return callable(kernel) or isinstance(kernel, str) and kernel == "precomputed"


def fit(X, kernel, scaling, names=None, words=None, **options):
    """As `_core.fit`, for rows under a function, or for a matrix of kernel values."""
    if scaling != "none":
        raise ValueError(f"scaling = {scaling!r}: must be none under a given kernel, which sees the rows as they are")
    values = X if kernel == "precomputed" else finite(pairwise_kernels(X, metric=kernel))
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"a precomputed kernel matrix must be square, X has shape {values.shape}")
    model = _core.fit(factor(values), kernel=_registry.LINEAR, scaling="none", **options)
    if "rows" not in model.arrays():
        method = json.loads(model.describe())["method"]["name"]
        others = [name for name, entry in _registry.METHODS.items() if not entry["synthetic_points"]]
        raise ValueError(f"the method {method} moves points, a given kernel has samples only: use {', '.join(others)}")
    return Given(model, kernel, X)


def finite(values):
    """Values of someone's function, which may be anything."""
    if not np.isfinite(values).all():
        raise ValueError("the kernel function returned values that are not finite numbers")
    return values


def factor(values):
    """Rows f_i with f_i · f_j = k(x_i, x_j)."""
    squares, vectors = np.linalg.eigh((values + values.T) / 2)
    squares = _check_psd_eigenvalues(squares)
    kept = squares > 0
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(squares[kept]))


class Given:
    """Does what the core's `Model` does, at kernel values that someone else computes."""

    def __init__(self, model, kernel, X):
        self.model, self.kernel, self.width = model, kernel, X.shape[1]
        self.parts = model.arrays()
        self.points = X[self.parts["rows"]] if callable(kernel) else np.empty((0, 0))

    def transform(self, X, single=False):
        return (self.values(X) - self.parts["mu"]) @ self.parts["coefficients"]

    def score(self, X, single=False):
        """k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ project(x)‖²"""
        if self.kernel == "precomputed":
            raise ValueError(
                "scores need k(x, x), which a precomputed kernel matrix does not hold: give a kernel function"
            )
        X = X.astype(np.float64, copy=False)
        lengths = np.array([self.kernel(x, x) for x in X], dtype=float)
        mu, beta = self.parts["mu"], self.parts["beta"]
        along = self.transform(X) @ self.parts.get("frame", np.eye(self.parts["coefficients"].shape[1]))
        return np.maximum(lengths - 2 * self.values(X) @ beta + mu @ beta - np.square(along).sum(axis=1), 0)

    def values(self, X):
        """Kernel values of rows with the support."""
        X = X.astype(np.float64, copy=False)
        if self.kernel == "precomputed":
            return X[:, self.parts["rows"]]
        return finite(pairwise_kernels(X, self.points, metric=self.kernel))

    def p_values(self, scores):
        return self.model.p_values(scores)

    def arrays(self):
        d = self.points.shape[1]
        return {**self.parts, "support": self.points, "scale": np.ones(d), "shift": np.zeros(d)}

    def describe(self):
        return json.dumps({**json.loads(self.model.describe()), "kernel": {"name": "given"}, "d": self.width})

    def score_gradient(self, X):
        raise ValueError("a given kernel has no gradient")

    def to_bytes(self):
        raise ValueError("a given kernel cannot be written to a model file: pickle the estimator")

    def save(self, path):
        self.to_bytes()
