"""Plots of fitted estimators, one function each. Needs `pip install skpca[plot]` (matplotlib).

Every function draws on the given axis `ax`, or on a new one, and returns it, like scikit-learn's `Display` classes.
"""

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

__all__ = ["components", "contribution_bars", "control_chart", "frontier", "novelty_map", "scree"]

# Colours that colour-blind readers can tell apart.
BLUE, RED, GREY = "#3366aa", "#cc3311", "#888888"
# Points along each side of a map.
GRID = 150


def axis(ax):
    """Returns the given axis, or a new one."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("skpca.plot needs matplotlib: pip install 'skpca[plot]'") from error
    return plt.subplots()[1]


def input_names(estimator):
    """Returns the column names, or x0, x1, … as in scikit-learn."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{k}" for k in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def components(estimator, X, y=None, *, first=0, second=1, ax=None):
    """Plot rows in the plane of two components.

    Parameters
    ----------
    estimator : SparseKernelPCA
        A fitted estimator.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), default=None
        Class labels, shown as colours.
    first, second : int
        Indices of the components, from 0.
    ax : matplotlib Axes, default=None
        Where to draw; a new one by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    check_is_fitted(estimator)
    for name, k in [("first", first), ("second", second)]:
        if not 0 <= k < estimator.n_components_:
            raise ValueError(f"{name} = {k}: must be an integer from 0 to {estimator.n_components_ - 1}")
    features, ax = estimator.transform(X), axis(ax)
    if y is None:
        ax.scatter(features[:, first], features[:, second], s=12, color=BLUE)
    else:
        y = np.asarray(y)
        for label in np.unique(y):
            ax.scatter(*features[y == label][:, [first, second]].T, s=12, label=str(label))
        ax.legend(title="class")
    ax.set(xlabel=f"component {first + 1}", ylabel=f"component {second + 1}")
    return ax


def novelty_map(detector, X, *, columns=(0, 1), ax=None):
    """Plot the novelty score over a plane, with its threshold, the rows and the support points.

    Parameters
    ----------
    detector : KernelNovelty
        A fitted detector.
    X : array-like of shape (n_samples, n_features)
        Rows. Columns that are not drawn are fixed at their median.
    columns : pair of int
        The two columns that span the plane.
    ax : matplotlib Axes, default=None
        Where to draw; a new one by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    check_is_fitted(detector)
    X, names, ax = np.asarray(X, dtype=float), input_names(detector), axis(ax)
    a, b = columns
    if a == b or not all(0 <= k < X.shape[1] for k in (a, b)):
        raise ValueError(f"columns = {columns!r}: must be two different integers from 0 to {X.shape[1] - 1}")
    low, high = X[:, [a, b]].min(axis=0), X[:, [a, b]].max(axis=0)
    margin = 0.1 * np.where(high > low, high - low, 1)
    across, up = (np.linspace(low[k] - margin[k], high[k] + margin[k], GRID) for k in (0, 1))
    plane = np.tile(np.median(X, axis=0), (GRID * GRID, 1))
    plane[:, a], plane[:, b] = (grid.ravel() for grid in np.meshgrid(across, up))
    scores = -detector.score_samples(plane).reshape(GRID, GRID)
    shades = ax.contourf(across, up, scores, levels=15, cmap="Greys")
    ax.figure.colorbar(shades, ax=ax, label="novelty score")
    ax.contour(across, up, scores, levels=[-detector.offset_], colors=RED)
    ax.scatter(X[:, a], X[:, b], s=6, color=BLUE, alpha=0.5, label="rows")
    points = detector.support_vectors_
    ax.scatter(points[:, a], points[:, b], s=40, marker="D", facecolor="none", edgecolor="black", label="points kept")
    ax.legend()
    ax.set(xlabel=names[a], ylabel=names[b])
    return ax


def frontier(estimator, X, y=None, *, sizes=(2, 5, 10, 20, 50), ax=None):
    """Plot the fidelity against the number of points, fitting a clone of the estimator for each size.

    Parameters
    ----------
    estimator : SparseKernelPCA or KernelNovelty
        Parameters of the fits; it need not be fitted.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), default=None
        Class labels, for methods and kernels that need them.
    sizes : sequence of int
        Numbers of points.
    ax : matplotlib Axes, default=None
        Where to draw; a new one by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = axis(ax)
    fits = [clone(estimator).set_params(n_support=m, fidelity=None).fit(X, y) for m in sizes]
    kept = [len(one.support_vectors_) for one in fits]
    ax.plot(kept, [one.fidelity_ for one in fits], marker="o", color=BLUE)
    ax.set(xlabel="points kept", ylabel="fidelity: share of exact kernel PCA", xscale="log")
    ax.set_xticks(sorted(set(kept)), [str(m) for m in sorted(set(kept))], minor=False)
    ax.grid(alpha=0.3)
    return ax


def scree(estimator, *, ax=None):
    """Plot the share of the variance along each component, and the cumulative share.

    Parameters
    ----------
    estimator : SparseKernelPCA or KernelNovelty
        A fitted estimator.
    ax : matplotlib Axes, default=None
        Where to draw; a new one by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    check_is_fitted(estimator)
    shares, ax = estimator.explained_variance_ratio_, axis(ax)
    numbers = np.arange(1, len(shares) + 1)
    ax.bar(numbers, shares, color=BLUE, label="each")
    ax.plot(numbers, np.cumsum(shares), marker="o", color=GREY, label="up to it")
    ax.set(xlabel="component", ylabel="share of the variance", xticks=numbers)
    ax.legend()
    return ax


def control_chart(detector, X, *, time=None, ax=None):
    """Plot novelty scores in the order of the rows, with the limit; alarms are marked.

    Parameters
    ----------
    detector : KernelNovelty
        A fitted detector.
    X : array-like of shape (n_samples, n_features)
        Rows, the earliest first.
    time : array-like of shape (n_samples,), default=None
        Times of the rows; row numbers by default.
    ax : matplotlib Axes, default=None
        Where to draw; a new one by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    check_is_fitted(detector)
    scores, alarms, ax = -detector.score_samples(X), detector.predict(X) < 0, axis(ax)
    at = np.arange(len(scores)) if time is None else np.asarray(time)
    if len(at) != len(scores):
        raise ValueError(f"time has {len(at)} values for {len(scores)} rows")
    ax.plot(at, scores, color=BLUE, linewidth=0.8)
    ax.scatter(at[alarms], scores[alarms], color=RED, marker="x", zorder=3, label=f"{alarms.sum()} alarms")
    ax.axhline(-detector.offset_, color=GREY, linestyle="--", label="limit")
    ax.set(xlabel="row" if time is None else "time", ylabel="novelty score (SPE)", ylim=(0, None))
    ax.legend()
    return ax


def contribution_bars(detector, row, *, top=15, ax=None):
    """Plot the contributions of the inputs to the novelty of one row, the largest first.

    Parameters
    ----------
    detector : KernelNovelty
        A fitted detector.
    row : array-like of shape (n_features,) or (1, n_features)
        A row.
    top : int
        Number of inputs to draw.
    ax : matplotlib Axes, default=None
        Where to draw; a new one by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    check_is_fitted(detector)
    rows = np.asarray(row, dtype=float).reshape(1, -1)
    values, names, ax = detector.contributions(rows)[0], np.array(input_names(detector)), axis(ax)
    order = np.argsort(-np.abs(values), kind="stable")[:top][::-1]
    ax.barh(names[order], values[order], color=np.where(values[order] < 0, GREY, BLUE))
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(xlabel="contribution to the novelty of the row")
    return ax
