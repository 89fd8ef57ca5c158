"""Labelled data: the conformal kernel and discriminant directions against numpy, scipy and scikit-learn."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from oracle import describe
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import pairwise_kernels
from skpca import _core

GAMMA, DELTA, REGULARISATION = 0.05, 0.03, 1e-2


def standardised(load):
    x, labels = load(return_X_y=True)
    return np.ascontiguousarray((x - x.mean(axis=0)) / x.std(axis=0)), labels.astype(np.int64)


def learned(x, labels, base="rbf", **fields):
    """A fit with a conformal kernel, and xi of its factor f beside the columns E that it weighs."""
    spec = ",".join([f"conformal,base={base},delta={DELTA}", *(f"{key}={value}" for key, value in fields.items())])
    model = _core.fit(x, method="greedy", kernel=spec, components=4, support=25, scaling="none", labels=labels)
    kernel = describe(model)["kernel"]
    vectors = np.reshape(kernel["vectors"], (len(kernel["weights"]), -1))
    e = np.hstack([np.ones((len(x), 1)), pairwise_kernels(x, vectors, metric="rbf", gamma=DELTA)])
    return model, np.array([kernel["constant"], *kernel["weights"]]), e


def scatter(k, labels, e):
    """E' B0 E and E' W0 E from the definitions, n x n."""
    same = (labels[:, None] == labels) / np.bincount(labels)[labels]
    between, within = same * k - k / len(k), np.diag(k.diagonal()) - same * k
    return e.T @ between @ e, e.T @ within @ e


def regularised(within):
    return within + REGULARISATION * np.trace(within) / len(within) * np.eye(len(within))


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("base", ["rbf", "laplacian", "polynomial"])
def test_the_exact_factor_is_the_leading_generalised_eigenvector(load, base):
    x, labels = standardised(load)
    _, xi, e = learned(x, labels, base, gamma=GAMMA, regularisation=REGULARISATION, solver="exact")
    peer = {"polynomial": {"metric": "poly", "degree": 3, "coef0": 1.0}}.get(base, {"metric": base})
    between, within = scatter(pairwise_kernels(x, gamma=GAMMA, **peer), labels, e)
    top = scipy.linalg.eigh(between, regularised(within))[1][:, -1]
    # Both scaled to mean square 1; the sign makes f positive on average.
    f = e @ top
    f *= np.sign(f.sum()) / np.sqrt(np.mean(f**2))
    assert np.abs(e @ xi - f).max() < 1e-6
    assert np.isclose(np.mean((e @ xi) ** 2), 1)


def test_the_iteration_is_the_papers():
    x, labels = standardised(load_iris)
    _, xi, e = learned(x, labels, gamma=GAMMA, solver="iteration", rate=0.05, rounds=40)
    between, within = scatter(pairwise_kernels(x, metric="rbf", gamma=GAMMA), labels, e)
    step = np.eye(e.shape[1])[0]
    for n in range(40):
        j1, j2 = step @ between @ step, step @ within @ step
        step = step + 0.05 * (1 - n / 40) * (between / j2 - j1 / j2 / j2 * within) @ step
    f = e @ step
    assert np.abs(e @ xi - f / np.sqrt(np.mean(f**2))).max() < 1e-9


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_no_start_of_a_general_optimiser_finds_a_better_positive_factor(load):
    x, labels = standardised(load)
    _, xi, e = learned(x, labels, gamma=GAMMA, regularisation=REGULARISATION, solver="positive")
    assert (xi >= 0).all() and xi[0] >= 0.1 * xi[1:].sum() * (1 - 1e-9)
    between, within = scatter(pairwise_kernels(x, metric="rbf", gamma=GAMMA), labels, e)
    within = regularised(within)

    def ratio(xi):
        return (xi @ between @ xi) / (xi @ within @ xi)

    def fallen(eta):
        xi = np.array([eta[0] + 0.1 * eta[1:].sum(), *eta[1:]])
        return -ratio(xi)

    random = np.random.default_rng(0)
    starts = [np.eye(len(xi))[0] + 1e-3, *random.exponential(size=(4, len(xi)))]
    bounds = [(0, None)] * len(xi)
    found = [-scipy.optimize.minimize(fallen, start / start.sum(), bounds=bounds).fun for start in starts]
    assert ratio(xi) >= np.nanmax(found) * (1 - 1e-4)


def test_features_under_a_conformal_kernel_are_kernel_pcas():
    x, labels = standardised(load_iris)
    model, xi, e = learned(x, labels, gamma=GAMMA)
    f = e @ xi
    k = f[:, None] * pairwise_kernels(x, metric="rbf", gamma=GAMMA) * f
    rows = describe(model)["support"]
    z = k[rows] - k[rows].mean(axis=1, keepdims=True)
    values = scipy.linalg.eigh(z @ z.T, k[np.ix_(rows, rows)])[0][::-1][:4]
    assert np.allclose((model.transform(x) ** 2).sum(axis=0), values, rtol=1e-6)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_with_a_linear_kernel_discriminant_directions_are_lda(load):
    x, labels = standardised(load)
    model = _core.fit(
        x,
        method="discriminant,regularisation=1e-10",
        kernel="linear",
        components=2,
        support=x.shape[1],
        scaling="none",
        labels=labels,
    )
    ours = model.transform(x)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(x, labels).transform(x)
    assert ours.shape == theirs.shape
    for a, b in zip(ours.T, theirs.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) > 1 - 1e-6


def test_labels_that_are_missing_or_too_few_are_refused():
    x, labels = standardised(load_iris)
    with pytest.raises(ValueError, match="kernel = conformal: expected labels with it: the class of each row"):
        _core.fit(x, kernel="conformal")
    with pytest.raises(ValueError, match="labels = 149: expected one for each of the 150 rows"):
        _core.fit(x, kernel="conformal", labels=labels[1:])
    with pytest.raises(ValueError, match="labels = 1 class: expected two classes or more"):
        _core.fit(x, kernel="conformal", labels=0 * labels)
