"""`SparseLinearPCA`: scikit-learn's checks, the published example, its peer; and landmarks that users choose."""

import doctest
import importlib
import pickle

import numpy as np
import pytest
from oracle import skewed
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, SparsePCA
from sklearn.utils.estimator_checks import parametrize_with_checks
from skpca import KernelNovelty, SparseKernelPCA, SparseLinearPCA

# Correlations of 180 pit props (Jeffers 1967), in thousandths, below the diagonal.
PITPROPS = """
954
364 297
342 284 882
-129 -118 -148 220
313 291 153 381 364
496 503 -29 174 296 813
424 419 -54 -59 4 90 372
592 648 125 137 -39 211 465 482
545 569 -81 -14 37 274 679 557 526
84 76 162 97 -91 -36 -113 61 85 -319
-19 -36 220 169 -145 24 -232 -357 -127 -368 29
134 144 126 15 -208 -329 -424 -202 -76 -291 7 184
"""


@parametrize_with_checks([SparseLinearPCA(), SparseLinearPCA(n_nonzero=1), SparseLinearPCA(2, sequential=True)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_docstring():
    failed, tried = doctest.testmod(importlib.import_module("skpca._linear"))
    assert tried > 0 and failed == 0


def pitprops():
    matrix = np.eye(13)
    for row, line in enumerate(PITPROPS.split("\n")[1:-1], start=1):
        matrix[row, :row] = matrix[:row, row] = np.array(line.split(), dtype=float) / 1000
    return matrix


def adjusted(loadings, matrix):
    """Zou's adjusted variances, by the QR of the scores' Gram matrix."""
    return np.square(np.diag(np.linalg.cholesky(loadings @ matrix @ loadings.T)))


def test_pitprops():
    matrix, counts = pitprops(), [7, 4, 4, 1, 1, 1]
    pca = SparseLinearPCA(6, n_nonzero=counts).fit_covariance(matrix)
    assert pca.n_nonzero_.tolist() == counts
    shares = adjusted(pca.components_, matrix) / 13
    np.testing.assert_allclose(shares, pca.adjusted_variance_ratio_)
    assert (np.round(100 * shares, 1) >= [28.0, 14.0, 13.3, 7.4, 6.8, 6.2]).all() and shares.sum() >= 0.758
    assert pca.report_["gap"] < 1e-10 and pca.report_["converged"]


def captured(components, x):
    """Variance in the span of the components."""
    basis = np.linalg.qr(components[np.abs(components).sum(axis=1) > 0].T)[0]
    return np.square((x - x.mean(axis=0)) @ basis).sum() / len(x)


def test_as_sparse_as_scikit_learn_it_captures_about_as_much():
    x = load_digits(return_X_y=True)[0][:500]
    for alpha in (5, 20):
        theirs = SparsePCA(4, alpha=alpha, max_iter=30, tol=1e-4, random_state=0).fit(x - x.mean(axis=0)).components_
        counts = np.count_nonzero(theirs, axis=1)
        ours = SparseLinearPCA(4, n_nonzero=counts.tolist()).fit(x)
        assert ours.n_nonzero_.tolist() == counts.tolist()
        # Theirs minimises the error of all components together, ours may be two per cent behind at equal counts …
        assert captured(ours.components_, x) >= 0.97 * captured(theirs, x)
        # … unless its loadings are polished.
        polished = SparseLinearPCA(4, n_nonzero=counts.tolist(), polish=True).fit(x)
        np.testing.assert_array_equal(polished.components_ != 0, ours.components_ != 0)
        assert captured(polished.components_, x) >= captured(theirs, x)
        assert captured(polished.components_, x) == pytest.approx(
            x.var(axis=0).sum() * polished.captured_variance_ratio_
        )


def test_without_a_penalty_it_is_pca_and_rows_come_back():
    x = load_digits(return_X_y=True)[0].astype(float)
    pca, exact = SparseLinearPCA(5, fidelity=1.0).fit(x), PCA(5).fit(x)
    assert pca.fidelity_ == pytest.approx(1)
    np.testing.assert_allclose(np.abs(pca.components_ @ exact.components_.T), np.eye(5), atol=1e-6)
    back = exact.inverse_transform(exact.transform(x))
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(x)), back, atol=1e-9)
    sparse = SparseLinearPCA(5, n_nonzero=9).fit(x)
    features = sparse.transform(x)
    np.testing.assert_allclose(sparse.transform(sparse.inverse_transform(features)), features, atol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(sparse)).transform(x), features)
    np.testing.assert_array_equal(clone(sparse).fit(x).components_, sparse.components_)
    assert sparse.get_feature_names_out().tolist() == [f"sparselinearpca{k}" for k in range(5)]


def test_a_model_has_the_same_loadings():
    x = skewed(200)[0]
    linear = SparseLinearPCA(2, n_nonzero=2).fit(x)
    kernel = SparseKernelPCA(2, method="spca,nonzero=2", kernel="linear").fit(x)
    np.testing.assert_allclose(np.abs(kernel.coefficients_.T @ kernel.support_vectors_), np.abs(linear.components_))
    np.testing.assert_allclose(np.abs(kernel.transform(x)), np.abs(linear.transform(x)), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_nonzero": 0}, "'n_nonzero' parameter of SparseLinearPCA must be an int"),
        ({"n_nonzero": [3, 0.5]}, "'n_nonzero' parameter"),
        ({"penalty": -1.0}, "'penalty' parameter"),
        ({"n_nonzero": 3, "penalty": 1.0}, "penalty = "),
        ({"n_nonzero": 3, "fidelity": 0.9}, "a target or nonzero"),
        ({"n_nonzero": 99}, "The 'n_nonzero' parameter of SparseLinearPCA must be at most the"),
    ],
)
def test_wrong_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SparseLinearPCA(2, **options).fit(skewed(50)[0])


def test_what_is_no_covariance_is_refused():
    with pytest.raises(ValueError, match="symmetric"):
        SparseLinearPCA(1).fit_covariance([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="square"):
        SparseLinearPCA(1).fit_covariance(np.eye(3)[:2])


@pytest.mark.parametrize("kind", [SparseKernelPCA, KernelNovelty])
def test_landmarks_that_are_given_are_kept(kind):
    x = skewed(120)[0]
    rows = [5, 80, 33, 7]
    by_rows = kind(2, landmarks=rows).fit(x)
    assert by_rows.support_.tolist() == sorted(rows)
    by_points = kind(2, landmarks=x[rows], scaling="standard").fit(x)
    assert by_points.support_ is None
    np.testing.assert_allclose(by_points.support_vectors_, x[rows])
    twice = kind(2, landmarks=x[[5, 80, 5]]).fit(x)
    assert len(twice.support_vectors_) == 2
    assert any("depend on the others and are left out" in note for note in twice.report_["notes"])


def test_landmarks_that_make_no_sense_are_refused():
    x = skewed(60)[0]
    for landmarks, message in [
        ([60], "landmarks"),
        ([-1], "landmarks: expected row numbers from 0 to 59"),
        ([0.5, 1.5], "landmarks: expected row numbers"),
        ("all", "'landmarks' parameter"),
        (x[:3, :1], "column"),
    ]:
        with pytest.raises(ValueError, match=message):
            SparseKernelPCA(2, landmarks=landmarks).fit(x)
    with pytest.raises(ValueError, match="not both"):
        SparseKernelPCA(2, landmarks=[1, 2], n_support=2).fit(x)
