"""Tables of the shapes that users have: from a directory of CSV files, or made here.

A file has a header and its label in the column `label`, which is dropped. What the directory does not hold is left out;
without a directory every table is made, of the same shape.
"""

import gzip
import os

import numpy as np

# Name, file, rows at most, rows and columns of the one that is made.
TABLES = (
    ("digits", None, None, (1797, 64)),
    ("satimage-2", "satimage2.csv", 2000, (2000, 36)),
    ("mnist", "mnist_0_vs_rest.csv.gz", 2000, (2000, 784)),
    ("covtype", "covtype.csv.gz", 5000, (5000, 54)),
    ("image", "ida_image.csv", None, (2310, 18)),
    ("cardio", "adbench_cardio.csv", None, (1831, 21)),
)


def tables(directory, quick):
    """Pairs of a name and an array, each made when it is asked for."""
    for name, file, most, shape in TABLES:
        if quick:
            yield f"made-{name}", clusters(shape[0] // 5, min(shape[1], 100))
        elif directory is None:
            yield f"made-{name}", clusters(*shape)
        elif file is None:
            yield name, digits()
        elif os.path.exists(os.path.join(directory, file)):
            yield name, read(os.path.join(directory, file), most)


def digits():
    from sklearn.datasets import load_digits

    return load_digits().data.astype(float)


def read(path, most):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        names = [name.strip('"') for name in file.readline().strip().split(",")]
        x = np.loadtxt(file, delimiter=",", usecols=[at for at, name in enumerate(names) if name != "label"])
    return x if most is None or len(x) <= most else sample(x, most)


def sample(x, count):
    return x[np.sort(np.random.default_rng(0).choice(len(x), count, replace=False))]


def clusters(n, d, groups=12, dimensions=6):
    """Groups of different widths, each along few directions of its own, with noise along all."""
    random = np.random.default_rng(0)
    group = random.integers(groups, size=n)
    centres = 2.0 * random.normal(size=(groups, d))
    axes = random.normal(size=(groups, dimensions, d))
    inside = random.normal(size=(n, dimensions)) * random.uniform(0.3, 1.5, size=(groups, 1))[group]
    return centres[group] + np.einsum("nk,nkd->nd", inside, axes[group]) + 0.5 * random.normal(size=(n, d))
