"""What `skpca compare` recommends: does it depend on the seed, and is it right on rows that nobody has seen?

    python benchmarks/recommendations.py --data DIR [--program target/release/skpca] [--seeds 10] [--budget 60s]

Small tables are compared with ten seeds: one recommendation, or "too few rows to tell". Of larger ones a part is
compared; then every model is judged on the rest, by the quality that decided, and the one recommended should be within
a standard error of the best. A busy machine fits fewer models in the budget; how many is printed.
"""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_wine

# Name: file, rows at most.
SMALL = {"wine": (load_wine, None), "thyroid": ("adbench_thyroid.csv", None), "thyroid-215": ("ida_thyroid.csv", None)}
LARGE = {
    "satimage-2": ("satimage2.csv", None),
    "digits": (load_digits, None),
    "covtype": ("covtype.csv.gz", 6000),
}
FRESH = 0.5
# Qualities of a model in the report, those that decide first.
ACCURACIES = ("nearest_accuracy", "linear_accuracy")


def load(source, most, directory):
    """A table with its label last, its rows shuffled."""
    if callable(source):
        held = source()
        table = pd.DataFrame(held.data).add_prefix("x").assign(label=held.target)
    else:
        table = pd.read_csv(Path(directory) / source)
    return table.sample(n=min(most or len(table), len(table)), random_state=0)


class Program:
    def __init__(self, path, budget, directory):
        self.path, self.budget, self.directory = path, budget, Path(directory)

    def compare(self, table, *flags):
        table.to_csv(self.directory / "table.csv", index=False)
        words = [self.path, "compare", self.directory / "table.csv", "--label", "label", "--budget", self.budget]
        run = subprocess.run([*words, *flags, "--json", "--quiet"], check=True, capture_output=True, text=True)
        return json.loads(run.stdout)

    def compare_on(self, fresh, table):
        fresh.to_csv(self.directory / "fresh.csv", index=False)
        return self.compare(table, "--test", self.directory / "fresh.csv")


def quality(model, by):
    """The quality that decides, and its standard error."""
    if by == "auroc":
        return model["auroc"], model["auroc_error"]
    return max(model[name] for name in ACCURACIES), model["accuracy_error"]


def same(model, other):
    """Whether two fits were asked for the same."""
    return (model["given"], model["asked"]) == (other["given"], other["asked"])


def over_seeds(program, name, table, seeds):
    told = Counter()
    for seed in range(seeds):
        found = program.compare(table, "--seed", str(seed))
        best = found["recommended"]
        if best is None:
            print(f"{name} seed {seed}: nothing was fitted in {program.budget}", flush=True)
            continue
        few = "too few rows to tell" in best["reason"]
        told["too few rows to tell" if few else best["given"]["name"]] += 1
        given, m, fidelity = best["given"]["name"], best["m"], best["fidelity"]
        print(f"{name} seed {seed}: {given}, {m} points, fidelity {fidelity:.3f}; {len(found['models'])} models")
        print(f"    {best['reason']}", flush=True)
    print(f"{name}: {dict(told)}", flush=True)


def on_fresh_rows(program, name, table):
    half = int(len(table) * (1 - FRESH))
    train, fresh = table[:half], table[half:]
    best = program.compare(train)["recommended"]
    if best is None:
        print(f"{name}: nothing was fitted in {program.budget}", flush=True)
        return
    judged = program.compare_on(fresh, train)["models"]
    by = "auroc" if "AUROC" in best["reason"] or judged[0]["nearest_accuracy"] is None else "accuracy"
    qualities = {i: quality(model, by) for i, model in enumerate(judged) if quality(model, by)[0] is not None}
    top, error = max(qualities.values())
    ours = [quality(model, by)[0] for model in judged if same(model, best)]
    about = f"{name}, {len(train)} rows, {len(fresh)} fresh: {best['given']['name']}, {best['m']} points, by {by}"
    if not ours:
        print(f"{about}: not among the {len(judged)} models judged on fresh rows: raise --budget", flush=True)
        return
    verdict = "met" if ours[0] >= top - error else "MISSED"
    print(f"{about}: {ours[0]:.4f}, best of {len(judged)} {top:.4f} ± {error:.4f}: {verdict}")
    print(f"    {best['reason']}; median of all {np.median([q for q, _ in qualities.values()]):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=".")
    parser.add_argument("--program", default="target/release/skpca")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--only", nargs="*", default=[*SMALL, *LARGE])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = Program(options.program, options.budget, directory)
        for name, (source, most) in SMALL.items():
            if name in options.only:
                over_seeds(program, name, load(source, most, options.data), options.seeds)
        for name, (source, most) in LARGE.items():
            if name in options.only:
                on_fresh_rows(program, name, load(source, most, options.data))


if __name__ == "__main__":
    main()
