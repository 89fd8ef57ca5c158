"""The energy rule with the linear kernel is PCA as alpha goes to zero."""

import json

import numpy as np
import pytest
import skpca
from sklearn.decomposition import PCA


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    return rng.normal(size=(6000, 12)) @ rng.normal(size=(12, 12)) + rng.normal(size=12)


def test_pca_is_the_limit_of_the_linear_rule(table):
    model = skpca.fit(table, method="energy,alpha=1e-9", kernel="linear", scaling="none")
    described = json.loads(model.describe())
    pca = PCA().fit(table)
    n = len(table)
    assert described["q"] == 12
    assert described["report"]["chosen"] == n
    np.testing.assert_allclose(described["explained_variance"], pca.explained_variance_ * (n - 1) / n, rtol=1e-9)
    ours, theirs = model.transform(table), pca.transform(table)
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours * signs, theirs, atol=1e-7 * np.abs(theirs).max())


def test_fewer_points_and_components_lose_no_more_than_alpha(table):
    for alpha in (0.3, 0.1, 0.02):
        described = json.loads(
            skpca.fit(table, method=f"energy,alpha={alpha}", kernel="linear", scaling="none").describe()
        )
        kept = np.argsort(-((table - table.mean(axis=0)) ** 2).sum(axis=1), kind="stable")[
            : described["report"]["chosen"]
        ]
        centred = table - table.mean(axis=0)
        values = np.linalg.eigvalsh(centred[kept].T @ centred[kept])[::-1]
        bound = 1 - values[: described["q"]].sum() / (centred**2).sum()
        np.testing.assert_allclose(described["report"]["objective"], bound, rtol=1e-9)
        assert bound <= alpha
