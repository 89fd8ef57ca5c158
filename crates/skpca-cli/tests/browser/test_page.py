"""The report page in a real browser: it draws, sorts and tells, without a word of complaint on the console."""

import csv
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright: pip install playwright"
)

ROOT = Path(__file__).parents[4]
PROGRAM = ROOT / "target" / "release" / "skpca"
# Kept to look at.
PICTURES = ROOT / "target" / "page"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: install it (Debian: apt-get install chromium) to test the page")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Pages of the demo, of a labelled table with hostile names, and of a single model."""
    directory = tmp_path_factory.mktemp("pages")
    numbers = random.Random(0)
    with open(directory / "table.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "<script>alert(1)</script>", "c&d", "class"])
        for i in range(300):
            shift = 3 * (i % 3)
            name = ["first", "<!--<script>", "</script><b>third"][i % 3]
            rows.writerow([*(shift + numbers.gauss(0, 1) for _ in range(3)), name])

    def run(*words):
        subprocess.run([PROGRAM, *words], cwd=directory, check=True, capture_output=True)

    run("demo", "-o", ".")
    compare = (
        "compare",
        "table.csv",
        "--label",
        "class",
        "-q",
        "4",
        "--methods",
        "landmarks",
        "greedy",
        "l21",
        "exact",
    )
    run(*compare, "-o", "table.html", "--keep", "kept")
    run("inspect", "kept/greedy-4.skpca", "--html", "model.html")
    return {name: directory / f"{name}.html" for name in ("skpca-demo", "table", "model")}


@pytest.fixture
def opened(browser, pages):
    """Opens a page by its name, and fails if it complains or asks the network for anything."""
    contexts, complaints = [], []

    def open_page(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
        page.goto(pages[name].as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def kept(page, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


FIGURES = {
    "skpca-demo": [
        f"s{i}-{name}"
        for i in range(2)
        for name in ("frontier", "scatter", "scree", "scores", *(f"contour-{k}" for k in range(6)))
    ],
    "table": ["s0-frontier", "s0-scatter", "s0-scree", "s0-scores"],
    "model": ["m-scatter", "m-scree", "m-scores"],
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_plot_has_marks_in_it(opened, name):
    page = opened(name)
    kept(page, name)
    assert [figure.get_attribute("id") for figure in page.query_selector_all("figure")] == FIGURES[name]
    for figure in FIGURES[name]:
        box = page.locator(f"#{figure} svg").bounding_box()
        marks = page.locator(f"#{figure} .marks > :not(text)")
        assert marks.count() >= 3, figure
        # They lie within the plot, and something of them is seen.
        seen = 0
        for mark in marks.all()[:50]:
            place = mark.bounding_box()
            assert box["x"] - 1 <= place["x"] and place["x"] + place["width"] <= box["x"] + box["width"] + 1, figure
            assert box["y"] - 1 <= place["y"] and place["y"] + place["height"] <= box["y"] + box["height"] + 1, figure
            seen += place["width"] + place["height"] > 0
        assert seen >= 3, figure


@pytest.mark.parametrize("name", FIGURES)
def test_plots_have_words_for_those_who_do_not_see_them(opened, name):
    page = opened(name)
    for image in page.query_selector_all("figure svg"):
        assert image.get_attribute("role") == "img"
        for label in image.get_attribute("aria-labelledby").split():
            assert page.locator(f"[id='{label}']").text_content().strip()


def test_a_click_on_a_heading_sorts(opened):
    page = opened("table")
    page.evaluate("document.querySelector('table').scrollIntoView()")

    def column(k):
        return page.eval_on_selector_all("tbody tr", f"rows => rows.map(row => row.cells[{k}].textContent)")

    headings = page.locator("thead button").all_text_contents()
    for name, number in [("points", float), ("fidelity", float), ("linear", float), ("method", str)]:
        k = headings.index(name)
        before = column(k)
        heading = page.locator("thead th").nth(k)
        for order, reverse in [("ascending", False), ("descending", True)]:
            heading.locator("button").click()
            assert heading.get_attribute("aria-sort") == order
            values = [number(value.removeprefix("★ ")) for value in column(k)]
            assert values == sorted(values, reverse=reverse), (name, order)
            assert sorted(column(k)) == sorted(before), "no row is lost"


def test_the_table_says_what_the_json_says(opened):
    page = opened("table")
    data = json.loads(page.locator("script.data").text_content())
    headings = page.locator("thead button").all_text_contents()
    rows = page.eval_on_selector_all(
        "tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.dataset.value ?? c.textContent))"
    )
    fields = {
        "points": "m",
        "fidelity": "fidelity",
        "held out": "held_out_captured",
        "1-NN": "nearest_accuracy",
        "linear": "linear_accuracy",
        "fit": "seconds",
        "query": "query_seconds",
        "file": "bytes",
    }
    assert len(rows) == len(data["models"]) > 8
    for row, model in zip(rows, data["models"], strict=True):
        assert row[0] == model["given"]["name"]
        for heading, field in fields.items():
            assert float(row[headings.index(heading)]) == model[field], heading
    assert data["recommended"]["command"] in page.locator("pre").all_text_contents()


def test_a_mark_tells_what_it_is(opened):
    page = opened("table")
    row = page.locator("#s0-scatter .mark.row").first
    row.scroll_into_view_if_needed()
    row.dispatch_event("pointerover")
    told = page.locator("#tip").text_content()
    assert told.startswith("row 0, class first: a = ") and "<script>alert(1)</script> = " in told
    page.locator("h1").dispatch_event("pointerover")
    assert page.locator("#tip").is_hidden()
    support = page.locator("#s0-scatter .mark.kept title").first.text_content()
    assert support.startswith("support, ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_both_readable(opened, scheme):
    page = opened("table", color_scheme=scheme)
    kept(page, f"table-{scheme}")
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        ".map(c => c.match(/[0-9]+/g).map(Number).reduce((a, b) => a + b) / 3)"
    )
    assert abs(colours[0] - colours[1]) > 150
    assert (colours[0] < 128) == (scheme == "dark")


def test_a_phone_needs_no_sideways_scrolling(opened):
    page = opened("skpca-demo", viewport={"width": 375, "height": 700}, device_scale_factor=1)
    kept(page, "phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_it_prints(opened):
    page = opened("table")
    page.emulate_media(media="print")
    assert page.locator("#tip").is_hidden() and page.locator("table").is_visible()
    assert len(page.pdf()) > 10_000


def test_pages_are_small(pages):
    assert all(path.stat().st_size < 1_000_000 for path in pages.values())
