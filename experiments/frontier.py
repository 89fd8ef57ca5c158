"""Beyond the papers: how much of kernel PCA a number of points holds, and what that is worth."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC
from skpca._registry import METHODS as REGISTRY

from .baselines import CHOICES, Nystroem, k_means, pivoted, polished, uniform
from .data import standardised
from .models import about, fit, median_rule, rbf
from .pages import DASH, ours, plt, save, table
from .runner import Cell
from .verdicts import Claim

TITLE = "Beyond the papers: points against fidelity"
ABOUT = """
Ten components, rbf kernel, median rule, standardised columns, at most 1000 training rows. Fidelity: captured variance
divided by that of exact kernel PCA with all rows, on the training rows. Worth: test accuracy of a linear SVM on the
features (C by 3-fold cross-validation on training rows), or, for sets with outliers, AUROC of the distance to the span,
trained on inliers. The three baselines are Nyström's method in numpy (whitened kernel values with the chosen points,
then PCA) with uniformly drawn rows, k-means centres, and randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber);
`landmarks` uses the last of these or uniform rows, whichever captures more. Some methods cannot reach a number of
points exactly: figures show the number they used, tables the requested number.
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
# All methods that take a number of points as target, and need no labels.
METHODS = tuple(name for name, entry in REGISTRY.items() if not (entry["keeps_all_rows"] or entry["labelled"]))
BASELINES = {"Nyström, uniform": uniform, "Nyström, k-means": k_means, "Nyström, pivoted": pivoted}
SIZES = (10, 15, 20, 30, 50, 100)
Q, ROWS, TESTED = 10, 1000, 2000
# Ways to choose points, compared at four sizes and three widths of the kernel: shares of the median rule's gamma.
POINTS = (10, 20, 30, 50)
WIDTHS = {"wide": 0.25, "median": 1.0, "narrow": 4.0}
OURS = ("landmarks", "landmarks,sampling=kmeans", "greedy", "expansion")


def cells(options):
    found = []
    rows, sizes = (200, SIZES[::2]) if options.quick else (ROWS, SIZES)
    for name, (file, inlier) in SETS.items():
        for number in range(options.count(2)):
            parameters = {"file": file, "inlier": inlier, "rows": rows, "sizes": sizes}
            found.append(Cell(f"frontier/{name}/{number}", one, parameters, (file,)))
        parameters = {"file": file, "inlier": inlier, "rows": rows, "sizes": POINTS[:2] if options.quick else POINTS}
        found.append(Cell(f"frontier/points-{name}/0", choices, parameters, (file,)))
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
            points = BASELINES[name](x, size, gamma, np.random.default_rng(seed))
            model = Nystroem(x, points, gamma, Q)
            told = {"asked": size, "points": size, "fidelity": model.captured / best}
            found[name].append(told | {"worth": worth(model, x, y, rest, truth)})
    return found


def choices(data, seed, file, inlier, rows, sizes):
    """Compares ways to choose points, with and without polishing, by their share of what kernel PCA captures."""
    x, y, rest, truth = rows_of(data, seed, file, inlier, rows)
    x, rest = standardised(x, rest)
    normal, found = rest if y is not None else rest[truth == 0], {}
    for width, share in WIDTHS.items():
        gamma = share * median_rule(x)
        kernel = f"rbf,gamma={gamma}"
        exact = fit(x, "exact", kernel, Q)
        # of held-out rows: their distance to the mean, without what the components leave of it
        spread = np.mean(1 - 2 * rbf(normal, x, gamma).mean(axis=1)) + rbf(x, x, gamma).mean()
        best, held = about(exact)["captured"], spread - exact.score(normal).mean()
        fitted = []
        for size in sizes:
            for method in OURS:
                model = fit(x, method, kernel, Q, support=size, center=True, seed=seed)
                fitted.append((method, size, about(model)["m"], about(model)["captured"], model))
            for name, choose in CHOICES.items():
                points = choose(x, size, gamma, np.random.default_rng(seed))
                for label, some in ((name, points), (f"{name}, polished", polished(x, points, gamma, Q))):
                    model = Nystroem(x, some, gamma, Q)
                    fitted.append((label, size, len(some), model.captured, model))
        found[width] = {}
        for label, size, points, captured, model in fitted:
            told = {"asked": size, "points": points, "fidelity": captured / best}
            told["held out"] = (spread - model.score(normal).mean()) / held
            told |= {} if y is not None else {"AUROC": roc_auc_score(truth, model.score(rest))}
            found[width].setdefault(label, []).append(told)
    return found


def worth(model, x, y, rest, truth):
    """Returns the accuracy of a linear SVM on features, or the AUROC of scores if there are no training labels."""
    if y is None:
        return roc_auc_score(truth, model.score(rest))
    table, tested = model.transform(x), model.transform(rest)
    size = np.sqrt(table.var(axis=0).sum())
    search = GridSearchCV(LinearSVC(dual=False), {"C": (1, 30, 1000)}, cv=3).fit(table / size, y)
    return search.score(tested / size, truth)


def shown(runs):
    """Returns the methods and baselines that the runs contain; methods added later are missing."""
    return [method for method in (*METHODS, *BASELINES) if method in runs[0]]


def at(run, method, size, field):
    """Returns what a method reached at a requested size; None if the fit failed."""
    return next((one.get(field) for one in run[method] if one["asked"] == size), None)


def mean(runs, method, size, field):
    values = [value for run in runs if (value := at(run, method, size, field)) is not None]
    return float(np.mean(values)) if values else None


def claims(results):
    """Claims of this project: fidelity with few points, and whether fidelity predicts usefulness."""
    found = []
    for method in ("expansion", "greedy"):
        checks, numbers = [], []
        for name in SETS:
            runs = results.done(f"frontier/{name}/")
            others = [mean(runs, other, 20, "fidelity") or 0 for other in (*BASELINES, "landmarks")]
            reached, baseline = mean(runs, method, 20, "fidelity"), max(others)
            checks.append(None if not reached or not baseline else bool(reached > baseline))
            numbers += [f"{name} {reached:.3f} against {baseline:.3f}"] if reached and baseline else []
        text = f"(ours) `{method}` captures more with 20 points than the best Nyström baseline"
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
    return found + chosen_well(results)


def compared(results):
    """Returns captured shares by width, number of points, set and way of choosing."""
    found = {}
    for name in SETS:
        for run in results.done(f"frontier/points-{name}/"):
            for width, ways in run.items():
                for way, sizes in ways.items():
                    for one in sizes:
                        found.setdefault((width, one["asked"]), {}).setdefault(name, {})[way] = one
    return found


def behind(results, method, rivals, margin=1e-3):
    """Counts the sets on which the method captures as much as the best rival, for each width and number of points."""
    counts = {}
    for key, names in compared(results).items():
        gaps = [max(ways[rival]["fidelity"] for rival in rivals) - ways[method]["fidelity"] for ways in names.values()]
        counts[key] = sum(gap <= margin for gap in gaps), len(gaps)
    return counts


STILL = tuple(CHOICES)
POLISHED = tuple(f"{name}, polished" for name in CHOICES)
# baselines that each method is compared with
RIVALS = {
    "landmarks": ("the best of the baselines", STILL),
    "landmarks,sampling=kmeans": ("the best of the baselines", STILL),
    "greedy": ("the best of the baselines", STILL),
    "expansion": ("the best of the baselines, ten steps of L-BFGS included", (*STILL, *POLISHED)),
}


def chosen_well(results):
    """Checks each method against all ways of choosing points: as good (to 0.001) at every size on 12 of 14 sets."""
    found = []
    for method, (what, rivals) in RIVALS.items():
        counts = behind(results, method, rivals)
        told = "; ".join(
            f"{width} " + ", ".join(str(counts[width, size][0]) for size in POINTS if (width, size) in counts)
            for width in WIDTHS
            if any(key[0] == width for key in counts)
        )
        checks = [bool(count >= np.ceil(12 / 14 * of)) for count, of in counts.values()]
        text = f"(ours) `{method}` captures at least as much as {what} (to 0.001) on 12 of 14 sets"
        found.append(
            Claim(text, checks or [None], f"sets, at m = {', '.join(map(str, POINTS))}: {told}" if told else "")
        )
    return found


def ways_table(results, field):
    """Formats means over sets, by width and number of points."""
    found = compared(results)
    if not found:
        return []
    keys = [(width, size) for width in WIDTHS for size in POINTS if (width, size) in found]
    rows = []
    for way in (*OURS, *STILL, *POLISHED):
        cells = []
        for key in keys:
            values = [ways[way][field] for ways in found[key].values() if field in ways[way]]
            cells.append(f"{np.mean(values):.4f}" if values else DASH)
        rows.append([f"`{way}`" if way in OURS else way, *cells])
    return [table(["points", *[f"{width}, m = {size}" for width, size in keys]], rows)]


def page(results, folder):
    parts = ["## Ways to choose points\n"]
    parts.append(
        "One split of each set; an rbf kernel with a quarter of the median rule's gamma (wide), with it, and with four"
        " times it (narrow). Polished: ten further steps of L-BFGS on the variance that the span captures. Share of"
        " what exact kernel PCA captures of the training rows, mean over sets:\n"
    )
    parts += ways_table(results, "fidelity")
    parts.append("The same on held-out normal rows:\n")
    parts += ways_table(results, "held out")
    parts.append("AUROC of the distance to the span, on the sets with outliers:\n")
    parts += ways_table(results, "AUROC")
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
