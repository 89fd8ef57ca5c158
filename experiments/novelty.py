"""Beyond the papers: detectors with default parameters, compared with PyOD's, and alarms on a chemical plant."""

import time

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from skpca import KernelNovelty

from .data import standardised
from .pages import DASH, table
from .runner import Cell
from .verdicts import Claim

TITLE = "Beyond the papers: detectors with default parameters"
ABOUT = """
Every detector with its defaults, columns standardised on the training rows. *Normal*: up to 1000 normal rows (60 % of
them at most) are fitted, up to 400 other normal rows and 400 outliers scored. *Contaminated*: a tenth as many outliers
are among the rows that are fitted. Mean AUROC over sets and splits. PyOD's detectors are there if PyOD is installed.
*False alarms*: normal rows, fitted with `false_alarm_rate`, and how many of the other normal rows are alarms.
*Tennessee Eastman*: 500 normal rows fitted; for every detector the limit is the score that 1 % of the normal test run
exceed (equal actual false alarms); a fault begins at row 161 of 960.
*Contributions*: one column of a held-out normal row is shifted by several standard deviations, up or down; how often
the contribution of that column is the largest.
"""

#       file, label of normal rows
SETS = {
    **{f"digit {digit}": ("digits", digit) for digit in (0, 1, 3, 5, 8)},
    "wdbc": ("wdbc", 1),
    "adbench-thyroid": ("adbench_thyroid", 0),
    "ads": ("internet_ads", 0),
    "australian": ("australian", 0),
    "banana": ("ida_banana", -1),
    "breast cancer": ("ida_breast_cancer", -1),
    "cardio": ("adbench_cardio", 0),
    "climate": ("climate", 1),
    "covtype": ("covtype", 2),
    "diabetis": ("ida_diabetis", -1),
    "eth80": ("eth80", 0),
    "fashion": ("fashion_0_vs_1", 0),
    "flare": ("ida_flare_solar", -1),
    "german": ("ida_german", -1),
    "image": ("ida_image", 1),
    "mammography": ("adbench_mammography", 0),
    "mnist": ("mnist_0_vs_rest", 0),
    "satimage-2": ("satimage2", 0),
    "shuttle": ("adbench_shuttle", 0),
    "splice": ("ida_splice", 1),
    "thyroid": ("ida_thyroid", -1),
    "titanic": ("ida_titanic", -1),
    "wisconsin": ("breast_cancer_wisconsin_683", 0),
}
SETTINGS = ("normal", "contaminated")
OURS, CLASSICAL, KINKED = "KernelNovelty", "KernelNovelty, distance", "KernelNovelty, laplacian"
RATES = (0.05, 0.01)
EXPLAINED = ("wdbc", "cardio", "image", "satimage-2", "mammography", "diabetis")
SHIFTS = (2, 4, 10, 50, 1000)
ROWS, TESTED, BEGIN = 1000, 400, 160
METHODS = ("landmarks", "expansion", "greedy", "exact")


def cells(options):
    names = ["digit 0", "wdbc"] if options.quick else list(SETS)
    rows = 200 if options.quick else ROWS
    found = []
    for name in names:
        file, normal = SETS[name]
        for setting in SETTINGS:
            given = {"file": file, "normal": normal, "setting": setting, "rows": rows}
            found += [
                Cell(f"novelty/{name}/{setting}/{repeat}", ranked, given, (file,)) for repeat in range(options.count(2))
            ]
        for method in METHODS[:2] if options.quick else METHODS:
            given = {"file": file, "normal": normal, "method": method, "rows": 200}
            count = options.count(4)
            found += [Cell(f"novelty/{name}/alarms {method}/{r}", alarms, given, (file,)) for r in range(count)]
    for name in names if options.quick else EXPLAINED:
        file, normal = SETS[name]
        given = {"file": file, "normal": normal, "rows": rows}
        found.append(Cell(f"novelty/{name}/contributions/0", explained, given, (file,)))
    return [*found, Cell("novelty/tennessee/0", plant, {}, ("tep",))]


def normal_and_other(data, file, normal, seed):
    """Normal rows and others in a random order."""
    x, labels = data.load(file)
    order = np.random.default_rng(seed).permutation(len(x))
    return x[order[labels[order] == normal]], x[order[labels[order] != normal]]


def detectors():
    """What is compared, by name: each as it comes."""
    ours = {
        OURS: lambda: KernelNovelty(random_state=0),
        KINKED: lambda: KernelNovelty(kernel="laplacian", random_state=0),
        CLASSICAL: lambda: KernelNovelty(method="expansion", contamination=0.05, random_state=0),
    }
    try:
        from pyod.models.ecod import ECOD
        from pyod.models.iforest import IForest
        from pyod.models.knn import KNN
        from pyod.models.kpca import KPCA
        from pyod.models.lof import LOF
        from pyod.models.ocsvm import OCSVM
        from pyod.models.pca import PCA
    except ImportError:
        return ours
    seeded = {"IForest": lambda: IForest(random_state=0), "KPCA": lambda: KPCA(random_state=0)}
    return ours | seeded | {kind.__name__: kind for kind in (KNN, LOF, OCSVM, PCA, ECOD)}


def ranked(data, seed, file, normal, setting, rows):
    """AUROC, times and size of every detector."""
    inside, outside = normal_and_other(data, file, normal, seed)
    count = min(rows, int(0.6 * len(inside)))
    mixed = min(count // 10, len(outside) // 2) if setting == "contaminated" else 0
    train = np.concatenate([inside[:count], outside[:mixed]])
    test = [inside[count:][:TESTED], outside[mixed:][:TESTED]]
    truth = np.repeat([0, 1], [len(part) for part in test])
    train, test = standardised(train, np.concatenate(test))
    found = {"n": len(train), "d": train.shape[1]}
    for name, make in detectors().items():
        start = time.perf_counter()
        detector = make().fit(train)
        middle = time.perf_counter()
        novel = isinstance(detector, KernelNovelty)
        scores = -detector.score_samples(test) if novel else detector.decision_function(test)
        end = time.perf_counter()
        auroc = roc_auc_score(truth, np.nan_to_num(scores))
        found[name] = {"auroc": auroc, "fit": middle - start, "score": end - middle}
        if novel:
            found[name]["points"] = len(detector.support_vectors_)
    return found


def alarms(data, seed, file, normal, method, rows):
    """Computes the share of alarms among new normal rows, and their p-values."""
    inside, _ = normal_and_other(data, file, normal, seed)
    count = min(rows, len(inside) // 2)
    train, fresh = standardised(inside[:count], inside[count:][:2000])
    found = {"n": count, "fresh": len(fresh)}
    for rate in RATES:
        # Rows are in a random order here, whatever they were.
        detector = KernelNovelty(method=method, false_alarm_rate=rate, row_order="any", random_state=0).fit(train)
        found[str(rate)] = float((detector.predict(fresh) == -1).mean())
    found["p"] = np.quantile(detector.p_values(fresh), np.linspace(0, 1, 101)).tolist()
    return found


def explained(data, seed, file, normal, rows):
    """How often the column that was shifted contributes most, by the size of the shift."""
    inside, _ = normal_and_other(data, file, normal, seed)
    count = min(rows, int(0.6 * len(inside)))
    train, fresh = standardised(inside[:count], inside[count:][:TESTED])
    detector = KernelNovelty(random_state=0).fit(train)
    rng, places = np.random.default_rng(seed), np.arange(len(fresh))
    column, sign = rng.integers(0, train.shape[1], len(fresh)), rng.choice([-1, 1], len(fresh))
    found = {}
    for shift in SHIFTS:
        shifted = fresh.copy()
        shifted[places, column] += sign * shift
        found[str(shift)] = float((detector.contributions(shifted).argmax(axis=1) == column).mean())
    return found


def plant(data, seed):
    """False alarms at nominal 1 %, and detection rates by fault at 1 % actual false alarms."""
    rows = pd.read_csv(data.file("tep"))
    inputs = [name for name in rows if name.startswith("x")]
    part = {key: group.sort_values("sample")[inputs].to_numpy(float) for key, group in rows.groupby(["part", "fault"])}
    train, *runs = standardised(part["train", 0], *(part[key] for key in part if key[0] == "test"))
    faults = [int(key[1]) for key in part if key[0] == "test"]
    found = {"nominal": {}, "detection": {}}
    for method in METHODS:
        detector = KernelNovelty(method=method, false_alarm_rate=0.01, random_state=0).fit(train)
        found["nominal"][method] = float((detector.predict(runs[faults.index(0)]) == -1).mean())
    for name, score in statistics(train).items():
        values = {fault: score(run) for fault, run in zip(faults, runs, strict=True)}
        limit = np.quantile(values[0], 0.99)
        found["detection"][name] = {
            str(fault): float((values[fault][BEGIN:] > limit).mean()) for fault in faults if fault
        }
    return found


def statistics(train):
    """Scores of process monitoring: higher is worse."""
    ours = KernelNovelty(random_state=0).fit(train)
    kinked = KernelNovelty(kernel="laplacian", random_state=0).fit(train)
    dynamic = KernelNovelty(lags=2, random_state=0).fit(train)
    exact = KernelNovelty(30, method="exact", contamination=0.05).fit(train)
    return {
        OURS: lambda x: -ours.score_samples(x),
        KINKED: lambda x: -kinked.score_samples(x),
        f"{OURS}, lags=2": lambda x: -dynamic.score_samples(x),
        "exact kernel PCA, SPE": lambda x: -exact.score_samples(x),
        **{f"PCA, {name}": score for name, score in linear(train).items()},
        **{
            f"dynamic PCA, {name}": lambda x, score=score: score(lagged(x))
            for name, score in linear(lagged(train)).items()
        },
    }


def lagged(x, lags=2):
    """Each row with those before it; the first rows with themselves."""
    return np.concatenate(
        [np.concatenate([x[:1].repeat(lag, axis=0), x[: len(x) - lag]]) for lag in range(lags + 1)], 1
    )


def linear(train, share=0.9):
    """T² and SPE of principal components that hold `share` of the variance."""
    mean = train.mean(axis=0)
    _, sizes, axes = np.linalg.svd(train - mean, full_matrices=False)
    variances = sizes**2 / len(train)
    q = int(np.searchsorted(np.cumsum(variances) / variances.sum(), share)) + 1
    axes = axes[:q].T

    def t2(x):
        return np.square((x - mean) @ axes) @ (1 / variances[:q])

    def spe(x):
        return np.square(x - mean).sum(axis=1) - np.square((x - mean) @ axes).sum(axis=1)

    return {"T²": t2, "SPE": spe}


def means(results, setting, field):
    """By detector: the mean over sets of the mean over splits."""
    found = {}
    for name in SETS:
        runs = results.done(f"novelty/{name}/{setting}/")
        for detector in runs[0] if runs else ():
            if detector not in ("n", "d"):
                found.setdefault(detector, []).append(np.mean([run[detector].get(field, np.nan) for run in runs]))
    return {detector: float(np.mean(values)) for detector, values in found.items()}


def claims(results):
    checks, numbers = [], []
    for setting in SETTINGS:
        auroc = means(results, setting, "auroc")
        peers = {name: value for name, value in auroc.items() if name not in (OURS, CLASSICAL, KINKED)}
        checks.append(auroc[OURS] > max(peers.values()) if peers else None)
        numbers += [f"{setting} {auroc[OURS]:.3f} against {max(peers.values()):.3f}"] if peers else []
    found = [
        Claim("(ours) the default detector ranks outliers better than PyOD's defaults", checks, "; ".join(numbers))
    ]
    checks, numbers = [], []
    for rate, margin in zip(RATES, (0.2, 0.5), strict=True):
        for method in METHODS:
            runs = [run for name in SETS for run in results.done(f"novelty/{name}/alarms {method}/")]
            if runs:
                share = np.mean([run[str(rate)] for run in runs])
                checks.append(bool(abs(share - rate) <= margin * rate))
                numbers.append(f"{method} {share:.2%} at {rate:.0%}")
    found.append(Claim("(ours) the false-alarm rate is the requested one", checks, "; ".join(numbers)))
    runs = [run for name in SETS for run in results.done(f"novelty/{name}/contributions/")]
    least = [min((run[str(shift)] for run in runs), default=np.nan) for shift in SHIFTS]
    checks = [bool(share >= (0.85 if shift < 4 else 0.99)) for share, shift in zip(least, SHIFTS, strict=True)]
    numbers = ", ".join(f"{share:.1%} at {shift}" for share, shift in zip(least, SHIFTS, strict=True))
    found.append(Claim("(ours) contributions name the faulty input, on every set", checks if runs else [None], numbers))
    return found


def page(results, folder):
    parts = ["## Ranking\n"]
    rows = {}
    for setting in SETTINGS:
        for field in ("auroc", "fit", "score"):
            for detector, value in means(results, setting, field).items():
                rows.setdefault(detector, []).append(f"{value:.3f}")
    header = ["detector", *(f"{setting}, {field}" for setting in SETTINGS for field in ("AUROC", "fit s", "score s"))]
    parts.append(table(header, [[name, *values] for name, values in rows.items()]))
    for setting in SETTINGS:
        runs = {name: results.done(f"novelty/{name}/{setting}/") for name in SETS}
        runs = {name: one for name, one in runs.items() if one}
        names = [name for name in next(iter(runs.values()))[0] if name not in ("n", "d")] if runs else []
        each = [
            [name, *(f"{np.mean([run[detector]['auroc'] for run in one]):.3f}" for detector in names)]
            for name, one in runs.items()
        ]
        parts += [f"### {setting}\n", table(["set", *names], each)]
    parts.append("## False alarms\n")
    alarmed = []
    for method in METHODS:
        runs = [run for name in SETS for run in results.done(f"novelty/{name}/alarms {method}/")]
        shares = [f"{np.mean([run[str(rate)] for run in runs]):.2%}" if runs else DASH for rate in RATES]
        alarmed.append([method, *shares])
    parts.append(table(["method", *(f"nominal {rate:.0%}" for rate in RATES)], alarmed))
    parts.append("## Contributions\n")
    shares = {name: results.done(f"novelty/{name}/contributions/") for name in SETS}
    named = [[name, *(f"{run[str(shift)]:.1%}" for shift in SHIFTS)] for name, runs in shares.items() for run in runs]
    parts.append(table(["set", *(f"{shift} deviations" for shift in SHIFTS)], named))
    for run in results.done("novelty/tennessee/"):
        parts.append("## Tennessee Eastman\n")
        nominal = ", ".join(f"{method} {share:.2%}" for method, share in run["nominal"].items())
        parts.append(f"False alarms of the normal test run at nominal 1 %: {nominal}. Detection rates by fault:\n")
        faults = list(run["detection"][OURS])
        detected = [
            [name, *(f"{rates[fault]:.3f}" for fault in faults), f"{np.mean(list(rates.values())):.3f}"]
            for name, rates in run["detection"].items()
        ]
        parts.append(table(["statistic", *faults, "mean"], detected))
    return parts
