"""Absolute values in docstrings, |x|, which reStructuredText would take for substitutions."""

import re

BARS = re.compile(r"\|(?=\S)([^|`]*\S)\|")


def escape(app, what, name, thing, options, lines):
    lines[:] = [BARS.sub(r"\\|\1\\|", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", escape, priority=100)
    return {"parallel_read_safe": True}
