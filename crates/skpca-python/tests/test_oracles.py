"""Our answers against scikit-learn's and against the formulas written out in numpy (`oracle.py`)."""

import numpy as np
import oracle
import pytest
import scipy.linalg
import skpca
from oracle import KERNELS, SETS, Ritz, aligned, describe, eigenvalues, error, fit
from sklearn.datasets import load_digits

# Up to 192 rows are decomposed whole, more by Krylov iteration.
SIZES = [("digits", 150), ("digits", 600), ("skewed", 150), ("skewed", 1000)]


def case(data, n, name):
    make, width = SETS[data]
    return *make(n), oracle.kernels(width)[name]


@pytest.mark.parametrize("d", [1, 2, 7, 65])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_scikit_learns(name, d):
    rng = np.random.default_rng(d)
    x, z = rng.normal(size=(70, d)), rng.normal(size=(45, d))
    kernel = oracle.kernels(2.0 * d)[name]
    # The fits below need a tanh that is nearly straight; its values need not be.
    curved = {"gamma": 1.0 / d, "coef0": 0.7} if name == "sigmoid" else kernel.parameters
    kernel = oracle.Kernel(kernel.name, kernel.peer, curved)
    expected = kernel.matrix(x, z)
    assert np.abs(skpca.kernel(kernel.spec, x, z) - expected).max() < 1e-13 * np.abs(expected).max()
    a = rng.normal(size=(45, 3))
    assert error(skpca.product(kernel.spec, x, z, a), expected @ a) < 1e-13
    assert error(skpca.product(kernel.spec, x, z, a, single=True), expected @ a) < 1e-5


@pytest.mark.parametrize(("data", "n"), SIZES)
@pytest.mark.parametrize("name", KERNELS)
def test_exact_is_kernel_pca(data, n, name):
    x, queries, kernel = case(data, n, name)
    model = fit(x, kernel, method="exact", components=5)
    peer, transform = kernel.pca(5, x)
    np.testing.assert_allclose(eigenvalues(model), peer.eigenvalues_, rtol=1e-8)
    for rows in (x, queries):
        found = model.transform(rows)
        assert error(found, aligned(found, transform(rows))) < 1e-8


@pytest.mark.parametrize(("data", "n"), [("digits", 150), ("digits", 400)])
@pytest.mark.parametrize("name", KERNELS)
def test_uncentred_exact_is_an_eigendecomposition(data, n, name):
    x, queries, kernel = case(data, n, name)
    model = fit(x, kernel, method="exact", components=4, center=False)
    values, u = scipy.linalg.eigh(kernel.matrix(x, x), subset_by_index=[n - 4, n - 1])
    values, u = values[::-1], u[:, ::-1]
    np.testing.assert_allclose(eigenvalues(model), values, rtol=1e-8)
    found = model.transform(queries)
    expected = kernel.matrix(queries, x) @ u / np.sqrt(values)
    assert error(found, aligned(found, expected)) < 1e-8
    scores = kernel.diagonal(queries) - (expected**2).sum(axis=1)
    assert error(model.score(queries), scores) < 1e-9


@pytest.mark.parametrize("method", ["exact", "landmarks"])
@pytest.mark.parametrize("n", [150, 600])
def test_an_indefinite_sigmoid_is_refused(method, n):
    x, _ = oracle.digits(n)
    options = {"support": 100} if method == "landmarks" else {}
    with pytest.raises(ValueError, match="not positive semi-definite"):
        skpca.fit(x, method=method, kernel="sigmoid,gamma=0.001,coef0=-1", scaling="none", **options)


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("name", KERNELS)
def test_landmarks_on_every_row_are_exact(data, name):
    x, queries, kernel = case(data, 300, name)
    exact = fit(x, kernel, method="exact", components=5)
    model = fit(x, kernel, method="landmarks", components=5, support=len(x))
    np.testing.assert_allclose(eigenvalues(model), eigenvalues(exact), rtol=1e-8)
    expected = exact.transform(queries)
    assert error(model.transform(queries), aligned(model.transform(queries), expected)) < 1e-6
    scale = oracle.distances_to_mean(kernel, x, queries).max()
    assert error(model.score(queries), exact.score(queries), scale) < 1e-9


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("name", KERNELS)
def test_full_support_scores_are_hoffmanns(data, name):
    x, queries, kernel = case(data, 300, name)
    expected = oracle.hoffmann(kernel, x, queries, 5)
    # Data of five columns have nothing outside five linear components: scores are shares of what is projected.
    scale = oracle.distances_to_mean(kernel, x, queries).max()
    for options in ({"method": "exact"}, {"method": "landmarks", "support": len(x)}):
        assert error(fit(x, kernel, components=5, **options).score(queries), expected, scale) < 1e-9


@pytest.fixture(
    scope="module", params=[(data, name, m) for data in SETS for name in KERNELS for m in (12, 40)], ids=str
)
def sparse(request):
    """A landmarks model with its oracle on the same support."""
    data, name, m = request.param
    x, queries, kernel = case(data, 500, name)
    model = fit(x, kernel, method="landmarks", components=4, support=m, seed=3)
    return model, Ritz(kernel, x, x[describe(model)["support"]], 4), queries


def test_landmarks_solve_the_ritz_problem(sparse):
    model, ritz, queries = sparse
    np.testing.assert_allclose(eigenvalues(model), ritz.values, rtol=1e-8)
    np.testing.assert_allclose(describe(model)["captured"], ritz.values.sum(), rtol=1e-8)
    for rows in (ritz.x, queries):
        found = model.transform(rows)
        assert error(found, aligned(found, ritz.project(rows))) < 1e-7


def test_landmark_variances_are_those_of_the_features(sparse):
    model, ritz, _ = sparse
    features = model.transform(ritz.x)
    assert np.abs(features.mean(axis=0)).max() < 1e-9 * np.abs(features).max()
    covariance = features.T @ features / len(features)
    expected = np.diag(describe(model)["explained_variance"])
    assert np.abs(covariance - expected).max() < 1e-8 * expected.max()


def test_landmark_scores_follow_the_formula(sparse):
    model, ritz, queries = sparse
    for rows in (ritz.x, queries):
        scale = oracle.distances_to_mean(ritz.kernel, ritz.x, rows).max()
        assert error(model.score(rows), ritz.score(rows), scale) < 1e-9


def test_scores_are_never_negative(sparse):
    model, ritz, queries = sparse
    for rows in (ritz.x, ritz.z, queries, np.zeros_like(queries[:1])):
        assert (model.score(rows) >= 0.0).all()


def test_score_errors_are_bounded(sparse):
    model, ritz, queries = sparse
    lost = ritz.lost()
    rounding = 1e-12 * ritz.kernel.diagonal(ritz.x).max()
    for rows in (ritz.x, queries):
        scores = model.score(rows)
        bound = 2 * np.sqrt(max(lost, 0.0) * scores) + lost + rounding
        assert (np.abs(scores - ritz.hoffmann(rows)) <= bound).all()


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial"])
def test_the_score_error_reported_is_the_bound_at_the_threshold(data, name):
    x, _, kernel = case(data, 500, name)
    model = fit(x, kernel, method="landmarks", components=4, support=12, quantile=0.9)
    lost = Ritz(kernel, x, x[describe(model)["support"]], 4).lost()
    threshold = describe(model)["threshold"]
    # The loss is a small difference of large means: it has fewer digits than they have.
    np.testing.assert_allclose(describe(model)["score_error"], 2 * np.sqrt(lost * threshold) + lost, rtol=1e-8)
    assert np.isclose((model.score(x) <= threshold).mean(), 0.9, atol=0.003)


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("name", KERNELS)
def test_fidelity_is_the_share_of_kernel_pca(data, name):
    x, _, kernel = case(data, 600, name)
    found = describe(fit(x, kernel, method="landmarks", components=4, support=12))
    peer, _ = kernel.pca(4, x)
    np.testing.assert_allclose(found["fidelity"], found["captured"] / peer.eigenvalues_.sum(), rtol=1e-8)
    assert found["fidelity"] <= 1 + 1e-12


def test_a_fidelity_asked_for_is_reached_with_few_points():
    x, _ = oracle.digits(1000)
    found = describe(skpca.fit(x, method="landmarks", components=10, fidelity=0.9))
    assert found["fidelity"] >= 0.9
    assert found["q"] <= found["m"] < 300
    # Far fewer points miss it: the target decides the size.
    fewer = describe(skpca.fit(x, method="landmarks", components=10, support=found["m"] // 2))
    assert fewer["fidelity"] < 0.9


def standardised(x):
    deviation = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


@pytest.mark.parametrize("data", ["digits", 10, 54, 784])
def test_single_precision_has_six_digits(data):
    x = standardised(load_digits().data) if data == "digits" else np.random.default_rng(1).normal(size=(1500, data))
    model = skpca.fit(x, method="landmarks", kernel="rbf", components=10, support=500, scaling="none")
    # A test that would pass if `single` were ignored proves nothing.
    assert not np.array_equal(model.transform(x, single=True), model.transform(x))
    assert error(model.transform(x, single=True), model.transform(x)) < 1e-6
    assert error(model.score(x, single=True), model.score(x)) < 1e-6
