"""`skpca.path`, the density of estimators and the weights behind it."""

import json

import numpy as np
import pytest
import skpca
from sklearn.base import clone
from skpca import KernelNovelty, SparseKernelPCA

X = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 2.0, 0.5]


@pytest.mark.parametrize("method", ["expansion", "greedy"])
def test_a_path_of_sizes_grows_to_the_size_asked_for(method):
    path = skpca.path(X, 2, method=method, max_support=7, random_state=0)
    assert path.n_support[-1] == 7 and (np.diff(path.n_support) == 1).all()
    assert (np.diff(path.fidelity) > -1e-9).all()
    fit = SparseKernelPCA(2, method=method, n_support=7, random_state=0).fit(X)
    assert fit.fidelity_ > path.fidelity[-1] - 1e-2
    assert len(skpca.path(X, 2, method=method, random_state=0).n_support) >= 5


@pytest.mark.parametrize("method", ["l1", "l21", "elastic-net"])
def test_a_step_of_a_path_of_penalties_is_a_fit(method):
    path = skpca.path(X, 2, method=method, shares=[0.6, 0.2], scaling="standard", random_state=0)
    assert path.n_support.tolist() == [len(rows) for rows in path.support]
    fit = SparseKernelPCA(2, method={"name": method, "penalty": path.penalties[0]}, scaling="standard", random_state=0)
    fit.fit(X)
    assert np.array_equal(fit.support_, path.support[0])
    assert path.fidelity[0] == pytest.approx(fit.fidelity_, abs=1e-9)
    assert path.objective[0] == pytest.approx(fit.report_["objective"], rel=1e-6)
    assert path.converged.all() and (path.gap < 1e-4).all() and path.n_support[0] < path.n_support[1]


def test_the_default_shares_are_those_of_a_lasso_path():
    path = skpca.path(X, 2, method="l21", eps=0.05, n_shares=5, random_state=0)
    assert np.allclose(path.shares, np.geomspace(1, 0.05, 5))
    assert path.n_support[0] == 0 and path.fidelity[0] == 0


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"method": "landmarks"}, "expected expansion or greedy"),
        ({"method": "greedy", "shares": [0.1]}, "shares: only .* have a path of penalties; greedy has one of sizes"),
        ({"method": "l1", "max_support": 5}, "max_support = 5: l1 has a path of penalties"),
        ({"method": "l1", "eps": 2}, "eps = 2: expected a number between 0 and 1"),
        ({"method": "l1", "shares": [0.0]}, "shares = 0"),
        ({"method": "lasso"}, "method = 'lasso': expected one of "),
        ({"n_support": 5}, "n_support = 5: a path has many sizes"),
        ({"kernel": "precomputed"}, "a path needs a kernel of the registry"),
        ({"gamma": -1}, "The 'gamma' parameter of SparseKernelPCA must be"),
    ],
)
def test_wrong_paths(parameters, message):
    with pytest.raises(ValueError, match=message):
        skpca.path(X, 2, **parameters)


@pytest.mark.parametrize("kind", [SparseKernelPCA, KernelNovelty])
def test_the_density_of_likelihood_is_there_and_no_other(kind):
    detector = kind(2, method="likelihood", n_support=8, random_state=0).fit(X)
    density = detector.log_likelihood(X)
    assert np.array_equal(density, detector._model.log_likelihood(X))
    assert np.array_equal(detector.log_likelihood(X[:1]), density[:1])
    # The objective is the mean over the training rows.
    assert density.mean() == pytest.approx(detector.report_["objective"], rel=1e-6)
    assert not hasattr(kind(2), "log_likelihood") and not hasattr(
        clone(detector).set_params(method="l1"), "log_likelihood"
    )


def test_score_samples_of_the_transformer_are_its_density():
    pca = SparseKernelPCA(2, method="likelihood", n_support=8, random_state=0).fit(X)
    assert np.array_equal(pca.score_samples(X), pca.log_likelihood(X))
    assert not hasattr(SparseKernelPCA(2), "score_samples")


def test_the_weights_make_the_covariance_whose_likelihood_it_is():
    pca = SparseKernelPCA(2, method="likelihood", n_support=8, center=False, random_state=0).fit(X)
    parts, about = pca._model.arrays(), json.loads(pca._model.describe())
    weights = parts["weights"]
    assert weights.shape == (8,) and (weights > 0).all()
    noise, dimension = about["method"]["noise"], about["method"]["rank"]
    kernel = json.dumps(about["kernel"])
    values, inner = skpca.kernel(kernel, X, parts["support"]), skpca.kernel(kernel, parts["support"], parts["support"])
    # −½ [D log 2πσ² + log|I + W^½KW^½/σ²| + (k(x,x) − k_zᵀ(σ²W⁻¹ + K)⁻¹k_z)/σ²]
    middle = np.linalg.inv(noise * np.diag(1 / weights) + inner)
    root = np.sqrt(weights)
    determinant = np.linalg.slogdet(np.eye(8) + root[:, None] * inner * root / noise)[1]
    distance = 1 - np.einsum("ij,jk,ik->i", values, middle, values)
    expected = -0.5 * (dimension * np.log(2 * np.pi * noise) + determinant + distance / noise)
    assert np.allclose(pca.log_likelihood(X), expected, rtol=1e-8)
