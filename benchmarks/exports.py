"""Exported graphs: how large they are beside model files and scikit-learn's kernel PCA, and how fast beside ourselves.

python benchmarks/exports.py

A graph answers features, score, T2, p-value and alarm in one call: our own time is that of the same answers. Calls
take turns, so that a busy machine slows both.
"""

import json
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import skpca
from skl2onnx import to_onnx
from sklearn.decomposition import KernelPCA

RESULTS = Path(__file__).parent / "results" / "exports.json"
ROWS, TRAINING, REPEATS = 100_000, 5_000, 15
# The bounds: our size over that of our model file, the peer's over ours, our time over the graph's.
LARGER, SMALLER, SPEED = 2, 50, 0.3
CASES = [
    dict(d=10, support=15, components=2),
    dict(d=10, support=15, components=5),
    dict(d=10, support=50, components=5),
    dict(d=10, support=15, components=3, kernel="laplacian"),
    dict(d=10, support=15, components=3, kernel="polynomial"),
    dict(d=10, support=15, components=3, kernel="cosine"),
    dict(d=64, support=15, components=5),
    dict(d=64, support=100, components=10),
]


def table(seed, n, d):
    """A curved surface of three dimensions among d columns, with noise."""
    rng = np.random.default_rng(seed)
    along = np.random.default_rng(9).normal(size=(3, d))
    return np.tanh(rng.normal(size=(n, 3)) @ along) + 0.1 * rng.normal(size=(n, d))


def interleaved(jobs):
    """The seconds of each job, in turns."""
    seconds = {name: [] for name in jobs}
    for _ in range(REPEATS):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    return {name: (float(np.min(times)), float(np.median(times))) for name, times in seconds.items()}


def ours(model, X):
    """What a graph answers."""
    model.transform(X)
    score = model.score(X)
    return model.p_values(score), score > 0.0


def peer_size(X, components):
    """The size of scikit-learn's kernel PCA of the same rows."""
    peer = KernelPCA(components, kernel="rbf", eigen_solver="randomized", random_state=0).fit(X)
    return len(to_onnx(peer, X[:1].astype(np.float32)).SerializeToString())


def measure(d, support, components, kernel="rbf"):
    X, rows = table(0, TRAINING, d), table(1, ROWS, d)
    options = dict(method="landmarks", support=support, components=components, scaling="standard")
    model = skpca.fit(X, kernel=kernel, **options)
    with tempfile.NamedTemporaryFile(suffix=".skpca") as file:
        model.save(file.name)
        saved = os.path.getsize(file.name)
    peer = peer_size(X, components)
    for double in (False, True):
        graph = model.export("onnx", double=double)
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        queried = rows if double else rows.astype(np.float32)

        def run(session=session, queried=queried):
            session.run(None, {"X": queried})

        seconds = interleaved({"ours": lambda queried=queried: ours(model, queried), "graph": run})
        fact = {
            "case": dict(d=d, support=support, components=components, kernel=kernel, bits=64 if double else 32),
            "bytes": len(graph),
            "over model file": len(graph) / saved,
            "peer over graph": peer / len(graph),
            "milliseconds": {name: [1e3 * value for value in values] for name, values in seconds.items()},
            "speed, best and median": [seconds["ours"][k] / seconds["graph"][k] for k in (0, 1)],
        }
        print(json.dumps(fact), flush=True)
        yield fact


def main():
    facts = [fact for case in CASES for fact in measure(**case)]
    about = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    about |= {"onnxruntime": onnxruntime.__version__, "rows": ROWS, "training rows": TRAINING}
    RESULTS.write_text(json.dumps({"about": about, "facts": facts}, indent=1) + "\n")
    for name, missed in {
        f"larger than {LARGER} model files": [f for f in facts if f["over model file"] > LARGER],
        f"not {SMALLER} times smaller than the peer": [f for f in facts if f["peer over graph"] < SMALLER],
        f"slower than {SPEED} of ourselves": [f for f in facts if f["speed, best and median"][0] < SPEED],
    }.items():
        print(f"{name}: {len(missed)} of {len(facts)}", *(f["case"] for f in missed), sep="\n  ")


if __name__ == "__main__":
    main()
