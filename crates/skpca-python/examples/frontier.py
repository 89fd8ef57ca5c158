"""
Size against fidelity
=====================

How close do a few points come to exact kernel PCA? Five methods on 400 handwritten digits, ten components.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from skpca import SparseKernelPCA

x = StandardScaler().fit_transform(load_digits().data[:400])
sizes = [10, 20, 40, 80]
figure, axis = plt.subplots(figsize=(7, 5))
for method, marker in {"expansion": "o", "greedy": "s", "likelihood": "^", "l21": "D", "landmarks": "v"}.items():
    fits = [SparseKernelPCA(10, method=method, n_support=m, center=True, random_state=0).fit(x) for m in sizes]
    axis.plot([len(pca.support_vectors_) for pca in fits], [pca.fidelity_ for pca in fits], marker=marker, label=method)
    print(f"{method:<12}", *(f"{pca.fidelity_:.3f}" for pca in fits))
axis.axhline(1.0, color="grey", linestyle=":")
axis.set(xlabel="points kept", ylabel="fidelity", title="400 digits, 10 components")
axis.legend()
plt.show()
