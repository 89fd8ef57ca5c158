"""Words on a map: a kernel of strings, and five words that hold it.

A kernel may be any function of two things. Here it is the cosine of the pairs of letters that two words share.
"""

import sys

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

figure, axis = plt.subplots(figsize=(7, 5))
for word, (x, y) in zip(WORDS, features, strict=True):
    kept = word in pca.support_vectors_
    axis.text(x, y, word, ha="center", weight="bold" if kept else None, color="tab:red" if kept else "0.3")
axis.set(
    xlim=1.2 * np.array([features[:, 0].min(), features[:, 0].max()]),
    ylim=1.2 * np.array([features[:, 1].min(), features[:, 1].max()]),
)
axis.set(
    xlabel="first component", ylabel="second component", title=f"{len(WORDS)} words by {len(pca.support_)} of them"
)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "words.png", dpi=120)
print("kept:", ", ".join(pca.support_vectors_), f"(fidelity {pca.fidelity_:.3f})")
