"""The documentation site. `docs/build` makes it; pages of methods, kernels, commands and classes come from the program itself."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "skpca"
author = "The skpca developers"
copyright = "the skpca developers, MIT or Apache-2.0"
release = version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "generated_pages",
    "docstrings",
    "files_of_the_tree",
]

exclude_patterns = [
    "_*",
    "**sg_execution_times.rst",
    "tests",
    "examples",
    "README.md",
    "**/GALLERY_HEADER.rst",
    "generated/gallery/*.ipynb",
]
root_doc = "index"
nitpicky = False
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = f"skpca {release}"
html_static_path = ["_static", "../target/mathjax"]
html_css_files = ["skpca.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "skpca"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "peers": [], "cite": []}

# One file, copied from the npm package (docs/decisions/0063): no page needs a network.
mathjax_path = "tex-svg.js"
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = True
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = True

sphinx_gallery_conf = {
    "examples_dirs": ["../crates/skpca-python/examples"],
    "gallery_dirs": ["generated/gallery"],
    "filename_pattern": r"\.py$",
    "plot_gallery": "True",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,
    # Its page fetches scripts from a network.
    "write_computation_times": False,
    "copyfile_regex": r"GALLERY_HEADER\.rst",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "backreferences_dir": None,
    "matplotlib_animations": False,
}
