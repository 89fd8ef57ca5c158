"""Online learning: streams, batch by batch, against Honeine's online kernel PCA and a refit on a window."""

import json
import time
import warnings
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import skpca
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics.pairwise import rbf_kernel
from skpca import SparseKernelPCA
from skpca.exceptions import RangeWarning

from .data import GENERATED, standardised
from .pages import DASH, save, table
from .runner import Cell
from .verdicts import Claim

TITLE = "Online learning: streams in batches"
ABOUT = """
*Streams*: batches of 100 rows after a first batch of 1000, columns standardised on the first batch, Gaussian kernel, 5
components over 30 points. After every batch: the variance of the last 1000 rows that the components capture, as a
share of what a new fit to those rows captures (*refit*, the default method). *Ours* is `partial_fit` with
`forget` 1 or 0.998, whose weights have the mean age of a window of 1000 rows. *Honeine* is the reduced-order kernel
Oja iteration of Honeine (2012) with the coherence criterion for its dictionary. It has a running mean, starts from
the best components over its dictionary of the first batch, and uses the best of four thresholds and four step
sizes, chosen in hindsight; its dictionary is limited to 30 points. The refit is judged on the rows that its points
were fitted to; *rows to come* are the 500 after each batch, which neither has seen, their captured variance summed over
the batches.

*Sets*: a first batch of 200 rows, then 100 at a time, in a random order and sorted along the leading principal
component; ten components, a target fidelity of 0.95. Fidelity is over all rows, relative to exact kernel PCA.
"""

POINTS, COMPONENTS, WINDOW, BATCH = 30, 5, 1000, 100
# Number of rows after each batch that both are judged on as well.
NEXT = 500
ROWS = 12_000
FORGETS = {"ours": 1.0, "ours, forgetting": 0.998}
RIVAL, REFIT = "Honeine", "refit"
STEPS, LIMITS = (0.003, 0.01, 0.03, 0.1), (0.05, 0.2, 0.5, 0.8)
DRIFTING = ("moving", "turning", "jump", "covtype", "tennessee")
SETS = {
    "digits": "digits",
    "wdbc": "wdbc",
    "banana": "ida_banana",
    "image": "ida_image",
    "satimage-2": "satimage2",
    "cardio": "adbench_cardio",
}
ORDERS = ("random", "sorted")
ASKED, LOST = 0.95, 0.01


def ring(rng, rows, centre):
    angle = rng.uniform(0, 2 * np.pi, rows)
    noise = 0.15 * rng.normal(size=(rows, 2))
    return np.column_stack([np.cos(angle), np.sin(angle)]) + noise + centre


def stationary(rng, rows):
    return np.column_stack([ring(rng, rows, 0.0), rng.normal(size=(rows, 3)) * [1.0, 0.5, 0.25]])


def moving(rng, rows):
    """A ring whose centre goes twelve times its radius."""
    way = 12 * np.linspace(0, 1, rows)[:, None] * [1.0, 0.5]
    return np.column_stack([ring(rng, rows, way), 0.3 * rng.normal(size=(rows, 2))])


def turning(rng, rows):
    """Normal rows in ten dimensions whose axes turn by a right angle, five at a time."""
    angle = np.linspace(0, np.pi / 2, rows)[:, None]
    wide, narrow = 2 * rng.normal(size=(rows, 5)), 0.3 * rng.normal(size=(rows, 5))
    return np.column_stack(
        [np.cos(angle) * wide - np.sin(angle) * narrow, np.sin(angle) * wide + np.cos(angle) * narrow]
    )


def jump(rng, rows):
    """Ten normal clouds; every third of the rows has others."""
    third = 3 * np.arange(rows) // rows
    centres = 3 * rng.normal(size=(3, 10, 4))
    return centres[third, rng.integers(0, 10, rows)] + 0.5 * rng.normal(size=(rows, 4))


MADE = {made.__name__: made for made in (stationary, moving, turning, jump)}
FILES = {"covtype": "covtype", "tennessee": "tep"}


def cells(options):
    rows = 2000 if options.quick else ROWS
    found = [
        Cell(f"online/{name}/stream/{repeat}", stream, {"name": name, "rows": rows}, tuple(filter(None, [file])))
        for name, file in {**dict.fromkeys(MADE), **FILES}.items()
        for repeat in range(options.count(1 if file else 2))
    ]
    sets = {"wdbc": "wdbc"} if options.quick else SETS
    return found + [
        Cell(f"online/{name}/{order}/{repeat}", grown, {"file": file, "order": order, "rows": 3000}, (file,))
        for name, file in sets.items()
        for order in ORDERS
        for repeat in range(options.count(2))
    ]


def rows_of(data, name, seed, rows):
    """The rows of a stream, in order."""
    if name in MADE:
        return MADE[name](np.random.default_rng(seed), rows)
    if name == "covtype":
        return data.load("covtype")[0][:rows]
    plant = pd.read_csv(data.file(FILES[name])).sort_values(["part", "fault", "sample"], ascending=[False, True, True])
    inputs = [column for column in plant if column.startswith("x")]
    return plant[inputs].to_numpy(float)[:rows]


def captured(features):
    """Variance along orthonormal components."""
    return float(features.var(axis=0).sum())


def stream(data, seed, name, rows):
    """Captured variance of the last rows after every batch, as a share of a refit's; points and times."""
    x = rows_of(data, name, seed, rows)
    first, x = standardised(x[:WINDOW], x)
    varied = first.std(axis=0) > 0
    first, x = np.ascontiguousarray(first[:, varied]), np.ascontiguousarray(x[:, varied])
    given = {"components": COMPONENTS, "support": POINTS, "scaling": "none"}
    model = skpca.fit(first, **given)
    gamma = json.loads(model.describe())["kernel"]["gamma"]
    given["kernel"] = f"rbf,gamma={gamma!r}"
    ends = range(WINDOW + BATCH, len(x) + 1, BATCH)
    best, ahead, refits = [], [], []
    for end in ends:
        start = time.perf_counter()
        again = skpca.fit(np.ascontiguousarray(x[end - WINDOW : end]), **given)
        refits.append(time.perf_counter() - start)
        best.append(captured(again.transform(x[end - WINDOW : end])))
        ahead.append(captured(again.transform(x[end : end + NEXT])) if end + NEXT <= len(x) else None)
    found = {REFIT: {"seconds": float(np.mean(refits)), "points": POINTS}}
    for kind, forget in FORGETS.items():
        online, shares, fresh, seconds, points = skpca.Online(model, first, forget=forget), [], [], [], []
        for end, most, after in zip(ends, best, ahead, strict=True):
            start = time.perf_counter()
            online.update(x[end - BATCH : end])
            seconds.append(time.perf_counter() - start)
            now = online.model()
            points.append(len(now.arrays()["coefficients"]))
            shares.append(captured(now.transform(x[end - WINDOW : end])) / most)
            if after is not None:
                fresh.append([captured(now.transform(x[end : end + NEXT])), after])
        learned = json.loads(now.describe())["learned"]
        found[kind] = {"shares": shares, "fresh": np.sum(fresh, axis=0).tolist() if fresh else None}
        found[kind] |= {"seconds": float(np.mean(seconds)), "points": max(points), **learned}
    start = time.perf_counter()
    runs = {}
    for limit, step in product(LIMITS, STEPS):
        dictionary = coherent(x, gamma, limit)
        runs[limit, step, len(dictionary)] = honeine(x, gamma, dictionary, step, ends, best)
    took = (time.perf_counter() - start) / len(runs) / len(best)
    limit, step, points = max(runs, key=lambda run: np.mean(runs[run]))
    shares = runs[limit, step, points]
    found[RIVAL] = {"shares": shares, "seconds": took, "points": points, "limit": limit, "step": step}
    return found


def coherent(x, gamma, limit):
    """The rows of a dictionary: each is added that has no kernel value above the limit, until there are enough."""
    chosen = [0]
    for i in range(1, len(x)):
        if np.exp(-gamma * np.square(x[chosen] - x[i]).sum(axis=1).min()) <= limit:
            chosen.append(i)
            if len(chosen) == POINTS:
                break
    return chosen


def honeine(x, gamma, dictionary, step, ends, best):
    """Oja's iteration in the span of a dictionary that grows: Honeine, "Online kernel principal component analysis: a
    reduced-order model", IEEE Transactions on Pattern Analysis and Machine Intelligence 34 (2012), 1814-1826."""
    k = rbf_kernel(x, x[dictionary], gamma)
    gram = k[dictionary] + 1e-10 * np.eye(len(dictionary))
    known = [row for row in dictionary if row < WINDOW]
    size = len(known)
    a, mean = leading(k[:WINDOW, :size], gram[:size, :size])
    factor = cho_factor(gram[:size, :size])
    shares, joining, ends = [], set(dictionary[size:]), list(ends)
    for t in range(WINDOW, ends[-1]):
        if t in joining:
            size += 1
            factor = cho_factor(gram[:size, :size])
            a, mean = np.vstack([a, np.zeros((1, a.shape[1]))]), np.append(mean, 0.0)
        beta = cho_solve(factor, k[t, :size])
        mean += (beta - mean) / min(t + 1, WINDOW)
        y = a.T @ (k[t, :size] - gram[:size, :size] @ mean)
        # Sanger's rule: each component learns what those before it leave.
        a += step * ((beta - mean)[:, None] * y - a @ np.triu(np.outer(y, y)))
        if t + 1 == ends[len(shares)]:
            root = np.linalg.cholesky(gram[:size, :size])
            q, _ = np.linalg.qr(root.T @ a)
            features = np.linalg.solve(root, k[t + 1 - WINDOW : t + 1, :size].T).T @ q
            shares.append(captured(features) / best[len(shares)])
    return shares


def leading(k, gram):
    """The best components over a dictionary and the mean, as coefficients."""
    root = np.linalg.cholesky(gram)
    along = np.linalg.solve(root, k.T).T
    _, _, axes = np.linalg.svd(along - along.mean(axis=0), full_matrices=False)
    return np.linalg.solve(root.T, axes[:COMPONENTS].T), np.linalg.solve(root.T, along.mean(axis=0))


def grown(data, seed, file, order, rows):
    """Fidelity over all rows of a model that learned them in batches, and of one that saw them at once."""
    x = data.load(file)[0] if file not in GENERATED else GENERATED[file](seed, rows)[0]
    x = x[np.random.default_rng(seed).permutation(len(x))[:rows]]
    (x,) = standardised(x)
    if order == "sorted":
        centred = x - x.mean(axis=0)
        x = np.ascontiguousarray(x[np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])])
    anew = SparseKernelPCA(fidelity=ASKED, random_state=0).fit(x)
    exact = SparseKernelPCA(method="exact", gamma=anew.gamma_, random_state=0).fit(x)
    most = captured(exact.transform(x))
    online = SparseKernelPCA(fidelity=ASKED, gamma=anew.gamma_, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # sorted rows leave the range of those before
        for rows in np.split(x, range(200, len(x), 100)):
            online.partial_fit(rows)
    seconds = time.perf_counter() - start
    found, stated = captured(online.transform(x)), float(online.eigenvalues_.sum()) / len(x)
    about = json.loads(online._model.describe())
    trace = 1.0  # of a Gaussian kernel, per row
    return {
        "rows": len(x),
        "anew": captured(anew.transform(x)) / most,
        "learned": found / most,
        "points": [len(anew.support_vectors_), len(online.support_vectors_)],
        "seconds": seconds,
        "off": abs(found**0.5 - stated**0.5) / trace**0.5,
        "bound": about["learned"]["error"],
    }


def streams(results):
    """Results by the name of their stream."""
    every = {name: results.done(f"online/{name}/stream/") for name in (*MADE, *FILES)}
    return {name: runs for name, runs in every.items() if runs}


def mean_share(runs, kind):
    return float(np.mean([np.mean(run[kind]["shares"]) for run in runs]))


def on_rows_to_come(runs, kind):
    """Captured variance of the rows after each batch, as a share of the refit's, summed over the batches."""
    ours, refit = np.sum([run[kind]["fresh"] for run in runs if run[kind].get("fresh")] or [[np.nan, np.nan]], axis=0)
    return float(ours / refit)


def bounded(runs):
    if not runs:
        return ""
    told = sum(run["bound"] < 1 for run in runs)
    return f"off by {max(run['off'] for run in runs):.1e} at most; {told} of {len(runs)} bounds are below 1"


def claims(results):
    runs = [(name, order, run) for name in SETS for order in ORDERS for run in results.done(f"online/{name}/{order}/")]
    lost = [run["anew"] - run["learned"] for _, _, run in runs]
    found = [
        Claim(
            "(ours) rows learned in batches, in random or sorted order, give the fidelity of one fit (to 0.01)",
            [loss <= LOST for loss in lost],
            f"fidelity {-max(lost):+.4f} to {-min(lost):+.4f}" if runs else "",
        ),
        Claim(
            "(ours) the error bound for points that join holds",
            [run["off"] <= run["bound"] + 1e-9 for _, _, run in runs],
            bounded([run for _, _, run in runs]),
        ),
    ]
    every = streams(results)
    forgetting = list(FORGETS)[1]
    drifting = {name: every[name] for name in DRIFTING if name in every}
    shares = {name: mean_share(one, forgetting) for name, one in drifting.items()}
    worst = {name: min(min(run[forgetting]["shares"]) for run in one) for name, one in drifting.items()}
    told = "; ".join(f"{name} {share:.3f} (worst batch {worst[name]:.3f})" for name, share in shares.items())
    text = "(ours) under drift, forgetting captures 0.97 of what a refit on the last 1000 rows does, on average"
    found.append(Claim(text, [share >= 0.97 for share in shares.values()], told))
    fresh = {name: on_rows_to_come(one, forgetting) for name, one in drifting.items()}
    told = "; ".join(f"{name} {share:.3f}" for name, share in fresh.items())
    text = f"(ours) … and 0.97 of what it does on the {NEXT} rows to come, which neither has seen"
    found.append(Claim(text, [share >= 0.97 for share in fresh.values() if np.isfinite(share)], told))
    ratios = {
        name: float(np.mean([run[forgetting]["seconds"] / run[REFIT]["seconds"] for run in one]))
        for name, one in drifting.items()
    }
    told = "; ".join(f"{name} 1/{1 / ratio:.0f}" for name, ratio in ratios.items())
    text = "(ours) … at a twentieth of its time per batch"
    found.append(Claim(text, [ratio <= 1 / 20 for ratio in ratios.values()], told))
    ahead = {
        name: max(mean_share(one, kind) for kind in FORGETS) - mean_share(one, RIVAL) for name, one in every.items()
    }
    told = "; ".join(f"{name} {gain:+.3f}" for name, gain in ahead.items())
    text = "(ours) ahead of Honeine's iteration at equal size on every stream"
    found.append(Claim(text, [gain > 0 for gain in ahead.values()], told))
    return found


def page(results, folder):
    parts, every = ["## Streams\n"], streams(results)
    rows = []
    for name, runs in every.items():
        for kind in (*FORGETS, RIVAL):
            shares = [share for run in runs for share in run[kind]["shares"]]
            seconds = np.mean([run[kind]["seconds"] for run in runs])
            rows.append(
                [
                    name,
                    kind,
                    f"{np.mean(shares):.3f}",
                    f"{min(shares):.3f}",
                    f"{np.mean([run[kind]['shares'][-1] for run in runs]):.3f}",
                    f"{on_rows_to_come(runs, kind):.3f}" if kind in FORGETS else DASH,
                    max(run[kind]["points"] for run in runs),
                    f"{1e6 * seconds / BATCH:.1f}",
                    f"1/{np.mean([run[REFIT]['seconds'] for run in runs]) / seconds:.0f}",
                ]
            )
    header = ["stream", "method", "mean share", "worst batch", "at the end", "rows to come", "points", "µs per row"]
    header.append("time of a refit")
    parts.append(table(header, rows))
    if every:
        parts.append(drawn(every, folder))
    parts.append("## Sets\n")
    rows = []
    for name in SETS:
        for order in ORDERS:
            runs = results.done(f"online/{name}/{order}/")
            if not runs:
                rows.append([name, order, *[DASH] * 6])
                continue

            def mean(key, runs=runs):
                return np.mean([run[key] for run in runs], axis=0)

            points = mean("points")
            rows.append(
                [
                    name,
                    order,
                    f"{mean('anew'):.4f}",
                    f"{mean('learned'):.4f}",
                    f"{points[0]:.1f}",
                    f"{points[1]:.1f}",
                    f"{max(run['off'] for run in runs):.1e}",
                    f"{min(run['bound'] for run in runs):.1e}",
                ]
            )
    header = ["set", "order", "fidelity, one fit", "learned", "points, one fit", "learned", "largest error", "bound"]
    return [
        *parts,
        table(header, rows),
        "Errors and bounds refer to the square root of the captured share: a bound of 1 is vacuous.\n",
    ]


def drawn(every, folder):
    """Shares over time, one panel per stream."""
    figure, axes = plt.subplots(2, 3, figsize=(10, 5), sharey=True, layout="constrained")
    for axis, (name, runs) in zip(axes.flat, every.items(), strict=False):
        for kind in (*FORGETS, RIVAL):
            shares = runs[0][kind]["shares"]
            axis.plot(WINDOW + BATCH * (1 + np.arange(len(shares))), shares, label=kind)
        axis.set(title=name, ylim=(0.4, 1.02))
    axes.flat[0].legend()
    return save(figure, folder, "online-streams")
