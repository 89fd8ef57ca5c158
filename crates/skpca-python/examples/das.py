"""
Das, Golatkar & Awate (2018): outliers among digits
===================================================

A model of eights detects which digits are not eights. ROC curves of the distance in feature space: exact kernel
PCA, the paper's elastic net, the default with ten points, and the paper's baseline, which keeps the largest
coefficients. With a valid distance they differ little, including the baseline.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import RocCurveDisplay
from skpca import KernelNovelty

x, y = load_digits(return_X_y=True)
eights, others = x[y == 8] / 16, x[y != 8] / 16
train, test = eights[:100], np.vstack([eights[100:], others])
is_outlier = np.repeat([0, 1], [len(eights) - 100, len(others)])

models = {
    "exact": {"method": "exact"},
    "elastic-net": {"method": {"name": "elastic-net", "l1_ratio": 0.7}},
    "expansion, 10 points": {"method": "expansion", "n_support": 10},
    "threshold, 10 points": {"method": "threshold", "n_support": 10},
}
figure, axis = plt.subplots(figsize=(6, 6))
for name, parameters in models.items():
    detector = KernelNovelty(8, gamma=0.1, random_state=0, **parameters).fit(train)
    label = f"{name} ({len(detector.support_vectors_)} points)" if "points" not in name else name
    RocCurveDisplay.from_predictions(is_outlier, -detector.score_samples(test), name=label, ax=axis)
axis.set(xlim=(-0.01, 0.5), ylim=(0.5, 1.01), title="eights against all other digits")
axis.set(xlabel="false alarms among eights", ylabel="other digits detected")
plt.show()
