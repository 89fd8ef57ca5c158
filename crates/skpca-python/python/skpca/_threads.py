"""How many threads a call may use: `n_jobs` as scikit-learn's users know it, and the limits that others set.

    an integer above 0      so many
    -1, -2, …               all that are allowed, all but one, …
    None                    as `joblib.parallel_config` says; otherwise 1 in a worker of joblib, which has cores of
                            its own, and all that are allowed elsewhere

Allowed are the processor's cores, less what `OMP_NUM_THREADS`, threadpoolctl or a container leave: as in scikit-learn.
"""

from contextlib import contextmanager
from functools import wraps

from joblib import cpu_count
from joblib.parallel import get_active_backend
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads, _openmp_parallelism_enabled

from . import _core

# As many rows as the core handles without waking a thread: to ask joblib would take longer than they do.
FEW_ROWS = 256


def number(n_jobs):
    """The number of threads that `n_jobs` means here and now."""
    if n_jobs is None:
        backend, n_jobs = get_active_backend()
        if n_jobs is None:
            n_jobs = 1 if backend.nesting_level else -1
    return n_jobs if n_jobs > 0 else max(1, allowed() + 1 + n_jobs)


def allowed():
    """How many threads there may be at most."""
    return _openmp_effective_n_threads() if _openmp_parallelism_enabled() else cpu_count()


@contextmanager
def limited(n_jobs):
    """The core uses no more threads than `n_jobs` means."""
    before = _core.use_threads(number(n_jobs))
    try:
        yield
    finally:
        _core.use_threads(before)


def on_threads(method):
    """A method of an estimator that looks at rows, on the threads of its `n_jobs`."""

    @wraps(method)
    def call(self, X, *rest, **options):
        shape = getattr(X, "shape", None)
        if shape and shape[0] <= FEW_ROWS:
            return method(self, X, *rest, **options)
        with limited(self.n_jobs):
            return method(self, X, *rest, **options)

    return call
