"""Runs the cells of experiments: units of work that are computed once, and stored in one file per experiment.

A record holds the parameters of its cell; a cell with a record of the same parameters is not recomputed. Its seed is
derived from its name, so that results depend neither on the order of cells nor on the number of processes.
"""

import json
import os
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from .data import Data

# Each process uses one core: the pool uses the others.
ONE_THREAD = {name: "1" for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


@dataclass(frozen=True)
class Cell:
    name: str  # such as das/mnist-400/3: experiment, set and repeat
    work: Callable  # work(data, seed, **parameters) returns JSON values; a module-level function, so it can be pickled
    parameters: dict
    needs: tuple[str, ...] = ()  # data sets

    @property
    def seed(self):
        return zlib.crc32(self.name.encode())


@dataclass(frozen=True)
class Options:
    quick: bool = False
    repeats: int | None = None

    def count(self, usual):
        """Returns the number of repeats, given the usual number."""
        return self.repeats or (min(usual, 2) if self.quick else usual)


class Results:
    """Results of cells, by name."""

    def __init__(self, cells, out, data):
        self.cells = {cell.name: cell for cell in cells}
        self.records = known(cells, out)
        self.absent = {cell.name: [name for name in cell.needs if not data.has(name)] for cell in cells}

    def done(self, start):
        """Returns results of finished cells whose names start with `start`, in order."""
        found = [self.records[name] for name in self.cells if name.startswith(start)]
        return [record["result"] for record in found if record and record["status"] == "done"]

    def state(self, start=""):
        """Returns why results are incomplete: what is missing, failed or not run, or "" if nothing is."""
        names = [name for name in self.cells if name.startswith(start)]
        states = [self.state_of(name) for name in names]
        left = ", ".join(dict.fromkeys(state for state in states if state != "done"))
        done = states.count("done")
        return f"{done} of {len(names)} cells, the others: {left}" if done and left else left

    def state_of(self, name):
        record = self.records[name]
        if record:
            return record["status"]
        return f"data missing: {', '.join(self.absent[name])}" if self.absent[name] else "not run"

    def seconds(self):
        return sum(record["seconds"] for record in self.records.values() if record)


def place(name, out):
    """Returns the file of a cell's experiment."""
    return Path(out) / f"{name.split('/')[0]}.json"


def read(path):
    """Returns the records of an experiment by name; none if it has no file yet."""
    if not path.exists():
        return {}
    try:
        return {record["name"]: record for record in json.loads(path.read_text())}
    except (ValueError, TypeError, KeyError) as error:
        # Continuing would overwrite what is left in it.
        raise ValueError(f"{path} is damaged, repair or remove it: {error}") from error


def keep(record, out):
    """Adds the record of a cell to its experiment's file, or replaces an older one. One line per record."""
    path = place(record["name"], out)
    records = read(path) | {record["name"]: record}
    lines = [json.dumps(records[name]) for name in sorted(records, key=set_and_repeat)]
    write(path, "[\n" + ",\n".join(lines) + "\n]\n")


def set_and_repeat(name):
    start, repeat = name.rsplit("/", 1)
    return start, int(repeat)


def known(cells, out):
    """Returns the record of each cell, or None if there is none with the same parameters."""
    records = {}
    for path in {place(cell.name, out) for cell in cells}:
        records |= read(path)
    same = {cell.name for cell in cells if records.get(cell.name, {}).get("parameters") == plain(cell.parameters)}
    return {cell.name: records[cell.name] if cell.name in same else None for cell in cells}


def plain(value):
    """Converts a value to what reading it back from JSON returns."""
    return json.loads(json.dumps(value, default=lambda v: v.tolist()))


def compute(cell, directory):
    """Runs a cell in its own process; errors are part of the record."""
    start, record = time.perf_counter(), {"name": cell.name, "seed": cell.seed, "parameters": plain(cell.parameters)}
    try:
        record["result"] = plain(cell.work(Data(directory), cell.seed, **cell.parameters))
        record["status"] = "done"
    except Exception as error:
        record["status"], record["message"] = "failed", f"{type(error).__name__}: {error}"
        record["trace"] = traceback.format_exc()
    return record | {"seconds": round(time.perf_counter() - start, 2)}


def write(path, text):
    """Writes a file completely or not at all: an interrupted run leaves no partial files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def run(cells, data, out, jobs, say=lambda line: print(line, file=sys.stderr, flush=True)):
    """Computes the missing cells. Returns the names of cells that failed."""
    finished = [name for name, record in known(cells, out).items() if record and record["status"] == "done"]
    absent = [cell for cell in cells if not all(data.has(name) for name in cell.needs)]
    open_ = [cell for cell in cells if cell.name not in finished and cell not in absent]
    # First repeats of all cells, then second ones: an interrupted run has results of every experiment.
    open_.sort(key=lambda cell: set_and_repeat(cell.name)[1])
    say(f"{len(cells)} cells: {len(finished)} done before, {len(open_)} to do, {len(absent)} without data")
    for name in sorted({name for cell in absent for name in cell.needs if not data.has(name)}):
        say(f"missing: {name}")
    os.environ.update(ONE_THREAD)
    failed, start = [], time.monotonic()
    # A forked process would inherit locks of threads that do not exist in it; a spawned one starts clean.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(compute, cell, data.directory): cell for cell in open_}
        for count, future in enumerate(as_completed(futures), 1):
            cell = futures[future]
            record = outcome(cell, future)
            keep(record, out)
            if record["status"] == "failed":
                failed.append(cell.name)
            what = f"{record['seconds']:.1f} s" if record["status"] == "done" else f"FAILED: {record['message']}"
            say(f"[{count}/{len(open_)}, {time.monotonic() - start:.0f} s] {cell.name}: {what}")
    return failed


def outcome(cell, future):
    try:
        return future.result()
    except Exception as error:  # the process died
        message = f"{type(error).__name__}: {error}"
        return {"name": cell.name, "parameters": plain(cell.parameters), "status": "failed"} | {
            "message": message,
            "seconds": 0.0,
        }


def spread(values):
    """Returns mean and standard deviation over repeats; the deviation of one number is 0."""
    values = np.asarray(values, dtype=float)
    return values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0
