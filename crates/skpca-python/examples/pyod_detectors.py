"""
Comparison with detectors of PyOD
=================================

``skpca.pyod.SKPCA`` has PyOD's interface, so it can be compared with that package's detectors. Area under the ROC
curve for rows on a curved sheet with outliers scattered around it, on ten data sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.models.kpca import KPCA
from pyod.models.pca import PCA
from sklearn.metrics import roc_auc_score
from skpca.pyod import SKPCA

DETECTORS = {
    "SKPCA, fidelity 0.95": lambda: SKPCA(random_state=0),
    "KPCA, all rows": lambda: KPCA(n_components=10),
    "nearest neighbours": KNN,
    "isolation forest": lambda: IForest(random_state=0),
    "PCA": PCA,
}


def data(seed):
    """Generates rows on a curved sheet, and outliers, one row in twenty, spread over their bounding box."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1.5, 1.5, (380, 2))
    sheet = np.column_stack([t, t[:, 0] ** 2, np.sin(2 * t[:, 1])]) + 0.1 * rng.normal(size=(380, 4))
    outliers = rng.uniform(sheet.min(axis=0), sheet.max(axis=0), size=(20, 4))
    return np.vstack([sheet, outliers]), np.repeat([0, 1], [380, 20])


results = {name: [] for name in DETECTORS}
for seed in range(10):
    x, y = data(seed)
    for name, make in DETECTORS.items():
        results[name].append(roc_auc_score(y, make().fit(x).decision_scores_))

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.boxplot(list(results.values()), tick_labels=list(results), orientation="horizontal")
axis.invert_yaxis()
axis.set_xlabel("area under the ROC curve")
for name, values in results.items():
    print(f"{name:<22} {np.mean(values):.3f}")
plt.show()
