"""Data sets by name: files of a directory, sets that come with scikit-learn, and generated ones.

A file is NAME.csv or NAME.csv.gz: a header, numbers, the label last. NAME_splits.npz may hold published splits, as rows
of `train` and `test`. To add a set, put its file there.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits

PACKAGED = {"digits": load_digits, "wdbc": load_breast_cancer}


class Data:
    def __init__(self, directory=None):
        self.directory = Path(directory) if directory else None

    def file(self, name):
        places = [self.directory / f"{name}{end}" for end in (".csv", ".csv.gz")] if self.directory else []
        return next((place for place in places if place.exists()), None)

    def has(self, name):
        return name in PACKAGED or self.file(name) is not None

    def load(self, name):
        """Rows and labels."""
        if name in PACKAGED:
            return PACKAGED[name](return_X_y=True)
        return read(self.file(name))

    def split(self, name, number, training, seed):
        """Returns training and test rows: published split `number` if there is one, otherwise a random one."""
        known = self.directory / f"{name}_splits.npz" if self.directory else None
        if known and known.exists():
            held = np.load(known)
            if number < len(held["train"]):
                return held["train"][number], held["test"][number]
        order = np.random.default_rng(seed).permutation(len(self.load(name)[0]))
        return order[:training], order[training:]


@lru_cache(maxsize=4)
def read(path):
    table = pd.read_csv(path).to_numpy(dtype=float)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)


def standardised(x, *others):
    """Columns to mean 0 and deviation 1 on x; others by the same rule."""
    return scaled(x.mean(axis=0), x.std(axis=0), x, *others)


def to_unit_range(x, *others):
    """Columns to [0, 1] on x; others by the same rule."""
    return scaled(x.min(axis=0), np.ptp(x, axis=0), x, *others)


def scaled(shift, size, *tables):
    size = np.where(size == 0, 1, size)
    return [np.ascontiguousarray((table - shift) / size) for table in tables]


def clusters(seed):
    """Three normal clusters of 30 points: Figure 1 of Tipping, of Wang & Tanaka, and of Schölkopf et al."""
    rng = np.random.default_rng(seed)
    centres = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
    return np.repeat(centres, 30, axis=0) + 0.1 * rng.normal(size=(90, 2))


def parabola(seed, n=500):
    """y = x² + noise of deviation 0.2: Figure 2 of Wang & Tanaka."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, x**2 + 0.2 * rng.normal(size=n)])


def normal(seed, n):
    return np.random.default_rng(seed).normal(size=(n, 50)), np.zeros(n, dtype=np.int64)


def twonorm(seed, n):
    """Two normal clouds in 20 dimensions (Breiman 1996)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    return rng.normal(size=(n, 20)) + (2 * labels[:, None] - 1) * 2 / np.sqrt(20), labels


def ringnorm(seed, n):
    """A narrow normal cloud in a wide one, 20 dimensions (Breiman 1996)."""
    rng = np.random.default_rng(seed)
    labels, x = rng.integers(0, 2, n), rng.normal(size=(n, 20))
    return np.where(labels[:, None] == 1, x + 1 / np.sqrt(20), 2 * x), labels


def waveform(seed, n):
    """Mixtures of two of three triangles, with noise (Breiman et al. 1984); one class against the two others."""
    rng = np.random.default_rng(seed)
    at = np.arange(1, 22)
    base = np.array([np.maximum(6 - np.abs(at - centre), 0) for centre in (11, 15, 7)])
    kind, share = rng.integers(0, 3, n), rng.uniform(size=(n, 1))
    first, second = np.array([0, 0, 1])[kind], np.array([1, 2, 2])[kind]
    return share * base[first] + (1 - share) * base[second] + rng.normal(size=(n, 21)), (kind == 0).astype(np.int64)


GENERATED = {"normal": normal, "twonorm": twonorm, "ringnorm": ringnorm, "waveform": waveform}
