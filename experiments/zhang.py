"""Zhang, Wang & Ma 2010: how many points the energy rule uses, against the counts they published.

    python experiments/zhang.py DATA

DATA holds ida_NAME.csv (a header, the label last) and, where the paper's split is known, ida_NAME_splits.npz.
"""

import json
import sys
from pathlib import Path

import numpy as np
import skpca

ALPHAS = (0.3, 0.2, 0.1)
# exp(-|x - y|^2 / 2 sigma^2) with sigma = 0.5
RBF = "rbf,gamma=2"
#       set             rows  kernel    published            split
SETS = [
    ("banana", 400, RBF, (335, 356, 378), "paper's"),
    ("german", 700, RBF, (595, 630, 665), "paper's"),
    ("breast_cancer", 200, RBF, (170, 180, 193), "paper's"),
    ("german", 700, "linear", (501, 557, 619), "paper's"),
    ("image", 1300, "linear", (745, 872, 1028), "paper's"),
    ("thyroid", 140, RBF, (114, 122, 131), "random"),
    ("flare_solar", 666, RBF, (526, 573, 620), "random"),
]
SPLITS = 20


def rule(x, kernel, alpha, split):
    model = skpca.fit(x, method=f"energy,alpha={alpha},split={split}", kernel=kernel, scaling="none")
    found = json.loads(model.describe())
    return (
        found["report"]["chosen"],
        found["q"],
        found["report"]["objective"],
        1 - found["captured"] / energy(x, kernel),
    )


def energy(x, kernel):
    if kernel == "linear":
        return ((x - x.mean(axis=0)) ** 2).sum()
    k = skpca.kernel(kernel, x, x)
    return np.trace(k) - k.mean() * len(x)


def row(name, kernel, published, tables):
    for i, alpha in enumerate(ALPHAS):
        runs = np.array([rule(x, kernel, alpha, "half") for x in tables])
        count, components, bound, residual = runs.mean(axis=0)
        sharp = np.mean([rule(x, kernel, alpha, "sharp")[0] for x in tables])
        worst = runs[:, 2].max()
        off = 100 * (count / published[i] - 1)
        print(
            f"{name:<27} {alpha:>5} {published[i]:>9} {count:>8.1f} {off:>5.1f} % {sharp:>8.1f} {components:>5.0f}"
            f" {bound:>6.3f} {residual:>8.3f}  {'holds' if worst <= alpha else 'BROKEN'}"
        )


def main(data):
    print(
        f"{'set':<27} {'alpha':>5} {'published':>9} {'ours':>8} {'off':>7} {'sharp':>8} {'q':>5}"
        f" {'J':>6} {'residual':>8}  bound"
    )
    for name, rows, kernel, published, split in SETS:
        x = np.genfromtxt(data / f"ida_{name}.csv", delimiter=",", skip_header=1)[:, :-1]
        if split == "random":
            rng = np.random.default_rng(0)
            tables = [x[rng.permutation(len(x))[:rows]] for _ in range(SPLITS)]
        else:
            tables = [x[np.load(data / f"ida_{name}_splits.npz")["train"][0]]]
        kind = "linear" if kernel == "linear" else "rbf"
        row(f"{name} {kind}, {split}", kernel, published, [np.ascontiguousarray(x) for x in tables])
    rng = np.random.default_rng(0)
    row("normal 10,000 x 50", "linear", (7966, 8586, 9245), [rng.normal(size=(10_000, 50))])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
