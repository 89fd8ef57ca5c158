"""Maximum likelihood: the density of new rows against numpy, and a noise chosen by cross-validation."""

import json

import numpy as np
import pytest
import skpca


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    centres = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
    return np.repeat(centres, 30, axis=0) + 0.1 * rng.normal(size=(90, 2))


def fit(x, noise, **more):
    return skpca.fit(x, method=f"likelihood,noise={noise}", kernel="rbf,gamma=16", scaling="none", components=3, **more)


def test_a_gaussian_in_the_span_of_the_rows(table):
    """In coordinates of K's eigenvectors the density is an ordinary Gaussian whose covariance is fitted by hand."""
    noise = 0.0625
    model = fit(table, noise)
    support = json.loads(model.describe())["support"]
    k = np.exp(-16 * ((table[:, None] - table[None]) ** 2).sum(axis=2))
    values, vectors = np.linalg.eigh(k)
    factor = vectors[:, values > 1e-12] * np.sqrt(values[values > 1e-12])
    n, dimension = factor.shape
    # The weights by the paper's fixed point on the kept points alone.
    atoms, weights = factor[support], np.full(len(support), 1.0)
    for _ in range(3000):
        c = noise * np.eye(dimension) + (atoms.T * weights) @ atoms
        u = np.linalg.solve(c, atoms.T)
        s, q = (atoms.T * u).sum(axis=0), ((factor @ u) ** 2).sum(axis=0)
        weights *= q / (n * s)
    c = noise * np.eye(dimension) + (atoms.T * weights) @ atoms
    square = (factor.T * np.linalg.solve(c, factor.T)).sum(axis=0)
    rank = json.loads(model.describe())["method"]["rank"]
    log_c = np.linalg.slogdet(c)[1] + (rank - dimension) * np.log(noise)
    expected = -0.5 * (rank * np.log(2 * np.pi) + log_c + square)
    np.testing.assert_allclose(model.log_likelihood(table), expected, rtol=0, atol=1e-6)


def test_held_out_rows_prefer_neither_too_much_noise_nor_too_little(table):
    rng = np.random.default_rng(0)
    folds = np.array_split(rng.permutation(len(table)), 5)

    def held_out(noise):
        parts = []
        for fold in folds:
            rest = np.delete(np.arange(len(table)), fold)
            parts.append(fit(table[rest], noise).log_likelihood(table[fold]).mean())
        return np.mean(parts)

    noises = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    means = [held_out(noise) for noise in noises]
    best = int(np.argmax(means))
    assert 0 < best < len(noises) - 1, means


def test_other_methods_have_no_likelihood(table):
    model = skpca.fit(table, support=5)
    with pytest.raises(ValueError, match="likelihood"):
        model.log_likelihood(table)
