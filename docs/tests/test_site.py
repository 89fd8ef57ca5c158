"""The site that docs/build made: every internal link leads somewhere, anchors included, and nothing is fetched from a network."""

import importlib
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("SKPCA_SITE", ROOT / "target" / "site"))
# What a page loads when it is opened: these must not come from elsewhere.
LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "srcset")}
# Links that a browser does not follow by itself.
QUIET = {"canonical", "search", "index", "next", "prev", "help", "license"}


class Page(HTMLParser):
    """Links of a page, and the anchors that others may lead to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        for name in ("href", "src", "srcset"):
            target = attributes.get(name)
            if not target or target.startswith(("data:", "mailto:", "javascript:")):
                continue
            self.links.append(target)
            if (tag, name) in LOADS and attributes.get("rel") not in QUIET:
                self.loads.append(target)


def broken(pages):
    """Internal links that lead nowhere: page, link and what is missing."""
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                yield f"{path.name}: {link}: no such file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.name}: {link}: no such anchor"


@pytest.fixture(scope="module")
def pages():
    if not (SITE / "index.html").exists():
        pytest.skip("there is no site: docs/build makes it")
    files = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    return {path.resolve(): Page(path.read_text()) for path in files}


def test_internal_links_lead_somewhere(pages):
    assert len(pages) > 100 and sum(len(page.links) for page in pages.values()) > 5000
    assert not list(broken(pages))


def test_pages_load_nothing_from_a_network(pages):
    assert not [(path.name, load) for path, page in pages.items() for load in page.loads if "//" in load]


def test_broken_links_are_seen(tmp_path):
    (tmp_path / "there.html").write_text('<h1 id="top">')
    text = '<a href="there.html#top"></a><a href="there.html#gone"></a><img src="gone.png"><a href="#here" id="here">'
    (tmp_path / "page.html").write_text(text)
    pages = {tmp_path / "page.html": Page(text), tmp_path / "there.html": Page('<h1 id="top">')}
    assert [line.split(": ", 1)[1] for line in broken(pages)] == [
        "there.html#gone: no such anchor",
        "gone.png: no such file",
    ]


@pytest.mark.parametrize("name", ["SparseKernelPCA", "KernelNovelty", "SparseLinearPCA", "dask.KernelNovelty"])
def test_estimators_link_to_pages_that_there_are(pages, name, monkeypatch):
    from skpca import _documentation

    monkeypatch.setattr(_documentation, "site", lambda: SITE.as_uri())
    module, _, kind = f"skpca.{name}".rpartition(".")
    link = re.search(r'href="(file:[^"]+)"', getattr(importlib.import_module(module), kind)()._repr_html_())[1]
    assert Path(unquote(urlsplit(link).path)).exists(), link
