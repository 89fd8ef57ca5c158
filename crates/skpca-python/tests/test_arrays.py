"""Every entry point on every layout and type of array: the answer of a plain float64 array, or a refusal."""

import copy
import itertools
import pickle
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import skpca
from skpca import KernelNovelty, SparseKernelPCA

# Quarters up to 8: every type below holds them exactly.
WHOLE = np.random.default_rng(0).integers(-8, 8, size=(40, 3))
LABELS = np.repeat([0, 1], 20)

MODEL = skpca.fit(WHOLE.astype(float), method="likelihood", components=2, support=6)
SCORES = MODEL.score(WHOLE.astype(float))


def unaligned(x):
    buffer = bytearray(1 + 8 * x.size)
    view = np.frombuffer(buffer, dtype=np.float64, offset=1, count=x.size).reshape(x.shape)
    view[...] = x
    return view


def embedded(x, step):
    """A view of every `step`-th row and column of a larger array."""
    larger = np.full([abs(step) * size for size in x.shape], np.nan)
    view = larger[tuple([slice(None, None, step)] * x.ndim)]
    view[...] = x
    return view


def read_only(x):
    x = x.astype(float)
    x.flags.writeable = False
    return x


LAYOUTS = {
    "Fortran order": lambda x: np.asfortranarray(x, dtype=float),
    "transposed": lambda x: np.ascontiguousarray(x.T, dtype=float).T,
    "strided": lambda x: embedded(x, 2),
    "negative strides": lambda x: embedded(x, -1),
    "negative wide strides": lambda x: embedded(x, -3),
    "unaligned": unaligned,
    "read-only": read_only,
    "big endian": lambda x: x.astype(">f8"),
    "float32": lambda x: x.astype(np.float32),
    "float32 in Fortran order": lambda x: np.asfortranarray(x, dtype=np.float32),
    "float16": lambda x: x.astype(np.float16),
    "long double": lambda x: x.astype(np.longdouble),
    "int64": lambda x: x.astype(np.int64),
    "int8 in Fortran order": lambda x: np.asfortranarray(x, dtype=np.int8),
    "big endian int32": lambda x: x.astype(">i4"),
    "list": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
    "fractions": lambda x: np.vectorize(Fraction, otypes=[object])(x),
    "memory map": lambda x: np.asfortranarray(x, dtype=float).view(np.memmap),
    "masked array without a mask": lambda x: np.ma.array(x, dtype=float, order="F"),
}

FRAMES = {
    "pandas": lambda pandas, x: pandas.DataFrame(x.astype(float)),
    "pandas, nullable": lambda pandas, x: pandas.DataFrame(x).convert_dtypes(),
}

# Each takes an array of the shape of WHOLE, and does something with it.
TABLES = {
    "fit": lambda x: skpca.fit(x, components=2, support=5).to_bytes(),
    "transform": lambda x: MODEL.transform(x),
    "score": lambda x: MODEL.score(x),
    "log_likelihood": lambda x: MODEL.log_likelihood(x),
    "score_gradient": lambda x: MODEL.score_gradient(x),
    "kernel": lambda x: skpca.kernel("linear", x, x),
    "kernel, first": lambda x: skpca.kernel("rbf,gamma=0.1", x, WHOLE[:7].astype(float)),
    "kernel, second": lambda x: skpca.kernel("rbf,gamma=0.1", WHOLE[:7].astype(float), x),
    "product, rows": lambda x: skpca.product("linear", x, x, np.eye(len(WHOLE))),
    "product, weights": lambda x: skpca.product("linear", WHOLE.astype(float), WHOLE.astype(float), x),
    "SparseKernelPCA": lambda x: SparseKernelPCA(2, n_support=5, random_state=0).fit(x).support_vectors_,
    "KernelNovelty": lambda x: KernelNovelty(2, n_support=5, random_state=0).fit(x).offset_,
}


def vectors(scores):
    return MODEL.p_values(scores)


def classes(labels):
    return skpca.fit(WHOLE.astype(float), method="discriminant", support=5, labels=labels).to_bytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("entry", TABLES)
def test_tables(entry, layout):
    expected = TABLES[entry](np.ascontiguousarray(WHOLE, dtype=np.float64))
    np.testing.assert_array_equal(TABLES[entry](LAYOUTS[layout](WHOLE)), expected)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("entry", [entry for entry in TABLES if entry[0].islower()])
def test_frames(entry, frame):
    pandas = pytest.importorskip("pandas")
    expected = TABLES[entry](np.ascontiguousarray(WHOLE, dtype=np.float64))
    np.testing.assert_array_equal(TABLES[entry](FRAMES[frame](pandas, WHOLE)), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores(layout):
    scores = np.sort(np.round(8 * SCORES).astype(int)) / 8
    expected = vectors(np.ascontiguousarray(scores))
    if "int" in layout:
        scores, expected = np.arange(3), vectors(np.arange(3.0))
    np.testing.assert_array_equal(vectors(LAYOUTS[layout](scores)), expected)


@pytest.mark.parametrize("kind", ["<i8", ">i8", "i4", "u1", "u8", "bool", "list", "strided", "reversed"])
def test_labels(kind):
    same = {
        "list": LABELS.tolist(),
        "strided": np.repeat(LABELS, 2)[::2],
        "reversed": np.ascontiguousarray(LABELS[::-1])[::-1],
    }
    given = same[kind] if kind in same else LABELS.astype(kind)
    assert classes(given) == classes(LABELS.astype(np.int64))


MASKED = np.ma.array(WHOLE.astype(float), mask=WHOLE > 6)
REFUSED = {
    "no dimension": (np.float64(3.0), ValueError, "2D|2 dimensions"),
    "one dimension": (WHOLE[0].astype(float), ValueError, "2D|2 dimensions"),
    "three dimensions": (np.zeros((4, 3, 2)), ValueError, "dim"),
    "masked": (MASKED, ValueError, "masked"),
    "complex": (WHOLE + 0.0j, (TypeError, ValueError), "[Cc]omplex"),
    "complex objects": ((WHOLE + 1.0j).astype(object), (TypeError, ValueError), "complex"),
    "numpy's complex objects": (
        np.array([[np.complex64(1 + 2j), 1, 2]] * 40, dtype=object),
        (TypeError, ValueError),
        "[Cc]omplex",
    ),
    "text": (np.full(WHOLE.shape, "a"), (TypeError, ValueError), "numbers|str"),
    "text among objects": (np.full(WHOLE.shape, "a", dtype=object), (TypeError, ValueError), "string|numbers"),
    "none": (np.full(WHOLE.shape, None), (TypeError, ValueError), "None|NaN"),
    "dates": (WHOLE.astype("M8[D]"), (TypeError, ValueError), "datetime|numbers|DType"),
    "records": (np.zeros((40, 3), dtype=[("a", float)]), (TypeError, ValueError), "numbers|void|cast|dtype"),
    "ragged": ([[1.0], [1.0, 2.0]], ValueError, "shape"),
    "not a number": (np.where(WHOLE > 6, np.nan, WHOLE), ValueError, "NaN"),
    "too large": (np.full(WHOLE.shape, 10**400, dtype=object), ValueError, "large|infinity"),
    "no rows": (np.zeros((0, 3)), ValueError, "rows|0 sample"),
    "no columns": (np.zeros((40, 0)), ValueError, "columns|0 feature"),
}


# Weights may be anything, and as few as one likes.
FREE = [("product, weights", name) for name in ("none", "not a number", "no columns")]


@pytest.mark.parametrize("entry, name", [case for case in itertools.product(TABLES, REFUSED) if case not in FREE])
def test_tables_that_cannot_be_read_are_refused(entry, name):
    given, kind, message = REFUSED[name]
    with warnings.catch_warnings(), pytest.raises(kind, match=message):
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        TABLES[entry](given)


@pytest.mark.parametrize("entry", [entry for entry in TABLES if entry[0].islower()])
def test_sparse_matrices_are_refused_by_the_core(entry):
    with pytest.raises(TypeError, match="sparse"):
        TABLES[entry](scipy.sparse.csr_matrix(WHOLE.astype(float)))


@pytest.mark.parametrize(
    "labels, message",
    [
        (LABELS.astype(float), "integers.*float64"),
        (LABELS.astype(str), "integers.*U"),
        (LABELS.astype(object), "integers.*object"),
        (LABELS.reshape(2, 20), "1 dimension"),
        (np.ma.array(LABELS, mask=LABELS > 0), "masked"),
        (np.repeat([0, 1], 5), "10"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(labels, message):
    with pytest.raises((TypeError, ValueError), match=message):
        classes(labels)


@pytest.mark.parametrize("scores", [np.zeros((2, 2)), np.float64(1.0), np.ma.array([1.0, 2.0], mask=[0, 1]), ["a"]])
def test_scores_that_cannot_be_read_are_refused(scores):
    with pytest.raises((TypeError, ValueError), match="1 dimension|masked|numbers"):
        vectors(scores)


def test_p_values_of_nan_are_nan():
    found = vectors([np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(np.isnan(found), [True, False, False])
    assert found[1] == 1 / 41 and found[2] == 1.0


def copied(function, x):
    """Bytes that numpy allocates for a call beside its result: copies of its arguments."""
    tracemalloc.start()
    result = function(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # An array with a base lies in the core's own memory.
    return peak - (result.nbytes if result.base is None else 0)


@pytest.mark.parametrize("entry", ["transform", "score", "score_gradient", "kernel, first"])
def test_plain_arrays_are_borrowed(entry):
    x = np.ascontiguousarray(np.tile(WHOLE, (100, 1)), dtype=float)
    for same in (x, read_only(x), x[10:], x.view(np.memmap)):
        assert copied(TABLES[entry], same) < x.nbytes / 10
    assert copied(TABLES[entry], np.asfortranarray(x)) >= x.nbytes


@pytest.mark.parametrize("entry", ["transform", "score", "log_likelihood"])
def test_float32_is_read_as_it_is(entry):
    x = np.ascontiguousarray(np.tile(WHOLE, (100, 1)), dtype=np.float32)
    for same in (x, x[10:]):
        assert copied(TABLES[entry], same) < x.nbytes / 10
    strided = np.repeat(x, 2, axis=0)[::2]
    assert x.nbytes <= copied(TABLES[entry], strided) < 1.5 * x.nbytes
    np.testing.assert_array_equal(TABLES[entry](strided), TABLES[entry](x.astype(np.float64)))


def test_float32_features_are_float32_in_single():
    x = WHOLE.astype(np.float32)
    single = MODEL.transform(x, single=True)
    assert single.dtype == np.float32
    wide = MODEL.transform(x.astype(np.float64), single=True)
    np.testing.assert_allclose(single, wide, rtol=0, atol=1e-5 * wide.std())
    assert MODEL.transform(x).dtype == MODEL.transform(x.astype(np.float64), single=True).dtype == np.float64


def test_masked_classes_and_features_are_refused():
    masked = np.ma.array(LABELS, mask=LABELS > 0)
    with pytest.raises(ValueError, match="y are masked"):
        SparseKernelPCA(1, method="discriminant").fit(WHOLE, masked)
    pca = SparseKernelPCA(3, n_support=5).fit(WHOLE)
    with pytest.raises(ValueError, match="X are masked"):
        pca.inverse_transform(MASKED)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kernels_without_a_value_are_refused(value):
    with pytest.raises(ValueError, match="kernel.*finite"):
        SparseKernelPCA(2, method="greedy", kernel=lambda x, z: value).fit(WHOLE)
    pca = SparseKernelPCA(2, method="greedy", kernel=lambda x, z: x @ z if max(x) < 100 else value).fit(WHOLE * 1.0)
    with pytest.raises(ValueError, match="kernel.*finite"):
        pca.transform(WHOLE * 1000.0)


def test_models_are_copied_and_pickled():
    rows = WHOLE.astype(float)
    for same in (copy.copy(MODEL), copy.deepcopy(MODEL), pickle.loads(pickle.dumps(MODEL))):
        np.testing.assert_array_equal(same.score(rows), MODEL.score(rows))
        assert same.to_bytes() == MODEL.to_bytes()


def test_results_go_to_the_callers_array():
    model, x = MODEL, WHOLE.astype(float)
    expected, scores = model.transform(x), model.score(x)
    room, room_32, line = np.full_like(expected, np.nan), np.empty(expected.shape, np.float32), np.empty(len(x))
    assert model.transform(x, out=room) is room
    assert model.score(x, out=line) is line
    assert np.array_equal(room, expected) and np.array_equal(line, scores)
    narrow = x.astype(np.float32)
    assert model.transform(narrow, single=True, out=room_32) is room_32
    assert np.array_equal(room_32, model.transform(narrow, single=True))


@pytest.mark.parametrize(
    ("out", "complaint"),
    [
        (lambda shape: np.empty(shape, np.float32), "out has to be an array of float64 in 2 dimensions"),
        (lambda shape: np.empty(shape[0]), "out has to be an array of float64 in 2 dimensions"),
        (lambda shape: np.empty((shape[0], shape[1] + 1)), "out has the shape"),
        (lambda shape: np.empty(shape, order="F"), "row after row"),
        (lambda shape: [0.0], "out has to be an array of float64 in 2 dimensions"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(out, complaint):
    model, x = MODEL, WHOLE.astype(float)
    with pytest.raises((TypeError, ValueError), match=complaint):
        model.transform(x, out=out(model.transform(x).shape))


def test_results_do_not_go_over_what_they_are_made_of():
    rows = WHOLE.astype(float)
    model = skpca.fit(rows, method="landmarks", components=3, support=10)
    assert model.transform(rows).shape == rows.shape
    with pytest.raises(TypeError, match="borrow"):
        model.transform(rows, out=rows)
    frozen = np.empty_like(rows)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="writeable|read-only|readonly"):
        model.transform(rows, out=frozen)
