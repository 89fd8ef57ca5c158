"""Side by side with scikit-learn: ratios of times measured in one process, in turns.

python benchmarks/run.py [--quick] [--only NAME …] [--data DIR] [--repeats K] [--threads T] [--level LEVEL]
                         [--json FILE]
"""

import argparse
import functools
import json
import os
import statistics
import sys

NAMES = ("transform", "small", "exact", "landmarks", "expansion", "fewest", "million", "energy", "searches", "reading")


def arguments():
    parser = argparse.ArgumentParser(description="Measures skpca against scikit-learn; see benchmarks/README.md.")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: a smoke test of half a minute, not a measurement"
    )
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=f"sections: {', '.join(NAMES)}"
    )
    parser.add_argument(
        "--repeats", type=int, metavar="K", help="timed calls of each (default 5, quick 2; long fits at most 2)"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="T", help="threads on either side (default 2)")
    parser.add_argument(
        "--level",
        default="auto",
        help="our instructions: auto, avx512, avx2 or portable, to compare with peers that have no better ones",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="CSV files for `fewest` (default: tables of the same shapes, made)"
    )
    parser.add_argument("--json", metavar="FILE", help="write machine, results and every raw time to FILE")
    options = parser.parse_args()
    options.repeats = options.repeats or (2 if options.quick else 5)
    if options.repeats < 1 or options.threads < 1:
        parser.error("--repeats and --threads are whole numbers from 1")
    return options


def limit_threads(count):
    """Must come before numpy is imported: its thread pool is made then."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = str(count)
    # The threads of OpenBLAS spin after their work, on the cores of whoever is timed next; they need not.
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = "4"


def pin(level):
    """Fits, and the models that come of them, use these instructions from now on."""
    import limits
    import skpca
    from skpca import _core

    limits.LEVEL = level
    skpca.fit = _core.fit = functools.partial(_core.fit, level=level)


def show_machine(machine, options):
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    instructions = " ".join(machine["instructions"])
    print(f"{machine['cpu']} ({instructions}), {machine['cores']} cores, {machine['memory_gb']:.0f} GB; {versions}")
    print(f"{options.threads} threads on either side, {options.repeats} repeats, load {machine['load']:.2f}")
    if options.level != "auto":
        print(f"ours with {options.level} instructions")
    if machine["load"] > 0.5:
        print("the machine is not quiet: do not trust these times")


HEADER = f"{'peer':<28}{'ours':<11}{'peer s':>10}{'our s':>10}{'ratio':>8}{'best':>8}{'target':>8}       "


def show(item, quick):
    """One line. With --quick no target is judged: it was set for other sizes."""
    if hasattr(item, "ratios"):
        median, best = item.ratios()
        target = "" if item.target is None else f"{item.target:g}"
        met = None if item.target is None else median >= item.target
        times = (statistics.median(item.peer_seconds), statistics.median(item.our_seconds))
        line = f"{item.peer:<28}{item.ours:<11}{times[0]:>10.4f}{times[1]:>10.4f}{median:>8.2f}{best:>8.2f}{target:>8}"
        print(f"  {line} {verdict(met, quick):<7}{item.note}")
    else:
        print(f"  {verdict(item.met, quick):<7}{item.case}: {item.text}")


def verdict(met, quick):
    return "" if quick or met is None else "met" if met else "MISSED"


def main():
    options = arguments()
    limit_threads(options.threads)
    from measure import machine
    from sections import SECTIONS

    pin(options.level)
    found = machine()
    show_machine(found, options)
    results = {}
    for name in options.only:
        print(f"\n{name}: {SECTIONS[name].__doc__.splitlines()[0]}")
        results[name] = []
        case = None
        more = {"data": options.data} if name == "fewest" else {}
        for item in SECTIONS[name](options.quick, options.repeats, **more):
            if hasattr(item, "ratios") and item.case != case:
                case = item.case
                print(f" {case}\n  {HEADER}")
            show(item, options.quick)
            sys.stdout.flush()
            results[name].append(item.to_json())
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": found, "options": vars(options), "results": results}, file, indent=1, default=float)


if __name__ == "__main__":
    main()
