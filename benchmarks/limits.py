"""What the machine allows, and which share of a job's time that would take.

A kernel value costs d multiply-adds for its inner product, q for the components and 10 (64 bits) or 6 (32 bits) for
2^x. The limit of arithmetic is the rate of multiply-adds in the tiles of the instructions that are measured; that of
memory is the rate of a copy on two threads.
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import skpca
from measure import Fact, interleaved

# The instructions that are measured; `run.py` sets it.
LEVEL = "auto"
ROUNDS = 400_000


def power(single):
    """Multiply-adds for 2^x."""
    return 6 if single else 10


@functools.cache
def multiply_adds(single):
    """Multiply-adds a second, when nothing else is done."""
    done = skpca.multiply_adds(single, ROUNDS, LEVEL)
    return done / min(interleaved({"limit": lambda: skpca.multiply_adds(single, ROUNDS, LEVEL)}, 7)["limit"])


@functools.cache
def bytes_moved():
    """Bytes read and written a second by a copy on two threads."""
    x = np.ones(10_000_000)
    pairs = list(zip(np.array_split(x, 2), np.array_split(np.empty_like(x), 2), strict=True))
    with ThreadPoolExecutor(2) as pool:
        seconds = interleaved({"copy": lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs))}, 7)
    return 2 * x.nbytes / min(seconds["copy"])


def share(case, seconds, products, moved, single=False):
    """What arithmetic and memory alone would take, as shares of the best of `seconds`."""
    best = min(seconds)
    arithmetic, memory = products / multiply_adds(single) / best, moved / bytes_moved() / best
    text = f"{arithmetic:.0%} of the time would do for the arithmetic, {memory:.0%} for reading and writing"
    values = {"arithmetic": arithmetic, "memory": memory, "multiply_adds": products, "bytes": moved}
    return Fact(f"{case} limit", text, values)
