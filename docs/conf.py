"""How the site is built: `make docs` lays its pages out and calls Sphinx with this file."""

from __future__ import annotations

from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

from docs.site import words

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "stabtree"
author = "the stabtree authors"
project_copyright = author
version = release = version_of("stabtree")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_static"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of annotations, of which only those on a page can be linked to
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
myst_ref_domains = ["std"]
default_role = "code"  # single ticks in docstrings
smartquotes_action = "qe"  # two dashes begin an option
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_class_signature = "separated"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_theme_options = {"footer_icons": [], "navigation_with_keys": False}
html_title = "stabtree"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_js_files = ["site.js"]
html_css_files = ["curves.css", "site.css", "failures.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_style = "sas"
pygments_dark_style = "github-dark"


def setup(app: Sphinx) -> None:
    """Let the pages of failures share a side bar: the theme lays out the whole table of contents anew for each page."""
    shared: list[str] = []

    def share(_app: Sphinx, name: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
        lay_out = context.get("toctree")
        if lay_out and name.startswith("failures/") and not name.endswith("/index"):
            shared.extend(
                [] if shared else [lay_out(collapse=False, titles_only=True, maxdepth=-1, includehidden=True)]
            )
            context["toctree"] = lambda **_options: shared[0]

    app.connect("html-page-context", share, priority=400)  # before those of the theme
    app.connect("build-finished", words.write)
