"""
Watching a process
==================

Two charts of process monitoring. From row 100 on, one sensor drifts; from row 200 on, the process runs hotter than
ever before, with consistent sensors. Under a bounded kernel such as ``rbf`` the distance to the model (SPE) detects
both, since no row far from the training rows lies in the span of the components. Hotelling's T², which measures
deviations *within* that span, detects neither here.
"""

import matplotlib.pyplot as plt
import numpy as np
from skpca import KernelNovelty

rng = np.random.default_rng(0)


def sensors(load):
    return np.column_stack([load, load**2, np.sin(2 * load), 1 - load]) + 0.03 * rng.normal(size=(len(load), 4))


normal = sensors(rng.uniform(-1, 1, 1000))
watched = sensors(np.concatenate([rng.uniform(-1, 1, 200), rng.uniform(1.2, 1.5, 100)]))
watched[100:200, 1] += np.linspace(0, 0.8, 100)

# Two separate charts; the default statistic combines both.
given = {"statistic": "distance", "scaling": "standard", "false_alarm_rate": 0.01, "random_state": 0}
detector = KernelNovelty(3, fidelity=0.95, **given).fit(normal)
charts = {
    "distance to the model (SPE)": (-detector.score_samples(watched), -detector.offset_),
    "Hotelling's T²": (detector.hotelling(watched), np.quantile(detector.hotelling(normal), 0.99)),
}
figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
for axis, (title, (values, limit)) in zip(axes, charts.items(), strict=True):
    axis.plot(values, linewidth=1)
    axis.axhline(limit, color="tab:red", linestyle=":")
    axis.set_title(title)
    for start in (100, 200):
        axis.axvline(start, color="grey", linewidth=0.5)
    alarms = [np.mean(values[part] > limit) for part in (slice(0, 100), slice(150, 200), slice(200, 300))]
    print(f"{title}: alarms {alarms[0]:.2f} normal, {alarms[1]:.2f} drifting, {alarms[2]:.2f} hot")
axes[1].set_xlabel("row")
plt.show()

# %%
# Which sensor? The contribution of each input to the score, averaged over the drifting rows.

contributions = detector.contributions(watched[150:200]).mean(axis=0)
print("mean contribution per sensor:", contributions.round(2), "→ sensor", contributions.argmax())
