"""The estimators: scikit-learn's own checks for every method, containers, files, and what the numbers mean."""

import ast
import copy
import doctest
import importlib
import importlib.resources
import inspect
import json
import math
import pickle
import re
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse
import skpca
from oracle import aligned, digits, skewed
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA, KernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from skpca import KernelNovelty, SparseKernelPCA, SparseLinearPCA, _documentation, _spec
from skpca._registry import KERNELS, METHODS
from skpca.exceptions import ShortfallWarning

UNLABELLED = [name for name, entry in METHODS.items() if not entry["labelled"]]
# Kernels that are valid with any parameters, but the default, by scikit-learn's names.
OTHERS = [
    entry["sklearn"] or name
    for name, entry in KERNELS.items()
    if entry["positive_semidefinite"] and not entry["labelled"] and name != SparseKernelPCA().kernel
]
# The penalties of ten components are sought one by one: three are enough to check an interface.
SIZES = {"l1": 3, "elastic-net": 3}


def kernel_of(method):
    """The kernel of a check: the default, or the one that the method needs."""
    return "linear" if METHODS[method]["linear"] else "rbf"


def rbf(x, z):
    """A kernel that the core does not know."""
    return np.exp(-0.2 * np.square(x - z).sum())


def checks_that_fail(estimator):
    """Checks of detectors that expect outliers among their training rows, and cannot pass."""
    return {**weights_that_fail(estimator), **detectors_that_fail(estimator)}


def weights_that_fail(estimator):
    """Checks of weights: not every method takes them, and rows in another order are other draws and other folds."""
    equivalence = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
    if METHODS[estimator.method]["weights"]:
        return dict.fromkeys(equivalence, "the check shuffles the rows: draws and folds are of rows by number")
    others = {
        f"check_sample_weights_{kind}" for kind in ("pandas_series", "not_an_array", "list", "shape", "not_overwritten")
    }
    return dict.fromkeys(equivalence | others, "the method takes no weights, and says so")


def detectors_that_fail(estimator):
    if not isinstance(estimator, KernelNovelty):
        return {}
    if estimator.method not in UNLABELLED:
        reason = "the check fits without y, the method needs classes"
    elif METHODS[estimator.method]["linear"]:
        reason = "two components span the two columns of the check: all distances are rounding"
    elif estimator.method == "robust":
        reason = "its points change so much with the rows that rows held out score higher than all that were fitted"
    else:
        return {}
    return {"check_outliers_fit_predict": reason, "check_outliers_train": reason}


@parametrize_with_checks(
    [
        kind(SIZES.get(method), method=method, kernel=kernel_of(method))
        for kind in (SparseKernelPCA, KernelNovelty)
        for method in METHODS
    ],
    expected_failed_checks=checks_that_fail,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        # Nothing is outside the components of a linear kernel, so that all distances are rounding.
        kind(kernel=kernel, method="greedy", **({"statistic": "mahalanobis"} if kernel == "linear" and own else {}))
        for kind, own in ((SparseKernelPCA, False), (KernelNovelty, True))
        for kernel in [*OTHERS, rbf]
    ],
    expected_failed_checks=lambda estimator: (
        weights_that_fail(estimator)
        | (
            {"check_fit2d_1feature": "the cosine of two positive numbers is 1, and our error says that nothing varies"}
            if estimator.kernel == "cosine"
            else {}
        )
    ),
)
def test_checks_of_scikit_learn_under_other_kernels(estimator, check):
    check(estimator)


@pytest.mark.parametrize("module", ["_estimators", "_novelty", "pyod"])
def test_docstrings(module):
    if module == "pyod":
        pytest.importorskip("pyod")
    failed, tried = doctest.testmod(importlib.import_module(f"skpca.{module}"))
    assert tried > 0 and failed == 0


def estimators():
    return [SparseKernelPCA, KernelNovelty, pytest.importorskip("skpca.pyod").SKPCA]


def test_docstrings_say_what_the_registries_know():
    for kind in estimators():
        text = " ".join(inspect.getdoc(kind).split())
        for entry in (*METHODS.values(), *KERNELS.values()):
            assert f'- "{entry["name"]}"' in text and " ".join(entry["summary"].split()) in text, entry["name"]
            for one in entry["parameters"]:
                assert f"- ``{one['name']}`` of " in text and one["help"] in text, (entry["name"], one["name"])


def test_docstrings_have_references_with_dois():
    for kind in [*estimators(), SparseLinearPCA]:
        _, references = inspect.getdoc(kind).split("\nReferences\n")
        assert re.search(r"doi:10\.\d{4,}/\S+", references), kind


@pytest.mark.parametrize("kind", [SparseKernelPCA, KernelNovelty, SparseLinearPCA])
def test_the_html_representation_links_to_the_documentation(kind, monkeypatch):
    assert kind()._get_doc_link() == "" and "href" not in kind()._repr_html_(), "no site is declared"
    monkeypatch.setattr(_documentation, "site", lambda: "https://docs.example")
    assert f'href="https://docs.example/generated/python/{kind.__name__}.html"' in kind()._repr_html_()


def test_docstrings_explain_every_parameter():
    for kind in estimators():
        for name, one in inspect.signature(kind).parameters.items():
            assert re.search(rf"\n{name} : .*, default={re.escape(repr(one.default))}\n    \S", kind.__doc__), name
        assert list(inspect.signature(kind).parameters) == ["n_components", *(one.name for one in fields(kind)[1:])]
        assert set(kind().get_params()) == {one.name for one in fields(kind)}


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "cosine"])
def test_full_support_is_kernel_pca(kernel):
    x, queries = skewed(120)
    ours = SparseKernelPCA(3, method="exact", kernel=kernel, gamma=0.1).fit(x)
    theirs = KernelPCA(3, kernel=kernel, gamma=0.1, eigen_solver="dense").fit(x)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    found = ours.transform(queries)
    np.testing.assert_allclose(found, aligned(found, theirs.transform(queries)), rtol=1e-6, atol=1e-8)


# What the core knows.


def test_parameters_reach_the_methods_and_kernels_that_have_them():
    """Each under the name that the core has for it, and no others."""
    given = {"refit": False, "tol": 0.5, "max_iter": 7, "gamma": 0.25, "degree": 4, "coef0": 2.0}
    entries = [("method", entry) for entry in METHODS.values()] + [("kernel", entry) for entry in KERNELS.values()]
    for what, entry in entries:
        own = {one["sklearn"]: one["name"] for one in entry["parameters"] if one["sklearn"]}
        assert own.keys() <= given.keys(), entry["name"]
        some = {name: value for name, value in given.items() if name in own or name not in ("tol", "max_iter")}
        found = getattr(_spec, what)(SparseKernelPCA(**{what: entry["name"]}, **some))
        if what == "kernel" and entry["labelled"]:
            own = {"gamma": "gamma"}
        assert found == {"name": entry["name"], **{own[name]: given[name] for name in own}}


# Fitted attributes.


@pytest.mark.parametrize("method", METHODS)
def test_what_is_known_after_a_fit(method):
    x, y = load_iris(return_X_y=True)
    pca = SparseKernelPCA(2, method=method, kernel=kernel_of(method), random_state=0).fit(x, y)
    m, q = len(pca.support_vectors_), pca.n_components_
    assert q == 2 and pca.coefficients_.shape == (m, q) and pca.support_vectors_.shape == (m, 4)
    if METHODS[method]["synthetic_points"]:
        assert pca.support_ is None
    else:
        np.testing.assert_array_equal(pca.support_vectors_, x[pca.support_])
    np.testing.assert_allclose(pca.eigenvalues_, len(x) * pca.explained_variance_)
    assert 0 < pca.explained_variance_ratio_.sum() <= 1 and 0 < pca.fidelity_ <= 1 + 1e-9
    assert METHODS[method]["linear"] or pca.gamma_ > 0
    assert pca.n_iter_ >= 1 and pca.report_["converged"] is True


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("method", ["l21", "threshold", "expansion"])
def test_score_on_the_training_rows_is_the_captured_share(method, refit):
    x, queries = skewed(150)
    pca = SparseKernelPCA(3, method=method, n_support=20, refit=refit, random_state=0).fit(x)
    assert pca.score(x) == pytest.approx(pca.captured_variance_ratio_, rel=1e-8)
    assert 0 < pca.score(queries) < 1
    if refit:
        assert pca.captured_variance_ratio_ == pytest.approx(pca.explained_variance_ratio_.sum(), rel=1e-8)
        np.testing.assert_allclose(pca.transform(x).var(axis=0), pca.explained_variance_, rtol=1e-8)


def test_gamma_is_the_median_rule():
    x, _ = skewed(60)
    squares = ((x[:, None] - x) ** 2).sum(axis=2)[np.triu_indices(60, 1)]
    assert SparseKernelPCA().fit(x).gamma_ == pytest.approx(1 / np.median(squares))
    assert SparseKernelPCA(kernel="poly").fit(x).gamma_ == pytest.approx(1 / (5 * x.var(axis=0).mean()), rel=0.2)


# Parameters.


def test_dicts_say_the_same_as_parameters():
    x, _ = skewed(100)
    plain = SparseKernelPCA(2, method="l21", kernel="poly", gamma=0.2, degree=2, coef0=0.5, refit=False, n_support=9)
    dicts = SparseKernelPCA(
        2,
        method={"name": "l21", "refit": np.bool_(False)},
        kernel={"name": "poly", "gamma": np.float32(0.2).astype(float), "degree": np.int64(2), "coef0": 0.5},
        n_support=9,
    )
    np.testing.assert_allclose(plain.fit_transform(x), dicts.fit_transform(x), rtol=1e-5)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"method": "lasso"}, "lasso.*exact.*landmarks"),
        ({"kernel": "gauss"}, "gauss.*rbf"),
        ({"kernel": 3}, "The .kernel. parameter of SparseKernelPCA must be a str"),
        ({"kernel": {"name": "rbf", "breadth": 1.0}}, "breadth"),
        ({"gamma": -1.0}, r"The 'gamma' parameter of SparseKernelPCA must be a float in the range \(0.0, inf\)"),
        ({"n_support": 0}, r"n_support. parameter of .* in the range \[1, 2\*\*63\)"),
        ({"n_support": 5, "fidelity": 0.9}, "not both"),
        ({"method": "landmarks", "tol": 1e-3}, "tol = 0.001: the method landmarks has no such parameter"),
        ({"method": "likelihood", "max_iter": 3}, "max_iter = 3: the method likelihood"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelPCA(**parameters).fit(skewed(30)[0])


def test_not_converging_is_a_warning():
    x, _ = digits(200)
    with pytest.warns(ConvergenceWarning, match="expansion did not converge"):
        SparseKernelPCA(5, n_support=10, max_iter=1, random_state=0).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseKernelPCA(2, n_support=3, random_state=0).fit(skewed(80)[0])


def test_verbose_shows_progress(capsys):
    x, _ = digits(1000)
    SparseKernelPCA(method="greedy", n_support=20).fit(x)
    assert capsys.readouterr().out == ""
    SparseKernelPCA(method="greedy", n_support=200, verbose=1).fit(x)
    # Which stages last long enough to be shown depends on the machine.
    assert "[SparseKernelPCA] " in capsys.readouterr().out


def test_an_interrupt_stops_a_long_fit():
    """In a process of its own, whose main thread is in the fit when the signal comes."""
    program = """
import os, signal, threading, time, numpy as np
from skpca import SparseKernelPCA
x = np.random.default_rng(0).normal(size=(3000, 30))
def interrupt():
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
# A shell's background job has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1.0, interrupt).start()
try:
    SparseKernelPCA(10, method={"name": "l1", "tolerance": 1e-14}, n_support=300, max_iter=10**6).fit(x)
except KeyboardInterrupt:
    print("stopped", time.monotonic() - sent)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("stopped")


def test_random_state_is_a_seed():
    x, _ = digits(300)

    def support(random_state):
        return SparseKernelPCA(method="landmarks", n_support=10, random_state=random_state).fit(x).support_

    expected = skpca.fit(x, method="landmarks", support=10, scaling="none", seed=3).arrays()["rows"]
    np.testing.assert_array_equal(support(3), expected)
    np.testing.assert_array_equal(support(np.int64(3)), expected)
    np.testing.assert_array_equal(support(np.random.RandomState(3)), support(np.random.RandomState(3)))
    assert not np.array_equal(support(3), support(4))


@pytest.mark.parametrize(
    "parameters",
    [{"method": "discriminant"}, {"kernel": "conformal"}, {"kernel": {"name": "conformal", "base": "poly"}}],
)
def test_labels_of_any_type(parameters):
    x, y = load_iris(return_X_y=True)
    pca = SparseKernelPCA(2, n_support=12, random_state=0, **parameters)
    numbers, words = pca.fit_transform(x, y), pca.fit_transform(x, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(numbers, words)
    with pytest.raises(ValueError, match="requires y"):
        pca.fit(x)
    with pytest.raises(ValueError, match="continuous"):
        pca.fit(x, x[:, 0] + 0.123)


# Kernels that the core does not know.


@pytest.mark.parametrize("method", [method for method in UNLABELLED if not METHODS[method]["synthetic_points"]])
def test_given_kernels_are_as_good_as_ours(method):
    """A function, a matrix, and the core's own kernel have the same components."""
    x, queries = skewed(70, queries=10)
    pca = SparseKernelPCA(
        3, method=method, gamma=0.2, fidelity=None if METHODS[method]["keeps_all_rows"] else 0.9, random_state=0
    )
    expected = pca.fit(x).transform(queries)
    function = clone(pca).set_params(kernel=rbf).fit(x)
    matrix = clone(pca).set_params(kernel="precomputed").fit(rbf_kernel(x, gamma=0.2))
    if method != "landmarks":
        np.testing.assert_array_equal(function.support_, pca.support_)
        np.testing.assert_allclose(function.transform(queries), expected, rtol=1e-3, atol=1e-3)
        assert function.score(queries) == pytest.approx(pca.score(queries), rel=1e-5)
    np.testing.assert_allclose(
        matrix.transform(rbf_kernel(queries, x, gamma=0.2)), function.transform(queries), atol=1e-8
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(function)).transform(queries), function.transform(queries))


def test_given_kernels_say_what_they_cannot(tmp_path):
    x, queries = skewed(40)
    with pytest.raises(ValueError, match="expansion moves points.*greedy"):
        SparseKernelPCA(kernel=rbf, method={"name": "expansion", "restarts": 2}).fit(x)
    with pytest.raises(ValueError, match="square"):
        SparseKernelPCA(kernel="precomputed", method="greedy").fit(x)
    with pytest.raises(ValueError, match="not PSD"):
        SparseKernelPCA(kernel="precomputed", method="greedy").fit(-rbf_kernel(x))
    matrix = KernelNovelty(kernel="precomputed", method="greedy").fit(rbf_kernel(x))
    with pytest.raises(ValueError, match="k\\(x, x\\)"):
        matrix.predict(rbf_kernel(queries, x))
    function = KernelNovelty(kernel=rbf, method="greedy").fit(x)
    assert (function.predict(x) == 1).mean() > 0.9
    with pytest.raises(ValueError, match="pickle"):
        function.save(tmp_path / "model")


def test_the_default_of_given_kernels_keeps_samples():
    x, queries = skewed(40)
    pca = SparseKernelPCA(2, kernel=rbf).fit(x)
    assert any("fitted by greedy" in note for note in pca.report_["notes"]) and pca.support_ is not None
    np.testing.assert_array_equal(
        pca.transform(queries), SparseKernelPCA(2, kernel=rbf, method="greedy").fit(x).transform(queries)
    )


def test_functions_of_tables_are_called_once():
    """As many calls as there are blocks, not pairs; and the answers of a function of rows."""
    x, queries = skewed(40)
    calls = []

    def table(a, b):
        calls.append(len(a) * len(b))
        return rbf_kernel(a, b, gamma=0.2)

    by_tables, by_rows = (SparseKernelPCA(2, kernel=kernel, method="greedy").fit(x) for kernel in (table, rbf))
    assert len(calls) <= 4 and max(calls) == len(x) ** 2, "the matrix, the features for the inverse, and a trial each"
    np.testing.assert_allclose(by_tables.transform(queries), by_rows.transform(queries), atol=1e-9)
    detectors = [KernelNovelty(kernel=kernel, method="greedy").fit(x) for kernel in (table, rbf)]
    np.testing.assert_allclose(*(detector.score_samples(queries) for detector in detectors), atol=1e-9)


def test_precomputed_kernels_in_cross_validation():
    x, _ = skewed(60)
    labels = (x[:, 0] > np.median(x[:, 0])).astype(int)
    pipeline = make_pipeline(SparseKernelPCA(4, kernel="precomputed", method="greedy"), LogisticRegression())
    assert cross_val_score(pipeline, rbf_kernel(x, gamma=0.2), labels, cv=3, error_score="raise").mean() > 0.7


def bigrams(a, b):
    """How many pairs of letters two words share, as a cosine."""
    one, two = ({word[i : i + 2] for i in range(len(word) - 1)} for word in (a, b))
    return len(one & two) / np.sqrt(len(one) * len(two))


@pytest.mark.parametrize("kind", [list, np.array, lambda words: np.array(words, dtype=object)])
def test_kernels_of_strings(kind):
    words = ["kernel", "kernels", "colonel", "colonels", "sparse", "sparsely", "parsec", "spare", "spars", "kern"]
    pca = SparseKernelPCA(2, kernel=bigrams, method="greedy", n_support=4).fit(kind(words))
    features = pca.transform(kind(["kernelled", "sparsest"]))
    near = pca.transform(kind(["kernel", "sparse"]))
    assert features.shape == (2, 2) and features.dtype == np.float64
    assert np.linalg.norm(features[0] - near[0]) < np.linalg.norm(features[0] - near[1])
    assert set(pca.support_vectors_) <= set(words)
    detector = KernelNovelty(kernel=bigrams, n_support=4).fit(kind(words))
    assert detector.score_samples(kind(["kernel", "xyzzy"])).argmin() == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pca)).transform(["kern"]), pca.transform(["kern"]))


def neighbourhoods(graph, rounds=3):
    """How often each label occurs that Weisfeiler and Lehman's refinement gives to the nodes."""
    labels, counts = dict.fromkeys(graph, ""), Counter()
    for _ in range(rounds):
        labels = {node: f"({''.join(sorted(labels[n] for n in near))})" for node, near in graph.items()}
        counts.update(labels.values())
    return counts


def subtrees(a, b):
    """The Weisfeiler–Lehman kernel of two graphs, as a cosine."""
    one, two = neighbourhoods(a), neighbourhoods(b)
    lengths = [math.sqrt(sum(count**2 for count in counts.values())) for counts in (one, two)]
    return sum(one[label] * two[label] for label in one) / math.prod(lengths)


def chain(n, closed=False):
    return {i: [j % n for j in (i - 1, i + 1) if closed or 0 <= j < n] for i in range(n)}


def star(n):
    return {0: list(range(1, n)), **{i: [0] for i in range(1, n)}}


def test_kernels_of_graphs():
    graphs = [make(n) for make in (chain, lambda n: chain(n, closed=True), star) for n in range(5, 12)]
    kinds = np.repeat(["chain", "ring", "star"], 7)
    pca = SparseKernelPCA(2, kernel=subtrees, n_support=6, random_state=0).fit(graphs)
    features = pca.transform(graphs)
    assert features.dtype == np.float64
    assert all(graph in graphs for graph in pca.support_vectors_)
    nearest = [np.linalg.norm(features - row, axis=1).argsort()[1] for row in features]
    assert (kinds[nearest] == kinds).mean() > 0.9
    as_tuples = [tuple(map(tuple, graph.values())) for graph in graphs]
    alike = SparseKernelPCA(
        2, kernel=lambda a, b: subtrees(dict(enumerate(a)), dict(enumerate(b))), n_support=6, random_state=0
    )
    np.testing.assert_array_equal(alike.fit(as_tuples).transform(as_tuples), features)
    detector = KernelNovelty(kernel=subtrees, n_support=6).fit(graphs[:14])
    assert detector.score_samples([chain(20), star(20)]).argmin() == 1


# Containers.


def containers(x):
    """The same rows in every container that should do."""
    yield "lists", x.tolist()
    yield "columns first", np.asfortranarray(x)
    yield "every second row", np.repeat(x, 2, axis=0)[::2]
    yield "csr matrix", scipy.sparse.csr_matrix(x)
    yield "csr array", scipy.sparse.csr_array(x)
    for name in ("pandas", "polars"):
        try:
            frames = importlib.import_module(name)
        except ImportError:
            continue
        yield name, frames.DataFrame({f"column {i}": column for i, column in enumerate(x.T)})


def test_containers():
    x, _ = skewed(80)
    pca = SparseKernelPCA(3, random_state=0)
    expected = pca.fit_transform(x)
    for name, same in containers(x):
        np.testing.assert_array_equal(clone(pca).fit(same).transform(same), expected, err_msg=name)


def test_read_only_memory_map(tmp_path):
    x, _ = skewed(80)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    pca = SparseKernelPCA(3, random_state=0)
    np.testing.assert_array_equal(pca.fit(mapped).transform(mapped), pca.fit_transform(x))


def test_single_precision_stays_single():
    x, queries = digits(200)
    pca = SparseKernelPCA(5, n_support=20, random_state=0).fit(x)
    single = pca.transform(queries.astype(np.float32))
    assert single.dtype == np.float32 and pca.inverse_transform(single).dtype == np.float32
    np.testing.assert_allclose(single, pca.transform(queries), atol=1e-5)
    assert pca.fit_transform(x.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_names_go_in_and_come_out(frames):
    module = pytest.importorskip(frames)
    x, _ = skewed(60)
    frame = module.DataFrame({name: column for name, column in zip("abcde", x.T, strict=True)})
    pca = SparseKernelPCA(2, random_state=0).set_output(transform=frames)
    features = pca.fit_transform(frame)
    assert list(features.columns) == ["sparsekernelpca0", "sparsekernelpca1"] == list(pca.get_feature_names_out())
    assert list(pca.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        pca.transform(frame.rename(columns={"a": "z"}) if frames == "pandas" else frame.rename({"a": "z"}))


# Copies, files, searches.


@pytest.mark.parametrize("estimator", [SparseKernelPCA(kernel="poly"), SparseKernelPCA(), KernelNovelty()])
def test_copies_and_files(estimator, tmp_path):
    x, queries = skewed(80)
    estimator.set_params(random_state=0).fit(x)
    answer = "transform" if isinstance(estimator, SparseKernelPCA) else "decision_function"
    expected = getattr(estimator, answer)(queries)
    estimator.save(tmp_path / "model")
    copies = pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator), type(estimator).load(tmp_path / "model")
    for same in copies:
        np.testing.assert_array_equal(getattr(same, answer)(queries), expected)
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert b"skpca" in pickle.dumps(estimator) and not hasattr(clone(estimator), "support_vectors_")


def test_a_file_knows_how_it_was_fitted(tmp_path):
    x, _ = skewed(80)
    SparseKernelPCA(3, method="greedy", n_support=7, kernel="poly", random_state=5).fit(x).save(tmp_path / "model")
    loaded = SparseKernelPCA.load(tmp_path / "model")
    assert loaded.n_components == 3 and loaded.method == "greedy" and loaded.kernel == "poly"
    refitted = clone(loaded).fit(x)
    np.testing.assert_array_equal(refitted.transform(x), loaded.transform(x))
    with pytest.raises(NotFittedError, match="no inverse"):
        loaded.inverse_transform(loaded.transform(x))


def test_a_model_of_scaled_columns_takes_raw_ones(tmp_path):
    x, queries = skewed(80)
    (tmp_path / "model").write_bytes(skpca.fit(x, components=3, scaling="standard").to_bytes())
    loaded, scaler = SparseKernelPCA.load(tmp_path / "model"), StandardScaler().fit(x)
    same = SparseKernelPCA(3, random_state=0).fit(scaler.transform(x))
    np.testing.assert_allclose(loaded.transform(queries), same.transform(scaler.transform(queries)), atol=1e-6)
    np.testing.assert_allclose(scaler.transform(loaded.support_vectors_), same.support_vectors_, atol=1e-5)
    back = loaded.inverse_transform(loaded.transform(queries))
    np.testing.assert_allclose(scaler.transform(back), same.inverse_transform(loaded.transform(queries)), atol=1e-3)


def test_grid_search_in_a_pipeline():
    x, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SparseKernelPCA(10, random_state=0), LinearSVC())
    grid = {
        "sparsekernelpca__method": ["greedy", "landmarks", "discriminant"],
        "sparsekernelpca__n_support": [15, 30],
        "sparsekernelpca__gamma": [None, 0.01],
    }
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise").fit(x[:300], y[:300])
    assert search.best_score_ > 0.8
    assert search.best_estimator_[1].support_vectors_.shape[0] == search.best_params_["sparsekernelpca__n_support"]


# Inverse.


def test_inverse_under_the_linear_kernel_is_that_of_pca():
    x, queries = skewed(100)
    ours, theirs = SparseKernelPCA(3, method="exact", kernel="linear", alpha=1e-9).fit(x), PCA(3).fit(x)
    found = ours.inverse_transform(ours.transform(queries))
    np.testing.assert_allclose(found, theirs.inverse_transform(theirs.transform(queries)), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "cosine"])
def test_inverse_comes_near(kernel):
    x, _ = skewed(300)
    gamma = 0.02 if kernel == "rbf" else None
    pca = SparseKernelPCA(12, method="landmarks", kernel=kernel, gamma=gamma, n_support=60, alpha=1e-3, random_state=0)
    pca.fit(x)
    back = pca.inverse_transform(pca.transform(x))
    assert np.square(back - x).sum() < 0.5 * np.square(x - x.mean(axis=0)).sum()


@pytest.mark.parametrize("method", ["threshold", "l21"])
def test_inverse_of_components_that_are_not_orthonormal(method):
    """They span nearly what the best ones do, so the rows they lead back to are nearly the same."""
    x, _ = skewed(200)
    pca = SparseKernelPCA(6, method=method, gamma=0.02, n_support=40, refit=False, random_state=0).fit(x)
    best = clone(pca).set_params(refit=True).fit(x)
    back, expected = (each.inverse_transform(each.transform(x)) for each in (pca, best))
    assert "frame" in pca._model.arrays() and "frame" not in best._model.arrays()
    assert np.square(back - expected).sum() < 0.1 * np.square(x - x.mean(axis=0)).sum()


def test_a_fixed_point_satisfies_its_equation():
    x, queries = skewed(200)
    pca = SparseKernelPCA(4, n_support=12, random_state=0).fit(x)
    back = pca.inverse_transform(pca.transform(queries))
    again = pca.inverse_transform(pca.transform(queries[:1]))
    np.testing.assert_allclose(again, back[:1], atol=1e-4)

    def distance(rows):
        """‖φ(row) − target‖² up to a constant: the target's inner product with φ(row), negated."""
        parts = pca._model.arrays()
        weights = parts["beta"] + pca.transform(queries) @ parts["coefficients"].T
        return -np.einsum("im,im->i", weights, np.exp(-pca.gamma_ * ((rows[:, None] - parts["support"]) ** 2).sum(2)))

    rng = np.random.default_rng(0)
    for _ in range(5):
        nearby = back + 0.02 * rng.normal(size=back.shape)
        assert (distance(nearby) >= distance(back) - 1e-9).mean() > 0.98


@pytest.mark.parametrize("wrong", ["nearest", "fixed-point"])
def test_inverses_that_are_not_there_are_refused(wrong):
    x, _ = skewed(60)
    with pytest.raises(ValueError, match=f"inverse.*'{wrong}'"):
        SparseKernelPCA(3, kernel="laplacian", n_support=10, inverse=wrong).fit(x)


@pytest.mark.parametrize("kernel", ["rbf", "cosine", lambda a, b: np.exp(-0.1 * np.abs(a - b).sum())])
def test_kernel_ridge_over_every_row_is_that_of_scikit_learn(kernel):
    x, queries = skewed(120)
    pca = SparseKernelPCA(4, method="exact", kernel=kernel, inverse="kernel-ridge", alpha=0.3).fit(x)
    features = pca.transform(x)
    gamma = 0.5 / features.var(axis=0).sum()
    peer = KernelRidge(alpha=0.3, kernel="rbf", gamma=gamma).fit(features, x - x.mean(axis=0))
    expected = peer.predict(pca.transform(queries)) + x.mean(axis=0)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(queries)), expected, atol=1e-5)


def test_kernel_ridge_sees_thousands_of_rows_and_survives_a_pickle():
    x = np.random.default_rng(0).normal(size=(6000, 2))
    pca = SparseKernelPCA(8, n_support=20, inverse="kernel-ridge", alpha=1e-3, random_state=0).fit(x)
    back = pickle.loads(pickle.dumps(pca)).inverse_transform(pca.transform(x))
    np.testing.assert_array_equal(back, pca.inverse_transform(pca.transform(x)))
    assert np.square(back - x).mean() < 0.1


def test_digits_are_denoised_with_a_twentieth_of_the_points(capsys):
    """Kernel width and ridge of both are chosen on rows that neither the fit nor the comparison sees."""
    x = load_digits().data / 16
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    train, choice, clean = x[order[:1000]], x[order[1000:1400]], x[order[1400:]]
    noisy_choice, noisy = (rows + rng.normal(scale=0.25, size=rows.shape) for rows in (choice, clean))

    def error(estimator, rows, truth):
        return np.square(estimator.inverse_transform(estimator.transform(rows)) - truth).mean()

    def best(estimators):
        return min(estimators, key=lambda estimator: error(estimator.fit(train), noisy_choice, choice))

    grid = [{"gamma": gamma, "alpha": alpha} for gamma in (0.02, 0.05) for alpha in (0.1, 1.0)]
    peer = best(KernelPCA(48, kernel="rbf", fit_inverse_transform=True, **parameters) for parameters in grid)
    sparse = {"n_support": 50, "inverse": "kernel-ridge", "max_iter": 400, "random_state": 0}
    ours = best(SparseKernelPCA(48, **sparse, **parameters) for parameters in grid)
    found, theirs = error(ours, noisy, clean), error(peer, noisy, clean)
    with capsys.disabled():
        print(f"\nnoise 0.0627, denoised by KernelPCA (1000 points) {theirs:.5f}, by 50 points {found:.5f}")
    assert len(ours.support_vectors_) * 20 <= len(train) and found < theirs


# Novelty.


def ring(n, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("contamination, share", [(0.05, 0.05), (0.1, 0.1), (0.5, 0.5)])
def test_contamination_is_the_share_of_training_rows_outside(contamination, share):
    x = ring(400)
    detector = KernelNovelty(contamination=contamination, random_state=0)
    labels = detector.fit_predict(x)
    assert (labels == -1).mean() == pytest.approx(share, abs=0.003)
    np.testing.assert_array_equal(labels == -1, detector.score_samples(x) < detector.offset_)
    np.testing.assert_array_equal(detector.decision_function(x), detector.score_samples(x) - detector.offset_)


@pytest.mark.parametrize("contamination", [0, -0.1, 0.6, "some", None])
def test_wrong_contamination_is_named(contamination):
    with pytest.raises(ValueError, match="contamination"):
        KernelNovelty(contamination=contamination).fit(ring(50))


@pytest.mark.parametrize("parameters", [{}, {"false_alarm_rate": 0.2, "method": "exact"}], ids=str)
def test_false_alarms_are_as_frequent_as_asked_for(parameters):
    """Over many small tables; a quantile of the training scores gives twice as many."""
    rate, fresh = parameters.get("false_alarm_rate", 0.05), ring(1000, seed=99)
    detectors = [
        KernelNovelty(4, random_state=0, n_jobs=1, **parameters).fit(ring(80, seed=seed)) for seed in range(25)
    ]
    alarms = [(detector.predict(fresh) == -1).mean() for detector in detectors]
    assert np.mean(alarms) == pytest.approx(rate, rel=0.25)
    p = np.concatenate([detector.p_values(fresh) for detector in detectors])
    assert (p <= 0.1).mean() < 0.125 and (p <= 0.5).mean() < 0.55
    parameters = {**parameters, "false_alarm_rate": None, "contamination": rate}
    in_sample = [
        KernelNovelty(4, random_state=0, n_jobs=1, **parameters).fit(ring(80, seed=seed)) for seed in range(25)
    ]
    assert np.mean([(detector.predict(fresh) == -1).mean() for detector in in_sample]) > 1.2 * np.mean(alarms)


def test_too_few_rows_for_a_rate_are_said_to_be():
    with pytest.warns(ShortfallWarning, match="80 rows are too few for a false-alarm rate of 0.001"):
        detector = KernelNovelty(2, false_alarm_rate=0.001, random_state=0).fit(ring(80))
    assert "extrapolated" in detector.report_["notes"][-1]
    assert detector.p_values([[5.0, 5.0]]) < 1 / 81


def test_rows_in_time_order_count_for_fewer():
    rng = np.random.default_rng(0)
    walk = np.stack([np.convolve(rng.normal(size=519), np.ones(20), "valid") for _ in range(3)], axis=1)
    fitted = {order: KernelNovelty(2, row_order=order, random_state=0).fit(walk) for order in ("auto", "time", "any")}
    assert fitted["auto"].offset_ == fitted["time"].offset_ < fitted["any"].offset_
    assert any("neighbouring rows are alike" in note for note in fitted["auto"].report_["notes"])
    shuffled = KernelNovelty(2, random_state=0).fit(rng.permutation(walk))
    assert not shuffled.report_["notes"]


def test_contamination_and_a_false_alarm_rate_exclude_each_other():
    with pytest.raises(ValueError, match="contamination = 0.1 and false_alarm_rate = 0.05: give one of them, not both"):
        KernelNovelty(contamination=0.1, false_alarm_rate=0.05).fit(ring(50))
    for rate in [0, 1, -0.1, "few"]:
        with pytest.raises(ValueError, match="false_alarm_rate"):
            KernelNovelty(false_alarm_rate=rate).fit(ring(50))


def test_the_middle_of_a_ring_is_new():
    detector = KernelNovelty(random_state=0).fit(ring(400))
    np.testing.assert_array_equal(detector.predict([[1.0, 0.0], [0.0, 0.0], [2.0, 2.0]]), [1, -1, -1])


def test_p_values_count_training_rows():
    x = ring(300)
    detector = KernelNovelty(contamination=0.05, random_state=0).fit(x)
    scores = detector.score_samples(x)
    queries = ring(50, seed=1)
    expected = [(1 + (scores <= score).sum()) / 301 for score in detector.score_samples(queries)]
    np.testing.assert_allclose(detector.p_values(queries), expected)


@pytest.mark.parametrize("parameters", [{}, {"method": "l21", "refit": False}, {"method": "threshold", "refit": False}])
def test_hotelling_is_the_distance_in_units_of_spread(parameters):
    """Squared Mahalanobis distance of the features, the same in any basis of the components' span."""
    x, queries = skewed(300)
    parameters = {"n_components": 4, "n_support": 30, "random_state": 0, "method": "expansion", **parameters}
    detector, pca = KernelNovelty(**parameters).fit(x), SparseKernelPCA(**parameters).fit(x)
    spread = np.linalg.inv(np.cov(pca.transform(x).T, bias=True))
    expected = [row @ spread @ row for row in pca.transform(queries)]
    np.testing.assert_allclose(detector.hotelling(queries), expected, rtol=1e-6)


def latent(n, d, seed):
    """Rows of d correlated columns."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(9).normal(size=(4, d))
    return rng.normal(size=(n, 4)) @ mix + rng.normal(size=(n, d))


@pytest.mark.parametrize("parameters", [{}, {"method": "expansion"}], ids=str)
@pytest.mark.parametrize("shift", [6, 50, 1000, 1e6])
def test_the_shifted_input_contributes_most_at_any_distance(parameters, shift):
    x, queries = latent(500, 10, 0), latent(60, 10, 1)
    detector = KernelNovelty(scaling="standard", random_state=0, **parameters).fit(x)
    inputs = np.arange(60) % 10
    spoilt = queries.copy()
    spoilt[np.arange(60), inputs] += shift * x.std(axis=0)[inputs]
    contributions, expected = detector.contributions(spoilt, return_expected=True)
    assert (contributions.argmax(axis=1) == inputs).mean() > 0.98
    assert (contributions >= 0).all()
    usual = -np.median(detector.score_samples(x))
    total = -detector.score_samples(spoilt) - contributions.sum(axis=1)
    np.testing.assert_allclose(total, np.full(60, total[0]), rtol=1e-6, atol=1e-9)
    assert 0.3 * usual < total[0] < 3 * usual
    back = expected[np.arange(60), inputs] - queries[np.arange(60), inputs]
    assert np.abs(back / x.std(axis=0)[inputs]).mean() < 2.5
    np.testing.assert_array_equal(contributions[:1], detector.contributions(spoilt[:1]))


def test_far_rows_rank_by_distance():
    detector = KernelNovelty(random_state=0).fit(ring(300))
    scores = -detector.score_samples([[10.0**k, 0.0] for k in range(1, 8)])
    assert (np.diff(scores) > 0).all()
    assert detector.predict([[1e7, 0.0]]) == [-1]


def test_the_default_detector_is_small_and_tells_more_than_the_classical_score():
    x = latent(400, 10, 0)
    detector = KernelNovelty(random_state=0).fit(x)
    assert len(detector.support_vectors_) <= 100 and not detector.report_["notes"]
    again = KernelNovelty(statistic="mahalanobis", random_state=0).fit(x)
    np.testing.assert_array_equal(again.score_samples(x), detector.score_samples(x))
    # Along the largest component, where the distance to the span sees nothing.
    row = 8 * np.linalg.svd(x - x.mean(axis=0))[2][:1] * np.linalg.norm(x.std(axis=0))
    classical = KernelNovelty(6, kernel="linear", method="exact").fit(x)
    combined = KernelNovelty(kernel="linear", random_state=0).fit(x)
    assert classical.p_values(row) > 0.05 > combined.p_values(row)


def test_the_mahalanobis_score_is_its_formula():
    x, queries = latent(200, 5, 0), latent(20, 5, 1)
    detector = KernelNovelty(kernel="linear", n_support=5, random_state=0).fit(x)
    variances, noise = detector.explained_variance_, json.loads(detector._model.describe())["noise"]
    features = detector._model.transform(queries)
    lengths = np.square(queries - x.mean(axis=0)).sum(axis=1)
    expected = lengths - np.square(features) @ (variances / (variances + noise))
    np.testing.assert_allclose(-detector.score_samples(queries), expected, rtol=1e-6, atol=1e-9 * lengths.max())
    covariance = np.cov(x.T, bias=True) + noise * np.eye(5)
    centred = queries - x.mean(axis=0)
    mahalanobis = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(covariance), centred)
    np.testing.assert_allclose(-detector.score_samples(queries) / noise, mahalanobis, rtol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "cosine"])
def test_slopes_are_those_of_the_score(kernel):
    x, queries = skewed(100, queries=20)
    detector = KernelNovelty(3, method="greedy", kernel=kernel, n_support=10, random_state=0).fit(x)
    step = 1e-5
    expected = np.column_stack(
        [
            (detector.score_samples(queries - step * e) - detector.score_samples(queries + step * e)) / (2 * step)
            for e in np.eye(x.shape[1])
        ]
    )
    found = detector.slopes(queries)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_files_keep_the_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    x, queries = skewed(60)
    names = list("abcde")
    pca = SparseKernelPCA(2, n_support=8).fit(pandas.DataFrame(x, columns=names))
    pca.save(tmp_path / "model.skpca")
    again = SparseKernelPCA.load(tmp_path / "model.skpca")
    assert list(again.feature_names_in_) == names
    table = pandas.DataFrame(queries, columns=names)
    np.testing.assert_array_equal(again.transform(table), pca.transform(table))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(table.rename(columns={"a": "z"}))


def test_stubs_name_what_is_there():
    text = (importlib.resources.files(skpca) / "_core.pyi").read_text()
    tree = ast.parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {*functions, *classes} == {name for name in vars(skpca._core) if callable(getattr(skpca._core, name))}
    for name, node in classes.items():
        methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")}
        assert methods == {one for one in vars(getattr(skpca._core, name)) if not one.startswith("_")}, name
    for name, node in functions.items():
        known = inspect.signature(getattr(skpca._core, name)).parameters.values()
        arguments = [*node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.kwarg])]
        # Those that must be given have none.
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        assert [argument.arg for argument in arguments] == [one.name for one in known], name
        given = [one.default for one in known if one.default is not inspect.Parameter.empty]
        assert [ast.literal_eval(default) for default in defaults] == given, name
