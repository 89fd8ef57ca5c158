"""Pictures show what the estimators say: read back from the axis."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from skpca import KernelNovelty, SparseKernelPCA, plot


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def ring(n=200):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n)])


def dots(collection):
    return np.asarray(collection.get_offsets())


def test_components_are_the_features():
    X, y = ring(), np.arange(200) % 2
    model = SparseKernelPCA(3, n_support=10, random_state=0).fit(X)
    ax = plt.subplots()[1]
    assert plot.components(model, X, ax=ax) is ax
    assert np.array_equal(dots(ax.collections[0]), model.transform(X)[:, :2])
    ax = plot.components(model, X, y, first=1, second=2)
    assert np.array_equal(dots(ax.collections[1]), model.transform(X)[y == 1][:, 1:])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]
    with pytest.raises(ValueError, match="second = 3: must be an integer from 0 to 2"):
        plot.components(model, X, second=3)


def test_the_map_has_the_threshold_and_the_points():
    X = ring()
    detector = KernelNovelty(n_support=10, random_state=0).fit(X)
    ax = plot.novelty_map(detector, X)
    assert np.array_equal(dots(ax.collections[-1]), detector.support_vectors_[:, :2])
    inside = [path for path in ax.collections[1].get_paths() if len(path.vertices)]
    on_it = np.column_stack([inside[0].vertices, np.zeros(len(inside[0].vertices))])
    assert np.abs(detector.decision_function(on_it)).max() < 0.05 * -detector.offset_ + 0.01
    with pytest.raises(ValueError, match="two different integers"):
        plot.novelty_map(detector, X, columns=(1, 1))


def test_the_frontier_fits_every_size():
    ax = plot.frontier(SparseKernelPCA(2, method="greedy", random_state=0), ring(), sizes=(2, 4, 8))
    kept, fidelities = ax.lines[0].get_data()
    assert list(kept) == [2, 4, 8]
    assert np.all(np.diff(fidelities) > 0)
    expected = SparseKernelPCA(2, method="greedy", n_support=4, random_state=0).fit(ring()).fidelity_
    assert fidelities[1] == expected


def test_scree_is_the_variance():
    model = SparseKernelPCA(3, n_support=10, random_state=0).fit(ring())
    ax = plot.scree(model)
    assert np.array_equal([bar.get_height() for bar in ax.patches], model.explained_variance_ratio_)
    assert np.allclose(ax.lines[0].get_ydata()[-1], model.explained_variance_ratio_.sum())


def test_the_chart_marks_every_alarm():
    X = ring()
    detector = KernelNovelty(n_support=10, random_state=0).fit(X)
    X[[5, 150]] = 3.0
    ax = plot.control_chart(detector, X, time=np.arange(200) + 1000)
    alarms = np.flatnonzero(detector.predict(X) < 0)
    assert {5, 150} <= set(alarms)
    assert np.array_equal(dots(ax.collections[0])[:, 0], alarms + 1000)
    assert np.array_equal(ax.lines[0].get_ydata(), -detector.score_samples(X))
    assert ax.lines[1].get_ydata()[0] == -detector.offset_
    with pytest.raises(ValueError, match="time has 3 values for 200 rows"):
        plot.control_chart(detector, X, time=[1, 2, 3])


def test_bars_are_the_largest_contributions():
    detector = KernelNovelty(n_support=10, random_state=0).fit(ring())
    row = np.array([2.0, 0.1, 0.0])
    ax = plot.contribution_bars(detector, row, top=2)
    values = detector.contributions(row[None])[0]
    largest = np.argsort(-np.abs(values), kind="stable")[:2][::-1]
    assert [bar.get_width() for bar in ax.patches] == list(values[largest])
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{k}" for k in largest]
