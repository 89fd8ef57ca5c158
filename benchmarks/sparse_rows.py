"""Fits and scores 20,000 sparse rows of 50,000 columns, 100 entries each: within the memory that is promised, and as
dense rows are. Also by a detector.

python benchmarks/sparse_rows.py
"""

import itertools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse

N, D, EACH = 20_000, 50_000, 100
# The bounds: the whole process, in millions of bytes; the largest difference, as a share of the largest value.
MEGABYTES, ERROR = 500, 1e-10
RESULTS = Path(__file__).parent / "results" / "sparse-rows.json"


def table():
    """Rows of ten topics, each of which prefers some columns."""
    rng = np.random.default_rng(0)
    stride = D // EACH
    topics = rng.integers(10, size=(N, 1))
    own = rng.integers(0, stride // 10, (N, EACH)) + topics * (stride // 10)
    offsets = np.where(rng.random((N, EACH)) < 0.7, own, rng.integers(0, stride, (N, EACH)))
    columns = (offsets + np.arange(EACH) * stride).astype(np.int32)
    return scipy.sparse.csr_array(
        (rng.random(N * EACH), columns.ravel(), np.arange(0, N * EACH + 1, EACH)), shape=(N, D)
    )


def megabytes():
    """The most memory that this process has had, in millions of bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def run(kind, kernel):
    """Fits and scores, then checks some rows against the same dense."""
    import skpca

    X = table()
    parameters = dict(method="landmarks", n_support=100, kernel=kernel, random_state=0)
    estimator = getattr(skpca, kind)(10, **parameters)
    answer = estimator.transform if kind == "SparseKernelPCA" else estimator.score_samples
    facts = {"estimator": kind, "kernel": kernel, "megabytes before": megabytes()}
    start = time.perf_counter()
    estimator.fit(X)
    fitted = time.perf_counter()
    found = answer(X)
    facts |= {"fit seconds": fitted - start, "score seconds": time.perf_counter() - fitted}
    # Before anything is made dense.
    facts["megabytes"] = megabytes()
    dense = answer(X[:200].toarray())
    facts["error"] = float(np.abs(found[:200] - dense).max() / np.abs(dense).max())
    print(json.dumps(facts))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(*sys.argv[1:])
    else:
        results = []
        for case in itertools.product(("SparseKernelPCA", "KernelNovelty"), ("cosine", "rbf")):
            done = subprocess.run([sys.executable, __file__, *case], check=True, stdout=subprocess.PIPE, text=True)
            results.append(json.loads(done.stdout))
            print(results[-1])
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        missed = [fact for fact in results if fact["megabytes"] >= MEGABYTES or fact["error"] >= ERROR]
        assert not missed, missed
