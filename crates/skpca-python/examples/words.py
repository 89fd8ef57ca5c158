"""
Kernel PCA of words
===================

A kernel may be any function of two objects. Here it is the cosine of the letter pairs that two words share; five
words (red) are kept. Labels that would overlap are moved up; a line connects them to their position.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

WORDS = """kernel kernels colonel sparse sparsely sparsity parse parsing component components compose composed
principal principle principles prince analysis analyse analyses paralysis matrix matrices mattress""".split()


def pairs(word):
    return {word[i : i + 2] for i in range(len(word) - 1)}


def shared(a, b):
    return len(pairs(a) & pairs(b)) / np.sqrt(len(pairs(a)) * len(pairs(b)))


pca = SparseKernelPCA(2, kernel=shared, n_support=5, random_state=0).fit(WORDS)
features = pca.transform(WORDS)

# Size of a label, in units of the axes.
WIDTH, HEIGHT = 0.24, 0.075
places = features.copy()
for i in np.argsort(features[:, 1]):
    below = [places[j, 1] for j in range(len(WORDS)) if abs(features[j, 0] - features[i, 0]) < WIDTH and j != i]
    while any(abs(places[i, 1] - y) < HEIGHT for y in below):
        places[i, 1] += HEIGHT / 8

figure, axis = plt.subplots(figsize=(9, 6.5), layout="constrained")
for word, (x, y), (_, place) in zip(WORDS, features, places, strict=True):
    kept = word in pca.support_vectors_
    color = "tab:red" if kept else "0.3"
    axis.plot([x, x], [y, place], "-", color="0.8", linewidth=1, zorder=0)
    axis.plot(x, y, ".", color=color, markersize=4, zorder=0)
    axis.text(x, place, word, ha="center", va="bottom", weight="bold" if kept else None, color=color)
low, high = features.min(axis=0), features.max(axis=0)
margin = 0.12 * (high - low)
axis.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
axis.set(
    xlabel="first component", ylabel="second component", title=f"{len(WORDS)} words by {len(pca.support_)} of them"
)
print("kept:", ", ".join(pca.support_vectors_), f"(fidelity {pca.fidelity_:.3f})")
plt.show()
