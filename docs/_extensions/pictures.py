"""Pictures of methods and kernels, for light and for dark pages."""

import matplotlib

matplotlib.use("Agg")

from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np

INK = {"light": "#333333", "dark": "#d0d0d0"}
POINTS = {"light": "#9a9a9a", "dark": "#8a8a8a"}
MARK = {"light": "#c1272d", "dark": "#ff8a65"}
LINES = {"light": "viridis", "dark": "cividis"}


def parabola(n=500):
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, n)
    return np.column_stack([x, x**2 + 0.1 * random.normal(size=n)])


def grid(x, side=90, margin=0.25):
    low, high = x.min(axis=0) - margin, x.max(axis=0) + margin
    axes = np.meshgrid(*(np.linspace(a, b, side) for a, b in zip(low, high, strict=True)))
    return axes, np.column_stack([axis.ravel() for axis in axes])


@contextmanager
def ink(theme):
    colour = INK[theme]
    names = ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "axes.titlecolor"]
    with plt.rc_context(
        {**dict.fromkeys(names, colour), "font.size": 9, "savefig.transparent": True, "axes.facecolor": "none"}
    ):
        yield


def method(name, entry, folder):
    """Contours of the first two components of a parabola, and the points that the method keeps; returns what it found."""
    from skpca import SparseKernelPCA

    x = parabola()
    size = {} if entry["keeps_all_rows"] else {"n_support": 10}
    kernel = "linear" if entry["linear"] else "rbf"
    pca = SparseKernelPCA(2, method=name, kernel=kernel, scaling="standard", center=True, random_state=0, **size)
    pca.fit(x, np.digitize(x[:, 0], [-0.35, 0.35]) if entry["labelled"] else None)
    (a, b), rows = grid(x)
    features = pca.transform(rows)
    for theme in INK:
        with ink(theme):
            figure, panels = plt.subplots(1, 2, figsize=(7.4, 3), sharey=True, layout="constrained")
            for k, panel in enumerate(panels[: features.shape[1]]):
                panel.plot(*x.T, ".", color=POINTS[theme], markersize=2)
                panel.contour(a, b, features[:, k].reshape(a.shape), 11, cmap=LINES[theme], linewidths=0.9)
                if len(pca.support_vectors_) < len(x):
                    panel.plot(
                        *pca.support_vectors_.T, "o", color=MARK[theme], markersize=6, markerfacecolor="none", mew=1.8
                    )
                panel.set_title(f"component {k + 1}")
            save(figure, folder / f"method-{name}-{theme}.png")
    return len(pca.support_vectors_), pca.fidelity_


def kernel(name, entry, folder):
    """k(x, z) for a fixed z, over the plane."""
    import skpca

    side = np.linspace(-3, 3, 121)
    a, b = np.meshgrid(side, side)
    # A bandwidth that is a rule would be taken from the one row that stands for all.
    rules = [one["name"] for one in entry["parameters"] if one["type"] == "bandwidth"]
    values = skpca.kernel(
        ",".join([name, *(f"{rule}=0.5" for rule in rules)]),
        np.column_stack([a.ravel(), b.ravel()]),
        np.array([[1.0, 0.5]]),
    ).reshape(a.shape)
    for theme in INK:
        with ink(theme):
            figure, panel = plt.subplots(figsize=(4.2, 3.4), layout="constrained")
            drawn = panel.contourf(a, b, values, 14, cmap=LINES[theme])
            panel.plot(1.0, 0.5, "o", color="white", markeredgecolor="black")
            bar = figure.colorbar(drawn)
            bar.outline.set_visible(False)
            save(figure, folder / f"kernel-{name}-{theme}.png")


def save(figure, file):
    figure.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(figure)


def both(stem, about):
    """Markdown that shows the picture of the reader's theme."""
    return "\n".join(
        f"```{{image}} ../pictures/{stem}-{theme}.png\n:alt: {about}\n:class: only-{theme} plain\n:align: center\n```"
        for theme in INK
    )
