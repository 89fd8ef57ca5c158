"""The regression family against scikit-learn's lassos on the same design, in the coordinates of K's eigenvectors."""

import numpy as np
import oracle
import pytest
import skpca
from oracle import describe
from sklearn.linear_model import ElasticNet, Lasso, MultiTaskLasso

Q = 3
RIDGE = 0.05


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(120, 3)) * [2.0, 1.5, 1.0]
    k = oracle.kernels(6.0)["rbf"].matrix(x, x)
    values, vectors = np.linalg.eigh(k)
    factor = vectors * np.sqrt(np.clip(values, 0, None))
    centred = factor - factor.mean(axis=0)
    scatter = centred.T @ centred
    p = np.linalg.eigh(scatter)[1][:, ::-1][:, :Q]
    return x, oracle.kernels(6.0)["rbf"].spec, factor, scatter, p


def root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.clip(values, 0, None))).T


def ours(problem, method, penalty):
    x, kernel, *_ = problem
    spec = f"{method},alternations=0,ridge={RIDGE},penalty={penalty},tolerance=1e-9"
    return describe(skpca.fit(x, method=spec, kernel=kernel, components=Q, scaling="none"))


def objective(problem, a, ridge, cost):
    _, _, factor, scatter, p = problem
    v = factor.T @ a
    loss = 0.5 * np.trace(scatter) - np.trace(v.T @ scatter @ p) + 0.5 * np.trace(v.T @ scatter @ v)
    return loss + ridge(v, a) + cost


def features(v, _):
    return 0.5 * RIDGE * (v**2).sum()


def design(problem):
    """R and Y with ½‖Y − R A‖² = ½ tr VᵀSV − tr VᵀTP + a constant, S = T + ridge."""
    _, _, factor, scatter, p = problem
    r = root(scatter + RIDGE * np.eye(len(scatter)))
    y = np.linalg.solve(r.T, scatter @ p)
    return r @ factor.T, y


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_l21_is_never_above_multi_task_lasso(problem, share):
    _, _, factor, scatter, p = problem
    penalty = share * np.linalg.norm(factor @ scatter @ p, axis=1).max()
    r, y = design(problem)
    theirs = MultiTaskLasso(alpha=penalty / len(r), fit_intercept=False, tol=1e-9, max_iter=100_000).fit(r, y)
    a = theirs.coef_.T
    value = objective(problem, a, features, penalty * np.linalg.norm(a, axis=1).sum())
    found = ours(problem, "l21", penalty)
    assert found["report"]["gap"] <= 1e-9
    assert found["report"]["objective"] <= value * (1 + 1e-9)
    assert found["report"]["objective"] == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_l1_is_never_above_lasso(problem, share):
    _, _, factor, scatter, p = problem
    penalty = share * np.abs(factor @ scatter @ p).max()
    r, y = design(problem)
    lasso = Lasso(alpha=penalty / len(r), fit_intercept=False, tol=1e-9, max_iter=100_000)
    a = np.stack([lasso.fit(r, y[:, k]).coef_.copy() for k in range(Q)], axis=1)
    value = objective(problem, a, features, penalty * np.abs(a).sum())
    found = ours(problem, "l1", penalty)
    assert found["report"]["objective"] <= value * (1 + 1e-9)
    assert found["report"]["objective"] == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_elastic_net_is_never_above_scikit_learns(problem, share):
    _, _, factor, scatter, p = problem
    penalty = share * np.abs(factor @ scatter @ p).max()
    r, y = root(scatter) @ factor.T, root(scatter) @ p
    # ½‖y − Ra‖² + ridge/2 ‖a‖² + penalty ‖a‖₁, divided by the number of rows.
    alpha = (penalty + RIDGE) / len(r)
    net = ElasticNet(alpha=alpha, l1_ratio=penalty / (penalty + RIDGE), fit_intercept=False, tol=1e-9, max_iter=100_000)
    a = np.stack([net.fit(r, y[:, k]).coef_.copy() for k in range(Q)], axis=1)
    value = objective(problem, a, lambda _, a: 0.5 * RIDGE * (a**2).sum(), penalty * np.abs(a).sum())
    # Das's objective is twice this one, and so is his penalty.
    found = ours(problem, "elastic-net", 2 * penalty)
    assert found["report"]["objective"] <= 2 * value * (1 + 1e-9)
    assert found["report"]["objective"] == pytest.approx(2 * value, rel=1e-5)


def test_what_is_reported_makes_the_same_model_again(problem):
    """With P fixed; an alternation may end in another local minimum when it starts from other coefficients."""
    x, kernel, *_ = problem
    for method in ("l21,alternations=0", "l1,alternations=0", "elastic-net,alternations=0"):
        first = describe(skpca.fit(x, method=method, kernel=kernel, components=Q, support=12))
        penalty = first["method"]["penalty"]
        again = describe(skpca.fit(x, method=f"{method},penalty={penalty!r}", kernel=kernel, components=Q))
        assert again["support"] == first["support"], method
