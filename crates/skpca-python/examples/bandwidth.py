"""
Too wide, right, too narrow
===========================

The effect of the bandwidth on ten components. Under a wide kernel, kernel PCA is close to ordinary PCA. Under a narrow
one all rows are nearly orthogonal, so that ten components capture little of the variance, however many points they
have. In between, a few points capture nearly all of it.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import KernelNovelty

rng = np.random.default_rng(0)
angle = rng.uniform(0, np.pi, 300)
moons = np.column_stack([np.cos(angle), np.sin(angle)])
moons[::2] = [1, 0.4] - moons[::2]
x = moons + 0.07 * rng.normal(size=moons.shape)
grid = np.stack(np.meshgrid(np.linspace(-1.7, 2.7, 100), np.linspace(-1.3, 1.8, 90)), axis=-1)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True, layout="constrained")
for axis, gamma in zip(axes, (0.05, 4, 400), strict=True):
    detector = KernelNovelty(10, fidelity=0.95, gamma=gamma, random_state=0).fit(x)
    scores = -detector.score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    axis.contourf(grid[..., 0], grid[..., 1], scores, 20)
    axis.contour(grid[..., 0], grid[..., 1], scores, [-detector.offset_], colors="white")
    axis.plot(*x.T, ".", color="lightgrey", markersize=2)
    axis.plot(*detector.support_vectors_.T, "r+", markersize=8)
    points, captured = len(detector.support_vectors_), detector.captured_variance_ratio_
    axis.set_title(f"γ = {gamma}: {points} points, {captured:.0%} of the variance")
    print(f"gamma {gamma}: {points} points hold {detector.fidelity_:.3f} of kernel PCA, {captured:.3f} of the variance")
plt.show()
