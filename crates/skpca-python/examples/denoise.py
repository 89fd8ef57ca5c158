"""Digits with noise and their pre-images: fifty points against a thousand.

The settings (noise 0.25, 32 components, gamma 0.05) favour us: with more noise, or trained on noisy digits,
KernelPCA's ridge regression over all its points is the better of the two.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from skpca import SparseKernelPCA

digits = load_digits().data / 16
train, clean = digits[:1000], digits[1000:]
noisy = clean + 0.25 * np.random.default_rng(0).normal(size=clean.shape)

ours = SparseKernelPCA(32, n_support=50, gamma=0.05, random_state=0).fit(train)
theirs = KernelPCA(32, kernel="rbf", gamma=0.05, fit_inverse_transform=True, alpha=1e-3).fit(train)
pictures = {
    "clean": clean,
    "noisy": noisy,
    "50 points": ours.inverse_transform(ours.transform(noisy)),
    "KernelPCA, 1000 points": theirs.inverse_transform(theirs.transform(noisy)),
}
figure, axes = plt.subplots(len(pictures), 10, figsize=(10, 4.4))
for row, (title, images) in zip(axes, pictures.items(), strict=True):
    print(f"{title:<24} mean squared error {np.mean((images - clean) ** 2):.5f}")
    row[0].set_title(title, loc="left", fontsize=9)
    for axis, image in zip(row, images[::80], strict=False):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.set_axis_off()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "denoise.png", dpi=80)
