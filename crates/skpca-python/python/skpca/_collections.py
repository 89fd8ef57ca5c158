"""Dask collections as rows: fitted estimators answer for each partition, when it is computed."""

from functools import wraps


def is_collection(X):
    """Whether X is Dask's; those who have none do not need Dask."""
    return type(X).__module__.partition(".")[0].startswith("dask") and hasattr(X, "__dask_graph__")


def over_partitions(method):
    """A method of an estimator that looks at rows. Of a Dask collection it is lazy, and keeps chunks and divisions."""

    @wraps(method)
    def call(self, X, *rest, **options):
        if not is_collection(X):
            return method(self, X, *rest, **options)
        if getattr(self, "lags", 0):
            raise TypeError(f"lags = {self.lags}: a partition does not know the rows before it; give X.compute()")
        from .dask import lazily

        return lazily(method, self, X)

    return call


def refuse(X, instead):
    """A collection is never computed unasked; `instead` says what to do with it."""
    if is_collection(X):
        raise TypeError(f"X is a Dask collection: {instead}; or give X.compute(), where it fits in memory")
