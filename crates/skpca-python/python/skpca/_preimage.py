"""Pre-images: rows that have given features.

Fixed point (Mika et al. 1998): the row whose image in feature space is nearest to a combination over the support.

    target  φ̄ + Σ_k y_k v_k = Σ_i γ_i φ(z_i),    γ = β + A E Eᵀ y
    step    x ← Σ_i γ_i k(x, z_i) z_i / Σ_i γ_i k(x, z_i)                      their (10), Gaussian kernels only

Kernel ridge (Bakir, Weston & Schölkopf 2004): a regression of rows on their features, centred at those of the support.

    x ≈ x̄ + Σ_i w_i g(y, c_i),   g(y, c) = exp(−‖y − c‖² / mean squared distance),   c_i the features of z_i
"""

import json

import numpy as np
from scipy.linalg import lstsq

from . import _core
from ._registry import GAUSSIAN, KERNELS, those

STEPS = 200
TOLERANCE = 1e-6


def applies(model):
    return json.loads(model.describe())["kernel"]["name"] in those(KERNELS, "gaussian")


def fixed_point(model, features):
    """Computes pre-images of rows of features under a Gaussian kernel."""
    parts, kernel = model.arrays(), json.dumps(json.loads(model.describe())["kernel"])
    points = parts["support"]
    weights = targets(parts, features)
    rows = nearest(points, weights @ _core.kernel(kernel, points, points))
    moving = np.arange(len(rows))
    for _ in range(STEPS):
        pull = weights[moving] * _core.kernel(kernel, rows[moving], points)
        total = pull.sum(axis=1, keepdims=True)
        # Where the weights cancel, the step is undefined: the row stays.
        good = total > 1e-12 * np.abs(pull).sum(axis=1, keepdims=True)
        moved = np.where(good, pull @ points / np.where(good, total, 1.0), rows[moving])
        change = np.abs(moved - rows[moving]).max(axis=1)
        rows[moving] = moved
        moving = moving[change > TOLERANCE * np.abs(points).max()]
        if len(moving) == 0:
            break
    return rows * parts["scale"] + parts["shift"]


def targets(parts, features):
    """Computes γ for each row of features."""
    along = features
    if "frame" in parts:
        along = features @ parts["frame"] @ parts["frame"].T
    return parts["beta"] + along @ parts["coefficients"].T


def nearest(points, products):
    """Returns the support point nearest to each target: all have norm 1, so the one with the largest inner product."""
    return points[products.argmax(axis=1)]


# Maximum number of training rows and of centres of a kernel ridge regression.
SEEN = 4000
CENTRES = 500


class KernelRidge:
    """Kernel ridge regression of rows on features; stores as many numbers as the support."""

    def __init__(self, model, support, X, alpha, weights=None):
        counts = np.ones(len(X)) if weights is None else weights
        X, support, counts = spread(X, SEEN), spread(support, CENTRES), spread(counts, SEEN)
        features, self.centres = model.transform(X), model.transform(support)
        deviations = features - np.average(features, axis=0, weights=counts)
        variance = np.average(deviations**2, axis=0, weights=counts).sum()
        self.kernel = json.dumps({"name": GAUSSIAN, "gamma": 0.5 / variance if variance > 0 else 1.0})
        self.mean = np.average(X, axis=0, weights=counts)
        values = _core.kernel(self.kernel, features, self.centres)
        among = _core.kernel(self.kernel, self.centres, self.centres)
        weighted = values.T * counts
        normal = weighted @ values + alpha * among
        # Centres may coincide: take the solution of least norm.
        self.weights = lstsq(normal, weighted @ (X - self.mean), cond=1e-12)[0]

    def predict(self, features):
        features = np.ascontiguousarray(features, dtype=np.float64)
        return self.mean + _core.product(self.kernel, features, self.centres, self.weights)


def spread(rows, most):
    """Returns at most `most` rows, evenly spaced."""
    return np.ascontiguousarray(rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int)])
