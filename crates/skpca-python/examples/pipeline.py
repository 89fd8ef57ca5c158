"""
Features for a classifier
=========================

Accuracy of a linear classifier on features of digits, against the number of support points.
The dotted line is exact kernel PCA with all 1,000 training rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skpca import SparseKernelPCA

x, y = load_digits(return_X_y=True)
x = x / 16
train, test = slice(0, 1000), slice(1000, None)


def accuracy(**parameters):
    features = SparseKernelPCA(20, gamma=0.05, random_state=0, **parameters)
    return (
        make_pipeline(features, LogisticRegression(C=100, max_iter=500)).fit(x[train], y[train]).score(x[test], y[test])
    )


sizes = [20, 40, 80]
figure, axis = plt.subplots(figsize=(7, 4.5))
for method, marker in {"expansion": "o", "greedy": "s", "landmarks": "v"}.items():
    scores = [accuracy(method=method, n_support=m) for m in sizes]
    axis.plot(sizes, scores, marker=marker, label=method)
    print(f"{method:<10}", *(f"{score:.3f}" for score in scores))
exact = accuracy(method="exact")
print(f"exact      {exact:.3f}")
axis.axhline(exact, color="grey", linestyle=":", label="exact, 1,000 points")
axis.set(xlabel="points kept", ylabel="accuracy on held-out digits", xticks=sizes)
axis.legend()
plt.show()
