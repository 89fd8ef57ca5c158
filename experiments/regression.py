"""The regression methods (`l1`, `l21`, `elastic-net`): certificates, targets, sizes, stability."""

import numpy as np
from sklearn.metrics import roc_auc_score

from . import data as sets
from .models import about, fit, mean_rule
from .pages import DASH, ours, table
from .runner import Cell
from .verdicts import Claim

TITLE = "The regression family: certificates, targets, sizes, stability"
ABOUT = """
`l1`, `l21` (Wang & Tanaka 2019) and `elastic-net` (Das, Golatkar & Awate 2018) use the same alternating scheme;
`threshold` is the baseline that keeps the largest coefficients of kernel PCA. Ten components, rbf kernel, median rule,
standardised columns, all rows. Fidelity is captured variance divided by that of exact kernel PCA (satimage-2: on a
sample of 4,000 rows). `digits-narrow` are the first 1000 rows of digits with scikit-learn's rule for the width, which
is narrower. It was chosen among six settings (three rules, scaled or not) as the one closest to an earlier measurement,
and is the most favourable to `l21`.
"""

# Pima: the 200 training rows
SETS = {
    "digits": "digits",
    "satimage-2": "satimage2",
    "image": "ida_image",
    "australian": "australian",
    "pima": "pima_tr",
}
# the one of six settings (three widths, scaled or not) whose captured share, 0.371, is nearest to the 0.356 of an
# earlier measurement of l21 against landmarks, whose width is not known
NARROW = {"digits-narrow": ("digits", 1000, "rbf,gamma=scale")}
TOYS = {"clusters": sets.clusters, "parabola": sets.parabola}
METHODS = ("l21", "l1", "elastic-net", "threshold")
CERTIFIED = METHODS[:3]
FRACTIONS = (0.5, 0.1, 0.02)  # of the largest useful penalty
TOLERANCES = (1e-6, 1e-10)
SIZES = (10, 20, 50, 100)
SEEDS = 10
SUPPORT, FIDELITY = 30, 0.9
Q = 10
# MNIST zeros: components of Das et al., and the parameters at which Wang's method is run there
ZEROS, TESTED, ZERO_Q = 400, 1000, 15
STABLE = {
    "exact": "exact",
    "l1, λ₁ = 0.01": "l1,refit=false,ridge=0.001,penalty=0.01",
    "l1, a tenth of the largest penalty": "l1,refit=false,fraction=0.1",
    "l21, μ = 0.01": "l21,ridge=0.001,penalty=0.01",
    "l21, μ = 0.1": "l21,ridge=0.001,penalty=0.1",
    "l21, a tenth of the largest penalty": "l21,fraction=0.1",
    "elastic-net, L1-ratio 0.7": "elastic-net,refit=false,l1_ratio=0.7",
}
# every setting of the two methods for which stability is asked
STEADY = tuple(name for name in STABLE if name.startswith(("l1,", "l21,")))


def cells(options):
    seeds, subsets = options.count(SEEDS), options.count(10)
    found = [Cell(f"regression/gaps-{toy}/0", gaps, {"table": toy}) for toy in TOYS]
    for name in ("digits", "satimage-2"):
        if not options.quick:
            found.append(Cell(f"regression/gaps-{name}/0", gaps, {"table": name}, (SETS[name],)))
    sizes = SIZES[:2] if options.quick else SIZES
    for name, file in SETS.items():
        found.append(Cell(f"regression/targets-{name}/0", targets, {"table": name}, (file,)))
    for name in (*SETS, *NARROW):
        file = SETS.get(name) or NARROW[name][0]
        parameters = {"table": name, "sizes": sizes, "seeds": seeds}
        found.append(Cell(f"regression/sizes-{name}/0", at_sizes, parameters, (file,)))
    for number in range(subsets):
        found.append(Cell(f"regression/mnist/{number}", zeros, {}, ("mnist_0_vs_rest",)))
    return found


def rows_of(data, name, seed):
    if name in NARROW:
        file, rows, _ = NARROW[name]
        return sets.standardised(data.load(file)[0][:rows])[0]
    x = TOYS[name](seed) if name in TOYS else data.load(SETS[name])[0]
    return sets.standardised(x)[0]


def gaps(data, seed, table):
    """What a fit says of its own optimum; that it says so rightly is for the library's tests."""
    x, found = rows_of(data, table, seed), []
    for method in CERTIFIED:
        for fraction in FRACTIONS:
            for tolerance in TOLERANCES:
                spec = f"{method},fraction={fraction},tolerance={tolerance}"
                model = about(fit(x, spec, "rbf", Q))
                told = {field: model["report"][field] for field in ("objective", "gap", "rounds", "converged")}
                found.append(
                    {"method": method, "fraction": fraction, "tolerance": tolerance, "points": model["m"]} | told
                )
    return found


def targets(data, seed, table):
    """Fits for a target size, and for a target fidelity."""
    x, found = rows_of(data, table, seed), {}
    for method in METHODS:
        for asked in ({"support": SUPPORT}, {"fidelity": FIDELITY}):
            model = about(fit(x, method, "rbf", Q, **asked))
            told = {"points": model["m"], "fidelity": model["fidelity"], "notes": model["report"].get("notes", [])}
            found.setdefault(method, []).append(asked | {"reached": told})
    return found


def at_sizes(data, seed, table, sizes, seeds):
    """Points and fidelity of every method at each size; landmarks with as many and half as many again, over seeds."""
    x, found = rows_of(data, table, seed), {}
    kernel = NARROW[table][2] if table in NARROW else "rbf"
    for size in sizes:
        for name, points in (("landmarks", size), ("landmarks, 1.5 m", size * 3 // 2)):
            models = [about(fit(x, "landmarks", kernel, Q, support=points, seed=number)) for number in range(seeds)]
            found.setdefault(name, []).append({"fidelity": [model["fidelity"] for model in models]})
        for method in METHODS:
            try:
                model = about(fit(x, method, kernel, Q, support=size))
                found.setdefault(method, []).append({"points": model["m"], "fidelity": [model["fidelity"]]})
            except ValueError as error:  # ten components need ten points at least, and threshold finds them one by one
                found.setdefault(method, []).append({"refused": str(error)})
    return found


def zeros(data, seed):
    """400 zeros of MNIST; novelty of other digits against other zeros."""
    x, labels = data.load("mnist_0_vs_rest")
    rng = np.random.default_rng(seed)
    inside, outside = (rng.permutation(np.flatnonzero(which)) for which in (labels == 0, labels != 0))
    train, test = x[inside[:ZEROS]], x[np.concatenate([inside[ZEROS:][:TESTED], outside[:TESTED]])]
    truth, kernel = np.repeat([0, 1], TESTED), f"rbf,gamma={mean_rule(train)}"
    models = {name: fit(train, spec, kernel, ZERO_Q) for name, spec in STABLE.items()}
    return {
        name: {"points": about(model)["m"], "AUROC": roc_auc_score(truth, model.score(test))}
        for name, model in models.items()
    }


def spans(runs, name):
    """Deviation of the number of points, as a share of its mean."""
    points = [run[name]["points"] for run in runs]
    return float(np.std(points, ddof=1) / np.mean(points)) if len(points) > 1 else None


def claims(results):
    return [certified(results), sized(results), held(results), beside_landmarks(results), stable(results)]


def open_(results, start):
    """A check that could not be done for each cell that is not there."""
    return [None for name in results.cells if name.startswith(f"regression/{start}") and not results.done(name)]


def certified(results):
    fits = [one for name in (*TOYS, *SETS) for run in results.done(f"regression/gaps-{name}/") for one in run]
    worst = {one["tolerance"]: 0.0 for one in fits}
    for one in fits:
        worst[one["tolerance"]] = max(worst[one["tolerance"]], one["gap"])
    return Claim(
        "(ours) the relative duality gap is at most the tolerance, and the alternation has converged",
        [one["gap"] <= one["tolerance"] and one["converged"] for one in fits] + open_(results, "gaps-"),
        "; ".join(f"asked {asked:.0e}, worst {gap:.1e}" for asked, gap in worst.items()),
    )


def reached(results, kind):
    """What became of one kind of target, with the name of set and method."""
    for name in SETS:
        for run in results.done(f"regression/targets-{name}/"):
            for method in METHODS:
                yield from ((f"{name}, {method}", one["reached"]) for one in run[method] if kind in one)


def sized(results):
    found = list(reached(results, "support"))
    fewer = [f"{case} {told['points']}" for case, told in found if told["points"] != SUPPORT]
    return Claim(
        f"(ours) a target of {SUPPORT} points is met, or missed by at most a tenth with a note",
        [
            0.9 * SUPPORT <= told["points"] <= SUPPORT and (told["points"] == SUPPORT or bool(told["notes"]))
            for _, told in found
        ]
        + open_(results, "targets-"),
        ("all exactly but " + "; ".join(fewer)) if fewer else f"all {len(found)} exactly" if found else "",
    )


def held(results):
    found = [told["fidelity"] for _, told in reached(results, "fidelity")]
    return Claim(
        f"(ours) a target fidelity of {FIDELITY} is reached",
        [value >= FIDELITY for value in found] + open_(results, "targets-"),
        f"{min(found):.4f} to {max(found):.4f}" if found else "",
    )


def beside_landmarks(results):
    """Asked of digits, where it was measured before."""
    checks, numbers = [], []
    for name in ("digits", *NARROW):
        for run in results.done(f"regression/sizes-{name}/"):
            for size, one, other in zip(SIZES, run["l21"], run["landmarks, 1.5 m"], strict=False):
                if "refused" in one:
                    checks.append(None)
                    continue
                reached, wider = one["fidelity"][0], np.mean(other["fidelity"])
                checks.append(bool(reached >= wider))
                numbers.append(f"{name}, {size} points {reached:.3f} against {wider:.3f}")
    text = "(ours) on digits, l21 holds as much as landmarks with half as many points again"
    return Claim(text, checks, "; ".join(numbers))


def stable(results):
    runs = results.done("regression/mnist/")
    found = {name: spans(runs, name) for name in STEADY} if runs else {}
    return Claim(
        "(ours) at fixed parameters the number of points of l1 and l21 varies by at most a tenth over subsets of MNIST",
        [None if value is None else value <= 0.1 for value in found.values()],
        "; ".join(f"{name}: {value:.1%}" for name, value in found.items() if value is not None),
    )


def page(results, folder):
    parts = ["## Certificates\n", "Gap, at a tolerance of 10⁻⁶ and of 10⁻¹⁰; points and P-steps of the first.\n"]
    rows = []
    for name in (*TOYS, "digits", "satimage-2"):
        for run in results.done(f"regression/gaps-{name}/"):
            for one, other in zip(run[::2], run[1::2], strict=True):
                told = [
                    one["points"],
                    one["rounds"],
                    f"{one['objective']:.6g}",
                    f"{one['gap']:.1e}",
                    f"{other['gap']:.1e}",
                ]
                rows.append([name, one["method"], one["fraction"], *told])
    parts.append(table(["table", "method", "penalty / largest", "points", "P-steps", "objective", "gap", "gap"], rows))
    parts += ["## Targets\n", f"Points for `support={SUPPORT}`; points and fidelity for `fidelity={FIDELITY}`.\n"]
    parts.append(table(["table", *METHODS], [[name, *target_row(results, name)] for name in SETS]))
    parts += [
        "## At equal size\n",
        "Fidelity; landmarks: mean ± deviation over seeds. In brackets: points, if fewer.\n",
    ]
    parts.append(size_table(results))
    subsets = results.done("regression/mnist/")
    parts.append(f"## Stability: 400 zeros of MNIST, {len(subsets)} subsets\n")
    parts += [f"{ZERO_Q} components, the mean rule, pixels as they are.\n", stability_table(subsets)]
    return parts


def target_row(results, name):
    for run in results.done(f"regression/targets-{name}/"):
        pairs = [[one["reached"] for one in run[method]] for method in METHODS]
        return [f"{size['points']}; {share['points']}, {share['fidelity']:.4f}" for size, share in pairs]
    return [DASH] * len(METHODS)


def size_table(results):
    names, rows = ("landmarks", "landmarks, 1.5 m", *METHODS), []
    for table_name in (*SETS, *NARROW):
        for run in results.done(f"regression/sizes-{table_name}/"):
            for k, size in enumerate(SIZES[: len(run["l21"])]):
                rows.append([table_name, size, *[size_cell(run[name][k], size) for name in names]])
    return table(["table", "m", *names], rows)


def size_cell(one, size):
    if "refused" in one:
        return DASH
    fewer = f" ({one['points']})" if one.get("points", size) < size else ""
    return ours(one["fidelity"], 4) + fewer


def stability_table(runs):
    rows = []
    for name in STABLE if runs else ():
        points, span = ours([run[name]["points"] for run in runs], 1), spans(runs, name)
        rows.append(
            [name, points, DASH if span is None else f"{span:.1%}", ours([run[name]["AUROC"] for run in runs], 3)]
        )
    return table(["method", "points", "deviation / mean", "AUROC"], rows)
