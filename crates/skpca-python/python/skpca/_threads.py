"""The number of threads of a call: `n_jobs` with scikit-learn's meaning, and external limits.

    an integer above 0      this many
    -1, -2, …               all available, all but one, …
    None                    as `joblib.parallel_config` says; otherwise 1 in a worker of joblib, which has cores of
                            its own, and all available elsewhere

As in scikit-learn, available are the processor's cores, limited by `OMP_NUM_THREADS`, threadpoolctl or a container.
"""

from contextlib import contextmanager
from functools import wraps

from joblib import cpu_count
from joblib.parallel import get_active_backend
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads, _openmp_parallelism_enabled

from . import _core

# Number of rows up to which the core uses one thread: asking joblib would take longer than the computation.
FEW_ROWS = 256


def number(n_jobs):
    """Resolves `n_jobs` to the current number of threads."""
    if n_jobs is None:
        backend, n_jobs = get_active_backend()
        if n_jobs is None:
            n_jobs = 1 if backend.nesting_level else -1
    return n_jobs if n_jobs > 0 else max(1, allowed() + 1 + n_jobs)


def allowed():
    """Returns the maximum number of threads."""
    return _openmp_effective_n_threads() if _openmp_parallelism_enabled() else cpu_count()


@contextmanager
def limited(n_jobs):
    """Limits the threads of the core to `n_jobs`."""
    before = _core.use_threads(number(n_jobs))
    try:
        yield
    finally:
        _core.use_threads(before)


def on_threads(method):
    """Makes an estimator's method of rows run on `n_jobs` threads."""

    @wraps(method)
    def call(self, X, *rest, **options):
        shape = getattr(X, "shape", None)
        if shape and shape[0] <= FEW_ROWS:
            return method(self, X, *rest, **options)
        with limited(self.n_jobs):
            return method(self, X, *rest, **options)

    return call
