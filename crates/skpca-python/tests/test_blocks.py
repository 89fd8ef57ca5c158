"""Rows that come a block at a time: `fit` gives what it gives of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
from skpca import KernelNovelty, SparseKernelPCA, _blocks, _core

N, D = 60_000, 20
NAMES = [f"c{k}" for k in range(D)]


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return random.standard_normal((N, D)) * np.arange(1, D + 1) + 3 * random.integers(0, 4, (N, 1))


def estimator(**parameters):
    defaults = {"method": "landmarks", "n_support": 12, "n_components": 4, "random_state": 0, "inverse": "ridge"}
    return SparseKernelPCA(**defaults | parameters)


def blocks(rows, *sizes):
    ends = np.cumsum(sizes)
    return [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]


def same(streamed, whole):
    return streamed._model.to_bytes() == whole._model.to_bytes()


@pytest.mark.filterwarnings("ignore:expansion did not converge")
@pytest.mark.parametrize("method", ["landmarks", "greedy", "expansion"])
def test_blocks_give_the_bytes_of_an_array(rows, method):
    whole = estimator(method=method).fit(rows)
    for sizes in [(), (0, 1, 500, 480, 0, 20_000), (59_999,)]:
        assert same(estimator(method=method).fit(lambda sizes=sizes: iter(blocks(rows, *sizes))), whole), sizes
    assert same(estimator(method=method).fit(block for block in blocks(rows, 7)), whole)
    single = rows.astype(np.float32)
    assert same(estimator(method=method).fit(iter(blocks(single, 7))), estimator(method=method).fit(single))


def test_names_are_taken_and_columns_put_in_order(rows):
    frame = pd.DataFrame(rows, columns=NAMES)
    whole = estimator().fit(frame)
    streamed = estimator().fit(iter([frame[:100], frame[100:][NAMES[::-1]]]))
    assert same(streamed, whole) and list(streamed.feature_names_in_) == NAMES
    assert np.array_equal(streamed.transform(frame[:5]), whole.transform(frame[:5]))
    with pytest.raises(ValueError, match=r"a block has other columns: missing \['c0'\], unexpected \['z'\]"):
        estimator().fit(iter([frame[:100], frame[100:].rename(columns={"c0": "z"})]))
    with pytest.raises(ValueError, match="a block has 3 columns, expected 20"):
        estimator().fit(iter([rows[:9], rows[:9, :3]]))


def test_lazy_frames_are_read_in_batches(rows):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows, schema=NAMES)
    if not hasattr(frame.lazy(), "collect_batches"):
        pytest.skip("this polars has no batches")
    assert same(estimator().fit(frame.lazy()), estimator().fit(pd.DataFrame(rows, columns=NAMES)))


def test_batches_of_arrow(rows, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = arrow.table(dict(zip(NAMES, rows.T, strict=True)))
    whole = estimator().fit(pd.DataFrame(rows, columns=NAMES))
    assert same(estimator().fit(table.to_reader(max_chunksize=777)), whole)
    dataset.write_dataset(table, tmp_path, format="parquet")
    assert same(estimator().fit(dataset.dataset(tmp_path)), whole)


@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_an_array_in_a_file_is_read_where_it_is(rows, tmp_path, monkeypatch, type):
    np.save(tmp_path / "rows.npy", rows.astype(type))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert _blocks.stream(mapped) is None, "it fits in memory"
    monkeypatch.setattr(_core, "fits_memory", lambda *shape: False)
    stream, names = _blocks.stream(mapped)
    assert stream.shape == (N, D) and names is None
    assert same(estimator().fit(mapped), estimator().fit(rows.astype(type)))
    assert same(estimator().fit(mapped[1000:]), estimator().fit(rows[1000:].astype(type)))
    assert _blocks.stream(mapped[:, 1:]) is None and _blocks.stream(mapped[::2]) is None


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (1.0, "rows.npy: the file changed while it was read"),
        (0.5, r"rows.npy ends before row \d+ of \d+: it was truncated"),
    ],
)
def test_a_file_that_changes_between_passes_ends_the_fit(rows, tmp_path, monkeypatch, left, message):
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    monkeypatch.setattr(_core, "fits_memory", lambda *shape: False)
    bytes = path.read_bytes()

    def change(stage, fraction):
        with path.open("r+b") as file:
            file.truncate(int(left * len(bytes)))
            file.seek(200)
            file.write(b"\0")

    monkeypatch.setattr("skpca._kernel_model.progress", lambda name: change)
    with pytest.raises(ValueError, match=message):
        estimator(verbose=1).fit(np.load(path, mmap_mode="r"))


def test_methods_that_hold_every_row_choose_on_a_sample(rows):
    stream, _ = _blocks.spooled(iter([rows]))
    model = _core.fit(stream, method="l21", support=12, components=4, memory=60_000_000)
    assert "were chosen on a sample of" in model.describe()


def test_detectors_and_small_streams(rows):
    few = rows[:300]
    assert same(estimator(method="l21").fit(iter(blocks(few, 100))), estimator(method="l21").fit(few))
    streamed, whole = KernelNovelty(random_state=0).fit(iter([rows])), KernelNovelty(random_state=0).fit(rows)
    assert np.array_equal(streamed.decision_function(few), whole.decision_function(few))


def test_what_cannot_be_fitted_is_said(rows):
    holed = rows[:500].copy()
    holed[17, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 517, column 3 \(from 0\): NaN"):
        estimator().fit(iter([rows[:500], holed]))
    with pytest.raises(ValueError, match="expected blocks of rows, found none"):
        estimator().fit(iter([]))
    with pytest.raises(ValueError, match="found blocks without any"):
        estimator().fit(iter([rows[:0]]))
    with pytest.raises(ValueError, match="expected blocks of rows and columns"):
        estimator().fit(iter(rows))
    with pytest.raises(ValueError, match="need an array"):
        estimator(method="discriminant").fit(iter([rows]), np.zeros(N))
