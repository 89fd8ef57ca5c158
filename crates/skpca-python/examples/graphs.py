"""
Kernel PCA of graphs
====================

Rows may be any objects that a kernel function takes. Here they are graphs, as lists of neighbours, and the kernel is
that of Weisfeiler and Lehman (Shervashidze et al. 2011): the number of subtrees around their nodes that two graphs
share. Six of the thirty-six graphs (circled) are kept.
"""

from collections import Counter
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

# %%
# Chains, rings, stars and binary trees of 5 to 13 nodes, each a tuple with the neighbours of every node.


def graph(edges):
    near = [[] for _ in range(1 + max(map(max, edges)))]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    return tuple(map(tuple, near))


KINDS = {
    "chain": lambda n: graph([(i, i + 1) for i in range(n - 1)]),
    "ring": lambda n: graph([(i, (i + 1) % n) for i in range(n)]),
    "star": lambda n: graph([(0, i) for i in range(1, n)]),
    "tree": lambda n: graph([((i - 1) // 2, i) for i in range(1, n)]),
}
graphs = [make(n) for make in KINDS.values() for n in range(5, 14)]

# %%
# Each round labels every node by the labels of its neighbours; the kernel is the cosine of the counts of labels.


@cache
def labels(graph, rounds=3):
    counts, of = Counter(), [""] * len(graph)
    for _ in range(rounds):
        of = ["(" + "".join(sorted(of[j] for j in near)) + ")" for near in graph]
        counts.update(of)
    return counts


def shared(a, b):
    one, two = labels(a), labels(b)
    lengths = [np.sqrt(sum(count**2 for count in counts.values())) for counts in (one, two)]
    return sum(one[label] * two[label] for label in one) / np.prod(lengths)


pca = SparseKernelPCA(2, kernel=shared, n_support=6, random_state=0).fit(graphs)
features = pca.transform(graphs).reshape(len(KINDS), -1, 2)
print(f"6 of {len(graphs)} graphs hold {pca.fidelity_:.3f} of what all hold")

# %%
# Larger dots mark larger graphs.

figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
for kind, points in zip(KINDS, features, strict=True):
    axis.scatter(*points.T, s=10 * np.arange(1, 10), label=kind, alpha=0.7)
kept = features.reshape(-1, 2)[pca.support_]
axis.scatter(*kept.T, s=180, facecolor="none", edgecolor="tab:red", label="kept")
axis.set(xlabel="first component", ylabel="second component")
axis.legend()
plt.show()
