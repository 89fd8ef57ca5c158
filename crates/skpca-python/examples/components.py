"""
Ten points instead of ninety
============================

Contours of the first four components of three clusters: a model of all ninety points above, one of ten synthetic points
(crosses) below. They are almost indistinguishable.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

random = np.random.default_rng(0)
centres = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
x = np.vstack([centre + 0.1 * random.normal(size=(30, 2)) for centre in centres])
grid = np.stack(np.meshgrid(np.linspace(-1, 1, 80), np.linspace(-0.7, 1.1, 80)), axis=-1)

figure, axes = plt.subplots(2, 4, figsize=(12, 6), sharex=True, sharey=True, layout="constrained")
for row, (title, method) in zip(axes, {"all points": "exact", "ten points": "expansion"}.items(), strict=True):
    pca = SparseKernelPCA(4, method=method, n_support=10 if method == "expansion" else None, gamma=10).fit(x)
    features = pca.transform(grid.reshape(-1, 2)).reshape(80, 80, 4)
    for k, axis in enumerate(row):
        axis.contour(grid[..., 0], grid[..., 1], features[..., k], 12)
        axis.plot(*x.T, ".", color="grey", markersize=3)
        if method == "expansion":
            axis.plot(*pca.support_vectors_.T, "k+", markersize=9, markeredgewidth=1.5)
        axis.set_title(f"{title}, component {k + 1}")
    print(f"{title}: {len(pca.support_vectors_)} kept, fidelity {pca.fidelity_:.4f}")
plt.show()
