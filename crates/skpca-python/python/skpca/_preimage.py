"""Rows whose image in feature space is nearest to a sum over the support (Mika et al. 1998).

target  φ̄ + Σ_k y_k v_k = Σ_i γ_i φ(z_i),    γ = β + A E Eᵀ y
step    x ← Σ_i γ_i k(x, z_i) z_i / Σ_i γ_i k(x, z_i)                      their (10), rbf only
"""

import json

import numpy as np

from . import _core

STEPS = 200
TOLERANCE = 1e-6


def applies(model):
    return json.loads(model.describe())["kernel"]["name"] == "rbf"


def fixed_point(model, features):
    """Pre-images of rows of features under the kernel rbf."""
    parts, kernel = model.arrays(), json.dumps(json.loads(model.describe())["kernel"])
    points = parts["support"]
    weights = targets(parts, features)
    rows = nearest(points, weights @ _core.kernel(kernel, points, points))
    moving = np.arange(len(rows))
    for _ in range(STEPS):
        pull = weights[moving] * _core.kernel(kernel, rows[moving], points)
        total = pull.sum(axis=1, keepdims=True)
        # Where the pulls cancel there is no next point: the row stays.
        good = total > 1e-12 * np.abs(pull).sum(axis=1, keepdims=True)
        moved = np.where(good, pull @ points / np.where(good, total, 1.0), rows[moving])
        change = np.abs(moved - rows[moving]).max(axis=1)
        rows[moving] = moved
        moving = moving[change > TOLERANCE * np.abs(points).max()]
        if len(moving) == 0:
            break
    return rows * parts["scale"] + parts["shift"]


def targets(parts, features):
    """γ of each row of features."""
    along = features
    if "frame" in parts:
        along = features @ parts["frame"] @ parts["frame"].T
    return parts["mean"] + along @ parts["coefficients"].T


def nearest(points, products):
    """The support point nearest to each target: all have length 1, so the one with the largest inner product."""
    return points[products.argmax(axis=1)]
