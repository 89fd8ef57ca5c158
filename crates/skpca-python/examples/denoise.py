"""
Denoising digits
================

Noisy digits are projected onto the components and mapped back: fifty points against the thousand that scikit-learn's
``KernelPCA`` keeps. Kernel width and ridge of both are chosen on a validation set.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from skpca import SparseKernelPCA

digits = load_digits().data / 16
train, choice, clean = digits[:1000], digits[1000:1400], digits[1400:]
rng = np.random.default_rng(0)
noisy_choice, noisy = (rows + 0.25 * rng.normal(size=rows.shape) for rows in (choice, clean))


def denoised(estimator, rows):
    return estimator.inverse_transform(estimator.transform(rows))


def best(make):
    """Returns the estimator with the smallest reconstruction error on the validation set."""
    grid = itertools.product((0.02, 0.05), (0.1, 1.0))
    fitted = (make(48, gamma=gamma, alpha=alpha).fit(train) for gamma, alpha in grid)
    return min(fitted, key=lambda estimator: np.square(denoised(estimator, noisy_choice) - choice).mean())


sparse = {"n_support": 50, "inverse": "kernel-ridge", "random_state": 0}
ours = best(lambda q, **parameters: SparseKernelPCA(q, **sparse, **parameters))
theirs = best(lambda q, **parameters: KernelPCA(q, kernel="rbf", fit_inverse_transform=True, **parameters))
pictures = {
    "clean": clean,
    "noisy": noisy,
    "50 points": denoised(ours, noisy),
    "KernelPCA, 1000 points": denoised(theirs, noisy),
}
figure, axes = plt.subplots(len(pictures), 10, figsize=(10, 4.8), layout="constrained")
for row, (title, images) in zip(axes, pictures.items(), strict=True):
    error = np.mean((images - clean) ** 2)
    print(f"{title:<24} mean squared error {error:.5f}")
    row[0].set_title(title, loc="left", fontsize=10)
    for axis, image in zip(row, images[::40], strict=False):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.set_axis_off()
plt.show()
