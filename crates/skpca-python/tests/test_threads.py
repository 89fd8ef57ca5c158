"""n_jobs: as many threads as scikit-learn's users expect, and the same bits on all of them."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
from skpca import KernelNovelty, SparseKernelPCA, _core, _threads
from threadpoolctl import threadpool_limits


@pytest.mark.parametrize("n_jobs, threads", [(None, 4), (-1, 4), (1, 1), (7, 7), (-2, 3), (-99, 1)])
def test_n_jobs_is_a_number_of_threads(n_jobs, threads, monkeypatch):
    monkeypatch.setattr(_threads, "allowed", lambda: 4)
    assert _threads.number(n_jobs) == threads


def test_none_is_what_joblib_says():
    with joblib.parallel_config(n_jobs=3):
        assert _threads.number(None) == 3
    with joblib.parallel_config(backend="threading", n_jobs=1):
        assert _threads.number(None) == 1


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_none_is_one_in_a_worker_of_joblib(backend):
    jobs = (joblib.delayed(_threads.number)(None) for _ in range(2))
    assert joblib.Parallel(n_jobs=2, backend=backend)(jobs) == [1, 1]


def test_threadpoolctl_limits_all_cores_but_not_a_number():
    with threadpool_limits(1):
        assert [_threads.number(n_jobs) for n_jobs in (None, -1, 2)] == [1, 1, 2]


def test_the_environment_limits_all_cores():
    code = "from skpca import _threads; print(_threads.number(None), _threads.number(-1), _threads.number(2))"
    run = [sys.executable, "-c", code]
    said = subprocess.run(run, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["1", "1", "2"]


def calls(estimator, x):
    """What an estimator does with rows, by name."""
    yield "fit", lambda: estimator.fit(x)
    for name in ("transform", "score", "score_samples", "predict", "p_values", "hotelling", "contributions", "slopes"):
        if hasattr(estimator, name):
            yield name, lambda name=name: getattr(estimator, name)(x)


@pytest.mark.parametrize("kind", [SparseKernelPCA, KernelNovelty])
def test_every_call_uses_the_threads_asked_for_and_gives_them_back(kind, monkeypatch):
    used, pool = [], _core.use_threads
    monkeypatch.setattr(_core, "use_threads", lambda number: used.append(number) or pool(number))
    x = np.random.default_rng(0).normal(size=(400, 3))
    for name, call in calls(kind(3, n_support=10, random_state=0, n_jobs=5), x):
        used.clear()
        call()
        assert 5 in used and used[-1] == 0, f"{name}: {used}"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted by Linux's /proc")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_there_are_no_more_threads_than_asked_for(n_jobs):
    code = f"""
import glob, numpy as np
from skpca import SparseKernelPCA
x = np.random.default_rng(0).normal(size=(3000, 10))
SparseKernelPCA(10, n_jobs={n_jobs}, random_state=0).fit(x).transform(x)
names = [open(name).read() for name in glob.glob("/proc/self/task/*/comm")]
print(sum(name.startswith("skpca-") for name in names))
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert int(said) == n_jobs


def test_bits_do_not_depend_on_threads():
    x = np.random.default_rng(1).normal(size=(3000, 5))
    one, three = (SparseKernelPCA(5, n_support=20, random_state=0, n_jobs=n_jobs).fit(x) for n_jobs in (1, 3))
    for name, values in one._model.arrays().items():
        assert np.array_equal(values, three._model.arrays()[name]), name
    assert np.array_equal(one.transform(x), three.transform(x))
