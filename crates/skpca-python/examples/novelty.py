"""
A map of novelty
================

The novelty score around a ring of 400 rows, with its threshold (white) and the points that the model keeps
(crosses). The middle of the ring is as novel as the outside, which a linear model could not detect.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import KernelNovelty

random = np.random.default_rng(0)
angle = random.uniform(0, 2 * np.pi, 400)
x = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.08 * random.normal(size=(400, 2))
detector = KernelNovelty(fidelity=0.95, gamma=2).fit(x)

grid = np.stack(np.meshgrid(np.linspace(-2, 2, 120), np.linspace(-2, 2, 120)), axis=-1)
scores = -detector.score_samples(grid.reshape(-1, 2)).reshape(120, 120)
figure, axis = plt.subplots(figsize=(6, 6))
axis.contourf(grid[..., 0], grid[..., 1], scores, 30, cmap="viridis")
axis.contour(grid[..., 0], grid[..., 1], scores, [-detector.offset_], colors="white")
axis.plot(*x.T, ".", color="lightgrey", markersize=3)
axis.plot(*detector.support_vectors_.T, "r+", markersize=12, markeredgewidth=2)
axis.set_title(f"{len(detector.support_vectors_)} points kept; white: threshold")
axis.set_aspect("equal")
plt.show()

# %%
# For single rows: is the row novel, how rare is such a score, and which inputs cause it?

odd = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.6]])
found = zip(odd, detector.predict(odd), detector.p_values(odd), detector.contributions(odd), strict=True)
for row, label, p, contributions in found:
    print(f"{row}: {'novel' if label < 0 else 'normal'}, p = {p:.3f}, contributions {contributions.round(3)}")
