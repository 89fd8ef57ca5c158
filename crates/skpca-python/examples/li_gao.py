"""
Li & Gao (2011): points chosen, points moved
============================================

The variance captured by components over a few points is a function of those points, so they can be chosen one by
one (``greedy``) or moved freely (``expansion``). Random landmarks are shown for comparison.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

rng = np.random.default_rng(0)
angle = rng.uniform(0, 4.5 * np.pi, 600)
x = 0.12 * angle[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(600, 2))
grid = np.stack(np.meshgrid(np.linspace(-2, 2, 90), np.linspace(-2, 2, 90)), axis=-1)

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharey=True, layout="constrained")
for axis, method in zip(axes, ("landmarks", "greedy", "expansion"), strict=True):
    pca = SparseKernelPCA(8, method=method, n_support=10, gamma=1.5, random_state=0).fit(x)
    feature = pca.transform(grid.reshape(-1, 2))[:, 0].reshape(grid.shape[:2])
    axis.contourf(grid[..., 0], grid[..., 1], feature, 14, cmap="PuOr")
    axis.plot(*x.T, ".", color="0.35", markersize=2)
    axis.plot(*pca.support_vectors_.T, "ro", markersize=8, markerfacecolor="none", markeredgewidth=2)
    axis.set_title(f"{method}: fidelity {pca.fidelity_:.3f}")
    print(f"{method:<10} 10 points hold {pca.fidelity_:.3f}")
plt.show()
