"""The command line: python -m experiments list | run NAME… | run all."""

import argparse
import json
import sys
import time
from pathlib import Path

from . import das, frontier, li_gao, novelty, online, pages, regression, tipping, wang_tanaka, zhang
from .data import Data
from .runner import Options, Results, run, write

EXPERIMENTS = {
    module.__name__.rsplit(".", 1)[-1]: module
    for module in (wang_tanaka, tipping, das, li_gao, zhang, regression, frontier, novelty, online)
}


def arguments(given):
    parser = argparse.ArgumentParser(prog="python -m experiments", description="The papers' tables and figures.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments")
    runs = commands.add_parser("run", help="compute missing results, and write the pages")
    runs.add_argument("names", nargs="+", choices=[*EXPERIMENTS, "all"], metavar="NAME", help="from `list`, or all")
    runs.add_argument("--data", type=Path, help="directory of data sets; without it, only packaged and generated sets")
    runs.add_argument("--out", type=Path, required=True, help="directory for results, pages and figures")
    runs.add_argument("--quick", action="store_true", help="reduced run of a few minutes")
    runs.add_argument("--repeats", type=int, help="number of splits or seeds, instead of that of each experiment")
    runs.add_argument("--jobs", type=int, default=2, help="processes [default: 2]; results do not depend on it")
    runs.add_argument("--note", default="", help="a sentence for the page, such as the load of the machine")
    runs.add_argument("--only", help="only cells whose names start with this, such as das/mnist-400")
    options = parser.parse_args(given)
    if options.command == "run" and options.data and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    return options


def show():
    for name, module in EXPERIMENTS.items():
        cells = module.cells(Options())
        needs = sorted({need for cell in cells for need in cell.needs})
        print(f"{name:<12} {module.TITLE}; {len(cells)} cells\n{'':<12} data: {', '.join(needs) or 'none'}")


def noted(out, seconds, computed):
    """Records the time of this run; returns the total, for a run that was resumed."""
    path = out / "runs.json"
    runs = json.loads(path.read_text()) if path.exists() else []
    if computed:
        runs.append({"seconds": round(seconds), "cells": computed})
        write(path, json.dumps(runs) + "\n")
    total = sum(run["seconds"] for run in runs)
    return f", {total / 60:.0f} minutes in all" + (f" in {len(runs)} parts" if len(runs) > 1 else "")


def main(given=None):
    options = arguments(given)
    if options.command == "list":
        show()
        return 0
    names = EXPERIMENTS if "all" in options.names else dict.fromkeys(options.names)
    data, settings = Data(options.data), Options(options.quick, options.repeats)
    cells = [cell for name in names for cell in EXPERIMENTS[name].cells(settings)]
    start = time.monotonic()
    chosen = [cell for cell in cells if cell.name.startswith(options.only or "")]
    before = Results(chosen, options.out, data)
    failed = run(chosen, data, options.out, options.jobs)
    computed = sum(1 for name in before.cells if not before.done(name) and not before.absent[name])
    wall = noted(options.out, time.monotonic() - start, computed)
    command = "python -m experiments run " + " ".join(options.names) + (" --data DIR" if options.data else "")
    command += " --out DIR" + (" --quick" if options.quick else "")
    command += f" --repeats {options.repeats}" if options.repeats else ""
    modules = [EXPERIMENTS[name] for name in names]
    pages.index(modules, Results(cells, options.out, data), options.out, command, wall, options.note)
    print(f"{options.out / 'README.md'}: {len(failed)} cells failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
