"""Estimators that fit Dask arrays and dataframes without moving the rows.

    from dask.distributed import Client
    from skpca.dask import SparseKernelPCA

    Client("scheduler:8786")
    pca = SparseKernelPCA(n_components=5, n_support=50, random_state=0).fit(X)     # X: a Dask array or dataframe
    features = pca.transform(X)                                                    # lazy, in the chunks of X

A fit runs on the local machine. It needs some rows by index, and sums over all rows: a sum is a tree of tasks over the
partitions, whose order does not depend on the workers, so that the same partitions give the same bits. Only sums of
m x m numbers and samples of rows are transferred. A task computes on one thread: give workers as many threads as they
have cores. If X does not fit in the memory of the workers it is recomputed for each pass; otherwise persist it.

Install with ``pip install 'skpca[dask]'``.
"""

import time
import warnings
from threading import Lock
from uuid import uuid4

import dask
import numpy as np
from dask.delayed import delayed
from joblib import parallel_config
from sklearn.utils.multiclass import check_classification_targets

from . import _core, _estimators, _given, _novelty, _parameters, _preimage, _spec, _threads
from ._collections import is_collection
from .exceptions import WorkerWarning

__all__ = ["KernelNovelty", "SparseKernelPCA"]

# Number of sums that one task merges; results depend on it in their last bits.
SPLIT_EVERY = 8
# Size in bytes of the cache of gathered rows: several steps of a fit need the same rows.
KEPT = 256_000_000
# Number of rows sampled for steps after the fit: regressions for inverses, correlations of a method's own components.
BESIDE = 20_000


class Fits:
    """Mixin that fits Dask collections. Not for direct use."""

    def _fit(self, X, y, sample_weight=None):
        if not is_collection(X):
            return super()._fit(X, y, sample_weight)
        if sample_weight is not None:
            raise ValueError("sample_weight: rows of a Dask collection cannot have weights; give them as an array")
        _parameters.check(self)
        if _given.is_given(self.kernel):
            raise ValueError("kernel: a function or a precomputed matrix needs all rows in one place")
        self._check_rows(dense=False)
        rows = Partitions(X, type(self).__name__ if self.verbose else None)
        self._know(rows.names, rows.shape[1])
        labels = rows.with_labels(y) if _spec.labelled(self) else None
        with _threads.limited(self.n_jobs), _parameters.renamed(self):
            self._fit_checked(rows, labels)
        some = rows.sample(BESIDE) if self._looks_at_rows() else self.support_vectors_
        self._fitted_to(some, None, len(rows))
        return some, None

    def _know(self, names, width):
        """Sets the attributes that `validate_data` sets from the columns."""
        self.n_features_in_ = width
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _looks_at_rows(self):
        """Whether steps after the fit need rows: a regression for inverses, or correlations of components."""
        inverse = getattr(self, "inverse", "fixed-point")
        regresses = inverse not in (None, "fixed-point") or inverse is None and not _preimage.applies(self._model)
        return regresses or self._frame is not None


def as_local(kind):
    """Copies the docstring of a local estimator to one that fits Dask collections."""

    def documented_as(ours):
        ours.__doc__ = kind.__doc__ and kind.__doc__.replace("{array-like, sparse matrix}", "Dask collection or array")
        return ours

    return documented_as


@as_local(_estimators.SparseKernelPCA)
class SparseKernelPCA(Fits, _estimators.SparseKernelPCA):
    pass


@as_local(_novelty.KernelNovelty)
class KernelNovelty(Fits, _novelty.KernelNovelty):
    pass


class Partitions:
    """The rows of a Dask collection with the interface that the core expects: `shape`, `gather` and `fold`.

    Row numbers run through all partitions, in order.
    """

    def __init__(self, X, verbose=None):
        self.parts = partitions(X)
        self.verbose = verbose
        self.names = None if not hasattr(X, "columns") else list(X.columns)
        self.labels = None
        self._client = current_client()
        self._kept, self._lock = [], Lock()
        looks = self._compute([task("rows", look, part, i) for i, part in enumerate(self.parts)])
        self._check_widths(looks)
        self._check_machines(looks)
        counts = [one["rows"] for one in looks]
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.shape = (int(self.starts[-1]), looks[0]["columns"])
        self._say("rows", f"{self.shape[0]} in {len(self.parts)} partitions")

    def __len__(self):
        return self.shape[0]

    def with_labels(self, y):
        """Stores and returns the class index of every row."""
        if y is None:
            raise ValueError("y: a method or a kernel needs the class of each row")
        y = np.asarray(y.compute() if is_collection(y) else y)
        if y.shape != (len(self),):
            raise ValueError(f"y has shape {y.shape}, expected one label for each of the {len(self)} rows")
        check_classification_targets(y)
        # Classes are numbered in order of appearance, as in the core.
        _, first, codes = np.unique(y, return_index=True, return_inverse=True)
        self.labels = np.argsort(np.argsort(first))[codes].astype(np.int64)
        return self.labels

    def sample(self, count):
        """Returns up to `count` rows, the same each time, in order."""
        n = len(self)
        return self.gather(np.sort(np.random.default_rng(0).choice(n, min(n, count), replace=False)))

    def gather(self, numbers):
        """Returns the rows with these numbers, in that order."""
        wanted, place = np.unique(numbers, return_inverse=True)
        rows, missing = np.empty((len(wanted), self.shape[1])), np.ones(len(wanted), dtype=bool)
        for known, values in list(self._kept):
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            found = missing & (known[at] == wanted)
            rows[found] = values[at[found]]
            missing &= ~found
        if missing.any():
            rows[missing] = self._fetch(wanted[missing])
        return rows[place]

    def _fetch(self, wanted):
        """Fetches rows with increasing numbers from the workers."""
        begin = time.perf_counter()
        bounds = np.searchsorted(wanted, self.starts)
        tasks = [
            task("gather", take, part, (i, self.names), wanted[low:high] - self.starts[i])
            for i, (part, low, high) in enumerate(zip(self.parts, bounds[:-1], bounds[1:], strict=True))
            if high > low
        ]
        rows = np.concatenate(self._compute(tasks))
        self._say("gather", f"{len(rows)} rows", begin)
        with self._lock:
            self._kept.append((wanted, rows))
            while sum(rows.nbytes for _, rows in self._kept) > KEPT:
                self._kept.pop(0)
        return rows

    def fold(self, stage, sent):
        """Computes the sum of a pass over all rows; pass and sum are bytes."""
        begin = time.perf_counter()
        name, counts = stage.replace(" ", "-"), np.diff(self.starts)
        labelled = _core.asks_for_labels(sent)
        travelling = task("pass", bytes, sent)
        of_part = (lambda first, count: self.labels[first : first + count]) if labelled else lambda *_: None
        sums = [
            task(name, run, travelling, part, (i, self.names), int(first), of_part(first, count))
            for i, (part, first, count) in enumerate(zip(self.parts, self.starts, counts, strict=False))
            if count
        ]
        while len(sums) > 1:
            groups = [sums[at : at + SPLIT_EVERY] for at in range(0, len(sums), SPLIT_EVERY)]
            sums = [task(f"{name}-merge", merge, travelling, group) for group in groups]
        (found,) = self._compute(sums)
        self._check_levels(_core.levels(found))
        self._say(stage, f"all {len(self)} rows", begin)
        return found

    def _compute(self, tasks):
        if self._client is None:
            return dask.compute(*tasks)
        return self._client.gather(self._client.compute(tasks))

    def _say(self, stage, what, begin=None):
        if self.verbose:
            took = "" if begin is None else f", {time.perf_counter() - begin:.1f} s"
            print(f"[{self.verbose}] {stage}: {what}{took}", flush=True)

    def _check_widths(self, looks):
        expected = self.names or next((one["names"] for one in looks if one["names"]), None)
        width = next((one["columns"] for one in looks if one["rows"]), looks[0]["columns"])
        for i, one in enumerate(looks):
            if one["names"] is not None and sorted(map(str, one["names"])) != sorted(map(str, expected)):
                raise ValueError(f"partition {i} has the columns {one['names']}, expected {expected}")
            if one["rows"] and one["columns"] != width:
                raise ValueError(f"partition {i} has {one['columns']} columns, expected {width}")
        if not any(one["rows"] for one in looks):
            raise ValueError(f"X has no rows in any of its {len(looks)} partitions")

    def _check_machines(self, looks):
        for i, one in enumerate(looks):
            if one["version"] != _core.__version__:
                raise RuntimeError(
                    f"partition {i} is on a worker with skpca {one['version']}, here is skpca {_core.__version__}:"
                    " every machine needs the same version"
                )
        self._check_levels({one["level"] for one in looks})

    def _check_levels(self, levels):
        others = sorted(set(levels) - {_core.level()})
        if others:
            message = (
                f"workers compute with {', '.join(others)}, here it is {_core.level()}: rounding differs between them,"
                " and the last digits of a model depend on which worker has which partition"
            )
            warnings.warn(message, WorkerWarning, stacklevel=2)


def current_client():
    """Returns the client of the current cluster, if there is one; Dask's local schedulers need none."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def partitions(X):
    """Returns the partitions of a collection, in order, each with all columns."""
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X: expected an array of 2 dimensions, found {X.ndim}")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    return list(X.to_delayed())


def task(name, function, *arguments):
    """Creates a task with a descriptive name for the dashboard."""
    return delayed(function, pure=False)(*arguments, dask_key_name=f"skpca-{name}-{uuid4().hex}")


# The following functions run on workers. Each task uses one thread: there are as many tasks as cores.


def look(part, i):
    """Describes a partition and its worker, before a fit."""
    rows = part if hasattr(part, "columns") else np.atleast_1d(part)
    return {
        "rows": len(rows),
        "columns": rows.shape[1] if rows.ndim == 2 else 1,
        "names": list(part.columns) if hasattr(part, "columns") else None,
        "version": _core.__version__,
        "level": _core.level(),
    }


def values(part, i, names):
    """Converts a partition to an array for the core, with columns in the order of `names`."""
    try:
        return np.ascontiguousarray(part if names is None else part[names], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {i}: expected real numbers: {error}") from error


def take(part, which, numbers):
    """Returns rows of a partition, by their indices in it."""
    i, names = which
    rows = values(part.iloc[numbers] if hasattr(part, "iloc") else part[numbers], i, names)
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        value = rows[row, column]
        raise ValueError(f"partition {i}: row {numbers[row]}, column {column} (from 0): {value} is not a finite number")
    return rows


def run(sent, part, which, first, labels):
    """Computes the sum of a pass over a partition whose first row has the number `first`."""
    i, names = which
    _core.use_threads(1)
    try:
        return _core.run_pass(sent, values(part, i, names), first, labels)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith("partition ") else f"partition {i}: {text}") from error


def merge(sent, sums):
    """Merges the sums of several partitions, in order."""
    _core.use_threads(1)
    return _core.merge_sums(sent, sums)


def lazily(method, estimator, X):
    """Applies a method of a fitted estimator to each partition lazily."""
    name = method.__name__.lstrip("_")
    few = estimator.support_vectors_[:1] if hasattr(estimator, "support_vectors_") else estimator.mean_[None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = method(estimator, few)
    carried = delayed(estimator, pure=False, name=f"skpca-model-{uuid4().hex}")
    if hasattr(X, "chunks"):
        return over_chunks(method, (estimator, carried), X, answer)
    meta = frame(answer[:0], name, None, estimator)
    return X.map_partitions(answered_frame, name, carried, meta=meta)


def over_chunks(method, estimator, X, answer):
    """Applies a method to the chunks of an array; `answer` is its result for a few rows."""
    given, carried = estimator
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    rest = {"drop_axis": 1} if answer.ndim == 1 else {"chunks": (X.chunks[0], (answer.shape[1],))}
    dtype = answer.astype(X.dtype).dtype if method.__name__ == "transform" and X.dtype == np.float32 else answer.dtype
    return X.map_blocks(
        answered,
        method.__name__,
        carried,
        shape=answer.shape[1:],
        dtype=dtype,
        meta=np.empty((0, *answer.shape[1:]), dtype=dtype),
        name=f"skpca-{method.__name__}-{uuid4().hex}",
        **rest,
    )


def answered(rows, name, estimator, shape=None):
    """Applies a method to some rows, possibly none."""
    if len(rows) == 0:
        return np.empty((0, *shape))
    with parallel_config(n_jobs=1):
        return getattr(estimator, name)(rows)


def answered_frame(rows, name, estimator):
    """Applies a method to a dataframe; the result has the same index."""
    width = estimator.n_components_ if name == "transform" else None
    shape = () if width is None else (width,)
    return frame(answered(rows, name, estimator, shape), name, rows.index, estimator)


def frame(answer, name, index, estimator):
    """Converts an answer to a dataframe or a series."""
    import pandas as pd

    if answer.ndim == 1:
        return pd.Series(answer, index=index, name=name)
    return pd.DataFrame(answer, index=index, columns=estimator.get_feature_names_out())
