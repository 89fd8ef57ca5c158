"""Zhang, Wang & Ma 2010: principal components of the rows that are far from the mean."""

import time

import numpy as np
from sklearn.svm import SVC, LinearSVC

from .data import GENERATED
from .models import about, fit, rbf
from .pages import DASH, against, ours, table
from .runner import Cell
from .verdicts import Claim, no_worse

TITLE = "Zhang, Wang & Ma 2010: the highest-norm points"
ABOUT = """
*Approximations of the standard principal components analysis and kernel PCA* (APCA, AKPCA): keep the rows with 1
− α/2 of the energy, solve on them, keep the components with 1 − α/2 of that. rbf is exp(−‖x − y‖²/2σ²), σ = 0.5,
tables as shipped. Splits are the published ones if available (counts: their mean, and that of the first one), random
ones of the published size for thyroid and flare-solar; the normal table, ringnorm, twonorm and waveform are generated
from their published recipes.

Times: "solve" covers the steps after the choice of rows (for PCA a product and an eigenproblem of the columns, for
kernel PCA an eigenproblem of the rows); "all" also covers the choice and the kernel matrix. Both in numpy, one
thread, the best of at least five runs. "Library" compares complete fits of `exact` and `energy`.

Tables 9 and 11: accuracy of an SVM, mean over C = 10, 100, 1000. The paper does not name the SVM's kernel. Its 0.50
for twonorm, which any linear classifier separates to 0.97, shows that it was the rbf kernel with σ = 0.5; both are run.
On the first published split the accuracies of KPCA equal the paper's to the last digit for banana, breast cancer and
German; those of AKPCA do not, so the authors' AKPCA differs from its printed form in an unknown way (five ways of
centring, and an SVM trained only on the kept rows, were tried).
"""

ALPHAS = (0.3, 0.2, 0.1)
RBF = "rbf,gamma=2"
# rows; points used and ratio of times (rate2) at each of ALPHAS: Tables 2, 3 and 4
LINEAR = {
    "normal": (10_000, (7966, 8586, 9245), (23.6, 12.4, 12.3)),
    "ringnorm": (7000, (4153, 4886, 5772), (17.6, 15.8, 16.8)),
    "twonorm": (7000, (5330, 5806, 6335), (15.5, 17.4, 16.7)),
    "waveform": (4600, (3422, 3755, 4126), (11.8, 12.5, 13.6)),
    "image": (1300, (745, 872, 1028), (4.6, 4.6, 5.0)),
    "german": (700, (501, 557, 619), (2.6, 2.3, 2.5)),
    "thyroid": (140, (34, 49, 76), (1.3, 1.1, 1.3)),
}
# the same of Tables 6, 7 and 8
KERNEL = {
    "banana": (400, (335, 356, 378), (1.8, 1.5, 1.3)),
    "breast_cancer": (200, (170, 180, 193), (1.5, 1.4, 1.2)),
    "diabetis": (468, (398, 421, 445), (1.7, 1.4, 1.2)),
    "german": (700, (595, 630, 665), (1.7, 1.4, 1.2)),
    "flare_solar": (666, (526, 573, 620), (2.3, 1.8, 1.3)),
    "thyroid": (140, (114, 122, 131), (2.1, 1.6, 2.6)),
}
# rows to train on; accuracy of KPCA and AKPCA at each of ALPHAS: Table 9
TABLE_9 = {
    "banana": (400, (0.8602, 0.8583, 0.8594), (0.8775, 0.8759, 0.8694)),
    "breast_cancer": (200, (0.6753, 0.6883, 0.6883), (0.6796, 0.6710, 0.3117)),
    "diabetis": (468, (0.6711, 0.67, 0.67), (0.5956, 0.6167, 0.49)),
    "german": (700, (0.5755, 0.28, 0.7211), (0.7233, 0.7233, 0.7233)),
    "flare_solar": (666, (0.6617, 0.6583, 0.6475), (0.6592, 0.6525, 0.6550)),
    "thyroid": (140, (0.9733, 0.7467, 0.7867), (0.9467, 0.9467, 0.92)),
}
# the same of PCA and APCA: Table 11
TABLE_11 = {
    "thyroid": (140, (0.96, 0.96, 0.9822), (0.96, 0.9822, 0.9822)),
    "german": (700, (0.7233, 0.7233, 0.72), (0.7233, 0.72, 0.72)),
    "image": (1300, (0.8977, 0.9244, 0.9519), (0.9231, 0.9267, 0.9532)),
    "waveform": (400, (0.7159, 0.6724, 0.6707), (0.6709, 0.6707, 0.6707)),
    "twonorm": (400, (0.5030, 0.4996, 0.4994), (0.4994, 0.4994, 0.4994)),
    "ringnorm": (400, (0.5431, 0.4983, 0.4944), (0.4954, 0.4947, 0.4940)),
}
TESTED = {"waveform": 4600, "twonorm": 7000, "ringnorm": 7000}
COSTS = (10, 100, 1000)
SVMS = ("rbf SVM", "linear SVM")
SPLIT = ("banana", "breast_cancer", "diabetis", "german", "image")  # sets whose published splits are known
ACCURACIES = {"kernel": TABLE_9, "linear": TABLE_11}
COUNTS = {"linear": LINEAR, "kernel": KERNEL}


def needs(name):
    return () if name in GENERATED else (f"ida_{name}",)


def cells(options):
    found = []
    for kind, published in COUNTS.items():
        for name, (n, *_) in published.items():
            for number in range(options.count(5)):
                rows = min(n, 1000) if options.quick else n
                parameters = {"name": name, "kind": kind, "rows": rows, "number": number}
                found.append(Cell(f"zhang/{kind}/{name}/{number}", count, parameters, needs(name)))
    for kind, published in ACCURACIES.items():
        for name, (n, *_) in published.items():
            for number in range(options.count(5)):
                tested = 500 if options.quick else TESTED.get(name)
                parameters = {"name": name, "kind": kind, "rows": n, "tested": tested, "number": number}
                found.append(Cell(f"zhang/accuracy-{kind}/{name}/{number}", accuracy, parameters, needs(name)))
    return found


def spec(kind):
    return "linear" if kind == "linear" else RBF


def split(data, seed, name, rows, number, tested=0):
    if name in GENERATED:
        x, labels = GENERATED[name](seed, rows + tested)
        order = np.arange(len(x))
        return x, labels, order[:rows], order[rows:]
    return *data.load(f"ida_{name}"), *data.split(f"ida_{name}", number, rows, seed)


def count(data, seed, name, kind, rows, number):
    x, _, train, _ = split(data, seed, name, rows, number)
    x = np.ascontiguousarray(x[train])
    energy = np.trace(centred(x)) if kind == "kernel" else ((x - x.mean(axis=0)) ** 2).sum()
    whole, reference = times(x, kind, None), timed(lambda: fit(x, "exact", spec(kind), min(10, x.shape[1])))
    found = []
    for alpha in ALPHAS:
        model = fit(x, f"energy,alpha={alpha}", spec(kind))
        told = about(model)
        part = times(x, kind, told["report"]["chosen"])
        found.append(
            {
                "points": told["report"]["chosen"],
                "components": told["q"],
                "J": told["report"]["objective"],
                "lost": 1 - told["captured"] / energy,
                "solve": whole["solve"] / part["solve"],
                "all": whole["all"] / part["all"],
                "library": reference / timed(lambda alpha=alpha: fit(x, f"energy,alpha={alpha}", spec(kind))),
            }
        )
    return {"n": len(x), "alphas": found}


def centred(x):
    k = rbf(x, x, 2)
    mean = k.mean(axis=0)
    return k - mean - mean[:, None] + mean.mean()


def timed(work):
    """The best of five runs, or of as many as a tenth of a second holds: other programs only ever add time."""
    seconds = []
    while len(seconds) < 5 or sum(seconds) < 0.1:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def times(x, kind, points):
    """Seconds of the plain algorithm in numpy, on the highest-norm points or on all."""

    def choose():
        if kind == "linear":
            y = x - x.mean(axis=0)
            return y if points is None else y[np.argsort(-np.square(y).sum(axis=1))[:points]]
        k = centred(x)
        if points is None:
            return k
        first = np.argsort(-np.diag(k))[:points]
        return k[np.ix_(first, first)]

    def solve(chosen):
        np.linalg.eigh(chosen.T @ chosen if kind == "linear" else chosen)

    chosen = choose()
    return {"solve": timed(lambda: solve(chosen)), "all": timed(lambda: solve(choose()))}


def components(x, kind, alpha):
    """The fewest that hold 1 - alpha of the variance."""
    matrix = np.cov(x.T, bias=True) * len(x) if kind == "linear" else centred(x)
    values = np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0)
    return int(np.searchsorted(values.cumsum(), (1 - alpha) * values.sum()) + 1)


def accuracy(data, seed, name, kind, rows, tested, number):
    x, labels, train, test = split(data, seed, name, rows, number, tested or 0)
    x, y, rest, truth = np.ascontiguousarray(x[train]), labels[train], np.ascontiguousarray(x[test]), labels[test]
    found = []
    for alpha in ALPHAS:
        full = fit(x, "exact", spec(kind), components(x, kind, alpha))
        part = fit(x, f"energy,alpha={alpha}", spec(kind))
        one = {}
        for method, model in (("full", full), ("part", part)):
            a, b = model.transform(x), model.transform(rest)
            one[f"{method} components"] = a.shape[1]
            for svm in SVMS:
                hits = [np.mean(classifier(svm, cost).fit(a, y).predict(b) == truth) for cost in COSTS]
                one[f"{method} {svm}"] = np.mean(hits)
        found.append(one)
    return {"alphas": found}


def classifier(svm, cost):
    return SVC(C=cost, gamma=2) if svm == SVMS[0] else LinearSVC(C=cost, dual=False)


def column(runs, k, field):
    return [run["alphas"][k][field] for run in runs]


def claims(results):
    near, off, bound, worst, fast = [], {}, [], 0, {"solve": [], "all": []}
    for kind, published in COUNTS.items():
        for name, (n, points, _) in published.items():
            runs = results.done(f"zhang/{kind}/{name}/")
            for k, alpha in enumerate(ALPHAS):
                # as shares of the rows: a quick run has fewer
                found = [run["alphas"][k]["points"] / run["n"] for run in runs]
                share = [abs(np.mean(found) / (points[k] / n) - 1)] if runs else []
                near.append(no_worse(share, 0.02))
                off |= {f"{name}, {kind}, α = {alpha}": value for value in share}
                bound.append(bool(max(column(runs, k, "J")) <= alpha) if runs else None)
                worst = max([worst, *[value / alpha for value in column(runs, k, "J")]])
                for field in fast:
                    fast[field].append(bool(np.mean(column(runs, k, field)) > 1) if runs else None)
    found = [
        Claim(
            "Tables 2–4, 6–8: points used (to 2 %)",
            near,
            f"largest difference {100 * max(off.values()):.1f} % ({max(off, key=off.get)}), median"
            f" {100 * np.median(list(off.values())):.2f} %"
            if off
            else DASH,
            "193 of breast cancer, α = 0.1, is a misprint: the paper's own rate says 190.",
        ),
        Claim("Theorem 2, 3: the loss J is at most α", bound, f"largest J / α {worst:.3f}"),
        Claim(
            "Tables 2–4, 6–8: it is faster, once the points are chosen",
            fast["solve"],
            speeds(results, "solve"),
        ),
        Claim("… and with the choice of points", fast["all"], speeds(results, "all")),
    ]
    for kind, number in (("kernel", 9), ("linear", 11)):
        gaps = []
        for name in ACCURACIES[kind]:
            runs = results.done(f"zhang/accuracy-{kind}/{name}/")
            for k in range(len(ALPHAS)):
                full, part = (column(runs, k, f"{method} rbf SVM") for method in ("full", "part"))
                gaps.append(np.subtract(full, part))
        means = [-np.mean(gap) for gap in gaps if len(gap)]
        text = "the part classifies as well as the whole (rbf SVM, to 0.01)"
        decides = f"{min(means):+.3f} to {max(means):+.3f}, median {np.median(means):+.4f}" if means else "–"
        found.append(Claim(f"Table {number}: {text}", [no_worse(gap, 0.01) for gap in gaps], decides))
        for method in ("full", "part"):
            off = again(results, kind, method)
            told = "; ".join(f"{name} {max(gaps):.4f}" for name, gaps in off.items() if gaps)
            checks = [no_worse([gap], 0.005) for gaps in off.values() for gap in gaps] or [None]
            text = f"accuracies of {label(kind, method)}, first published split (rbf SVM, to 0.005)"
            found.append(Claim(f"Table {number}: {text}", checks, f"largest difference: {told}"))
    return found


def label(kind, method):
    return ("A" if method == "part" else "") + ("KPCA" if kind == "kernel" else "PCA")


def again(results, kind, method):
    """How far accuracies on the paper's own split are from the paper's, for each set whose split is known."""
    found = {}
    for name in [name for name in ACCURACIES[kind] if name in SPLIT]:
        values = ACCURACIES[kind][name][1 if method == "full" else 2]
        runs = results.done(f"zhang/accuracy-{kind}/{name}/0")
        found[name] = [
            abs(run["alphas"][k][f"{method} rbf SVM"] - values[k]) for run in runs for k in range(len(ALPHAS))
        ]
    return found


def speeds(results, field):
    told = []
    for kind, published in COUNTS.items():
        values = [
            np.mean(column(runs, k, field))
            for name in published
            if (runs := results.done(f"zhang/{kind}/{name}/"))
            for k in range(len(ALPHAS))
        ]
        told += [f"{kind}: × {min(values):.2f} to {max(values):.2f}"] if values else []
    return "; ".join(told)


def page(results, folder):
    parts = []
    for kind, numbers, title in (("linear", "2–4", "APCA"), ("kernel", "6–8", "AKPCA")):
        parts += [f"## Tables {numbers}: {title}\n", counts_table(results, kind)]
    for kind, number, title in (("kernel", 9, "KPCA and AKPCA"), ("linear", 11, "PCA and APCA")):
        parts += [f"## Table {number}: accuracy with {title}\n", accuracy_table(results, kind)]
    return parts


def titled(name, n, state):
    return f"{name}, {n}" + (f" ({state})" if state else "")


def counts_table(results, kind):
    header = ["set, rows", "α", "points: paper", "ours", "difference", "first split", "J", "lost by the model"]
    header += ["times faster: paper", "solve, ours", "all, ours", "library"]
    rows = []
    for name, (n, points, ratios) in COUNTS[kind].items():
        runs, state = results.done(f"zhang/{kind}/{name}/"), results.state(f"zhang/{kind}/{name}/")
        for k, alpha in enumerate(ALPHAS):
            row = [titled(name, n, state), alpha, *against(points[k], column(runs, k, "points"), 1)]
            row.append(column(runs, k, "points")[0] if runs else DASH)
            row += [ours(column(runs, k, field), 3) for field in ("J", "lost")]
            rows.append([*row, ratios[k], *[ours(column(runs, k, field), 2) for field in ("solve", "all", "library")]])
    return table(header, rows)


def accuracy_table(results, kind):
    header = ["set, rows", "α", "method", "paper", "rbf SVM", "difference", "first published split"]
    header += ["linear SVM", "components"]
    rows = []
    for name, (n, *published) in ACCURACIES[kind].items():
        start = f"zhang/accuracy-{kind}/{name}/"
        runs, state = results.done(start), results.state(start)
        for k, alpha in enumerate(ALPHAS):
            for method, values in zip(("full", "part"), published, strict=True):
                row = [titled(name, n, state), alpha, label(kind, method)]
                row += against(values[k], column(runs, k, f"{method} rbf SVM"), 4)
                row.append(f"{column(runs, k, f'{method} rbf SVM')[0]:.4f}" if runs and name in SPLIT else DASH)
                row.append(ours(column(runs, k, f"{method} linear SVM"), 4))
                rows.append([*row, ours(column(runs, k, f"{method} components"), 1)])
    return table(header, rows)
