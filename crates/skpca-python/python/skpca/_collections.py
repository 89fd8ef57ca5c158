"""Dask collections as rows: methods of fitted estimators are applied lazily to each partition."""

from functools import wraps


def is_collection(X):
    """Whether X is a Dask collection; works without Dask installed."""
    return type(X).__module__.partition(".")[0].startswith("dask") and hasattr(X, "__dask_graph__")


def over_partitions(method):
    """Makes an estimator's method of rows lazy on Dask collections, where it keeps chunks and divisions."""

    @wraps(method)
    def call(self, X, *rest, **options):
        if not is_collection(X):
            return method(self, X, *rest, **options)
        if getattr(self, "lags", 0):
            raise TypeError(f"lags = {self.lags}: the rows before a partition are not known; give X.compute()")
        from .dask import lazily

        return lazily(method, self, X)

    return call


def reject_collection(X, instead):
    """Rejects Dask collections, which are never computed implicitly; `instead` says what to do."""
    if is_collection(X):
        raise TypeError(f"X is a Dask collection: {instead}; or give X.compute(), if it fits in memory")
