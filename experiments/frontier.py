"""Beyond the papers: how much of kernel PCA a number of points holds, and what that is worth."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC
from skpca._registry import METHODS as REGISTRY

from .data import standardised
from .models import about, fit, median_rule, rbf
from .pages import DASH, ours, plt, save, table
from .runner import Cell
from .verdicts import Claim

TITLE = "Beyond the papers: points against fidelity"
ABOUT = """
Ten components, rbf kernel, median rule, standardised columns, 1000 training rows at most. Fidelity: captured variance
over that of exact kernel PCA with all rows, on the training rows. Worth: test accuracy of a linear SVM on the
features (C by 3-fold cross-validation on training rows), or, where the set has outliers, AUROC of the distance to the
span, trained on inliers. The three baselines are Nyström's method in numpy (whitened kernel values with the chosen
points, then PCA) with uniformly drawn rows, k-means centres, and randomly pivoted Cholesky (Chen, Epperly, Tropp &
Webber); our `landmarks` is the last of these. Some methods cannot hit a number of points exactly: figures show the
number they used, tables the next one at or below.
"""

#       file, label of inliers (None: classes)
SETS = {
    "digits": ("digits", None),
    "wdbc": ("wdbc", None),
    "image": ("ida_image", None),
    "banana": ("ida_banana", None),
    "german": ("ida_german", None),
    "splice": ("ida_splice", None),
    "australian": ("australian", None),
    "satimage-2": ("satimage2", 0),
    "cardio": ("adbench_cardio", 0),
    "thyroid": ("adbench_thyroid", 0),
    "mammography": ("adbench_mammography", 0),
    "shuttle": ("adbench_shuttle", 0),
    "mnist": ("mnist_0_vs_rest", 0),
    "fashion": ("fashion_0_vs_1", 0),
}
# Every method that can be asked for a number of points, and needs no labels.
METHODS = tuple(name for name, entry in REGISTRY.items() if not (entry["keeps_all_rows"] or entry["labelled"]))
BASELINES = ("Nyström, uniform", "Nyström, k-means", "Nyström, pivoted")
SIZES = (10, 15, 20, 30, 50, 100)
Q, ROWS, TESTED = 10, 1000, 2000


def cells(options):
    found = []
    rows, sizes = (200, SIZES[::2]) if options.quick else (ROWS, SIZES)
    for name, (file, inlier) in SETS.items():
        for number in range(options.count(2)):
            parameters = {"file": file, "inlier": inlier, "rows": rows, "sizes": sizes}
            found.append(Cell(f"frontier/{name}/{number}", one, parameters, (file,)))
    return found


def rows_of(data, seed, file, inlier, rows):
    """Training rows and labels, test rows and labels. With outliers: inliers, None, test rows, and 1 for an outlier."""
    x, labels = data.load(file)
    order = np.random.default_rng(seed).permutation(len(x))
    if inlier is None:
        count = min(rows, len(x) // 2)
        train, test = order[:count], order[count:][:TESTED]
        return x[train], labels[train], x[test], labels[test]
    inside, outside = order[labels[order] == inlier], order[labels[order] != inlier]
    count = min(rows, len(inside) // 2)
    test = np.concatenate([inside[count:][:TESTED], outside[:TESTED]])
    return x[inside[:count]], None, x[test], (labels[test] != inlier).astype(int)


def one(data, seed, file, inlier, rows, sizes):
    x, y, rest, truth = rows_of(data, seed, file, inlier, rows)
    x, rest = standardised(x, rest)
    gamma = median_rule(x)
    kernel, found = f"rbf,gamma={gamma}", {"gamma": gamma, "n": len(x)}
    exact = fit(x, "exact", kernel, Q)
    best = about(exact)["captured"]
    found["exact"] = [{"points": len(x), "fidelity": 1.0, "worth": worth(exact, x, y, rest, truth)}]
    for method in METHODS:
        found[method] = []
        for size in sizes:
            try:
                model = fit(x, method, kernel, Q, support=size, center=True, seed=seed)
            except ValueError as error:  # a component needs a point at least: some methods cannot keep so few
                found[method].append({"asked": size, "refused": str(error)})
                continue
            told = {"asked": size, "points": about(model)["m"], "fidelity": about(model)["captured"] / best}
            found[method].append(told | {"worth": worth(model, x, y, rest, truth)})
    for name in BASELINES:
        found[name] = []
        for size in sizes:
            model = Nystroem(x, chosen(name, x, size, gamma, seed), gamma)
            told = {"asked": size, "points": size, "fidelity": model.captured / best}
            found[name].append(told | {"worth": worth(model, x, y, rest, truth)})
    return found


def worth(model, x, y, rest, truth):
    """Accuracy of a linear SVM on features, or AUROC of scores where there are no training labels."""
    if y is None:
        return roc_auc_score(truth, model.score(rest))
    table, tested = model.transform(x), model.transform(rest)
    size = np.sqrt(table.var(axis=0).sum())
    search = GridSearchCV(LinearSVC(dual=False), {"C": (1, 30, 1000)}, cv=3).fit(table / size, y)
    return search.score(tested / size, truth)


def chosen(name, x, size, gamma, seed):
    """Points of a baseline."""
    rng = np.random.default_rng(seed)
    if name == BASELINES[0]:
        return x[rng.choice(len(x), size, replace=False)]
    if name == BASELINES[1]:
        return KMeans(size, n_init=1, random_state=seed % 2**32).fit(x).cluster_centers_
    left, factor, pivots = np.ones(len(x)), np.zeros((len(x), size)), []
    for k in range(size):
        pivot = rng.choice(len(x), p=left / left.sum())
        column = rbf(x, x[pivot : pivot + 1], gamma)[:, 0] - factor @ factor[pivot]
        factor[:, k] = column / np.sqrt(column[pivot])
        left = np.maximum(left - factor[:, k] ** 2, 0)
        pivots.append(pivot)
    return x[pivots]


class Nystroem:
    """Principal components in the span of given points; they are whitened first, so that plain PCA finds them."""

    def __init__(self, x, points, gamma):
        self.points, self.gamma = points, gamma
        values = rbf(points, points, gamma)
        self.lower = cholesky(values + 1e-10 * np.eye(len(points)), lower=True)
        self.pca = PCA(Q).fit(self.white(x))
        self.captured = self.pca.explained_variance_.sum() * (len(x) - 1)

    def white(self, rows):
        return solve_triangular(self.lower, rbf(self.points, rows, self.gamma), lower=True).T

    def transform(self, rows):
        return self.pca.transform(self.white(rows))

    def score(self, rows):
        """Squared distance to the span of the components, through the mean as the points see it."""
        white = self.white(rows)
        outside = 1 - np.square(white).sum(axis=1)
        inside = np.square(white - self.pca.mean_).sum(axis=1) - np.square(self.transform(rows)).sum(axis=1)
        return outside + inside


def shown(runs):
    """Methods and baselines that the runs know; one that was added later is in none."""
    return [method for method in (*METHODS, *BASELINES) if method in runs[0]]


def at(run, method, size, field):
    """What a method reached when asked for a size; None where it refused."""
    return next((one.get(field) for one in run[method] if one["asked"] == size), None)


def mean(runs, method, size, field):
    values = [value for run in runs if (value := at(run, method, size, field)) is not None]
    return float(np.mean(values)) if values else None


def claims(results):
    """Ours, not a paper's: the fewest points for a fidelity, and whether fidelity is worth anything."""
    found = []
    for method in ("expansion", "greedy"):
        checks, numbers = [], []
        for name in SETS:
            runs = results.done(f"frontier/{name}/")
            others = [mean(runs, other, 20, "fidelity") or 0 for other in (*BASELINES, "landmarks")]
            reached, baseline = mean(runs, method, 20, "fidelity"), max(others)
            checks.append(None if not reached or not baseline else bool(reached > baseline))
            numbers += [f"{name} {reached:.3f} against {baseline:.3f}"] if reached and baseline else []
        text = f"(ours) `{method}` holds more with 20 points than the best Nyström baseline"
        found.append(Claim(text, checks, "; ".join(numbers)))
    checks, numbers = [], []
    for name in SETS:
        runs = results.done(f"frontier/{name}/")
        pairs = [(run["exact"][0]["worth"], at(run, "expansion", 50, "worth")) for run in runs]
        gap = [full - part for full, part in pairs if part is not None]
        checks.append(None if not gap else bool(np.mean(gap) <= 0.01))
        numbers += [f"{name} {-np.mean(gap):+.3f}"] if gap else []
    text = "(ours) 50 points of `expansion` are worth as much as all rows (accuracy or AUROC, to 0.01)"
    found.append(Claim(text, checks, "; ".join(numbers)))
    return found


def page(results, folder):
    parts = []
    for name, (_, inlier) in SETS.items():
        runs, state = results.done(f"frontier/{name}/"), results.state(f"frontier/{name}/")
        kind = "accuracy" if inlier is None else "AUROC"
        parts.append(f"## {name}: {state or f'{len(runs)} splits'}\n")
        if not runs:
            continue
        worth = ours([run["exact"][0]["worth"] for run in runs], 3)
        parts.append(f"Exact kernel PCA, {runs[0]['n']} rows: {kind} {worth}. Fidelity / {kind}:\n")
        sizes = [one["asked"] for one in runs[0]["landmarks"]]
        rows = []
        for method in shown(runs):
            cells = [(mean(runs, method, size, "fidelity"), mean(runs, method, size, "worth")) for size in sizes]
            rows.append([method, *[DASH if a is None else f"{a:.3f} / {b:.3f}" for a, b in cells]])
        parts.append(table(["method", *[f"m = {size}" for size in sizes]], rows))
        parts.append(save(drawing(runs, kind), folder, f"frontier-{name}"))
    return parts


def drawing(runs, kind):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, field in zip(axes, ("fidelity", "worth"), strict=True):
        for k, method in enumerate(shown(runs)):
            asked = [one["asked"] for one in runs[0][method]]
            points = [(mean(runs, method, size, "points"), mean(runs, method, size, field)) for size in asked]
            points = [point for point in points if None not in point]
            style = "--" if method in BASELINES else "-"
            if points:
                axis.plot(*np.transpose(points), style, marker=".", label=method, color=f"C{k % 10}", linewidth=1)
        axis.set(xlabel="points", xscale="log")
    axes[1].axhline(np.mean([run["exact"][0]["worth"] for run in runs]), color="grey", linestyle=":", label="exact")
    axes[0].set_ylabel("captured / exact kernel PCA")
    axes[1].set_ylabel(kind)
    axes[1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
