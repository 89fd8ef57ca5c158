"""Kernel PCA from its definitions, in numpy: slow, n × n, and written without looking at the Rust core.

What scikit-learn has (kernels, `KernelPCA`) is taken from scikit-learn; the rest follows the formulas

    C b = λ K_zz b,  bᵀ K_zz b = 1                C = Σ_j (k_z(x_j) − μ)(k_z(x_j) − μ)ᵀ
    score(x) = k(x,x) − 2 βᵀk_z(x) + βᵀK_zz β − ‖project(x)‖²,    β = K_zz⁻¹ μ
"""

import json
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg
import skpca
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import pairwise_kernels


@dataclass(frozen=True)
class Kernel:
    """A kernel in both spellings."""

    name: str
    peer: str
    parameters: dict = field(default_factory=dict)

    @property
    def spec(self):
        return ",".join([self.name, *(f"{key}={value}" for key, value in self.parameters.items())])

    def matrix(self, x, z):
        return pairwise_kernels(x, z, metric=self.peer, **self.parameters)

    def diagonal(self, x):
        return self.matrix(x, x).diagonal()

    def pca(self, q, z):
        """A fitted `KernelPCA` and its transform; laplacian is not on its list, so goes through the matrix."""
        if self.peer == "laplacian":
            peer = KernelPCA(q, kernel="precomputed", eigen_solver="dense").fit(self.matrix(z, z))
            return peer, lambda x: peer.transform(self.matrix(x, z))
        peer = KernelPCA(q, kernel=self.peer, eigen_solver="dense", **self.parameters).fit(z)
        return peer, peer.transform


def kernels(width):
    """Every kernel, for data whose squared distances are near `width`.

    tanh is positive semi-definite to rounding only where it is nearly linear, hence its tiny gamma.
    """
    return {
        "rbf": Kernel("rbf", "rbf", {"gamma": 1.0 / width}),
        "laplacian": Kernel("laplacian", "laplacian", {"gamma": 0.2 / width**0.5}),
        "polynomial": Kernel("polynomial", "poly", {"gamma": 1.0 / width, "degree": 3, "coef0": 1.0}),
        "sigmoid": Kernel("sigmoid", "sigmoid", {"gamma": 1e-7 / width, "coef0": 0.0}),
        "linear": Kernel("linear", "linear"),
        "cosine": Kernel("cosine", "cosine"),
    }


KERNELS = list(kernels(1.0))


def digits(n, queries=200):
    """The first n digits, and those after them."""
    x = load_digits().data
    return x[:n].copy(), x[n : n + queries].copy()


def skewed(n, queries=200, seed=0):
    """Log-normal columns of unequal size: separated eigenvalues under every kernel."""
    x = np.exp(np.random.default_rng(seed).normal(size=(n + queries, 5))) * [1.0, 0.8, 0.6, 0.5, 0.3]
    x /= x.std()
    return x[:n].copy(), x[n:].copy()


SETS = {"digits": (digits, 3000.0), "skewed": (skewed, 10.0)}


def describe(model):
    return json.loads(model.describe())


def fit(x, kernel, **options):
    """`skpca.fit` on the columns as they are, as scikit-learn takes them."""
    return skpca.fit(x, kernel=kernel.spec, scaling="none", **options)


def eigenvalues(model):
    found = describe(model)
    return np.array(found["explained_variance"]) * found["n"]


def aligned(found, expected):
    """`expected` with the signs of `found`: an eigenvector's sign is anyone's choice."""
    return expected * np.where((found * expected).sum(axis=0) < 0, -1.0, 1.0)


def error(found, expected, scale=None):
    """Largest difference, as a share of `scale`, or of the largest value of the column."""
    assert found.shape == expected.shape
    scale = np.abs(expected).max(axis=0) if scale is None else scale
    return float((np.abs(found - expected) / scale).max())


@dataclass
class Ritz:
    """The best q components in the span of `z`, over the rows of `x`."""

    kernel: Kernel
    x: np.ndarray
    z: np.ndarray
    q: int

    def __post_init__(self):
        k = self.kernel.matrix(self.x, self.z)
        kzz = self.kernel.matrix(self.z, self.z)
        m = len(self.z)
        self.mu = k.mean(axis=0)
        self.beta = scipy.linalg.solve(kzz, self.mu, assume_a="pos")
        c = (k - self.mu).T @ (k - self.mu)
        values, b = scipy.linalg.eigh(c, kzz, subset_by_index=[m - self.q, m - 1])
        self.values, self.b = values[::-1], b[:, ::-1]

    def project(self, queries):
        return (self.kernel.matrix(queries, self.z) - self.mu) @ self.b

    def score(self, queries):
        """With the mean projected on the span."""
        kzx = self.kernel.matrix(queries, self.z)
        kzz = self.kernel.matrix(self.z, self.z)
        distance = self.kernel.diagonal(queries) - 2 * kzx @ self.beta + self.beta @ kzz @ self.beta
        return distance - (self.project(queries) ** 2).sum(axis=1)

    def hoffmann(self, queries):
        """With the mean over all rows, unprojected."""
        return distances_to_mean(self.kernel, self.x, queries) - (self.project(queries) ** 2).sum(axis=1)

    def lost(self):
        """`‖φ̄‖² − μᵀβ`"""
        return self.kernel.matrix(self.x, self.x).mean() - self.mu @ self.beta


def distances_to_mean(kernel, x, queries):
    """`‖φ(q) − φ̄‖²`"""
    return kernel.diagonal(queries) - 2 * kernel.matrix(queries, x).mean(axis=1) + kernel.matrix(x, x).mean()


def hoffmann(kernel, x, queries, q):
    """Reconstruction error (Hoffmann 2007) on all points: `‖φ̃(x)‖² − Σ projections²`."""
    n = len(x)
    k, h = kernel.matrix(x, x), np.eye(n) - 1.0 / n
    values, u = scipy.linalg.eigh(h @ k @ h, subset_by_index=[n - q, n - 1])
    centred = (kernel.matrix(queries, x) - k.mean(axis=0)) @ h
    projections = centred @ u / np.sqrt(values)
    return distances_to_mean(kernel, x, queries) - (projections**2).sum(axis=1)
