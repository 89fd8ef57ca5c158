"""The PyOD detector: PyOD's contract, and the ranking that its own kernel PCA misses."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

pytest.importorskip("pyod")

from pyod.models.kpca import KPCA  # noqa: E402
from pyod.utils.data import generate_data  # noqa: E402
from skpca.pyod import SKPCA  # noqa: E402


def blobs(n, seed):
    """Training rows, test rows, and which of them are outliers."""
    x, queries, truth, of_queries = generate_data(n_train=n, n_test=n // 2, contamination=0.1, random_state=seed)
    return x, truth, queries, of_queries


@pytest.fixture(scope="module")
def fitted():
    x, _, queries, _ = blobs(200, 42)
    return SKPCA(random_state=0).fit(x), x, queries


def test_training_scores_labels_and_threshold_agree(fitted):
    detector, x, _ = fitted
    np.testing.assert_array_equal(detector.decision_scores_, detector.decision_function(x))
    np.testing.assert_array_equal(detector.labels_, detector.decision_scores_ > detector.threshold_)
    assert detector.labels_.sum() == 20


def test_higher_is_worse(fitted):
    detector, x, _ = fitted
    far, near = detector.decision_function(np.array([[100.0, 100.0], x[detector.labels_ == 0].mean(axis=0)]))
    assert far > detector.threshold_ > near


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities_and_confidence(fitted, method):
    detector, _, queries = fitted
    shares, confidence = detector.predict_proba(queries, method=method, return_confidence=True)
    assert shares.shape == (100, 2) and confidence.shape == (100,)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for values in (shares, confidence):
        assert values.min() >= 0 and values.max() <= 1


def test_labels_and_rejection(fitted):
    detector, _, queries = fitted
    labels = detector.predict(queries)
    np.testing.assert_array_equal(labels, detector.decision_function(queries) > detector.threshold_)
    assert set(detector.predict_with_rejection(queries, c_fp=1, c_fn=1, c_r=0.1)) <= {-2, 0, 1}


def test_what_pyod_asks_of_its_own_kernel_pca():
    """PyOD tests its KPCA by these calls, at this size and floor. Ours has no subsets and no selected components."""
    x, truth, queries, of_queries = blobs(200, 42)
    detector = clone(SKPCA(contamination=0.1, random_state=42)).fit(x)
    assert roc_auc_score(of_queries, detector.decision_function(queries)) >= 0.8
    with pytest.raises(ValueError):
        detector.predict_proba(queries, method="something")
    labels, confidence = detector.predict(queries, return_confidence=True)
    assert labels.shape == confidence.shape == of_queries.shape and 0 <= confidence.min() <= confidence.max() <= 1
    _, (expected, most, cost) = detector.predict_with_rejection(queries, return_stats=True)
    assert 0 <= expected <= 1 and 0 <= most <= 1 and cost >= 0
    assert detector.fit_predict(x).shape == truth.shape
    for scoring in ("roc_auc_score", "prc_n_score"):
        assert 0 <= detector.fit_predict_score(queries, of_queries, scoring=scoring) <= 1
    with pytest.raises(NotImplementedError):
        detector.fit_predict_score(queries, of_queries, scoring="something")


def test_parameters_reach_the_model():
    x, *_ = blobs(200, 0)
    detector = clone(SKPCA(3, method="greedy", n_support=7, kernel="laplacian", contamination=0.2)).fit(x)
    assert detector.detector_.coefficients_.shape == (7, 3) and detector.labels_.mean() == pytest.approx(0.2)
    for wrong in ({"n_components": 0}, {"n_support": 201}, {"method": "none"}):
        with pytest.raises(ValueError):
            SKPCA(**wrong).fit(x)
    with pytest.raises(ValueError, match="contamination"):
        SKPCA(contamination=0.9)


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_ranks_its_training_rows_where_kpca_does_not(seed, capsys):
    x, truth, queries, of_queries = blobs(2000, seed)
    ours = SKPCA(random_state=0).fit(x)
    train = roc_auc_score(truth, ours.decision_scores_)
    test = roc_auc_score(of_queries, ours.decision_function(queries))
    with capsys.disabled():
        print(f"\nAUROC of SKPCA, seed {seed}: train {train:.3f}, test {test:.3f}")
    assert train >= 0.95 and test >= 0.95
    if seed == 0:
        assert roc_auc_score(truth, KPCA(random_state=0).fit(x).decision_scores_) < 0.5
