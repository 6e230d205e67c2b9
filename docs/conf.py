"""How the site is built: `make docs` lays its pages out and calls Sphinx with this file."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.site.reference.hints import checking_names, public, types
from docs.site.sidebar import connect

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "stabtree"
author = "the stabtree authors"
project_copyright = author
version = release = version_of("stabtree")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_static"]
nitpicky = True
# Of other packages there is nothing to link to without a network; every name of ours must lead somewhere.
# Aliases and type variables of annotations have no page.
nitpick_ignore = [("py:class", name) for name in ("Ask", "Overrides", "stabtree.common.faults.T")]
nitpick_ignore_regex = [("py:.*", r"(collections|datetime|numpy|pandas|pathlib|types|logging|enum|torch)\..*")]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
default_role = "code"  # single ticks in docstrings
smartquotes_action = "qe"  # two dashes begin an option
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_class_signature = "separated"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

# The colours are those of the HTML report (stabtree/report/style.css); pictures take them from these names.
LIGHT = {
    "color-brand-primary": "#2257c5",
    "color-brand-content": "#2257c5",
    "color-brand-visited": "#5b46a8",
    "color-background-primary": "#ffffff",
    "color-background-secondary": "#f8f8f7",
    "color-background-border": "#e3e4e6",
    "color-foreground-primary": "#1c1e21",
    "color-foreground-secondary": "#525965",
    "color-foreground-muted": "#5c6370",
    "color-inline-code-background": "#f1f2f4",
    "color-card-background": "#ffffff",
    "color-code-background": "#f6f7f8",
    "color-api-name": "#2257c5",
    "color-api-pre-name": "#5c6370",
    "color-code-foreground": "#1c1e21",
    "site-accent": "#2257c5",
    "site-bad": "#c8242b",
    "site-lost": "#c8242b1c",
    "site-band": "#2257c540",
    "site-good": "#18794e",
    "site-likely": "#8a5200",
    "site-note": "#2257c5",
    "site-unknown": "#5c6370",
}
DARK = {
    "color-brand-primary": "#82aaff",
    "color-brand-content": "#82aaff",
    "color-brand-visited": "#b8a5f5",
    "color-background-primary": "#14161a",
    "color-background-secondary": "#191c21",
    "color-background-border": "#2e333b",
    "color-foreground-primary": "#e6e8eb",
    "color-foreground-secondary": "#b3bac5",
    "color-foreground-muted": "#9da5b1",
    "color-inline-code-background": "#22262d",
    "color-card-background": "#1b1e23",
    "color-code-background": "#1b1e23",
    "color-api-name": "#82aaff",
    "color-api-pre-name": "#9da5b1",
    "color-code-foreground": "#e6e8eb",
    "site-accent": "#82aaff",
    "site-bad": "#ff6b6b",
    "site-lost": "#ff6b6b1c",
    "site-band": "#82aaff4d",
    "site-good": "#4cc38a",
    "site-likely": "#f0b255",
    "site-note": "#2f65d0",
    "site-unknown": "#5f6774",
}

html_theme = "furo"
html_theme_options = {
    "light_css_variables": LIGHT,
    "dark_css_variables": DARK,
    "footer_icons": [],
    "navigation_with_keys": False,
}
html_title = "stabtree"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
# Ours first, then those that kinds of pages bring, wherever makers or hands put them.
html_css_files = ["site.css", *sorted({file.name for file in Path("_static").glob("*.css")} - {"site.css"})]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a summary is fetched, which a browser refuses below file://
pygments_style = "sas"
pygments_dark_style = "github-dark"


HOMES = {f"{thing.__module__}.{thing.__name__}": f"stabtree.{name}" for name, thing in public().items()}


def _offered(_app: Sphinx, env: Any, node: Any, text: Any) -> Any:
    """A type by its module, which `stabtree` offers under its own name: that is where it is described."""
    name = HOMES.get(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or name is None:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], _app.builder, node["reftype"], name, node, text)


def setup(app: Sphinx) -> None:
    """Let hints be resolved that are imported for type checkers alone, and types be found where they are described."""
    types()  # imports all that they are of
    for module, names in checking_names().items():
        for name, thing in names.items():
            vars(sys.modules[module]).setdefault(name, thing)
    app.connect("missing-reference", _offered)
    connect(app)
