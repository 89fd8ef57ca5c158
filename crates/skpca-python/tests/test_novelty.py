"""Weights, robust fits, scores as good as exact ones, and both statistics: what the bindings make of them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skpca
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skpca import KernelNovelty, SparseKernelPCA
from skpca._registry import METHODS


def rows(count=200, columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, columns))


@pytest.mark.parametrize("inverse", ["fixed-point", "ridge", "kernel-ridge"])
def test_weights_are_repeated_rows(inverse):
    x, counts = rows(60), np.arange(60) % 3 + 1
    pca = SparseKernelPCA(3, method="greedy", n_support=8, inverse=inverse)
    weighted = pca.fit(x, sample_weight=counts).transform(x)
    found = pca.inverse_transform(weighted)
    repeated = pca.fit(x.repeat(counts, axis=0)).transform(x)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found, pca.inverse_transform(repeated), rtol=1e-4, atol=1e-5)


def test_rows_without_weight_are_not_there_and_support_keeps_its_numbers():
    x = rows(80)
    weights = np.tile([0.0, 1.0], 40)
    detector = KernelNovelty(n_support=10, contamination=0.1, random_state=0).fit(x, sample_weight=weights)
    other = KernelNovelty(n_support=10, contamination=0.1, random_state=0).fit(x[1::2])
    np.testing.assert_allclose(detector.score_samples(x), other.score_samples(x))
    np.testing.assert_allclose(detector.support_, 2 * other.support_ + 1)
    assert detector.predict(x).tolist() == detector.fit_predict(x, sample_weight=weights).tolist()


def test_weights_that_make_no_sense_are_named():
    x = rows(40)
    # scikit-learn has its own words for weights that are all zero, from 1.9 on.
    for weights in (np.zeros(40), np.r_[-1.0, np.ones(39)]):
        with pytest.raises(ValueError, match="(?i)sample.weights? "):
            KernelNovelty().fit(x, sample_weight=weights)
    method = next(name for name, entry in METHODS.items() if not entry["weights"] and not entry["labelled"])
    kernel = "linear" if METHODS[method]["linear"] else "rbf"
    with pytest.raises(ValueError, match="counts every row once"):
        SparseKernelPCA(method=method, kernel=kernel).fit(x, sample_weight=np.ones(40))


def test_a_robust_fit_says_which_rows_it_set_aside():
    x = rows(300)
    x[::10] *= 10
    clean = np.delete(x, np.s_[::10], axis=0)
    plain, robust = (KernelNovelty(robust=value, random_state=0).fit(x) for value in (False, True))
    expected = KernelNovelty(random_state=0).fit(clean).score_samples(clean)
    agreement = [spearmanr(one.score_samples(clean), expected).statistic for one in (plain, robust)]
    assert agreement[1] > 0.98 and agreement[1] > agreement[0], agreement
    aside = np.array(robust.report_["set_aside"])
    assert plain.report_["set_aside"] == [] and np.isin(np.arange(0, 300, 10), aside).mean() > 0.8
    assert not np.isin(robust.support_, aside).any()
    with pytest.raises(ValueError, match="'robust'"):
        KernelNovelty(robust="very").fit(x)


def test_rows_are_set_aside_where_there_are_more_than_chance_has():
    x = rows(300)
    clean, found = (KernelNovelty(robust=value, random_state=0).fit(x) for value in (False, "auto"))
    np.testing.assert_array_equal(found.score_samples(x), clean.score_samples(x))
    assert found.report_["set_aside"] == []
    x[::10] *= 10
    robust, found = (KernelNovelty(robust=value, random_state=0).fit(x) for value in (True, "auto"))
    np.testing.assert_array_equal(found.score_samples(x), robust.score_samples(x))
    assert found.report_["set_aside"] == robust.report_["set_aside"] != []


def test_scores_agree_with_exact_ones_as_asked_for():
    x = rows(500, 5)
    detector = KernelNovelty(score_fidelity=0.995, random_state=0).fit(x)
    agreement = detector.report_["score_fidelity"]
    assert agreement["rank_correlation"] >= 0.995 and agreement["rows"] == 125
    assert KernelNovelty().fit(x).report_["score_fidelity"] is None
    with pytest.raises(ValueError, match="not both"):
        KernelNovelty(score_fidelity=0.9, n_support=10).fit(x)


def test_both_statistics_have_limits_that_hold(tmp_path):
    detector = KernelNovelty(false_alarm_rate=0.1, random_state=0).fit(rows(400))
    spe, t2 = detector.statistics(rows(4000, seed=1))
    limits = detector.limits_
    assert 0.06 < (spe > limits["spe"]).mean() < 0.14 and 0.06 < (t2 > limits["t2"]).mean() < 0.14
    detector.save(tmp_path / "model.skpca")
    assert KernelNovelty.load(tmp_path / "model.skpca").limits_ == limits
    assert KernelNovelty(contamination=0.1).fit(rows()).limits_ is None


def process(count, seed):
    """Two sensors: one follows itself, the other what the first was a row ago."""
    rng = np.random.default_rng(seed)
    first = np.zeros(count + 1)
    for t in range(1, count + 1):
        first[t] = 0.5 * first[t - 1] + rng.normal()
    return np.column_stack([first[1:], first[:-1] + 0.1 * rng.normal(size=count)])


def test_lags_judge_rows_with_those_before_them():
    x, fresh = process(600, 0), process(400, 1)
    detector = KernelNovelty(lags=1, random_state=0).fit(x)
    # The same as a detector of rows side by side, the first of which has none before it.
    beside = np.column_stack([x, np.vstack([x[:1], x[:-1]])])
    other = KernelNovelty(row_order="time", random_state=0).fit(beside)
    np.testing.assert_array_equal(detector.score_samples(x), other.score_samples(beside))
    assert detector.n_features_in_ == 2 and detector.support_vectors_.shape[1] == 4
    # Rows with lags have their neighbours in them, even where nothing else tells the order.
    noise = [KernelNovelty(lags=lags, random_state=0).fit(rows())._calibration for lags in (0, 1)]
    assert [one["in_time_order"] for one in noise] == [False, True]
    # Rows in another order are as normal one by one, and not one after the other.
    shuffled = np.random.default_rng(2).permutation(fresh)
    plain = KernelNovelty(random_state=0).fit(x)
    shares = [(one.predict(rows) == -1).mean() for one in (plain, detector) for rows in (fresh, shuffled)]
    assert max(shares[:3]) < 0.12 and shares[3] > 0.5, shares


def test_contributions_are_summed_over_lags():
    x, fresh = process(600, 0), process(50, 1)
    detector = KernelNovelty(lags=2, random_state=0).fit(x)
    fresh[30, 1] += 20.0
    found, expected = detector.contributions(fresh, return_expected=True)
    assert found.shape == expected.shape == detector.slopes(fresh).shape == (50, 2)
    assert (found[30:33, 1] > 0.9 * found[30:33].sum(axis=1)).all() and expected[30, 1] < 10
    excess = -detector.score_samples(fresh)[30:33] - found[30:33].sum(axis=1)
    np.testing.assert_allclose(excess, excess[0])
    assert detector.feature_importances_.shape == (2,)


def test_lags_travel_with_the_model(tmp_path):
    frame = pd.DataFrame(process(200, 0), columns=["flow", "level"])
    detector = KernelNovelty(lags=1, random_state=0).fit(frame)
    detector.save(tmp_path / "model.skpca")
    pipeline = make_pipeline(StandardScaler(), clone(detector)).fit(frame)
    skpca.save(pipeline, tmp_path / "pipeline.skpca")
    for fitted, name in [(detector, "model"), (pipeline, "pipeline")]:
        loaded = KernelNovelty.load(tmp_path / f"{name}.skpca")
        assert loaded.lags == 1 and loaded.n_features_in_ == 2
        assert loaded.feature_names_in_.tolist() == ["flow", "level"]
        np.testing.assert_allclose(loaded.score_samples(frame), fitted.score_samples(frame), rtol=1e-9)
    sparse = scipy.sparse.csr_matrix(frame.to_numpy())
    np.testing.assert_allclose(
        clone(detector).fit(sparse).score_samples(sparse), detector.score_samples(frame), rtol=1e-9
    )


def test_lags_need_the_rows_before():
    x = process(100, 0)
    with pytest.raises(ValueError, match="in one array"):
        KernelNovelty(lags=1).fit(iter([x]))
    with pytest.raises(ValueError, match="row_order = 'any'"):
        KernelNovelty(lags=1, row_order="any").fit(x)
    with pytest.raises(ValueError, match="'lags'"):
        KernelNovelty(lags=-1).fit(x)
    assert not hasattr(KernelNovelty(lags=1), "partial_fit") and hasattr(KernelNovelty(), "partial_fit")
    with pytest.raises(ValueError, match="lags = 1"):
        KernelNovelty(lags=1, updatable=True).fit(x)
