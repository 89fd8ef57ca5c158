"""
One ring, six kernels
=====================

The first two components of the same rows under six kernels, with at most ten points each. Bounded, local kernels
(``rbf``, ``laplacian``) separate inside from outside; ``linear`` cannot.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 300)
radius = np.where(np.arange(300) < 200, 1.0, 0.25)[:, None]
x = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.06 * rng.normal(size=(300, 2))
colour = np.where(np.arange(300) < 200, "tab:blue", "tab:orange")

figure, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
for axis, kernel in zip(axes.flat, ("rbf", "laplacian", "polynomial", "sigmoid", "linear", "cosine"), strict=True):
    gamma = 0.05 if kernel == "sigmoid" else None
    parameters = {"method": "greedy"} if kernel == "sigmoid" else {}
    try:
        pca = SparseKernelPCA(2, kernel=kernel, gamma=gamma, n_support=10, random_state=0, **parameters).fit(x)
    except ValueError as error:  # sigmoid is not positive semi-definite in general
        axis.text(0.5, 0.5, "not a valid kernel\non these rows", ha="center", va="center", transform=axis.transAxes)
        print(f"{kernel:<11} {error}")
    else:
        features = pca.transform(x)
        axis.scatter(features[:, 0], features[:, -1], c=colour, s=6)
        print(f"{kernel:<11} {len(pca.support_vectors_)} points, fidelity {pca.fidelity_:.3f}")
    axis.set(title=kernel, xticks=[], yticks=[])
plt.show()
