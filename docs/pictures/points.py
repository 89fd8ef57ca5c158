"""The picture of the README: 500 points, the seven that a model keeps, contours of its novelty score. `python docs/pictures/points.py`"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from skpca import KernelNovelty

HERE = Path(__file__).parent
THEMES = {
    "light": {"points": "#8c8c8c", "kept": "#d7301f", "lines": "YlGnBu", "threshold": "#225ea8", "range": (0.35, 0.95)},
    "dark": {"points": "#9d9d9d", "kept": "#ff7f50", "lines": "YlGnBu_r", "threshold": "#c7e9b4", "range": (0.25, 0.8)},
}


def main():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 500)
    rows = np.column_stack([x, x**2 + 0.1 * rng.normal(size=500)])
    detector = KernelNovelty(5, fidelity=0.99, method="expansion", scaling="standard", random_state=0).fit(rows)
    sides = np.linspace(-1.65, 1.6, 150), np.linspace(-0.55, 1.35, 100)
    grid = np.stack(np.meshgrid(*sides), axis=-1)
    scores = -detector.score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    for theme, look in THEMES.items():
        draw(theme, look, rows, detector, grid, scores)
    (HERE.parents[1] / "crates" / "skpca" / "points.svg").write_text(small(rows, detector, grid, scores))
    print(f"{len(detector.support_vectors_)} of {len(rows)} points, fidelity {detector.fidelity_:.4f}")


def draw(theme, look, rows, detector, grid, scores):
    plt.rcParams["svg.hashsalt"] = "skpca"
    threshold = -detector.offset_
    figure, axis = plt.subplots(figsize=(7.2, 3.2))
    colours = matplotlib.colormaps[look["lines"]](np.linspace(*look["range"], 7))
    levels = threshold * np.array([0.25, 0.5, 1.6, 2.5, 3.5, 4.5])
    axis.contour(grid[..., 0], grid[..., 1], scores, levels, colors=colours[:6], linewidths=0.8)
    axis.contour(grid[..., 0], grid[..., 1], scores, [threshold], colors=look["threshold"], linewidths=2)
    axis.plot(*rows.T, "o", color=look["points"], markersize=1.8, markeredgewidth=0)
    axis.plot(*detector.support_vectors_.T, "o", color=look["kept"], markersize=7, markeredgewidth=0)
    axis.set_axis_off()
    figure.subplots_adjust(0, 0, 1, 1)
    figure.savefig(HERE / f"points-{theme}.svg", transparent=True, metadata={"Date": None})
    plt.close(figure)


def small(rows, detector, grid, scores):
    """The same in a few kilobytes, in colours for either theme: the front page of the crate has it in its text."""
    threshold = -detector.offset_
    levels = threshold * np.array([0.25, 0.5, 1, 1.6, 2.5, 3.5, 4.5])
    figure, axis = plt.subplots()
    lines = axis.contour(grid[..., 0], grid[..., 1], scores, levels).allsegs
    plt.close(figure)

    def place(points):
        return (np.asarray(points) * [200, -160] + [330, 220]).round().astype(int)

    def dots(points, color, width):
        path = "".join(f"M{x} {y}h0" for x, y in place(points))
        return f'<path d="{path}" stroke="{color}" stroke-width="{width}" stroke-linecap="round"/>'

    def contour(segments, level):
        path = "".join("M" + "L".join(f"{x} {y}" for x, y in place(segment[::2])) for segment in segments)
        return f'<path d="{path}" stroke="#4393c3" stroke-width="{2.5 if level == threshold else 0.8}" fill="none"/>'

    parts = [contour(segments, level) for segments, level in zip(lines, levels, strict=True)]
    parts += [dots(rows, "#8c8c8c", 2.5), dots(detector.support_vectors_, "#e34a33", 9)]
    label = (
        "500 grey points around a parabola, contours of the novelty score, and the seven points that the model keeps"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 310" width="660" role="img" aria-label="{label}">'
    return "\n".join([head, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
