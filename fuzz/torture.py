"""Stress test of fits: degenerate tables × methods × kernels × targets, every fit checked against numpy.

    python torture.py --fits 20000 --seed 1            a run: summary on standard output, findings in findings.jsonl
    python torture.py --only l1,refit=false/sigmoid    methods and kernels with these prefixes (either may be empty)
    python torture.py --methods l1 l21 threshold       these methods, with all their specs
    python torture.py --replay '{"table": …}'          one case, with all details
    python torture.py --selftest 500                   are damaged results detected? counts for each kind of damage

Fits run in worker processes. A fit that exceeds the time limit is recorded as a hang and its worker is replaced; a
worker that dies is recorded as a crash. The numpy computations are independent of the core: kernel matrices from their
definitions, kernel PCA by a dense eigensolver, everything else from the formulas

    μ = mean of k_z(x)     K_zz β = μ     Y = (K_xz − 1μᵀ) A     EᵀAᵀK_zz A E = I     captured = ‖Y E‖²
    fidelity = captured / Σ_{k ≤ q} λ_k(K̃)      score(x) = k(x,x) − 2 βᵀk_z(x) + μᵀβ − ‖Eᵀ(k_z(x) − μ)A‖²

How tolerances are chosen: two correct programs agree on a kernel value only up to rounding. That rounding error is
estimated for every value (a few ulps of the value and of the terms summed to get it) and propagated through each
formula above to first order. It grows with the coefficients, so an ill-conditioned support gets a wide tolerance and a
well-conditioned one a narrow tolerance. A check fails if the difference is above a floor (such as 1e-6 of a fidelity)
plus SAFETY times that rounding. If the rounding reaches a percent, the value is not checked. Checks whose tolerance is
mostly rounding are counted as loose, and `--selftest` shows which errors would be detected.
"""

import argparse
import collections
import copy
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field

os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import skpca
from skpca import _registry

EPS = np.finfo(float).eps
# Rounding estimates are typical errors, not bounds: a difference above this multiple of them is not rounding.
SAFETY = 32.0
# Seconds for a fit, and for all calls on the model and the checks, in wall time. On a busy machine, a worker that has
# got less CPU time than that may continue, up to PATIENCE times as long.
FIT_LIMIT = 20.0
CHECK_LIMIT = 60.0
PATIENCE = 10
# CPU seconds above which the fit of a table of at most SMALL rows is reported as slow.
SLOW = 2.0
SMALL = 100
# Components must be orthonormal to this tolerance.
ORTHONORMAL = 1e-8
# Components may be missing if their share of the variance, or the share of the direction in the span of the points, is
# below this.
UNRESOLVED = 1e-6
# Memory limit of a worker in bytes.
MEMORY = 6 << 30
# After this many hangs of one method with one kernel and kind of table, such cases are skipped.
HANGS = 2
# Share of the fits that are repeated.
TWICE = 0.1

METHODS = {
    "exact": ["exact"],
    "landmarks": ["landmarks", *(f"landmarks,sampling={rule}" for rule in ("pivoted", "uniform", "leverage"))],
    "l1": ["l1", "l1,refit=false", "l1,sequential=true", "l1,alternations=0", "l1,fraction=0.1"],
    "l21": ["l21", "l21,refit=false", "l21,alternations=0", "l21,fraction=0.1", "l21,fraction=0.9,refit=false"],
    "elastic-net": [
        "elastic-net",
        "elastic-net,refit=false",
        "elastic-net,alternations=0",
        "elastic-net,l1_ratio=0.7",
        "elastic-net,fraction=0.1,refit=false",
    ],
    "threshold": ["threshold", "threshold,refit=false", "threshold,keep=1", "threshold,keep=2,refit=false"],
    "energy": ["energy", "energy,alpha=0.1", "energy,alpha=0.5,split=sharp"],
    "likelihood": ["likelihood", "likelihood,refit=false", "likelihood,fraction=0.1", "likelihood,noise=0.001"],
    "greedy": ["greedy", "greedy,gain=trace", "greedy,gain=top", "greedy,exchanges=0"],
    "expansion": ["expansion", "expansion,restarts=1", "expansion,steps=3"],
    "spca": ["spca", "spca,nonzero=1", "spca,nonzero=2,sequential=true", "spca,penalty=0.3", "spca,ridge=0"],
    "reduced-set": ["reduced-set", "reduced-set,refit=false", "reduced-set,by=penalty"],
    "robust": ["robust", "robust,epsilon=1", "robust,clip=0.1"],
    "pursuit": ["pursuit", "pursuit,candidates=0"],
    "akfa": ["akfa", "akfa,cutoff=0.1"],
    "discriminant": ["discriminant", "discriminant,regularisation=1"],
}
# Methods without cases above are fitted with their default parameters.
METHODS = {name: METHODS.get(name, [name]) for name in _registry.METHODS}
# Parameters that fix the size of the model, which exclude a target.
FIXING = {one["name"] for entry in _registry.METHODS.values() for one in entry["parameters"] if one["fixes_size"]}
OWN_SIZE = re.compile("|".join(f",{name}=" for name in sorted(FIXING)))

GAMMAS = ["", ",gamma=mean", ",gamma=scale", *(f",gamma={g}" for g in (1e-200, 1e-12, 1e-4, 0.5, 20, 1e6, 1e200))]
KERNELS = {
    "rbf": [f"rbf{gamma}" for gamma in GAMMAS],
    "laplacian": [f"laplacian{gamma}" for gamma in GAMMAS],
    "polynomial": [
        f"polynomial{gamma},degree={degree},coef0={coef0}"
        for gamma in ("", ",gamma=0.01", ",gamma=1", ",gamma=1e6")
        for degree, coef0 in ((1, 0), (1, 1), (2, 0), (2, 100), (3, 1), (7, 0), (20, 1), (64, 1))
    ],
    "sigmoid": [
        f"sigmoid{gamma},coef0={coef0}"
        for gamma in ("", ",gamma=1e-7", ",gamma=0.01", ",gamma=1", ",gamma=1e200")
        for coef0 in (0, 1, -1)
    ],
    "linear": ["linear"],
    "cosine": ["cosine"],
    "conformal": [
        "conformal",
        "conformal,solver=positive",
        "conformal,solver=iteration",
        "conformal,delta=1e-6",
        "conformal,delta=1000,gamma=0.5",
        "conformal,base=laplacian",
        "conformal,base=polynomial,degree=3",
        "conformal,base=linear",
        "conformal,base=cosine,solver=positive",
        "conformal,base=sigmoid,gamma=0.001,coef0=0",
    ],
}
FIDELITIES = [0.5, 0.9, 0.999, 1.0]


def clusters(rng, n, d):
    return rng.normal(size=(3, d))[rng.integers(0, 3, n)] * 10 + rng.normal(size=(n, d))


def twins(rng, n, d):
    x = rng.normal(size=(n, d))
    x[-1] = x[0]
    return x


def outlier(rng, n, d):
    x = rng.normal(size=(n, d))
    x[rng.integers(n)] = 1e6
    return x


def constant_columns(rng, n, d):
    x = rng.normal(size=(n, d))
    x[:, rng.random(d) < 0.5] = rng.choice([0.0, 0.1, 7.0, 1e9])
    return x


def zero_rows(rng, n, d):
    return rng.normal(size=(n, d)) * (rng.random((n, 1)) < 0.6)


TABLES = {
    "gaussian": lambda rng, n, d: rng.normal(size=(n, d)),
    "duplicates": lambda rng, n, d: rng.normal(size=(1 + n // 4, d))[rng.integers(0, 1 + n // 4, n)],
    "twins": twins,
    "constant columns": constant_columns,
    "all equal": lambda rng, n, d: np.full((n, d), rng.choice([0.1, 3.0, -1e9])),
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "zero rows": zero_rows,
    "grid": lambda rng, n, d: rng.integers(-2, 3, (n, d)).astype(float),
    "binary": lambda rng, n, d: rng.integers(0, 2, (n, d)).astype(float),
    "collinear": lambda rng, n, d: rng.normal(size=(n, 1)) * rng.normal(size=d),
    "nearly collinear": lambda rng, n, d: rng.normal(size=(n, 1)) + 1e-7 * rng.normal(size=(n, d)),
    "evenly spaced": lambda rng, n, d: np.linspace(-1, 1, n)[:, None] * np.ones(d),
    "circle": lambda rng, n, d: np.cos(np.arange(n)[:, None] * 2 * np.pi / n + np.arange(d)),
    "huge": lambda rng, n, d: 1e150 * rng.normal(size=(n, d)),
    "tiny": lambda rng, n, d: 1e-150 * rng.normal(size=(n, d)),
    "subnormal": lambda rng, n, d: rng.integers(-9, 10, (n, d)) * 5e-324,
    "offset 1e8": lambda rng, n, d: 1e8 + rng.normal(size=(n, d)),
    "offset 1e-8": lambda rng, n, d: 1.0 + 1e-8 * rng.normal(size=(n, d)),
    "tiny variance": lambda rng, n, d: 1.0 + 1e-12 * rng.normal(size=(n, d)),
    "mixed scales": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 9, d),
    "clusters": clusters,
    "heavy tails": lambda rng, n, d: rng.standard_cauchy((n, d)) ** 3,
    "outlier": outlier,
    "permutations": lambda rng, n, d: np.array([rng.permutation(d) for _ in range(n)], dtype=float),
}

LABELS = {
    "random": lambda rng, x: rng.integers(0, 3, len(x)),
    "halves": lambda rng, x: (x[:, 0] > np.median(x[:, 0])).astype(int),
    "one class": lambda rng, x: np.zeros(len(x), dtype=int),
    "own class": lambda rng, x: np.arange(len(x)),
    "one odd row": lambda rng, x: (np.arange(len(x)) == len(x) - 1).astype(int),
}


def table_of(case):
    """The rows of a case, and their labels if it has any."""
    table = case["table"]
    if "values" in table:
        labels = table.get("labels")
        return np.array(table["values"], dtype=float), None if labels is None else np.array(labels, dtype=np.int64)
    rng = np.random.default_rng(table["seed"])
    x = np.ascontiguousarray(TABLES[table["kind"]](rng, table["rows"], table["columns"]))
    labels = LABELS[table["labels"]](rng, x) if table.get("labels") else None
    return x, None if labels is None else np.ascontiguousarray(labels, dtype=np.int64)


def draw_rows(rng):
    kind = rng.random()
    if kind < 0.02:
        return int(rng.integers(100, 401))
    return int(rng.integers(1, 6) if kind < 0.2 else rng.integers(2, 16) if kind < 0.5 else rng.integers(10, 61))


def draw_components(rng, n):
    return rng.choice([None, 1, 2, int(rng.integers(1, n + 1)), n, n + 3], p=[0.3, 0.15, 0.2, 0.25, 0.05, 0.05])


def draw_target(rng, n, own_size):
    """No target, a support or a fidelity; rarely more points than rows, or both a target and a size parameter."""
    kind = rng.random() * (0.35 if own_size else 1.0)
    if kind < 0.33:
        return {}
    if kind < 0.66:
        return {"support": int(min(n, rng.integers(1, n + 1)) if rng.random() < 0.97 else n + 1)}
    return {"fidelity": float(rng.choice(FIDELITIES))}


def draw_case(seed, number, only):
    """The case with this number, which depends on the seed, the number and the restrictions of the run."""
    rng = np.random.default_rng([seed, number])
    methods = [name for name, specs in METHODS.items() if name in only[2] and matching(specs, only[0])]
    kernels = [name for name, specs in KERNELS.items() if matching(specs, only[1])]
    method = str(rng.choice(matching(METHODS[methods[number % len(methods)]], only[0])))
    kernel = str(rng.choice(matching(KERNELS[str(rng.choice(kernels))], only[1])))
    if knows(_registry.METHODS, method, "linear"):
        kernel = _registry.LINEAR
    n = draw_rows(rng)
    table = {
        "kind": str(rng.choice(list(TABLES))),
        "rows": n,
        "columns": int(rng.integers(1, 7) if rng.random() < 0.95 else rng.integers(7, 41)),
        "seed": int(rng.integers(1 << 31)),
    }
    labelled = knows(_registry.METHODS, method, "labelled") or knows(_registry.KERNELS, kernel, "labelled")
    if labelled and rng.random() < 0.98:
        table["labels"] = str(rng.choice(list(LABELS), p=[0.4, 0.3, 0.05, 0.1, 0.15]))
    options = {
        "components": draw_components(rng, n),
        "center": rng.choice([None, True, False]),
        "scaling": str(rng.choice(["standard", "minmax", "none"], p=[0.4, 0.2, 0.4])),
        "seed": int(rng.integers(0, 100)),
        **draw_target(rng, n, OWN_SIZE.search(method)),
    }
    case = {"table": table, "method": method, "kernel": kernel, **options}
    case["twice"] = bool(rng.random() < TWICE)
    return case


def knows(registry, spec, capability):
    """Whether the entry that a spec names has a capability."""
    return registry[spec.split(",")[0]][capability]


def can(case, capability):
    """Whether the method of a case has a capability."""
    return knows(_registry.METHODS, case["method"], capability)


def matching(specs, prefix):
    return [spec for spec in specs if spec.startswith(prefix)]


@dataclass
class Values:
    """Kernel values, and the typical rounding error of each."""

    k: np.ndarray
    rounding: np.ndarray


def distance_values(exponent, far):
    """exp(−exponent), with the rounding of an exponent that was a difference of numbers as large as `far`."""
    exponent = np.minimum(exponent, 800.0)
    # Above 2^20, the core computes distances from their definition.
    k = np.exp(-exponent)
    return Values(k, EPS * k * (2.0 + exponent + np.minimum(far, 2.0**20)))


def far_out(x, z, length):
    """The distances of rows and of points from the means that the core may subtract, summed."""
    centres = [points.mean(axis=0) for points in (x, z)]
    return np.maximum(*(length(x - centre)[:, None] + length(z - centre) for centre in centres))


def rbf(spec, x, z):
    def squares(differences):
        return (differences**2).sum(axis=-1)

    gamma = spec["gamma"]
    return distance_values(gamma * squares(x[:, None, :] - z[None, :, :]), gamma * far_out(x, z, squares))


def laplacian(spec, x, z):
    def lengths(differences):
        return np.abs(differences).sum(axis=-1)

    gamma = spec["gamma"]
    return distance_values(gamma * lengths(x[:, None, :] - z[None, :, :]), gamma * far_out(x, z, lengths))


def inner(spec, x, z):
    """γ x·z + c and its rounding."""
    gamma, coef0 = spec.get("gamma", 1.0), spec.get("coef0", 0.0)
    sizes = np.abs(x) @ np.abs(z).T * gamma + abs(coef0)
    return gamma * (x @ z.T) + coef0, EPS * (1.0 + x.shape[1] ** 0.5) * sizes


def polynomial(spec, x, z):
    t, rounding = inner(spec, x, z)
    p = int(spec.get("degree", 1))
    return Values(t**p, p * np.abs(t) ** (p - 1) * rounding + EPS * p * np.abs(t) ** p)


def sigmoid(spec, x, z):
    t, rounding = inner(spec, x, z)
    k = np.tanh(t)
    # Not the derivative: with a huge gamma, the rounding of t decides the sign of k.
    return Values(k, (np.tanh(t + rounding) - np.tanh(t - rounding)) / 2 + 2 * EPS * np.abs(k))


def cosine(spec, x, z):
    def unit(points):
        largest = np.abs(points).max(axis=1, keepdims=True)
        points = points / np.where(largest > 0, largest, 1.0)
        length = np.sqrt((points**2).sum(axis=1, keepdims=True))
        return points / np.where(length > 0, length, 1.0)

    a, b = unit(x), unit(z)
    return Values(a @ b.T, 4 * EPS * (np.abs(a) @ np.abs(b).T))


def conformal(spec, x, z):
    """f(x) f(z) k(x, z), f(x) = b₀ + Σ b_n exp(−δ‖x − v_n‖²)"""
    weights = np.array(spec["weights"])
    vectors = np.array(spec["vectors"]).reshape(len(weights), -1)

    def factor(points):
        bumps = rbf({"gamma": spec["delta"]}, points, vectors)
        size = abs(spec["constant"]) + bumps.k @ np.abs(weights)
        return spec["constant"] + bumps.k @ weights, bumps.rounding @ np.abs(weights) + 2 * EPS * size

    (fx, dx), (fz, dz) = factor(x), factor(z)
    base = KERNEL_VALUES[spec["base"]](spec, x, z)
    rounding = np.abs(np.outer(fx, fz)) * base.rounding + np.abs(base.k) * (
        np.outer(dx, np.abs(fz)) + np.outer(np.abs(fx), dz)
    )
    return Values(np.outer(fx, fz) * base.k, rounding)


KERNEL_VALUES = {
    "rbf": rbf,
    "laplacian": laplacian,
    "polynomial": polynomial,
    "sigmoid": sigmoid,
    "linear": polynomial,
    "cosine": cosine,
    "conformal": conformal,
}


def kernel_values(spec, x, z):
    return KERNEL_VALUES[spec["name"]](spec, x, z)


def scaling_of(x, scaling):
    """Shift and scale of the columns. Values are divided by the largest, so that their squares do not overflow."""
    d = x.shape[1]
    if scaling == "none":
        return np.zeros(d), np.ones(d)
    if scaling == "minmax":
        extent = x.max(axis=0) - x.min(axis=0)
        return x.min(axis=0), np.where(extent > 0, extent, 1.0)
    unit = np.abs(x).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    deviation = (x / unit).std(axis=0)
    return (x / unit).mean(axis=0) * unit, np.where(deviation > 4 * EPS, deviation * unit, 1.0)


def parsed(text, x):
    """A kernel's spec as a dictionary, with rules for gamma resolved on the scaled rows."""
    name, *fields = text.split(",")
    spec = {"name": name, **dict(item.split("=") for item in fields)}
    if name in ("rbf", "laplacian"):
        spec.setdefault("gamma", "median")
    if name in ("polynomial", "sigmoid"):
        spec = {"gamma": "scale", "degree": 3, "coef0": 1, **spec}
    if spec.get("gamma") in ("median", "mean", "scale"):
        spec["gamma"] = gamma_of(spec["gamma"], name, x)
    return {key: value if key == "name" else float(value) for key, value in spec.items()}


def gamma_of(rule, name, x):
    if rule == "scale":
        return 1.0 / (x.shape[1] * x.var())
    differences = (x[:, None, :] - x[None, :, :])[np.triu_indices(len(x), 1)]
    distances = np.abs(differences).sum(axis=1) if name == "laplacian" else (differences**2).sum(axis=1)
    distances = distances[distances > 0]
    if rule == "median":
        return 1.0 / np.median(distances)
    return (1.0 if name == "laplacian" else 0.5) / distances.mean()


@dataclass
class Fitted:
    """All results of a model as plain data, for the checks, and for the self-test to damage."""

    arrays: dict
    described: dict
    scores: np.ndarray
    features: np.ndarray


@dataclass
class Checks:
    """Names of passed, loose and failed checks, and remarks: the sizes of deviations that rounding explains."""

    findings: list = field(default_factory=list)
    passed: list = field(default_factory=list)
    loose: list = field(default_factory=list)
    remarks: dict = field(default_factory=dict)

    def require(self, name, holds, **detail):
        if holds:
            self.passed.append(name)
        else:
            self.findings.append({"check": name, **detail})

    def close(self, name, found, expected, floor, rounding, size=np.inf):
        """`found` is within `floor` and SAFETY times the rounding of `expected`, entry by entry.

        If the rounding is not small against `size`, first-order estimates are meaningless, and nothing is checked.
        """
        found, expected, floor, rounding = np.broadcast_arrays(found, expected, floor, rounding)
        tolerance = np.where(SAFETY * rounding > 0.01 * size, np.inf, floor + SAFETY * rounding)
        difference = np.abs(found - expected)
        wrong = ~(difference <= tolerance) & np.isfinite(tolerance)
        if wrong.any():
            excess = np.where(wrong, difference / np.maximum(tolerance, 1e-320), -1.0)
            worst = np.unravel_index(np.nanargmax(np.where(np.isnan(excess), np.inf, excess)), found.shape)
            names = ("found", "expected", "floor", "rounding")
            values = (found, expected, floor, rounding)
            self.findings.append({"check": name, **{k: float(v[worst]) for k, v in zip(names, values, strict=True)}})
        elif (SAFETY * rounding > 100 * floor).any() or not np.isfinite(tolerance).all():
            self.loose.append(name)
        else:
            self.passed.append(name)


def spread(rounding, weights):
    """The typical rounding of `values @ weights`: squares of independent errors add, scaled to avoid overflow."""
    a, b = (np.abs(m).max(initial=0.0) or 1.0 for m in (rounding, weights))
    return a * b * np.sqrt((rounding / a) ** 2 @ (weights / b) ** 2)


def norm(a):
    largest = np.abs(a).max(initial=0.0)
    return largest * np.sqrt(((a / largest) ** 2).sum()) if largest > 0 else 0.0


class Reference:
    """The model's results, recomputed from its support and coefficients."""

    def __init__(self, x, fitted):
        arrays, described = fitted.arrays, fitted.described
        self.spec, self.center, self.n = described["kernel"], described["center"], len(x)
        self.x = (x - arrays["shift"]) / arrays["scale"]
        self.z, self.a = arrays["support"], arrays["coefficients"]
        self.frame = arrays.get("frame", np.eye(self.a.shape[1]))
        self.xx, self.xz, self.zz = (kernel_values(self.spec, *pair) for pair in self.pairs())
        self.finite = all(np.isfinite(values.k).all() for values in (self.xx, self.xz, self.zz))
        if not self.finite:
            return
        self.mu = self.xz.k.mean(axis=0) * self.center
        self.centred = self.xz.k - self.mu
        # The core factorises kernel matrices, so the error of a value depends on the norms of the two feature vectors.
        lengths = [np.sqrt(np.abs(values.k.diagonal())) for values in (self.xx, self.zz)]
        own_noise = self.xz.rounding + EPS * np.outer(lengths[0], lengths[1])
        self.noise_mu = own_noise.mean(axis=0) * self.center
        self.noise_xz = own_noise + self.noise_mu
        self.noise_zz = self.zz.rounding + EPS * np.outer(lengths[1], lengths[1])
        h = np.eye(self.n) - (1.0 / self.n if self.center else 0.0)
        self.values = np.linalg.eigvalsh(h @ self.xx.k @ h)[::-1]
        self.trace = np.abs(self.xx.k.diagonal()).sum()

    def pairs(self):
        return (self.x, self.x), (self.x, self.z), (self.z, self.z)

    def total(self, q):
        """What q components of exact kernel PCA capture, and its rounding."""
        rounding = norm(self.xx.rounding) + EPS * self.trace
        return np.maximum(self.values[:q], 0.0).sum(), q * rounding

    def gram(self):
        """G = AᵀK_zz A and its rounding."""
        rounding = spread(spread(self.noise_zz, self.a).T, self.a)
        return self.a.T @ self.zz.k @ self.a, np.maximum(rounding, rounding.T)

    def captured(self):
        """‖(K_xz − 1μᵀ) A E‖² and its rounding."""
        value = norm(self.centred @ self.a @ self.frame) ** 2
        rounding = norm(spread(spread(self.noise_xz, self.a), self.frame))
        # The core computes variances as differences of second moments, with the rounding error of those.
        return value, 2 * np.sqrt(value) * rounding + rounding**2 + EPS * self.trace

    def ritz(self, floor):
        """Variances of the best components in the span of the support, without eigenvalues of K_zz below `floor`."""
        squares, u = np.linalg.eigh(self.zz.k)
        keep = squares > floor * squares[-1]
        if not (squares[-1] > 0):
            return np.zeros(0), np.inf
        w = u[:, keep] / np.sqrt(squares[keep])
        y = self.centred @ w
        values = np.linalg.svd(y, compute_uv=False) ** 2
        noise = norm(spread(self.noise_xz, w)) + norm(y) * norm(spread(spread(self.noise_zz, w).T, w))
        return values, 2 * norm(y) * noise + EPS * self.trace

    def scores(self, queries, beta):
        """Novelty scores, their rounding, and the size of their terms."""
        values, all_pairs = kernel_values(self.spec, queries, self.z), kernel_values(self.spec, queries, queries)
        own = Values(all_pairs.k.diagonal(), all_pairs.rounding.diagonal())
        noise = values.rounding + EPS * np.abs(values.k) + self.noise_mu
        y = (values.k - self.mu) @ self.a
        along = y @ self.frame
        along_rounding = spread(spread(noise, self.a), self.frame)
        score = own.k - 2 * (values.k - self.mu) @ beta - self.mu @ beta - (along**2).sum(axis=1)
        size = np.abs(own.k) + np.abs(self.mu @ beta) + (along**2).sum(axis=1)
        rounding = (
            own.rounding
            + 2 * spread(noise, beta[:, None])[:, 0]
            + spread(self.noise_mu[None], beta[:, None])[0, 0]
            + 2 * (np.abs(along) * along_rounding).sum(axis=1)
            + EPS * size
        )
        return score, rounding, size


def verify(case, x, queries, fitted):
    """Runs all checks of a model; the first rows of `queries` are those of x."""
    checks = Checks()
    check_shape(checks, case, x, fitted)
    check_scaling(checks, case, x, fitted)
    finite = all(np.isfinite(a).all() for a in (*fitted.arrays.values(), fitted.scores, fitted.features))
    checks.require("numbers are finite", finite)
    checks.require("scores are not negative", (fitted.scores >= 0).all(), found=float(fitted.scores.min()))
    reference = Reference(x, fitted)
    checks.require("kernel values are finite", reference.finite)
    fidelity = fitted.described["fidelity"]
    rounding = 0.0
    if reference.finite and finite:
        # Exact kernel PCA checks the centred matrix only.
        values = reference.values[::-1] if can(case, "keeps_all_rows") else np.linalg.eigvalsh(reference.xx.k)
        definite = values[0] >= -1e-6 * values[-1] - SAFETY * (norm(reference.xx.rounding) + EPS * reference.trace)
        checks.require("an indefinite kernel is rejected", definite, eigenvalues=[values[0], values[-1]])
        if definite:
            rounding = check_numbers(checks, case, reference, queries, fitted)
    in_range = -1e-9 <= fidelity <= 1 + 1e-6
    slack = min(SAFETY * rounding, 0.01)
    if not in_range and -slack <= fidelity <= 1 + slack:
        checks.remarks["fidelity above 1"] = fidelity - 1.0
    else:
        checks.require("fidelity in range", in_range, found=fidelity)
    return checks


def check_shape(checks, case, x, fitted):
    """Checks sizes, row numbers, and that unmet requests are noted."""
    arrays, described = fitted.arrays, fitted.described
    n, (m, q) = len(x), arrays["coefficients"].shape
    notes = " | ".join(described["report"]["notes"])
    asked = case.get("components")
    checks.require("q is at most the requested number", q <= min(asked or 10, n) or free_components(case), q=q)
    checks.require("fewer components are noted", not asked or q >= asked or "components" in notes, q=q, notes=notes)
    support = case.get("support")
    checks.require("m is at most the requested number", not support or m <= support, m=m)
    checks.require("fewer points are noted", not support or m == support or "support points" in notes, m=m, notes=notes)
    target = case.get("fidelity")
    held = not target or described["fidelity"] >= target - 1e-11 or "fidelity" in notes and "asked for" in notes
    checks.require("a missed fidelity is noted", held, found=described["fidelity"], notes=notes)
    synthetic = can(case, "synthetic_points")
    checks.require("rows are listed unless points are synthetic", synthetic == ("rows" not in arrays))
    if "rows" in arrays:
        rows = arrays["rows"]
        sound = m <= n and len(rows) == m and (np.diff(rows) > 0).all() and rows[0] >= 0 and rows[-1] < n
        checks.require("rows are sorted, distinct and in range", sound, rows=rows.tolist())
        if sound:
            same = np.array_equal((x[rows] - arrays["shift"]) / arrays["scale"], arrays["support"])
            checks.require("the support is the rows", same)


def free_components(case):
    """`energy` with alpha chooses the number of components itself."""
    return "alpha" in case["method"] and not case.get("components")


def check_scaling(checks, case, x, fitted):
    shift, scale = scaling_of(x, case["scaling"])
    largest = np.abs(x).max(axis=0)
    if not (np.isfinite(scale).all() and np.isfinite(shift).all()):
        checks.require("the range is finite", False)
        return
    checks.close("shift", fitted.arrays["shift"], shift, 1e-13 * largest, 0.0)
    # Near the rounding error, a column may count as constant or not.
    sure = np.minimum(scale, fitted.arrays["scale"]) > 64 * EPS * largest
    checks.close("scale", fitted.arrays["scale"][sure], scale[sure], 1e-12 * scale[sure], (EPS * largest)[sure])


def check_numbers(checks, case, reference, queries, fitted):
    """Checks everything that is computed from kernel values; returns the rounding of the fidelity."""
    arrays, described = fitted.arrays, fitted.described
    beta = arrays["beta"]
    size = np.abs(reference.xz.k).max(axis=0)
    checks.close("mu", arrays["mu"], reference.mu, 1e-12 * size, reference.noise_xz.mean(axis=0))
    residual = norm(beta) * EPS * np.trace(reference.zz.k) + spread(reference.noise_zz, beta[:, None])[:, 0]
    residual += reference.noise_mu
    solved = reference.zz.k @ beta
    floor = 1e-9 * np.abs(reference.mu).max() + 1e-12 * size.max()
    checks.close("beta solves K_zz beta = mu", solved, reference.mu, floor, residual)
    check_components(checks, case, reference, arrays)
    rounding = check_captured(checks, case, reference, described, "frame" in arrays)
    check_scores(checks, reference, queries, fitted)
    return rounding


def check_components(checks, case, reference, arrays):
    """Checks EᵀAᵀK_zz A E = I, unit lengths, and the variances along the components."""
    g, rounding = reference.gram()
    orthonormal = reference.a @ reference.frame
    identity = orthonormal.T @ reference.zz.k @ orthonormal
    deviation = np.abs(identity - np.eye(len(identity))).max()
    checks.require("components are orthonormal", deviation <= ORTHONORMAL, deviation=deviation)
    checks.close("components have unit length", g.diagonal(), 1.0, ORTHONORMAL, rounding.diagonal(), 1.0)
    y = reference.centred @ reference.a
    variances = (y**2).mean(axis=0)
    noise = spread(reference.noise_xz, reference.a)
    noise = (2 * np.abs(y) * noise + noise**2).mean(axis=0) + EPS * reference.trace / reference.n
    checks.close("variances", arrays["variances"], variances, 1e-7 * variances.max(), noise, variances.max())


def check_captured(checks, case, reference, described, framed):
    """Checks the stated captured variance and fidelity, and that the span contains no better components.

    Returns the rounding of the fidelity.
    """
    captured, rounding = reference.captured()
    asked = min(case.get("components") or 10, reference.n)
    checks.close("captured", described["captured"], captured, 1e-7 * captured, rounding, captured)
    # The core leaves out poorly resolved directions along which a component would not have unit length.
    values, span_rounding = reference.ritz(UNRESOLVED)
    if can(case, "labelled"):
        # Such methods state the fidelity of the best components on their points, not that of their own.
        asked = min(max(asked, 10), reference.n)
        others, _ = reference.ritz(1e-15)
        captured = values[:asked].sum()
        rounding = span_rounding + abs(others[:asked].sum() - captured)
    fidelity_rounding = check_fidelity(checks, case, reference, described, (captured, rounding, asked))
    if framed or can(case, "keeps_all_rows"):
        return fidelity_rounding
    q = described["q"]
    shortfall = max(values[:q].sum() - captured, 0.0)
    floor = 1e-6 * values[:q].sum() + UNRESOLVED * reference.trace
    checks.close("no better components in the span", shortfall, 0.0, floor, rounding + span_rounding)
    if q < asked and len(values) > q and not free_components(case):
        floor = UNRESOLVED * max(values[0], reference.trace)
        checks.close("no component is missing", values[q], 0.0, floor, span_rounding)
    return fidelity_rounding


def check_fidelity(checks, case, reference, described, known):
    captured, rounding, asked = known
    choices = range(described["q"], reference.n + 1) if "alpha" in case["method"] else [asked]
    totals = [reference.total(q) for q in choices]
    totals = [(total, noise) for total, noise in totals if total > 0]
    expected = [(captured / total, (rounding + captured / total * noise) / total) for total, noise in totals]
    if not expected:
        checks.loose.append("fidelity")
        return np.inf
    nearest = min(expected, key=lambda pair: abs(pair[0] - described["fidelity"]))
    checks.close("fidelity", described["fidelity"], nearest[0], 1e-6, nearest[1], 1.0)
    return nearest[1]


def check_scores(checks, reference, queries, fitted):
    scaled = (queries - fitted.arrays["shift"]) / fitted.arrays["scale"]
    score, rounding, size = reference.scores(scaled, fitted.arrays["beta"])
    known = np.isfinite(score) & np.isfinite(rounding) & np.isfinite(fitted.scores)
    score, rounding, size = score[known], rounding[known], size[known]
    checks.close("scores", fitted.scores[known], np.maximum(score, 0.0), 1e-9 * size, rounding)
    # tanh may be positive semi-definite on the training rows but not on others.
    part = np.s_[: reference.n] if "sigmoid" in (reference.spec["name"], reference.spec.get("base")) else np.s_[:]
    # Components that are orthonormal only up to rounding may subtract slightly too much.
    _, skew = reference.gram()
    skew = norm(spread(spread(skew, reference.frame).T, reference.frame))
    rounding = rounding + size * skew
    checks.close("scores need no clipping", np.minimum(score, 0.0)[part], 0.0, 1e-8 * size[part], rounding[part])
    values = kernel_values(reference.spec, scaled, reference.z)
    y = (values.k - reference.mu) @ reference.a
    noise = spread(values.rounding + EPS * np.abs(values.k) + reference.noise_mu, reference.a)
    checks.close("features", fitted.features, y, 1e-9 * np.abs(y).max(axis=0, initial=0.0), noise)


def judge_error(case, x, message):
    """Findings of a failed fit: error messages that are not true."""
    if re.search("converge|not positive definite|cannot be computed", message):
        return [{"check": "suspicious message", "message": message}]
    kernel = case["kernel"].split(",")[0]
    if kernel == "conformal" or len(x) < 2:
        return []
    shift, scale = scaling_of(x, case["scaling"])
    points = (x - shift) / scale
    try:
        values = kernel_values(parsed(case["kernel"], points), points, points)
    except (ValueError, ZeroDivisionError):
        return []
    k = values.k
    if not np.isfinite(k).all():
        return []
    return contradictions(case, message, k, values.rounding)


def contradictions(case, message, k, rounding):
    center = case["center"] if case["center"] is not None else not can(case, "uncentred")
    h = np.eye(len(k)) - (1.0 / len(k) if center else 0.0)
    top, trace = np.linalg.eigvalsh(h @ k @ h)[-1], np.abs(k.diagonal()).sum()
    found = []
    varies = top > UNRESOLVED * trace + SAFETY * norm(rounding) and 1e-130 < np.abs(k).max() < 1e130
    if "does not vary" in message and varies:
        found.append({"check": "says nothing varies, but it does", "message": message, "share": top / trace})
    if "semi-definite" in message:
        values = np.linalg.eigvalsh(k)
        if values[0] > -1e-12 * trace:
            detail = {"message": message, "eigenvalues": [values[0], values[-1]]}
            found.append({"check": "says the kernel is indefinite, but it is not", **detail})
    if "overflows" in message and np.abs(k).max() < 1e100:
        found.append({"check": "says values overflow, but they do not", "message": message, "largest": np.abs(k).max()})
    return found


def fit(case, x, labels):
    names = ("components", "support", "fidelity", "center")
    options = {name: case[name] for name in names if case.get(name) is not None}
    return skpca.fit(
        x,
        method=case["method"],
        kernel=case["kernel"],
        scaling=case.get("scaling", "standard"),
        seed=case.get("seed", 0),
        labels=labels,
        **options,
    )


def queries_for(x):
    """The rows, some points between them, and one outside."""
    between = (x[:3] / 2 + x[-3:] / 2)[: len(x)]
    outside = 2 * x.max(axis=0) - x.min(axis=0)
    return np.ascontiguousarray(np.vstack([x, between, outside]))


def fitted_of(model, x, queries):
    """The results of the model for the queries, or for the rows only if other queries are out of range."""
    try:
        scores, features = model.score(queries), model.transform(queries)
    except ValueError:
        queries = x
        scores, features = model.score(x), model.transform(x)
    return queries, Fitted(model.arrays(), json.loads(model.describe()), scores, features)


def check_copies(checks, case, x, labels, model, fitted):
    """Checks that files, batches and repeated fits give the same bits."""
    data = model.to_bytes()
    read = skpca.Model.from_bytes(data)
    checks.require("a file keeps the scores", np.array_equal(read.score(x), fitted.scores[: len(x)]))
    checks.require("a file keeps the bytes", read.to_bytes() == data)
    alone = model.score(np.ascontiguousarray(x[-1:]))[0]
    checks.require("a row alone scores as in a batch", alone == fitted.scores[len(x) - 1])
    if case.get("twice"):
        checks.require("the same call gives the same bytes", fit(case, x, labels).to_bytes() == data)


def run_case(case, report_fitted=lambda: None):
    """Fits and checks one case; returns the outcome as plain data."""
    x, labels = table_of(case)
    outcome = {"error": None, "findings": []}
    start = time.process_time()
    try:
        model = fit(case, x, labels)
        error = None
    except ValueError as caught:
        error = str(caught)
    outcome["seconds"] = time.process_time() - start
    report_fitted()
    if outcome["seconds"] > SLOW and len(x) <= SMALL:
        outcome["findings"].append({"check": "slow", "seconds": round(outcome["seconds"], 2)})
    with np.errstate(all="ignore"):
        if error is not None:
            outcome["error"] = error
            outcome["findings"] += judge_error(case, x, error)
            return outcome
        queries, fitted = fitted_of(model, x, queries_for(x))
        checks = verify(case, x, queries, fitted)
        check_copies(checks, case, x, labels, model, fitted)
    outcome["findings"] += checks.findings
    outcome.update(passed=checks.passed, loose=checks.loose, remarks=checks.remarks)
    outcome["converged"] = fitted.described["report"]["converged"]
    return outcome


def work(connection):
    """A worker, which receives cases and sends outcomes. Standard error goes to a file that is searched for panics."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    printed = tempfile.TemporaryFile()
    os.dup2(printed.fileno(), 2)
    connection.send("ready")
    while True:
        case = connection.recv()
        before = printed.seek(0, os.SEEK_END)
        try:
            outcome = run_case(case, lambda: connection.send("fitted"))
        except BaseException as caught:  # a panic is not an Exception
            outcome = {"error": None, "findings": [unexpected(caught)], "seconds": 0.0}
        printed.seek(before)
        text = printed.read().decode(errors="replace")
        if "panicked" in text and not any(f["check"] == "panic" for f in outcome["findings"]):
            outcome["findings"].append({"check": "panic", "message": text[:500]})
        connection.send(outcome)


def unexpected(caught):
    kind = type(caught).__name__
    if kind == "PanicException":
        return {"check": "panic", "message": str(caught)[:500]}
    trace = caught.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return {"check": f"raised {kind}", "message": f"{caught} (line {trace.tb_lineno})"[:500]}


class Worker:
    """A process that runs one case at a time, and is replaced when it hangs or dies."""

    def __init__(self):
        self.case = None
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        # Wait for the imports, which take a while and are not part of a fit.
        self.connection.recv()

    def submit(self, case, limit):
        self.case = case
        self.enter("fit", limit)
        self.connection.send(case)

    def enter(self, phase, limit):
        self.phase, self.limit = phase, limit
        self.since, self.spent = time.monotonic(), self.processor_seconds()

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            ticks = file.read().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def late(self):
        waited = time.monotonic() - self.since
        if waited <= self.limit:
            return False
        return waited > PATIENCE * self.limit or self.processor_seconds() - self.spent > self.limit

    def poll(self, ready):
        """The outcome, if the case is finished."""
        if ready:
            try:
                outcome = self.connection.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                return self.replaced({"check": "crash", "exit": self.process.exitcode, "phase": self.phase})
            if outcome == "fitted":
                self.enter("checks", CHECK_LIMIT)
                return None
            self.case = None
            return outcome
        if self.late():
            return self.replaced({"check": self.hang()})
        return None

    def hang(self):
        if len(table_of(self.case)[0]) > SMALL:
            return "a large table over the limit"
        return "hang" if self.phase == "fit" else "hang after the fit"

    def replaced(self, finding):
        self.stop()
        self.case = None
        self.start()
        return {"error": None, "findings": [finding], "seconds": FIT_LIMIT}

    def stop(self):
        self.process.kill()
        self.process.join()


class Workers:
    """Several workers; `run` yields cases with their outcomes as they end."""

    def __init__(self, count):
        self.workers = [Worker() for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.stop()

    def run(self, cases, limit=FIT_LIMIT):
        cases = iter(cases)
        while True:
            for worker in self.workers:
                if worker.case is None and (case := next(cases, None)) is not None:
                    worker.submit(case, limit)
            busy = [worker for worker in self.workers if worker.case is not None]
            if not busy:
                return
            ready = multiprocessing.connection.wait([worker.connection for worker in busy], timeout=0.2)
            for worker in busy:
                case = worker.case
                outcome = worker.poll(worker.connection in ready)
                if outcome is not None:
                    yield case, outcome

    def run_one(self, case, limit=FIT_LIMIT):
        [(_, outcome)] = self.run([case], limit)
        return outcome


def shrunk(workers, case, check, tries):
    """A smaller case with the same finding: fewer rows, columns and options, with a limited number of tries."""
    if check == "hang":
        # Search with a shorter limit, then confirm that the result is a hang under the full limit.
        smaller = shrunk_within(workers, case, check, tries, FIT_LIMIT / 4)
        return smaller if finds(workers, smaller, check, FIT_LIMIT) else case
    return shrunk_within(workers, case, check, tries, FIT_LIMIT)


def finds(workers, case, check, limit):
    return any(finding["check"] == check for finding in workers.run_one(case, limit)["findings"])


def shrunk_within(workers, case, check, tries, limit):
    best, tried, progress = copy.deepcopy(case), 0, True
    while progress:
        progress = False
        for candidate in simpler(best):
            if tried == tries:
                return best
            tried += 1
            if finds(workers, candidate, check, limit):
                best, progress = candidate, True
                break
    return best


def simpler(case):
    """Cases that are slightly simpler than this one, the simplest first."""
    for name in ("twice", "seed", "center", "components", "support", "fidelity"):
        if case.get(name):
            yield {key: value for key, value in case.items() if key != name}
    if case["scaling"] != "none":
        yield {**case, "scaling": "none"}
    x, labels = table_of(case)
    if x.size > 2000:
        yield {**case, "table": {**case["table"], "rows": len(x) // 2}}
        return
    n, d = x.shape
    for size in (n // 2, n // 4, 1):
        for start in range(0, n, size) if size else []:
            yield {**case, "table": explicit(np.delete(x, np.s_[start : start + size], 0), cut(labels, start, size))}
    for column in range(d if d > 1 else 0):
        yield {**case, "table": explicit(np.delete(x, column, 1), labels)}
    for digits in (0, 1, 3):
        rounded = np.array([[float(f"{v:.{digits}e}") for v in row] for row in x])
        if not np.array_equal(rounded, x):
            yield {**case, "table": explicit(rounded, labels)}


def cut(labels, start, size):
    return None if labels is None else np.delete(labels, np.s_[start : start + size])


def explicit(x, labels):
    table = {"values": x.tolist()}
    return table if labels is None else {**table, "labels": labels.tolist()}


@dataclass
class Tally:
    """Counts of a run, and the findings themselves."""

    fits: int = 0
    refused: int = 0
    skipped: int = 0
    findings: list = field(default_factory=list)
    messages: collections.Counter = field(default_factory=collections.Counter)
    examples: dict = field(default_factory=dict)
    checks: dict = field(default_factory=lambda: collections.defaultdict(collections.Counter))
    remarks: dict = field(default_factory=lambda: collections.defaultdict(list))
    unconverged: collections.Counter = field(default_factory=collections.Counter)
    fitted: collections.Counter = field(default_factory=collections.Counter)
    hangs: collections.Counter = field(default_factory=collections.Counter)

    def add(self, case, outcome):
        self.fits += 1
        name = case["method"].split(",")[0]
        if outcome["error"] is not None:
            self.refused += 1
            message = re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "#", outcome["error"])
            self.messages[message] += 1
            self.examples.setdefault(message, {"message": outcome["error"], "case": case})
        else:
            self.fitted[name] += 1
        for state in ("passed", "loose"):
            for check in outcome.get(state, []):
                self.checks[check][state] += 1
        for remark, size in outcome.get("remarks", {}).items():
            self.remarks[remark].append((float(size), json.dumps(case)))
        if outcome.get("converged") is False:
            self.unconverged[case["method"]] += 1
        for finding in outcome["findings"]:
            self.checks[finding["check"]]["failed"] += 1
            self.findings.append({**finding, "case": case})
            if finding["check"] in ("hang", "a large table over the limit"):
                self.hangs[signature(case)] += 1

    def groups(self):
        """Findings by check and method, the smallest first."""
        groups = collections.defaultdict(list)
        for finding in self.findings:
            groups[finding["check"], finding["case"]["method"].split(",")[0]].append(finding)
        for group in groups.values():
            group.sort(key=lambda finding: table_of(finding["case"])[0].size)
        return groups


def signature(case):
    return case["method"].split(",")[0], case["kernel"].split(",")[0], case["table"].get("kind")


def summarise(tally, reproductions, seconds):
    print(f"\n{tally.fits} fits in {seconds:.0f} s; {tally.refused} failed; {tally.skipped} skipped as likely hangs")
    print(f"\nmodels by method: {dict(sorted(tally.fitted.items()))}")
    print("\nchecks: passed / passed with a tolerance that is mostly rounding / failed")
    for check, counts in sorted(tally.checks.items()):
        print(f"  {check:48} {counts['passed']:7} {counts['loose']:7} {counts['failed']:7}")
    print("\ndeviations explained by the rounding of an ill-conditioned support, how often, and the worst:")
    for remark, sizes in sorted(tally.remarks.items()):
        print(f"  {len(sizes):6} {remark}, by up to {max(sizes)[0]:.3e}\n         {max(sizes)[1]}")
    print("\nnot converged, according to their reports:")
    for method, count in tally.unconverged.most_common():
        print(f"  {count:6} {method}")
    print("\nmessages of failed fits:")
    for message, count in tally.messages.most_common():
        print(f"  {count:6} {message}\n         {json.dumps(tally.examples[message]['case'])}")
    print("\nfindings by check and method, with their kernels and a small case:")
    for (check, method), group in sorted(tally.groups().items()):
        kernels = collections.Counter(finding["case"]["kernel"].split(",")[0] for finding in group)
        print(f"\n* {check} — {method}: {len(group)} ({', '.join(f'{k} {c}' for k, c in kernels.most_common())})")
        detail = {key: value for key, value in group[0].items() if key not in ("check", "case")}
        print(f"  first: {json.dumps(detail)[:400]}\n  {json.dumps(reproductions[check, method])}")


def rotate(fitted):
    a = fitted.arrays["coefficients"]
    if a.shape[1] > 1:
        a[:, 0] += 1e-3 * a[:, 1]


def scale_coefficient(fitted):
    a = fitted.arrays["coefficients"]
    a.flat[np.abs(a).argmax()] *= 1 + 1e-5


def scale_beta(fitted):
    # Skip means that are mere rounding errors.
    if fitted.described["total_variance"] < 1e3 * abs(fitted.arrays["mu"] @ fitted.arrays["beta"]):
        fitted.arrays["beta"] *= 1 + 1e-5


def shift_means(fitted):
    fitted.arrays["mu"][0] += 1e-6 * np.sqrt(fitted.described["total_variance"])


def raise_score(fitted):
    fitted.scores[0] += 1e-6 * fitted.described["total_variance"]


def scale_variance(fitted):
    fitted.arrays["variances"][0] *= 1 + 1e-5


def move_point(fitted):
    support = fitted.arrays["support"]
    support[0, 0] += 1e-4 * (np.ptp(support) or 1.0)


def swap_rows(fitted):
    if "rows" in fitted.arrays:
        fitted.arrays["rows"][:2] = fitted.arrays["rows"][:2][::-1].copy()


DAMAGES = {
    "fidelity − 3e-6": lambda fitted: fitted.described.update(fidelity=fitted.described["fidelity"] - 3e-6),
    "captured × (1 + 1e-6)": lambda fitted: fitted.described.update(captured=fitted.described["captured"] * (1 + 1e-6)),
    "a coefficient × (1 + 1e-5)": scale_coefficient,
    "components rotated by 1e-3": rotate,
    "beta × (1 + 1e-5)": scale_beta,
    "a mean + 1e-6 of the spread": shift_means,
    "a score + 1e-6 of the variance": raise_score,
    "a variance × (1 + 1e-5)": scale_variance,
    "a support point moved by 1e-4": move_point,
    "rows swapped": swap_rows,
}


def changed(fitted, other):
    """Whether the damage changed anything: zeros stay zeros, and a model may lack the part to be damaged."""
    same = all(np.array_equal(fitted.arrays[name], other.arrays[name]) for name in fitted.arrays)
    return not (same and fitted.described == other.described and np.array_equal(fitted.scores, other.scores))


def selftest(fits, seed):
    """Damages correct results and counts how often that is detected."""
    counts = {name: collections.Counter() for name in DAMAGES}
    number = done = 0
    while done < fits:
        case = draw_case(seed, number, ("", "", METHODS))
        number += 1
        if case["kernel"].startswith(("sigmoid", "conformal")) or case["table"]["rows"] > 60:
            continue
        x, labels = table_of(case)
        try:
            model = fit(case, x, labels)
        except ValueError:
            continue
        with np.errstate(all="ignore"):
            queries, fitted = fitted_of(model, x, queries_for(x))
            if verify(case, x, queries, fitted).findings:
                continue
            done += 1
            for name, damage in DAMAGES.items():
                other = copy.deepcopy(fitted)
                damage(other)
                if changed(fitted, other):
                    counts[name]["found" if verify(case, x, queries, other).findings else "missed"] += 1
    for name, count in counts.items():
        print(f"{name:36} found {count['found']:5}, missed {count['missed']:5}")


def replay(case):
    """Runs one case and prints all details."""
    case = {"scaling": "standard", "center": None, **case}
    x, labels = table_of(case)
    print(f"table {x.shape}\n{x}\nlabels {labels}")
    with Workers(1) as workers:
        outcome = workers.run_one(case)
    print(json.dumps(outcome, indent=1))
    without_model = ("hang", "crash", "panic", "a large table over the limit")
    stopped = any(finding["check"].startswith(without_model) for finding in outcome["findings"])
    if stopped or outcome["error"] is not None:
        return
    model = fit(case, x, labels)
    print(json.dumps(json.loads(model.describe()), indent=1))
    for name, values in model.arrays().items():
        print(f"{name} {values.shape}\n{values}")
    print(f"scores\n{model.score(x)}")


def torture(options):
    tally, start = Tally(), time.monotonic()

    def cases():
        for number in range(options.fits):
            case = draw_case(options.seed, number, options.only)
            if tally.hangs[signature(case)] >= HANGS:
                tally.skipped += 1
                continue
            yield case

    with Workers(options.jobs) as workers:
        with open(options.out, "w") as out:
            for case, outcome in workers.run(cases()):
                tally.add(case, outcome)
                for finding in outcome["findings"]:
                    print(json.dumps({**finding, "case": case}), file=out, flush=True)
                if tally.fits % 500 == 0:
                    counts = f"{tally.fits} fits, {len(tally.findings)} findings"
                    print(f"{counts}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        seconds = time.monotonic() - start
        reproductions = {}
        for (check, method), group in tally.groups().items():
            tries = {"hang": 12, "slow": 12, "a large table over the limit": 0}.get(check, options.shrink)
            reproductions[check, method] = shrunk(workers, group[0]["case"], check, tries)
    summarise(tally, reproductions, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--only", default="/", metavar="METHOD/KERNEL", help="prefixes of specs, such as l1/rbf")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="NAME", help="by name")
    parser.add_argument("--out", default="findings.jsonl", help="all findings, one JSON object per line")
    parser.add_argument("--shrink", type=int, default=80, help="fits spent on making each reproduction smaller")
    parser.add_argument("--replay", metavar="JSON", help="run one case and print everything")
    parser.add_argument("--selftest", type=int, metavar="N", help="damage results of N fits, count what is found")
    options = parser.parse_args()
    options.only = (*(options.only + "/").split("/")[:2], options.methods)
    if options.replay:
        replay(json.loads(options.replay))
    elif options.selftest:
        selftest(options.selftest, options.seed)
    else:
        torture(options)


if __name__ == "__main__":
    main()
