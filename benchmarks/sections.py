"""What is measured. A section is a generator of `Result`s and `Fact`s; `SECTIONS` is the list of them.

Targets are for the full sizes; `quick` shrinks the sizes and shows that everything runs, nothing more.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import fits
import numpy as np
import skpca
from fits import COMPONENTS, describe, eigenvalues, normal
from limits import multiply_adds, power, share
from measure import Fact, Result, interleaved
from memory import weigh
from sklearn.utils.validation import validate_data
from tables import tables

# A fit of minutes is not repeated as often as one of seconds.
FEW = 2
# Eigenvalues further than this from arpack's, as a share, are another answer.
ACCURATE = 1e-6


def aligned(found, expected):
    """`expected` with the signs of `found`."""
    return expected * np.where((found * expected).sum(axis=0) < 0, -1.0, 1.0)


def error(found, expected):
    """Largest difference, as a share of the largest value of the column."""
    return float((np.abs(found - expected) / np.abs(expected).max(axis=0)).max())


def transform(quick, repeats):
    """Features of new rows from a model of all training rows."""
    m, queries = (500, 1000) if quick else (5000, 10_000)
    limits = {single: multiply_adds(single) for single in (False, True)}
    for single, rate in limits.items():
        name = "f32" if single else "f64"
        yield Fact(f"peak {name}", f"{rate / 1e9:.1f} G multiply-adds/s", {"multiply_adds": rate})
    for d, targets in ((10, (18, 35)), (54, (11, 22)), (784, (1.9, 3.5))):
        yield from transform_width(m, queries, d, targets, limits, repeats)


def transform_width(m, queries, d, targets, limits, repeats):
    z, x = normal(m, d), normal(queries, d, seed=1)
    z32, x32 = z.astype(np.float32), x.astype(np.float32)
    ours, peer, peer32 = fits.exact_ours(z), fits.exact_peer(z), fits.exact_peer(z32)
    calls = {
        "sklearn f64": lambda: peer.transform(x),
        "sklearn f32": lambda: peer32.transform(x32),
        "skpca f64": lambda: ours.transform(x),
        "skpca f32": lambda: ours.transform(x, single=True),
    }
    seconds = interleaved(calls, repeats)
    double, single, theirs = ours.transform(x), ours.transform(x, single=True), peer.transform(x)
    case = f"transform m={m} queries={queries} d={d} q={COMPONENTS}"
    agreement = f"differs from sklearn f64 by {error(double, aligned(double, theirs)):.1e}"
    rounding = f"differs from skpca f64 by {error(single, double):.1e}"
    for theirs, mine, target, note in (
        ("sklearn f64", "skpca f64", targets[0], agreement),
        ("sklearn f64", "skpca f32", targets[1], rounding),
        ("sklearn f32", "skpca f32", None, rounding),
    ):
        yield Result(case, theirs, mine, seconds[theirs], seconds[mine], target, note)
    for name, is_single in (("skpca f64", False), ("skpca f32", True)):
        yield speed(f"{case} {name}", m * queries / min(seconds[name]), d, is_single, limits)


def speed(case, values, d, single, limits):
    """Kernel values a second, and which share of the arithmetic limit that is.

    A value costs d multiply-adds for its inner product, q for the components and a polynomial for 2^x.
    """
    cost = d + COMPONENTS + power(single)
    part = values * cost / limits[single]
    text = f"{values / 1e9:.2f} G kernel values/s, {part:.0%} of the arithmetic limit"
    return Fact(case, text, {"kernel_values": values, "multiply_adds_each": cost, "share": part})


def small(quick, repeats):
    """Models of few points: passes over memory count, not kernel values. The peer is a copy of the input."""
    n, d = (20_000, 10) if quick else (1_000_000, 10)
    x = normal(n, d)
    x32, room = x.astype(np.float32), np.empty_like(x)
    features, features32, scores = np.empty((n, COMPONENTS)), np.empty((n, COMPONENTS), np.float32), np.empty(n)
    for m, target in ((10, 4), (30, 6)):
        model = fits.small_ours(x[:5000], m)
        calls = {
            "copy": lambda: np.copyto(room, x),
            "copy to new memory": lambda: x.copy(),
            "transform": lambda model=model: model.transform(x, out=features),
            "transform to new memory": lambda model=model: model.transform(x),
            "transform f32": lambda model=model: model.transform(x32, single=True, out=features32),
            "score": lambda model=model: model.score(x, out=scores),
        }
        seconds = interleaved(calls, repeats)
        case = f"small n={n} d={d} m={m} q={COMPONENTS}"
        for ours, peer, most in (
            ("transform", "copy", target),
            ("transform to new memory", "copy to new memory", target),
            ("transform f32", "transform", 0.6),
            ("score", "transform", 1.2),
        ):
            yield at_most(f"{case}: {ours} over {peer}", seconds[ours], seconds[peer], most)
        for name, columns, single in (
            ("transform", COMPONENTS, False),
            ("transform f32", COMPONENTS, True),
            ("score", 1, False),
        ):
            moved = n * (d + columns) * (4 if single else 8)
            products = n * m * (d + COMPONENTS + power(single))
            yield share(f"{case}: {name}", seconds[name], products, moved, single)
    yield from one_row(x, repeats)


def one_row(x, repeats):
    """A single row, from Python."""
    model, row, calls = fits.small_ours(x[:5000], 10), x[:1].copy(), 1000
    detector = skpca.KernelNovelty(method="landmarks", n_support=10, random_state=0).fit(x[:5000])

    def many(call):
        return lambda: [call() for _ in range(calls)]

    seconds = interleaved(
        {
            "score": many(lambda: model.score(row)),
            "validate_data": many(lambda: validate_data(detector, row, reset=False)),
            "score_samples": many(lambda: detector.score_samples(row)),
        },
        repeats,
    )
    each = np.median(seconds["score"]) / calls * 1e6
    yield Fact("one row: Model.score", f"{each:.2f} µs, target at most 5", {"microseconds": each}, bool(each <= 5))
    case = "one row: KernelNovelty.score_samples over validate_data"
    yield at_most(case, seconds["score_samples"], seconds["validate_data"], 1.3)


def at_most(case, ours, peer, most):
    """Our median over the peer's, which should not be above `most`."""
    ratio = float(np.median(ours) / np.median(peer))
    values = {"ratio": ratio, "our_seconds": ours, "peer_seconds": peer}
    return Fact(case, f"{ratio:.2f}, target at most {most}", values, ratio <= most)


def exact(quick, repeats):
    """Exact kernel PCA of all rows."""
    sizes = ((500, 10), (1000, 10), (500, 784)) if quick else ((5000, 10), (20_000, 10), (5000, 784))
    for (n, d), target in zip(sizes, (3, 6, 1.2), strict=True):
        few = min(repeats, FEW) if n > 5000 else repeats
        yield from exact_size(n, d, target, few)
        yield from exact_memory(n, d, limit=500 if n == 20_000 else None)


def exact_size(n, d, target, repeats):
    x = normal(n, d)
    models = {}

    def keep(name, fit, *options):
        def call():
            models[name] = fit(x, *options)

        return call

    calls = {
        "arpack": keep("arpack", fits.exact_peer, "arpack"),
        "randomized": keep("randomized", fits.exact_peer, "randomized"),
        "skpca": keep("skpca", fits.exact_ours),
    }
    seconds = interleaved(calls, repeats)
    reference = models["arpack"].eigenvalues_
    wrong = np.abs(models["randomized"].eigenvalues_ / reference - 1).max()
    agreement = np.abs(eigenvalues(models["skpca"]) / reference - 1).max()
    note = f"eigenvalues differ from arpack's: ours {agreement:.0e}, randomized {wrong:.0e}"
    # A solver that stops far from the answer is no peer, however fast.
    rivals = ("arpack", "randomized") if wrong < ACCURATE else ("arpack",)
    best = min(rivals, key=lambda name: np.median(seconds[name]))
    for name in ("arpack", "randomized"):
        label = f"sklearn {name}{' (its best)' if name == best else ''}"
        aim = target if name == best else None
        yield Result(
            f"exact n={n} d={d} q={COMPONENTS}", label, "skpca f64", seconds[name], seconds["skpca"], aim, note
        )


def exact_memory(n, d, limit):
    for name in ("exact_ours", "exact_peer"):
        found = weigh(name, n, d)
        met = found["peak_mb"] < limit if limit and name == "exact_ours" else None
        yield weight(
            f"exact n={n} d={d} memory {name}", found, f", target below {limit} MB" if met is not None else "", met
        )


def weight(case, found, limit, met):
    extra = found["peak_mb"] - found["baseline_mb"]
    text = f"peak {found['peak_mb']:.0f} MB ({found['baseline_mb']:.0f} imports and data + {extra:.0f} fit){limit}"
    return Fact(case, text, found, met)


def landmarks(quick, repeats):
    """Nyström kernel PCA on few points."""
    n, d, m = (5000, 10, 100) if quick else (100_000, 10, 500)
    x = normal(n, d)
    models = {}

    def ours():
        models["ours"] = fits.landmarks_ours(x, m)

    def peer():
        models["peer"] = fits.landmarks_peer(x, m)

    seconds = interleaved({"peer": peer, "ours": ours}, repeats)
    # Both feature maps are orthonormal directions in feature space: variances per row add up to what is captured.
    # PCA divides by n − 1, we by n.
    theirs = float(models["peer"][-1].explained_variance_.sum() * (n - 1) / n)
    mine = sum(describe(models["ours"])["explained_variance"])
    fidelity = describe(models["ours"])["fidelity"]
    case = f"landmarks n={n} d={d} m={m} q={COMPONENTS}"
    note = f"captured variance: ours {mine:.6f}, sklearn {theirs:.6f}; fidelity {fidelity:.4f}"
    yield Result(case, "sklearn Nystroem + PCA", "skpca f64", seconds["peer"], seconds["ours"], 5, note)
    text = f"captured variance over sklearn's: {mine / theirs:.4f}, target at least 1"
    yield Fact(case, text, {"ours": mine, "sklearn": theirs, "fidelity": fidelity}, mine >= theirs)


def expansion(quick, repeats):
    """The smallest model that holds 0.95, its points moved, against Nyström kernel PCA on 500 points."""
    n, d, m = (5000, 10, 100) if quick else (100_000, 10, 500)
    x = normal(n, d)
    models = {}

    def ours():
        models["ours"] = fits.expansion_ours(x, 0.95)

    def peer():
        models["peer"] = fits.landmarks_peer(x, m)

    seconds = interleaved({"peer": peer, "ours": ours}, repeats)
    found = describe(models["ours"])
    case = f"expansion n={n} d={d} fidelity=0.95 q={COMPONENTS}"
    note = f"{found['m']} points, fidelity {found['fidelity']:.4f}; theirs {m} points"
    yield Result(case, "sklearn Nystroem + PCA", "skpca f64", seconds["peer"], seconds["ours"], 1 / 3, note)
    calls = {"peer": lambda: models["peer"].transform(x), "ours": lambda: models["ours"].transform(x)}
    seconds = interleaved(calls, repeats)
    case = f"expansion transform of {n} rows"
    yield Result(case, "sklearn Nystroem + PCA", "skpca f64", seconds["peer"], seconds["ours"], 100, note)
    n = 20_000 if quick else 1_000_000
    weighed = weigh("expansion_ours", n, d, fidelity=0.95)
    case = f"expansion n={n} d={d}"
    yield Fact(case, f"{weighed['seconds']:.2f} s", {"seconds": weighed["seconds"]})
    # A copy that is scaled, the rows that are seen, and what passes over all rows have in flight.
    bound = weighed["data_mb"] + 2 * n * d * 8 / 1e6 + 200
    yield weight(case, weighed, f", target below data + 2·n·d·8 + 200 = {bound:.0f} MB", weighed["peak_mb"] <= bound)


def fewest(quick, repeats, data=None):
    """The fewest points for a fidelity, against our own exact kernel PCA of the same rows and scikit-learn's."""
    for name, x in tables(data, quick):
        n, d = x.shape
        for q, wishes in ((10, FEWEST), (30, FEWEST_OF_MANY)):
            models = {}
            calls = {"exact": partial(fits.exact_default, x, q)}
            if n >= 5000 or quick:
                calls["arpack"] = partial(fits.exact_peer_default, x, q)
            for method, fidelity, _ in wishes:
                calls[method, fidelity] = partial(keep_fewest, models, x, method, fidelity, q)
            seconds = interleaved(calls, repeats)
            for method, fidelity, times in wishes:
                found = describe(models[method, fidelity])
                case = f"fewest table={name} n={n} d={d} q={q} method={method} fidelity={fidelity}"
                note = f"{found['m']} points, fidelity {found['fidelity']:.4f}, {found['report']['rounds']} rounds"
                ours = seconds[method, fidelity]
                yield Result(case, "skpca exact", method, seconds["exact"], ours, round(1 / times, 2), note)
                if method == "expansion":
                    yield evaluations(case, ours, min(n, 4000), d, found)
                if "arpack" in seconds:
                    target = 1 if method == "expansion" else None
                    yield Result(case, "sklearn arpack", method, seconds["arpack"], ours, target, note)


def evaluations(case, seconds, n, d, found):
    """W and its gradient: kernel values, their scatter, and two products with the rows, each as of the final points.

    Earlier models of the path have fewer, so that this is the most that the arithmetic can take.
    """
    m = found["m"]
    products = found["report"]["rounds"] * n * m * (2 * d + power(False) + m)
    return share(case, seconds, products, n * d * 8)


# Method, fidelity, and how many times as long as exact kernel PCA it may take.
FEWEST = (("expansion", 0.95, 3), ("expansion", 0.99, 10), ("greedy", 0.95, 3))
FEWEST_OF_MANY = (("expansion", 0.95, 10),)


def keep_fewest(models, x, method, fidelity, q):
    models[method, fidelity] = fits.fewest_ours(x, method, fidelity, q)


def million(quick, repeats):
    """A fit that must not need n × m twice; once, in a process of its own."""
    n, d, m = (20_000, 10, 50) if quick else (1_000_000, 10, 200)
    found = weigh("landmarks_ours", n, d, m=m)
    bound = found["data_mb"] + 1.5 * n * m * 8 / 1e6
    case = f"million n={n} d={d} m={m} q={COMPONENTS}"
    yield Fact(case, f"{found['seconds']:.2f} s", {"seconds": found["seconds"]})
    yield share(case, [found["seconds"]], n * m * (d + power(True) + (m + 1) / 2), n * d * 8, single=True)
    limit = f", target below data + 1.5·n·m·8 = {bound:.0f} MB"
    # Below some hundred megabytes the interpreter alone breaks the bound.
    yield weight(case, found, limit, None if quick else found["peak_mb"] <= bound)


def energy(quick, repeats):
    """The energy rule with the linear kernel, which is PCA on fewer rows, against PCA on all."""
    n, d = (20_000, 20) if quick else (1_000_000, 50)
    x = normal(n, d)
    case = f"energy n={n} d={d} linear alpha=0.2"
    # Ten components, as users of PCA ask for, and as many as the rule itself keeps.
    for components, target in ((COMPONENTS, 0.67), (None, None)):
        models = {}

        def ours(components=components, models=models):
            models["ours"] = fits.energy_ours(x, components)

        def peer(components=components, models=models):
            models["peer"] = fits.energy_peer(x, components)

        seconds = interleaved({"peer": peer, "ours": ours}, repeats)
        found = describe(models["ours"])
        share = sum(found["explained_variance"]) / found["total_variance"]
        theirs = models["peer"].explained_variance_ratio_.sum()
        note = f"{found['q']} components hold {share:.4f}, sklearn's {models['peer'].n_components_} hold {theirs:.4f}"
        name = f"{case} q={components or 'rule'}"
        yield Result(name, "sklearn PCA", "skpca f64", seconds["peer"], seconds["ours"], target, note)
        if components:
            yield energy_limit(name, x, min(seconds["ours"]))
    for name in ("energy_ours", "energy_peer"):
        weighed = weigh(name, n, d)
        ours = name == "energy_ours"
        met = weighed["peak_mb"] - weighed["baseline_mb"] <= 100 if ours else None
        yield weight(f"{case} memory {name}", weighed, ", target at most 100 MB beside the data" if ours else "", met)


def energy_limit(case, x, best):
    """Our best time against what the scatter of all rows takes: one read of them, and d (d + 1)/2 products a row."""
    n, d = x.shape
    halves = np.array_split(x, 2)
    with ThreadPoolExecutor(2) as pool:
        reading = min(interleaved({"read": lambda: list(pool.map(np.max, halves))}, 7)["read"])
    products = n * d * (d + 1) / 2
    multiplying = products / multiply_adds(False)
    values = {"reads": best / reading, "multiply_adds": products, "arithmetic": multiplying / best}
    text = (
        f"as long as reading the {x.nbytes / 1e6:.0f} MB {best / reading:.1f} times; "
        f"{multiplying / best:.2f} of the time would do for the products"
    )
    return Fact(f"{case} limit", text, values)


def searches(quick, repeats):
    """A number of points asked of methods that have a parameter instead: the whole fit over its factorisation."""
    n, d, m, rank = (6000, 10, 20, 100) if quick else (100_000, 10, 50, 200)
    x = normal(n, d)
    models = {}

    def keep(method):
        def call():
            models[method] = fits.searched_ours(x, method, m, rank)

        return call

    wishes = (("likelihood", 6), ("l21", 5))
    calls = {"factor": partial(fits.factor_ours, x, rank), **{method: keep(method) for method, _ in wishes}}
    seconds = interleaved(calls, repeats)
    for method, most in wishes:
        found = describe(models[method])
        case = f"searches n={n} d={d} rank={rank} q={COMPONENTS} method={method} support={m}: fit over factorisation"
        fact = at_most(case, seconds[method], seconds["factor"], most)
        fact.text += f"; {found['m']} points, fidelity {found['fidelity']:.4f}, gap {found['report']['gap']:.0e}"
        yield fact
        # Factor and scatter are half a product of n × r × r each; the likelihood turns the rows, which is a whole one.
        products = n * rank * (d + power(False) + rank * (2 if method == "likelihood" else 1))
        yield share(case, seconds[method], products, 2 * n * rank * 8)


def reading(quick, repeats):
    """Reading CSV with the program, against polars where it is installed: fits of few points from CSV and from .npy."""
    n, d = (20_000, 10) if quick else (1_000_000, 10)
    program = os.environ.get("SKPCA") or shutil.which("skpca")
    if program is None:
        yield Fact("reading", "left out: name the program in SKPCA", {})
        return
    x = normal(n, d)
    with tempfile.TemporaryDirectory() as folder:
        csv, npy, model = (os.path.join(folder, name) for name in ("x.csv", "x.npy", "x.skpca"))
        np.save(npy, x)
        np.savetxt(csv, x, delimiter=",", fmt="%.17g", header=",".join(f"c{i}" for i in range(d)), comments="")
        fit = (program, "fit", "-o", model, "--method", "landmarks", "--support", "2", "-q", "1", "--quiet")
        calls = {name: partial(subprocess.run, (*fit, name), check=True) for name in (csv, npy)}
        calls["start"] = partial(subprocess.run, (program, "--version"), check=True, stdout=subprocess.DEVNULL)
        if importlib.util.find_spec("polars") is not None:
            import polars

            calls["polars"] = lambda: polars.read_csv(csv)
        seconds = interleaved(calls, repeats)
    start = float(np.median(seconds["start"]))
    yield Fact("reading: start of the program", f"{1e3 * start:.1f} ms", {"seconds": seconds["start"]})
    ours = [text - binary for text, binary in zip(seconds[csv], seconds[npy], strict=True)]
    case = f"reading CSV n={n} d={d}, beyond reading .npy"
    if "polars" in seconds:
        yield Result(case, "polars.read_csv", "skpca", seconds["polars"], ours, None)
    else:
        yield Fact(case, f"{np.median(ours):.3f} s", {"seconds": ours})


SECTIONS = {
    section.__name__: section
    for section in (transform, small, exact, landmarks, expansion, fewest, million, energy, searches, reading)
}
