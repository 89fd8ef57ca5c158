"""A fit of more rows than a worker's memory on Dask, beside the streamed fit of the same files and linear peers.

    pip install 'skpca[dask]' dask-ml
    python benchmarks/dask_scaling.py --json results/dask-scaling.json      # 20,000,000 × 10 in 100 files, two workers
    python benchmarks/dask_scaling.py --vary                                # rows, columns, points, partitions, workers

The rows are made once, as one .npy file of 32-bit numbers per partition, and everybody reads those files in each pass:
Dask's workers with `numpy.load`, the program as a stream on as many threads as there are workers, scikit-learn's
`IncrementalPCA` file by file. Without dask-ml its lines are left out. Times of Dask are without the start of workers,
those of the program with its own.
"""

import argparse
import json
import logging
import os
import subprocess
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
import skpca
from dask.delayed import delayed
from dask.distributed import Client, LocalCluster
from skpca.dask import SparseKernelPCA

COMPONENTS, SEED = 5, 0
BASE = {"rows": 2_000_000, "columns": 10, "support": 50, "partitions": 50, "workers": 2}
# What is varied, one at a time, and the values it takes beside that of `BASE`.
VARIED = {
    "rows": [1_000_000, 4_000_000],
    "columns": [5, 20, 40],
    "support": [25, 100, 200],
    "partitions": [10, 200],
    "workers": [1],
}


def make(directory, case):
    """Boxes around eight centres, a file per partition; returns the files."""
    centres = np.random.default_rng(5).random((8, case["columns"]), dtype=np.float32)
    count = case["rows"] // case["partitions"]
    files = []
    for i in range(case["partitions"]):
        random = np.random.default_rng([11, i])
        files.append(Path(directory) / f"part-{i:05}.npy")
        np.save(files[-1], random.random((count, case["columns"]), dtype=np.float32) + centres[i % 8])
    return files


def lazy(files, case):
    """The files as an array, each loaded when it is looked at."""
    shape = case["rows"] // case["partitions"], case["columns"]
    load = delayed(np.load, pure=True)
    return da.concatenate([da.from_delayed(load(str(file)), shape, np.float32) for file in files])


def peak(dask_worker=None):
    """Most memory that a worker's process has had, in bytes."""
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def timed(name, call):
    begin = time.perf_counter()
    found = call()
    seconds = time.perf_counter() - begin
    print(f"{name}: {seconds:.1f} s", flush=True)
    return found, seconds


def on_workers(case, memory, files, fit):
    """What `fit` makes of the files on new workers, its seconds, the workers' peaks and how often one was lost."""
    workers = case["workers"]
    limits = dict(n_workers=workers, threads_per_worker=1, memory_limit=memory, silence_logs=logging.CRITICAL)
    with LocalCluster(**limits, dashboard_address=None) as cluster, Client(cluster) as client:
        before = set(client.run(__import__, "skpca.dask"))
        X = lazy(files, case)
        timed("reading once", lambda: X.map_blocks(lambda block: block[:1, :1], chunks=(1, 1)).compute())
        try:
            made, seconds = timed(fit.__name__, lambda: fit(X))
        except Exception as error:
            print(f"{fit.__name__}: {error}")
            return None, {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
        peaks = client.run(peak)
        gigabytes = [round(bytes / 1e9, 2) for bytes in peaks.values()]
        return made, {"seconds": seconds, "peaks_gb": gigabytes, "workers_lost": len(before - set(peaks))}


def ours(case):
    def skpca_dask(X):
        options = dict(method="landmarks", n_support=case["support"], scaling="standard", random_state=SEED)
        return SparseKernelPCA(COMPONENTS, **options).fit(X)

    return skpca_dask


def streamed(program, files, case, memory):
    """The program's fit of the same files, which it may not hold."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.skpca"
        flags = {"components": COMPONENTS, "method": "landmarks", "support": case["support"], "seed": SEED}
        flags |= {"scale": "standard", "threads": case["workers"], "memory": memory}
        words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
        command = [program, "fit", str(files[0].parent), "-o", str(path), *words, "--json"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (_, status, usage), seconds = timed("skpca fit, streamed", lambda: os.wait4(child.pid, 0))
        if status:
            raise SystemExit(f"{program} ended with {os.waitstatus_to_exitcode(status)}")
        return skpca.SparseKernelPCA.load(path), {"seconds": seconds, "peak_gb": round(usage.ru_maxrss / 1e6, 2)}


def incremental(files):
    """scikit-learn's linear PCA, file by file."""
    from sklearn.decomposition import IncrementalPCA

    pca = IncrementalPCA(COMPONENTS)
    for file in files:
        pca.partial_fit(np.load(file))


def of_dask_ml():
    """Its linear ones, where it is installed."""
    try:
        from dask_ml import decomposition
    except ImportError as error:
        print(f"without dask-ml: {error}")
        return []

    def dask_ml_pca(X):
        return decomposition.PCA(COMPONENTS, svd_solver="tsqr").fit(X)

    def dask_ml_incremental_pca(X):
        return decomposition.IncrementalPCA(COMPONENTS).fit(X)

    def dask_ml_randomized_pca(X):
        return decomposition.PCA(COMPONENTS, svd_solver="randomized", random_state=0).fit(X)

    return [dask_ml_pca, dask_ml_incremental_pca, dask_ml_randomized_pca]


def compare(case, options):
    """The one large case, with more of it each time."""
    results = {"case": case, "memory": options.memory, "stream": options.stream, "instructions": skpca._core.level()}
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        files = make(directory, case)
        # The files are in the page cache then, for all.
        streamed(options.program, files, case, options.stream)
        here, results["skpca_fit_streamed"] = streamed(options.program, files, case, options.stream)
        there, results["skpca_dask"] = on_workers(case, options.memory, files, ours(case))
        rows = np.load(files[0])[:1000].astype(np.float64)
        expected = here.transform(rows)
        results["ratio"] = results["skpca_dask"]["seconds"] / results["skpca_fit_streamed"]["seconds"]
        results["same_support"] = bool(np.array_equal(here.support_, there.support_))
        results["features_differ_by"] = float(np.abs(there.transform(rows) - expected).max() / np.abs(expected).max())
        yield results
        results["sklearn_incremental_pca"] = {"seconds": timed("IncrementalPCA", lambda: incremental(files))[1]}
        yield results
        for fit in of_dask_ml():
            _, results[fit.__name__] = on_workers(case, options.memory, files, fit)
            yield results


def vary(options):
    """Small cases, each unlike the first in one thing."""
    results = []
    for case in [BASE, *({**BASE, name: value} for name, values in VARIED.items() for value in values)]:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            _, found = on_workers(case, options.memory, make(directory, case), ours(case))
        results.append({**case, **found})
        yield results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--support", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB", help="of each worker")
    parser.add_argument("--stream", default="1GB", help="of the program, which streams what does not fit")
    parser.add_argument("--program", default="skpca")
    parser.add_argument("--directory", default=None, help="where the files go [default: a temporary directory]")
    parser.add_argument("--vary", action="store_true", help="small cases, each unlike the first in one thing")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    case = {name: getattr(options, name) for name in BASE}
    for results in vary(options) if options.vary else compare(case, options):
        if options.json:
            options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
