"""Do `n_jobs` and joblib share the cores as they say?

    python benchmarks/sharing.py [--fits 6] [--rows 50000] [--repeats 3]

`n_jobs=1`: CPU time over wall time of a fit; 1 is one core, more is a promise broken (a busy machine gives less).
`Parallel(2)` over fits: wall time over half of what the same fits take one after the other on one core; 1 is perfect
sharing. On a busy machine wall times mean little; CPU time over that of the fits alone, and the threads of the workers,
still do.
"""

import argparse
import os
import time

import joblib
import numpy as np
from skpca import SparseKernelPCA


def table(rows):
    return np.random.default_rng(0).normal(size=(rows, 20))


def fit(rows, n_jobs, seed):
    """Wall and CPU seconds of one fit in this process, and the threads that it has had."""
    x = table(rows)
    pca = SparseKernelPCA(10, n_support=50, method="greedy", random_state=seed, n_jobs=n_jobs)
    wall, cpu = time.perf_counter(), time.process_time()
    pca.fit(x)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return wall, cpu, sum(name.startswith("skpca-") for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=6)
    parser.add_argument("--rows", type=int, default=50000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    fit(options.rows, 1, 0)
    with joblib.Parallel(n_jobs=2) as parallel:
        parallel(joblib.delayed(fit)(500, None, 0) for _ in range(4))
        for _ in range(options.repeats):
            start = time.perf_counter()
            alone = np.array([fit(options.rows, 1, seed) for seed in range(options.fits)])
            serial = time.perf_counter() - start
            start = time.perf_counter()
            shared = np.array(parallel(joblib.delayed(fit)(options.rows, None, seed) for seed in range(options.fits)))
            wall = time.perf_counter() - start
            print(
                f"n_jobs=1: CPU / wall {alone[:, 1].sum() / alone[:, 0].sum():.3f}; Parallel(2): wall / perfect"
                f" {wall / (serial / 2):.3f}, CPU / CPU alone {shared[:, 1].sum() / alone[:, 1].sum():.3f},"
                f" threads of each worker {int(shared[:, 2].max())}",
                flush=True,
            )


if __name__ == "__main__":
    main()
