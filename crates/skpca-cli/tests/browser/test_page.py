"""The report page in a real browser: plots, sorting and tips work, without messages on the console."""

import csv
import itertools
import json
import random
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright: pip install playwright"
)

ROOT = Path(__file__).parents[4]
PROGRAM = ROOT / "target" / "release" / "skpca"
# Kept for inspection.
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
    with open(directory / "parts.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "state"])
        for i in range(240):
            odd = i % 8 == 0
            state = ["late", "broken"][i % 16 > 0] if odd else "ok"
            rows.writerow([*(numbers.gauss(0, 3 if odd else 1) for _ in range(2)), state])
    normal = ("compare", "parts.csv", "--label", "state", "--normal", "ok", "-q", "3")
    normal += ("--methods", "landmarks", "greedy")
    run(*normal, "-o", "novelty.html")
    run("inspect", "kept/greedy-4.skpca", "--html", "model.html")
    readings(directory / "normal.csv", 600, numbers)
    readings(directory / "today.csv", 300, numbers, fault=range(100, 112))
    readings(directory / "month.csv", 100_000, numbers, fault=range(40_000, 40_030))
    run("fit", "normal.csv", "-o", "normal.skpca", "--drop", "time", "--novelty", "--false-alarms", "1%")
    run("fit", "normal.csv", "-o", "spe.skpca", "--drop", "time", "--support", "20", "-q", "2")
    run("monitor", "normal.skpca", "today.csv", "-o", "today.html", "--time", "time")
    run("monitor", "spe.skpca", "today.csv", "-o", "spe.html")
    run("monitor", "normal.skpca", "month.csv", "-o", "month.html", "--time", "time")
    return {name: directory / f"{name}.html" for name in ("skpca-demo", "table", "novelty", "model", *MONITORS)}


MONITORS = ("today", "spe", "month")


def readings(path, count, numbers, fault=()):
    """Readings in time order, whose second input is far off during a fault."""
    start = datetime(2026, 11, 1)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "flow", "<b>pressure</b>", "level"])
        for i in range(count):
            flow, noise, level = (numbers.gauss(0, 1) for _ in range(3))
            pressure = flow + 0.2 * noise + (9 if i in fault else 0)
            rows.writerow([(start + timedelta(seconds=30 * i)).isoformat(), flow, pressure, level])


@pytest.fixture
def opened(browser, pages):
    """Opens a page by its name, and fails on console messages and network requests."""
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
    "table": ["s0-frontier", "s0-quality", "s0-scatter", "s0-scree", "s0-scores"],
    "novelty": [
        "s0-frontier",
        "s0-quality",
        "s0-scatter",
        "s0-scree",
        "s0-scores",
        *(f"s0-contour-{k}" for k in range(4)),
    ],
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
        # The marks are within the plot, and some are visible.
        seen = 0
        for mark in marks.all()[:50]:
            place = mark.bounding_box()
            assert box["x"] - 1 <= place["x"] and place["x"] + place["width"] <= box["x"] + box["width"] + 1, figure
            assert box["y"] - 1 <= place["y"] and place["y"] + place["height"] <= box["y"] + box["height"] + 1, figure
            seen += place["width"] + place["height"] > 0
        assert seen >= 3, figure


@pytest.mark.parametrize("name", FIGURES)
def test_plots_have_descriptions_for_screen_readers(opened, name):
    page = opened(name)
    for image in page.query_selector_all("figure svg"):
        assert image.get_attribute("role") == "img"
        for label in image.get_attribute("aria-labelledby").split():
            assert page.locator(f"[id='{label}']").text_content().strip()


def test_a_click_on_a_heading_sorts(opened):
    page = opened("table")
    page.evaluate("document.querySelector('table.models').scrollIntoView()")

    def column(k):
        return page.eval_on_selector_all(".models tbody tr", f"rows => rows.map(row => row.cells[{k}].textContent)")

    headings = page.locator(".models thead button").all_text_contents()
    for name, number in [("Points kept", float), ("Fidelity", float), ("Linear accuracy", float), ("Method", str)]:
        k = headings.index(name)
        before = column(k)
        heading = page.locator(".models thead th").nth(k)
        for order, reverse in [("ascending", False), ("descending", True)]:
            heading.locator("button").click()
            assert heading.get_attribute("aria-sort") == order
            values = [number(value.removeprefix("★ ")) for value in column(k)]
            assert values == sorted(values, reverse=reverse), (name, order)
            assert sorted(column(k)) == sorted(before), "no row is lost"


def test_the_table_agrees_with_the_json(opened):
    page = opened("table")
    data = json.loads(page.locator("script.data").text_content())
    headings = page.locator(".models thead button").all_text_contents()
    rows = page.eval_on_selector_all(
        ".models tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.dataset.value ?? c.textContent))"
    )
    fields = {
        "Points kept": "m",
        "Fidelity": "fidelity",
        "Captured on new rows": "held_out_captured",
        "Nearest-neighbour accuracy": "nearest_accuracy",
        "Linear accuracy": "linear_accuracy",
        "Time to fit": "seconds",
        "Time per row": "query_seconds",
        "File size": "bytes",
    }
    assert len(rows) == len(data["models"]) > 8
    for row, model in zip(rows, data["models"], strict=True):
        assert row[0] == model["given"]["name"]
        for heading, field in fields.items():
            assert float(row[headings.index(heading)]) == model[field], heading
    assert data["recommended"]["command"] in page.locator("pre").all_text_contents()


def test_a_mark_has_a_tip(opened):
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


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_both_readable(opened, scheme, width):
    page = opened("table", color_scheme=scheme, viewport={"width": width, "height": 720})
    kept(page, f"table-{scheme}-{width}")
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        ".map(c => c.match(/[0-9]+/g).map(Number).reduce((a, b) => a + b) / 3)"
    )
    assert abs(colours[0] - colours[1]) > 150
    assert (colours[0] < 128) == (scheme == "dark")


@pytest.mark.parametrize("name", ["skpca-demo", "table", "novelty"])
@pytest.mark.parametrize("width", [375, 390])
def test_a_phone_needs_no_sideways_scrolling(opened, name, width):
    page = opened(name, viewport={"width": width, "height": 700}, device_scale_factor=1)
    kept(page, f"{name}-{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The first columns are visible without scrolling.
    for column in (0, 1, 2):
        box = page.locator(".models tbody tr").first.locator("td").nth(column).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, (column, box)


def test_the_legend_explains_outlines(opened):
    page = opened("table")
    assert "outlined: the recommended model" in page.locator(".legend").first.text_content()
    assert page.locator("#s0-frontier .mark.chosen").count() == 1
    assert page.locator("#s0-quality .mark.chosen").count() == 1
    assert page.locator(".legend").nth(1).text_content().endswith("ring: a point that is kept")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", FIGURES)
def test_labels_do_not_cover_each_other(opened, name, width):
    page = opened(name, viewport={"width": width, "height": 720})
    for figure, part in itertools.product(FIGURES[name], ("marks", "axes")):
        boxes = [label.bounding_box() for label in page.locator(f"#{figure} .{part} text").all()]
        for a, b in itertools.combinations(boxes, 2):
            beside = a["x"] + a["width"] + 2 <= b["x"] or b["x"] + b["width"] + 2 <= a["x"]
            # Letters are half as high as their boxes.
            under = a["y"] + 0.5 * a["height"] <= b["y"] or b["y"] + 0.5 * b["height"] <= a["y"]
            assert beside or under, (figure, part, a, b)


def test_the_chart_shows_the_deciding_measure_and_the_baselines(opened):
    data = {name: json.loads(opened(name).locator("script.data").text_content()) for name in ("table", "novelty")}
    for name, field in [("table", "accuracy"), ("novelty", "AUROC")]:
        page = opened(name)
        tips = page.locator("#s0-quality .mark title").all_text_contents()
        assert len(tips) == len(data[name]["models"])
        assert all(f" points, {field} " in tip and " ± " in tip for tip in tips)
        shown = page.locator("#s0-quality .marks text").all_text_contents()
        # A baseline far below all models is named under the chart; how good models are depends on the available time.
        assert shown and all(
            one in ", ".join(shown) or f"Not shown: {one}," in page.content() for one in ("raw columns", "linear PCA")
        )
        assert page.locator(".baselines tbody th").all_text_contents() == [b["name"] for b in data[name]["baselines"]]


def test_it_prints(opened):
    page = opened("table")
    page.emulate_media(media="print")
    assert page.locator("#tip").is_hidden() and page.locator("table.models").is_visible()
    assert len(page.pdf()) > 10_000


def test_pages_are_small(pages):
    assert all(path.stat().st_size < 1_000_000 for path in pages.values())


@pytest.mark.parametrize("name", MONITORS)
def test_the_monitoring_page_shows_every_alarm(opened, name):
    page = opened(name, viewport={"width": 1200, "height": 900})
    kept(page, f"monitor-{name}")
    figures = [figure.get_attribute("id") for figure in page.query_selector_all("figure")]
    assert figures == ["score", "t2", "alarms", "p-values"]
    alarms = int(page.locator(".advice").text_content().split()[0])
    tips = page.locator("#score rect title").all_text_contents()
    told = [tip.rsplit(", ", 1)[1] for tip in tips if "alarm" in tip]
    assert alarms > 10 and alarms == sum(1 if tip == "an alarm" else int(tip.split()[0]) for tip in told)
    # Red, within the chart, and above the limit.
    colour = page.locator("#score .peaks").evaluate("mark => getComputedStyle(mark).stroke")
    red, green, blue = (int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
    assert red > 2 * max(green, blue)
    box = "mark => { const box = mark.getBBox(); return [box.y, box.y + box.height]; }"
    peaks, limit = (page.locator(f"#score {what}").evaluate(box) for what in (".peaks", ".ceiling"))
    assert 0 <= peaks[0] + 0.2 and peaks[1] <= limit[0] + 0.2
    assert page.locator("#score .peaks").get_attribute("d").count("M") == len(told)


@pytest.mark.parametrize("name", MONITORS)
def test_runs_of_alarms_name_the_input_at_fault(opened, name):
    page = opened(name)
    heading = page.locator("th button", has_text="Rows")
    heading.click()
    heading.click()
    longest = page.locator(".runs tbody tr").first
    rows = {"month": 30}.get(name, 12)
    first = {"month": "2026-11-14T21:20:00", "today": "2026-11-01T00:50:00", "spe": "100"}[name]
    assert longest.locator("td").nth(0).text_content() == first
    assert int(longest.locator("td").nth(2).text_content()) >= rows
    # Flow is so close to pressure that either may be blamed.
    assert longest.locator(".what").text_content().startswith(("<b>pressure</b> ", "flow "))
    assert page.locator(".inputs th").count() == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_monitoring_page_is_light_or_dark(opened, scheme):
    page = opened("today", color_scheme=scheme, viewport={"width": 1200, "height": 900})
    kept(page, f"monitor-today-{scheme}")
    bright = """mark => {
        const of = (colour) => colour.match(/[0-9]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3;
        return [of(getComputedStyle(document.body).backgroundColor), of(getComputedStyle(mark).stroke)];
    }"""
    for mark in ("#score .values", "#score .peaks", "#score .ceiling"):
        paper, ink = page.locator(mark).evaluate(bright)
        assert (paper < 128) == (scheme == "dark") and abs(paper - ink) > 60, mark


@pytest.mark.parametrize("name", MONITORS)
@pytest.mark.parametrize("width", [375, 390])
def test_the_monitoring_page_fits_a_phone(opened, name, width):
    page = opened(name, viewport={"width": width, "height": 800})
    kept(page, f"monitor-{name}-{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    labels = page.locator("#score .x >> visible=true")
    assert labels.count() == 2, "the first and the last"
    boxes = [labels.nth(k).bounding_box() for k in range(2)]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    sizes = page.eval_on_selector_all("#score span", "all => all.map((s) => parseFloat(getComputedStyle(s).fontSize))")
    assert min(sizes) >= 11
    lines = """cell => {
        const text = document.createRange();
        text.selectNodeContents(cell);
        return text.getClientRects().length;
    }"""
    assert page.locator(".runs tbody td").first.evaluate(lines) == 1, "a time is one line"


def test_the_pointer_shows_tips(opened):
    page = opened("today")
    page.locator("#score rect").nth(104).dispatch_event("pointerover")
    told = page.locator("#tip").text_content()
    assert told.startswith("row 104, 2026-11-01T00:52:00: score ") and told.endswith(", an alarm")


def test_the_monitoring_page_prints(opened):
    page = opened("month")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#tip").is_hidden()
    colours = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    runs = page.locator(".runs").evaluate("runs => [runs.clientHeight, runs.scrollHeight]")
    assert runs[0] == runs[1], "every run is on paper"
    assert len(page.pdf()) > 10_000


def test_a_hundred_thousand_rows_make_a_small_page(pages):
    assert pages["month"].stat().st_size < 3_000_000
