"""`partial_fit`: what batches give, what is forgotten, and what files and pickles keep of it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA
from skpca import KernelNovelty, Model, Online, SparseKernelPCA, fit

ESTIMATORS = [SparseKernelPCA(3, n_support=10, random_state=0), KernelNovelty(n_support=10, random_state=0)]


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(900, 3))


def batches(estimator, rows, size=150, **more):
    for start in range(0, len(rows), size):
        weights = {name: values[start : start + size] for name, values in more.items()}
        estimator.partial_fit(rows[start : start + size], **weights)
    return estimator


def captured(estimator, rows):
    return estimator.transform(rows).var(axis=0).sum()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_the_first_batch_is_a_fit_and_fit_starts_anew(estimator, rows):
    once = clone(estimator).fit(rows)
    begun = clone(estimator).partial_fit(rows)
    assert np.array_equal(once.coefficients_, begun.coefficients_) and begun.n_samples_seen_ == 900
    begun.partial_fit(rows[:100] + 1)
    assert begun.n_samples_seen_ == 1000 and not np.array_equal(once.coefficients_, begun.coefficients_)
    begun.fit(rows)
    assert np.array_equal(once.coefficients_, begun.coefficients_) and begun.n_samples_seen_ == 900


def test_batches_over_fixed_points_are_moments_of_all_rows(rows):
    model = fit(rows[:300], components=3, support=10)
    online = Online(model, rows[:300], reservoir=0)
    for start in range(300, 900, 100):
        online.update(rows[start : start + 100])
    moments = model.moments()
    moments.add(rows)
    expected = model.refit(moments)
    assert np.allclose(online.model().score(rows), expected.score(rows), rtol=1e-9, atol=1e-12)
    assert online.n_samples_seen == 900


def test_the_contract_is_that_of_incremental_pca(rows):
    for pca in (SparseKernelPCA(5), IncrementalPCA(5)):
        with pytest.raises(ValueError, match="n_components"):
            pca.partial_fit(rows[:4])
    with pytest.raises(ValueError, match="n_support = 20: the first batch of partial_fit has 10 rows"):
        SparseKernelPCA(2, n_support=20).partial_fit(rows[:10])
    ours, theirs = SparseKernelPCA(2, random_state=0), IncrementalPCA(2)
    for one in (ours, theirs):
        batches(one, rows, 300)
    assert ours.n_samples_seen_ == theirs.n_samples_seen_ == 900
    ours.partial_fit(rows[:1])
    assert ours.n_samples_seen_ == 901


def test_weights_are_repeated_rows(rows):
    weights = np.arange(900) % 3.0
    pca = SparseKernelPCA(3, n_support=10, random_state=0)
    first = clone(pca).partial_fit(rows)
    weighted = pickle.loads(pickle.dumps(first)).partial_fit(rows, sample_weight=weights)
    repeated = first.partial_fit(np.repeat(rows, weights.astype(int), axis=0))
    if np.array_equal(weighted.support_vectors_, repeated.support_vectors_):
        assert np.allclose(weighted.explained_variance_, repeated.explained_variance_)
    assert np.allclose(captured(weighted, rows), captured(repeated, rows), rtol=0.01)
    with pytest.raises(ValueError, match="sample_weight"):
        first.partial_fit(rows, sample_weight=[1.0])
    with pytest.raises(ValueError, match="[Nn]egative"):
        first.partial_fit(rows, sample_weight=-weights)


def test_forgetting_follows_the_rows(rows):
    moved = np.vstack([rows, rows + [3.0, 0.0, 0.0]])
    forgets, stays = (
        batches(SparseKernelPCA(3, n_support=12, gamma=0.3, forget_factor=factor, random_state=0), moved)
        for factor in (0.99, 1.0)
    )
    last = moved[-300:]
    assert captured(forgets, last) > captured(stays, last)


def test_detectors_do_not_learn_outliers_and_keep_the_first_limit(rows):
    detector = KernelNovelty(random_state=0).partial_fit(rows)
    reference = detector.offset_
    wild = np.vstack([rows[:50], rows[:50] + 20])
    outliers = int((detector.predict(wild) == -1).sum())
    detector.partial_fit(wild)
    assert detector.report_["update"]["alarms"] == outliers >= 50
    assert detector.report_["update"]["learned"] == 100 - outliers
    assert detector.n_samples_seen_ == 1000 and detector.reference_offset_ == reference
    learns = KernelNovelty(random_state=0, learn_alarms=True).partial_fit(rows).partial_fit(wild)
    assert learns.report_["update"]["learned"] == 100


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_files_and_pickles_go_on_where_they_were(estimator, rows, tmp_path):
    one = batches(clone(estimator).set_params(updatable=True), rows[:600])
    one.save(tmp_path / "model.skpca")
    read = type(one).load(tmp_path / "model.skpca")
    pickled = pickle.loads(pickle.dumps(one))
    for other in (one, read, pickled):
        other.partial_fit(rows[600:])
        assert other.n_samples_seen_ == 900
    assert np.array_equal(one.coefficients_, read.coefficients_)
    assert np.array_equal(one.coefficients_, pickled.coefficients_)
    one.set_params(updatable=False).save(tmp_path / "small.skpca")
    assert (tmp_path / "small.skpca").stat().st_size < (tmp_path / "model.skpca").stat().st_size
    with pytest.raises(ValueError, match="updatable=True"):
        type(one).load(tmp_path / "small.skpca").partial_fit(rows)


def test_a_fit_that_kept_nothing_says_how_to_keep_it(rows):
    pca = SparseKernelPCA(3, random_state=0).fit(rows)
    with pytest.warns(UserWarning, match="updatable=True"):
        assert pca.partial_fit(rows[:400]).n_samples_seen_ == 400
    assert SparseKernelPCA(3, updatable=True, random_state=0).fit(rows).partial_fit(rows).n_samples_seen_ == 1800
    given = SparseKernelPCA(3, kernel=lambda x, z: x @ z.T, updatable=True)
    assert not hasattr(given, "partial_fit")
    with pytest.raises(ValueError, match="updatable = True: a given kernel cannot learn online"):
        given.fit(rows)
    assert not hasattr(SparseKernelPCA(method="discriminant"), "partial_fit")
    assert Online.resume(fit(rows, support=10)) is None
    assert isinstance(Online(fit(rows, support=10), rows).stored(), Model)


@pytest.mark.parametrize("value", [0, -1, 1.5, "much", np.nan])
def test_a_forget_factor_is_above_0_and_up_to_1(value, rows):
    with pytest.raises(ValueError, match="forget_factor"):
        SparseKernelPCA(3, forget_factor=value).partial_fit(rows)
