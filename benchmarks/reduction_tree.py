"""How long a pass takes on a thousand workers: its reduction tree, simulated, with workers that are slow or lost.

    python benchmarks/reduction_tree.py                     # 10⁹ rows on 10 workers to 10¹¹ on 1,000, in under a minute
    python benchmarks/reduction_tree.py --rows 1e10 --workers 1000 --losses 5

Each partition is a leaf: read, summed, and then eight sums are merged at a time, as `skpca.dask` does. Workers differ
in speed, are lost at random moments and come back empty: what they held is made again, by others. The scheduler hands
out one task after the other, and takes its time for each. Nothing here computes kernel values: times come from rates.
"""

import argparse
import heapq
import math
from dataclasses import dataclass, field

import numpy as np

SPLIT_EVERY = 8


@dataclass
class Machine:
    """What one worker does; measured on a core with AVX-512, 50 support points and 10 columns (docs/scaling.md)."""

    rows_per_second: float = 8e6
    read_bytes_per_second: float = 400e6
    network_bytes_per_second: float = 1e9
    latency: float = 1e-3
    # Time that the scheduler needs for a task.
    scheduling: float = 2e-4
    # Standard deviation of the logarithm of a task's time.
    spread: float = 0.2
    # Until another worker takes the place of a lost one.
    return_after: float = 60.0


@dataclass
class Tree:
    """Leaves, and nodes of eight each, up to one."""

    leaves: int
    parents: list = field(default_factory=list)
    children: list = field(default_factory=list)

    def __post_init__(self):
        self.children = [()] * self.leaves
        level = list(range(self.leaves))
        while len(level) > 1:
            above = []
            for at in range(0, len(level), SPLIT_EVERY):
                above.append(len(self.children))
                self.children.append(tuple(level[at : at + SPLIT_EVERY]))
            level = above
        self.parents = [None] * len(self.children)
        for node, children in enumerate(self.children):
            for child in children:
                self.parents[child] = node

    @property
    def root(self):
        return len(self.children) - 1


class Pass:
    """A pass over rows in partitions, on workers that may be lost."""

    def __init__(self, rows, workers, losses, seed=0, partition=1_000_000, width=10, support=50, machine=None):
        self.machine = machine or Machine()
        self.random = np.random.default_rng(seed)
        self.partition, self.width = partition, width
        self.tree = Tree(math.ceil(rows / partition))
        self.message = 8 * (support * (support + 1) // 2 + support + 3)
        self.workers, self.losses = workers, losses
        self.remade = self.moved = 0

    def leaf_time(self):
        machine = self.machine
        read = 4 * self.width * self.partition / machine.read_bytes_per_second
        return (read + self.partition / machine.rows_per_second) * self.noise()

    def merge_time(self, count):
        machine = self.machine
        return count * (machine.latency + self.message / machine.network_bytes_per_second) * self.noise()

    def noise(self):
        return math.exp(self.random.normal(0, self.machine.spread))

    def run(self):
        """Seconds until the root is known."""
        tree, machine = self.tree, self.machine
        missing = [len(children) for children in tree.children]
        # Leaves whose results are needed, in order; merges come first.
        leaves, merges = list(range(tree.leaves))[::-1], []
        holder, running = {}, {}
        idle, events, clock, scheduler = list(range(self.workers)), [], 0.0, 0.0
        expected = tree.leaves * self.leaf_time() / self.workers
        for _ in range(self.losses):
            event = (self.random.uniform(0, expected), 1, int(self.random.integers(self.workers)), None)
            heapq.heappush(events, event)
        while True:
            while idle and (merges or leaves):
                node, worker = (merges or leaves).pop(), idle.pop()
                scheduler = max(scheduler, clock) + machine.scheduling
                children = tree.children[node]
                took = self.merge_time(len(children)) if children else self.leaf_time()
                running[worker] = node
                heapq.heappush(events, (scheduler + took, 0, worker, node))
            clock, lost, worker, node = heapq.heappop(events)
            if lost == 2:
                idle.append(worker)
            elif lost:
                self.lose(worker, holder, running, missing, leaves, merges, idle)
                heapq.heappush(events, (clock + machine.return_after, 2, worker, None))
            elif running.get(worker) == node:
                del running[worker]
                idle.append(worker)
                holder[node] = worker
                for child in tree.children[node]:
                    self.moved += self.message * (holder.pop(child, worker) != worker)
                if node == tree.root:
                    return clock
                parent = tree.parents[node]
                missing[parent] -= 1
                if not missing[parent]:
                    merges.append(parent)

    def lose(self, worker, holder, running, missing, leaves, merges, idle):
        """Whatever the worker held or was making is made again, from the partitions up."""
        tree = self.tree
        again = [node for node, at in holder.items() if at == worker]
        if worker in running:
            again.append(running.pop(worker))
        elif worker in idle:
            idle.remove(worker)
        for node in again:
            if node in holder:
                del holder[node]
                parent = tree.parents[node]
                missing[parent] += 1
                if parent in merges:
                    merges.remove(parent)
            self.make_again(node, holder, missing, leaves, merges)

    def make_again(self, node, holder, missing, leaves, merges):
        self.remade += 1
        children = self.tree.children[node]
        if not children:
            leaves.append(node)
            return
        missing[node] = sum(child not in holder for child in children)
        if not missing[node]:
            merges.append(node)
        for child in children:
            if child not in holder:
                self.make_again(child, holder, missing, leaves, merges)


def report(rows, workers, losses):
    one = Pass(rows, workers, losses)
    seconds = one.run()
    ideal = one.tree.leaves * Pass(rows, workers, 0, machine=Machine(spread=0.0)).leaf_time() / workers
    fields = [f"{rows:.0e}", workers, one.tree.leaves, losses, f"{seconds:.1f}", f"{ideal:.1f}"]
    show(*fields, f"{seconds / ideal:.2f}", f"{one.moved / 1e6:.1f}", one.remade)


def show(*fields):
    print(*(f"{field!s:>10}" for field in fields), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--losses", type=int, default=0)
    options = parser.parse_args()
    show("rows", "workers", "partitions", "lost", "seconds", "ideal", "ratio", "MB moved", "remade")
    if options.rows:
        return report(int(options.rows), options.workers, options.losses)
    for rows, workers in [(10**9, 10), (10**9, 100), (10**9, 1000), (10**10, 1000), (10**11, 1000)]:
        for losses in sorted({0, workers // 100, workers // 10}):
            report(rows, workers, losses)


if __name__ == "__main__":
    main()
