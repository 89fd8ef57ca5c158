"""Generates pages: methods and kernels from the registries, commands from `--help`, classes from `skpca.__all__`."""

import importlib
import inspect
import os
import re
import subprocess
from pathlib import Path

import papers
import pictures
from sphinx.errors import ExtensionError

DOCS = Path(__file__).parents[1]
OUT = DOCS / "generated"
NOTES = DOCS / "_notes"
PROGRAM = Path(os.environ.get("SKPCA", DOCS.parent / "target" / "release" / "skpca"))

# What sets a method apart, in words for its page.
CAPABILITIES = {
    "keeps_all_rows": "It keeps every row and takes no target.",
    "synthetic_points": "Its points are synthetic: they are not rows of your table.",
    "labelled": "It needs labels (`--label` on the command line, `y` in Python).",
    "uncentred": "It does not centre the features by default (`--center`, `center=True`).",
    "path": "It can be solved along a path of penalties.",
    "linear": "It needs the kernel `linear`.",
    "density": "Its models have a density: `score` adds the column `log_likelihood`.",
    "own_components": "`refit=false` keeps the components of its paper instead of the best ones over the chosen points.",
}


def generate(app):
    if not PROGRAM.exists():
        raise ExtensionError(f"{PROGRAM} is missing: docs/build makes it (cargo build --release -p skpca-cli)")
    from skpca._registry import KERNELS, METHODS

    for folder in ("methods", "kernels", "commands", "python", "pictures"):
        (OUT / folder).mkdir(parents=True, exist_ok=True)
    drawn = Drawn(app)
    for name, entry in METHODS.items():
        write(f"methods/{name}.md", method_page(name, entry, drawn))
    write("methods/index.md", index("Methods", METHODS, "methods"))
    for name, entry in KERNELS.items():
        write(f"kernels/{name}.md", kernel_page(name, entry, drawn))
    write("kernels/index.md", index("Kernels", KERNELS, "kernels"))
    command_pages()
    python_pages()


class Drawn:
    """Pictures, drawn again only where the package has changed since."""

    def __init__(self, app):
        from skpca import _core

        self.stamp = max(Path(_core.__file__).stat().st_mtime, Path(pictures.__file__).stat().st_mtime)

    def fresh(self, stem):
        files = [OUT / "pictures" / f"{stem}-{theme}.png" for theme in pictures.INK]
        return all(file.exists() and file.stat().st_mtime > self.stamp for file in files)

    def method(self, name, entry):
        found = OUT / "pictures" / f"method-{name}.txt"
        if not (self.fresh(f"method-{name}") and found.exists()):
            points, fidelity = pictures.method(name, entry, OUT / "pictures")
            found.write_text(f"{points} {fidelity:.4f}")
        return found.read_text().split()

    def kernel(self, name, entry):
        if not self.fresh(f"kernel-{name}"):
            pictures.kernel(name, entry, OUT / "pictures")


def method_page(name, entry, drawn):
    points, fidelity = drawn.method(name, entry)
    kept = "Every point is kept." if entry["keeps_all_rows"] else f"Circled: the {points} points of the model."
    sentences = [f"- {text}" for capability, text in CAPABILITIES.items() if entry.get(capability)]
    return page(
        f"# `{name}`",
        sentence(entry["summary"]),
        pictures.both(f"method-{name}", f"Contours of the first two components by {name}"),
        f"*500 points around a parabola (grey) and contours of the first two components. {kept}"
        f" They capture {float(fidelity):.3f} of what exact kernel PCA captures.*",
        note("methods", name),
        "\n".join(sentences),
        "## Use",
        use(
            f'SparseKernelPCA(method="{name}"' + (', kernel="linear")' if entry["linear"] else ")"),
            f"skpca fit train.csv -o model.skpca --method {name}",
            entry,
        ),
        parameters(entry),
        source(entry),
    )


def kernel_page(name, entry, drawn):
    picture = []
    if not any(one["type"] == "kernel" for one in entry["parameters"]):
        drawn.kernel(name, entry)
        picture = [
            pictures.both(f"kernel-{name}", f"Values of the kernel {name}"),
            "*Values k(x, z) for the marked point z.*",
        ]
    return page(
        f"# `{name}`",
        f"**k(x, z)** = {entry['summary']}",
        *picture,
        note("kernels", name),
        "## Use",
        use(
            f'SparseKernelPCA(kernel="{entry["sklearn"] or name}")',
            f"skpca fit train.csv -o model.skpca --kernel {name}",
            entry,
        ),
        parameters(entry),
        source(entry),
    )


def sentence(text):
    return f"{text[0].upper()}{text[1:]}."


def note(kind, name):
    """What people wrote about an entry, if they did."""
    file = NOTES / kind / f"{name}.md"
    return file.read_text().strip() if file.exists() else ""


def use(python, command, entry):
    labels = ", y" if entry.get("labelled") or entry["name"] == "conformal" else ""
    flag = " --label class" if labels else ""
    return f"```python\nfrom skpca import SparseKernelPCA\n\nSparseKernelPCA({python.partition('(')[2]}.fit(X{labels})\n```\n\n```text\n{command}{flag}\n```"


def parameters(entry):
    if not entry["parameters"]:
        return "## Parameters\n\nNone."
    lines = ["| name | meaning | values | default |", "|---|---|---|---|"]
    for one in entry["parameters"]:
        default = one["default_text"] if one["default"] is None else f"`{str(one['default']).lower()}`"
        values = "true or false" if one["type"] == "boolean" else one["values"]
        lines.append(f"| `{one['name']}` | {cell(one['help'])} | {cell(values)} | {cell(default)} |")
    example = f"`{entry['name']},{entry['parameters'][0]['name']}=…`"
    return f"## Parameters\n\nOn the command line and in Python as {example}.\n\n" + "\n".join(lines)


def cell(text):
    return str(text).replace("|", "\\|")


def source(entry):
    if not entry["source"]:
        return ""
    return "\n".join(["## Source", "", *(papers.cited(entry["source"]) or [f"- {entry['source']}"])])


def index(title, registry, folder):
    rows = [f"| [`{name}`]({name}.md) | {cell(entry['summary'])} |" for name, entry in registry.items()]
    heads = "| name | what it does |" if folder == "methods" else "| name | k(x, z) |"
    body = "\n".join([heads, "|---|---|", *rows])
    intro = (NOTES / folder / "index.md").read_text().strip()
    names = "\n".join(registry)
    return page(f"# {title}", intro, body, f"```{{toctree}}\n:hidden:\n\n{names}\n```")


def command_pages():
    """One page per command: what `--help` says."""
    top = help_of([])
    names = [line.split()[0] for line in section(top, "Commands") if re.match(r"  \w", line)]
    names = [name for name in names if name != "help"]
    for name in names:
        below = help_of([name])
        write(f"commands/{name}.md", page(f"# `skpca {name}`", block(below), *deeper([name], below)))
    table = "\n".join(["| command | what it does |", "|---|---|", *(command_row(name, top) for name in names)])
    toctree = "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```"
    intro = "These pages show the output of `skpca COMMAND --help`. `skpca man -o DIR` writes them as manual pages, `skpca completions SHELL` prints shell completions."
    write("commands/index.md", page("# Command line", intro, table, "## `skpca --help`", block(top), toctree))


def deeper(path, text):
    """Sections for the commands below a command."""
    for line in section(text, "Commands"):
        name = line.split()[0] if re.match(r"  \w", line) else "help"
        if name != "help":
            yield f"## `skpca {' '.join([*path, name])}`"
            yield block(help_of([*path, name]))


def section(text, title):
    lines = text.splitlines()
    if f"{title}:" not in lines:
        return []
    rest = lines[lines.index(f"{title}:") + 1 :]
    return rest[: rest.index("") if "" in rest else None]


def command_row(name, top):
    about = re.search(rf"^  {name} +(.+(?:\n {{6,}}.+)*)", top, re.MULTILINE)
    return f"| [`{name}`]({name}.md) | {cell(' '.join(about[1].split()) if about else '')} |"


def help_of(path):
    run = subprocess.run([PROGRAM, *path, "--help"], capture_output=True, text=True, check=True)
    return run.stdout


def block(text):
    return f"```text\n{text.rstrip()}\n```"


def python_pages():
    import skpca

    names = [name for name in skpca.__all__ if not inspect.ismodule(getattr(skpca, name))]
    for name in names:
        write(f"python/{name}.rst", class_page("skpca", getattr(skpca, name), name))
    beside = list(modules_beside())
    for module, name in beside:
        home = f"skpca.{module}"
        write(f"python/{module}.{name}.rst", class_page(home, getattr(importlib.import_module(home), name), name))
    write(
        "python/exceptions.rst",
        "skpca.exceptions\n================\n\n.. automodule:: skpca.exceptions\n   :members:\n   :show-inheritance:\n",
    )
    paths = [f"{module}.{name}" for module, name in beside]
    lines = [row(name, first_line(getattr(skpca, name))) for name in names]
    for path, (module, name) in zip(paths, beside, strict=True):
        about = first_line(getattr(importlib.import_module(f"skpca.{module}"), name))
        lines.append(row(path, about + (" For Dask collections." if module == "dask" else "")))
    lines.append(row("exceptions", "Warning classes"))
    intro = "The estimators follow scikit-learn's conventions and pass its checks. The bare functions take arrays and need no scikit-learn."
    extras = "`skpca.pyod`, `skpca.dask`, `skpca.onnx` and `skpca.plot` are imported explicitly. They need PyOD, Dask, nothing further and matplotlib, respectively."
    table = "\n".join(["| name | what it is |", "|---|---|", *lines])
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, *paths, "exceptions", "```"])
    write("python/index.md", page("# Python", intro, extras, table, toctree))


# Modules that are not imported with the package, because each needs another one.
BESIDE = ("pyod", "dask", "onnx", "plot")


def modules_beside():
    for module in BESIDE:
        for name in importlib.import_module(f"skpca.{module}").__all__:
            yield module, name


def row(path, about):
    return f"| [`{path}`]({path}.rst) | {about} |"


def first_line(thing):
    text = (inspect.getdoc(thing) or "").strip().split("\n\n")[0]
    return cell(" ".join(text.split()))


def class_page(module, thing, name):
    title = f"{module}.{name}"
    head = f"{title}\n{'=' * len(title)}\n\n.. currentmodule:: {module}\n\n"
    if not inspect.isclass(thing):
        return head + f".. autofunction:: {name}\n"
    ours = [
        member
        for member, value in inspect.getmembers(thing)
        if not member.startswith("_") and is_ours(value, thing) and inspect.getdoc(value)
    ]
    return head + f".. autoclass:: {name}\n   :members: {', '.join(ours)}\n"


def is_ours(value, owner):
    """Whether a member is written here: scikit-learn's own are documented there."""
    function = value.fget if isinstance(value, property) else value
    home = getattr(function, "__module__", None) or getattr(owner, "__module__", "")
    return (
        callable(function)
        and str(home).startswith("skpca")
        or inspect.ismethoddescriptor(value)
        and owner.__module__.startswith("skpca._core")
    )


def page(*parts):
    return "\n\n".join(part for part in parts if part) + "\n"


def write(name, text):
    """Writes a page if it has changed, so that Sphinx reads again only what it must."""
    file = OUT / name
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def setup(app):
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True}
