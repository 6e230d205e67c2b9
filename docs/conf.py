"""How the site is built: `make docs` lays its pages out and calls Sphinx with this file."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "stabtree"
author = "the stabtree authors"
project_copyright = author
version = release = version_of("stabtree")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_static"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of annotations, of which only those on a page can be linked to
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

html_theme = "furo"
html_theme_options = {"footer_icons": [], "navigation_with_keys": False}
html_title = "stabtree"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["curves.css", "site.css", "failures.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a summary is fetched, which a browser refuses below file://
pygments_style = "sas"
pygments_dark_style = "github-dark"
