"""Sparse rows stay sparse, and answer as dense ones do."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import TfidfTransformer
from skpca import KernelNovelty, SparseKernelPCA, _kernel_model

WORDS = (
    TfidfTransformer()
    .fit_transform(scipy.sparse.random_array((400, 120), density=0.08, rng=np.random.default_rng(0), format="csr"))
    .tocsr()
)
KERNELS = ["rbf", "cosine", "linear", "poly"]


@pytest.fixture
def all_large(monkeypatch):
    """Any dense copy is too large."""
    monkeypatch.setattr(_kernel_model, "SMALL_COPY", 0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", ["landmarks", "greedy"])
def test_a_sparse_fit_is_the_dense_one(monkeypatch, method, kernel):
    parameters = dict(method=method, kernel=kernel, n_support=20, random_state=0)
    dense = SparseKernelPCA(4, **parameters).fit(WORDS.toarray())
    monkeypatch.setattr(_kernel_model, "SMALL_COPY", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse = SparseKernelPCA(4, **parameters).fit(WORDS)
        features, score = sparse.transform(WORDS), sparse.score(WORDS)
    np.testing.assert_array_equal(sparse.support_, dense.support_)
    expected = dense.transform(WORDS.toarray())
    assert np.abs(features - expected).max() <= 1e-10 * np.abs(expected).max()
    assert score == pytest.approx(dense.score(WORDS.toarray()), rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_a_detector_of_sparse_rows(all_large, kernel):
    detector = KernelNovelty(kernel=kernel, n_support=30, random_state=0).fit(WORDS)
    found, expected = detector.score_samples(WORDS), detector.score_samples(WORDS.toarray())
    assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(detector.hotelling(WORDS), detector.hotelling(WORDS.toarray()), rtol=1e-8)
    assert (detector.predict(WORDS) == -1).mean() < 0.1


def test_any_order_type_and_repetition_of_entries(all_large):
    pca = SparseKernelPCA(3, method="landmarks", n_support=10, kernel="cosine", random_state=0).fit(WORDS)
    expected = pca.transform(WORDS)
    rows, columns = WORDS.nonzero()
    values = np.asarray(WORDS[rows, columns]).ravel()
    twice = scipy.sparse.csr_matrix(
        (np.tile(values / 2, 2)[::-1].copy(), (np.tile(rows, 2)[::-1].copy(), np.tile(columns, 2)[::-1].copy())),
        shape=WORDS.shape,
    )
    shuffled = WORDS.copy()
    for i in range(shuffled.shape[0]):
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[part], shuffled.data[part] = shuffled.indices[part][::-1], shuffled.data[part][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    for other in (scipy.sparse.csc_array(WORDS), scipy.sparse.coo_array(WORDS), twice, shuffled):
        np.testing.assert_allclose(pca.transform(other), expected, atol=1e-12)
    assert pca.transform(WORDS.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(kernel="laplacian"), "kernel = laplacian: expected a kernel of inner products and norms"),
        (dict(scaling="standard"), "scaling = standard: expected none on sparse rows"),
        (dict(method="likelihood"), "method = likelihood: expected one without"),
        (dict(method="landmarks", landmarks=[1, 2, 3], n_support=None), "sparse rows take no landmarks"),
        (dict(inverse="ridge"), "inverse = 'ridge': expected None"),
    ],
)
def test_what_needs_dense_rows_is_refused(all_large, parameters, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelPCA(2, **{"n_support": 10, **parameters}).fit(WORDS)


def test_values_that_are_no_numbers_are_refused(all_large):
    wrong = WORDS.copy()
    wrong.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SparseKernelPCA(2, n_support=10).fit(wrong)
    pca = SparseKernelPCA(2, n_support=10).fit(WORDS)
    with pytest.raises(ValueError, match="NaN"):
        pca.transform(wrong)


MEMORY = """
import resource
import numpy as np, scipy.sparse
import skpca
rng = np.random.default_rng(0)
n, d, each = 4000, 20_000, 40
columns = np.sort(rng.integers(0, d // each, (n, each)) + np.arange(each) * (d // each), axis=1)
X = scipy.sparse.csr_array((rng.random(n * each), columns.ravel(), np.arange(0, n * each + 1, each)), shape=(n, d))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = skpca.{0}(5, method="landmarks", n_support=20, kernel="cosine", random_state=0).fit(X)
model.{1}(X), model.{2}(X)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss")
@pytest.mark.parametrize(
    "words", [("SparseKernelPCA", "transform", "score"), ("KernelNovelty", "score_samples", "predict")]
)
def test_memory_is_that_of_the_entries_and_a_sample(words):
    """Dense, the rows take 640 MB."""
    script = MEMORY.format(*words)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300, done.stdout
