"""Li & Gao 2011: error rates on features of KPCA, SKPCA, SDKPCA and kernel discriminant analysis."""

import warnings
from itertools import product

import numpy as np
from scipy.ndimage import zoom
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from .data import standardised
from .models import fit, median_rule
from .pages import DASH, against, table
from .runner import Cell
from .verdicts import Claim, better, near, no_worse

TITLE = "Li & Gao 2011: expansion vectors and a data-dependent kernel"
ABOUT = """
*Sparse data-dependent kernel principal component analysis based on least squares support vector machine.* Error in % of
a nearest-neighbour classifier and of a linear SVM on features. SKPCA is `greedy` with the published number of points;
SDKPCA is the same under a `conformal` kernel, with coefficients from the exact eigenproblem, from the same with
positive coefficients, or from the paper's iteration (32); KDA, reviewed in the paper without numbers, is
`discriminant`.

Kernel width, δ, regularisation, number of components and C are chosen by 3-fold cross-validation on training rows (at
most 450), for each split, method and classifier: the paper names neither its classifier nor any parameter. Columns are
standardised on the training rows. Splits are the published ones if available, otherwise random ones of the same size.
The paper has 100 splits (20 for image and splice); here there are at most ten. ORL: 48 × 48 pixels, five images of each
person, which gives the 200 rows of Table 4 (the text says one image of each).
"""

#       set     file, training, kept, published error in % of KPCA, SKPCA, SDKPCA, and the table
SETS = {
    "banana": ("ida_banana", 400, 120, (13.6, 14.2, 13.9), "1–3"),
    "image": ("ida_image", 1300, 180, (4.8, 5.4, 5.1), "1–3"),
    "flare-solar": ("ida_flare_solar", 666, 50, (31.4, 34.2, 32.8), "1–3"),
    "splice": ("ida_splice", 1000, 280, (8.6, 9.4, 9.0), "1–3"),
    "thyroid": ("ida_thyroid", 140, 30, (2.1, 2.2, 2.2), "1–3"),
    "titanic": ("ida_titanic", 150, 30, (22.8, 23.2, 24.4), "1–3"),
    "orl": ("orl_faces_112x92", 200, 120, (15.3, 18.4, 17.5), "4"),
    "yale": ("yale_faces", 75, 45, (17.8, 20.4, 18.7), "5"),
    "wdbc": ("wdbc", 300, 110, (3.8, 5.4, 4.9), "6"),
}
SLOW = {"image": 5, "splice": 3, "orl": 2, "yale": 2}
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
SDKPCA = [method for method in GRIDS if method.startswith("SDKPCA")]
KINDS = ("1-NN", "SVM")
GREEDY = "greedy,exchanges=0"  # exchanges take four times as long and add 0.001 of fidelity
FOLDS, CAP = 3, 450
RATE, ROUNDS = 0.1, 200  # of (32); the paper tells neither
FACE, SIDE = (112, 92), 48


def cells(options):
    found = []
    for name, (file, training, kept, _, _) in SETS.items():
        for number in range(options.count(SLOW.get(name, 10))):
            parameters = {"file": file, "training": training, "kept": kept, "number": number, "gammas": GAMMAS}
            if options.quick:
                parameters |= {"gammas": GAMMAS[:1], "training": min(training, 150), "kept": min(kept, 30)}
            found.append(Cell(f"li_gao/{name}/{number}", one, parameters, (file,)))
    return found


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
    model = fit(x, how, kernel, q, **target, **supervised)
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


def grid(method, unit, gammas):
    """All points of a method's grid, gamma and delta in the units of the data."""
    keys = GRIDS[method] | {"gamma": gammas}
    for values in product(*keys.values()):
        point = dict(zip(keys, values, strict=True))
        yield {key: value * unit if key in ("gamma", "delta") else value for key, value in point.items()}


def chosen(method, points, kept, x, labels, seed):
    """For each classifier, the best (point, trial) by cross-validation."""
    some = np.random.default_rng(seed).permutation(len(x))[:CAP]
    x, labels = x[some], labels[some]
    scores = []
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, labels))
    for point in points:
        runs = []
        for train, check in folds:
            table, rest = features(method, point, kept, x[train], labels[train], x[check])
            runs.append(errors(table, labels[train], rest, labels[check]))
        scores.append(np.mean(runs, axis=0))
    best = {}
    for kind in KINDS:
        score = np.where([trial[0] == kind for trial in TRIALS], scores, np.inf)
        i, j = np.unravel_index(score.argmin(), score.shape)
        best[kind] = points[i], TRIALS[j]
    return best


def faces(x):
    """Pictures of the published size."""
    height, width = FACE
    return np.array([zoom(face.reshape(height, width), (SIDE / height, SIDE / width), order=1).ravel() for face in x])


def rows(data, seed, file, training, number):
    """Rows to train on and to test on, with labels from 0."""
    x, labels = data.load(file)
    labels = np.unique(labels, return_inverse=True)[1]
    if "faces" in file:
        x = faces(x) if x.shape[1] == FACE[0] * FACE[1] else x
        cut = StratifiedShuffleSplit(1, train_size=training, random_state=seed)
        train, test = next(cut.split(x, labels))
    else:
        train, test = data.split(file, number, training, seed)
    return x[train], labels[train], x[test], labels[test]


def one(data, seed, file, training, kept, number, gammas):
    """Test error of every method and classifier on one split."""
    warnings.filterwarnings("ignore", message="Liblinear failed to converge")
    x, labels, rest, truth = rows(data, seed, file, training, number)
    x, rest = standardised(x, rest)
    unit, found = median_rule(x), {}
    for method in GRIDS:
        points = list(grid(method, unit, gammas))
        for kind, (point, trial) in chosen(method, points, kept, x, labels, seed).items():
            table, tested = features(method, point, kept, x, labels, rest)
            choice = point | {"components": trial[1], "C": trial[2]}
            found[f"{kind} {method}"] = {"error": error(trial, table, labels, tested, truth), "chosen": choice}
    return found


def paired(runs, method, other):
    """Differences of error over splits and classifiers; negative where the method is better."""
    return [run[f"{kind} {method}"]["error"] - run[f"{kind} {other}"]["error"] for kind in KINDS for run in runs]


def claims(results):
    runs = {name: results.done(f"li_gao/{name}/") for name in SETS}
    sparse = {name: paired(r, "SKPCA", "KPCA") for name, r in runs.items()}
    gains = {method: {name: paired(r, method, "SKPCA") for name, r in runs.items()} for method in SDKPCA}

    def told(gaps):
        return "; ".join(f"{name} {np.mean(gap):+.2f}" for name, gap in gaps.items() if gap)

    found = [
        Claim(
            "Tables 1–6: SKPCA with a part of the rows errs little more than KPCA (at most the paper's own loss)",
            [no_worse(sparse[name], values[1] - values[0]) for name, (_, _, _, values, _) in SETS.items()],
            f"points of %: {told(sparse)}",
        )
    ]
    found.append(again(runs))
    for method in SDKPCA:
        gap = gains[method]
        found.append(
            Claim(
                f"Tables 3–6: the data-dependent kernel errs less than SKPCA at the same size ({method.split()[1]})",
                [better(gap[name]) for name in SETS],
                f"points of %, both classifiers: {told(gap)}",
                "The paper itself has a gain on seven of nine sets.",
            )
        )
    return found


def again(runs):
    """Whether published error rates are found again; the paper names no classifier, so the nearer of ours counts."""
    checks, told = [], []
    for name, (_, _, _, values, _) in SETS.items():
        for method, published in zip(("KPCA", "SKPCA", "SDKPCA iteration"), values, strict=True):
            means = [np.mean([run[f"{kind} {method}"]["error"] for run in runs[name]]) for kind in KINDS if runs[name]]
            nearest = min(means, key=lambda mean: abs(mean - published), default=None)  # noqa: B023
            checks.append(near(nearest, published, 1.0))
            told += [f"{name}, {method.split()[0]} {nearest - published:+.1f}"] if means else []
    return Claim("Tables 1–6: error rates, the nearer classifier (to 1 point of %)", checks, "; ".join(told))


def page(results, folder):
    header = ["set", "table", "rows, kept", "classifier", "method", "paper", "ours", "difference", "less SKPCA, ± s.e."]
    lines = []
    for name, (_, training, kept, values, number) in SETS.items():
        runs, state = results.done(f"li_gao/{name}/"), results.state(f"li_gao/{name}/")
        told = dict(zip(("KPCA", "SKPCA", "SDKPCA"), values, strict=True))
        for kind in KINDS:
            for method in GRIDS:
                found = np.array([run[f"{kind} {method}"]["error"] for run in runs])
                label = f"{name}, {state or f'{len(runs)} splits'}"
                size = f"{training}, {training if method == 'KPCA' else kept}"
                row = [label, number, size, kind, method, *against(told.get(method.split()[0]), found, 1)]
                lines.append([*row, gain(found, runs, kind, method)])
    parts = ["## Tables 1–6\n", table(header, lines)]
    parts.append(
        "- Thyroid: the errors are about twice the paper's. Its splits are not available; the random ones here have the"
        " published size. On three of them the best of twelve rbf SVMs, chosen on the test rows, errs 2.7 %, with"
        " columns standardised or as shipped: the published 2.1 % to 2.2 % are out of reach of parameters that are"
        " chosen on 140 training rows. How the paper chose its parameters is not known.\n"
        "- Splice: the errors are larger by half or more. The benchmark codes the letters as numbers 1 to 4. With this"
        " coding the best of nine rbf SVMs, chosen on the test rows, errs 10.9 % (11.1 % without standardising); one"
        " indicator per letter gives 4.6 % (three splits). The published 8.6 % is in between: another coding is the"
        " likely cause, but which one is not known. There the exact data-dependent kernel improves a nearest-neighbour"
        " classifier by nine points: the one clear gain.\n"
        "- Yale: the errors are 8 to 27 points larger with 75 training rows, five per person. Rows of unit length, rows"
        " of mean 0 and deviation 1, ranks of pixels and pixels as shipped leave a linear SVM on 70 components at 24 %"
        " or more, and a nearest-neighbour classifier at 39 % or more (means of three splits). Ten rows per person give"
        " 16 % to 20 %, and 27 % to 36 %. The text mentions one training image per person and eleven repeats, as many"
        " as there are images: the published 17.8 % would fit one image per person left out in turn. Not tried:"
        " 100 × 100 pixels, the paper's size; the file has 32 × 32.\n"
        "- ORL: the errors are far smaller than the paper's, which may have trained on one image of each person, as its"
        " text says.\n"
        "- Titanic: 150 rows are about eleven distinct points, so that 30 kept are impossible; equal rows vote in the"
        " nearest-neighbour classifier.\n"
        "- Standard errors over overlapping splits are optimistic.\n"
    )
    return parts


def gain(found, runs, kind, method):
    if len(found) < 2 or method in ("KPCA", "SKPCA"):
        return DASH
    gaps = found - [run[f"{kind} SKPCA"]["error"] for run in runs]
    return f"{gaps.mean():+.2f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.2f}"
