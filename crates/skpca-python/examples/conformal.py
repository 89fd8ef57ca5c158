"""
A kernel learned from labels
============================

Li & Gao's data-dependent kernel is f(x) f(z) k(x, z), where f is learned so that classes separate. For comparison, the
method ``discriminant`` uses labels directly. The first component of each is shown.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from skpca import SparseKernelPCA

x, y = make_moons(300, noise=0.15, random_state=0)
grid = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, 90), np.linspace(-1.1, 1.6, 80)), axis=-1)
models = {
    "rbf": {"gamma": 2.0},
    "conformal around rbf": {"kernel": {"name": "conformal", "base": "rbf", "gamma": 2.0}, "method": "greedy"},
    "discriminant": {"method": "discriminant", "gamma": 2.0},
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
for axis, (title, parameters) in zip(axes, models.items(), strict=True):
    pca = SparseKernelPCA(1, n_support=20, random_state=0, **parameters).fit(x, y)
    feature = pca.transform(grid.reshape(-1, 2))[:, 0].reshape(grid.shape[:2])
    axis.contourf(grid[..., 0], grid[..., 1], feature, 16, cmap="PuOr")
    axis.scatter(*x.T, c=y, cmap="gray", s=8, edgecolors="0.3", linewidths=0.4)
    axis.set_title(title)
    a, b = (pca.transform(x[y == c])[:, 0] for c in (0, 1))
    distance = abs(a.mean() - b.mean()) / np.sqrt((a.var() + b.var()) / 2)
    print(f"{title:<22} distance of the class means: {distance:.2f} deviations")
plt.show()
