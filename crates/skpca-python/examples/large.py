"""
Two hundred thousand rows
=========================

The fewest points for a fidelity of 0.95 on a table of 200,000 rows. No n × n matrix is computed; the fidelity is
estimated on 4,000 rows and has an interval. The picture shows how the features of new rows follow the curve that
generated the table.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import SparseKernelPCA

rng = np.random.default_rng(0)


def table(t):
    curve = np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t), np.sin(3 * t), t / 3])
    return curve + 0.1 * rng.normal(size=curve.shape)


t = rng.uniform(-3, 3, 200_000)
pca = SparseKernelPCA(4, fidelity=0.95, random_state=0).fit(table(t))
low, high = pca.report_["fidelity_interval"]
print(f"{len(pca.support_vectors_)} of {len(t):,} rows; fidelity {pca.fidelity_:.4f}, from {low:.4f} to {high:.4f}")

new = np.linspace(-3, 3, 2000)
features = pca.transform(table(new))
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for k in range(4):
    axis.plot(new, features[:, k], ".", markersize=2, label=f"component {k + 1}")
axis.set(xlabel="position on the curve", ylabel="feature")
figure.legend(markerscale=5, loc="outside upper center", ncols=4)
plt.show()
