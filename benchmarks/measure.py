"""Timing, and what it was measured on."""

import os
import platform
import statistics
import time
from dataclasses import dataclass
from importlib.metadata import version

import skpca

PAUSE = 0.1
# Rounds of multiply-adds: some 10 ms on both cores.
AWAKE = 30_000


def interleaved(calls, repeats):
    """Seconds of each call, `repeats` times over: a, b, c, a, b, c, …

    A machine that slows down half-way then slows all of them. Each is called once before, untimed. Before each there is
    a pause: OpenBLAS's threads spin for tens of milliseconds after a product, on the cores of whoever comes next. After
    it both cores are kept busy for a moment, untimed: an idle core of a virtual machine takes 5 ms to come back, which
    would be counted to whoever uses two of them.
    """
    for call in calls.values():
        call()
    seconds = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            time.sleep(PAUSE)
            skpca.multiply_adds(False, AWAKE)
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return seconds


@dataclass
class Result:
    """One line of the table: a peer against us, in one setting."""

    case: str
    peer: str
    ours: str
    peer_seconds: list
    our_seconds: list
    target: float | None
    note: str = ""

    def ratios(self):
        """Peer over ours, of the medians and of the best."""
        return tuple(of(self.peer_seconds) / of(self.our_seconds) for of in (statistics.median, min))

    def to_json(self):
        median, best = self.ratios()
        return {**vars(self), "ratio_median": median, "ratio_best": best}


@dataclass
class Fact:
    """A number that is not a ratio of times, with the limit it should keep, if it has one."""

    case: str
    text: str
    values: dict
    met: bool | None = None

    def to_json(self):
        return vars(self)


def machine():
    """What the numbers depend on."""
    with open("/proc/cpuinfo") as file:
        lines = [line.partition(":") for line in file]
    info = {key.strip(): value.strip() for key, _, value in lines}
    flags = set(info.get("flags", "").split())
    return {
        "cpu": info.get("model name", platform.machine()),
        "instructions": sorted(flags & {"fma", "avx2", "avx512f", "avx512dq", "avx512vl"}),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "load": os.getloadavg()[0],
        "threads": {name: os.environ.get(name) for name in THREADS},
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "skpca")},
    }


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
