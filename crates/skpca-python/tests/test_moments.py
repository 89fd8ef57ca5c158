"""Moments: sums over rows that are made apart and added."""

import pickle

import numpy as np
import pytest
from skpca import KernelNovelty, Moments, SparseKernelPCA


def rows(seed, n=300, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_moments_of_parts_make_the_model_of_all_rows():
    X = rows(0)
    pca = SparseKernelPCA(3, n_support=8, random_state=0).fit(X)
    features, parts = pca.transform(X), [pca.moments(part) for part in np.array_split(X, 3)]
    total = pickle.loads(pickle.dumps(parts[0]))
    for part in parts[1:]:
        total.merge(part)
    again = pca.fit_moments(total)
    assert again is pca
    np.testing.assert_allclose(pca.transform(X), features, atol=1e-9)


def test_other_rows_change_the_components():
    X = rows(0)
    pca = SparseKernelPCA(3, n_support=8, random_state=0).fit(X)
    before = pca.explained_variance_
    pca.fit_moments(pca.moments(0.1 * rows(1)))
    assert pca.explained_variance_.sum() < 0.5 * before.sum()


def test_moments_of_another_model_are_refused():
    first = SparseKernelPCA(3, n_support=8, random_state=0).fit(rows(0))
    second = SparseKernelPCA(3, n_support=8, random_state=0).fit(rows(1))
    with pytest.raises(ValueError, match="moments = "):
        first.fit_moments(second.moments(rows(1)))


def test_bytes_are_read_back():
    detector = KernelNovelty(n_components=3, n_support=8, statistic="distance", random_state=0).fit(rows(0))
    moments = detector.moments(rows(2))
    assert Moments.from_bytes(moments.to_bytes()).to_bytes() == moments.to_bytes()
