"""Generates Markdown pages and figures from results alone."""

import datetime
import os
import platform
from importlib.metadata import version

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from .runner import spread, write  # noqa: E402

DASH = "–"
LARGE = 50_000  # bytes of a figure


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def ours(values, digits):
    """Formats mean ± standard deviation over repeats."""
    if len(values) == 0:
        return DASH
    mean, deviation = spread(values)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"


def against(published, values, digits):
    """Returns three cells: the paper's value, the value found here, and the difference."""
    if len(values) == 0 or published is None:
        return [DASH if published is None else published, ours(values, digits), DASH]
    return [published, ours(values, digits), f"{np.mean(values) - published:+.{digits}f}"]


def save(figure, folder, name):
    """Saves a small file: low resolution, and fewer colours if that is not enough."""
    from PIL import Image

    path = folder / "figures" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)
    if path.stat().st_size > LARGE:
        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    return f"![{name}](figures/{name}.png)\n"


def claims_table(claims):
    rows = [[c.text, c.verdict, c.coverage, c.number + (f" {c.note}" if c.note else "")] for c in claims]
    return table(["claim", "verdict", "checks passed", "what decides"], rows)


def page(module, results, folder):
    """Writes the page of an experiment: its text, and its claims at the top."""
    name = module.__name__.rsplit(".", 1)[-1]
    claims = module.claims(results)
    parts = [f"# {module.TITLE}\n", module.ABOUT.strip() + "\n"]
    parts += ["## Claims\n", claims_table(claims)] if claims else []
    parts += module.page(results, folder)
    left = results.state(f"{name}/")
    parts += [f"Left out: {left}.\n"] if left else []
    write(folder / f"{name}.md", "\n".join(parts))
    return name, claims


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            kinds = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return kinds[0]
    except (OSError, IndexError):
        return platform.machine()


def index(modules, results, folder, command, wall, note=""):
    parts = ["# Reproduction of the papers' tables and figures\n"]
    parts.append(
        "Every page lists the paper's value, the value found here (*ours*) ± the standard deviation over repeats, and"
        " the difference. No parameter is chosen on test rows; all chosen values are in the JSON file next to the page,"
        " one line per cell. Pages and figures are generated from these files alone. If a paper states no margin, the"
        " margin in brackets was chosen here.\n\n"
        "A claim is checked on every set that it is made for: it holds if all checks pass, holds partly if at least a"
        " third do, and is otherwise not reproduced. A gain counts if it is larger than two standard errors. Some of"
        " these rules were fixed after first numbers had been seen (the third, the two checks of Tipping's nine"
        " kernels, and those of Wang's Figure 2c): judge by the numbers.\n"
    )
    if "--quick" in command:
        parts.append("**A quick run**: smaller tables, few repeats, coarse grids. Its numbers are not results.\n")
    summary, links = [], []
    for module in modules:
        name, claims = page(module, results, folder)
        links.append(f"- [{module.TITLE}]({name}.md)")
        short = module.TITLE.split(":")[0]
        for c in claims:
            told = f"{c.number} {c.note}".strip()
            summary.append([f"[{short}]({name}.md)", c.text, c.verdict, c.coverage, told])
    parts += ["## Claim by claim\n", table(["paper", "claim", "verdict", "checks passed", "what decides"], summary)]
    parts += ["## Pages\n", "\n".join(links) + "\n", "## Run\n", about_run(results, command, wall, note)]
    parts += missing(results)
    write(folder / "README.md", "\n".join(parts))


def about_run(results, command, wall, note):
    names = ("skpca", "numpy", "scipy", "scikit-learn", "matplotlib")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    done = sum(1 for record in results.records.values() if record and record["status"] == "done")
    return (
        f"`{command}`, {datetime.date.today()}: {done} of {len(results.cells)} cells, {results.seconds() / 60:.0f}"
        f" minutes summed over cells{wall}. Each process has one thread. {note}\n\n"
        f"{os.cpu_count()} cores, {processor()}; Python {platform.python_version()}, {versions}. The seed of a cell is"
        " the CRC-32 of its name. Times in tables were taken while the other core was busy.\n"
    )


def missing(results):
    states = {}
    for name in results.cells:
        if (state := results.state_of(name)) != "done":
            states.setdefault(state, []).append(name.rsplit("/", 1)[0])
    rows = [[state, ", ".join(f"`{name}`" for name in dict.fromkeys(names))] for state, names in states.items()]
    return ["## Missing\n", table(["reason", "cells"], rows)] if rows else []
