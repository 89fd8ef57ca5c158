"""Nyström's method in numpy: ways to choose points, and to optimise them afterwards."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from sklearn.cluster import KMeans

from .models import rbf, squared_distances

STEPS = 10  # number of L-BFGS steps to polish points
LLOYD = 20


class Nystroem:
    """Principal components in the span of given points: kernel values are whitened, then plain PCA finds them."""

    def __init__(self, x, points, gamma, count):
        self.points, self.gamma = points, gamma
        values = rbf(points, points, gamma)
        self.lower = cholesky(values + 1e-10 * np.eye(len(points)), lower=True)
        white = self.white(x)
        self.mean = white.mean(axis=0)
        values, vectors = np.linalg.eigh((white - self.mean).T @ (white - self.mean))
        self.axes = vectors[:, ::-1][:, :count]
        self.captured = values[::-1][:count].sum()

    def white(self, rows):
        return solve_triangular(self.lower, rbf(self.points, rows, self.gamma), lower=True).T

    def transform(self, rows):
        return (self.white(rows) - self.mean) @ self.axes

    def score(self, rows):
        """Squared distance to the span of the components, through the projected mean."""
        white = self.white(rows)
        outside = 1 - np.square(white).sum(axis=1)
        return outside + np.square(white - self.mean).sum(axis=1) - np.square(self.transform(rows)).sum(axis=1)


def uniform(x, size, gamma, rng):
    return x[rng.choice(len(x), size, replace=False)]


def k_means(x, size, gamma, rng):
    """Centres (Zhang, Tsang & Kwok 2008)."""
    return KMeans(size, n_init=1, random_state=int(rng.integers(2**31))).fit(x).cluster_centers_


def near_centres(x, size, gamma, rng):
    """Chooses the row nearest to each centre."""
    return x[np.unique(squared_distances(k_means(x, size, gamma, rng), x).argmin(axis=1))]


def kernel_k_means(x, size, gamma, rng):
    """Kernel k-means++ seeds (Oglic & Gärtner 2017), then Lloyd's steps: centres."""
    seeds, left = [int(rng.integers(len(x)))], None
    while len(seeds) < size:
        distance = 2 - 2 * rbf(x, x[seeds[-1:]], gamma)[:, 0]
        left = distance if left is None else np.minimum(left, distance)
        seeds.append(int(rng.choice(len(x), p=left / left.sum())))
    return KMeans(size, init=x[seeds], n_init=1, max_iter=LLOYD).fit(x).cluster_centers_


def pivoted(x, size, gamma, rng):
    """Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023)."""
    left, factor, pivots = np.ones(len(x)), np.zeros((len(x), size)), []
    for k in range(size):
        pivot = rng.choice(len(x), p=left / left.sum())
        column = rbf(x, x[pivot : pivot + 1], gamma)[:, 0] - factor @ factor[pivot]
        factor[:, k] = column / np.sqrt(column[pivot])
        left = np.maximum(left - factor[:, k] ** 2, 0)
        pivots.append(pivot)
    return x[pivots]


def leverage(x, size, gamma, rng):
    """Ridge leverage scores that sum to the number of points (Alaoui & Mahoney 2015)."""
    values, vectors = np.linalg.eigh(rbf(x, x, gamma))
    values, low, high = np.maximum(values, 0), -12.0, 6.0
    for _ in range(60):
        ridge = 10 ** (0.5 * (low + high))
        low, high = (0.5 * (low + high), high) if (values / (values + ridge)).sum() > size else (low, np.log10(ridge))
    scores = np.square(vectors) @ (values / (values + ridge))
    return x[rng.choice(len(x), size, replace=False, p=scores / scores.sum())]


def adaptive(x, size, gamma, rng):
    """Adaptive randomised pivoting (Cortinovis & Kressner 2024) on the leading eigenvectors; all rows are the pool."""
    basis, pivots = np.linalg.eigh(rbf(x, x, gamma))[1][:, -size:], []
    for _ in range(size):
        norms = np.square(basis).sum(axis=1)
        norms[pivots] = 0
        pivots.append(int(rng.choice(len(x), p=norms / norms.sum())))
        direction = basis[pivots[-1]] / np.linalg.norm(basis[pivots[-1]])
        basis = basis - np.outer(basis @ direction, direction)
    return x[pivots]


CHOICES = {
    "uniform": uniform,
    "pivoted": pivoted,
    "leverage scores": leverage,
    "adaptive pivoting": adaptive,
    "k-means": k_means,
    "kernel k-means++": kernel_k_means,
    "rows near k-means": near_centres,
}


def polished(x, points, gamma, count, steps=STEPS):
    """Maximises the variance captured by the span of the points, by L-BFGS with the gradient of Li & Gao."""
    shape = points.shape

    def lost(flat):
        z = flat.reshape(shape)
        inner, values = rbf(z, z, gamma), rbf(z, x, gamma)
        lower = np.linalg.cholesky(inner + 1e-8 * np.eye(len(z)))
        centred = values - values.mean(axis=1, keepdims=True)
        white = solve_triangular(lower, centred, lower=True)
        variances, vectors = np.linalg.eigh(white @ white.T)
        variances, vectors = variances[::-1][:count], vectors[:, ::-1][:, :count]
        b = solve_triangular(lower.T, vectors, lower=False)
        features = b.T @ centred
        pull = (b @ features) * values
        push = (b * variances) @ b.T * inner
        # d k(z, x) / dz = 2 gamma (x - z) k; the part of the mean is zero, as features have mean zero
        slope = pull @ x - pull.sum(axis=1)[:, None] * z - (push @ z - push.sum(axis=1)[:, None] * z)
        return -variances.sum(), -4 * gamma * slope.ravel()

    return minimize(lost, points.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps}).x.reshape(shape)
