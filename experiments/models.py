"""Fits of the library, and what is asked of them."""

import json

import numpy as np
import skpca


def fit(x, method, kernel, components=None, **options):
    """A model of rows that are scaled already."""
    x = np.ascontiguousarray(x)
    return skpca.fit(x, method=method, kernel=kernel, components=components, scaling="none", **options)


def about(model):
    return json.loads(model.describe())


def per_component(model):
    """Points that a component uses, on average."""
    return float(np.mean(about(model)["support_per_component"]))


def median_rule(x):
    """gamma = 1 / median squared distance of two rows, as the library has it by default."""
    distances = squared_distances(x, x[:500])
    return 1 / np.median(distances[distances > 1e-12])


def mean_rule(x):
    """gamma = 1 / 2σ², σ² the mean squared distance of two rows, which is twice the variance."""
    return 1 / (4 * x.var(axis=0, ddof=1).sum())


def squared_distances(x, z):
    return np.maximum((x**2).sum(axis=1)[:, None] + (z**2).sum(axis=1) - 2 * x @ z.T, 0)


def rbf(x, z, gamma):
    return np.exp(-gamma * squared_distances(x, z))
