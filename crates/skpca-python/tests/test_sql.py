"""SQL exports answer as our own models do, on two databases."""

import sqlite3

import duckdb
import numpy as np
import pytest
import skpca
from skpca._registry import KERNELS
from test_onnx import fit, limit, spec, t2, table

NAMES = ["a", 'the "b"', "Time", "select"]


def rows_of(database, query, X):
    """The query over the rows of X in a table with a key."""
    if database == "duckdb":
        connection = duckdb.connect()
    else:
        connection = sqlite3.connect(":memory:")
    columns = ", ".join('"{}" DOUBLE PRECISION'.format(name.replace('"', '""')) for name in NAMES)
    connection.execute(f'CREATE TABLE "readings" (id INTEGER, {columns})')
    values = [(i, *[None if np.isnan(v) else v for v in row]) for i, row in enumerate(X.tolist())]
    if database == "duckdb":
        frame = np.array(values, dtype=object)
        for start in range(0, len(frame), 500):
            some = frame[start : start + 500]
            places = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
            connection.execute(f'INSERT INTO "readings" VALUES {places}', some.ravel().tolist())
    else:
        connection.executemany('INSERT INTO "readings" VALUES (?, ?, ?, ?, ?)', values)
    found = connection.execute(query).fetchall()
    return np.array(sorted(found), dtype=float)


def check(database, model, X):
    found = rows_of(database, model.export("sql", name="readings", keep=["id"]).decode(), X)
    q, score = model.transform(X).shape[1], model.score(X)
    assert np.array_equal(found[:, 0], np.arange(len(X)))
    features = model.transform(X)
    assert np.abs(found[:, 1 : 1 + q] - features).max() <= 1e-12 * np.abs(features).max()
    assert np.abs(found[:, 1 + q] - score).max() <= 1e-12 * score.max()
    expected = t2(model, X)
    if expected is not None:
        assert np.abs(found[:, 2 + q] - expected).max() <= 1e-9 * expected.max()
    assert found.shape[1] == q + 4 + (expected is not None)
    assert np.all(found[:, -2] == limit(model))
    assert np.array_equal(found[:, -1], score > limit(model))


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel(database, kernel):
    X = table(0, 300, centres=[100.0, 0, 0, -1e4], widths=[1e-3, 1, 1e6, 1])
    model = fit(X, "landmarks", spec(KERNELS[kernel]), scaling="standard", names=NAMES)
    check(database, model, table(1, 500, centres=[100.0, 0, 0, -1e4], widths=[1e-3, 1, 1e6, 1]))


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_mahalanobis_distances(database, kernel):
    model = fit(table(0, 150), "landmarks", spec(KERNELS[kernel]), statistic="mahalanobis", names=NAMES)
    check(database, model, table(1, 300))


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_components_that_are_not_orthonormal_and_no_centre(database):
    check(database, fit(table(0, 200), "elastic-net,refit=false", "rbf", names=NAMES), table(1, 300))
    check(database, fit(table(0, 200), "landmarks", "rbf", center=False, names=NAMES), table(1, 300))


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_the_same_alarms_on_ten_thousand_rows(database):
    model = skpca.fit(table(0, 1000), support=15, names=NAMES, scaling="standard")
    X = table(1, 10_000)
    assert 100 < (model.score(X) > limit(model)).sum() < 5000
    check(database, model, X)


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_a_row_with_an_empty_cell_is_novel(database):
    for kernel in KERNELS:
        model = fit(table(0, 200), "landmarks", spec(KERNELS[kernel]), names=NAMES)
        X = table(1, 3)
        X[1, 2] = np.nan
        found = rows_of(database, model.export("sql", name="readings", keep=["id"]).decode(), X)
        assert np.isnan(found[1, 1:-2]).all() and found[1, -1] == 1


def test_many_points_and_columns_are_no_deep_expressions():
    rng = np.random.default_rng(0)
    # One component: SQLite writes every layer out wherever it is used, which takes it some seconds as it is.
    many = {"method": "landmarks", "kernel": "rbf,gamma=3", "support": 1010, "components": 1}
    model = skpca.fit(rng.normal(size=(1500, 4)), names=NAMES, **many)
    assert model.arrays()["support"].shape[0] > 1000
    check("sqlite", model, rng.normal(size=(5, 4)))


def test_names_that_sql_cannot_hold_are_refused():
    model = fit(table(0, 60), "landmarks", "rbf", names=["a\0", "b", "c", "d"])
    with pytest.raises(ValueError, match="zero byte"):
        model.export("sql", name="readings")
