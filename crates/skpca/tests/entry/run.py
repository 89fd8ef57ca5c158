"""One file, one line: adds a method and a kernel to a copy of the tree, and checks that they are known everywhere.

    python crates/skpca/tests/entry/run.py            builds the copy and tests library, program and Python with both
    python crates/skpca/tests/entry/run.py --check    compiles the library with both, in seconds

The copy is target/entry. It uses the tree's own build directory, so that only our own crates are compiled again. Do not
run it at the same time as other builds of the tree: it replaces their program.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
COPY = ROOT / "target" / "entry"
SITE = ROOT / "target" / "entry-site"
# File and registry of each entry.
ENTRIES = {"method": ("farthest", "METHODS"), "kernel": ("squared_exponential", "KERNELS")}


def make_copy():
    """Copies the tree and adds the entries. Files keep their modification times, so cargo does not rebuild them."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, ignore=shutil.ignore_patterns("target", "artefacts", "__pycache__", ".*"))
    # Cargo distinguishes build results by version, not by folder: the tree's next build would reuse these.
    manifest = COPY / "Cargo.toml"
    ours = re.search(r'\nversion = "(.*)"', manifest.read_text())[1]
    # The version of the packages and of their dependencies on each other.
    manifest.write_text(re.sub(rf'version = "{re.escape(ours)}"', 'version = "99.0.0"', manifest.read_text()))
    for room, (name, registry) in ENTRIES.items():
        add(COPY / "crates/skpca/src" / room, room, name, registry)


def add(folder, room, name, registry):
    """Adds the file, its `mod` and its line of the registry."""
    shutil.copy2(HERE / f"{name}.rs", folder / f"{name}.rs")
    head = folder / "mod.rs"
    replace(head, r"\nmod ", f"\nmod {name};\nmod ")
    home = next(file for file in folder.glob("*.rs") if f"pub const {registry}:" in file.read_text())
    replace(home, rf"(pub const {registry}:[^;]*?),?\s*\];", rf"\1, crate::{room}::{name}::ENTRY];")


def replace(file, pattern, new):
    text, count = re.subn(pattern, new, file.read_text(), count=1)
    assert count == 1, f"{file}: {pattern} not found"
    file.write_text(text)


def run(*words, **environment):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), **environment}
    print("$", *words, flush=True)
    subprocess.run(words, cwd=COPY, env=environment, check=True)


def output(*words):
    """Returns the output of the program built from the copy."""
    program = ROOT / "target/release/skpca"
    return subprocess.run([program, *words], cwd=COPY, check=True, capture_output=True, text=True).stdout


def check_program():
    """Checks the help texts, a fit with parameters, a comparison and its page."""
    run("cargo", "build", "--release", "--quiet", "-p", "skpca-cli")
    for text in (output("methods", "farthest"), output("fit", "--help")):
        assert "the first row: nearest to the mean of the rows" in " ".join(text.split()), text
        assert "[default: nearest]" in " ".join(text.split()), text
    for text in (output("kernels", "squared-exponential"), output("fit", "--help")):
        assert "ℓ: the length scale (a number above 0) [default: 1]" in " ".join(text.split()), text
    table = COPY / "ring.csv"
    rows = [f"{(i * 37) % 101},{(i * 53) % 97},{'ab'[i % 2]}" for i in range(200)]
    table.write_text("x,y,class\n" + "\n".join(rows) + "\n")
    specs = ["--kernel", "squared-exponential,gamma=0.5,length=2", "--label", "class", "-q", "3", "--json"]
    method = ["--method", "farthest,start=farthest", "--support", "12"]
    model = json.loads(output("fit", "ring.csv", "-o", "ring.skpca", *method, *specs))
    assert model["method"] == {"name": "farthest", "start": "farthest"}, model["method"]
    assert model["kernel"] == {"name": "squared-exponential", "gamma": 0.5, "length": 2.0} and model["m"] == 12, model
    compared = json.loads(output("compare", "ring.csv", "-o", "ring.html", "--support", "5", *specs))
    assert "farthest" in {one["given"]["name"] for one in compared["models"]}, "compare does not try it"
    page = (COPY / "ring.html").read_text()
    assert ">farthest<" in page, "the page does not show it"


PYTHON = """
import inspect, numpy as np
from skpca import SparseKernelPCA
text = " ".join(inspect.getdoc(SparseKernelPCA).split())
for words in (
    '- "farthest": rows that are each the farthest from all previous ones (Gonzalez 1985)',
    '- ``start`` of "farthest": the first row: nearest to the mean of the rows, or farthest from it',
    '- "squared-exponential": exp(−γ ‖x − z‖² / length²)',
    '- ``length`` of "squared-exponential": ℓ: the length scale',
):
    assert words in text, words
x = np.random.default_rng(0).normal(size=(100, 3))
method, kernel = {"name": "farthest", "start": "farthest"}, {"name": "squared-exponential", "length": 2}
pca = SparseKernelPCA(3, method=method, kernel=kernel, gamma=0.5, n_support=20).fit(x)
assert pca.gamma_ == 0.5
assert len(pca.support_) == 20 and pca.inverse_transform(pca.transform(x)).shape == x.shape
from experiments import frontier
assert "farthest" in frontier.METHODS
import sys
sys.path.insert(0, "fuzz")
import torture
assert torture.METHODS["farthest"] == ["farthest"]
"""


def check_python():
    """Checks docstrings, a fit, a pre-image, the lists of experiments and torture tests, and scikit-learn's checks."""
    wheels = COPY / "wheels"
    run(tool("maturin"), "build", "--release", "--quiet", "--out", str(wheels))
    shutil.rmtree(SITE, ignore_errors=True)
    (wheel,) = wheels.glob("*.whl")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(SITE), str(wheel))
    run(sys.executable, "-c", PYTHON, PYTHONPATH=str(SITE))
    tests = COPY / "crates/skpca-python/tests"
    run(sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", str(tests), PYTHONPATH=str(SITE))


def tool(name):
    return str(Path(sys.executable).parent / name)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="compile only")
    only_check = options.parse_args().check
    make_copy()
    if only_check:
        run("cargo", "check", "--release", "--quiet", "-p", "skpca")
        return
    # Types of Rust are written by hand (docs/decisions/0047): new entries can do without.
    packages = ["-p", "skpca", "-p", "skpca-cli"]
    run("cargo", "test", "--release", "--quiet", "--no-fail-fast", *packages, "--", "--skip", "every_entry_has_a_type")
    check_program()
    check_python()
    # The tree's program is not this one: its next build puts it there again.
    (ROOT / "target/release/skpca").unlink()
    print("one file and one line each: laws, program and Python know the new method and the new kernel")


if __name__ == "__main__":
    main()
