"""A map of the novelty score around a ring, its threshold, and the points that the model keeps."""

import sys

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
axis.plot(*detector.support_vectors_.T, "r+", markersize=10)
axis.set_title(f"{len(detector.support_vectors_)} points kept; white: threshold")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "novelty.png", dpi=80)

odd = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.6]])
told = zip(odd, detector.predict(odd), detector.p_values(odd), detector.contributions(odd), strict=True)
for row, label, p, slope in told:
    print(f"{row}: {'novel' if label < 0 else 'normal'}, p = {p:.3f}, slope {slope.round(2)}")
