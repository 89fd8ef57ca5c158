"""Li & Gao 2011: error rates on features of KPCA, SKPCA, SDKPCA and kernel discriminant analysis, against their tables.

    python li_gao.py DATA [--splits 10] [--only banana thyroid]

DATA holds ida_NAME.csv (a header, the label last) and, where the original splits are known, ida_NAME_splits.npz; else
splits are random, of the published size. WDBC comes with scikit-learn. Columns are standardised on the training rows.
Kernel width, delta, regularisation, number of components and the SVM's C are chosen by 3-fold cross-validation on the
training rows alone (on 450 of them at most), for each split, method and classifier; the paper names neither its
classifier nor any of its parameters.
"""

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from skpca import _core

#       set     training, kept, published error in % of KPCA, SKPCA, SDKPCA (Tables 1, 2, 3 and 6)
SETS = {
    "banana": (400, 120, (13.6, 14.2, 13.9)),
    "image": (1300, 180, (4.8, 5.4, 5.1)),
    "thyroid": (140, 30, (2.1, 2.2, 2.2)),
    "titanic": (150, 30, (22.8, 23.2, 24.4)),
    "wdbc": (300, 110, (3.8, 5.4, 4.9)),
}
GAMMAS = (0.5, 2, 8)  # times the median rule, 1 / median |x - y|^2
DELTAS = (1, 10)  # the same
COMPONENTS = (2, 10, 30, 100)
COSTS = (1, 30, 1000)
GRIDS = {
    "KPCA": {"gamma": GAMMAS},
    "SKPCA": {"gamma": GAMMAS},
    "SDKPCA exact": {"gamma": GAMMAS, "delta": DELTAS, "regularisation": (1e-3, 1e-1)},
    "SDKPCA positive": {"gamma": GAMMAS, "delta": DELTAS},
    "SDKPCA iteration": {"gamma": GAMMAS, "delta": DELTAS},
    "KDA": {"gamma": GAMMAS, "regularisation": (1e-3, 1e-2, 1e-1)},
}
GREEDY = "greedy,exchanges=0"  # exchanges take four times as long and add 0.001 of fidelity
FOLDS, CAP = 3, 450
RATE, ROUNDS = 0.1, 200  # of (32); the paper tells neither


def features(method, point, kept, x, labels, rest):
    """Features of x and rest by our library; point holds gamma, delta and regularisation."""
    kernel, how, supervised = f"rbf,gamma={point['gamma']}", GREEDY, {"labels": labels}
    if method.startswith("SDKPCA"):
        conformal = "".join(f",{key}={value}" for key, value in point.items())
        solver = method.split()[1]
        steps = f",rate={RATE},rounds={ROUNDS}" if solver == "iteration" else ""
        kernel = f"conformal,base=rbf{conformal},solver={solver}{steps}"
    elif method == "KDA":
        how = f"discriminant,regularisation={point['regularisation']}"
    else:
        how, supervised = ("exact" if method == "KPCA" else GREEDY), {}
    target = {} if method == "KPCA" else {"support": min(kept, len(np.unique(x, axis=0)))}
    q = len(np.unique(labels)) - 1 if method == "KDA" else min(COMPONENTS[-1], *target.values(), len(x) - 1)
    model = _core.fit(x, method=how, kernel=kernel, components=q, scaling="none", seed=0, **target, **supervised)
    return model.transform(x), model.transform(rest)


# what is tried on one table of features: name, components, C
TRIALS = [("1-NN", q, None) for q in COMPONENTS] + [("SVM", q, cost) for q in COMPONENTS for cost in COSTS]


def error(trial, table, labels, rest, truth):
    """Error in %, on features of total variance 1 so that C means the same everywhere."""
    kind, q, cost = trial
    size = np.sqrt(table.var(axis=0).sum())
    table, rest = table[:, :q] / size, rest[:, :q] / size
    if kind == "1-NN":
        classifier = KNeighborsClassifier(1).fit(*distinct(table, labels))
    else:
        classifier = LinearSVC(C=cost, dual=False).fit(table, labels)
    return 100 * np.mean(classifier.predict(rest) != truth)


def distinct(table, labels):
    """Equal rows once, with the label of most of them: Titanic's 150 rows are a dozen points, of both classes each."""
    _, first, group = np.unique(table.round(9), axis=0, return_index=True, return_inverse=True)
    classes, coded = np.unique(labels, return_inverse=True)
    votes = np.zeros((len(first), len(classes)))
    np.add.at(votes, (group.ravel(), coded), 1)
    return table[first], classes[votes.argmax(axis=1)]


def errors(table, labels, rest, truth):
    """The error of every trial; those that differ only in components the table does not have are computed once."""
    found = {}
    for kind, q, cost in TRIALS:
        trial = kind, min(q, table.shape[1]), cost
        if trial not in found:
            found[trial] = error(trial, table, labels, rest, truth)
    return [found[kind, min(q, table.shape[1]), cost] for kind, q, cost in TRIALS]


def grid(method, unit):
    """All points of a method's grid, gamma and delta in the units of the data."""
    keys = GRIDS[method]
    for values in product(*keys.values()):
        point = dict(zip(keys, values, strict=True))
        yield {key: value * unit if key in ("gamma", "delta") else value for key, value in point.items()}


def chosen(method, unit, kept, x, labels, seed):
    """For each classifier, the best (point, trial) by cross-validation."""
    some = np.random.default_rng(seed).permutation(len(x))[:CAP]
    x, labels = x[some], labels[some]
    points, scores = list(grid(method, unit)), []
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, labels))
    for point in points:
        runs = []
        for fit, check in folds:
            table, rest = features(method, point, kept, x[fit], labels[fit], x[check])
            runs.append(errors(table, labels[fit], rest, labels[check]))
        scores.append(np.mean(runs, axis=0))
    best = {}
    for kind in ("1-NN", "SVM"):
        score = np.where([trial[0] == kind for trial in TRIALS], scores, np.inf)
        i, j = np.unravel_index(score.argmin(), score.shape)
        best[kind] = points[i], TRIALS[j]
    return best


def one(kept, x, labels, rest, truth, seed):
    """Test error of every method and classifier on one split."""
    mean, size = x.mean(axis=0), x.std(axis=0)
    size[size == 0] = 1
    x, rest = (np.ascontiguousarray((table - mean) / size) for table in (x, rest))
    distances = ((x[:, None] - x[:500]) ** 2).sum(axis=2)
    unit = 1 / np.median(distances[distances > 0])
    found = {}
    for method in GRIDS:
        for kind, (point, trial) in chosen(method, unit, kept, x, labels, seed).items():
            table, tested = features(method, point, kept, x, labels, rest)
            found[kind, method] = error(trial, table, labels, tested, truth)
    return found


def load(data, name):
    if name == "wdbc":
        return load_breast_cancer(return_X_y=True)
    table = np.genfromtxt(data / f"ida_{name}.csv", delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1].astype(np.int64)


def splits(data, name, total, training, count):
    """(training rows, test rows): the published splits where they are known, then random ones."""
    known = data / f"ida_{name}_splits.npz"
    if known.exists():
        held = np.load(known)
        yield from list(zip(held["train"], held["test"], strict=True))[:count]
        count -= len(held["train"])
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(total)
        yield order[:training], order[training:]


def show(name, published, runs):
    for kind in ("1-NN", "SVM"):
        for method in GRIDS:
            paper = dict(zip(("KPCA", "SKPCA", "SDKPCA"), published, strict=True)).get(method.split()[0], "")
            ours = np.array([run[kind, method] for run in runs])
            line = f"{name:<8} {kind:<5} {method:<16} {paper:>6} {ours.mean():>7.1f} +- {ours.std(ddof=1):<4.1f}"
            if method not in ("KPCA", "SKPCA"):
                paired = ours - [run[kind, "SKPCA"] for run in runs]
                line += f" {paired.mean():>+8.2f} +- {paired.std(ddof=1) / np.sqrt(len(paired)):.2f}"
            print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Liblinear failed to converge")
    print("error in %, mean +- deviation over splits; last: less that of SKPCA on the same split, +- standard error")
    print(f"{'set':<8} {'by':<5} {'method':<16} {'paper':>6} {'ours':>7} {'':<7} {'- SKPCA':>8}")
    for name in options.only:
        training, kept, published = SETS[name]
        try:
            x, labels = load(options.data, name)
        except OSError:
            print(f"{name}: not there, skipped")
            continue
        start, runs = time.time(), []
        for seed, (fit, test) in enumerate(splits(options.data, name, len(x), training, options.splits)):
            runs.append(one(kept, x[fit], labels[fit], x[test], labels[test], seed))
        show(name, published, runs)
        print(f"{'':<8} {len(runs)} splits, {training} rows, {kept} kept, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
