"""User-defined kernels: a function of two rows or of two tables, or a precomputed matrix of kernel values.

    K = F Fᵀ: the core fits its model to the rows of F under the linear kernel, and chooses points among the samples.
    New rows need only their kernel values with the chosen samples, not F.

This stores an n × n matrix, unlike the rest of the package. Methods that move points cannot be used. Rows may be any
objects that the function accepts, such as strings or graphs.
"""

import json
from numbers import Number

import numpy as np
from sklearn.utils.validation import _check_psd_eigenvalues

from . import _core, _registry

# The method used instead of the default, which moves points.
AMONG_SAMPLES = "greedy"


def is_given(kernel):
    return callable(kernel) or isinstance(kernel, str) and kernel == "precomputed"


def as_objects(X):
    """Returns an array of the objects in X, or None if X holds rows of numbers."""
    shape = getattr(X, "shape", None)
    if not hasattr(X, "__len__") or shape is not None and len(shape) != 1 or not len(X):
        return None
    if is_numbers(next(iter(X))):
        return None
    objects = np.empty(len(X), dtype=object)
    objects[:] = list(X)
    return objects


def is_numbers(row):
    """Whether a row holds numbers or is an array of any type; False for strings and anything numpy cannot read."""
    if isinstance(row, (str, bytes)):
        return False
    try:
        return isinstance(row, Number) or hasattr(row, "dtype") or np.ndim(np.asarray(row, dtype=float)) > 0
    except Exception:  # noqa: BLE001  (an arbitrary object may raise anything when converted to an array)
        return False


def fit(X, kernel, scaling, names=None, words=None, **options):
    """Like `_core.fit`, for rows with a kernel function, or for a matrix of kernel values."""
    if scaling != "none":
        raise ValueError(f"scaling = {scaling!r}: must be None under a given kernel, which sees the rows as they are")
    values = X if isinstance(kernel, str) else matrix(kernel, X, X)
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"a precomputed kernel matrix must be square, X has shape {values.shape}")
    method, notes = json.loads(options.pop("method")), []
    if _registry.METHODS.get(method["name"], {}).get("synthetic_points"):
        if len(method) > 1:
            others = [name for name, entry in _registry.METHODS.items() if not entry["synthetic_points"]]
            message = f"the method {method['name']} moves points, a given kernel has samples only: use one of "
            raise ValueError(message + ", ".join(others))
        notes = [f"{method['name']} moves points and a given kernel has samples only: fitted by {AMONG_SAMPLES}"]
        method = {"name": AMONG_SAMPLES}
    model = _core.fit(factor(values), method=json.dumps(method), kernel=_registry.LINEAR, scaling="none", **options)
    return Given(model, kernel, X, notes)


def matrix(kernel, X, Z):
    """Computes K(X, Z) by a function of two tables, as in scikit-learn, or of two rows."""
    if takes_tables(kernel, Z):
        values = np.asarray(kernel(X, Z), dtype=float)
    elif X is Z:
        values = np.zeros((len(X), len(X)))
        for i, x in enumerate(X):
            values[i, : i + 1] = [kernel(x, z) for z in X[: i + 1]]
        values += np.tril(values, -1).T
    else:
        values = np.array([[kernel(x, z) for z in Z] for x in X], dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("the kernel function returned values that are not finite numbers")
    return values


def takes_tables(kernel, X):
    """Whether a function takes tables: for tables of one and two rows it returns a 1 × 2 matrix."""
    few = np.concatenate([X[:1], X[:1]])
    try:
        return np.shape(kernel(X[:1], few)) == (1, 2)
    except Exception:  # noqa: BLE001  (a function of two rows may raise anything when given tables)
        return False


def diagonal(kernel, X):
    """Computes k(x, x) for every row."""
    if takes_tables(kernel, X):
        return np.array([kernel(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(len(X))], dtype=float)
    return np.array([kernel(x, x) for x in X], dtype=float)


def factor(values):
    """Computes rows f_i with f_i · f_j = k(x_i, x_j)."""
    squares, vectors = np.linalg.eigh((values + values.T) / 2)
    squares = _check_psd_eigenvalues(squares)
    kept = squares > 0
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(squares[kept]))


def numbers(X):
    """Converts rows of numbers to float64; leaves other objects unchanged."""
    return X if X.dtype == object else X.astype(np.float64, copy=False)


class Given:
    """The interface of the core's `Model`, with kernel values computed by the user."""

    def __init__(self, model, kernel, X, notes):
        self.model, self.kernel, self.width = model, kernel, X.shape[1] if X.ndim == 2 else 1
        self.parts, self.notes = model.arrays(), notes
        self.points = X[self.parts["rows"]] if callable(kernel) else np.empty((0, 0))

    def transform(self, X, single=False):
        return (self.values(X) - self.parts["mu"]) @ self.parts["coefficients"]

    def score(self, X, single=False):
        """k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ project(x)‖²"""
        if self.kernel == "precomputed":
            raise ValueError(
                "scores need k(x, x), which a precomputed kernel matrix does not hold: give a kernel function"
            )
        X = numbers(X)
        lengths = diagonal(self.kernel, X)
        mu, beta = self.parts["mu"], self.parts["beta"]
        along = self.transform(X) @ self.parts.get("frame", np.eye(self.parts["coefficients"].shape[1]))
        return np.maximum(lengths - 2 * self.values(X) @ beta + mu @ beta - np.square(along).sum(axis=1), 0)

    def values(self, X):
        """Computes the kernel values of rows with the support."""
        X = numbers(X)
        return X[:, self.parts["rows"]] if isinstance(self.kernel, str) else matrix(self.kernel, X, self.points)

    def far_outside(self, X):
        """Always None: no range is known under a user-defined kernel."""
        return None

    def request(self):
        return None

    def p_values(self, scores):
        return self.model.p_values(scores)

    def arrays(self, support=True):
        return {**self.parts, "support": self.points, "scale": None, "shift": None}

    def describe(self):
        about = json.loads(self.model.describe())
        about["report"]["notes"] += self.notes
        return json.dumps({**about, "kernel": {"name": "given"}, "d": self.width})

    def log_likelihood(self, X, single=False):
        raise ValueError("a given kernel has no log-likelihood")

    def contributions(self, X):
        raise ValueError("a given kernel has no contributions of inputs")

    def score_gradient(self, X):
        raise ValueError("a given kernel has no gradient")

    def to_bytes(self):
        raise ValueError("a given kernel cannot be written to a model file: pickle the estimator")

    def export(self, kind, **options):
        raise ValueError("a given kernel cannot be exported: use one of the core")

    def save(self, path):
        self.to_bytes()

    def with_scaler(self, *_):
        self.to_bytes()
