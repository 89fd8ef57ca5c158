"""Links from a page to files of the tree that are no pages: they become the file's path, for there is nothing to open."""

from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parents[2]
# Files outside docs/ that are pages of the site.
PAGES = {
    "ARCHITECTURE.md": "development/architecture",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "development/contributing",
    "SECURITY.md": "development/security",
    "docs/decisions": "decisions/index",
}


class Links(SphinxTransform):
    default_priority = 5

    def apply(self):
        if Path(self.env.doc2path(self.env.docname)).suffix != ".md":
            return
        for link in [*self.document.findall(nodes.reference), *self.document.findall(is_pending)]:
            target = link.get("refuri") or link.get("reftarget") or ""
            path, _, _ = target.partition("#")
            if not path or "://" in path or path.startswith("mailto:"):
                continue
            self.repair(link, path)

    def repair(self, link, path):
        """A link to a file outside docs/ leads to the page that shows it, or is text."""
        home = Path(self.env.doc2path(self.env.docname)).parent
        found = next((place for place in ((home / path).resolve(), (ROOT / path).resolve()) if place.exists()), None)
        if found is None or not found.is_relative_to(ROOT):
            return
        inside = found.relative_to(ROOT).as_posix()
        if inside in PAGES:
            self.lead(link, PAGES[inside])
        elif found.suffix == ".md" and inside.startswith("docs/"):
            self.lead(
                link, inside.removeprefix("docs/").removesuffix(".md"), link.get("reftarget", "").partition("#")[2]
            )
        else:
            link.replace_self(nodes.literal(text=inside) if link.astext() == path else link.children)

    def lead(self, link, page, anchor=""):
        from sphinx import addnodes

        if anchor:
            return
        leading = addnodes.pending_xref(
            "",
            refdomain="std",
            reftype="doc",
            reftarget=f"/{page}",
            refexplicit=True,
            refwarn=True,
            refdoc=self.env.docname,
        )
        leading += nodes.inline("", "", *link.children)
        link.replace_self(leading)


def is_pending(node):
    return node.tagname == "pending_xref" and node.get("reftype") == "myst" or node.tagname == "download_reference"


def setup(app):
    app.add_transform(Links)
    return {"parallel_read_safe": True}
