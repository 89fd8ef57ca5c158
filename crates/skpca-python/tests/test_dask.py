"""Dask collections give the models that the same rows give here, whatever becomes of the workers."""

import functools
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
import skpca
from skpca import _core

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")

import dask  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from sklearn.base import clone  # noqa: E402
from skpca._registry import METHODS  # noqa: E402
from skpca.dask import KernelNovelty, Partitions, SparseKernelPCA  # noqa: E402

# More numbers than are gathered in one piece: 1,000,000.
ROWS, COLUMNS = 126_000, 8
# Seconds that a test may take: ten times what the longest does.
LIMIT = 240


@pytest.fixture(autouse=True)
def limited():
    """What waits for workers that never come fails, instead of waiting for ever."""

    def end(*_):
        raise TimeoutError(f"the test takes more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def clusters(rows, columns):
    random = np.random.default_rng(0)
    centres = random.normal(size=(6, columns))
    return centres[random.integers(0, 6, rows)] + 0.4 * random.normal(size=(rows, columns))


@pytest.fixture(scope="module")
def rows():
    return clusters(ROWS, COLUMNS)


@pytest.fixture(scope="module")
def wide():
    return clusters(4200, 240)


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with (
        # A killed worker that needs longer than 15 s to start again, as on a busy machine, would be given up.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield cluster


@pytest.fixture
def client(cluster):
    return distributed.get_client()


PARTS = 10


def made(i, columns=COLUMNS):
    """A partition that is made where it is needed, of little more than a tenth of a million numbers."""
    random = np.random.default_rng([7, i])
    return random.normal(size=(101_000 // columns, columns)) * np.linspace(1, 3, columns) + (i % 3)


def lazy(parts=PARTS, function=made, columns=COLUMNS):
    """An array of such partitions, of which nobody knows how many rows they have."""
    like = dict(shape=(np.nan, columns), dtype=float, meta=np.empty((0, columns)))
    made = [da.from_delayed(delayed(function, pure=False)(i), **like) for i in range(parts)]
    return da.concatenate(made, allow_unknown_chunksizes=True)


FITS = {
    "landmarks": dict(method="landmarks", n_support=20),
    "landmarks, scaled": dict(method="landmarks", n_support=20, scaling="standard"),
    "landmarks, fidelity": dict(method="landmarks", fidelity=0.6),
    "greedy": dict(method="greedy", n_support=12),
    "expansion": dict(method="expansion", n_support=10),
    "expansion, laplacian": dict(method="expansion", kernel="laplacian", n_support=8, gamma="scale"),
    "linear": dict(method="greedy", kernel="linear", n_support=5),
    "polynomial": dict(method="landmarks", kernel="polynomial", n_support=20, gamma=0.1, scaling="minmax"),
    "many points": dict(method="landmarks", n_support=120, gamma=0.5),
}


@pytest.mark.parametrize("name", FITS)
def test_fits_equal_those_of_the_same_rows_here(client, rows, name):
    options = dict(n_components=4, random_state=3, **FITS[name])
    X = da.from_array(rows, chunks=(25_000, 5)).persist()
    here, there = skpca.SparseKernelPCA(**options).fit(rows), SparseKernelPCA(**options).fit(X)
    if here.support_ is not None:
        assert np.array_equal(here.support_, there.support_)
    few = rows[::500]
    scale = np.abs(here.transform(few)).max()
    assert np.abs(here.support_vectors_ - there.support_vectors_).max() <= 1e-9 * np.abs(rows).max()
    # From 100 points and 50,000 rows on, products are summed in 32 bits.
    near = 1e-6 if len(there.support_vectors_) >= 100 else 1e-9
    assert np.abs(here.transform(few) - there.transform(few)).max() <= near * scale
    assert here.captured_variance_ratio_ == pytest.approx(there.captured_variance_ratio_, rel=near)


def test_many_points_agree_as_closely_where_products_are_in_64_bits(client):
    rows = clusters(49_000, 21)
    options = dict(n_components=4, random_state=3, **FITS["many points"])
    there = SparseKernelPCA(**options).fit(da.from_array(rows, chunks=(9_000, -1)))
    expected = skpca.SparseKernelPCA(**options).fit(rows).transform(rows[::50])
    assert len(there.support_vectors_) == 120
    assert np.abs(there.transform(rows[::50]) - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.filterwarnings("ignore::skpca.exceptions.ShortfallWarning")
@pytest.mark.parametrize("method", [name for name, entry in METHODS.items() if not entry["keeps_all_rows"]])
def test_every_method_fits_as_it_does_here(client, wide, method):
    entry = METHODS[method]
    y = np.where(wide[:, 0] > 0.5, "high", "low") if entry["labelled"] else None
    options = dict(n_components=1 if entry["labelled"] else 4, method=method, n_support=10, random_state=3)
    options["kernel"] = "linear" if entry["linear"] else "rbf"
    here = skpca.SparseKernelPCA(**options).fit(wide, y)
    there = SparseKernelPCA(**options).fit(da.from_array(wide, chunks=(1500, -1)), y)
    assert np.array_equal(here.support_, there.support_)
    for answer in ("transform", "score"):
        expected, found = (getattr(model._model, answer)(wide) for model in (here, there))
        assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max(), answer
    assert there.fidelity_ == pytest.approx(here.fidelity_, rel=1e-9)
    assert there.explained_variance_ == pytest.approx(here.explained_variance_, rel=1e-9)


def test_what_needs_all_rows_in_one_place_is_refused(client, wide):
    X = da.from_array(wide, chunks=(1500, -1))
    with pytest.raises(ValueError, match="exact.*keeps few rows"):
        SparseKernelPCA(2, method="exact").fit(X)
    with pytest.raises(ValueError, match="kernel: a function"):
        SparseKernelPCA(2, kernel=lambda x, z: x @ z.T).fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        SparseKernelPCA(2).fit(X, sample_weight=np.ones(len(wide)))
    model = SparseKernelPCA(2, n_support=5, updatable=True, random_state=0)
    with pytest.raises(ValueError, match="updatable = True: fit needs a dense array"):
        model.fit(X)
    with pytest.raises(TypeError, match="give its partitions to partial_fit"):
        model.partial_fit(X)


def test_a_fit_of_a_collection_begins_anew(client, wide):
    model = SparseKernelPCA(2, n_support=5, updatable=True, random_state=0).fit(wide[:500])
    model.set_params(updatable=False).fit(da.from_array(wide, chunks=(1500, -1)))
    assert model.n_samples_seen_ == len(wide)
    with pytest.warns(UserWarning, match="partial_fit starts from scratch"):
        assert model.partial_fit(wide[:300]).n_samples_seen_ == 300


def test_a_model_of_a_collection_is_a_model_like_any_other(client, wide, tmp_path):
    model = SparseKernelPCA(3, n_support=8, random_state=0).fit(da.from_array(wide, chunks=(1500, -1)))
    model.save(tmp_path / "model.skpca")
    for other in (SparseKernelPCA.load(tmp_path / "model.skpca"), skpca.SparseKernelPCA.load(tmp_path / "model.skpca")):
        assert np.array_equal(other.transform(wide), model.transform(wide))
    read = skpca.Model.from_bytes((tmp_path / "model.skpca").read_bytes())
    for kind in ("onnx", "h", "sql"):
        assert len(read.export(kind)) > 1000 and read.export(kind) == model._model.export(kind), kind


def test_detectors_equal_those_of_the_same_rows_here(client, rows):
    X = da.from_array(rows, chunks=(40_000, -1)).persist()
    here, there = skpca.KernelNovelty(random_state=1).fit(rows), KernelNovelty(random_state=1).fit(X)
    few = rows[::500]
    expected = here.score_samples(few)
    assert np.array_equal(here.support_, there.support_)
    assert np.abs(there.score_samples(few) - expected).max() <= 1e-9 * np.abs(expected).max()
    assert here.offset_ == pytest.approx(there.offset_, rel=1e-9)
    assert np.array_equal(here.p_values(few), there.p_values(few))
    again = pickle.loads(pickle.dumps(there))
    assert np.array_equal(again.predict(few), here.predict(few))


def test_methods_of_all_rows_choose_on_a_sample_and_say_so(client):
    wide = np.random.default_rng(0).normal(size=(4000, 260)) * np.linspace(0.1, 2, 260)
    model = SparseKernelPCA(3, method="l21", n_support=10, random_state=0).fit(da.from_array(wide, chunks=(1500, -1)))
    assert any("sample" in note for note in model.report_["notes"]), model.report_["notes"]
    assert len(model.support_) == 10 and 0 < model.fidelity_ <= 1


def test_classes_travel_with_the_rows(client, rows):
    # As many as a method that holds all rows is given of those elsewhere, and more than a million numbers.
    wide = np.hstack([rows, rows[:, :4] ** 2])[:90_000]
    y = np.where(wide[:, 0] > 0.5, "high", "low")
    options = dict(n_components=1, method="discriminant", n_support=8, random_state=0)
    here = skpca.SparseKernelPCA(**options).fit(wide, y)
    there = SparseKernelPCA(**options).fit(da.from_array(wide, chunks=(50_000, -1)), da.from_array(y, chunks=30_000))
    expected = here.transform(wide[::500])
    assert np.abs(there.transform(wide[::500]) - expected).max() <= 1e-9 * np.abs(expected).max()
    with pytest.raises(ValueError, match="y has shape"):
        SparseKernelPCA(**options).fit(da.from_array(wide, chunks=(50_000, -1)), y[1:])


def fitted(X=None):
    """The bytes of a model whose fit makes every pass but two: over columns, bandwidth, trace, samples and moments."""
    options = dict(kernel="polynomial", gamma="scale", scaling="standard", method="landmarks", n_support=12)
    return SparseKernelPCA(3, random_state=5, **options).fit(lazy() if X is None else X)._model.to_bytes()


def fitted_to_columns():
    model = SparseKernelPCA(2, kernel="linear", method="greedy", n_support=3, random_state=5).fit(lazy())
    return model._model.to_bytes()


@pytest.fixture(scope="module")
def expected(cluster):
    """What these fits are, while nothing happens to workers."""
    return functools.cache(lambda fit: fit())


def test_bits_depend_neither_on_the_number_of_workers_nor_on_one_that_joins_late(cluster, client, expected):
    timer = threading.Timer(0.2, cluster.scale, [3])
    timer.start()
    assert fitted() == expected(fitted)
    timer.join()
    try:
        client.wait_for_workers(3)
        assert fitted() == expected(fitted)
        cluster.scale(1)
        while len(client.scheduler_info()["workers"]) > 1:
            time.sleep(0.02)
        assert fitted() == expected(fitted)
    finally:
        cluster.scale(2)
        client.wait_for_workers(2)


def test_bits_do_not_depend_on_the_order_in_which_partitions_finish(client, expected, monkeypatch, tmp_path):
    before = expected(fitted)
    # Eight threads of one process, where partitions overtake each other.
    monkeypatch.setattr("skpca.dask.current_client", lambda: None)

    def hindered(i):
        time.sleep(os.urandom(1)[0] / 2000)
        with open(log, "ab", buffering=0) as file:
            file.write(bytes([i]))
        return made(i)

    orders = set()
    for log in (tmp_path / "first", tmp_path / "second"):
        with dask.config.set(scheduler="threads", num_workers=8):
            assert fitted(lazy(function=hindered)) == before
        orders.add(log.read_bytes())
    assert len(orders) == 2 and bytes(range(PARTS)) not in {order[:PARTS] for order in orders}


class Kill(distributed.WorkerPlugin):
    """Ends one worker, the first that begins its nth task of a name: the worker kills itself with SIGKILL."""

    def __init__(self, name, nth, marker):
        self.name, self.left, self.marker = f"skpca-{name}-", nth, str(marker)

    def setup(self, worker):
        pass

    def transition(self, key, start, finish, **_):
        if finish != "executing" or not str(key).startswith(self.name) or not is_hex(str(key)[len(self.name) :]):
            return
        self.left -= 1
        if self.left == 0 and claimed(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)


def is_hex(text):
    """Whether a key ends here: `skpca-scaling-merge-…` is not a task of `scaling`."""
    return all(letter in "0123456789abcdef" for letter in text)


def claimed(marker):
    """Whether nobody was here before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


# Each pass that a fit makes of rows that are elsewhere, and a fit that makes it.
KILLS = {
    "rows": fitted,
    "gather": fitted,
    "scaling": fitted,
    "bandwidth": fitted,
    "trace": fitted,
    "covariance": fitted,
    "scatter": fitted_to_columns,
    "scaling-merge": fitted,
    "covariance-merge": fitted,
    "scatter-merge": fitted_to_columns,
}


@pytest.mark.parametrize("name", KILLS)
def test_a_worker_is_killed_during_a_pass_and_the_bits_are_the_same(client, expected, name, tmp_path):
    fit = KILLS[name]
    before = expected(fit)
    client.wait_for_workers(2)
    # The second task of a worker: what it held of the first is lost too.
    client.register_plugin(Kill(name, 1 if name.endswith("merge") else 2, tmp_path / "killed"), name="kill")
    try:
        assert fit() == before
    finally:
        client.unregister_worker_plugin("kill")
    assert (tmp_path / "killed").exists(), "no worker began this task"
    client.wait_for_workers(2)


def test_unknown_chunks_empty_partitions_and_single_precision(client, rows):
    options = dict(n_components=3, method="landmarks", n_support=10, random_state=2)
    single = rows.astype(np.float32)
    table = pd.DataFrame(single, columns=[f"x{k}" for k in range(COLUMNS)])
    frame = dd.from_pandas(table, npartitions=5)
    holes = frame.map_partitions(lambda part: part[part.index // 25_200 != 2])
    kept = table[table.index // 25_200 != 2]
    here, there = skpca.SparseKernelPCA(**options).fit(kept), SparseKernelPCA(**options).fit(holes)
    assert holes.map_partitions(len).compute().min() == 0
    assert np.array_equal(here.support_, there.support_)
    assert list(there.feature_names_in_) == list(table.columns)
    expected = here.transform(kept[::500])
    assert np.abs(there.transform(kept[::500]) - expected).max() <= 1e-6 * np.abs(expected).max()


def test_answers_are_lazy_and_keep_chunks_and_divisions(client, rows):
    local = skpca.KernelNovelty(random_state=1).fit(
        pd.DataFrame(rows[:2000], columns=[f"x{k}" for k in range(COLUMNS)])
    )
    pca = skpca.SparseKernelPCA(3, n_support=8, random_state=0).fit(local.support_vectors_)
    X = da.from_array(rows[:1000], chunks=(300, 4))
    features = pca.transform(X)
    assert isinstance(features, da.Array) and features.chunks == ((300, 300, 300, 100), (3,))
    assert np.array_equal(features.compute(), pca.transform(rows[:1000]))
    assert pca.transform(X.astype(np.float32)).dtype == np.float32
    unknown = pca.transform(lazy(2))
    assert np.isnan(unknown.shape[0]) and unknown.shape[1] == 3
    assert np.array_equal(unknown.compute(), pca.transform(np.vstack([made(0), made(1)])))
    frame = dd.from_pandas(pd.DataFrame(rows[:1000], columns=local.feature_names_in_), npartitions=3)
    named = clone(pca).fit(frame.compute())
    table = named.transform(frame)
    assert isinstance(table, dd.DataFrame) and table.divisions == frame.divisions
    assert list(table.columns) == list(table.compute().columns) == list(named.get_feature_names_out())
    assert np.array_equal(table.compute().to_numpy(), named.transform(frame.compute()))
    linear = skpca.SparseLinearPCA(2, n_nonzero=3).fit(frame.compute())
    assert np.array_equal(linear.transform(frame).compute().to_numpy(), linear.transform(frame.compute()))
    for name in ("score_samples", "decision_function", "predict", "p_values"):
        answer = getattr(local, name)(frame)
        assert isinstance(answer, dd.Series) and answer.divisions == frame.divisions, name
        assert np.array_equal(answer.compute(), getattr(local, name)(frame.compute())), name


def test_wrong_partitions_are_named(client):
    def broken(i):
        part = made(i)
        if i == 3:
            part[17, 2] = np.nan
        return part

    with pytest.raises(ValueError, match="partition 3: row 17, column 2"):
        SparseKernelPCA(2, n_support=5).fit(lazy(function=broken))
    with pytest.raises(ValueError, match="partition 2 has 7 columns, expected 8"):
        SparseKernelPCA(2, n_support=5).fit(lazy(function=lambda i: made(i)[:, : 7 if i == 2 else 8]))
    names = [f"x{k}" for k in range(COLUMNS)]
    tables = [pd.DataFrame(made(i), columns=names) for i in range(3)]
    tables[1] = tables[1][names[::-1]]
    turned = dd.from_delayed([delayed(table) for table in tables], meta=tables[0][:0], verify_meta=False)
    options = dict(n_components=2, method="landmarks", n_support=5, random_state=0)
    expected = SparseKernelPCA(**options).fit(dd.from_pandas(pd.concat(tables, ignore_index=True), npartitions=2))
    assert np.array_equal(SparseKernelPCA(**options).fit(turned).support_, expected.support_)
    tables[2] = tables[2].rename(columns={"x1": "other"})
    wrong = dd.from_delayed([delayed(table) for table in tables], meta=tables[0][:0], verify_meta=False)
    with pytest.raises(ValueError, match="partition 2 has the columns .*'other'.*expected .*'x1'"):
        SparseKernelPCA(**options).fit(wrong)
    with pytest.raises(ValueError, match="no rows in any of its 2 partitions"):
        SparseKernelPCA(2, n_support=5).fit(lazy(2, lambda i: made(i)[:0]))


def test_local_estimators_never_compute_a_collection_unasked(client):
    with pytest.raises(TypeError, match="skpca.dask.SparseKernelPCA"):
        skpca.SparseKernelPCA(2).fit(lazy())
    with pytest.raises(TypeError, match="skpca.dask.KernelNovelty"):
        skpca.KernelNovelty().fit(lazy())
    model = skpca.KernelNovelty(n_support=5).fit(made(0)[:100])
    with pytest.raises(TypeError, match="Dask collection"):
        model.contributions(lazy())
    with pytest.raises(TypeError, match="Dask collection: inverse_transform takes arrays"):
        skpca.SparseKernelPCA(2, n_support=5).fit(made(0)[:100]).inverse_transform(lazy()[:, :2])
    linear = skpca.SparseLinearPCA(2)
    with pytest.raises(TypeError, match="Dask collection: give the covariance matrix"):
        linear.fit(lazy())
    X = da.from_array(made(0)[:500], chunks=100)
    with pytest.raises(TypeError, match="Dask collection"):
        linear.fit_covariance(da.cov(X.T))
    linear.fit_covariance(da.cov(X.T).compute())
    with pytest.raises(TypeError, match="Dask collection"):
        linear.inverse_transform(X[:, :2])


def test_versions_and_instructions_of_workers_are_checked(client, monkeypatch):
    X = Partitions(lazy(1))
    with pytest.raises(RuntimeError, match=f"skpca 9.9.9, here is skpca {skpca.__version__}"):
        X._check_machines([{"version": "9.9.9", "level": _core.level()}])
    with pytest.warns(skpca.exceptions.WorkerWarning, match="workers compute with vax"):
        X._check_machines([{"version": skpca.__version__, "level": "vax"}])


def test_tasks_have_names_and_verbose_shows_passes(client, capsys):
    SparseKernelPCA(2, method="landmarks", n_support=5, random_state=0, verbose=1).fit(lazy(2, made))
    out = capsys.readouterr().out
    assert "rows: 25250 in 2 partitions" in out
    groups = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"skpca-rows", "skpca-gather"} <= set(groups), groups
