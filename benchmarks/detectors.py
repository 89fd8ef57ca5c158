"""Novelty detectors as they come: PyOD's `KPCA` and `KNN`, scikit-learn's `OneClassSVM`, and `KernelNovelty`.

    python benchmarks/detectors.py [--seeds 10] [--rows 4000] [--json out.json]

Quality: the AUROC on rows held out, the mean of random splits. One class is normal: benign samples of WDBC, or the
digit 8; 60 % of its rows are fitted, the others and those of all other classes are scored, columns standardised on the
rows fitted. Every detector has the parameters that it has by default, and none is tuned.

Speed and size: fits and scores of made rows in turns (see measure.py), and the bytes of the pickled detector. PyOD's
KPCA keeps every row and, by default, every component.
"""

import argparse
import json
import os
import pickle
import statistics
import warnings

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "1")

import numpy as np
from measure import interleaved
from pyod.models.knn import KNN
from pyod.models.kpca import KPCA
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from skpca import KernelNovelty


class Novelty:
    """Our estimator, with PyOD's direction of scores."""

    def __init__(self):
        self.model = KernelNovelty(random_state=0)

    def fit(self, x):
        self.model.fit(x)
        return self

    def decision_function(self, x):
        return -self.model.score_samples(x)


class Svm(OneClassSVM):
    def decision_function(self, x):
        return -super().decision_function(x)


DETECTORS = {"KernelNovelty": Novelty, "PyOD KPCA": KPCA, "PyOD KNN": KNN, "OneClassSVM": Svm}


def split(x, normal, seed):
    """Rows to fit, rows to score, and which of those are novel."""
    inside = np.random.default_rng(seed).permutation(np.flatnonzero(normal))
    fitted, held = np.split(inside, [int(0.6 * len(inside))])
    scored = np.concatenate([held, np.flatnonzero(~normal)])
    scaler = StandardScaler().fit(x[fitted])
    return scaler.transform(x[fitted]), scaler.transform(x[scored]), ~normal[scored]


def qualities(seeds):
    wdbc, digits = load_breast_cancer(), load_digits()
    tables = {"wdbc": (wdbc.data, wdbc.target == 1), "digits": (digits.data, digits.target == 8)}
    for table, (x, normal) in tables.items():
        for name, make in DETECTORS.items():
            found = []
            for seed in range(seeds):
                fitted, scored, novel = split(x, normal, seed)
                found.append(roc_auc_score(novel, make().fit(fitted).decision_function(scored)))
            yield {"table": table, "detector": name, "auroc": np.mean(found), "spread": np.std(found)}


def costs(rows):
    x = np.random.default_rng(0).normal(size=(2 * rows, 10))
    fitted, scored = x[:rows], x[rows:]
    models = {name: make().fit(fitted) for name, make in DETECTORS.items()}
    fits = interleaved({name: lambda make=make: make().fit(fitted) for name, make in DETECTORS.items()}, 3)
    scores = interleaved({name: lambda m=m: m.decision_function(scored) for name, m in models.items()}, 3)
    for name, model in models.items():
        seconds = {"fit": statistics.median(fits[name]), "score": statistics.median(scores[name])}
        yield {"rows": rows, "detector": name, **seconds, "bytes": len(pickle.dumps(getattr(model, "model", model)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    lines = []
    for line in [*qualities(options.seeds), *costs(options.rows)]:
        print(json.dumps({key: round(v, 4) if isinstance(v, float) else v for key, v in line.items()}), flush=True)
        lines.append(line)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(lines, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
