"""
Zhang, Wang & Ma (2010): the farthest points
============================================

The energy rule keeps the rows farthest from the mean in feature space, as many as needed for 1 − α/2 of the sum of
squared distances. This bounds the loss, but keeps outliers first: compare the rows that ``greedy`` keeps.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

rng = np.random.default_rng(0)
x = np.vstack([rng.normal(size=(190, 2)), rng.uniform(-4, 4, size=(10, 2))])

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained")
models = {
    "energy, α = 0.3": {"method": {"name": "energy", "alpha": 0.3}},
    "energy, 20 points": {"method": "energy", "n_support": 20},
    "greedy, 20 points": {"method": "greedy", "n_support": 20},
}
for axis, (title, parameters) in zip(axes, models.items(), strict=True):
    pca = SparseKernelPCA(gamma=0.2, random_state=0, **parameters).fit(x)
    axis.plot(*x.T, ".", color="grey", markersize=4)
    axis.plot(*pca.support_vectors_.T, "ro", markersize=8, markerfacecolor="none")
    axis.set_title(f"{title}: {len(pca.support_)} kept, fidelity {pca.fidelity_:.2f}", fontsize=10)
    print(
        f"{title}: {len(pca.support_)} points, {len(pca.explained_variance_)} components, fidelity {pca.fidelity_:.3f}"
    )
plt.show()
