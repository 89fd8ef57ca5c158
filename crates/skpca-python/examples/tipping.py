"""
Tipping (2001): clusters by maximum likelihood
==============================================

The setting of the paper's Figures 1 to 3: ninety points in three clusters, kernel width 0.25, noise 0.25. The
likelihood of a Gaussian in feature space is maximised by a handful of weighted points (circles). The paper shows
nine; at the maximum there are seven or eight on average over many data sets. Contours: the leading components, with
all points above and with the few points below.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

rng = np.random.default_rng(1)
centres = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
x = np.vstack([centre + 0.1 * rng.normal(size=(30, 2)) for centre in centres])
grid = np.stack(np.meshgrid(np.linspace(-1, 1, 80), np.linspace(-0.8, 1.1, 80)), axis=-1)

# %%
# The paper's kernel is exp(−‖x − z‖² / r²), its noise σ² = 0.25².

gamma = 1 / 0.25**2
full = SparseKernelPCA(4, method="exact", gamma=gamma, center=False).fit(x)
sparse = SparseKernelPCA(4, method={"name": "likelihood", "noise": 0.25**2}, gamma=gamma, center=False).fit(x)
print(f"{len(sparse.support_)} of {len(x)} points hold {sparse.fidelity_:.3f} of what all hold")

figure, axes = plt.subplots(2, 4, figsize=(12, 6), sharex=True, sharey=True, layout="constrained")
for row, pca in zip(axes, (full, sparse), strict=True):
    features = pca.transform(grid.reshape(-1, 2)).reshape(80, 80, -1)
    row[0].set_ylabel("all points" if pca is full else f"{len(sparse.support_)} points", size="x-large")
    for k, axis in enumerate(row[: features.shape[-1]]):
        axis.contour(grid[..., 0], grid[..., 1], features[..., k], 10)
        axis.plot(*x.T, ".", color="grey", markersize=3)
        if pca is sparse:
            axis.plot(*sparse.support_vectors_.T, "ro", markersize=10, markerfacecolor="none")
        if pca is full:
            axis.set_title(f"component {k + 1}")
plt.show()
