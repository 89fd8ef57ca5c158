"""`feature_importances_`: shares of the inputs in the components."""

import numpy as np
import pytest
import skpca
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel


def table(n=400):
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, size=n)
    return np.column_stack([t, t**2, 0.01 * rng.normal(size=n)])


def test_shares_are_those_of_numerical_gradients():
    model = skpca.KernelNovelty(n_components=2, n_support=10, random_state=0).fit(table())
    expected, step = np.zeros(3), 1e-6
    for column in range(3):
        moved = [model._model.transform(model.support_vectors_ + sign * step * np.eye(3)[column]) for sign in (1, -1)]
        expected[column] = np.square((moved[0] - moved[1]) / (2 * step)).sum()
    assert np.allclose(model.feature_importances_, expected / expected.sum(), atol=1e-6)
    assert abs(model.feature_importances_.sum() - 1) < 1e-12


def test_scikit_learn_selects_by_them():
    X = table()
    model = skpca.SparseKernelPCA(2, n_support=10, random_state=0).fit(X)
    kept = SelectFromModel(model, prefit=True, threshold=0.05, max_features=2).get_support()
    assert np.array_equal(np.flatnonzero(kept), np.sort(np.argsort(-model.feature_importances_)[:2]))


def test_models_without_gradients_have_none():
    model = skpca.SparseKernelPCA(2, kernel=lambda x, z: x @ z.T)
    with pytest.raises(NotFittedError):
        _ = model.feature_importances_
    assert not hasattr(model.fit(table(50)), "feature_importances_")
