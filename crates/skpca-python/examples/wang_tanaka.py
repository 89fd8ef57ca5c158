"""
Wang & Tanaka (2019): points per component, or shared
=====================================================

Two penalties on the same regression. The l1 norm lets every component choose its own rows; the l2,1 norm makes
all components share one set. The data are the paper's parabola, with rows ordered by their first coordinate; a mark
is a non-zero coefficient.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-1, 1, 100))
rows = np.column_stack([x, x**2 + 0.2 * rng.normal(size=100)])

figure, axes = plt.subplots(2, 1, figsize=(9, 4), sharex=True, layout="constrained")
for axis, name in zip(axes, ("l1", "l21"), strict=True):
    pca = SparseKernelPCA(4, method={"name": name, "fraction": 0.1}, kernel="rbf", gamma=2, refit=False).fit(rows)
    for k in range(pca.coefficients_.shape[1]):
        used = pca.support_[np.abs(pca.coefficients_[:, k]) > 0]
        axis.plot(used, np.full(len(used), k + 1), "|", markersize=16, markeredgewidth=2)
    axis.set(
        title=f"{name}: {len(pca.support_)} points in all", ylabel="component", yticks=[1, 2, 3, 4], ylim=(0.4, 4.6)
    )
    coefficients = np.count_nonzero(pca.coefficients_)
    print(f"{name}: {len(pca.support_)} points, {coefficients} coefficients, fidelity {pca.fidelity_:.3f}")
axes[1].set_xlabel("row")
plt.show()
