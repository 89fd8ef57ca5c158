"""ONNX graphs answer as our own models do, in a runtime that knows nothing of us."""

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import skpca
import skpca.onnx
from skpca._registry import KERNELS, METHODS

SINGLE, DOUBLE = 1e-5, 1e-12


def runtime(model, double):
    graph = model.export("onnx", double=double)
    onnx.checker.check_model(onnx.load_from_string(graph), full_check=True)
    return onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])


def answers(session, X):
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, {"X": X}), strict=True))


def error(found, expected):
    """The largest difference, as a share of the largest value."""
    assert found.shape == expected.shape
    return np.abs(found - expected).max() / np.abs(expected).max()


def check(model, X, accuracy=(SINGLE, DOUBLE)):
    """Both precisions, against our answers for the same numbers."""
    for double, tolerance in zip([False, True], accuracy, strict=True):
        rows = X if double else X.astype(np.float32)
        found = answers(runtime(model, double), rows)
        rows = rows.astype(np.float64)
        score = model.score(rows)
        assert error(found["features"], model.transform(rows)) <= tolerance, f"features, double={double}"
        assert error(found["score"], score) <= tolerance, f"score, double={double}"
        clear = np.abs(score - limit(model)) > 2 * tolerance * score.max()
        assert clear.mean() > 0.9
        assert np.array_equal(found["alarm"][clear], score[clear] > limit(model))
        if "log_likelihood" in found:
            assert error(found["log_likelihood"], model.log_likelihood(rows)) <= 10 * tolerance
        expected = t2(model, rows)
        assert ("t2" in found) == (expected is not None)
        if expected is not None:
            # Of features that differ by the tolerance, the smallest count most.
            assert error(found["t2"], expected) <= 100 * tolerance, f"T², double={double}"
        if double:
            p, exact = found["p_value"], model.p_values(score)
            # Rounding may carry a score over one of the training scores that are kept.
            allowed = (p >= exact * (1 - 1e-12)) & (p < exact + np.minimum(0.01, 0.05 * exact))
            assert np.mean(allowed) > 0.99
            assert np.abs(p - exact).max() < 0.02


def t2(model, rows):
    """Squared features over their variances, where the components are uncorrelated."""
    if "frame" in model.arrays():
        return None
    about = json.loads(model.describe())
    variances = np.array(about["explained_variance"]) + about["noise"]
    return np.square(model.transform(rows)) @ np.divide(1, variances, where=variances > 0, out=np.zeros(len(variances)))


def limit(model):
    return json.loads(model.describe())["threshold"]


def table(seed, n, centres=(0.0, 0.0, 0.0, 0.0), widths=(1.0, 1.0, 1.0, 1.0)):
    """A bent band: not linear, and not round."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2, 2, size=n)
    columns = [t, t**2 - 1.3, np.sin(2 * t), rng.normal(size=n)]
    return np.array(widths) * (np.column_stack(columns) + 0.1 * rng.normal(size=(n, 4))) + np.array(centres)


def spec(entry):
    """A kernel that is positive semi-definite, with an f where it needs one."""
    if entry["labelled"]:
        f = {"delta": 0.3, "constant": 0.5, "weights": [1.0, -1.5], "vectors": [0.1, 0.2, 0, -1, 0.7, 0.1, 0.5, 1]}
        return json.dumps({"name": entry["name"], **f})
    if entry["name"] == "sigmoid":
        return json.dumps({"name": entry["name"], "gamma": 1e-7, "coef0": 0.0})
    return json.dumps({"name": entry["name"]})


def fit(X, method, kernel, **options):
    thirds = np.quantile(X[:, 0], [0.35, 0.65])
    labels = np.digitize(X[:, 0], thirds) if METHODS[method.partition(",")[0]]["labelled"] else None
    support = {} if METHODS[method.partition(",")[0]]["keeps_all_rows"] else {"support": 12}
    return skpca.fit(X, method=method, kernel=kernel, components=2, labels=labels, **support, **options)


@pytest.mark.parametrize(
    "method, kernel",
    [(m, k) for m in METHODS for k in KERNELS if KERNELS[k]["linear"] or not METHODS[m]["linear"]],
)
def test_every_kernel_and_method(method, kernel):
    model = fit(table(0, 150), method, spec(KERNELS[kernel]), scaling="standard")
    check(model, table(1, 400))


@pytest.mark.parametrize("method", [name for name, entry in METHODS.items() if entry["own_components"]])
def test_components_that_are_not_orthonormal(method):
    model = fit(table(0, 150), f"{method},refit=false", "rbf")
    assert "frame" in model.arrays()
    check(model, table(1, 400))


@pytest.mark.parametrize("kernel", KERNELS)
def test_mahalanobis_distances(kernel):
    model = fit(table(0, 150), "landmarks", spec(KERNELS[kernel]), statistic="mahalanobis")
    check(model, table(1, 400))
    far = table(1, 3) + 1e3
    assert error(answers(runtime(model, True), far)["score"], model.score(far)) <= DOUBLE


def test_p_values_of_rows_held_out_follow_their_tail():
    model = skpca.fit(table(0, 60), support=8, components=2, false_alarms=0.001, scaling="standard")
    X = table(1, 300)
    X[:5] += [5.0, 0, 0, 0]
    check(model, X)
    found, expected = answers(runtime(model, True), X)["p_value"], model.p_values(model.score(X))
    assert expected.min() < 1 / 61
    # The highest scores are all kept.
    assert np.abs(found / expected - 1)[expected < 0.3].max() < 1e-9


@pytest.mark.parametrize("quantile", [0.9, 0.95, 0.995])
@pytest.mark.parametrize("n", [30, 1000, 20_000])
def test_p_values_are_hardly_too_high_and_never_too_low(n, quantile):
    model = skpca.fit(table(0, n), method="landmarks", support=12, components=2, quantile=quantile)
    X = table(1, 20_000)
    found, score = answers(runtime(model, True), X)["p_value"], model.score(X)
    exact = model.p_values(score)
    assert np.all(found >= exact) and np.all(found < exact + np.minimum(0.01, 0.05 * exact) + 1e-12)
    highest = exact <= 20 / (n + 1)
    assert highest.any() and np.array_equal(found[highest], exact[highest])
    # No alarm has a higher p-value than the lowest of them.
    assert found[score > limit(model)].max() <= model.p_values(np.nextafter([limit(model)], np.inf))


@pytest.mark.parametrize("centre, width", [(100.0, 1.0), (1e4, 1e-3), (1e4, 1e6)])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_columns_far_from_zero(method, centre, width):
    where = {"centres": [centre, -centre, 0.0, centre], "widths": [width, 1.0, 1.0, width]}
    kernel = "linear" if METHODS[method]["linear"] else "conformal" if METHODS[method]["labelled"] else "rbf"
    check(fit(table(0, 150, **where), method, spec(KERNELS[kernel]), scaling="standard"), table(1, 400, **where))


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("centre", [0.0, 100.0, 1e4])
@pytest.mark.parametrize("width", [1e-3, 1.0, 1e6])
def test_columns_of_any_centre_and_width(centre, width, kernel, scaling):
    where = {"centres": [centre, -centre, 0.0, centre], "widths": [width, 1.0, 1.0, width]}
    model = fit(table(0, 300, **where), "landmarks", spec(KERNELS[kernel]), scaling=scaling)
    check(model, table(1, 400, **where))


@pytest.mark.parametrize("centre", [100.0, 1e4])
def test_columns_that_are_not_scaled(centre):
    where = {"centres": [centre] * 4}
    for kernel in ("rbf", "laplacian", "linear"):
        check(fit(table(0, 300, **where), "landmarks", kernel), table(1, 400, **where))


def test_without_a_centre():
    for kernel in ("rbf", "linear", "polynomial"):
        check(fit(table(0, 200), "landmarks", kernel, center=False), table(1, 400))


def test_the_batch_is_for_the_caller_to_choose():
    model = fit(table(0, 300), "landmarks", "laplacian")
    session, X = runtime(model, True), table(1, 50)
    whole = answers(session, X)
    for size in (1, 7):
        parts = [answers(session, X[i : i + size]) for i in range(0, 50, size)]
        for name, expected in whole.items():
            found = np.concatenate([part[name] for part in parts])
            assert found.shape == expected.shape
            assert np.allclose(found, expected, rtol=0, atol=1e-12)
    assert session.get_inputs()[0].shape == ["rows", 4]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("double", [False, True])
def test_a_row_that_is_no_number_raises_the_alarm(kernel, double):
    model = fit(table(0, 150), "landmarks", spec(KERNELS[kernel]))
    X = table(1, 3).astype(np.float64 if double else np.float32)
    X[1, 2] = np.nan
    found = answers(runtime(model, double), X)
    assert np.isnan(found["score"][1]) and np.isnan(found["p_value"][1])
    assert found["alarm"][1]
    assert np.isfinite(found["score"][[0, 2]]).all()


def test_metadata_can_be_checked_where_the_graph_runs():
    model = skpca.fit(table(0, 300), support=10, names=["a", "b", "c", "time"], quantile=0.9, scaling="standard")
    for double in (False, True):
        graph = onnx.load_from_string(model.export("onnx", double=double))
        about = {one.key: one.value for one in graph.metadata_props}
        assert about["kernel"].startswith("rbf,gamma=") and about["method"].startswith("expansion")
        assert json.loads(about["columns"]) == ["a", "b", "c", "time"]
        assert float(about["false_alarm_rate"]) == 0.1
        assert float(about["threshold"]) == limit(model)
        assert float(about["fidelity"]) == json.loads(model.describe())["fidelity"]
        examples = json.loads(about["examples"])
        rows = np.array(examples["X"], dtype=np.float64 if double else np.float32)
        found = answers(runtime(model, double), rows)
        assert error(found["features"], np.array(examples["features"])) <= (DOUBLE if double else SINGLE)
        assert error(np.array(examples["score"]), model.score(rows.astype(float))) <= (DOUBLE if double else SINGLE)


PLANT = ["auto", "hand", "off"]


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("treatment", [("median", "zero"), ("median", "refuse"), ("drop", "zero"), ("drop", "refuse")])
def test_tables_are_treated_as_the_program_does(treatment, double, tmp_path):
    """Columns in the order of the table: a number, a category, two numbers."""
    program = Path(__file__).parents[3] / "target" / "release" / "skpca"
    if not program.exists():
        pytest.skip("the program is not built")
    rng = np.random.default_rng(0)

    def plant(n, modes):
        mode, load = rng.choice(modes, size=n), rng.normal(size=n)
        level = load + 5 * np.searchsorted(PLANT, mode) + 0.1 * rng.normal(size=n)
        return pd.DataFrame({"load": load, "the mode": mode, "level": level, "flow": 2 * load + rng.normal(size=n)})

    def run(*words):
        return subprocess.run([program, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    missing, unknown = treatment
    plant(300, PLANT).to_csv(tmp_path / "train.csv", index=False)
    words = ["--categorical", "the mode", "--missing", missing, "--unknown", unknown, "--support", "20"]
    run("fit", "train.csv", "-o", "model.skpca", *words, "--quiet")
    run("export", "model.skpca", "-o", "model.onnx", "--quiet", *(["--double"] if double else []))
    graph = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])

    def scored(rows):
        numbers = rows.drop(columns="the mode").to_numpy(np.float64 if double else np.float32)
        outputs = [output.name for output in session.get_outputs()]
        texts = rows[["the mode"]].fillna("").to_numpy(object)
        return dict(zip(outputs, session.run(None, {"X": numbers, "C": texts}), strict=True))

    rows = plant(200, [*PLANT, "broken"] if unknown == "zero" else PLANT)
    rows = rows.astype({name: np.float64 if double else np.float32 for name in ["load", "level", "flow"]})
    if missing == "median":
        rows.loc[::7, "level"] = np.nan
        rows.loc[::11, "the mode"] = None
    rows.to_csv(tmp_path / "rows.csv", index=False)
    run("score", "model.skpca", "rows.csv", "-o", "scores.csv", "--quiet")
    expected, found = pd.read_csv(tmp_path / "scores.csv"), scored(rows)
    assert error(found["score"], expected["score"].to_numpy()) <= (DOUBLE if double else SINGLE)
    assert np.array_equal(found["alarm"], expected["novel"] == 1)
    refused = {"an empty number": (np.nan, "auto"), "an empty category": (0.0, ""), "an unknown one": (0.0, "broken")}
    if missing == "median":
        del refused["an empty number"], refused["an empty category"]
    if unknown == "zero":
        del refused["an unknown one"]
    for why, (level, mode) in refused.items():
        found = scored(pd.DataFrame({"load": [0.0], "the mode": [mode], "level": [level], "flow": [0.0]}))
        assert np.isnan(found["score"][0]) and found["alarm"][0], why
    about = {one.key: one.value for one in graph.metadata_props}
    assert json.loads(about["inputs"])[1]["categories"] == PLANT
    examples = json.loads(about["examples"])
    X = np.array(examples["X"], dtype=np.float64 if double else np.float32)
    _, score, *_ = session.run(None, {"X": X, "C": np.array(examples["C"], dtype=object)})
    assert error(score, np.array(examples["score"])) <= (DOUBLE if double else SINGLE)


def test_standard_operators_only():
    for kernel in KERNELS:
        graph = onnx.load_from_string(fit(table(0, 150), "likelihood", spec(KERNELS[kernel])).export("onnx"))
        assert [(one.domain, one.version) for one in graph.opset_import] == [("", 13)]
        assert {node.domain for node in graph.graph.node} == {""}


def test_what_32_bits_cannot_hold_is_refused_by_the_flag_that_helps():
    model = skpca.fit(table(0, 100) * 1e60, support=5, scaling="standard")
    with pytest.raises(ValueError, match=r"scale of column x0 is beyond 32-bit numbers: export with --double"):
        model.export("onnx")
    check_double = answers(runtime(model, True), table(1, 100) * 1e60)
    assert error(check_double["score"], model.score(table(1, 100) * 1e60)) <= DOUBLE
    with pytest.raises(ValueError, match=r"'.xlsx': the extension must be .onnx or .h or .sql"):
        model.export("xlsx")


def test_estimators_are_exported(tmp_path):
    X = table(0, 300)
    detector = skpca.KernelNovelty(n_support=10, random_state=0).fit(X)
    skpca.onnx.export(detector, tmp_path / "model.onnx", double=True)
    found = answers(onnxruntime.InferenceSession(tmp_path / "model.onnx"), X)
    assert np.allclose(found["score"], -detector.score_samples(X), rtol=0, atol=1e-12)
    assert np.array_equal(found["alarm"], detector.predict(X) < 0)
    given = skpca.SparseKernelPCA(2, kernel=lambda x, z: x @ z.T).fit(X)
    with pytest.raises(ValueError, match="a given kernel cannot be exported"):
        skpca.onnx.export(given, tmp_path / "given.onnx")


def test_skl2onnx_converts_pipelines():
    from skl2onnx import to_onnx
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = table(0, 300, centres=[100.0] * 4, widths=[1, 2, 3, 4])
    for dtype, tolerance in [(np.float32, 2e-5), (np.float64, 1e-9)]:
        rows = X.astype(dtype)
        for kernel in ("rbf", "laplacian", "cosine"):
            features = make_pipeline(StandardScaler(), skpca.SparseKernelPCA(3, kernel=kernel, n_support=10)).fit(rows)
            session = onnxruntime.InferenceSession(to_onnx(features, rows[:1]).SerializeToString())
            (found,) = session.run(None, {"X": rows})
            assert error(found, features.transform(rows)) <= tolerance
        novelty = make_pipeline(StandardScaler(), skpca.KernelNovelty(n_support=10)).fit(rows)
        session = onnxruntime.InferenceSession(to_onnx(novelty, rows[:1]).SerializeToString())
        label, decision = session.run(None, {"X": rows})
        expected = novelty.decision_function(rows)
        assert error(decision[:, 0], expected) <= tolerance
        clear = np.abs(expected) > 2 * tolerance * np.abs(expected).max()
        assert np.array_equal(label[clear], novelty.predict(rows)[clear])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("double", [False, True])
def test_a_second_runtime_answers_the_same(kernel, double, tmp_path):
    tract = pytest.importorskip("tract", reason="the graphs are run by tract too: pip install tract")
    model = fit(table(0, 150), "landmarks", spec(KERNELS[kernel]), scaling="standard")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.export("onnx", double=double))
    X = table(1, 400).astype(np.float64 if double else np.float32)
    found = [output.to_numpy() for output in tract.onnx().load(path).into_model().into_runnable().run([X])]
    rows, tolerance = X.astype(np.float64), DOUBLE if double else SINGLE
    score = model.score(rows)
    assert error(found[0], model.transform(rows)) <= tolerance
    assert error(found[1], score) <= tolerance
    clear = np.abs(score - limit(model)) > 2 * tolerance * score.max()
    assert np.array_equal(found[-1][clear], score[clear] > limit(model))


@pytest.mark.parametrize("d", [10, 64])
def test_graphs_are_a_fiftieth_of_those_of_scikit_learn(d):
    from skl2onnx import to_onnx
    from sklearn.decomposition import KernelPCA

    X = np.tile(table(0, 5000), (1, d // 4 + 1))[:, :d] + 0.1 * np.random.default_rng(1).normal(size=(5000, d))
    model = skpca.fit(X, method="landmarks", support=15, components=5, scaling="standard")
    peer = KernelPCA(5, kernel="rbf", eigen_solver="randomized", random_state=0).fit(X)
    assert 50 * len(model.export("onnx")) <= len(to_onnx(peer, X[:1].astype(np.float32)).SerializeToString())


@pytest.mark.parametrize("double", [False, True])
def test_graphs_are_as_small_as_model_files(double, tmp_path):
    for d in (10, 64):
        X = np.tile(table(0, 3000), (1, d // 4 + 1))[:, :d] + 0.1 * np.random.default_rng(1).normal(size=(3000, d))
        model = skpca.fit(X, method="landmarks", support=15, components=5)
        model.save(tmp_path / "model.skpca")
        graph = len(model.export("onnx", double=double))
        assert graph <= 2 * (tmp_path / "model.skpca").stat().st_size
