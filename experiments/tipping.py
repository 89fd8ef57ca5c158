"""Tipping 2001: points kept on three clusters, and the reconstruction of the Pima table with 40 points.

    python experiments/tipping.py DATA

DATA holds pima_tr.csv (a header, the label last).
"""

import json
import sys
from pathlib import Path

import numpy as np
import skpca

CENTRES = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
ITERATIONS = 2000


def likelihood(model):
    """L without what the dimensions add, as the oracles have it."""
    found = json.loads(model.describe())
    noise, rank = found["method"]["noise"], found["method"]["rank"]
    return found["n"] * (found["report"]["objective"] + 0.5 * rank * np.log(2 * np.pi * noise)), found


def oracle(k, noise, kind):
    """The paper's updates (13) and (14), the latter in the form that does not cancel, with a weight for every point."""
    n = len(k)
    squared, w = k @ k, np.full(n, 1 / n)

    def moments():
        root = np.sqrt(w)
        b = np.eye(n) + k * np.outer(root, root) / noise
        inverse = np.linalg.inv(b)
        inverse = (inverse + inverse.T) / 2
        posterior = inverse * np.outer(root, root)
        share = (inverse * (b - np.eye(n))).sum(axis=1)
        value = -0.5 * (n * np.linalg.slogdet(b)[1] + (np.trace(k) - (posterior * squared).sum() / noise) / noise)
        return posterior, share, value

    for _ in range(ITERATIONS):
        posterior, share, _ = moments()
        means = np.maximum(((posterior @ squared) * posterior).sum(axis=1), 0) / noise**2
        if kind == "em":
            w = np.diag(posterior) + means / n
        else:
            w = np.where(share > 0, means / (n * np.maximum(share, 1e-300)), 0)
    return moments()[2], w


def clusters():
    counts, worst = [], {"em": np.inf, "fixed point": np.inf}
    shown = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = np.repeat(CENTRES, 30, axis=0) + 0.1 * rng.normal(size=(90, 2))
        model = skpca.fit(x, method="likelihood,noise=0.0625", kernel="rbf,gamma=16", scaling="none", components=9)
        ours, found = likelihood(model)
        assert found["report"]["converged"]
        counts.append(found["report"]["chosen"])
        k = skpca.kernel("rbf,gamma=16", x, x)
        for kind in worst:
            theirs, w = oracle(k, 0.0625, kind)
            worst[kind] = min(worst[kind], ours - theirs)
            if kind == "fixed point":
                shown.append((w > 1e-2 * w.max()).sum())
    print(f"clusters, 100 seeds: {np.mean(counts):.2f} +- {np.std(counts):.2f} points", np.bincount(counts))
    above = ", ".join(f"{kind} by {value:.3g}" for kind, value in worst.items())
    print(f"  after {ITERATIONS} iterations of theirs, ours is above at every seed: {above} at least")
    print(f"  the fixed point shows {np.mean(shown):.1f} points")


def pima(data):
    x = np.genfromtxt(data / "pima_tr.csv", delimiter=",", skip_header=1)[:, :-1]
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    kernel = "rbf,gamma=0.01"
    sizes = range(1, 26)
    models = [
        ("full", "exact", None),
        ("40 found", "likelihood,refit=false", 40),
        ("0.00305", "likelihood,refit=false,noise=0.00305", None),
        ("refitted", "likelihood,noise=0.00305", None),
    ]
    error = {}
    for name, method, support in models:
        rms = []
        for q in sizes:
            options = {"kernel": kernel, "scaling": "none", "center": False}
            model = skpca.fit(x, method=method, components=q, support=support, **options)
            rms.append(np.sqrt(model.score(x).mean()))
        error[name] = rms
        if method != "exact":
            ours, found = likelihood(model)
            noise = found["method"]["noise"]
            print(f"Pima, {name}: {found['m']} points at noise {noise:.6f}")
    for kind in ("em", "fixed point"):
        theirs, _ = oracle(skpca.kernel(kernel, x, x), noise, kind)
        print(f"  {kind}: ours above it by {ours - theirs:.3g} after {ITERATIONS} iterations")
    shown = (1, 2, 4, 8, 15, 25)
    print("  components " + " ".join(f"{q:>6}" for q in shown))
    for name, rms in error.items():
        print(f"  {name:<10} " + " ".join(f"{rms[q - 1]:6.3f}" for q in shown))


if __name__ == "__main__":
    clusters()
    pima(Path(sys.argv[1]))
