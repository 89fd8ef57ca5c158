"""The commands of the README and of the guide run as printed, and print what is printed; versions agree."""

import contextlib
import io
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "start.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    ROOT / "docs" / "scaling.md",
    ROOT / "docs" / "reference" / "file-format.md",
]
TABLES = ROOT / "docs" / "guide" / "tables.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# Blocks of `py` are not run: they need an engine that is not here.
# Commands that install, all of which test_what_the_readme_installs_works runs.
INSTALLS = ("cargo install ", "pip install ", "cargo run ")


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch, timed):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{ROOT / 'target' / 'release'}{os.pathsep}{os.environ['PATH']}")
    names = {"__name__": "__page__"}
    if page.name == "README.md":
        # Its log is made on the page about tables.
        execute(next(text for language, text in blocks(TABLES) if language == "python"), {"__name__": "__page__"})
    for language, text in blocks(page):
        if language == "console":
            for command, expected in commands(text):
                with timed(f"$ {command}"):
                    run(command, expected)
        elif language == "python":
            with timed(text):
                execute(text, names)


def commands(text):
    """Commands of a block, each with the lines that follow it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def run(command, expected):
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    if expected.strip():
        assert_like(done.stdout + done.stderr, expected, command)


def execute(text, names):
    """Runs Python; a `print` with a comment behind it prints that comment."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "<page>", "exec"), names)
    expected = [line.rpartition("# ")[2] for line in text.splitlines() if line.startswith("print(") and "# " in line]
    if expected:
        assert_like(printed.getvalue(), "\n".join(expected), text)


def assert_like(found, expected, what):
    """The same words, and numbers that are equal to three digits; an ellipsis is anything."""
    words = [re.escape(part) for part in NUMBER.sub("\0", expected.strip()).split("\0")]
    pattern = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)".join(words).replace("…", "(?:.|\n)*?")
    match = re.fullmatch(pattern, found.strip())
    assert match, f"{what}\nprinted\n{found}\ninstead of\n{expected}"
    for got, want in zip(match.groups(), NUMBER.findall(expected), strict=True):
        assert float(got) == pytest.approx(float(want), rel=1e-3), f"{what}\nprinted\n{found}"


@pytest.mark.skipif(
    "SKPCA_TEST_INSTALL" not in os.environ, reason="SKPCA_TEST_INSTALL=1 runs it: it compiles for minutes"
)
def test_what_the_readme_installs_works(tmp_path, timed):
    """In a virtual environment where there is nothing; what was compiled before is taken from `target`."""
    venv.create(tmp_path / "fresh", with_pip=True)
    places = [tmp_path / "fresh" / "bin", tmp_path / "bin"]
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "CARGO_INSTALL_ROOT": str(tmp_path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)

    def done(command, folder):
        with timed(f"$ {command}"):
            ran = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{command}\n{ran.stderr[-3000:]}"
        return ran.stdout

    lines = [line.partition("#")[0].strip() for line in sh_lines(ROOT / "README.md")]
    assert len(lines) == 3
    page = ROOT / "skpca-demo.html"
    before = page.read_bytes() if page.exists() else None
    for line in lines:
        done(line, ROOT)
    assert page.stat().st_size > 100_000
    page.unlink() if before is None else page.write_bytes(before)
    version = done("python -c 'import skpca; print(skpca.__version__)'", tmp_path)
    assert done("skpca --version", tmp_path) == f"skpca {version}"


def sh_lines(page):
    return [line for language, text in blocks(page) if language == "sh" for line in text.splitlines()]


def test_only_installing_is_not_run():
    readme = {line.partition("#")[0].strip() for line in sh_lines(ROOT / "README.md")}
    lines = [line.partition("#")[0].strip() for page in PAGES for line in sh_lines(page)]
    assert lines and all(line in readme and line.startswith(INSTALLS) for line in lines), lines


def test_there_is_something_to_run():
    kinds = [language for page in PAGES for language, _ in blocks(page)]
    assert kinds.count("console") >= 8 and kinds.count("python") >= 12


@pytest.mark.parametrize("wrong", ["a 1.5 b", "a 1.50 c", "a b"])
def test_what_is_not_alike_is_seen(wrong):
    assert_like("a 1.4999 b\nand more", "a 1.5 b\n…", "")
    with pytest.raises(AssertionError):
        assert_like("a 1.6 b", wrong, "")


def test_versions_agree():
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{version}}}" in (ROOT / "docs" / "cite.md").read_text()
    own = re.findall(
        r'^skpca\S* = \{ path = ".+", version = "(.+)" \}', (ROOT / "Cargo.toml").read_text(), re.MULTILINE
    )
    assert own and set(own) == {version}
    assert re.search(rf"^## \[?{re.escape(version)}\]?", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    installed = subprocess.run(
        [sys.executable, "-c", "import skpca; print(skpca.__version__)"], capture_output=True, text=True
    )
    assert installed.stdout.strip() == version


def test_every_type_at_the_root_of_the_crate_has_an_example():
    sources = [
        file.read_text()
        for crate in ("skpca", "skpca-simd")
        for file in (ROOT / "crates" / crate / "src").rglob("*.rs")
    ]
    exported = re.findall(
        r"^pub use [\w:]+::(\{[^}]*\}|\w+);", (ROOT / "crates/skpca/src/lib.rs").read_text(), re.MULTILINE
    )
    names = {name for names in exported for name in re.findall(r"\w+", names)}
    kinds = "|".join(sorted(names))
    declared = re.compile(rf"((?:^///.*\n)*)(?:^#\[.*\n)*^pub (?:struct|enum|trait) ({kinds})\b", re.MULTILINE)
    documented = {name: text for source in sources for text, name in declared.findall(source)}
    assert len(documented) > 50 and not [name for name, text in documented.items() if "```" not in text]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_small(theme):
    assert (ROOT / "docs" / "pictures" / f"points-{theme}.svg").stat().st_size < 200_000
