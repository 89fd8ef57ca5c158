"""
Do thresholds hold?
===================

Twelve models for each number of training rows, each with a requested false-alarm rate, and the rate that they reach on
5,000 new rows from the same distribution. `contamination` is a share of the training rows: with few of them, new rows
raise alarms more often, since the components were fitted to the rows that set the threshold. `false_alarm_rate` sets
it on held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import KernelNovelty

rng = np.random.default_rng(0)
mixing = rng.normal(size=(3, 5))


def rows(n):
    return np.tanh(rng.normal(size=(n, 3)) @ mixing) + 0.1 * rng.normal(size=(n, 5))


new = rows(5000)
asked = 0.05
sizes = [100, 300, 1000, 3000]


def shares(parameter, n):
    detectors = (KernelNovelty(5, n_support=20, statistic="distance", **{parameter: asked}) for _ in range(12))
    return [np.mean(detector.fit(rows(n)).predict(new) == -1) for detector in detectors]


figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axis, parameter in zip(axes, ("contamination", "false_alarm_rate"), strict=True):
    found = [shares(parameter, n) for n in sizes]
    axis.boxplot(found, tick_labels=[f"{n:,}" for n in sizes])
    axis.axhline(asked, color="tab:red", linestyle=":", label="requested")
    axis.set(title=parameter, xlabel="training rows")
    for n, share in zip(sizes, found, strict=True):
        print(f"{parameter}, {n:>5} training rows: {np.mean(share):.3f}, from {min(share):.3f} to {max(share):.3f}")
axes[0].set_ylabel("share of false alarms on new rows")
axes[0].legend()
plt.show()
