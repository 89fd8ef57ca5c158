"""Helpers for fits of the library."""

import json

import numpy as np
import skpca


def fit(x, method, kernel, components=None, **options):
    """Fits a model to rows that have been scaled."""
    x = np.ascontiguousarray(x)
    return skpca.fit(x, method=method, kernel=kernel, components=components, scaling="none", **options)


def about(model):
    return json.loads(model.describe())


def per_component(model):
    """Returns the mean number of points per component."""
    return float(np.mean(about(model)["support_per_component"]))


def median_rule(x):
    """gamma = 1 / median squared distance of two rows, the library's default."""
    distances = squared_distances(x, x[:500])
    return 1 / np.median(distances[distances > 1e-12])


def mean_rule(x):
    """gamma = 1 / 2σ², σ² the mean squared distance of two rows, which is twice the variance."""
    return 1 / (4 * x.var(axis=0, ddof=1).sum())


def squared_distances(x, z):
    return np.maximum((x**2).sum(axis=1)[:, None] + (z**2).sum(axis=1) - 2 * x @ z.T, 0)


def rbf(x, z, gamma):
    return np.exp(-gamma * squared_distances(x, z))
