"""A model file gives back the parameters that were given, and a fit with them gives back the model."""

import json
import struct
import warnings
import zlib

import numpy as np
import pytest
import skpca
from oracle import skewed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from skpca import KernelNovelty, SparseKernelPCA
from skpca._registry import METHODS

GIVEN = [
    {},
    {"n_components": 2, "n_support": 9, "kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 0.5},
    {"method": {"name": "l21", "penalty": 0.02}, "kernel": {"name": "rbf", "gamma": "mean"}, "refit": False},
    {"method": "l1", "n_components": 2, "fidelity": 0.8, "tol": 1e-3, "max_iter": 50, "center": False},
    {"method": "greedy", "kernel": "linear", "random_state": None, "n_jobs": 2, "verbose": 0, "scaling": "minmax"},
    {"method": "landmarks", "n_support": np.int64(7), "gamma": np.float64(0.1), "random_state": np.int32(4)},
    {"kernel": "conformal", "n_components": 2, "n_support": 5},
    {"scaling": "standard"},
]
OWN = {
    SparseKernelPCA: {"inverse": "kernel-ridge", "alpha": 0.5},
    KernelNovelty: {"false_alarm_rate": 0.1, "row_order": "any", "method": "expansion"},
}


def answer(estimator, x):
    return estimator.transform(x) if isinstance(estimator, SparseKernelPCA) else estimator.decision_function(x)


def saved(estimator, tmp_path):
    estimator.save(tmp_path / "model")
    return type(estimator).load(tmp_path / "model")


BY_METHOD = [{"method": name, **({"kernel": "linear"} if entry["linear"] else {})} for name, entry in METHODS.items()]


@pytest.mark.parametrize("kind", [SparseKernelPCA, KernelNovelty])
@pytest.mark.parametrize("given", [*BY_METHOD, *GIVEN], ids=str)
def test_what_was_given_comes_back(kind, given, tmp_path):
    x, queries = skewed(80)
    y = x[:, 0] > np.median(x[:, 0])
    given = {"n_components": 3, "random_state": 5, **OWN[kind], **given}
    fitted = kind(**given).fit(x, y)
    loaded = saved(fitted, tmp_path)
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(answer(loaded, queries), answer(fitted, queries))
    if given["random_state"] is not None:
        np.testing.assert_array_equal(answer(clone(loaded).fit(x, y), queries), answer(fitted, queries))
    assert saved(loaded, tmp_path).get_params() == fitted.get_params()


def test_a_generator_comes_back_as_the_seed_it_gave(tmp_path):
    x, queries = skewed(80)
    fitted = SparseKernelPCA(2, method="landmarks", n_support=5, random_state=np.random.RandomState(3)).fit(x)
    loaded = saved(fitted, tmp_path)
    assert isinstance(loaded.random_state, int)
    np.testing.assert_array_equal(loaded.fit(x).transform(queries), fitted.transform(queries))


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"method": "l1", "components": 2, "kernel": "polynomial"},
        {"method": "l21,fraction=0.3,refit=false", "components": 2, "kernel": "rbf,gamma=mean"},
        {"method": "landmarks", "support": 6, "quantile": 0.9, "seed": 4, "center": False},
        {"method": "greedy", "fidelity": 0.7, "kernel": "laplacian", "quantile": 0.8},
        {"method": "greedy", "support": 5, "false_alarms": 0.2, "row_order": "time"},
    ],
    ids=str,
)
def test_models_of_the_core_and_the_program_can_be_fitted_again(parameters, scaling, tmp_path):
    """They were asked for in other words, and scaled the columns."""
    x, queries = skewed(80)
    model = skpca.fit(x * [1, 10, 100, 1, 1], scaling=scaling, **parameters)
    (tmp_path / "model").write_bytes(model.to_bytes())
    for kind in (SparseKernelPCA, KernelNovelty):
        loaded = kind.load(tmp_path / "model")
        assert loaded.scaling == scaling
        expected = answer(loaded, queries)
        np.testing.assert_array_equal(answer(clone(loaded).fit(x * [1, 10, 100, 1, 1]), queries), expected)
    assert loaded.offset_ == -json.loads(model.describe())["threshold"]


@pytest.mark.parametrize("contamination", ["auto", 0.05, 0.1, 0.123456789, 1 / 3, 0.5])
def test_either_estimator_reads_the_file_of_the_other(contamination, tmp_path):
    x, queries = skewed(80)
    detector = KernelNovelty(2, contamination=contamination, n_support=9, random_state=0).fit(x)
    detector.save(tmp_path / "model")
    pca = SparseKernelPCA.load(tmp_path / "model")
    shared = set(pca.get_params()) & set(detector.get_params())
    assert all(pca.get_params()[name] == detector.get_params()[name] for name in shared)
    pca.fit(x)
    bare = skpca.fit(x, method=detector.method, **detector._options(), components=2, support=9, scaling="none")
    (tmp_path / "bare").write_bytes(bare.to_bytes())
    same = KernelNovelty.load(tmp_path / "bare").fit(x)
    assert same.offset_ == detector.offset_


def test_an_inverse_that_no_file_has_is_refused(tmp_path):
    x, _ = skewed(80)
    loaded = saved(SparseKernelPCA(2, inverse="ridge", random_state=0).fit(x), tmp_path)
    with pytest.raises(NotFittedError, match="no inverse"):
        loaded.inverse_transform(loaded.transform(x))
    assert loaded.set_params(inverse=None).inverse_transform(loaded.transform(x)).shape == x.shape
    assert loaded.set_params(inverse="ridge").fit(x).inverse_transform(loaded.transform(x)).shape == x.shape


def test_given_kernels_do_not_scale():
    x, _ = skewed(40)
    with pytest.raises(ValueError, match="scaling = 'standard'"):
        SparseKernelPCA(2, method="greedy", kernel="precomputed", scaling="standard").fit(x @ x.T)


def test_scaling_is_that_of_scikit_learn():
    x, queries = skewed(80)
    for name, scaler in (("standard", StandardScaler()), ("minmax", MinMaxScaler())):
        scaler.fit(x)
        found = SparseKernelPCA(3, n_support=9, scaling=name, random_state=0).fit(x)
        expected = SparseKernelPCA(3, n_support=9, random_state=0).fit(scaler.transform(x))
        np.testing.assert_allclose(
            found.transform(queries), expected.transform(scaler.transform(queries)), rtol=1e-6, atol=1e-8
        )


def forged(data, change):
    """A model file with other metadata and a right checksum."""
    length = struct.unpack("<Q", data[:8])[0]
    header, tensors = json.loads(data[8 : 8 + length]), data[8 + length :]
    entries = json.loads(header["__metadata__"]["skpca"][8:])
    change(entries)
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False)
    total = zlib.crc32(text.encode())
    for name in sorted(set(header) - {"__metadata__"}):
        shape, (start, end) = header[name]["shape"], header[name]["data_offsets"]
        total = zlib.crc32(f"{name}[{', '.join(map(str, shape))}]".encode(), total)
        total = zlib.crc32(tensors[start:end], total)
    header["__metadata__"]["skpca"] = f"{total:08x}{text}"
    packed = json.dumps(header, separators=(",", ":")).encode()
    packed += b" " * (-len(packed) % 8)
    return struct.pack("<Q", len(packed)) + packed + tensors


def load_forged(change, tmp_path):
    x, _ = skewed(60)
    model = skpca.fit(x, method="l21", components=2, support=7, scaling="none")
    (tmp_path / "model").write_bytes(forged(model.to_bytes(), change))
    return SparseKernelPCA.load(tmp_path / "model")


def test_a_file_without_a_request_can_be_fitted_again(tmp_path):
    """As those of older versions are."""
    x, _ = skewed(60)
    loaded = load_forged(lambda entries: entries.pop("request", None), tmp_path)
    before = loaded.transform(x)
    np.testing.assert_array_equal(clone(loaded).fit(x).transform(x), before)


@pytest.mark.parametrize("variance", [0, 0.0, -1.0])
def test_no_variance_is_no_model(variance, tmp_path):
    with warnings.catch_warnings(), pytest.raises(ValueError, match="not a usable model file"):
        warnings.simplefilter("error")
        load_forged(lambda entries: entries.update(total_variance=variance), tmp_path)


@pytest.mark.parametrize(
    "words", [{"n_components": "many"}, {"no_such": 1, "__class__": 2, "fit": None}, {"kernel": {"name": []}}]
)
def test_words_of_a_file_are_not_trusted(words, tmp_path):
    """They become parameters, known ones only, which the next fit looks at."""
    x, _ = skewed(60)
    loaded = load_forged(lambda entries: entries["request"].update(words=words), tmp_path)
    assert set(loaded.get_params()) == set(SparseKernelPCA().get_params())
    assert loaded.transform(x).shape == (60, 2) and callable(loaded.fit)
    if "no_such" not in words:
        with pytest.raises(ValueError, match="must be|expected"):
            loaded.fit(x)
