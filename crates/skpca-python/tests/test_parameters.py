"""Wrong parameters are ValueErrors that say what the parameter may be; right ones of any type work."""

import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import skpca
from sklearn.model_selection import GridSearchCV
from sklearn.utils._param_validation import InvalidParameterError
from skpca import KernelNovelty, SparseKernelPCA, _kernel_model
from skpca.exceptions import DenseCopyWarning, ShortfallWarning

X = np.random.default_rng(0).normal(size=(60, 3))
NAN, INFINITY = float("nan"), float("inf")

WRONG = {
    "n_components": [-1, 0, 1.5, 2.0, True, 2**70, NAN, "two", [2]],
    "n_support": [-1, 0, 1.5, True, 2**70, "two"],
    "fidelity": [NAN, INFINITY, 0, -1, 1.5, True, "high"],
    "gamma": [-1, 0, NAN, INFINITY, True, "wide", [1.0]],
    "degree": [-1, 0, 1.5, 65, 2**70, NAN, True, "two"],
    "coef0": [NAN, INFINITY, True, "one"],
    "center": [0, 1, 2, "yes", NAN],
    "refit": [0, 1, "yes"],
    "tol": [-1, 0, NAN, INFINITY, True, "small"],
    "max_iter": [-1, 1.5, True, NAN, INFINITY, 2**70, "many"],
    "random_state": [-1, 2**64, 1.5, NAN, True, "seed", np.random.default_rng(0)],
    "n_jobs": [0, 1.5, True, "all"],
    "scaling": ["log", 1, True],
    "method": [3, None, {}, {"name": 3}, {"name": []}, ["greedy"]],
    "kernel": [3, None, {}, {"name": 3}, {"name": []}],
}
RIGHT = {
    "n_components": [np.int64(2), np.uint8(2), 100, None],
    "n_support": [np.int32(5)],
    "fidelity": [np.float32(0.5), Fraction(1, 2), 1],
    "gamma": [np.float32(0.5), Fraction(1, 2), 1, "median"],
    "degree": [np.int64(2), 2.0, None],
    "coef0": [np.float32(0.5), 0, Fraction(1, 3)],
    "center": [True, np.bool_(False)],
    "refit": [False, np.bool_(True)],
    "tol": [np.float32(0.1), Fraction(1, 10), 1],
    "max_iter": [np.int64(3), 1000],
    "random_state": [np.int64(3), 2**64 - 1, np.random.RandomState(0), np.random],
    "n_jobs": [-1, 1, np.int64(2)],
    "scaling": [None, "none", "standard", "minmax"],
}
# Where a parameter matters.
PLACES = {
    "degree": {"kernel": "poly"},
    "coef0": {"kernel": "poly"},
    "refit": {"method": "threshold"},
    "tol": {"method": "likelihood"},
    "max_iter": {"method": "greedy"},
    "n_support": {"n_components": 2},
}


def estimator(kind, name, value):
    return kind(**{"n_components": 2, **PLACES.get(name, {}), name: value})


@pytest.mark.parametrize("kind", [SparseKernelPCA, KernelNovelty])
@pytest.mark.parametrize("name, value", [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_parameters(kind, name, value):
    message = f"The '{name}' parameter of {kind.__name__} must be .*\\. Got .* instead\\."
    with pytest.raises(InvalidParameterError, match=message):
        estimator(kind, name, value).fit(X)


@pytest.mark.parametrize(
    "parameters",
    [{"method": {"name": "greedy", "rank": NAN}}, *({"kernel": {"name": "rbf", "gamma": g}} for g in ({1}, NAN))],
)
def test_specs_hold_finite_numbers(parameters):
    with pytest.raises(ValueError, match="(method|kernel) = .*expected finite numbers"):
        SparseKernelPCA(2, **parameters).fit(X)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_components": 2.0}, "must be an int in the range [1, 2**63) or None. Got 2.0, which is a float, instead."),
        ({"fidelity": 1.5}, "must be a float in the range (0.0, 1.0] or None. Got 1.5 instead."),
        (
            {"n_support": 70},
            "The 'n_support' parameter of SparseKernelPCA must be at most the 60 rows there are. Got 70",
        ),
        ({"n_support": 3, "method": "threshold", "n_components": 9}, "The 'n_support' parameter of "),
        (
            {"n_support": 5, "method": "l21,penalty=0.1"},
            "The 'n_support' parameter of SparseKernelPCA must be a target or ",
        ),
    ],
)
def test_complaints_name_parameters_as_the_caller_does(parameters, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        SparseKernelPCA(**parameters).fit(X)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name, value", [(name, value) for name, values in RIGHT.items() for value in values])
def test_right_parameters(name, value):
    assert len(estimator(SparseKernelPCA, name, value).fit_transform(X)) == len(X)


@pytest.mark.parametrize("alpha", [-1, NAN, "some", None])
@pytest.mark.parametrize("inverse", ["ridge", "kernel-ridge"])
def test_wrong_ridges(inverse, alpha):
    with pytest.raises(InvalidParameterError, match="The 'alpha' parameter of SparseKernelPCA must be "):
        SparseKernelPCA(2, inverse=inverse, alpha=alpha).fit(X)


@pytest.mark.parametrize("name, least", [("components", 1), ("support", 1), ("seed", 0)])
def test_whole_numbers_of_the_core(name, least):
    for value in (least - 1, -7, 2**64, 2**70):
        with pytest.raises(ValueError, match=f"{name} = {value}: expected an integer from {least} "):
            skpca.fit(X, **{name: value})
    for value in (1.5, "1", True, [1]):
        with pytest.raises(TypeError, match=f"{name} = .*: expected an integer"):
            skpca.fit(X, **{name: value})
    assert isinstance(skpca.fit(X, **{name: np.int16(3)}), skpca.Model)


def test_rounds_are_a_whole_number():
    with pytest.raises(ValueError, match="rounds = -1"):
        skpca.multiply_adds(False, -1)


def test_instructions_can_be_pinned():
    models = [skpca.fit(X, method="landmarks", support=10, level=level) for level in ("auto", "portable")]
    scores = [model.score(X) for model in models]
    np.testing.assert_allclose(*scores, atol=1e-9 * scores[0].max(), rtol=0)
    assert "level" not in models[0].request()
    assert '"level":"portable"' in models[1].request()
    with pytest.raises(ValueError, match="level = sse9: expected auto or avx512 or avx2 or portable"):
        skpca.fit(X, level="sse9")


def test_a_spec_is_spelled_as_on_the_command_line():
    spelled, given = (
        SparseKernelPCA(2, method=method, kernel=kernel, random_state=0).fit(X)
        for method, kernel in (
            ("greedy,exchanges=1", "rbf,sigma=2"),
            ({"name": "greedy", "exchanges": 1}, {"name": "rbf", "gamma": 0.125}),
        )
    )
    assert np.array_equal(spelled.transform(X), given.transform(X)) and spelled.gamma_ == 0.125
    with pytest.raises(ValueError, match="unknown method parameter 'pennalty'"):
        SparseKernelPCA(2, method="l21,pennalty=0.1").fit(X)


def test_parameters_of_a_method_in_a_grid():
    pca = SparseKernelPCA(2, method="l21").set_params(method__penalty=0.5, kernel__gamma=0.1, n_components=3)
    assert pca.method == {"name": "l21", "penalty": 0.5} and pca.kernel == {"name": "rbf", "gamma": 0.1}
    assert pca.get_params()["method__penalty"] == 0.5 and "method__penalty" not in pca.get_params(deep=False)
    search = GridSearchCV(pca, {"method__penalty": [0.5, 0.05]}, cv=2, error_score="raise").fit(X)
    assert search.best_params_ == {"method__penalty": 0.05}


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"method": {"name": "l21", "refit": True, "penalty": 0.1}, "refit": False},
            "refit = False: l21 has refit = True",
        ),
        ({"kernel": {"name": "rbf", "gamma": 0.1}, "gamma": 0.2}, "gamma = 0.2: rbf has gamma = 0.1"),
        ({"kernel": "rbf,gamma=0.1,sigma=2"}, "one of gamma, sigma and width, not several"),
        ({"n_support": 5, "fidelity": 0.9}, "n_support = 5 and fidelity = 0.9: give one of them, not both"),
    ],
)
def test_contradictions_are_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelPCA(2, **parameters).fit(X)


def test_gamma_auto_is_that_of_kernel_pca():
    assert SparseKernelPCA(2, gamma="auto").fit(X).gamma_ == 1 / X.shape[1]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_components": 20, "n_support": 10}, "20 components requested, 10 found"),
        ({"n_components": 500}, "500 components requested"),
    ],
)
def test_a_model_that_falls_short_warns(parameters, message):
    with pytest.warns(ShortfallWarning, match=message):
        SparseKernelPCA(**parameters).fit(X)


def test_points_that_depend_on_others_warn():
    with pytest.warns(ShortfallWarning, match="20 support points requested, 5 kept: the others are linearly dependent"):
        SparseKernelPCA(2, n_support=20, method="landmarks").fit(np.repeat(X[:5], 10, axis=0))


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_fidelity_that_is_missed_warns():
    with pytest.warns(ShortfallWarning, match="fidelity 1 requested, 0.9.* reached"):
        SparseKernelPCA(4, method="likelihood", refit=False, fidelity=1.0).fit(X)


def test_warnings_are_shown_where_the_user_is_and_can_be_filtered():
    pca = SparseKernelPCA(20, n_support=10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pca.fit(X)
    assert [Path(one.filename) for one in caught] == [Path(__file__)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", skpca.exceptions.SkpcaWarning)
        pca.fit(X)
    assert not caught


def test_a_large_dense_copy_warns(monkeypatch):
    monkeypatch.setattr(_kernel_model, "SMALL_COPY", 100)
    pca = SparseKernelPCA(2, n_support=10, kernel="laplacian").fit(X)
    with pytest.warns(DenseCopyWarning, match="60 x 3 is made dense"):
        pca.transform(scipy.sparse.csr_matrix(X))


def test_the_package_shows_what_is_public():
    assert skpca.__version__.split(".")[0].isdigit()
    assert {"SparseKernelPCA", "KernelNovelty", "exceptions", "__version__"} <= set(dir(skpca))
    assert not [name for name in dir(skpca) if name.startswith("_") and name != "__version__"]
