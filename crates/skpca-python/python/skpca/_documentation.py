"""The documentation link in scikit-learn's HTML representation of an estimator."""

from importlib import metadata


def site():
    """Returns the URL that the package declares ("Documentation" in `project.urls`), or an empty string."""
    urls = dict(url.split(", ", 1) for url in metadata.metadata("skpca").get_all("Project-URL") or [])
    return urls.get("Documentation", "").rstrip("/")


class Linked:
    """An estimator with a page of its own on the site."""

    _doc_link_module = "skpca"

    @property
    def _doc_link_template(self):
        return f"{site()}/generated/python/{{page}}.html" if site() else ""

    def _doc_link_url_param_generator(self):
        public = [part for part in type(self).__module__.split(".")[1:] if not part.startswith("_")]
        return {"page": ".".join([*public, type(self).__name__])}
